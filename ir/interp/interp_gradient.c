// Interpreter hooks of the kernels that only training has: what filters and pooled images get. Sums
// are in double and rounded once.
#include "ir/interp/hooks.h"

#include <math.h>
#include <string.h>

// ---- filters ------------------------------------------------------------------------------------

typedef struct Taps {
	int64_t strides[2], paddings[4], dilations[2];
	BlockedImages x, d;
	int64_t kh, kw;
} Taps;

static bool blocks_fit(const Tensor *x, const Tensor *d, const Tensor *out, bool single)
{
	return out->dims[out->rank - 1] == d->dims[4] && out->dims[0] == d->dims[1] &&
	       x->dims[0] == d->dims[0] &&
	       (!single || (x->dims[1] == d->dims[1] && x->dims[4] == d->dims[4]));
}

static bool taps_read(Interp *in, const Op *op, const Tensor *x, const Tensor *d, const Tensor *out,
                      Taps *t)
{
	const bool single = op->code == OP_KERNEL_FILTER_GRADIENT_SINGLE,
			   plain = !single && op_bool(op, "plain_input", false);
	if (op_ints(op, "strides", t->strides, 2) != 2 ||
	    op_ints(op, "paddings", t->paddings, 4) != 4 ||
	    op_ints(op, "dilations", t->dilations, 2) != 2)
		return op_error(op, "strides, paddings or dilations are malformed");
	if (x->rank != (plain ? 4 : 5) || d->rank != 5 || out->rank != (single ? 4 : 5) ||
	    !blocks_fit(x, d, out, single))
		return op_error(op, "the operands do not fit together");
	t->x = blocked_images(x);
	t->d = blocked_images(d);
	t->kh = out->dims[out->rank - 3];
	t->kw = out->dims[out->rank - 2];
	return true;
}

// The sum for one tap, of channel c of x and lane o of the channels of d.
static double tap_sum(const Taps *t, const float *x, const float *d, int64_t c, int64_t o,
                      int64_t tap)
{
	double sum = 0;
	const int64_t rows = t->d.rows, columns = t->d.columns;
	for (int64_t at = 0; at < t->d.images * rows * columns; at++) {
		const int64_t n = at / (rows * columns), row = at / columns % rows, column = at % columns;
		const int64_t y = row * t->strides[0] - t->paddings[0] + tap / t->kw * t->dilations[0],
					  i = column * t->strides[1] - t->paddings[1] + tap % t->kw * t->dilations[1];
		if (y < 0 || y >= t->x.rows || i < 0 || i >= t->x.columns)
			continue;
		sum += (double)x[n * blocked_size(&t->x) + blocked_at(&t->x, c, y, i)] *
		       d[n * blocked_size(&t->d) + blocked_at(&t->d, o, row, column)];
	}
	return sum;
}

static bool filter_run(Interp *in, Op *op, bool single)
{
	const Tensor *x = interp_operand(in, op, 0), *d = interp_operand(in, op, 1);
	Tensor *out = interp_result(in, op, 0);
	Taps t;
	if (!x || !d || !out || !interp_check_f32(in, op, x) || !interp_check_f32(in, op, d) ||
	    !taps_read(in, op, x, d, out, &t))
		return false;
	const int64_t channels = single ? 1 : out->dims[1], window = t.kh * t.kw,
				  all = channels * window, groups = op_int(op, "groups", 1), lanes = t.d.lanes;
	if (groups < 1 || out->dims[0] % groups ||
	    (!single && channels * groups > t.x.blocks * t.x.lanes))
		return op_error(op, "the operands do not fit together");
	float *to = out->data;
	for (int64_t at = 0; at < out->dims[0] * lanes * all; at++) {
		const int64_t o = at / all, c = at / window % channels,
					  group = o * groups / (out->dims[0] * lanes);
		to[(o / lanes * all + at % all) * lanes + o % lanes] = (float)tap_sum(
			&t, x->data, d->data, single ? o : group * channels + c, o, at % window);
	}
	return true;
}

bool interpret_hook_kernel_filter_gradient(Interp *in, Op *op)
{
	return filter_run(in, op, false);
}

bool interpret_hook_kernel_filter_gradient_single(Interp *in, Op *op)
{
	return filter_run(in, op, true);
}

// ---- pooling ------------------------------------------------------------------------------------

// Windows on one axis: from `first`, up to `end`; [low, high) of it are inside of the image.
typedef struct Windows {
	int64_t size, count, kernel, stride, padding;
	int64_t first, end, low, high;
} Windows;

static void window_at(Windows *w, int64_t at, bool adaptive)
{
	w->first = adaptive ? at * w->size / w->count : at * w->stride - w->padding;
	w->end = adaptive ? ((at + 1) * w->size + w->count - 1) / w->count : w->first + w->kernel;
	w->low = w->first < 0 ? 0 : w->first;
	w->high = w->end > w->size ? w->size : w->end;
}

// What an average divides by, on one axis.
static int64_t window_length(const Windows *w, bool exclusive)
{
	const int64_t padded = w->size + w->padding;
	return exclusive ? w->high - w->low : (padded < w->end ? padded : w->end) - w->first;
}

// One window of one channel; x: NULL for an average.
static void window_gives(const Windows *w, int64_t b, const float *x, float most, double share,
                         double *to)
{
	for (int64_t y = w[0].low; y < w[0].high; y++)
		for (int64_t i = w[1].low; i < w[1].high; i++) {
			const int64_t at = (y * w[1].size + i) * b;
			if (x && x[at] != most)
				continue;
			to[at] += share;
			if (x)
				return;
		}
}

// The maximum of a window, as pool2d finds it.
static float window_most(const Windows *w, int64_t b, const float *x)
{
	float most = -INFINITY;
	for (int64_t y = w[0].low; y < w[0].high; y++)
		for (int64_t i = w[1].low; i < w[1].high; i++) {
			const float v = x[(y * w[1].size + i) * b];
			most = most > v ? most : v;
		}
	return most;
}

// All windows of one channel of an image, `b` elements from each other.
static void plane_gives(const Op *op, Windows *w, int64_t b, const float *d, const float *x,
                        const float *most, double *to)
{
	const bool adaptive = op_bool(op, "adaptive", false),
			   exclusive = adaptive || op_bool(op, "exclusive", true);
	for (int64_t row = 0; row < w[0].count; row++)
		for (int64_t column = 0; column < w[1].count; column++) {
			const int64_t at = (row * w[1].count + column) * b;
			window_at(&w[0], row, adaptive);
			window_at(&w[1], column, adaptive);
			double share = d[at];
			if (!x)
				share /= (double)(window_length(&w[0], exclusive) *
				                  window_length(&w[1], exclusive));
			window_gives(w, b, x, !x ? 0 : most ? most[at] : window_most(w, b, x), share, to);
		}
}

static bool windows_read(Interp *in, const Op *op, const Tensor *d, const Tensor *out, Windows *w)
{
	const Attr *kernel = op_attr(op, "kernel");
	int64_t strides[2], paddings[2];
	if (!kernel || kernel->n != 2 || op_ints(op, "strides", strides, 2) != 2 ||
	    op_ints(op, "paddings", paddings, 2) != 2 || out->rank < 4 || d->rank != out->rank)
		return op_error(op, "its windows are malformed");
	for (int i = 0; i < 2; i++)
		w[i] = (Windows){.size = out->dims[2 + i],
		                 .count = d->dims[2 + i],
		                 .kernel = dim_is_const(kernel->dims[i]) ? kernel->dims[i]->value : 0,
		                 .stride = strides[i],
		                 .padding = paddings[i]};
	return true;
}

// Every plane of all channels of a block; x and most: NULL for an average.
static void planes_give(Interp *in, const Op *op, Windows *w, const Tensor *d, const Tensor *x,
                        const Tensor *most, Tensor *out)
{
	const int64_t b = out->rank == 5 ? out->dims[4] : 1, size = w[0].size * w[1].size * b,
				  count = w[0].count * w[1].count * b;
	double *sums = NEW_ARRAY(interp_arena(in), (size_t)size + 1, double);
	float *to = out->data;
	for (int64_t plane = 0; plane < out->dims[0] * out->dims[1]; plane++) {
		memset(sums, 0, (size_t)size * sizeof *sums);
		for (int64_t c = 0; c < b; c++)
			plane_gives(op, w, b, (const float *)d->data + plane * count + c,
			            x ? (const float *)x->data + plane * size + c : NULL,
			            most ? (const float *)most->data + plane * count + c : NULL, sums + c);
		for (int64_t i = 0; i < size; i++)
			to[plane * size + i] = (float)sums[i];
	}
}

bool interpret_hook_kernel_pool_gradient(Interp *in, Op *op)
{
	const bool max = op->noperand > 1 && op_operand(op, 1);
	const Tensor *d = interp_operand(in, op, 0), *x = max ? interp_operand(in, op, 1) : NULL,
				 *most = op_operand(op, 2) ? interp_operand(in, op, 2) : NULL;
	Tensor *out = interp_result(in, op, 0);
	Windows w[2];
	if (!d || !out || (max && !x) || (op_operand(op, 2) && !most) || !interp_check_f32(in, op, d) ||
	    !windows_read(in, op, d, out, w))
		return false;
	planes_give(in, op, w, d, x, most, out);
	return true;
}
