// Interpreter hooks of the kernel dialect: what the templates compute, in plain loops. Products are
// accumulated in double and rounded to what the epilogue takes before it. Layout changes only move
// bytes; they run at compile time over whole models, so they are the one part of the interpreter
// that has to be fast.
#include "ir/interp/hooks.h"

#include <math.h>
#include <string.h>

// ---- epilogues ----------------------------------------------------------------------------------

bool interp_check_f32(Interp *in, const Op *op, const Tensor *t)
{
	return t->dtype == DT_F32 ||
	       op_error(op, "the kernel is for f32, not %s", dtype_name(t->dtype));
}

// The elements as f32: as they lie, or a copy.
static const float *floats_of(Interp *in, const Tensor *t)
{
	if (t->dtype == DT_F32)
		return t->data;
	const int64_t n = tensor_numel(t);
	float *copy = NEW_ARRAY(interp_arena(in), (size_t)n + 1, float);
	for (int64_t i = 0; i < n; i++)
		copy[i] = (float)tensor_get_f(t, i);
	return copy;
}

// A program for region `i` with `nextra` arguments before the position.
static Program *kernel_program(Interp *in, const Op *op, int i, int nextra, int rank)
{
	const Block *b = i < op->nregion ? region_entry(&op->regions[i]) : NULL;
	if (!b || b->narg != nextra + rank || !b->last || b->last->noperand != 1) {
		op_error(op, "region %d is malformed", i);
		return NULL;
	}
	return program_compile(in, &op->regions[i]);
}

bool sink_open(Interp *in, const Op *op, int region, Sink *s)
{
	s->in = in;
	s->out = interp_result(in, op, 0);
	if (!s->out)
		return false;
	if (tensor_numel(s->out) == 0)
		return true;
	s->epilogue = kernel_program(in, op, region, 1, s->out->rank);
	if (!s->epilogue)
		return false;
	const DType sum = region_entry(&op->regions[region])->args[0]->type->dtype;
	s->whole = dtype_is_int(sum);
	s->narrow = sum != DT_F64;
	return program_result_dtype(s->epilogue, 0) == s->out->dtype ||
	       op_error(op, "the epilogue yields another type than the result's");
}

bool sink_put(Sink *s, int64_t at, int64_t n, const double *acc)
{
	for (int64_t done = 0; done < n; done += STRIP) {
		int m = n - done < STRIP ? (int)(n - done) : STRIP;
		Lane *arg = program_argument(s->epilogue, 0);
		for (int l = 0; l < m; l++)
			if (s->whole)
				arg[l].i = (int64_t)acc[done + l];
			else
				arg[l].f = s->narrow ? (float)acc[done + l] : acc[done + l];
		program_set_position(s->epilogue, 1, s->out->rank, s->out->dims, at + done, m);
		if (!program_run_strip(s->epilogue, m))
			return false;
		lanes_store(s->out, at + done, m, program_result(s->epilogue, 0));
	}
	return true;
}

// ---- matrix products ----------------------------------------------------------------------------

typedef struct Gemm {
	int64_t batch, m, n, k, nr, panels;
	bool shared; // one b for all batches
	bool turned; // a has its last two axes the other way round
} Gemm;

static bool gemm_sizes(Interp *in, const Op *op, const Tensor *a, const Tensor *b,
                       const Tensor *out, Gemm *g)
{
	if (a->rank < 2 || b->rank < 3 || out->rank != a->rank)
		return op_error(op, "operands of rank %d and %d", a->rank, b->rank);
	const bool turned = op_bool(op, "transpose_a", false);
	*g = (Gemm){.batch = 1,
	            .turned = turned,
	            .m = a->dims[a->rank - (turned ? 1 : 2)],
	            .n = out->dims[out->rank - 1],
	            .k = a->dims[a->rank - (turned ? 2 : 1)],
	            .nr = b->dims[b->rank - 1],
	            .panels = b->dims[b->rank - 3],
	            .shared = b->rank == 3};
	for (int d = 0; d < a->rank - 2; d++)
		g->batch *= a->dims[d];
	int64_t need = g->panels * g->k * g->nr * (g->shared ? 1 : g->batch);
	if (g->panels * g->nr < g->n || tensor_numel(b) != need ||
	    tensor_numel(out) != g->batch * g->m * g->n)
		return op_error(op, "the operands do not fit together");
	return true;
}

// Row `row` of the result, all batches counted through, acc[panels * nr], from the matrix of `b`
// that begins at y.
static void gemm_row(const Gemm *g, const Tensor *a, int64_t row, const Tensor *b, int64_t y,
                     double *acc)
{
	const int64_t from = g->turned ? row / g->m * g->m * g->k + row % g->m : row * g->k,
				  step = g->turned ? g->m : 1;
	const bool wide = b->dtype == DT_F64;
	const float *narrow = b->data;
	const double *whole = b->data;
	for (int64_t p = 0; p < g->panels; p++) {
		double *to = acc + p * g->nr;
		for (int64_t j = 0; j < g->nr; j++)
			to[j] = 0;
		for (int64_t k = 0; k < g->k; k++, y += g->nr) {
			const double factor = tensor_get_f(a, from + k * step);
			for (int64_t j = 0; j < g->nr; j++)
				to[j] += factor * (wide ? whole[y + j] : (double)narrow[y + j]);
		}
	}
}

static bool gemm_elements(Interp *in, const Op *op, const Tensor *a, const Tensor *b)
{
	return (a->dtype == DT_F64 && b->dtype == DT_F64) ||
	       (interp_check_f32(in, op, a) && interp_check_f32(in, op, b));
}

bool interpret_hook_kernel_gemm(Interp *in, Op *op)
{
	Tensor *a = interp_operand(in, op, 0), *b = interp_operand(in, op, 1);
	Sink s = {0};
	Gemm g = {0};
	if (!a || !b || !gemm_elements(in, op, a, b) || !sink_open(in, op, 0, &s) ||
	    !gemm_sizes(in, op, a, b, s.out, &g))
		return false;
	double *acc = NEW_ARRAY(interp_arena(in), (size_t)(g.panels * g.nr) + 1, double);
	for (int64_t row = 0; row < g.batch * g.m && s.epilogue; row++) {
		int64_t from = g.shared ? 0 : row / g.m * g.panels * g.k * g.nr;
		gemm_row(&g, a, row, b, from, acc);
		if (!sink_put(&s, row * g.n, g.n, acc))
			return false;
	}
	return true;
}

// The first element of the matrix of `t` that serves matrix `at` of the result; batch dims
// broadcast.
static int64_t matrix_begin(const Tensor *t, const Tensor *out, int64_t at)
{
	int64_t begin = 0, stride = t->dims[t->rank - 2] * t->dims[t->rank - 1];
	for (int i = 3; i <= t->rank; i++) {
		const int64_t n = out->dims[out->rank - i];
		begin += t->dims[t->rank - i] == 1 ? 0 : at % n * stride;
		stride *= t->dims[t->rank - i];
		at /= n;
	}
	return begin;
}

// The sum of elements [begin, end) of a row of a, `step` apart from x on, times those of a column
// of b, `along` apart from y on.
static double row_times(const Tensor *a, int64_t x, int64_t step, const Tensor *b, int64_t y,
                        int64_t along, int64_t begin, int64_t end)
{
	double sum = 0;
	for (int64_t i = begin; i < end; i++)
		sum += tensor_get_f(a, x + i * step) * tensor_get_f(b, y + i * along);
	return sum;
}

bool interpret_hook_kernel_matmul(Interp *in, Op *op)
{
	const Tensor *a = interp_operand(in, op, 0), *b = interp_operand(in, op, 1);
	Sink s = {0};
	if (!a || !b || !sink_open(in, op, 0, &s))
		return false;
	const bool ta = op_bool(op, "transpose_a", false), tb = op_bool(op, "transpose_b", false);
	const int64_t m = s.out->dims[s.out->rank - 2], n = s.out->dims[s.out->rank - 1],
				  k = a->dims[a->rank - (ta ? 2 : 1)];
	const int64_t split = op_int(op, "split", 1), rows = tensor_numel(s.out) / (n ? n : 1),
				  part = (k + split - 1) / split;
	const int64_t depth = b->dims[b->rank - (tb ? 1 : 2)];
	if (depth != k)
		return op_error(op, "%lld columns times %lld rows", (long long)k, (long long)depth);
	double *acc = NEW_ARRAY(interp_arena(in), (size_t)n + 1, double);
	for (int64_t row = 0; s.epilogue && row < rows; row++) {
		const int64_t begin = row / (rows / split) * part,
					  end = begin + part < k ? begin + part : k;
		const int64_t x = matrix_begin(a, s.out, row / m) + row % m * (ta ? 1 : k),
					  y = matrix_begin(b, s.out, row / m);
		for (int64_t j = 0; j < n; j++)
			acc[j] = row_times(a, x, ta ? m : 1, b, y + (tb ? j * k : j), tb ? 1 : n, begin, end);
		if (!sink_put(&s, row * n, n, acc))
			return false;
	}
	return true;
}

// ---- convolutions -------------------------------------------------------------------------------

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

static bool window_sizes(Interp *in, const Op *op, const Tensor *x, const Tensor *wt,
                         const Tensor *out, Window *w)
{
	const int skip = w->split > 1, rank = x->rank;
	const int64_t *d = out->dims + skip;
	const bool plain = out->rank == 4 + skip,
			   plain_input = plain || op_bool(op, "plain_input", false);
	w->depthwise = op->code == OP_KERNEL_DEPTHWISE;
	const int wrank = w->depthwise && wt->rank == 4 ? 4 : 5;
	w->narrow = !w->depthwise ? 0 : wrank == 5 ? wt->dims[1] : 1;
	if (rank != 5 - plain_input || wt->rank != wrank || out->rank != 5 - plain + skip)
		return op_error(op, "operands of rank %d and %d", x->rank, wt->rank);
	w->b = plain_input ? 1 : x->dims[4];
	w->lanes = plain ? 1 : d[4];
	w->height = x->dims[2];
	w->width = x->dims[3];
	w->channels = w->depthwise ? x->dims[1] * w->b : op_int(op, "in_channels", 0);
	w->kh = wt->dims[wrank - 3];
	w->apart = w->depthwise && !plain;
	if (!slices_read(op, d[2], &w->slices) || w->kh % w->slices.taps || w->height % w->slices.depth)
		return op_error(op, "the volume does not fit");
	w->kw = wt->dims[wrank - 2];
	w->q = wt->dims[wrank - 1];
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
	const float *pixels = floats_of(in, x), *weights = floats_of(in, wt);
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
	const float *pixels = floats_of(in, x), *weights = floats_of(in, wt);
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

// ---- softmax and layer norm ---------------------------------------------------------------------

// Reads n elements from linear position `at` of the result's shape through an input region.
static bool read_row(Program *p, const Tensor *shape, int64_t at, int64_t n, double *row)
{
	for (int64_t done = 0; done < n; done += STRIP) {
		int m = n - done < STRIP ? (int)(n - done) : STRIP;
		program_set_position(p, 0, shape->rank, shape->dims, at + done, m);
		if (!program_run_strip(p, m))
			return false;
		for (int l = 0; l < m; l++)
			row[done + l] = program_result(p, 0)[l].f;
	}
	return true;
}

// n elements, `step` apart.
static void softmax_row(int64_t n, int64_t step, bool log_of, double *row)
{
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++)
		max = row[i * step] > max || isnan(row[i * step]) ? row[i * step] : max;
	for (int64_t i = 0; i < n; i++)
		sum += exp(row[i * step] - max);
	for (int64_t i = 0; i < n; i++)
		row[i * step] = log_of ? row[i * step] - max - log(sum) : exp(row[i * step] - max) / sum;
}

bool interpret_hook_kernel_softmax(Interp *in, Op *op)
{
	Sink s = {0};
	if (!sink_open(in, op, 1, &s) || !s.epilogue)
		return s.out && !s.epilogue && tensor_numel(s.out) == 0;
	const int rank = s.out->rank;
	int64_t axis = op_int(op, "axis", -1), inner = 1;
	axis = axis < 0 ? axis + rank : axis;
	if (axis < 0 || axis >= rank)
		return op_error(op, "the result has no such axis");
	Program *input = kernel_program(in, op, 0, 0, rank);
	if (!input)
		return false;
	for (int i = (int)axis + 1; i < rank; i++)
		inner *= s.out->dims[i];
	const int64_t n = s.out->dims[axis], total = tensor_numel(s.out);
	double *rows = NEW_ARRAY(interp_arena(in), (size_t)(n * inner), double);
	for (int64_t at = 0; at < total; at += n * inner) {
		if (!read_row(input, s.out, at, n * inner, rows))
			return false;
		for (int64_t i = 0; i < inner; i++)
			softmax_row(n, inner, op_bool(op, "log", false), rows + i);
		if (!sink_put(&s, at, n * inner, rows))
			return false;
	}
	return true;
}

// scale and bias (NULL: none) hold n elements each.
static void layer_norm_row(int64_t n, double epsilon, const Tensor *scale, const Tensor *bias,
                           double *row)
{
	double mean = 0, variance = 0;
	for (int64_t i = 0; i < n; i++)
		mean += row[i] / (double)n;
	for (int64_t i = 0; i < n; i++)
		variance += (row[i] - mean) * (row[i] - mean) / (double)n;
	double factor = 1 / sqrt(variance + epsilon);
	for (int64_t i = 0; i < n; i++) {
		row[i] = (row[i] - mean) * factor;
		row[i] *= scale ? tensor_get_f(scale, i) : 1;
		row[i] += bias ? tensor_get_f(bias, i) : 0;
	}
}

static bool row_vector(Interp *in, const Op *op, int i, int64_t n, Tensor **out)
{
	*out = NULL;
	if (!op_operand(op, i))
		return true;
	*out = interp_operand(in, op, i);
	return *out && (tensor_numel(*out) == n ||
	                op_error(op, "operand %d must hold %lld elements", i, (long long)n));
}

bool interpret_hook_kernel_layer_norm(Interp *in, Op *op)
{
	Sink s = {0};
	Tensor *scale, *bias;
	int64_t axes = op_int(op, "axes", 1), n = 1;
	if (!sink_open(in, op, 1, &s) || !s.epilogue)
		return s.out && !s.epilogue && tensor_numel(s.out) == 0;
	if (axes < 1 || axes > s.out->rank)
		return op_error(op, "%lld axes of a tensor of rank %d", (long long)axes, s.out->rank);
	for (int64_t d = s.out->rank - axes; d < s.out->rank; d++)
		n *= s.out->dims[d];
	Program *input = kernel_program(in, op, 0, 0, s.out->rank);
	if (!input || !row_vector(in, op, 0, n, &scale) || !row_vector(in, op, 1, n, &bias))
		return false;
	double *row = NEW_ARRAY(interp_arena(in), (size_t)n, double);
	for (int64_t at = 0; at < tensor_numel(s.out); at += n) {
		if (!read_row(input, s.out, at, n, row))
			return false;
		layer_norm_row(n, op_float(op, "epsilon", 1e-5), scale, bias, row);
		if (!sink_put(&s, at, n, row))
			return false;
	}
	return true;
}

// ---- layout changes -----------------------------------------------------------------------------

// All layout changes are one: `count` matrices of n rows and k columns as panels of nr rows each,
// transposed: [n x k] as [ceil(n / nr) x k x nr].
typedef struct Panels {
	int64_t count, n, k, nr;
} Panels;

static int64_t panel_count(const Panels *p)
{
	return (p->n + p->nr - 1) / p->nr;
}

static void copy_element(char *to, const char *from, size_t size)
{
	switch (size) {
	case 4: memcpy(to, from, 4); break;
	case 8: memcpy(to, from, 8); break;
	default: memcpy(to, from, size); break;
	}
}

// Moves between the rows of a matrix and its panels, in tiles of columns that stay in the cache.
static void move_panel(const Panels *p, int64_t panel, char *rows, char *packed, size_t size,
                       bool pack)
{
	enum { TILE = 64 };
	int64_t first = panel * p->nr, n = p->n - first < p->nr ? p->n - first : p->nr;
	for (int64_t k0 = 0; k0 < p->k; k0 += TILE) {
		int64_t end = p->k - k0 < TILE ? p->k : k0 + TILE;
		for (int64_t i = 0; i < n; i++) {
			for (int64_t k = k0; k < end; k++) {
				char *row = rows + (size_t)((first + i) * p->k + k) * size;
				char *lane = packed + (size_t)((panel * p->k + k) * p->nr + i) * size;
				copy_element(pack ? lane : row, pack ? row : lane, size);
			}
		}
	}
}

static bool move_panels(Interp *in, const Op *op, const Panels *p, const Tensor *rows,
                        const Tensor *packed, bool pack)
{
	if (p->nr < 1 || rows->dtype != packed->dtype || tensor_numel(rows) != p->count * p->n * p->k ||
	    tensor_numel(packed) != p->count * panel_count(p) * p->k * p->nr)
		return op_error(op, "the shapes do not fit together");
	size_t size = dtype_size(rows->dtype);
	int64_t panels = panel_count(p);
	for (int64_t i = 0; i < p->count; i++)
		for (int64_t panel = 0; panel < panels; panel++)
			move_panel(p, panel, (char *)rows->data + (size_t)(i * p->n * p->k) * size,
			           (char *)packed->data + (size_t)(i * panels * p->k * p->nr) * size, size,
			           pack);
	return true;
}

// Product of dims [from, to).
static int64_t extent(const Tensor *t, int from, int to)
{
	int64_t n = 1;
	for (int d = from; d < to; d++)
		n *= t->dims[d];
	return n;
}

bool interpret_hook_kernel_pack_conv(Interp *in, Op *op)
{
	Tensor *w = interp_operand(in, op, 0), *out = w ? interp_result(in, op, 0) : NULL;
	if (!out)
		return false;
	if (w->rank < 2 || out->rank < 2)
		return op_error(op, "the filter has rank %d", w->rank);
	Panels p = {1, w->dims[0], extent(w, 1, w->rank), out->dims[out->rank - 1]};
	return move_panels(in, op, &p, w, out, true);
}

// Columns of a matrix [k x n] side by side in panels: runs of nr elements.
static bool pack_columns(Interp *in, const Op *op, const Panels *p, const Tensor *b,
                         const Tensor *out)
{
	if (p->nr < 1 || b->dtype != out->dtype ||
	    tensor_numel(out) != p->count * panel_count(p) * p->k * p->nr)
		return op_error(op, "the shapes do not fit together");
	size_t size = dtype_size(b->dtype);
	const char *from = b->data;
	char *to = out->data;
	for (int64_t i = 0; i < p->count; i++) {
		for (int64_t panel = 0; panel < panel_count(p); panel++) {
			int64_t first = panel * p->nr, n = p->n - first < p->nr ? p->n - first : p->nr;
			for (int64_t k = 0; k < p->k; k++, to += (size_t)p->nr * size)
				memcpy(to, from + (size_t)((i * p->k + k) * p->n + first) * size, (size_t)n * size);
		}
	}
	return true;
}

bool interpret_hook_kernel_pack_gemm(Interp *in, Op *op)
{
	Tensor *b = interp_operand(in, op, 0), *out = b ? interp_result(in, op, 0) : NULL;
	bool transposed = op_bool(op, "transposed", false);
	if (!out)
		return false;
	if (b->rank < 2 || out->rank != b->rank + 1)
		return op_error(op, "operand of rank %d, result of rank %d", b->rank, out->rank);
	int64_t rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
	Panels p = {extent(b, 0, b->rank - 2), transposed ? rows : columns, transposed ? columns : rows,
	            out->dims[out->rank - 1]};
	return transposed ? move_panels(in, op, &p, b, out, true) : pack_columns(in, op, &p, b, out);
}

// `plain` is [N x C x rest..], `blocked` [N x ceil(C / b) x rest.. x b].
static bool move_blocks(Interp *in, const Op *op, const Tensor *plain, const Tensor *blocked,
                        bool pack)
{
	if (plain->rank < 2 || blocked->rank != plain->rank + 1)
		return op_error(op, "ranks %d and %d", plain->rank, blocked->rank);
	Panels p = {plain->dims[0], plain->dims[1], extent(plain, 2, plain->rank),
	            blocked->dims[blocked->rank - 1]};
	return move_panels(in, op, &p, plain, blocked, pack);
}

bool interpret_hook_kernel_block(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *out = x ? interp_result(in, op, 0) : NULL;
	return out && move_blocks(in, op, x, out, true);
}

bool interpret_hook_kernel_unblock(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *out = x ? interp_result(in, op, 0) : NULL;
	return out && move_blocks(in, op, out, x, false);
}
