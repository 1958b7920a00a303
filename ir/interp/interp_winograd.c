// Interpreter hooks of kernel.winograd and of the weights that it reads: in double, one tile after
// the other. The operator table names them.
#include "ir/core/winograd.h"
#include "ir/interp/hooks.h"

#include <string.h>

// ---- weights ------------------------------------------------------------------------------------

static bool transforms_of(const Op *op, Winograd *t)
{
	return winograd_transforms(op, t) || op_error(op, "its tiles are none of those that there are");
}

// The chunk of the filter g [taps] that begins at tap (row, column) as numbers of a tile, `next`
// floats apart; behind the last taps are zeros.
static void filter_transform(const Winograd *t, const float *g, const int64_t *taps, int64_t row,
                             int64_t column, float *to, int64_t next)
{
	double half[WINOGRAD_INPUTS][WINOGRAD_TAPS] = {{0}};
	for (int i = 0; i < t[0].inputs; i++)
		for (int j = 0; j < t[1].taps && column + j < taps[1]; j++)
			for (int k = 0; k < t[0].taps && row + k < taps[0]; k++)
				half[i][j] += t[0].filter[i][k] * (double)g[(row + k) * taps[1] + column + j];
	for (int i = 0; i < t[0].inputs; i++)
		for (int j = 0; j < t[1].inputs; j++, to += next) {
			double sum = 0;
			for (int k = 0; k < t[1].taps; k++)
				sum += half[i][k] * t[1].filter[j][k];
			*to = (float)sum;
		}
}

bool interpret_hook_kernel_pack_winograd(Interp *in, Op *op)
{
	Tensor *w = interp_operand(in, op, 0), *out = w ? interp_result(in, op, 0) : NULL;
	Winograd t[2];
	if (!out || !interp_check_f32(in, op, w) || !transforms_of(op, t))
		return false;
	const int64_t outputs = w->dims[0], channels = w->dims[1], q = out->dims[3],
				  *taps = w->dims + 2;
	const int64_t across = winograd_chunks(taps[1], t[1].taps), depth = out->dims[2];
	float *to = out->data;
	memset(to, 0, tensor_bytes(out));
	for (int64_t o = 0; o < outputs; o++)
		for (int64_t c = 0; c < depth; c++) {
			const int64_t first = o / q * t[0].inputs * t[1].inputs, chunk = c / channels;
			filter_transform(
				t, (const float *)w->data + (o * channels + c % channels) * taps[0] * taps[1], taps,
				chunk / across * t[0].taps, chunk % across * t[1].taps,
				to + (first * depth + c) * q + o % q, depth * q);
		}
	return true;
}

// ---- convolution --------------------------------------------------------------------------------

typedef struct Tiles {
	Winograd t[2];      // along rows, along columns
	int numbers_of;     // a tile
	const float *x, *w; // one image; weights
	BlockedImages from, to;
	int64_t channels, q; // of x; of the result, side by side in w
	int64_t depth;       // channels of all chunks of the filter
	int64_t chunks;      // side by side
	int64_t top, left;
	int64_t apart[2]; // rows, columns of a tile
	double *numbers;  // [numbers_of x depth]: the tile, transformed
	double *sums;     // [numbers_of x q]
	double *out;      // the image that is made
} Tiles;

typedef double Matrix[WINOGRAD_INPUTS][WINOGRAD_INPUTS];

// out = a d b^T, with a [rows x high], b [columns x wide].
static void transform(int rows, int high, double (*a)[WINOGRAD_INPUTS], int columns, int wide,
                      double (*b)[WINOGRAD_INPUTS], Matrix d, Matrix out)
{
	Matrix half = {{0}};
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < wide; j++)
			for (int k = 0; k < high; k++)
				half[i][j] += a[i][k] * d[k][j];
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			out[i][j] = 0;
			for (int k = 0; k < wide; k++)
				out[i][j] += half[i][k] * b[j][k];
		}
}

// The input of the tile whose first result is (y, x), for all channels and chunks.
static void tile_read(Tiles *s, int64_t y, int64_t x)
{
	const int high = s->t[0].inputs, wide = s->t[1].inputs;
	Matrix d, v;
	for (int64_t c = 0; c < s->depth; c++) {
		const int64_t chunk = c / s->channels, row = chunk / s->chunks * s->t[0].taps,
					  column = chunk % s->chunks * s->t[1].taps;
		for (int i = 0; i < high; i++)
			for (int j = 0; j < wide; j++) {
				const int64_t h = y - s->top + (row + i) * s->apart[0],
							  at = x - s->left + (column + j) * s->apart[1];
				const bool inside = h >= 0 && h < s->from.rows && at >= 0 && at < s->from.columns;
				d[i][j] = inside ? s->x[blocked_at(&s->from, c % s->channels, h, at)] : 0;
			}
		transform(high, high, s->t[0].in, wide, wide, s->t[1].in, d, v);
		for (int i = 0; i < s->numbers_of; i++)
			s->numbers[i * s->depth + c] = v[i / wide][i % wide];
	}
}

static void tile_multiply(Tiles *s, int64_t group)
{
	const int numbers = s->numbers_of;
	memset(s->sums, 0, sizeof *s->sums * (size_t)(numbers * s->q));
	for (int64_t i = 0; i < numbers; i++)
		for (int64_t c = 0; c < s->depth; c++) {
			const double v = s->numbers[i * s->depth + c];
			const float *w = s->w + ((group * numbers + i) * s->depth + c) * s->q;
			for (int64_t o = 0; o < s->q; o++)
				s->sums[i * s->q + o] += v * (double)w[o];
		}
}

// Of output channel `o` of a group, as far as the results are in the image.
static void tile_write(Tiles *s, int64_t group, int64_t o, int64_t y, int64_t x)
{
	const int wide = s->t[1].inputs, rows = s->t[0].tile, columns = s->t[1].tile;
	const int64_t channel = group * s->q + o;
	Matrix d, out;
	for (int i = 0; i < s->numbers_of; i++)
		d[i / wide][i % wide] = s->sums[i * s->q + o];
	transform(rows, s->t[0].inputs, s->t[0].out, columns, wide, s->t[1].out, d, out);
	const int64_t down = s->apart[0], across = s->apart[1];
	for (int i = 0; i < rows && y + i * down < s->to.rows; i++)
		for (int j = 0; j < columns && x + j * across < s->to.columns; j++)
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

// Where tile `i` along an axis begins, of rows or columns that may lie apart: those which begin
// side by side come first.
static int64_t tile_at(const Tiles *s, int64_t i, int axis)
{
	const int64_t apart = s->apart[axis];
	return i / apart * apart * s->t[axis].tile + i % apart;
}

static void image_run(Tiles *s, int64_t groups)
{
	const int64_t rows = s->to.rows, columns = s->to.columns;
	for (int64_t y = 0, down; (down = tile_at(s, y, 0)) < rows; y++)
		for (int64_t x = 0, across; (across = tile_at(s, x, 1)) < columns; x++)
			tile_run(s, groups, down, across);
}

static bool tiles_open(Interp *in, const Op *op, const Tensor *x, const Tensor *w,
                       const Tensor *out, Tiles *s)
{
	int64_t pad[4], taps[2];
	*s = (Tiles){.channels = op_int(op, "in_channels", 0)};
	if (op_ints(op, "taps", taps, 2) != 2 || op_ints(op, "paddings", pad, 4) != 4 ||
	    op_ints(op, "dilations", s->apart, 2) != 2)
		return op_error(op, "taps, paddings or dilations are malformed");
	if (!transforms_of(op, s->t))
		return false;
	s->depth = w->dims[2];
	s->chunks = winograd_chunks(taps[1], s->t[1].taps);
	s->numbers_of = s->t[0].inputs * s->t[1].inputs;
	s->top = pad[0];
	s->left = pad[1];
	s->from = blocked_images(x);
	s->to = blocked_images(out);
	s->q = w->dims[3];
	s->w = w->data;
	const size_t numbers = (size_t)s->numbers_of;
	s->numbers = NEW_ARRAY(interp_arena(in), numbers * (size_t)s->depth, double);
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
