// Assignment to a slice (set_value): a nest over the whole tensor that takes each element from the
// value, where a step of the slice reaches it, or from what was there.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

// The number of the step that reaches position `at` of axis d, and whether one does.
static Value *extent_step(Builder *b, const Extent *e, int d, const Dim *size, Value *at,
                          Value **pred)
{
	int64_t step = e->step[d] < 0 ? -e->step[d] : e->step[d];
	if (step == 1 && !e->stride[d] && e->step[d] > 0 && dim_is(e->start[d], 0) &&
	    e->count[d] == size)
		return at;
	Value *start = index_dim(b, e->start[d]);
	Value *way = e->step[d] < 0 ? index_sub(b, start, at) : index_sub(b, at, start);
	Value *number = way;
	if (step > 1 || e->stride[d]) {
		Value *safe = index_max(b, way, index_const(b, 0));
		Value *by = e->stride[d] ? index_dim(b, e->stride[d]) : index_const(b, step);
		Value *rest = index_mod(b, safe, by);
		*pred = pred_and(b, *pred, index_equal(b, rest, index_const(b, 0)));
		number = index_div(b, safe, by);
		*pred = pred_and(b, *pred, index_less(b, index_const(b, -1), way));
		*pred = pred_and(b, *pred, index_less(b, number, index_dim(b, e->count[d])));
		return number;
	}
	*pred = pred_and(b, *pred, index_inside(b, number, e->count[d]));
	return number;
}

// The constant that a set_value without a value operand assigns.
static Value *set_value_constant(Builder *b, const Op *op)
{
	const Attr *values = op_attr(op, "values");
	int64_t shape[MAX_RANK];
	int rank = op_ints(op, "shape", shape, MAX_RANK);
	int count = values ? values->n : 0;
	if (rank < 0 || count == 1)
		rank = 0;
	// Counted before memory is asked for: the shape may claim anything.
	int64_t left = count;
	for (int d = 0; d < rank; d++)
		left = shape[d] > 0 && left % shape[d] == 0 ? left / shape[d] : 0;
	Tensor *t = left == 1 ? tensor_new(b->ctx->arena, op_operand(op, 0)->type->dtype, rank, shape)
	                      : NULL;
	if (!t) {
		diag_error(b->ctx->diag, op->loc,
		           "'set_value' has %d values, which its shape does not hold", count);
		return NULL;
	}
	for (int i = 0; i < count; i++)
		tensor_set_f(t, i, values->floats[i]);
	return build_constant(b, t);
}

// The axes of the slice that a value is assigned to: those of x that are not dropped, and -1 for
// new ones, each of which stands in front of an axis of x, or behind all.
static int assigned_axes(const Op *op, const Extent *e, int *axes)
{
	int64_t fresh[MAX_RANK];
	const int n = op_ints(op, "none_axes", fresh, MAX_RANK);
	int rank = 0, next = 0;
	for (int d = 0; d < op_operand(op, 0)->type->rank; d++) {
		for (; next < n && fresh[next] <= d; next++)
			axes[rank++] = -1;
		if (!e->dropped[d])
			axes[rank++] = d;
	}
	for (; next < n; next++)
		axes[rank++] = -1;
	return rank;
}

// The value of a set_value in the sizes of the slice, where only a run tells whether they go
// together.
static Value *spread_over_slice(Builder *b, const Op *op, const Extent *e, Value *value)
{
	const Dim *dims[MAX_RANK];
	int axes[2 * MAX_RANK];
	const int rank = assigned_axes(op, e, axes), n = value->type->rank;
	for (int d = 0; d < n; d++) {
		int at = rank - n + d;
		dims[d] = value->type->dims[d];
		if (at >= 0 && !dim_is(dims[d], 1))
			dims[d] = axes[at] < 0 ? dim_const(b->ctx, 1) : e->count[axes[at]];
	}
	return tensor_spread(b, value, n, dims);
}

bool define_hook_set_value(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *value = op_operand(op, 1), *inside = NULL;
	Extent e;
	if (!extent_of_slice(op, &e) || (!value && !(value = set_value_constant(b, op))) ||
	    !(value = spread_over_slice(b, op, &e, value)))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *number[MAX_RANK], *from[MAX_RANK];
	int axes[2 * MAX_RANK];
	const int rank = assigned_axes(op, &e, axes);
	for (int d = 0; d < x->type->rank; d++)
		number[d] = extent_step(&n.b, &e, d, x->type->dims[d], n.at[d], &inside);
	for (int d = 0; d < value->type->rank; d++) {
		int at = rank - value->type->rank + d;
		bool one = dim_is(value->type->dims[d], 1) || at < 0 || axes[at] < 0;
		from[d] = one ? index_const(&n.b, 0) : number[axes[at]];
	}
	DType t = value->type->dtype;
	Value *old = load(&n.b, x, n.at);
	Value *element = load_or(&n.b, inside, inside ? scalar_cast(&n.b, old, t) : NULL, value, from);
	// A value of another type must not round the elements that stay: choose after the cast.
	if (inside && t != x->type->dtype)
		element = index_where(&n.b, inside, scalar_cast(&n.b, element, x->type->dtype), old);
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}
