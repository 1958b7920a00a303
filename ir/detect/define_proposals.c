// What generate_proposals and distribute_fpn_proposals mean (ir/ops/detect.yaml).
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/sequence/sequence.h"

#include <math.h>

static const Type *tensor_type(Context *c, DType t, int rank, const Dim *x, const Dim *y,
                               const Dim *z)
{
	const Dim *dims[] = {x, y, z};
	return type_tensor(c, t, rank, dims, 0);
}

// Whether a position is over the row's number in `limits`.
static Value *is_within(Builder *b, Value *position, Value *limits, Value *const *row)
{
	return apply2(b, OP_PD_LESS_THAN, scalar_from_index(b, position, DT_I32), load(b, limits, row));
}

// ---- proposals of one level ---------------------------------------------------------------------

typedef struct Proposals {
	Builder *b;
	const Op *op;
	Context *ctx;
	DType t;
	bool pixels;                      // corners belong to a box
	Value *scores;                    // [N x M]: of every cell and anchor
	Value *deltas, *image;            // [N x 4 A x H x W], [N x 2 or 3]
	Value *anchors, *variances;       // [M x 4]
	const Dim *n, *m, *a, *w, *limit; // limit: how many of an image are looked at
	Value *boxes;                     // [N x limit x 4]
} Proposals;

static bool proposals_open(Proposals *p, Builder *b, const Op *op)
{
	static const int64_t last[] = {0, 2, 3, 1};
	Context *c = b->ctx;
	Value *scores = op_operand(op, 0);
	const Dim *const *d = scores->type->dims, *m = dim_mul(c, dim_mul(c, d[1], d[2]), d[3]);
	const Dim *const flat[] = {d[0], m}, *const table[] = {m, dim_const(c, 4)};
	*p = (Proposals){.b = b,
	                 .op = op,
	                 .ctx = c,
	                 .t = scores->type->dtype,
	                 .n = d[0],
	                 .m = m,
	                 .a = d[1],
	                 .w = d[3]};
	int64_t top = op_int(op, "pre_nms_top_n", 0);
	p->pixels = op_bool(op, "pixel_offset", true);
	p->limit = top > 0 ? dim_min(c, m, dim_const(c, top)) : m;
	p->scores = tensor_reshape(b, tensor_transpose(b, scores, 4, last), 2, flat);
	p->deltas = op_operand(op, 1);
	p->image = op_operand(op, 2);
	p->anchors = tensor_reshape(b, op_operand(op, 3), 2, table);
	p->variances = tensor_reshape(b, op_operand(op, 4), 2, table);
	return p->scores && p->anchors && p->variances;
}

// Size and centre of anchor m on an axis.
static Value *anchor_span(const Proposals *p, Builder *b, Value *m, Value *axis, Value **centre)
{
	Value *low = load(b, p->anchors, (Value *const[]){m, axis});
	Value *high = load(b, p->anchors, (Value *const[]){m, index_plus(b, axis, 2)});
	Value *size = tensor_sub(b, high, low);
	if (p->pixels)
		size = tensor_add(b, size, build_scalar_f(b, p->t, 1));
	*centre = tensor_add(b, low, tensor_mul(b, size, build_scalar_f(b, p->t, 0.5)));
	return size;
}

// Field k of what the network says about anchor m, times its variance.
static Value *delta(const Proposals *p, Builder *b, Value *n, Value *m, Value *k)
{
	Value *anchors = index_dim(b, p->a), *cell = index_div(b, m, anchors),
		  *width = index_dim(b, p->w);
	Value *channel = index_add(b, index_times(b, index_mod(b, m, anchors), 4), k);
	Value *v = load(
		b, p->deltas,
		(Value *const[]){n, channel, index_div(b, cell, width), index_mod(b, cell, width)});
	return tensor_mul(b, load(b, p->variances, (Value *const[]){m, k}), v);
}

// Size of the image on an axis: heights come first.
static Value *image_size(const Proposals *p, Builder *b, Value *n, Value *axis)
{
	return load(b, p->image, (Value *const[]){n, index_sub(b, index_const(b, 1), axis)});
}

// [N x limit x 4]: the boxes meant by the best anchors, within the image.
static Value *proposal_boxes(Proposals *p, Value *order)
{
	Nest n = nest_open(p->b, tensor_type(p->ctx, p->t, 3, p->n, p->limit, dim_const(p->ctx, 4)));
	Builder *b = &n.b;
	Value *m = index_from_data(b, load(b, order, n.at), p->m, false), *two = index_const(b, 2),
		  *centre;
	Value *axis = index_mod(b, n.at[2], two), *far = index_plus(b, axis, 2);
	Value *size = anchor_span(p, b, m, axis, &centre);
	centre = tensor_add(b, tensor_mul(b, delta(p, b, n.at[0], m, axis), size), centre);
	Value *growth = apply2(b, OP_PD_MINIMUM, delta(p, b, n.at[0], m, far),
	                       build_scalar_f(b, p->t, log(1000.0 / 16.0)));
	Value *half = tensor_mul(b, tensor_mul(b, apply1(b, OP_PD_EXP, growth), size),
	                         build_scalar_f(b, p->t, 0.5));
	Value *end = tensor_add(b, centre, half), *last = image_size(p, b, n.at[0], axis);
	if (p->pixels) {
		end = tensor_sub(b, end, build_scalar_f(b, p->t, 1));
		last = tensor_sub(b, last, build_scalar_f(b, p->t, 1));
	}
	Value *v = index_where(b, index_less(b, n.at[2], two), tensor_sub(b, centre, half), end);
	return nest_close(&n, apply2(b, OP_PD_MAXIMUM, apply2(b, OP_PD_MINIMUM, v, last),
	                             build_scalar_f(b, p->t, 0)));
}

// Whether a box is large enough on an axis, and has its centre in the image.
static Value *large_enough(const Proposals *p, Builder *b, Value *const *at, Value *axis)
{
	Value *low = load(b, p->boxes, (Value *const[]){at[0], at[1], axis});
	Value *high = load(b, p->boxes, (Value *const[]){at[0], at[1], index_plus(b, axis, 2)});
	double least = fmax(op_float(p->op, "min_size", 0), 1);
	Value *size = tensor_sub(b, high, low), *one = build_scalar_f(b, p->t, 1);
	if (!p->pixels)
		return apply2(b, OP_PD_GREATER_EQUAL, size, build_scalar_f(b, p->t, least));
	Value *side = tensor_add(b, size, one),
		  *centre = tensor_add(b, low, tensor_mul(b, side, build_scalar_f(b, p->t, 0.5)));
	if (op_bool(p->op, "scaled", false)) { // in pixels of the image before it was scaled
		Value *scale = load(b, p->image, (Value *const[]){at[0], index_const(b, 2)});
		side = tensor_add(b, apply2(b, OP_PD_DIVIDE, size, scale), one);
	}
	Value *inside = apply2(b, OP_PD_LESS_EQUAL, centre, image_size(p, b, at[0], axis));
	Value *fits = apply2(b, OP_PD_GREATER_EQUAL, side, build_scalar_f(b, p->t, least));
	return fits && inside ? pred_and(b, fits, inside) : NULL;
}

// The score of what was looked at; -inf for boxes that do not count.
static Value *proposal_scores(Proposals *p, Value *order)
{
	Nest n = nest_open(p->b, tensor_type(p->ctx, p->t, 2, p->n, p->limit, NULL));
	Value *m = index_from_data(&n.b, load(&n.b, order, n.at), p->m, false);
	Value *x = large_enough(p, &n.b, n.at, index_const(&n.b, 0)),
		  *y = large_enough(p, &n.b, n.at, index_const(&n.b, 1));
	Value *score = load(&n.b, p->scores, (Value *const[]){n.at[0], m});
	Value *fits = x && y ? pred_and(&n.b, x, y) : NULL;
	return nest_close(&n, index_where(&n.b, fits, score, build_scalar_f(&n.b, p->t, -INFINITY)));
}

// The numbers of proposals: at most post_nms_top_n, and one of zeros where there is none.
static Value *proposal_counts(Proposals *p, Value *found, bool limited)
{
	int64_t most = op_int(p->op, "post_nms_top_n", 0);
	Nest n = nest_open(p->b, found->type);
	Value *v = load(&n.b, found, n.at);
	if (limited && most > 0)
		v = apply2(&n.b, OP_PD_MINIMUM, v,
		           build_scalar_f(&n.b, DT_I32, (double)(most < INT32_MAX ? most : INT32_MAX)));
	return nest_close(&n, apply2(&n.b, OP_PD_MAXIMUM, v, build_scalar_f(&n.b, DT_I32, 1)));
}

// Places (image, number) of the rows of the result, one behind the other for all images.
static Value *proposal_places(Proposals *p, Value *counts, const Dim *rows)
{
	Nest n = nest_open(p->b, tensor_type(p->ctx, DT_BOOL, 2, p->n, p->limit, NULL));
	Chosen r = select_true(p->b, nest_close(&n, is_within(&n.b, n.at[1], counts, n.at)));
	return r.at && bind_size(p->b, r.count, rows) ? r.at : NULL;
}

// Result `i`: rows of `from` ([N x limit] or [N x limit x 4]), zeros where an image has none.
static Value *proposal_rows(Proposals *p, int i, Value *places, Chosen kept, Value *from)
{
	const Dim *const dims[] = {p->n, p->limit};
	Nest n = nest_open(p->b, p->op->results[i].type);
	Value *at[3], *place = index_from_data(&n.b, load(&n.b, places, n.at),
	                                       dim_mul(p->ctx, p->n, p->limit), false);
	index_split(&n.b, place, 2, dims, at);
	Value *some = is_within(&n.b, at[1], kept.count, at);
	at[1] = index_from_data(&n.b, load(&n.b, kept.at, at), p->limit, false);
	at[2] = n.at[1];
	return nest_close(&n,
	                  index_where(&n.b, some, load(&n.b, from, at), build_scalar_f(&n.b, p->t, 0)));
}

bool define_hook_generate_proposals(Builder *b, Op *op, Value **results)
{
	Proposals p;
	double none = -INFINITY, threshold = op_float(op, "nms_thresh", 0.5);
	if (!proposals_open(&p, b, op))
		return false;
	Chosen order = select_sorted(b, p.scores, true, NULL, p.limit);
	p.boxes = order.at ? proposal_boxes(&p, order.at) : NULL;
	Value *scores = p.boxes ? proposal_scores(&p, order.at) : NULL;
	Chosen kept = select_sorted(b, scores, true, &none, p.limit);
	if (threshold > 0)
		kept = select_apart(b, p.boxes, kept, threshold, op_float(op, "eta", 1), p.pixels);
	Value *counts = kept.at ? proposal_counts(&p, kept.count, threshold > 0) : NULL;
	Value *places = counts ? proposal_places(&p, counts, op->results[0].type->dims[0]) : NULL;
	if (!places)
		return false;
	results[0] = proposal_rows(&p, 0, places, kept, p.boxes);
	results[1] = proposal_rows(&p, 1, places, kept, scores);
	results[2] = counts;
	results[3] = offsets_of_counts(b, counts);
	return results[0] && results[1] && results[3];
}

// ---- proposals to levels, and back --------------------------------------------------------------

typedef struct Levels {
	Builder *b;
	const Op *op;
	Context *ctx;
	Value *rois, *ends; // ends: the roi behind each image's last, [N]; NULL: one image
	const Dim *r, *n;
	int64_t min, count;
	Value *level;  // [R]: from 0
	Value *passed; // [count x R]: how many of a level there are up to and with each roi
} Levels;

// The level of a roi by its area.
static Value *level_of(const Levels *l, Builder *b, Value *roi)
{
	DType t = l->rois->type->dtype;
	Value *side[2], *zero = build_scalar_f(b, t, 0), *flat = NULL;
	for (int k = 0; k < 2; k++) {
		Value *low = load(b, l->rois, (Value *const[]){roi, index_const(b, k)});
		side[k] = tensor_sub(b, load(b, l->rois, (Value *const[]){roi, index_const(b, k + 2)}),
		                     low);
		Value *negative = apply2(b, OP_PD_LESS_THAN, side[k], zero);
		flat = flat ? apply2(b, OP_PD_LOGICAL_OR, flat, negative) : negative;
		if (op_bool(l->op, "pixel_offset", true))
			side[k] = tensor_add(b, side[k], build_scalar_f(b, t, 1));
	}
	Value *size = apply1(b, OP_PD_SQRT,
	                     index_where(b, flat, zero, tensor_mul(b, side[0], side[1])));
	Value *scale = build_scalar_f(b, t, (double)op_int(l->op, "refer_scale", 224));
	size = tensor_add(b, apply2(b, OP_PD_DIVIDE, size, scale), build_scalar_f(b, t, 1e-6));
	Value *v = tensor_add(b, apply1(b, OP_PD_LOG2, size),
	                      build_scalar_f(b, t, (double)op_int(l->op, "refer_level", 4)));
	v = tensor_sub(b, apply1(b, OP_PD_FLOOR, v), build_scalar_f(b, t, (double)l->min));
	v = apply2(b, OP_PD_MINIMUM, apply2(b, OP_PD_MAXIMUM, v, zero),
	           build_scalar_f(b, t, (double)(l->count - 1)));
	return scalar_cast(b, v, DT_I32);
}

// Paddle takes as many rois as rois_num counts: here these must be all.
static bool check_counted(const Levels *l)
{
	Nest n = nest_open(l->b, type_tensor(l->ctx, DT_BOOL, 0, NULL, 0));
	Value *last = index_plus(&n.b, index_dim(&n.b, l->n), -1),
		  *none = build_scalar_f(&n.b, DT_I64, 0);
	Value *some = apply2(&n.b, OP_PD_GREATER_EQUAL, last, index_const(&n.b, 0));
	Value *all = scalar_from_index(&n.b, index_dim(&n.b, l->r), DT_I64);
	Value *holds = apply2(&n.b, OP_PD_EQUAL, load_or(&n.b, some, none, l->ends, &last), all);
	return build_assert(l->b, nest_close(&n, holds), "rois_num counts other rois than there are");
}

static bool levels_open(Levels *l, Builder *b, const Op *op)
{
	Context *c = b->ctx;
	Value *rois = op_operand(op, 0), *num = op_operand(op, 1), *lod = op_operand(op, 2);
	*l = (Levels){
		.b = b, .op = op, .ctx = c, .rois = rois, .r = rois->type->dims[0], .n = dim_const(c, 1)};
	l->min = op_int(op, "min_level", 2);
	l->count = op_int(op, "max_level", 5) - l->min + 1;
	if (num) {
		l->n = type_numel(c, num->type);
		num = tensor_reshape(b, tensor_cast(b, num, DT_I64), 1, &l->n);
		l->ends = num ? build1(b, OP_PD_CUMSUM, num, "axis", attr_int(c, 0), NULL) : NULL;
	} else if (lod) {
		l->n = dim_sub(c, lod->type->dims[0], dim_const(c, 1));
		Nest n = nest_open(b, type_tensor(c, DT_I64, 1, &l->n, 0));
		Value *next = index_plus(&n.b, n.at[0], 1);
		l->ends = nest_close(&n, load(&n.b, lod, &next));
	}
	Nest n = nest_open(b, type_tensor(c, DT_I32, 1, &l->r, 0));
	l->level = nest_close(&n, level_of(l, &n.b, n.at[0]));
	Nest m = nest_open(b, tensor_type(c, DT_I32, 2, dim_const(c, l->count), l->r, NULL));
	Value *here = scalar_from_index(&m.b, m.at[0], DT_I32);
	Value *hot = nest_close(&m, apply2(&m.b, OP_PD_EQUAL, load(&m.b, l->level, &m.at[1]), here));
	l->passed = hot ? build1(b, OP_PD_CUMSUM, hot, "axis", attr_int(c, 1), NULL) : NULL;
	return l->level && l->passed && (l->ends || !(num || lod)) && (!num || check_counted(l));
}

// How many of level i come before roi `end`.
static Value *passed_before(const Levels *l, Builder *b, Value *i, Value *end)
{
	Value *zero = index_const(b, 0), *last = index_max(b, index_plus(b, end, -1), zero);
	Value *some = apply2(b, OP_PD_GREATER_THAN, end, zero);
	Value *none = build_scalar_f(b, l->passed->type->dtype, 0);
	return load_or(b, some, none, l->passed, (Value *const[]){i, last});
}

// The rois of level i.
static Value *level_rois(const Levels *l, int i, const Type *type)
{
	Nest n = nest_open(l->b, type_tensor(l->ctx, DT_BOOL, 1, &l->r, 0));
	Value *mine = build_scalar_f(&n.b, DT_I32, i);
	Chosen rows = select_true(
		l->b, nest_close(&n, apply2(&n.b, OP_PD_EQUAL, load(&n.b, l->level, n.at), mine)));
	if (!rows.at || !bind_size(l->b, rows.count, type->dims[0]))
		return NULL;
	Nest m = nest_open(l->b, type);
	Value *roi = index_from_data(&m.b, load(&m.b, rows.at, m.at), l->r, false);
	return nest_close(&m, load(&m.b, l->rois, (Value *const[]){roi, m.at[1]}));
}

// The roi behind the last of image `at`.
static Value *image_end(const Levels *l, Builder *b, Value *at)
{
	const Dim *most = dim_add(l->ctx, l->r, dim_const(l->ctx, 1));
	return l->ends ? index_from_data(b, load(b, l->ends, &at), most, false) : index_dim(b, l->r);
}

// How many rois of level i each image has.
static Value *level_counts(const Levels *l, int i, const Type *type)
{
	Nest n = nest_open(l->b, type);
	Value *zero = index_const(&n.b, 0),
		  *before = index_max(&n.b, index_plus(&n.b, n.at[0], -1), zero);
	Value *first = index_where(&n.b, index_equal(&n.b, n.at[0], zero), zero,
	                           image_end(l, &n.b, before));
	Value *level = index_const(&n.b, i), *end = image_end(l, &n.b, n.at[0]);
	return nest_close(&n, tensor_sub(&n.b, passed_before(l, &n.b, level, end),
	                                 passed_before(l, &n.b, level, first)));
}

// Where each roi is among those of all levels, one level behind the other.
static Value *restore_index(const Levels *l, const Type *type)
{
	Nest n = nest_open(l->b, type);
	Builder *b = &n.b;
	const Dim *count = dim_const(l->ctx, l->count);
	Value *mine = index_from_data(b, load(b, l->level, n.at), count, false);
	Nest r = reduce_open(b, "sum", l->passed->type->dtype, 1, &count);
	Value *all = passed_before(l, &r.b, r.at[0], index_dim(&r.b, l->r)),
		  *none = build_scalar_f(&r.b, l->passed->type->dtype, 0);
	Value *before = reduce_close(&r, index_where(&r.b, index_less(&r.b, r.at[0], mine), all, none));
	return nest_close(&n, tensor_add(b, before, passed_before(l, b, mine, n.at[0])));
}

static Value *combine(Builder *b, int n, Value *const *values)
{
	for (int i = 0; i < n; i++)
		if (!values[i])
			return NULL;
	return build(b, OP_BUILTIN_COMBINE, n, values, NULL);
}

bool define_hook_distribute_fpn_proposals(Builder *b, Op *op, Value **results)
{
	Levels l;
	if (!levels_open(&l, b, op))
		return false;
	Value **rois = NEW_ARRAY(b->ctx->arena, 3 * (size_t)l.count, Value *),
		  **counts = rois + l.count;
	Value **lods = counts + l.count;
	for (int i = 0; i < l.count; i++) {
		rois[i] = level_rois(&l, i, op->results[0].type->elems[i]);
		counts[i] = level_counts(&l, i, op->results[1].type->elems[i]);
		lods[i] = offsets_of_counts(b, counts[i]);
	}
	results[0] = combine(b, (int)l.count, rois);
	results[1] = combine(b, (int)l.count, counts);
	results[2] = restore_index(&l, op->results[2].type);
	results[3] = combine(b, (int)l.count, lods);
	return results[0] && results[1] && results[2] && results[3];
}
