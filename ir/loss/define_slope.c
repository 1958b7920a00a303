// What Paddle computes for some gradients, though it is no derivative (ir/ops/slope.yaml).
#include "ir/loss/loss.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

// Whether operand i is shaped as operand 0, whose gradient belongs to it. False after a diagnostic.
static bool is_gradient(const Op *op, int i)
{
	const Type *t = infer_tensor(op, 0), *given = t ? infer_tensor(op, i) : NULL;
	if (!given || given->rank != t->rank)
		return given &&
		       op_error(op, "a gradient of %d axes for an operand of %d", given->rank, t->rank);
	return infer_same_dims(op, 0, t, given, "the operand and its gradient");
}

// (d - y mean(d y)) / deviation in each group, where y is what is normalised. The derivative also
// takes mean(d) from d.
bool define_hook_group_norm_unscaled_slope(Builder *b, Op *op, Value **results)
{
	int n;
	int64_t axes[MAX_RANK];
	if (!is_gradient(op, 1))
		return false;
	const Type *t = op_operand(op, 0)->type;
	if (t->rank < 2)
		return op_error(op, "there is no axis of channels among %d", t->rank);
	Value *x = groups_split(b, op, op_operand(op, 0), &n, axes),
		  *d = groups_split(b, op, op_operand(op, 1), &n, axes), *deviation;
	if (!x || !d)
		return false;
	Value *y = normalized(b, x, n, axes, op_float(op, "epsilon", 1e-5), &deviation);
	Value *along = tensor_reduce(b, OP_PD_MEAN, tensor_mul(b, d, y), n, axes);
	Value *dx = tensor_div(b, tensor_sub(b, d, tensor_mul(b, y, along)), deviation);
	const int channel = channel_axis(op, t->rank);
	n = other_axes(t->rank, channel, true, axes);
	Value *sum = tensor_reduce(b, OP_PD_SUM, op_operand(op, 1), n, axes);
	results[0] = tensor_reshape(b, dx, t->rank, t->dims);
	results[1] = tensor_reshape(b, sum, 1, &t->dims[channel]);
	return results[0] && results[1];
}

bool define_hook_spectral_norm_slope(Builder *b, Op *op, Value **results)
{
	Spectral s;
	if (!is_gradient(op, 3) || !spectral_estimate(b, op, &s))
		return false;
	Value *w = op_operand(op, 0), *d = spectral_matrix(b, &s, op_operand(op, 3));
	const Type *t = w->type;
	int64_t axes[MAX_RANK], back[MAX_RANK];
	for (int i = 0; i < t->rank; i++) {
		axes[i] = i;
		back[s.perm[i]] = i;
	}
	Value *sum = tensor_reduce(b, OP_PD_SUM, tensor_div(b, w, s.sigma), t->rank, axes);
	const Dim *row[] = {dim_const(b->ctx, 1), s.flat[1]};
	Value *outer = tensor_mul(b, s.u, tensor_reshape(b, s.v, 2, row));
	Value *less = tensor_mul(b, d, tensor_mul(b, outer, tensor_reshape(b, sum, 0, NULL)));
	Value *dw = tensor_div(b, tensor_sub(b, d, less), s.sigma);
	results[0] = tensor_transpose(b, tensor_reshape(b, dw, t->rank, s.dims), t->rank, back);
	return results[0] != NULL;
}

bool define_hook_gather_slope(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_tensor(op, 0), *d = infer_tensor(op, 2);
	int64_t given;
	int axis;
	if (!x || !d || !infer_resolve_int(op, "axis", &given) ||
	    !infer_axis(op, given, x->rank, &axis))
		return false;
	const Dim *dims[MAX_RANK]; // of d_out where an index of no axes leaves the axis there
	for (int i = 0; i < x->rank; i++)
		dims[i] = i != axis ? x->dims[i] : d->rank < x->rank ? dim_const(b->ctx, 1) : d->dims[i];
	Value *first = tensor_reshape(b, op_operand(op, 2), x->rank, dims);
	for (int i = 0; i < axis; i++)
		first = tensor_cut(b, first, i, 0, 1);
	first = tensor_spread(b, first, x->rank, dims);
	Value *none = tensor_spread(b, tensor_number(b, x->dtype, 0), x->rank, x->dims);
	Value *const operands[] = {none, tensor_flat(b, op_operand(op, 1)), first};
	results[0] = none && first
	                 ? build(b, OP_PD_INDEX_ADD, 3, operands, "axis", attr_int(b->ctx, axis), NULL)
	                 : NULL;
	return results[0] != NULL;
}

// With q = d_x / y: d_y = q (out dd_y - dd_x), d_out = -d_x dd_y and dd_out = (dd_x - out dd_y) /
// y.
bool define_hook_divide_second_slope(Builder *b, Op *op, Value **results)
{
	for (int i = 0; i < 3; i++)
		if (!infer_tensor(op, i))
			return false;
	Value *y = op_operand(op, 0), *out = op_operand(op, 1), *d = op_operand(op, 2);
	Value *none = tensor_number(b, y->type->dtype, 0), *v[] = {none, none};
	for (int i = 0; i < 2; i++)
		if (op_operand(op, 3 + i))
			v[i] = op_operand(op, 3 + i);
	Value *less = tensor_sub(b, tensor_mul(b, out, v[1]), v[0]);
	Value *given[] = {tensor_mul(b, tensor_div(b, d, y), less),
	                  tensor_sub(b, none, tensor_mul(b, d, v[1])),
	                  tensor_div(b, tensor_sub(b, none, less), y)};
	for (int i = 0; i < 3; i++) {
		Value *like = i ? out : y;
		if (!given[i])
			return false;
		results[i] = given[i]->type->rank < like->type->rank
		                 ? tensor_spread(b, given[i], like->type->rank, like->type->dims)
		                 : build2(b, OP_PD_REDUCE_AS, given[i], like, NULL);
		if (!results[i])
			return false;
	}
	return true;
}

bool define_hook_cvm_slope(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_rank(op, 0, 2), *cvm = infer_rank(op, 1, 2), *d = infer_rank(op, 2, 2);
	const bool all = op_bool(op, "use_cvm", true);
	const Dim *own = x ? x->dims[1] : NULL, *two = dim_const(b->ctx, 2), *rest;
	if (!x || !cvm || !d ||
	    !infer_same_dim(op, x->dims[0], cvm->dims[0], "the rows of x and of cvm", &rest) ||
	    !infer_same_dim(op, x->dims[0], d->dims[0], "the rows of x and of d_out", &rest) ||
	    !infer_same_dim(op, cvm->dims[1], two, "the columns of cvm", &rest) ||
	    !infer_same_dim(op, own, all ? d->dims[1] : dim_add(b->ctx, d->dims[1], two),
	                    "the columns of x and of d_out", &rest))
		return false;
	Value *given = op_operand(op, 2);
	Value *parts[] = {op_operand(op, 1), all ? tensor_slice(b, given, 1, two, own) : given};
	results[0] = tensor_concat(b, 2, parts, 1);
	return results[0] != NULL;
}
