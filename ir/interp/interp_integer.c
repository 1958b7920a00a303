// Interpreter hook of kernel.integer_conv: exact sums of whole numbers, one after the other. The
// operator table names it.
#include "ir/interp/hooks.h"

#include <string.h>

typedef struct Integers {
	int64_t strides[2], paddings[4], dilations[2];
	BlockedImages images; // x
	int64_t channels, zero_point;
	int64_t lanes;               // channels in a block of the result
	int64_t kh, kw, quads, q, d; // w: window, dots of a position, output channels, numbers
	int64_t groups;              // rows of w
	const int32_t *x, *w;
} Integers;

// The elements as they are, each in 32 bits.
static const int32_t *whole_of(Interp *in, const Tensor *t)
{
	const int64_t n = tensor_numel(t);
	int32_t *copy = NEW_ARRAY(interp_arena(in), (size_t)n + 1, int32_t);
	for (int64_t i = 0; i < n; i++)
		copy[i] = (int32_t)tensor_get_i(t, i);
	return copy;
}

static bool integers_read(Interp *in, const Op *op, const Tensor *x, const Tensor *w,
                          const Tensor *out, Integers *v)
{
	if (op_ints(op, "strides", v->strides, 2) != 2 ||
	    op_ints(op, "paddings", v->paddings, 4) != 4 ||
	    op_ints(op, "dilations", v->dilations, 2) != 2 || x->rank != 5 || w->rank != 5 ||
	    out->rank != 5 || (x->dtype != DT_U8 && x->dtype != DT_I16))
		return op_error(op, "operands or attributes are malformed");
	v->d = x->dtype == DT_U8 ? 4 : 2;
	v->channels = op_int(op, "in_channels", 0);
	v->zero_point = op_int(op, "zero_point", 0);
	v->images = blocked_images(x);
	v->lanes = out->dims[4];
	v->groups = w->dims[0];
	v->kh = w->dims[1];
	v->kw = w->dims[2];
	v->quads = w->dims[3];
	v->q = w->dims[4] / v->d;
	if (v->channels < 1 || v->channels > v->images.blocks * v->images.lanes || v->q < 1 ||
	    v->quads * v->d < v->channels || x->dims[0] != out->dims[0])
		return op_error(op, "the operands do not fit together");
	v->x = whole_of(in, x);
	v->w = whole_of(in, w);
	return true;
}

// The sum of output channel oc at (y, at) of an image.
static double integers_point(const Integers *v, const int32_t *image, int64_t oc, int64_t y,
                             int64_t at)
{
	int64_t sum = 0;
	if (oc >= v->groups * v->q)
		return 0;
	for (int64_t tap = 0; tap < v->kh * v->kw; tap++) {
		const int64_t h = y * v->strides[0] - v->paddings[0] + tap / v->kw * v->dilations[0],
					  u = at * v->strides[1] - v->paddings[1] + tap % v->kw * v->dilations[1];
		if (h < 0 || h >= v->images.rows || u < 0 || u >= v->images.columns)
			continue;
		const int32_t *w = v->w +
		                   ((oc / v->q * v->kh * v->kw + tap) * v->quads * v->q + oc % v->q) * v->d;
		for (int64_t c = 0; c < v->channels; c++)
			sum += (image[blocked_at(&v->images, c, h, u)] - v->zero_point) *
			       w[c / v->d * v->q * v->d + c % v->d];
	}
	return (double)sum;
}

bool interpret_hook_kernel_integer_conv(Interp *in, Op *op)
{
	const Tensor *x = interp_operand(in, op, 0), *w = interp_operand(in, op, 1);
	Sink s = {0};
	Integers v;
	if (!x || !w || !sink_open(in, op, 0, &s) || !integers_read(in, op, x, w, s.out, &v))
		return false;
	const int64_t *d = s.out->dims, row = d[3] * d[4];
	double *acc = NEW_ARRAY(interp_arena(in), (size_t)row + 1, double);
	for (int64_t i = 0; s.epilogue && i < d[0] * d[1] * d[2]; i++) {
		const int32_t *image = v.x + i / (d[1] * d[2]) * blocked_size(&v.images);
		for (int64_t j = 0; j < row; j++)
			acc[j] = integers_point(&v, image, i / d[2] % d[1] * v.lanes + j % v.lanes, i % d[2],
			                        j / v.lanes);
		if (!sink_put(&s, i * row, row, acc))
			return false;
	}
	return true;
}
