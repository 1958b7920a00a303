// Operators that stand for several others, as passes of Paddle's inference leave them
// (ir/ops/fusion.yaml): types and meaning.
#include "ir/fusion/fusion.h"

#include <string.h>

// ---- a function of one tensor and one of two ----------------------------------------------------

static Value *of_one(Builder *b, Op *op, const char *name, Value *x)
{
	const int which = enum_find(&enum_activation, name);
	if (which != ACTIVATION_IDENTITY && which < ACTIVATION_COUNT)
		return activation_apply(b, which, x);
	if (!strcmp(name, "gelu"))
		return build1(b, OP_PD_GELU, x, "approximate", attr_bool(b->ctx, true), NULL);
	if (!strcmp(name, "scale"))
		return tensor_mul(b, x, tensor_number(b, x->type->dtype, op_float(op, "scale", 0)));
	op_error(op, "there is no function '%s' of one tensor", name);
	return NULL;
}

static enum OpCode code_of_two(const char *name)
{
	if (!strcmp(name, "elementwise_add"))
		return OP_PD_ADD;
	return strcmp(name, "elementwise_mul") ? OP_COUNT : OP_PD_MULTIPLY;
}

bool define_hook_fused_elemwise_activation(Builder *b, Op *op, Value **results)
{
	const Attr *list = op_attr(op, "functor_list");
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	if (!list || list->n != 2)
		return op_error(op, "functor_list must hold two functions");
	const char *outer = list->strs[0], *inner = list->strs[1];
	if (code_of_two(outer) != OP_COUNT) {
		y = of_one(b, op, inner, y);
		results[0] = y ? build2(b, code_of_two(outer), x, y, NULL) : NULL;
	} else if (code_of_two(inner) != OP_COUNT) {
		x = build2(b, code_of_two(inner), x, y, NULL);
		results[0] = x ? of_one(b, op, outer, x) : NULL;
	} else {
		return op_error(op, "there is no function '%s' of two tensors", inner);
	}
	return results[0] != NULL;
}

// ---- products -----------------------------------------------------------------------------------

static Value *transposed_by(Builder *b, const Op *op, Value *x, const char *attr)
{
	const Attr *perm = op_attr(op, attr);
	return x && perm && perm->n ? build1(b, OP_PD_TRANSPOSE, x, "perm", perm, NULL) : x;
}

// In `attr`, 0 stands for the size that the axis has, -1 for what is left.
static Value *reshaped_by(Builder *b, Op *op, Value *x, const char *attr)
{
	int64_t sizes[MAX_RANK];
	const Dim *dims[MAX_RANK], *left = x ? type_numel(b->ctx, x->type) : NULL;
	const int n = op_attr(op, attr) ? op_ints(op, attr, sizes, MAX_RANK) : 0;
	int open = -1;
	if (!n || !x)
		return x;
	for (int d = 0; d < n; d++) {
		if (sizes[d] < 0 && open >= 0) {
			op_error(op, "attribute '%s' leaves several sizes open", attr);
			return NULL;
		}
		if (sizes[d] < 0) {
			open = d;
			continue;
		}
		if (!sizes[d] && d >= x->type->rank) {
			op_error(op, "attribute '%s' names an axis that is not there", attr);
			return NULL;
		}
		dims[d] = sizes[d] ? dim_const(b->ctx, sizes[d]) : x->type->dims[d];
		left = dim_div(b->ctx, left, dims[d]);
	}
	if (open >= 0)
		dims[open] = left;
	return build1(b, OP_PD_RESHAPE, x, "shape", attr_dims(b->ctx, n, dims), NULL);
}

bool define_hook_fused_matmul(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = reshaped_by(b, op, op_operand(op, 0), "reshape_x"),
		  *y = reshaped_by(b, op, op_operand(op, 1), "reshape_y"), *residual = op_operand(op, 2);
	x = transposed_by(b, op, x, "transpose_x");
	y = transposed_by(b, op, y, "transpose_y");
	Value *out = x && y ? build2(b, OP_PD_MATMUL, x, y, "transpose_x",
	                             attr_bool(c, op_bool(op, "trans_x", false)), "transpose_y",
	                             attr_bool(c, op_bool(op, "trans_y", false)), NULL)
	                    : NULL;
	double alpha = op_float(op, "matmul_alpha", 1);
	if (out && alpha != 1)
		out = tensor_mul(b, out, tensor_number(b, out->type->dtype, alpha));
	if (out && residual)
		out = tensor_add(b, out, residual);
	out = transposed_by(b, op, fused_function(b, op, out), "transpose_out");
	results[0] = reshaped_by(b, op, out, "reshape_out");
	return results[0] != NULL;
}

bool define_hook_repeated_fc_relu(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *const * w, *const * bias;
	int n = op_operand_list(op, 1, &w);
	if (op_operand_list(op, 2, &bias) != n || n < 1)
		return op_error(op, "as many weights as biases are needed");
	const NamedAttr relu = {"activation_type", attr_str(b->ctx, "relu")};
	for (int i = 0; i < n; i++) {
		Op *fc = build_op(b, OP_PD_FC, 3, (Value *[]){x, w[i], bias[i]}, 1, &relu);
		if (!fc)
			return false;
		x = op_result(fc, 0);
	}
	results[0] = x;
	return true;
}

// ---- the order of axes --------------------------------------------------------------------------

// x without the axes of size 1 that an attribute lists.
static Value *without_axes(Builder *b, Op *op, Value *x, const char *attr)
{
	const Attr *axes = op_attr(op, attr);
	const Dim *dims[MAX_RANK];
	int rank = 0;
	for (int d = 0; d < x->type->rank; d++) {
		bool goes = false;
		for (int i = 0; axes && i < axes->n; i++)
			goes |= axis_norm(axes->ints[i], x->type->rank) == d;
		if (goes && !dim_is(x->type->dims[d], 1)) {
			op_error(op, "axis %d is not of size 1", d);
			return NULL;
		}
		if (!goes)
			dims[rank++] = x->type->dims[d];
	}
	return rank == x->type->rank ? x : tensor_reshape(b, x, rank, dims);
}

static Value *with_axes(Builder *b, const Op *op, Value *x, const char *attr)
{
	const Attr *axes = op_attr(op, attr);
	return x && axes && axes->n ? build1(b, OP_PD_UNSQUEEZE, x, "axis", axes, NULL) : x;
}

bool define_hook_fused_transpose(Builder *b, Op *op, Value **results)
{
	if (!infer_tensor(op, 0))
		return false;
	Value *x = without_axes(b, op, op_operand(op, 0), "squeeze");
	x = transposed_by(b, op, x, "axis");
	x = with_axes(b, op, x, "unsqueeze");
	results[0] = reshaped_by(b, op, x, "reshape");
	return results[0] != NULL;
}

bool define_hook_transpose_flatten_concat(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *const *x;
	int n = op_operand_list(op, 0, &x);
	Value **parts = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	int64_t at = op_int(op, "flatten_axis", 1);
	for (int i = 0; i < n; i++) {
		const Dim *dims[] = {dim_const(c, 1), dim_const(c, 1)};
		Value *turned = transposed_by(b, op, x[i], "trans_axis");
		for (int d = 0; turned && d < turned->type->rank; d++)
			dims[d >= at] = dim_mul(c, dims[d >= at], turned->type->dims[d]);
		if (!(parts[i] = tensor_reshape(b, turned, 2, dims)))
			return false;
	}
	results[0] = tensor_concat(b, n, parts, op_int(op, "concat_axis", 0));
	return results[0] != NULL;
}
