// Interpreter hooks of kernel.conv and kernel.depthwise, in every layout of images and filters that
// the layout passes make. Sums are accumulated in double.
#include "ir/interp/hooks.h"

#include <string.h>

// Slices of the volume, of the result and of the filter; from slice to slice; rows of a slice of
// the result.
typedef struct Slices {
	int64_t depth, made, taps, stride, before, dilation, rows;
} Slices;

typedef struct Window {
	int64_t strides[2], paddings[4], dilations[2];
	int64_t channels, height, width; // of x; channels of a group
	int64_t b;                       // channels in a block of x; 1 when x is plain
	int64_t lanes;                   // channels in a block of the result; 1 when it is plain
	int64_t kh, kw, q;               // w: window, output channels side by side
	int64_t rows;          // of w, one for each output channel, blocked as x is; 0: w is packed
	int64_t groups, share; // share: output channels of a group; of one channel when depthwise
	int64_t narrow; // channels of groups that share blocks, 1 when depthwise; 0: rows of w are of
	                // one group
	int64_t split;  // results side by side, each of a part of the channels
	int64_t first, end; // the channels of such a part, in a group
	bool depthwise,
		apart; // apart: what comes of one block of x lies a multiple of x's blocks apart
	Slices slices;
} Window;

// Of an image there is one.
static bool slices_read(const Op *op, int64_t rows, Slices *s)
{
	int64_t v[6] = {1, 1, 1, 1, 0, 1};
	if (op_attr(op, "volume") && op_ints(op, "volume", v, 6) != 6)
		return false;
	*s = (Slices){v[0], v[1], v[2], v[3], v[4], v[5], 0};
	if (v[0] < 1 || v[1] < 1 || v[2] < 1 || v[3] < 1 || rows % v[1])
		return false;
	s->rows = rows / v[1];
	return true;
}

static bool window_attributes(Interp *in, const Op *op, Window *w)
{
	if (op_ints(op, "strides", w->strides, 2) != 2 ||
	    op_ints(op, "paddings", w->paddings, 4) != 4 ||
	    op_ints(op, "dilations", w->dilations, 2) != 2)
		return op_error(op, "strides, paddings or dilations are malformed");
	w->groups = op_int(op, "groups", 1);
	w->split = op->code == OP_KERNEL_CONV ? op_int(op, "split", 1) : 1;
	return (w->groups >= 1 && w->split >= 1) || op_error(op, "%lld groups", (long long)w->groups);
}

// A filter as tiles of threads read it.
static bool rows_fit(const Window *w, const Tensor *wt, int64_t made)
{
	const bool whole = w->groups == 1 || (w->channels % w->b == 0 && w->share % w->b == 0);
	return wt->dims[1] == (w->channels + w->b - 1) / w->b && w->q == w->b && w->rows <= made &&
	       w->share * w->groups == made && whole;
}

static bool depthwise_fits(const Window *w, int64_t have, int64_t made, bool plain)
{
	const bool shared = plain || w->share == 1 || w->narrow == 1;
	return w->b == w->q && w->b == w->lanes && w->share * have == made && shared && w->narrow > 0 &&
	       w->b % w->narrow == 0;
}

// Whether the filter is that of the window.
static bool filter_fits(const Window *w, const Tensor *wt, int64_t have, int64_t made, bool plain)
{
	if (w->rows)
		return rows_fit(w, wt, made);
	if (w->q % w->lanes || wt->dims[0] * w->q < made)
		return false;
	if (w->depthwise)
		return depthwise_fits(w, have, made, plain);
	const int64_t parts = w->share ? (w->share + w->q - 1) / w->q : 0; // rows of w in a group
	if (!plain && w->groups > 1)
		return w->share > 0 && wt->dims[1] == w->channels && w->share * w->groups <= made &&
		       wt->dims[0] == parts * w->groups;
	return wt->dims[1] == w->channels && w->share * w->groups == made;
}

// How many channels of the result each group, or each channel, has.
static int64_t share_of(const Window *w, const Op *op, int64_t have, int64_t made, bool plain)
{
	if (w->depthwise)
		return have ? made / have : 0;
	return !plain && w->groups > 1 && !w->rows ? op_int(op, "out_channels", 0) : made / w->groups;
}

// How the operands lie: plain, or in blocks of channels.
typedef struct Layouts {
	bool plain, plain_input; // the result; x
	int rank;                // of the filter
} Layouts;

// False: their ranks are not those of any layout.
static bool layouts_read(const Op *op, const Window *w, const Tensor *x, const Tensor *wt,
                         const Tensor *out, Layouts *l)
{
	const int skip = w->split > 1;
	l->plain = out->rank == 4 + skip;
	l->plain_input = l->plain || op_bool(op, "plain_input", false);
	l->rank = w->depthwise && wt->rank == 4 ? 4 : 5;
	return (x->rank == 5 - l->plain_input && wt->rank == l->rank &&
	        out->rank == 5 - l->plain + skip) ||
	       op_error(op, "operands of rank %d and %d", x->rank, wt->rank);
}

// Channels of groups that share blocks; 0: rows of the filter are of one group.
static int64_t narrow_of(const Window *w, const Layouts *l, const Tensor *wt)
{
	if (!w->depthwise)
		return 0;
	return l->rank == 5 ? wt->dims[1] : 1;
}

static bool window_sizes(Interp *in, const Op *op, const Tensor *x, const Tensor *wt,
                         const Tensor *out, Window *w)
{
	const int64_t *d = out->dims + (w->split > 1);
	Layouts l;
	w->depthwise = op->code == OP_KERNEL_DEPTHWISE;
	if (!layouts_read(op, w, x, wt, out, &l))
		return false;
	const bool plain = l.plain;
	w->narrow = narrow_of(w, &l, wt);
	w->b = l.plain_input ? 1 : x->dims[4];
	w->lanes = plain ? 1 : d[4];
	w->height = x->dims[2];
	w->width = x->dims[3];
	w->channels = w->depthwise ? x->dims[1] * w->b : op_int(op, "in_channels", 0);
	w->kh = wt->dims[l.rank - 3];
	w->apart = w->depthwise && !plain;
	if (!slices_read(op, d[2], &w->slices) || w->kh % w->slices.taps || w->height % w->slices.depth)
		return op_error(op, "the volume does not fit");
	w->kw = wt->dims[l.rank - 2];
	w->q = wt->dims[l.rank - 1];
	w->rows = !plain && !w->depthwise && op_attr(op, "schedule") ? wt->dims[0] : 0;
	const int64_t have = x->dims[1] * w->b, made = d[1] * w->lanes;
	w->share = share_of(w, op, have, made, plain);
	return (w->channels * w->groups <= have && d[0] == x->dims[0] &&
	        filter_fits(w, wt, have, made, plain)) ||
	       op_error(op, "the operands do not fit together");
}

// Adds channel c at input position (h, v) under window position `tap` to the `lanes` sums of an
// output block that starts at channel oc.
static void conv_tap(const Window *w, const float *pixel, const float *weights, int64_t c,
                     int64_t tap, int64_t oc, int64_t lanes, double *acc)
{
	int64_t taps = w->kh * w->kw;
	if (w->depthwise) {
		const float *from = weights + (oc / w->q * taps + tap) * w->q;
		for (int64_t l = 0; l < lanes; l++)
			acc[l] += (double)pixel[l] * from[l];
		return;
	}
	if (w->rows) {
		const int64_t row = (w->channels + w->b - 1) / w->b * taps * w->b;
		const float *from = weights + oc * row + (c / w->b * taps + tap) * w->b + c % w->b;
		for (int64_t l = 0; l < lanes && oc + l < w->rows; l++)
			acc[l] += (double)*pixel * from[l * row];
		return;
	}
	const float *from = weights + ((oc / w->q * w->channels + c) * taps + tap) * w->q + oc % w->q;
	for (int64_t l = 0; l < lanes; l++)
		acc[l] += (double)*pixel * from[l];
}

// Adds all channels of their groups to the lanes of a blocked result, in groups that need not be of
// whole blocks.
static void conv_lanes(const Window *w, const float *x, const float *weights, int64_t pixel,
                       int64_t plane, int64_t tap, int64_t oc, int64_t lanes, double *acc)
{
	const int64_t share = w->narrow ? w->narrow : w->share,
				  channels = w->narrow ? w->narrow : w->channels, parts = (share + w->q - 1) / w->q,
				  taps = w->kh * w->kw;
	for (int64_t at = oc; at < oc + lanes && (w->narrow || at < share * w->groups); at++) {
		const int64_t group = at / share,
					  row = w->narrow ? at / w->q : group * parts + at % share / w->q,
					  lane = w->narrow ? at % w->q : at % share % w->q;
		for (int64_t j = 0; j < channels; j++) {
			const int64_t c = group * channels + j;
			acc[at - oc] += (double)x[c / w->b * plane + pixel + c % w->b] *
			                weights[((row * channels + j) * taps + tap) * w->q + lane];
		}
	}
}

// The row of x that row ky of the filter meets for row y of the result; -1: it is outside.
static int64_t window_row(const Window *w, int64_t y, int64_t ky)
{
	const Slices *s = &w->slices;
	const int64_t kh = w->kh / s->taps, height = w->height / s->depth,
				  z = y / s->rows * s->stride - s->before + ky / kh * s->dilation,
				  h = y % s->rows * w->strides[0] - w->paddings[0] + ky % kh * w->dilations[0];
	return z < 0 || z >= s->depth || h < 0 || h >= height ? -1 : z * height + h;
}

// The sums of one output position and block.
static void conv_point(const Window *w, const float *x, const float *weights, int64_t y, int64_t at,
                       int64_t oc, int64_t lanes, double *acc)
{
	memset(acc, 0, sizeof *acc * (size_t)lanes);
	for (int64_t tap = 0; tap < w->kh * w->kw; tap++) {
		int64_t h = window_row(w, y, tap / w->kw);
		int64_t v = at * w->strides[1] - w->paddings[1] + tap % w->kw * w->dilations[1];
		if (h < 0 || v < 0 || v >= w->width)
			continue;
		int64_t pixel = (h * w->width + v) * w->b, plane = w->height * w->width * w->b;
		if (lanes > 1 && !w->rows && (w->narrow > 1 || w->groups > 1)) {
			conv_lanes(w, x, weights, pixel, plane, tap, oc, lanes, acc);
			continue;
		}
		if (w->depthwise) {
			const int64_t block = w->apart ? oc / w->b % (w->channels / w->b) : oc / w->share;
			conv_tap(w, x + block * plane + pixel, weights, 0, tap, oc, lanes, acc);
			continue;
		}
		const int64_t first = w->groups > 1 ? oc / w->share * w->channels
		                                    : 0; // groups are of plain images, or of whole blocks
		for (int64_t c = w->first; c < w->end; c++)
			conv_tap(w, x + (first + c) / w->b * plane + pixel + c % w->b, weights, c, tap, oc,
			         lanes, acc);
	}
}

static bool conv_run(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *wt = interp_operand(in, op, 1);
	Sink s = {0};
	Window w = {0};
	if (!x || !wt || !window_attributes(in, op, &w) || !sink_open(in, op, 0, &s) ||
	    !window_sizes(in, op, x, wt, s.out, &w))
		return false;
	const float *pixels = interp_floats(in, x), *weights = interp_floats(in, wt);
	const int64_t *d = s.out->dims + (w.split > 1), lanes = w.lanes, rows = d[0] * d[1] * d[2];
	double *acc = NEW_ARRAY(interp_arena(in), (size_t)(d[3] * lanes) + 1, double);
	int64_t image = x->dims[0] ? tensor_numel(x) / x->dims[0] : 0;
	for (int64_t at = 0; at < w.split * rows && s.epilogue; at++) {
		int64_t part = at / rows, row = at % rows, n = row / (d[1] * d[2]),
				oc = row / d[2] % d[1] * lanes, y = row % d[2];
		w.first = part * w.channels / w.split;
		w.end = (part + 1) * w.channels / w.split;
		for (int64_t i = 0; i < d[3]; i++)
			conv_point(&w, pixels + n * image, weights, y, i, oc, lanes, acc + i * lanes);
		if (!sink_put(&s, at * d[3] * lanes, d[3] * lanes, acc))
			return false;
	}
	return true;
}

bool interpret_hook_kernel_conv(Interp *in, Op *op)
{
	return conv_run(in, op);
}

// The sums of row y of an image [H x W x C], filters of C / q blocks.
static void depthwise_row(const Window *w, const float *x, const float *weights, int64_t y,
                          int64_t columns, double *acc)
{
	const int64_t taps = w->kh * w->kw;
	memset(acc, 0, sizeof *acc * (size_t)(columns * w->channels));
	for (int64_t i = 0; i < columns * taps; i++) {
		const int64_t at = i / taps, tap = i % taps,
					  h = y * w->strides[0] - w->paddings[0] + tap / w->kw * w->dilations[0],
					  v = at * w->strides[1] - w->paddings[1] + tap % w->kw * w->dilations[1];
		if (h < 0 || h >= w->height || v < 0 || v >= w->width)
			continue;
		for (int64_t c = 0; c < w->channels; c++)
			acc[at * w->channels + c] += (double)x[(h * w->width + v) * w->channels + c] *
			                             weights[(c / w->q * taps + tap) * w->q + c % w->q];
	}
}

static bool depthwise_last(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *wt = interp_operand(in, op, 1);
	Sink s = {0};
	Window w = {0};
	if (!x || !wt || !window_attributes(in, op, &w) || !sink_open(in, op, 0, &s))
		return false;
	const int64_t *d = s.out->dims;
	if (x->rank != 4 || s.out->rank != 4 || wt->rank != 4 || d[0] != x->dims[0] ||
	    d[3] != x->dims[3] || wt->dims[0] * wt->dims[3] != d[3])
		return op_error(op, "the operands do not fit together");
	w.height = x->dims[1];
	w.width = x->dims[2];
	w.channels = x->dims[3];
	w.kh = wt->dims[1];
	w.kw = wt->dims[2];
	w.q = wt->dims[3];
	const float *pixels = interp_floats(in, x), *weights = interp_floats(in, wt);
	const int64_t row = d[2] * d[3], image = w.height * w.width * w.channels;
	double *acc = NEW_ARRAY(interp_arena(in), (size_t)row + 1, double);
	for (int64_t at = 0; at < d[0] * d[1] && s.epilogue; at++) {
		depthwise_row(&w, pixels + at / d[1] * image, weights, at % d[1], d[2], acc);
		if (!sink_put(&s, at * row, row, acc))
			return false;
	}
	return true;
}

bool interpret_hook_kernel_depthwise(Interp *in, Op *op)
{
	if (op_bool(op, "channels_last", false))
		return depthwise_last(in, op);
	return conv_run(in, op);
}
