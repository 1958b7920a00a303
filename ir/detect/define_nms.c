// What multiclass_nms and matrix_nms mean (ir/ops/detect.yaml): boxes in order of their scores,
// those chosen of each class, the best of all classes, and the rows of the result.
//
// All is done for every image and class at once. Places are positions in what was sorted: place t
// of (image, class) holds a box, and images have C * T places.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/sequence/sequence.h"

#include <math.h>
#include <string.h>

typedef struct Nms {
	Builder *b;
	Op *op;
	Context *ctx;
	DType t;
	Value *scores; // [N x C x M]
	Value *boxes;  // [N or 1 x 1 or C x M x 4]
	Value *ends;   // rows apart: the row behind each image's last
	bool apart;    // each class has boxes of its own; images lie one behind the other
	const Dim *n, *c, *m;
	const Dim *top;    // T: places per class
	const Dim *places; // C * T
} Nms;

static Value *number(const Nms *s, Builder *b, double v)
{
	return build_scalar_f(b, s->t, v);
}

static const Type *tensor2(const Nms *s, DType t, const Dim *x, const Dim *y)
{
	const Dim *dims[] = {x, y};
	return type_tensor(s->ctx, t, 2, dims, 0);
}

static const Type *tensor3(const Nms *s, DType t, const Dim *x, const Dim *y, const Dim *z)
{
	const Dim *dims[] = {x, y, z};
	return type_tensor(s->ctx, t, 3, dims, 0);
}

// Row n of a tensor of whole numbers is over this position.
static Value *is_before(Builder *b, Value *position, Value *limits, Value *const *at)
{
	Value *limit = load(b, limits, at);
	return limit ? apply2(b, OP_PD_LESS_THAN, scalar_from_index(b, position, limit->type->dtype),
	                      limit)
	             : NULL;
}

// ---- what comes in ------------------------------------------------------------------------------

// scores [M x C] as [N x C x M], -inf outside of the image; boxes [M x C x 4] as [1 x C x M x 4].
static void nms_open_apart(Nms *s, Value *boxes, Value *scores, Value *num)
{
	Builder *b = s->b;
	const Dim *const dims[] = {dim_const(s->ctx, 1), s->c, s->m, dim_const(s->ctx, 4)};
	if (num) {
		num = tensor_reshape(b, tensor_cast(b, num, DT_I64), 1, &s->n);
	} else {
		Nest r = nest_open(b, type_tensor(s->ctx, DT_I64, 1, &s->n, 0));
		Value *rows = sequence_length(&r.b, op_operand_named(s->op, "scores_lod"), r.at[0], s->m);
		num = nest_close(&r, scalar_from_index(&r.b, rows, DT_I64));
	}
	s->ends = num ? build1(b, OP_PD_CUMSUM, num, "axis", attr_int(s->ctx, 0), NULL) : NULL;
	if (!s->ends)
		return;
	Nest n = nest_open(b, tensor3(s, s->t, s->n, s->c, s->m));
	Value *row = scalar_from_index(&n.b, n.at[2], DT_I64), *end = load(&n.b, s->ends, &n.at[0]);
	Value *start = apply2(&n.b, OP_PD_SUBTRACT, end, load(&n.b, num, &n.at[0]));
	Value *inside = apply2(&n.b, OP_PD_LESS_EQUAL, start, row);
	inside = inside ? pred_and(&n.b, inside, apply2(&n.b, OP_PD_LESS_THAN, row, end)) : NULL;
	Value *score = load(&n.b, scores, (Value *const[]){n.at[2], n.at[1]});
	s->scores = nest_close(&n, index_where(&n.b, inside, score, number(s, &n.b, -INFINITY)));
	Nest m = nest_open(b, type_tensor(s->ctx, s->t, 4, dims, 0));
	s->boxes = nest_close(&m, load(&m.b, boxes, (Value *const[]){m.at[2], m.at[1], m.at[3]}));
}

static bool nms_open(Nms *s, Builder *b, Op *op)
{
	Value *boxes = op_operand(op, 0), *scores = op_operand(op, 1);
	const Type *t = scores->type;
	*s = (Nms){.b = b, .op = op, .ctx = b->ctx, .t = t->dtype, .apart = t->rank == 2};
	s->n = op->results[2].type->dims[0];
	s->c = t->dims[1];
	s->m = t->dims[s->apart ? 0 : 2];
	int64_t top = op_int(op, "nms_top_k", -1);
	s->top = top < 0 ? s->m : dim_min(s->ctx, s->m, dim_const(s->ctx, top));
	s->places = dim_mul(s->ctx, s->c, s->top);
	const Dim *dims[] = {s->n, dim_const(s->ctx, 1), s->m, dim_const(s->ctx, 4)};
	if (s->apart) {
		nms_open_apart(s, boxes, scores, op_operand(op, 2));
	} else {
		s->scores = scores;
		s->boxes = tensor_reshape(b, boxes, 4, dims);
	}
	return s->scores && s->boxes;
}

// Of each image and class the boxes of highest score; none of the background.
static Chosen nms_candidates(Nms *s)
{
	double threshold = op_float(s->op, "score_threshold", 0);
	int64_t background = op_int(s->op, "background_label", 0);
	Chosen r = select_sorted(s->b, s->scores, true, &threshold, s->top);
	if (!r.at || background < 0)
		return r;
	Nest n = nest_open(s->b, r.count->type);
	Value *none = index_equal(&n.b, n.at[1], index_const(&n.b, background));
	r.count = nest_close(
		&n, index_where(&n.b, none, build_scalar_f(&n.b, DT_I32, 0), load(&n.b, r.count, n.at)));
	return r;
}

// A box of the image and class at place t.
static Value *box_at(const Nms *s, Builder *b, Chosen r, Value *const *at)
{
	return index_from_data(b, load(b, r.at, at), s->m, false);
}

// Corner k of box m.
static Value *corner(const Nms *s, Builder *b, Value *n, Value *c, Value *m, Value *k)
{
	Value *const own[] = {index_const(b, 0), c, m, k}, *const shared[] = {n, index_const(b, 0), m,
	                                                                      k};
	return load(b, s->boxes, s->apart ? own : shared);
}

// What was chosen of each image and class, by box instead of by score.
static Chosen nms_by_box(Nms *s, Chosen r)
{
	Nest n = nest_open(s->b, r.at->type);
	Value *there = is_before(&n.b, n.at[2], r.count, n.at),
		  *last = build_scalar_f(&n.b, DT_I32, INT32_MAX);
	Value *keys = nest_close(&n, index_where(&n.b, there, load(&n.b, r.at, n.at), last));
	Chosen order = select_sorted(s->b, keys, false, NULL, s->top);
	if (!order.at)
		return order;
	Nest m = nest_open(s->b, r.at->type);
	Value *from[] = {m.at[0], m.at[1],
	                 index_from_data(&m.b, load(&m.b, order.at, m.at), s->top, false)};
	return (Chosen){nest_close(&m, load(&m.b, r.at, from)), r.count};
}

// ---- the best of all classes --------------------------------------------------------------------

// [N x C * T]: the scores that count in the end, -inf where a place is empty.
static Value *scores_by_box(Nms *s, Chosen r)
{
	Nest n = nest_open(s->b, tensor2(s, s->t, s->n, s->places));
	Value *at[3] = {n.at[0]};
	const Dim *dims[] = {s->c, s->top};
	index_split(&n.b, n.at[1], 2, dims, at + 1);
	Value *score = load(&n.b, s->scores, (Value *const[]){at[0], at[1], box_at(s, &n.b, r, at)});
	return nest_close(&n, index_where(&n.b, is_before(&n.b, at[2], r.count, at), score,
	                                  number(s, &n.b, -INFINITY)));
}

// The best keep_top_k of each image; all of them when there is no such number.
static Chosen nms_best(Nms *s, Value *scores, double above)
{
	int64_t keep = op_int(s->op, "keep_top_k", -1);
	const Dim *limit = keep < 0 ? s->places : dim_min(s->ctx, s->places, dim_const(s->ctx, keep));
	return select_sorted(s->b, scores, true, &above, limit);
}

// Whether each place is among the best of its image: its score is over that of the last one, or it
// comes not after it.
static Value *nms_mask(Nms *s, Value *scores, Chosen best)
{
	Nest n = nest_open(s->b, tensor2(s, DT_BOOL, s->n, s->places));
	Builder *b = &n.b;
	const Dim *limit = best.at->type->dims[1];
	Value *zero = build_scalar_f(b, DT_I32, 0), *count = load(b, best.count, n.at);
	Value *last = apply2(b, OP_PD_SUBTRACT, count, build_scalar_f(b, DT_I32, 1));
	last = index_from_data(b, apply2(b, OP_PD_MAXIMUM, last, zero), limit, false);
	Value *place = index_from_data(b, load(b, best.at, (Value *const[]){n.at[0], last}), s->places,
	                               false);
	Value *least = load(b, scores, (Value *const[]){n.at[0], place}), *mine = load(b, scores, n.at);
	Value *tie = apply2(b, OP_PD_LESS_EQUAL, n.at[1], place),
		  *over = apply2(b, OP_PD_GREATER_THAN, mine, least);
	Value *equal = apply2(b, OP_PD_EQUAL, mine, least);
	tie = equal ? pred_and(b, equal, tie) : NULL;
	Value *some = apply2(b, OP_PD_GREATER_THAN, count, zero);
	Value *in = apply2(b, OP_PD_LOGICAL_OR, over, tie);
	return nest_close(&n, some && in ? pred_and(b, some, in) : NULL);
}

// ---- rows of the result -------------------------------------------------------------------------

// One of the results: where its numbers come from.
typedef struct Row {
	Value *n, *c, *box, *score;
} Row;

// The row number `row` of the result: `places` says which place of which image it is.
static Row nms_row(const Nms *s, Builder *b, Value *row, Value *places, Value *scores, Chosen r)
{
	const Dim *dims[] = {s->n, s->c, s->top}, *all = dim_mul(s->ctx, s->n, s->places);
	Value *at[3], *place = index_from_data(b, load(b, places, &row), all, false);
	index_split(b, place, 3, dims, at);
	Value *in[] = {at[0], index_mod(b, place, index_dim(b, s->places))};
	return (Row){at[0], at[1], box_at(s, b, r, at), load(b, scores, in)};
}

static Value *row_element(const Nms *s, Builder *b, const Row *row, Value *field)
{
	Value *k = index_max(b, index_plus(b, field, -2), index_const(b, 0));
	Value *v = index_where(b, index_equal(b, field, index_const(b, 1)), row->score,
	                       corner(s, b, row->n, row->c, row->box, k));
	Value *label = scalar_from_index(b, row->c, s->t);
	return index_where(b, index_equal(b, field, index_const(b, 0)), label, v);
}

// Sizes that were found: rows, and, when nothing found has others, the width of a row and how many
// offsets there are.
static bool rows_bind(Nms *s, Value *total)
{
	const Dim *const *out = s->op->results[0].type->dims;
	if (dim_is_const(out[1]))
		return bind_size(s->b, total, out[0]);
	const Dim *sizes[] = {out[0], out[1], s->op->results[3].type->dims[0]};
	const Dim *all = dim_const(s->ctx, dim_is_const(sizes[2]) ? 2 : 3);
	Nest n = nest_open(s->b, type_tensor(s->ctx, DT_I32, 1, &all, 0));
	Value *count = load_scalar(&n.b, total), *one = build_scalar_f(&n.b, DT_I32, 1);
	Value *some = apply2(&n.b, OP_PD_GREATER_EQUAL, count, one);
	Value *rows = apply2(&n.b, OP_PD_MAXIMUM, count, one);
	Value *width = index_where(&n.b, some, build_scalar_f(&n.b, DT_I32, 6), one);
	Value *ends = scalar_from_index(&n.b, index_plus(&n.b, index_dim(&n.b, s->n), 1), DT_I32);
	ends = index_where(&n.b, some, ends, build_scalar_f(&n.b, DT_I32, 2));
	Value *size = index_where(&n.b, index_equal(&n.b, n.at[0], index_const(&n.b, 1)), width, ends);
	size = index_where(&n.b, index_equal(&n.b, n.at[0], index_const(&n.b, 0)), rows, size);
	Value *found = nest_close(&n, size);
	const NamedAttr bind = {"dims", attr_dims(s->ctx, (int)all->value, sizes)};
	return found && build_op(s->b, OP_LOOP_BIND, 1, &found, 1, &bind);
}

// `places`: [N x C * T] positions, one behind the other for all images, of the rows; `scores` by
// place.
static bool nms_results(Nms *s, Chosen places, Value *scores, Chosen r, Value **results)
{
	const Type *out = s->op->results[0].type;
	if (!places.at || !scores || !r.at || !rows_bind(s, places.count))
		return false;
	Nest n = nest_open(s->b, out);
	Row row = nms_row(s, &n.b, n.at[0], places.at, scores, r);
	Value *element = row_element(s, &n.b, &row, n.at[1]);
	if (!dim_is_const(out->dims[1])) {
		Value *some = apply2(&n.b, OP_PD_GREATER_THAN, load_scalar(&n.b, places.count),
		                     build_scalar_f(&n.b, DT_I32, 0));
		element = index_where(&n.b, some, element, number(s, &n.b, -1));
	}
	results[0] = nest_close(&n, element);
	Nest i = nest_open(s->b, s->op->results[1].type);
	row = nms_row(s, &i.b, i.at[0], places.at, scores, r);
	Value *position = s->apart
	                      ? index_add(&i.b, index_mul(&i.b, row.box, index_dim(&i.b, s->c)), row.c)
	                      : index_add(&i.b, index_mul(&i.b, row.n, index_dim(&i.b, s->m)), row.box);
	results[1] = nest_close(&i, position);
	return results[0] && results[1];
}

// Where the rows of each image begin; the -1 that stands for nothing found is the row of one image,
// the only one.
static Value *result_offsets(Nms *s, Value *counts)
{
	Value *offsets = offsets_of_counts(s->b, counts);
	if (!offsets || dim_is_const(s->op->results[0].type->dims[1]))
		return offsets;
	Nest n = nest_open(s->b, s->op->results[3].type);
	Value *here = load(&n.b, offsets, n.at), *last = index_dim(&n.b, s->n);
	Value *none = apply2(&n.b, OP_PD_EQUAL, load(&n.b, offsets, &last),
	                     build_scalar_f(&n.b, DT_I64, 0));
	Value *one = index_min(&n.b, n.at[0], index_const(&n.b, 1));
	return nest_close(&n, index_where(&n.b, none, scalar_from_index(&n.b, one, DT_I64), here));
}

bool define_hook_multiclass_nms(Builder *b, Op *op, Value **results)
{
	Nms s;
	if (!nms_open(&s, b, op))
		return false;
	bool pixels = !op_bool(op, "normalized", true);
	Chosen r = select_apart(b, s.boxes, nms_candidates(&s), op_float(op, "nms_threshold", 0.3),
	                        op_float(op, "nms_eta", 1), pixels);
	if (r.at && s.apart)
		r = nms_by_box(&s, r);
	Value *scores = r.at ? scores_by_box(&s, r) : NULL;
	Chosen best = nms_best(&s, scores, -INFINITY);
	if (!best.at ||
	    !nms_results(&s, select_true(b, nms_mask(&s, scores, best)), scores, r, results))
		return false;
	results[2] = best.count;
	results[3] = result_offsets(&s, best.count);
	return results[3] != NULL;
}

// ---- matrix_nms ---------------------------------------------------------------------------------

static Value *area(const Nms *s, Builder *b, Value *const *p, double more)
{
	Value *w = apply2(b, OP_PD_SUBTRACT, p[2], p[0]), *h = apply2(b, OP_PD_SUBTRACT, p[3], p[1]);
	Value *zero = number(s, b, 0), *flat = apply2(b, OP_PD_LESS_THAN, w, zero);
	flat = apply2(b, OP_PD_LOGICAL_OR, flat, apply2(b, OP_PD_LESS_THAN, h, zero));
	w = apply2(b, OP_PD_ADD, w, number(s, b, more));
	return index_where(b, flat, zero,
	                   apply2(b, OP_PD_MULTIPLY, w, apply2(b, OP_PD_ADD, h, number(s, b, more))));
}

// Intersection over union of two boxes of an image.
static Value *overlap(const Nms *s, Builder *b, Value *n, Value *c, Value *i, Value *j)
{
	Value *p[4], *q[4], *side[2], *far = NULL;
	double more = op_bool(s->op, "normalized", true) ? 0 : 1;
	for (int k = 0; k < 4; k++) {
		p[k] = corner(s, b, n, c, i, index_const(b, k));
		q[k] = corner(s, b, n, c, j, index_const(b, k));
	}
	for (int k = 0; k < 2; k++) {
		Value *behind = apply2(b, OP_PD_GREATER_THAN, q[k], p[k + 2]);
		Value *before = apply2(b, OP_PD_LESS_THAN, q[k + 2], p[k]);
		far = far ? apply2(b, OP_PD_LOGICAL_OR, far, behind) : behind;
		far = apply2(b, OP_PD_LOGICAL_OR, far, before);
		side[k] = apply2(b, OP_PD_SUBTRACT, apply2(b, OP_PD_MINIMUM, p[k + 2], q[k + 2]),
		                 apply2(b, OP_PD_MAXIMUM, p[k], q[k]));
		side[k] = apply2(b, OP_PD_ADD, side[k], number(s, b, more));
	}
	Value *both = apply2(b, OP_PD_MULTIPLY, side[0], side[1]);
	Value *either = apply2(b, OP_PD_SUBTRACT,
	                       apply2(b, OP_PD_ADD, area(s, b, p, more), area(s, b, q, more)), both);
	return index_where(b, far, number(s, b, 0), apply2(b, OP_PD_DIVIDE, both, either));
}

// The overlap of the boxes at places i and j of at[0], at[1] (image, class).
static Value *overlap_at(const Nms *s, Builder *b, Chosen r, Value *const *at, Value *i, Value *j)
{
	Value *const p[] = {at[0], at[1], i}, *const q[] = {at[0], at[1], j};
	return overlap(s, b, at[0], at[1], box_at(s, b, r, p), box_at(s, b, r, q));
}

// [N x C x T]: the largest overlap of each box with a better one.
static Value *worst_overlap(Nms *s, Chosen r)
{
	Nest n = nest_open(s->b, tensor3(s, s->t, s->n, s->c, s->top));
	Nest m = reduce_open(&n.b, "max", s->t, 1, &s->top);
	Value *there = is_before(&m.b, n.at[2], r.count, n.at);
	there = there ? pred_and(&m.b, there, index_less(&m.b, m.at[0], n.at[2])) : NULL;
	Value *v = overlap_at(s, &m.b, r, n.at, n.at[2], m.at[0]);
	return nest_close(&n, reduce_close(&m, index_where(&m.b, there, v, number(s, &m.b, 0))));
}

// What an overlap leaves of a score, when the better box has an overlap of `worst` itself.
static Value *decay(const Nms *s, Builder *b, Value *iou, Value *worst)
{
	if (!op_bool(s->op, "use_gaussian", false))
		return apply2(b, OP_PD_DIVIDE, apply2(b, OP_PD_SUBTRACT, number(s, b, 1), iou),
		              apply2(b, OP_PD_SUBTRACT, number(s, b, 1), worst));
	Value *way = apply2(b, OP_PD_SUBTRACT, apply2(b, OP_PD_MULTIPLY, worst, worst),
	                    apply2(b, OP_PD_MULTIPLY, iou, iou));
	Value *sigma = number(s, b, op_float(s->op, "gaussian_sigma", 2));
	return apply1(b, OP_PD_EXP, apply2(b, OP_PD_MULTIPLY, way, sigma));
}

// [N x C * T]: the scores that are left, -inf where a place is empty.
static Value *decayed_scores(Nms *s, Chosen r, Value *worst)
{
	Nest n = nest_open(s->b, tensor2(s, s->t, s->n, s->places));
	Value *at[3] = {n.at[0]};
	const Dim *dims[] = {s->c, s->top};
	index_split(&n.b, n.at[1], 2, dims, at + 1);
	Value *there = is_before(&n.b, at[2], r.count, at);
	Nest m = reduce_open(&n.b, "min", s->t, 1, &s->top);
	Value *better = pred_and(&m.b, there, index_less(&m.b, m.at[0], at[2]));
	Value *left = decay(s, &m.b, overlap_at(s, &m.b, r, at, at[2], m.at[0]),
	                    load(&m.b, worst, (Value *const[]){at[0], at[1], m.at[0]}));
	Value *least = reduce_close(&m, index_where(&m.b, better, left, number(s, &m.b, 1)));
	least = apply2(&n.b, OP_PD_MINIMUM, least, number(s, &n.b, 1));
	Value *score = load(&n.b, s->scores, (Value *const[]){at[0], at[1], box_at(s, &n.b, r, at)});
	score = apply2(&n.b, OP_PD_MULTIPLY, score, least);
	return nest_close(&n,
	                  there ? index_where(&n.b, there, score, number(s, &n.b, -INFINITY)) : NULL);
}

// The best of each image, in order, as positions of places over all images, one behind the other.
static Chosen best_in_order(Nms *s, Chosen best)
{
	const Dim *limit = best.at->type->dims[1];
	Nest n = nest_open(s->b, tensor2(s, DT_BOOL, s->n, limit));
	Chosen rows = select_true(s->b, nest_close(&n, is_before(&n.b, n.at[1], best.count, n.at)));
	if (!rows.at)
		return rows;
	Nest m = nest_open(s->b, rows.at->type);
	const Dim *dims[] = {s->n, limit};
	Value *at[2], *from = index_from_data(&m.b, load(&m.b, rows.at, m.at),
	                                      dim_mul(s->ctx, s->n, limit), false);
	index_split(&m.b, from, 2, dims, at);
	Value *place = index_from_data(&m.b, load(&m.b, best.at, at), s->places, false);
	place = index_add(&m.b, index_mul(&m.b, at[0], index_dim(&m.b, s->places)), place);
	return (Chosen){nest_close(&m, place), rows.count};
}

bool define_hook_matrix_nms(Builder *b, Op *op, Value **results)
{
	Nms s;
	if (!nms_open(&s, b, op))
		return false;
	Chosen r = nms_candidates(&s);
	Value *worst = r.at ? worst_overlap(&s, r) : NULL,
		  *scores = worst ? decayed_scores(&s, r, worst) : NULL;
	Chosen best = nms_best(&s, scores, op_float(op, "post_threshold", 0));
	if (!best.at || !nms_results(&s, best_in_order(&s, best), scores, r, results))
		return false;
	results[2] = best.count;
	return true;
}
