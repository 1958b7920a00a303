// Gradients of reductions that say what elements get which their definition leaves open: of max and
// min where several are equal, of norms where they are 0; and of logsumexp, in fewer steps
// (ir/ops/reduce.yaml).
#include "ir/gradient/gradient.h"
#include "ir/infer/geometry.h"

#include <math.h>
#include <string.h>

// The result, and what comes in for it, with size 1 where x was reduced.
static bool kept(GradientJob *g, int n, const int64_t *axes, Value **out, Value **d)
{
	const Type *t = op_operand(g->op, 0)->type;
	const Dim *dims[MAX_RANK];
	memcpy(dims, t->dims, sizeof *dims * (size_t)t->rank);
	for (int i = 0; i < n; i++)
		dims[axes[i]] = dim_const(g->b->ctx, 1);
	*out = tensor_reshape(g->b, op_result(g->op, 0), t->rank, dims);
	*d = tensor_reshape(g->b, gradient_of(g, 0), t->rank, dims);
	return *out && *d;
}

// Each element that equals the result gets the gradient, or its part of it: 1 / how many do. The
// others get 0 times it, as in Paddle, where what is not finite shows.
bool gradient_hook_extreme(GradientJob *g)
{
	Builder *b = g->b;
	Value *x = op_operand(g->op, 0), *most, *d;
	int axes[MAX_RANK], n = reduced_axes(g->op, x->type->rank, axes);
	int64_t over[MAX_RANK];
	for (int i = 0; i < n; i++)
		over[i] = axes[i];
	Value *equal = kept(g, n, over, &most, &d) ? build2(b, OP_PD_EQUAL, x, most, NULL) : NULL;
	equal = equal ? tensor_cast(b, equal, d->type->dtype) : NULL;
	if (equal && n && op_bool(g->op, "even", false))
		d = tensor_div(b, d, tensor_reduce(b, OP_PD_SUM, equal, n, over));
	return equal && gradient_give(g, 0, tensor_mul(b, equal, d));
}

// exp(x - out) d: the largest element, which the definition takes off, does not matter.
bool gradient_hook_logsumexp(GradientJob *g)
{
	Builder *b = g->b;
	Value *x = op_operand(g->op, 0), *out, *d;
	int axes[MAX_RANK], n = reduced_axes(g->op, x->type->rank, axes);
	int64_t over[MAX_RANK];
	for (int i = 0; i < n; i++)
		over[i] = axes[i];
	if (!kept(g, n, over, &out, &d))
		return false;
	Value *part = apply1(b, OP_PD_EXP, tensor_sub(b, x, out));
	return part && gradient_give(g, 0, tensor_mul(b, part, d));
}

// y, and v instead where the norm `out` is 0.
static Value *unless_zero(Builder *b, Value *out, double v, Value *y)
{
	const DType t = out->type->dtype;
	Value *none = build2(b, OP_PD_EQUAL, out, tensor_number(b, t, 0), NULL);
	Value *const operands[] = {none, tensor_number(b, t, v), y};
	return none ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
}

// What reduces x: its axes.
static int norm_axes(Op *op, int rank, int64_t *axes)
{
	int reduced[MAX_RANK], n = rank;
	if (op->code == OP_PD_FROBENIUS_NORM) {
		n = reduced_axes(op, rank, reduced);
		for (int i = 0; i < n; i++)
			axes[i] = reduced[i];
		return n;
	}
	if (!op_bool(op, "asvector", false)) {
		axes[0] = axis_norm(op_int(op, "axis", -1), rank);
		return 1;
	}
	for (int i = 0; i < rank; i++)
		axes[i] = i;
	return rank;
}

// sign(x) (|x| / out)^(p - 1) d, and 0 where the norm is, for which the derivative of the root is
// infinite.
bool gradient_hook_norm(GradientJob *g)
{
	Builder *b = g->b;
	Value *x = op_operand(g->op, 0), *out, *d;
	const double p = op_float(g->op, "porder", 2.0);
	int64_t axes[MAX_RANK];
	if (p == 0 || p == 1 || isinf(p) || !x->type->rank)
		return gradient_by_meaning(g);
	if (!kept(g, norm_axes(g->op, x->type->rank, axes), axes, &out, &d))
		return false;
	Value *norm = unless_zero(b, out, 1, out), *part = norm ? tensor_div(b, x, norm) : NULL;
	if (part && p != 2) {
		Value *size = apply1(b, OP_PD_ABS, part);
		size = build2(b, OP_PD_ELEMENTWISE_POW, size, tensor_number(b, x->type->dtype, p - 1),
		              NULL);
		part = tensor_mul(b, apply1(b, OP_PD_SIGN, x), size);
	}
	d = unless_zero(b, out, 0, d);
	return part && d && gradient_give(g, 0, tensor_mul(b, part, d));
}
