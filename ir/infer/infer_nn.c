// Types of convolution, pooling, normalisation and matrix products (ir/ops/nn.yaml), and the
// windows that their definitions read (geometry.h).
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- windows ------------------------------------------------------------------------------------

bool channels_last(const Op *op)
{
	if (!op_info_attr(op->info, "data_format"))
		return false;
	const DataFormatKind format = (DataFormatKind)op_enum(op, "data_format");
	return format == DATA_FORMAT_NHWC || format == DATA_FORMAT_NDHWC || format == DATA_FORMAT_NLC ||
	       format == DATA_FORMAT_NWC;
}

int channel_axis(const Op *op, int rank)
{
	return channels_last(op) ? rank - 1 : 1;
}

void format_resolve(Op *op)
{
	const DataFormatKind format = (DataFormatKind)op_enum(op, "data_format");
	if (format == DATA_FORMAT_ANYLAYOUT || format == DATA_FORMAT_EMPTY)
		op_set_attr(op, "data_format", NULL);
}

// The n values of a list attribute; a list of one stands for all, a missing one for `otherwise`.
static bool window_ints(const Op *op, const char *name, int64_t otherwise, int n, int64_t *out)
{
	int64_t have[3];
	int count = op_attr(op, name) ? op_ints(op, name, have, 3) : 0;
	if (count < 0 || (count > 1 && count != n))
		return op_error(op, "'%s' needs %d values", name, n);
	for (int i = 0; i < n; i++) {
		out[i] = count ? have[count == 1 ? 0 : i] : otherwise;
		if (out[i] < 1 && otherwise > 0)
			return op_error(op, "'%s' is %lld", name, (long long)out[i]);
	}
	return true;
}

// As many outputs as strides fit, and half of the missing inputs on each side.
static void padding_same(Context *c, Window *w, int i)
{
	const Dim *stride = dim_const(c, w->stride[i]);
	const Dim *last = dim_mul(c, dim_div(c, dim_sub(c, w->size[i], dim_const(c, 1)), stride),
	                          stride);
	const Dim *sum = dim_max(c, dim_sub(c, dim_add(c, last, w->kernel[i]), w->size[i]),
	                         dim_const(c, 0));
	w->before[i] = dim_div(c, sum, dim_const(c, 2));
	w->after[i] = dim_sub(c, sum, w->before[i]);
}

// Of a list of n paddings, one for all axes, one for each, or two for each.
static void padding_given(Context *c, Window *w, int i, int n, const int64_t *pads)
{
	const int at = n == 1 ? 0 : n == w->n ? i : 2 * i;
	w->before[i] = dim_const(c, pads[at]);
	w->after[i] = dim_const(c, pads[n == 2 * w->n ? at + 1 : at]);
}

// Paddings as (before, after) per axis, from the attribute or from the algorithm that chooses them.
static bool window_paddings(const Op *op, Window *w)
{
	Context *c = op->ctx;
	const int algorithm = op_enum(op, "padding_algorithm");
	bool same = algorithm == PADDING_SAME,
		 valid = algorithm == PADDING_VALID || w->adaptive || w->whole;
	int64_t pads[6] = {0};
	int n = op_ints(op, "paddings", pads, 6);
	if (n < 0 && op_attr(op, "paddings"))
		return op_error(op, "'paddings' has too many values");
	if (!same && !valid && n > 1 && n != w->n && n != 2 * w->n)
		return op_error(op, "'paddings' has %d values, %d or %d are needed", n, w->n, 2 * w->n);
	for (int i = 0; i < w->n; i++) {
		w->before[i] = w->after[i] = dim_const(c, 0);
		if (same)
			padding_same(c, w, i);
		else if (!valid && n > 0)
			padding_given(c, w, i, n, pads);
	}
	return true;
}

enum OpCode conv_operation(int n, bool transposed)
{
	if (n == 3)
		return transposed ? OP_PD_CONV3D_TRANSPOSE : OP_PD_CONV3D;
	return transposed ? OP_PD_CONV2D_TRANSPOSE : OP_PD_CONV2D;
}

static bool of_volumes(const Op *op)
{
	switch (op->code) {
	case OP_PD_CONV3D:
	case OP_PD_CONV3D_TRANSPOSE:
	case OP_PD_FILTER3D_GRADIENT:
	case OP_PD_POOL3D:
	case OP_PD_POOL3D_GRADIENT:
	case OP_PD_MAX_POOL3D_WITH_INDEX: return true;
	default: return false;
	}
}

// The sizes of the filter, which is operand 1, or what an attribute says.
static bool kernel_of_conv(const Op *op, const Type *filter, Window *w)
{
	if (op_info_attr(op->info, "kernel"))
		return op_dims(op, "kernel", w->kernel, 3) == w->n ||
		       op_error(op, "'kernel' needs %d values", w->n);
	memcpy(w->kernel, filter->dims + 2, (size_t)w->n * sizeof *w->kernel);
	return true;
}

bool window_of_conv(Op *op, Window *w)
{
	const Type *x = infer_tensor(op, 0), *filter = infer_tensor(op, 1);
	*w = (Window){.n = of_volumes(op) ? 3 : 2};
	if (!x || !filter)
		return false;
	if (x->rank != w->n + 2 || filter->rank != w->n + 2)
		return op_error(op, "input of rank %d and filter of rank %d; both must be %d", x->rank,
		                filter->rank, w->n + 2);
	bool last = channels_last(op);
	w->channel = last ? x->rank - 1 : 1;
	for (int i = 0; i < w->n; i++) {
		w->axis[i] = i + (last ? 1 : 2);
		w->size[i] = x->dims[w->axis[i]];
	}
	if (!kernel_of_conv(op, filter, w) || !window_ints(op, "strides", 1, w->n, w->stride) ||
	    !window_ints(op, "dilations", 1, w->n, w->dilation))
		return false;
	if (op_enum(op, "padding_algorithm") == PADDING_SAME)
		for (int i = 0; i < w->n; i++)
			w->dilation[i] = 1; // as Paddle has it
	return window_paddings(op, w);
}

// A kernel size that is not given covers everything; that of adaptive pooling may be one that only
// a run knows.
static bool kernel_of_pool(const Op *op, Window *w)
{
	const Dim *have[3];
	const int n = op_attr(op, "kernel_size") ? op_dims(op, "kernel_size", have, 3) : 0;
	if (n < 0 || (n > 1 && n != w->n))
		return op_error(op, "'kernel_size' needs %d values", w->n);
	for (int i = 0; i < w->n; i++) {
		const Dim *k = n ? have[n == 1 ? 0 : i] : w->size[i];
		w->kernel[i] = w->whole || (dim_is_const(k) && k->value < 1) ? w->size[i] : k;
	}
	return true;
}

bool window_of_pool(Op *op, Window *w)
{
	const Type *x = infer_tensor(op, 0);
	*w = (Window){.n = of_volumes(op) ? 3 : 2};
	if (!x)
		return false;
	if (x->rank < w->n + 2)
		return op_error(op, "a tensor of rank %d where %d is needed", x->rank, w->n + 2);
	w->whole = op_bool(op, "global_pooling", false);
	w->adaptive = op_bool(op, "adaptive", false) && !w->whole;
	if (!window_ints(op, "strides", 1, w->n, w->stride))
		return false;
	bool last = channels_last(op);
	w->channel = last ? x->rank - 1 : 1;
	for (int i = 0; i < w->n; i++) {
		w->axis[i] = i + (last ? 1 : 2);
		w->size[i] = x->dims[w->axis[i]];
		w->dilation[i] = 1;
	}
	if (op_info_attr(op->info, "size") && op_dims(op, "size", w->size, 3) != w->n)
		return op_error(op, "'size' needs %d values", w->n); // operand 0 is not the image
	return kernel_of_pool(op, w) && window_paddings(op, w);
}

bool window_overhangs(const Window *w, int i)
{
	const Dim *kernel = w->kernel[i], *size = w->size[i];
	int64_t span;
	bool larger = dim_is_const(kernel) && dim_is_const(size) &&
	              (__builtin_mul_overflow(kernel->value - 1, w->dilation[i], &span) ||
	               span >= size->value);
	return larger || !dim_is(w->before[i], 0) || !dim_is(w->after[i], 0);
}

// How far the first place of a window can go; rounded up, by almost a stride further.
static const Dim *window_room(Context *c, const Window *w, int i, bool ceil)
{
	const Dim *span = dim_mul(c, dim_sub(c, w->kernel[i], dim_const(c, 1)),
	                          dim_const(c, w->dilation[i]));
	const Dim *room = dim_add(c, dim_add(c, w->size[i], w->before[i]), w->after[i]);
	room = dim_sub(c, room, dim_add(c, span, dim_const(c, 1)));
	return ceil ? dim_add(c, room, dim_const(c, w->stride[i] - 1)) : room;
}

const Dim *window_count(Context *c, const Window *w, int i, bool ceil)
{
	const Dim *room = window_room(c, w, i, ceil);
	// Paddle's division truncates: a window that is larger than the room still counts when less
	// than a stride is missing.
	const Dim *steps = dim_is_const(room) && room->value < 0
	                       ? dim_const(c, room->value / w->stride[i])
	                       : dim_div(c, room, dim_const(c, w->stride[i]));
	return dim_add(c, steps, dim_const(c, 1));
}

// The same, for the type of a result. Of a size that only a run knows, the division does not
// truncate, and the run must not find one for which it would.
static const Dim *window_count_checked(Context *c, const Window *w, int i, bool ceil)
{
	const Dim *count = window_count(c, w, i, ceil), *stride = dim_const(c, w->stride[i]);
	const Dim *room = window_room(c, w, i, ceil);
	int64_t least, most;
	dim_range(room, &least, &most);
	if (w->stride[i] > 1 && !dim_is_const(room) && least < 0) {
		const Dim *up = dim_div(c, dim_add(c, room, dim_const(c, w->stride[i] - 1)), stride);
		up = dim_add(c, dim_min(c, up, dim_const(c, 0)), dim_const(c, 1));
		dim_check(c, dim_max(c, count, up), count);
	}
	return count;
}

static bool size_is_right(const Op *op, const Dim *d, int axis)
{
	return !dim_is_const(d) || d->value >= 0 ||
	       op_error(op, "axis %d of the result would have size %lld", axis, (long long)d->value);
}

// ---- convolution --------------------------------------------------------------------------------

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

// The result of a contraction of whole numbers is exact.
static bool infer_whole(Op *op, bool inferred)
{
	if (inferred)
		op->results[0].type = type_like(op->ctx, op->results[0].type, DT_I32);
	return inferred;
}

bool infer_hook_integer_conv(Op *op)
{
	return infer_whole(op, infer_hook_conv(op));
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
	return w->adaptive ? w->kernel[i]
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
		places = dim_mul(c, places, window_count_checked(c, &w, i, false));
	}
	const Dim *shape[] = {x->dims[0], dim_mul(c, x->dims[1], dim_mul(c, w.kernel[0], w.kernel[1])),
	                      places};
	return infer_result_shape(op, 0, x->dtype, 3, shape);
}

// ---- normalisation ------------------------------------------------------------------------------

// A vector operand has as many elements as channels.
static bool check_channels(const Op *op, const char *name, const Dim *channels)
{
	const Dim *same;
	Value *v = op_operand_named(op, name);
	const char *what = arena_printf(op->ctx->arena, "elements of '%s' and their places", name);
	return !v || infer_same_dim(op, type_numel(op->ctx, v->type), channels, what, &same);
}

// The size of the axis of channels; NULL after an error.
static const Dim *channels_of(Op *op, const Type *x)
{
	format_resolve(op);
	if (x->rank >= 2)
		return x->dims[channels_last(op) ? x->rank - 1 : 1];
	op_error(op, "a tensor of rank %d where 2 or more is needed", x->rank);
	return NULL;
}

bool infer_hook_batch_norm(Op *op)
{
	static const char *const names[] = {"mean", "variance", "scale", "bias"};
	const Type *x = infer_tensor(op, 0);
	const Dim *channels = x ? channels_of(op, x) : NULL;
	if (!channels)
		return false;
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (!check_channels(op, names[i], channels))
			return false;
	return infer_result(op, 0, x);
}

bool infer_hook_layer_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int axis;
	if (!x || !infer_axis(op, op_int(op, "begin_norm_axis", 1), x->rank, &axis))
		return false;
	op_set_attr(op, "begin_norm_axis", attr_int(op->ctx, axis));
	const Dim *numel = dims_product(op->ctx, x->rank - axis, x->dims + axis);
	return check_channels(op, "scale", numel) && check_channels(op, "bias", numel) &&
	       infer_result(op, 0, x);
}

bool infer_hook_instance_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	if (x->rank < 3)
		return op_error(op, "a tensor of rank %d where 3 or more is needed", x->rank);
	return check_channels(op, "scale", x->dims[1]) && check_channels(op, "bias", x->dims[1]) &&
	       infer_result(op, 0, x);
}

bool infer_hook_group_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *channels = x ? channels_of(op, x) : NULL;
	if (!channels)
		return false;
	int64_t groups = op_int(op, "groups", 1);
	if (groups < 1 || (dim_is_const(channels) && channels->value % groups))
		return op_error(op, "the channels do not divide into %lld groups", (long long)groups);
	return check_channels(op, "scale", channels) && check_channels(op, "bias", channels) &&
	       infer_result(op, 0, x);
}

// As x, for what happens along one axis of it.
bool infer_hook_along_axis(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int axis;
	if (!x)
		return false;
	if (x->rank) {
		if (!infer_axis(op, op_int(op, "axis", -1), x->rank, &axis))
			return false;
		op_set_attr(op, "axis", attr_int(op->ctx, axis));
	}
	return infer_result(op, 0, x);
}

// Labels are class numbers, one in the place of every distribution along axis, or distributions
// themselves.
static bool check_labels(const Op *op, const Type *x, const Type *label, int axis)
{
	const Dim *same, *one = dim_const(op->ctx, 1);
	for (int d = 0; d < x->rank; d++) {
		const Dim *want = d == axis && !op_bool(op, "soft_label", false) ? one : x->dims[d];
		if (!infer_same_dim(op, want, label->dims[d], "sizes of classes and labels", &same))
			return false;
	}
	return true;
}

bool infer_hook_softmax_cross_entropy(Op *op)
{
	const Type *x = infer_tensor(op, 0), *label = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK];
	int axis;
	if (!x || !label || !infer_axis(op, op_int(op, "axis", -1), x->rank, &axis))
		return false;
	if (label->rank != x->rank)
		return op_error(op, "labels of rank %d for logits of rank %d", label->rank, x->rank);
	if (!check_labels(op, x, label, axis))
		return false;
	op_set_attr(op, "axis", attr_int(op->ctx, axis));
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[axis] = dim_const(op->ctx, 1);
	return infer_result(op, 0, x) && infer_result_shape(op, 1, x->dtype, x->rank, shape);
}

bool infer_hook_cross_entropy(Op *op)
{
	const Type *x = infer_tensor(op, 0), *label = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK];
	if (!x || !label)
		return false;
	if (!x->rank || label->rank != x->rank)
		return op_error(op, "labels of rank %d for probabilities of rank %d", label->rank, x->rank);
	if (!check_labels(op, x, label, x->rank - 1))
		return false;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[x->rank - 1] = dim_const(op->ctx, 1);
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_prelu(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const int mode = op_enum(op, "mode");
	const Dim *need = dim_const(c, 1);
	if (!x)
		return false;
	if (mode == SLOPES_CHANNEL) {
		if (!x->rank)
			return op_error(op, "a scalar has no channels");
		need = x->dims[x->rank == 1 ? 0 : channels_last(op) ? x->rank - 1 : 1];
	} else if (mode == SLOPES_ELEMENT) {
		need = dims_product(c, x->rank - 1, x->dims + 1);
	}
	return check_channels(op, "alpha", need) && infer_result(op, 0, x);
}

bool infer_hook_affine_channel(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *channels = x ? channels_of(op, x) : NULL;
	if (!channels)
		return false;
	return check_channels(op, "scale", channels) && check_channels(op, "bias", channels) &&
	       infer_result(op, 0, x);
}

// ---- matrix products ----------------------------------------------------------------------------

// A size of a matrix's last two axes, the last one or, with `other`, the one before it; a vector
// has only one.
static const Dim *matrix_dim(const Type *t, bool other)
{
	return t->dims[t->rank == 1 ? 0 : other ? t->rank - 2 : t->rank - 1];
}

// The shape of a matmul; vectors are a row on the left and a column on the right.
static bool matmul_result(Op *op, const Type *x, const Type *y, bool tx, bool ty)
{
	const Dim *shape[MAX_RANK], *k;
	int rank = 0;
	if (!x->rank || !y->rank)
		return op_error(op, "a matrix product of a scalar");
	if (x->dtype != y->dtype && op->code != OP_PD_INTEGER_MATMUL)
		return op_error(op, "a product of %s and %s", dtype_name(x->dtype), dtype_name(y->dtype));
	int bx = x->rank > 2 ? x->rank - 2 : 0, by = y->rank > 2 ? y->rank - 2 : 0;
	if (!infer_broadcast(op, bx, x->dims, by, y->dims, &rank, shape))
		return false;
	if (!infer_same_dim(op, matrix_dim(x, tx), matrix_dim(y, !ty), "inner sizes of the matrices",
	                    &k))
		return false;
	if (x->rank > 1)
		shape[rank++] = matrix_dim(x, !tx);
	if (y->rank > 1)
		shape[rank++] = matrix_dim(y, ty);
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

bool infer_hook_matmul(Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = infer_tensor(op, 1);
	return x && y &&
	       matmul_result(op, x, y, op_bool(op, "transpose_x", false),
	                     op_bool(op, "transpose_y", false));
}

bool infer_hook_integer_matmul(Op *op)
{
	return infer_whole(op, infer_hook_matmul(op));
}

bool infer_hook_bmm(Op *op)
{
	const Type *x = infer_rank(op, 0, 3), *y = x ? infer_rank(op, 1, 3) : NULL;
	return y && matmul_result(op, x, y, false, false);
}

bool infer_hook_mv(Op *op)
{
	const Type *x = infer_rank(op, 0, 2), *y = x ? infer_rank(op, 1, 1) : NULL;
	return y && matmul_result(op, x, y, false, false);
}

bool infer_hook_dot(Op *op)
{
	const Type *both = infer_broadcast_pair(op);
	if (!both)
		return false;
	if (!both->rank || both->rank > 2)
		return op_error(op, "a tensor of rank %d where 1 or 2 is needed", both->rank);
	return infer_result_shape(op, 0, both->dtype, both->rank - 1, both->dims);
}

bool infer_hook_addmm(Op *op)
{
	const Type *input = infer_tensor(op, 0), *x = infer_rank(op, 1, 2),
			   *y = x ? infer_rank(op, 2, 2) : NULL;
	if (!input || !y || !matmul_result(op, x, y, false, false))
		return false;
	const Type *out = op->results[0].type;
	bool fits = input->rank <= 2;
	for (int d = 0; d < input->rank && fits; d++) {
		const Dim *size = input->dims[d], *whole = out->dims[2 - input->rank + d];
		fits = dim_is(size, 1) || size == whole || !dim_is_const(size) || !dim_is_const(whole);
	}
	return fits || op_error(op, "the input is larger than the product that it is added to");
}

// x and y as matrices after nx and ny axes.
static bool mul_result(Op *op, const Type *x, const Type *y, int64_t nx, int64_t ny)
{
	Context *c = op->ctx;
	const Dim *shape[2 * MAX_RANK], *k;
	if (nx < 1 || nx >= x->rank || ny < 1 || ny >= y->rank)
		return op_error(op, "tensors of rank %d and %d do not flatten after %lld and %lld axes",
		                x->rank, y->rank, (long long)nx, (long long)ny);
	if (!infer_same_dim(op, dims_product(c, x->rank - (int)nx, x->dims + nx),
	                    dims_product(c, (int)ny, y->dims), "inner sizes of the matrices", &k))
		return false;
	int rank = 0;
	for (int d = 0; d < nx; d++)
		shape[rank++] = x->dims[d];
	for (int d = (int)ny; d < y->rank; d++)
		shape[rank++] = y->dims[d];
	if (rank > MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	return infer_result(op, 0, type_tensor(c, x->dtype, rank, shape, x->lod));
}

bool infer_hook_mul(Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = infer_tensor(op, 1);
	return x && y &&
	       mul_result(op, x, y, op_int(op, "x_num_col_dims", 1), op_int(op, "y_num_col_dims", 1));
}

bool infer_hook_fc(Op *op)
{
	const Type *x = infer_tensor(op, 0), *w = infer_rank(op, 1, 2);
	return x && w && mul_result(op, x, w, op_int(op, "in_num_col_dims", 1), 1);
}
