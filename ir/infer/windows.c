// The windows of convolution and pooling, and which axes are channels (geometry.h). Called by the
// types of both, and by their definitions.
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"

#include <string.h>

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

bool window_ints(const Op *op, const char *name, int64_t otherwise, int n, int64_t *out)
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
	if (!kernel_of_pool(op, w) || !window_paddings(op, w))
		return false;
	// Paddle's kernel of a maximum without indices takes windows of a kernel, a stride apart.
	w->counted = w->adaptive && op_info_attr(op->info, "pooling_type") &&
	             op_enum(op, "pooling_type") == POOL_MAX;
	w->adaptive &= !w->counted;
	return true;
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

const Dim *window_count_checked(Context *c, const Window *w, int i, bool ceil)
{
	const Dim *count = window_count(c, w, i, ceil), *stride = dim_const(c, w->stride[i]);
	const Dim *room = window_room(c, w, i, ceil);
	int64_t least, most;
	dim_range_empty(room, &least, &most);
	if (w->stride[i] > 1 && !dim_is_const(room) && least < 0) {
		const Dim *up = dim_div(c, dim_add(c, room, dim_const(c, w->stride[i] - 1)), stride);
		up = dim_add(c, dim_min(c, up, dim_const(c, 0)), dim_const(c, 1));
		dim_check(c, dim_max(c, count, up), count);
	}
	return count;
}
