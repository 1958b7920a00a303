// Gradients of operations on tensor arrays. The gradient of an array is an array of the same type
// with an element for each of its elements at least (further ones, which nobody asks for, may
// follow): zeros until something comes in.
#include "ir/build/counted.h"
#include "ir/gradient/gradient.h"
#include "ir/gradient/gradient_sizes.h"

#include <string.h>

// What comes in for operand 0, an array, from now on; it has been used up where it changed.
static bool array_becomes(GradientJob *g, Value *dv)
{
	Value *array = op_operand(g->op, 0);
	duals_clear(g->duals, array);
	return dv && duals_add(g->b, g->duals, array, dv);
}

// What has come in for operand 0 so far, or zeros.
static Value *array_so_far(GradientJob *g)
{
	Value *array = op_operand(g->op, 0), *dv = duals_get(g->b, g->duals, array);
	return dv ? dv : gradient_zero_array(g->b, array);
}

// ---- the operations -----------------------------------------------------------------------------

// Element i is new: what comes in for it belongs to x, and nothing of it to the array before.
bool gradient_hook_array_write(GradientJob *g)
{
	Value *d = gradient_of(g, 0), *at = op_operand(g->op, 1),
		  *dx = d ? gradient_array_read(g->b, d, at) : NULL, *x = op_operand(g->op, 2);
	if (!dx)
		return false;
	if (gradient_wants(g, 0)) {
		Value *zero = gradient_zeros_of(g->b, dx), *rest = d;
		if (!duals_how(g->duals)->overwrite)
			rest = zero ? gradient_array_write(g->b, d, at, zero) : NULL;
		if (!rest || !duals_add(g->b, g->duals, op_operand(g->op, 0), rest))
			return false;
	}
	if (!gradient_wants(g, 2))
		return true;
	if (dx->type->rank == x->type->rank)
		dx = value_as(g->b, dx, x->type);
	return dx && gradient_give(g, 2, dx);
}

bool gradient_hook_array_read(GradientJob *g)
{
	Value *dx = gradient_of(g, 0), *at = op_operand(g->op, 1), *d = array_so_far(g),
		  *have = d && dx ? value_as(g->b, gradient_array_read(g->b, d, at), dx->type) : NULL,
		  *sum = have ? tensor_add(g->b, have, dx) : NULL;
	if (duals_how(g->duals)->overwrite)
		sum = dx;
	return sum && array_becomes(g, gradient_array_write(g->b, d, at, sum));
}

bool gradient_hook_array_slice(GradientJob *g)
{
	Builder *b = g->b;
	Value *dout = gradient_of(g, 0), *array = op_operand(g->op, 0), *start = op_operand(g->op, 1),
		  *d = array_so_far(g), *zero = build_number(b, DT_I64, 1, 0),
		  *length = gradient_array_length(b, array);
	CountedLoop l;
	start = tensor_reshape(b, tensor_cast(b, start, DT_I64), 1, zero->type->dims);
	Value *wraps = start && length ? build2(b, OP_PD_LESS_THAN, start, zero, NULL) : NULL;
	Value *const operands[] = {wraps, wraps ? tensor_add(b, start, length) : NULL, start};
	Value *first = operands[1] ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
	if (!first || !d ||
	    !count_begin(&l, b, gradient_array_length(b, op_result(g->op, 0)), false, 1, &d))
		return false;
	Value *at = tensor_add(&l.b, first, l.at), *have = gradient_array_read(&l.b, l.args[0], at),
		  *dx = have ? value_as(&l.b, gradient_array_read(&l.b, dout, l.at), have->type) : NULL,
		  *sum = dx ? tensor_add(&l.b, have, dx) : NULL;
	return array_becomes(
		g, gradient_array_end(&l, sum ? gradient_array_write(&l.b, l.args[0], at, sum) : NULL));
}

// The part of d that element `e` (only its sizes count) at `position` became, which is a position
// along the axis: a number of its own with `stack`, else where it begins.
static Value *part_of(Builder *b, Value *d, const Type *e, int axis, bool stack, Value *position)
{
	Nest n = nest_open(b, e);
	Value *at[MAX_RANK], *zero = index_const(&n.b, 0), *data = load(&n.b, position, &zero);
	if (stack) {
		memcpy(at, n.at, sizeof *at * (size_t)axis);
		memcpy(at + axis + 1, n.at + axis, sizeof *at * (size_t)(e->rank - axis));
		at[axis] = index_from_data(&n.b, data, d->type->dims[axis], false);
	} else {
		memcpy(at, n.at, sizeof *at * (size_t)e->rank);
		at[axis] = index_add(&n.b, index_from_data(&n.b, data, d->type->dims[axis], false),
		                     n.at[axis]);
	}
	return nest_close(&n, load(&n.b, d, at));
}

bool gradient_hook_array_to_tensor(GradientJob *g)
{
	Builder *b = g->b;
	Value *array = op_operand(g->op, 0), *d = gradient_of(g, 0),
		  *length = gradient_array_length(b, array);
	bool stack = op_bool(g->op, "use_stack", false);
	int axis = axis_norm(op_int(g->op, "axis", 0), d->type->rank);
	Value *inits[] = {gradient_array_empty(b, array->type), build_number(b, DT_I64, 1, 0)};
	CountedLoop l;
	if (!length || !inits[1] || !count_begin(&l, b, length, false, 2, inits))
		return false;
	Value *e = gradient_array_read(&l.b, array, l.at);
	Value *part = e ? part_of(&l.b, d, e->type, axis, stack, stack ? l.at : l.args[1]) : NULL;
	if (!part)
		return false;
	Value *next[] = {gradient_array_write(&l.b, l.args[0], l.at, part),
	                 stack ? l.args[1] : tensor_add(&l.b, l.args[1], build_size(&l.b, e, axis))};
	return next[0] && next[1] && count_end(&l, next) &&
	       duals_add(b, g->duals, array, count_result(&l, 0));
}
