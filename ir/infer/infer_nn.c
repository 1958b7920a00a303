// Types of convolution and pooling (ir/ops/nn.yaml).
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

#include <string.h>

// ---- convolution --------------------------------------------------------------------------------

enum OpCode conv_operation(int n, bool transposed)
{
	if (n == 3)
		return transposed ? OP_PD_CONV3D_TRANSPOSE : OP_PD_CONV3D;
	return transposed ? OP_PD_CONV2D_TRANSPOSE : OP_PD_CONV2D;
}

static bool size_is_right(const Op *op, const Dim *d, int axis)
{
	return !dim_is_const(d) || d->value >= 0 ||
	       op_error(op, "axis %d of the result would have size %lld", axis, (long long)d->value);
}

bool infer_hook_conv(Op *op)
{
	Context *c = op->ctx;
	Window w;
	const Dim *shape[MAX_RANK], *same;
	format_resolve(op);
	if (!window_of_conv(op, &w))
		return false;
	const Type *x = op_operand(op, 0)->type, *filter = op_operand(op, 1)->type;
	int64_t groups = op_int(op, "groups", 1);
	if (groups < 1)
		return op_error(op, "%lld groups", (long long)groups);
	const Dim *in = dim_mul(c, filter->dims[1], dim_const(c, groups));
	if (!infer_same_dim(op, x->dims[w.channel], in,
	                    "channels of the input and of the filter times groups", &same))
		return false;
	if (dim_is_const(filter->dims[0]) && filter->dims[0]->value % groups)
		return op_error(op, "%lld output channels do not divide into %lld groups",
		                (long long)filter->dims[0]->value, (long long)groups);
	shape[0] = x->dims[0];
	shape[w.channel] = filter->dims[0];
	for (int i = 0; i < w.n; i++) {
		shape[w.axis[i]] = window_count_checked(c, &w, i, false);
		if (!size_is_right(op, shape[w.axis[i]], w.axis[i]))
			return false;
	}
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_integer_conv(Op *op)
{
	return infer_exact(op, infer_hook_conv(op));
}

bool infer_hook_conv_transpose(Op *op)
{
	Context *c = op->ctx;
	Window w;
	const Dim *shape[MAX_RANK], *same, *given[3];
	int64_t extra[3] = {0};
	format_resolve(op);
	if (!window_of_conv(op, &w))
		return false;
	const Type *x = op_operand(op, 0)->type, *filter = op_operand(op, 1)->type;
	if (!infer_same_dim(op, x->dims[w.channel], filter->dims[0],
	                    "channels of the input and of the filter", &same))
		return false;
	int64_t groups = op_int(op, "groups", 1);
	if (groups < 1 || (dim_is_const(filter->dims[0]) && filter->dims[0]->value % groups))
		return op_error(op, "the input channels do not divide into %lld groups", (long long)groups);
	int ngiven = infer_resolve(op, "output_size", given, 3),
		nextra = op_ints(op, "output_padding", extra, 3);
	if (ngiven < 0 || (ngiven > 0 && ngiven != w.n) || (nextra > 0 && nextra != w.n))
		return op_error(op, "'output_size' and 'output_padding' need %d values", w.n);
	shape[0] = x->dims[0];
	shape[w.channel] = dim_mul(c, filter->dims[1], dim_const(c, groups));
	for (int i = 0; i < w.n; i++) {
		const Dim *one = dim_const(c, 1),
				  *out = dim_mul(c, dim_sub(c, w.size[i], one), dim_const(c, w.stride[i]));
		out = dim_sub(c, dim_sub(c, out, w.before[i]), w.after[i]);
		out = dim_add(c, out,
		              dim_mul(c, dim_sub(c, w.kernel[i], one), dim_const(c, w.dilation[i])));
		out = dim_add(c, out, dim_const(c, 1 + (nextra > 0 ? extra[i] : 0)));
		shape[w.axis[i]] = ngiven > 0 ? given[i] : out;
		if (!size_is_right(op, shape[w.axis[i]], w.axis[i]))
			return false;
	}
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_filter_gradient(Op *op)
{
	Context *c = op->ctx;
	Window w;
	const Dim *shape[MAX_RANK], *same;
	if (!window_of_conv(op, &w))
		return false;
	const Type *x = op_operand(op, 0)->type, *d = op_operand(op, 1)->type;
	const int64_t groups = op_int(op, "groups", 1);
	for (int i = 0; i < 2; i++) // channels: in the input, in the result
		if (groups < 1 ||
		    (dim_is_const((i ? d : x)->dims[1]) && (i ? d : x)->dims[1]->value % groups))
			return op_error(op, "the channels do not divide into %lld groups", (long long)groups);
	if (!infer_same_dim(op, x->dims[0], d->dims[0], "images", &same))
		return false;
	shape[0] = d->dims[1];
	shape[1] = dim_div(c, x->dims[1], dim_const(c, groups));
	memcpy(shape + 2, w.kernel, sizeof *shape * (size_t)w.n);
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

// ---- pooling ------------------------------------------------------------------------------------

// How many windows there are on axis i.
static const Dim *pool_count(const Op *op, const Window *w, int i)
{
	if (w->whole)
		return dim_const(op->ctx, 1);
	return w->adaptive || w->counted
	           ? w->kernel[i]
	           : window_count_checked(op->ctx, w, i, op_bool(op, "ceil_mode", false));
}

static bool pool_shape(Op *op, const Dim **shape)
{
	Window w;
	if (!window_of_pool(op, &w))
		return false;
	const Type *x = op_operand(op, 0)->type;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	for (int i = 0; i < w.n; i++) {
		const Dim **size = &shape[w.axis[i]];
		*size = pool_count(op, &w, i);
		if (!size_is_right(op, *size, w.axis[i]))
			return false;
	}
	return true;
}

// All sizes agree: operand 0 with the windows, `out` with that, and x with the result.
bool infer_hook_pool_gradient(Op *op)
{
	Window w;
	const Dim *shape[MAX_RANK], *same;
	const Value *x = op_operand(op, 1), *out = op_operand(op, 2);
	const bool max = op_enum(op, "pooling_type") == POOL_MAX;
	if (!window_of_pool(op, &w))
		return false;
	const Type *d = op_operand(op, 0)->type;
	if (max != (x && out) || max != (x || out))
		return op_error(op, "a maximum, and only that, needs x and out");
	memcpy(shape, d->dims, sizeof *shape * (size_t)d->rank);
	for (int i = 0; i < w.n; i++) {
		shape[w.axis[i]] = w.size[i];
		if (!infer_same_dim(op, d->dims[w.axis[i]], pool_count(op, &w, i), "windows", &same))
			return false;
	}
	if (max && (x->type->rank != d->rank || out->type->rank != d->rank))
		return op_error(op, "x and out must be of rank %d", d->rank);
	for (int i = 0; i < d->rank && max; i++)
		if (!infer_same_dim(op, x->type->dims[i], shape[i], "sizes of x and the result", &same) ||
		    !infer_same_dim(op, out->type->dims[i], d->dims[i], "sizes of out and d_out", &same))
			return false;
	return infer_result_shape(op, 0, d->dtype, d->rank, shape);
}

bool infer_hook_pool(Op *op)
{
	const Dim *shape[MAX_RANK], *kernel[3];
	format_resolve(op);
	if ((op->code == OP_PD_LP_POOL2D) != (op_enum(op, "pooling_type") == POOL_LP))
		return op_error(op, "unknown pooling type '%s'", op_str(op, "pooling_type", ""));
	if (op->code == OP_PD_LP_POOL2D && !(op_float(op, "norm_type", 0) > 0))
		return op_error(op, "'norm_type' must be over 0");
	if (op_operand_named(op, "kernel_size_tensor") &&
	    infer_resolve(op, "kernel_size", kernel, 3) < 0)
		return false;
	if (!pool_shape(op, shape))
		return false;
	const Type *x = op_operand(op, 0)->type;
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_max_pool_with_index(Op *op)
{
	const Dim *shape[MAX_RANK];
	if (!pool_shape(op, shape))
		return false;
	const Type *x = op_operand(op, 0)->type;
	return infer_result_shape(op, 0, x->dtype, x->rank, shape) &&
	       infer_result_shape(op, 1, DT_I32, x->rank, shape);
}

bool infer_hook_unfold(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 4);
	int64_t kernel[2], pads[4];
	Window w = {.n = 2};
	if (!x || !window_ints(op, "strides", 1, 2, w.stride) ||
	    !window_ints(op, "dilations", 1, 2, w.dilation) ||
	    !window_ints(op, "kernel_sizes", 1, 2, kernel))
		return false;
	if (op_ints(op, "paddings", pads, 4) != 4)
		return op_error(op, "'paddings' needs 4 values");
	const Dim *places = dim_const(c, 1);
	for (int i = 0; i < 2; i++) {
		w.size[i] = x->dims[2 + i];
		w.kernel[i] = dim_const(c, kernel[i]);
		w.before[i] = dim_const(c, pads[i]); // top, left, bottom, right
		w.after[i] = dim_const(c, pads[2 + i]);
		const Dim *count = window_count_checked(c, &w, i, false);
		if (!infer_at_least(op, count, dim_const(c, 1), "the number of blocks along an axis"))
			return false;
		places = dim_mul(c, places, count);
	}
	const Dim *shape[] = {x->dims[0], dim_mul(c, x->dims[1], dim_mul(c, w.kernel[0], w.kernel[1])),
	                      places};
	return infer_result_shape(op, 0, x->dtype, 3, shape);
}
