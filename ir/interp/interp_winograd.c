// Interpreter hooks of kernel.winograd and of the weights that it reads: in double, one tile after
// the other. The operator table names them.
#include "ir/core/winograd.h"
#include "ir/interp/hooks.h"

#include <string.h>

// ---- weights ------------------------------------------------------------------------------------

// The filter g [3 x 3] as `inputs` x `inputs` numbers, `next` floats apart.
static void filter_transform(const Winograd *t, const float *g, float *to, int64_t next)
{
	double half[WINOGRAD_INPUTS][3];
	for (int i = 0; i < t->inputs; i++)
		for (int j = 0; j < 3; j++)
			half[i][j] = t->filter[i][0] * (double)g[j] + t->filter[i][1] * (double)g[3 + j] +
			             t->filter[i][2] * (double)g[6 + j];
	for (int i = 0; i < t->inputs; i++)
		for (int j = 0; j < t->inputs; j++, to += next)
			*to = (float)(half[i][0] * t->filter[j][0] + half[i][1] * t->filter[j][1] +
			              half[i][2] * t->filter[j][2]);
}

bool interpret_hook_kernel_pack_winograd(Interp *in, Op *op)
{
	Tensor *w = interp_operand(in, op, 0), *out = w ? interp_result(in, op, 0) : NULL;
	Winograd t;
	if (!out || !interp_check_f32(in, op, w) || !winograd_init(&t, (int)op_int(op, "tile", 0)))
		return false;
	const int64_t outputs = w->dims[0], channels = w->dims[1], q = out->dims[3];
	float *to = out->data;
	memset(to, 0, tensor_bytes(out));
	for (int64_t o = 0; o < outputs; o++)
		for (int64_t c = 0; c < channels; c++) {
			const int64_t first = o / q * t.inputs * t.inputs;
			filter_transform(&t, (const float *)w->data + (o * channels + c) * 9,
			                 to + (first * channels + c) * q + o % q, channels * q);
		}
	return true;
}

// ---- convolution --------------------------------------------------------------------------------

typedef struct Tiles {
	Winograd t;
	const float *x, *w; // one image; weights
	BlockedImages from, to;
	int64_t channels, q; // of x; of the result, side by side in w
	int64_t top, left;
	int64_t apart[2]; // rows, columns of a tile
	double *numbers;  // [inputs * inputs x channels]: of the tile, transformed
	double *sums;     // [inputs * inputs x q]
	double *out;      // the image that is made
} Tiles;

// out = m d m^T, with m [rows x columns].
static void transform(int rows, int columns, const double (*m)[WINOGRAD_INPUTS],
                      double (*d)[WINOGRAD_INPUTS], double (*out)[WINOGRAD_INPUTS])
{
	double half[WINOGRAD_INPUTS][WINOGRAD_INPUTS] = {{0}};
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++)
			for (int k = 0; k < columns; k++)
				half[i][j] += m[i][k] * d[k][j];
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < rows; j++) {
			out[i][j] = 0;
			for (int k = 0; k < columns; k++)
				out[i][j] += half[i][k] * m[j][k];
		}
}

// The input of the tile whose first result is (y, x), for all channels.
static void tile_read(Tiles *s, int64_t y, int64_t x)
{
	const int n = s->t.inputs;
	double d[WINOGRAD_INPUTS][WINOGRAD_INPUTS], v[WINOGRAD_INPUTS][WINOGRAD_INPUTS];
	for (int64_t c = 0; c < s->channels; c++) {
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++) {
				const int64_t h = y - s->top + i * s->apart[0], at = x - s->left + j * s->apart[1];
				const bool inside = h >= 0 && h < s->from.rows && at >= 0 && at < s->from.columns;
				d[i][j] = inside ? s->x[blocked_at(&s->from, c, h, at)] : 0;
			}
		transform(n, n, (const double(*)[WINOGRAD_INPUTS])s->t.in, d, v);
		for (int i = 0; i < n * n; i++)
			s->numbers[i * s->channels + c] = v[i / n][i % n];
	}
}

static void tile_multiply(Tiles *s, int64_t group)
{
	const int numbers = s->t.inputs * s->t.inputs;
	memset(s->sums, 0, sizeof *s->sums * (size_t)(numbers * s->q));
	for (int64_t i = 0; i < numbers; i++)
		for (int64_t c = 0; c < s->channels; c++) {
			const double v = s->numbers[i * s->channels + c];
			const float *w = s->w + ((group * numbers + i) * s->channels + c) * s->q;
			for (int64_t o = 0; o < s->q; o++)
				s->sums[i * s->q + o] += v * (double)w[o];
		}
}

// Of output channel `o` of a group, as far as the results are in the image.
static void tile_write(Tiles *s, int64_t group, int64_t o, int64_t y, int64_t x)
{
	const int n = s->t.inputs, m = s->t.tile;
	const int64_t channel = group * s->q + o;
	double d[WINOGRAD_INPUTS][WINOGRAD_INPUTS], out[WINOGRAD_INPUTS][WINOGRAD_INPUTS];
	for (int i = 0; i < n * n; i++)
		d[i / n][i % n] = s->sums[i * s->q + o];
	transform(m, n, (const double(*)[WINOGRAD_INPUTS])s->t.out, d, out);
	const int64_t down = s->apart[0], across = s->apart[1];
	for (int i = 0; i < m && y + i * down < s->to.rows; i++)
		for (int j = 0; j < m && x + j * across < s->to.columns; j++)
			s->out[blocked_at(&s->to, channel, y + i * down, x + j * across)] = out[i][j];
}

// The results of the tile whose first one is (y, x).
static void tile_run(Tiles *s, int64_t groups, int64_t y, int64_t x)
{
	const int64_t channels = s->to.blocks * s->to.lanes;
	tile_read(s, y, x);
	for (int64_t group = 0; group < groups; group++) {
		tile_multiply(s, group);
		for (int64_t o = 0; o < s->q && group * s->q + o < channels; o++)
			tile_write(s, group, o, y, x);
	}
}

// Where tile `i` along an axis begins, of rows or columns that are `apart`: those which begin side
// by side come first.
static int64_t tile_at(const Tiles *s, int64_t i, int64_t apart)
{
	return i / apart * apart * s->t.tile + i % apart;
}

static void image_run(Tiles *s, int64_t groups)
{
	const int64_t rows = s->to.rows, columns = s->to.columns;
	for (int64_t y = 0, down; (down = tile_at(s, y, s->apart[0])) < rows; y++)
		for (int64_t x = 0, across; (across = tile_at(s, x, s->apart[1])) < columns; x++)
			tile_run(s, groups, down, across);
}

static bool tiles_open(Interp *in, const Op *op, const Tensor *x, const Tensor *w,
                       const Tensor *out, Tiles *s)
{
	int64_t pad[4];
	*s = (Tiles){.channels = op_int(op, "in_channels", 0)};
	if (!winograd_init(&s->t, (int)op_int(op, "tile", 0)) || op_ints(op, "paddings", pad, 4) != 4 ||
	    op_ints(op, "dilations", s->apart, 2) != 2)
		return op_error(op, "tile, paddings or dilations are malformed");
	s->top = pad[0];
	s->left = pad[1];
	s->from = blocked_images(x);
	s->to = blocked_images(out);
	s->q = w->dims[3];
	s->w = w->data;
	const size_t numbers = (size_t)(s->t.inputs * s->t.inputs);
	s->numbers = NEW_ARRAY(interp_arena(in), numbers * (size_t)s->channels, double);
	s->sums = NEW_ARRAY(interp_arena(in), numbers * (size_t)s->q, double);
	s->out = NEW_ARRAY(interp_arena(in), (size_t)blocked_size(&s->to) + 1, double);
	return out->dims[0] == x->dims[0] || op_error(op, "the operands do not fit together");
}

bool interpret_hook_kernel_winograd(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *w = interp_operand(in, op, 1);
	Sink sink = {0};
	Tiles s;
	if (!x || !w || !interp_check_f32(in, op, x) || !interp_check_f32(in, op, w) ||
	    !sink_open(in, op, 0, &sink) || !tiles_open(in, op, x, w, sink.out, &s))
		return false;
	const int64_t images = x->dims[0], made = blocked_size(&s.to), read = blocked_size(&s.from);
	for (int64_t n = 0; n < images && made > 0; n++) {
		s.x = (const float *)x->data + n * read;
		image_run(&s, w->dims[0]);
		if (!sink_put(&sink, n * made, made, s.out))
			return false;
	}
	return op->nresult == 1 || interp_result(in, op, 1) != NULL;
}
