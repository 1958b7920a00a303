// Boxes within their images, rows matched with columns, and the best proposals of several levels
// (ir/ops/detect.yaml).
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/infer/infer.h"
#include "ir/sequence/sequence.h"

#include <math.h>
#include <string.h>

static const Type *pair_type(Builder *b, DType t, const Dim *x, const Dim *y)
{
	const Dim *dims[] = {x, y};
	return type_tensor(b->ctx, t, 2, dims, 0);
}

// ---- box_clip -----------------------------------------------------------------------------------

bool define_hook_box_clip(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0), *info = t ? infer_rank(op, 1, 2) : NULL;
	Value *lod = op_operand(op, 2);
	const Dim *same, *one = dim_const(b->ctx, 1);
	if (!info ||
	    !infer_same_dim(op, info->dims[0], lod ? sequence_count(b->ctx, lod) : one,
	                    "numbers of images", &same) ||
	    !infer_same_dim(op, info->dims[1], dim_const(b->ctx, 3), "columns of im_info and 3", &same))
		return false;
	const Dim *rows = t->dims[0];
	Value *image = NULL;
	if (lod) {
		Nest m = nest_open(b, type_tensor(b->ctx, DT_I32, 1, &rows, 0));
		image = nest_close(&m, sequence_of_row(&m.b, lod, m.at[0]));
	}
	Nest n = nest_open(b, t);
	Value *i = index_const(&n.b, 0), *zero = build_scalar_f(&n.b, t->dtype, 0);
	if (lod)
		i = image ? index_from_data(&n.b, load(&n.b, image, n.at), info->dims[0], false) : NULL;
	Value *odd = index_mod(&n.b, n.at[t->rank - 1], index_const(&n.b, 2));
	Value *size[] = {i, index_sub(&n.b, index_const(&n.b, 1), odd)},
		  *scale[] = {i, index_const(&n.b, 2)};
	Value *limit = i ? tensor_div(&n.b, load(&n.b, op_operand(op, 1), size),
	                              load(&n.b, op_operand(op, 1), scale))
	                 : NULL;
	limit = tensor_sub(&n.b, apply1(&n.b, OP_PD_ROUND, limit), build_scalar_f(&n.b, t->dtype, 1));
	Value *low = apply2(&n.b, OP_PD_MINIMUM, load(&n.b, op_operand(op, 0), n.at), limit);
	results[0] = nest_close(&n, apply2(&n.b, OP_PD_MAXIMUM, low, zero));
	return results[0] != NULL;
}

// ---- bipartite_match ----------------------------------------------------------------------------

// Distances [R x C], whose rows are those of several images.
typedef struct Match {
	Value *dist, *lod; // lod: NULL, one image
	const Dim *images, *rows, *columns;
	DType t;
	double threshold; // of what is matched with anything; below 0: nothing is
} Match;

static Value *first_row(Builder *b, const Match *m, Value *image)
{
	return m->lod ? sequence_start(b, m->lod, image, m->rows) : index_const(b, 0);
}

static Value *row_count(Builder *b, const Match *m, Value *image)
{
	return m->lod ? sequence_length(b, m->lod, image, m->rows) : index_dim(b, m->rows);
}

// Whether a distance counts: Paddle has two ways for few and for many rows.
static Value *counts(Builder *b, const Match *m, Value *v, Value *rows)
{
	Value *many = index_less(b, index_const(b, 129), rows);
	Value *some = apply2(b, OP_PD_GREATER_THAN, v, build_scalar_f(b, m->t, 0));
	Value *enough = apply2(b, OP_PD_GREATER_EQUAL, v, build_scalar_f(b, m->t, 1e-6));
	return index_where(b, many, some, enough);
}

// The largest distance of what is not matched yet in each image: its place column * rows + row.
// `found`: matches i32 [images x C]; `used`: bool [R].
static Value *largest_open(Builder *b, const Match *m, Value *found, Value *used)
{
	const Dim *all = dim_mul(b->ctx, m->rows, m->columns);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &m->images, 0));
	Value *first = first_row(&n.b, m, n.at[0]), *rows = row_count(&n.b, m, n.at[0]);
	Nest r = reduce_open_counted(&n.b, "argmax", DT_I64, all,
	                             index_mul(&n.b, rows, index_dim(&n.b, m->columns)));
	Value *safe = index_max(&r.b, rows, index_const(&r.b, 1));
	Value *column = index_div(&r.b, r.at[0], safe),
		  *row = index_add(&r.b, first, index_mod(&r.b, r.at[0], safe));
	row = index_min(&r.b, row, index_plus(&r.b, index_dim(&r.b, m->rows), -1));
	column = index_min(&r.b, column, index_plus(&r.b, index_dim(&r.b, m->columns), -1));
	Value *at[] = {row, column}, *own[] = {n.at[0], column}, *v = load(&r.b, m->dist, at);
	Value *open = apply2(&r.b, OP_PD_LESS_THAN, load(&r.b, found, own),
	                     build_scalar_f(&r.b, DT_I32, 0));
	Value *free_row = apply1(&r.b, OP_PD_LOGICAL_NOT, load(&r.b, used, &row));
	Value *good = pred_and(&r.b, pred_and(&r.b, open, free_row), counts(&r.b, m, v, rows));
	return nest_close(
		&n, reduce_close(&r, index_where(&r.b, good, v, build_scalar_f(&r.b, m->t, -INFINITY))));
}

// Row and column of the best place of an image, and whether that is a match.
typedef struct Place {
	Value *row, *column, *good;
} Place;

static Place place_of(Builder *b, const Match *m, Value *image, Value *best, Value *found,
                      Value *used)
{
	const Dim *all = dim_mul(b->ctx, m->rows, m->columns);
	Value *rows = row_count(b, m, image), *zero = index_const(b, 0), *one = index_const(b, 1);
	Value *some = index_less(b, zero, rows);
	Value *at = load(b, best, &image);
	at = index_where(b, some, at, build_scalar_f(b, DT_I64, 0));
	Value *linear = index_from_data(b, at, all, false), *safe = index_max(b, rows, one);
	Value *column = index_div(b, linear, safe), *local = index_mod(b, linear, safe);
	Value *row = index_add(b, first_row(b, m, image), local);
	row = index_min(b, row, index_plus(b, index_dim(b, m->rows), -1));
	column = index_min(b, column, index_plus(b, index_dim(b, m->columns), -1));
	Value *from[] = {row, column}, *own[] = {image, column};
	Value *good = counts(b, m, load(b, m->dist, from), rows);
	Value *open = apply2(b, OP_PD_LESS_THAN, load(b, found, own), build_scalar_f(b, DT_I32, 0));
	good = pred_and(b, good, open);
	good = pred_and(b, good, apply1(b, OP_PD_LOGICAL_NOT, load(b, used, &row)));
	return (Place){row, column, pred_and(b, good, some)};
}

// One more match in each image; next: found, used.
static bool match_step(Builder *b, const Match *m, Value *const *args, Value **next)
{
	Value *best = largest_open(b, m, args[0], args[1]);
	if (!best)
		return false;
	Nest n = nest_open(b, args[0]->type);
	Place p = place_of(&n.b, m, n.at[0], best, args[0], args[1]);
	Value *row = scalar_from_index(&n.b, index_sub(&n.b, p.row, first_row(&n.b, m, n.at[0])),
	                               DT_I32);
	Value *here = pred_and(&n.b, p.good, index_equal(&n.b, p.column, n.at[1]));
	next[0] = nest_close(&n, index_where(&n.b, here, row, load(&n.b, args[0], n.at)));
	Nest u = nest_open(b, args[1]->type);
	Nest r = reduce_open(&u.b, "any", DT_BOOL, 1, &m->images);
	p = place_of(&r.b, m, r.at[0], best, args[0], args[1]);
	Value *taken = reduce_close(&r, pred_and(&r.b, p.good, index_equal(&r.b, p.row, u.at[0])));
	next[1] = nest_close(&u, apply2(&u.b, OP_PD_LOGICAL_OR, taken, load(&u.b, args[1], u.at)));
	return next[0] && next[1];
}

// As many rounds as the image with most rows has, or as there are columns.
static Value *match_rounds(Builder *b, const Match *m)
{
	const Dim *one = dim_const(b->ctx, 1);
	Value *longest = m->lod ? longest_sequence(b, m->lod, m->rows) : NULL;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &one, 0));
	Value *rows = m->lod ? load_scalar(&n.b, longest)
	                     : scalar_from_index(&n.b, index_dim(&n.b, m->rows), DT_I64);
	Value *columns = scalar_from_index(&n.b, index_dim(&n.b, m->columns), DT_I64);
	return nest_close(&n, apply2(&n.b, OP_PD_MINIMUM, rows, columns));
}

// What the columns without a match have most in common with, from the threshold on.
static Value *match_others(Builder *b, const Match *m, Value *found)
{
	Nest n = nest_open(b, found->type);
	Value *first = first_row(&n.b, m, n.at[0]), *rows = row_count(&n.b, m, n.at[0]);
	Nest r = reduce_open_counted(&n.b, "argmax", DT_I64, m->rows, rows);
	Value *row = index_add(&r.b, first, r.at[0]), *at[] = {row, n.at[1]};
	Value *v = load(&r.b, m->dist, at), *none = build_scalar_f(&r.b, m->t, -INFINITY);
	Value *good = apply2(&r.b, OP_PD_GREATER_EQUAL, v,
	                     build_scalar_f(&r.b, m->t, fmax(m->threshold, 1e-6)));
	Value *best = reduce_close(&r, index_where(&r.b, good, v, none));
	Value *some = index_less(&n.b, index_const(&n.b, 0), rows);
	best = index_where(&n.b, some, best, build_scalar_f(&n.b, DT_I64, 0));
	Value *place = index_add(&n.b, first, index_from_data(&n.b, best, m->rows, false));
	place = index_min(&n.b, place, index_plus(&n.b, index_dim(&n.b, m->rows), -1));
	Value *from[] = {place, n.at[1]}, *had = load(&n.b, found, n.at),
		  *zero = build_scalar_f(&n.b, DT_I32, 0);
	Value *near = apply2(&n.b, OP_PD_GREATER_EQUAL, load(&n.b, m->dist, from),
	                     build_scalar_f(&n.b, m->t, fmax(m->threshold, 1e-6)));
	Value *open = pred_and(&n.b, some, apply2(&n.b, OP_PD_LESS_THAN, had, zero));
	return nest_close(
		&n, index_where(&n.b, pred_and(&n.b, open, near), scalar_cast(&n.b, best, DT_I32), had));
}

static Value *match_distances(Builder *b, const Match *m, Value *found)
{
	Nest n = nest_open(b, pair_type(b, m->t, m->images, m->columns));
	Value *row = load(&n.b, found, n.at), *zero = build_scalar_f(&n.b, DT_I32, 0);
	Value *some = apply2(&n.b, OP_PD_GREATER_EQUAL, row, zero);
	Value *local = index_from_data(&n.b, index_where(&n.b, some, row, zero), m->rows, false);
	Value *at[] = {index_add(&n.b, first_row(&n.b, m, n.at[0]), local), n.at[1]};
	return nest_close(&n, load_or(&n.b, some, build_scalar_f(&n.b, m->t, 0), m->dist, at));
}

bool define_hook_bipartite_match(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 2);
	const bool others = op_enum(op, "match_type") == MATCH_PER_PREDICTION;
	CountedLoop l;
	if (!t)
		return false;
	Match m = {op_operand(op, 0), op_operand(op, 1), dim_const(b->ctx, 1),           t->dims[0],
	           t->dims[1],        t->dtype,          op_number(op, "dist_threshold")};
	m.images = m.lod ? sequence_count(b->ctx, m.lod) : m.images;
	Value *rounds = match_rounds(b, &m);
	Value *const inits[] = {build_full(b, pair_type(b, DT_I32, m.images, m.columns), -1),
	                        build_full(b, type_tensor(b->ctx, DT_BOOL, 1, &m.rows, 0), 0)};
	Value *next[2];
	if (!rounds || !inits[0] || !inits[1] || !count_begin(&l, b, rounds, false, 2, inits) ||
	    !match_step(&l.b, &m, l.args, next) || !count_end(&l, next))
		return false;
	results[0] = count_result(&l, 0);
	if (others)
		results[0] = match_others(b, &m, results[0]);
	results[1] = results[0] ? match_distances(b, &m, results[0]) : NULL;
	return results[1] != NULL;
}

// ---- collect_fpn_proposals ----------------------------------------------------------------------

// Which image each row of all levels belongs to, i32 [R].
static Value *images_of_levels(Builder *b, const Op *op, Value *nums, Value *lods)
{
	Value *rois = op_operand(op, 0), *const * list, **parts;
	int n = op_operand_list(op, 0, &list);
	parts = NEW_ARRAY(b->ctx->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		Value *of = nums ? nums : lods;
		Value *lod = build1(b, OP_BUILTIN_SLICE, of, "index", attr_int(b->ctx, i), NULL);
		if (lod && nums) {
			const Dim *images = type_numel(b->ctx, lod->type);
			lod = offsets_of_counts(b, tensor_reshape(b, lod, 1, &images));
		}
		const Dim *rows = rois->type->elems[i]->dims[0];
		if (!lod)
			return NULL;
		Nest m = nest_open(b, type_tensor(b->ctx, DT_I32, 1, &rows, 0));
		parts[i] = nest_close(&m, sequence_of_row(&m.b, lod, m.at[0]));
		if (!parts[i])
			return NULL;
	}
	return tensor_concat(b, n, parts, 0);
}

// How many of the chosen rows each image has.
static Value *image_counts(Builder *b, Value *images, const Dim *count)
{
	const Dim *rows = images->type->dims[0];
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I32, 1, &count, 0));
	Value *mine = scalar_from_index(&n.b, n.at[0], DT_I32);
	Nest r = reduce_open(&n.b, "sum", DT_I32, 1, &rows);
	Value *here = apply2(&r.b, OP_PD_EQUAL, load(&r.b, images, r.at), mine);
	return nest_close(&n, reduce_close(&r, scalar_cast(&r.b, here, DT_I32)));
}

static Value *rows_in_order(Builder *b, Value *x, Value *order)
{
	if (!x || !order)
		return NULL;
	const Dim *dims[2] = {order->type->dims[0]};
	if (x->type->rank == 2)
		dims[1] = x->type->dims[1];
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, x->type->rank, dims, 0));
	Value *at[] = {index_from_data(&n.b, load(&n.b, order, n.at), x->type->dims[0], false),
	               x->type->rank == 2 ? n.at[1] : NULL};
	return nest_close(&n, load(&n.b, x, at));
}

// The positions of the largest, of equal ones the last first, as Paddle has them.
static Value *latest_best(Builder *b, Value *scores, const Dim *limit)
{
	if (!scores)
		return NULL;
	const Dim *all = scores->type->dims[0];
	Nest r = nest_open(b, scores->type);
	Value *last = index_plus(&r.b, index_dim(&r.b, all), -1),
		  *from = index_sub(&r.b, last, r.at[0]);
	Chosen best = select_sorted(b, nest_close(&r, load(&r.b, scores, &from)), true, NULL, limit);
	if (!best.at)
		return NULL;
	Nest n = nest_open(b, best.at->type);
	Value *at = index_from_data(&n.b, load(&n.b, best.at, n.at), all, false);
	last = index_plus(&n.b, index_dim(&n.b, all), -1);
	return nest_close(&n, scalar_from_index(&n.b, index_sub(&n.b, last, at), DT_I32));
}

bool define_hook_collect_fpn_proposals(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *nums = op_operand(op, 2), *lods = op_operand(op, 3);
	int64_t most = op_int(op, "post_nms_top_n", 0);
	if (most < 1 || (!nums && !lods))
		return op_error(op, "nothing says whose the proposals are, or none is wanted");
	const Type *first = (nums ? nums : lods)->type->elems[0];
	const Dim *images = nums ? type_numel(c, first) : dim_sub(c, first->dims[0], dim_const(c, 1));
	Value *rois = build1(b, OP_PD_CONCAT, op_operand(op, 0), "axis", attr_int(c, 0), NULL);
	Value *scores = build1(b, OP_PD_CONCAT, op_operand(op, 1), "axis", attr_int(c, 0), NULL);
	Value *owners = images_of_levels(b, op, nums, lods);
	if (!rois || !scores || !owners)
		return false;
	const Dim *numel = type_numel(c, scores->type), *same;
	if (!infer_same_dim(op, rois->type->dims[0], numel, "numbers of rois and scores", &same))
		return false;
	const Dim *limit = dim_min(c, numel, dim_const(c, most));
	Value *best = latest_best(b, tensor_reshape(b, scores, 1, &numel), limit);
	Value *chosen = rows_in_order(b, owners, best);
	Chosen order = select_sorted(b, chosen, false, NULL, limit);
	results[0] = rows_in_order(b, rows_in_order(b, rois, best), order.at);
	results[1] = chosen ? image_counts(b, chosen, images) : NULL;
	results[2] = results[1] ? offsets_of_counts(b, results[1]) : NULL;
	return results[0] && results[2];
}
