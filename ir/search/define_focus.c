// Where slices of a tensor are largest, row by row and column by column (similarity_focus of
// ir/ops/search.yaml).
#include "ir/build/counted.h"
#include "ir/search/search.h"

#include <math.h>
#include <string.h>

// x [N x .. x ..] with the axis that slices are taken along, and the two others.
typedef struct Focus {
	Value *x;
	int axis, row, column;
	const Attr *indexes;
} Focus;

// The slices at the positions that are asked for, [N x K x R x C].
static Value *slices_of(Builder *b, const Focus *f)
{
	const Type *t = f->x->type;
	Value *parts[64];
	const Dim *one = dim_const(b->ctx, 1);
	const Dim *dims[] = {t->dims[0], one, t->dims[f->row], t->dims[f->column]};
	for (int k = 0; k < f->indexes->n; k++) {
		Nest n = nest_open(b, type_tensor(b->ctx, t->dtype, 4, dims, 0));
		Value *at[4] = {n.at[0]};
		at[f->axis] = index_from_data(&n.b,
		                              build_scalar_f(&n.b, DT_I64, (double)f->indexes->ints[k]),
		                              t->dims[f->axis], false);
		at[f->row] = n.at[2];
		at[f->column] = n.at[3];
		parts[k] = nest_close(&n, load(&n.b, f->x, at));
	}
	return tensor_concat(b, f->indexes->n, parts, 1);
}

// As many rounds as there are rows, or columns.
static Value *rounds_of(Builder *b, const Type *slices)
{
	const Dim *one = dim_const(b->ctx, 1);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &one, 0));
	Value *least = index_min(&n.b, index_dim(&n.b, slices->dims[2]),
	                         index_dim(&n.b, slices->dims[3]));
	return nest_close(&n, scalar_from_index(&n.b, least, DT_I64));
}

// The linear place of the first of the largest elements of each slice that is not `used`, i64
// [N x K]; of the first one that is not, where none is above -inf.
static Value *largest_left(Builder *b, Value *slices, Value *used)
{
	const Type *t = slices->type;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 2, t->dims, 0));
	Value *place[2], *at[4] = {n.at[0], n.at[1]};
	for (int k = 0; k < 2; k++) {
		const Dim *all = dim_mul(b->ctx, t->dims[2], t->dims[3]);
		Nest r = reduce_open(&n.b, "argmax", DT_I64, 1, &all);
		index_split(&r.b, r.at[0], 2, &t->dims[2], &at[2]);
		Value *gone = load(&r.b, used, at), *none = build_scalar_f(&r.b, t->dtype, -INFINITY);
		Value *left = scalar_cast(&r.b, apply1(&r.b, OP_PD_LOGICAL_NOT, gone), DT_I32);
		place[k] = reduce_close(&r,
		                        k ? left : index_where(&r.b, gone, none, load(&r.b, slices, at)));
	}
	Value *linear = index_from_data(&n.b, place[0], dim_mul(b->ctx, t->dims[2], t->dims[3]), false);
	index_split(&n.b, linear, 2, &t->dims[2], &at[2]);
	return nest_close(&n, index_where(&n.b, load(&n.b, used, at), place[1], place[0]));
}

// One more place of each slice; args and next: those found, and those that share a row or a column
// with one.
static bool focus_step(Builder *b, Value *slices, Value *const *args, Value **next)
{
	const Type *t = slices->type;
	Value *best = largest_left(b, slices, args[1]);
	if (!best)
		return false;
	const Type *types[] = {args[0]->type, args[1]->type};
	Nest n = nest_open_several(b, 2, types);
	Value *place[2], *linear = index_from_data(&n.b, load(&n.b, best, n.at),
	                                           dim_mul(b->ctx, t->dims[2], t->dims[3]), false);
	index_split(&n.b, linear, 2, &t->dims[2], place);
	Value *row = index_equal(&n.b, n.at[2], place[0]),
		  *column = index_equal(&n.b, n.at[3], place[1]);
	Value *either = apply2(&n.b, OP_PD_LOGICAL_OR, row, column);
	Value *const elements[] = {
		apply2(&n.b, OP_PD_LOGICAL_OR, load(&n.b, args[0], n.at), pred_and(&n.b, row, column)),
		apply2(&n.b, OP_PD_LOGICAL_OR, load(&n.b, args[1], n.at), either)};
	return nest_close_several(&n, elements, next);
}

static bool focus_open(Focus *f, Op *op)
{
	const Type *t = infer_rank(op, 0, 4);
	const int64_t axis = op_int(op, "axis", 0);
	*f = (Focus){op_operand(op, 0), (int)axis, axis == 1 ? 2 : 1, axis == 3 ? 2 : 3,
	             op_attr(op, "indexes")};
	if (!t)
		return false;
	if (axis < 1 || axis > 3 || f->indexes->n < 1 || f->indexes->n > 64)
		return op_error(op, "%d slices along axis %lld", f->indexes->n, (long long)axis);
	for (int k = 0; k < f->indexes->n; k++)
		if (f->indexes->ints[k] < 0 ||
		    (dim_is_const(t->dims[axis]) && f->indexes->ints[k] >= t->dims[axis]->value))
			return op_error(op, "slice %lld", (long long)f->indexes->ints[k]);
	return true;
}

// 1 where any of the slices has one of its places, at all positions of the axis.
static Value *places_spread(Builder *b, const Focus *f, Value *places)
{
	Nest n = nest_open(b, f->x->type);
	Nest r = reduce_open(&n.b, "any", DT_BOOL, 1, &places->type->dims[1]);
	Value *at[] = {n.at[0], r.at[0], n.at[f->row], n.at[f->column]};
	return nest_close(&n, reduce_close(&r, load(&r.b, places, at)));
}

bool define_hook_similarity_focus(Builder *b, Op *op, Value **results)
{
	Focus f;
	Value *next[2], *slices = focus_open(&f, op) ? slices_of(b, &f) : NULL;
	CountedLoop l;
	if (!slices)
		return false;
	const Type *flags = type_like(b->ctx, slices->type, DT_BOOL);
	Value *rounds = rounds_of(b, slices->type);
	Value *const inits[] = {build_full(b, flags, 0), build_full(b, flags, 0)};
	if (!rounds || !inits[0] || !inits[1] || !count_begin(&l, b, rounds, false, 2, inits) ||
	    !focus_step(&l.b, slices, l.args, next) || !count_end(&l, next))
		return false;
	results[0] = places_spread(b, &f, count_result(&l, 0));
	return results[0] != NULL;
}
