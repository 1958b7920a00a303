// The table of convolutions for which Winograd's transforms are worth their time and the weights
// that they make larger. Read by lower/kernels/winograd.c.
#include "lower/target/winograd.h"
#include "ir/core/winograd.h"

typedef struct Rule {
	int inputs;                // that a tile reads along an axis of several taps
	int axes;                  // of several taps
	int64_t least, most;       // taps along that with more of them
	int64_t channels, outputs; // at least; of the input, of the result
	int64_t pixels;            // of an image of the result, at least
	int64_t products;          // for a pixel and two channels at most, in percent of a direct one's
} Rule;

// The first that fits counts. Measured on AVX-512 and AVX2 (docs/performance.md).
static const Rule rules[] = {
	{6, 2, 3, 3, 16, 16, 256, 44},         {4, 2, 3, 3, 32, 32, 49, 66},
	{6, 2, 4, INT64_MAX, 16, 16, 144, 66}, {6, 2, 4, INT64_MAX, 32, 32, 49, 66},
	{6, 1, 3, INT64_MAX, 16, 16, 8, 75},
};

enum {
	UNKNOWN = 196, // pixels, and rows or columns, that are likely where a run finds them
	UNKNOWN_SIDE = 14,
	CACHE = 512 << 10,       // bytes of a group of tiles
	LARGE_CACHE = 2 << 20,   // the same where weights are large, since each group reads them again
	LARGE_WEIGHTS = 1 << 20, // bytes
};

static int64_t tiles_along(int64_t size, int64_t dilation, int64_t tile)
{
	return (size + tile * dilation - 1) / (tile * dilation) * dilation;
}

// Rows or columns of an image whose other side is `other`; 0 is what only a run knows.
static int64_t likely_side(int64_t size, int64_t other)
{
	if (size)
		return size;
	return other && UNKNOWN / other > UNKNOWN_SIDE ? UNKNOWN / other : UNKNOWN_SIDE;
}

static double pixels_of(const WinogradLayer *l)
{
	return (double)likely_side(l->rows, l->columns) * (double)likely_side(l->columns, l->rows);
}

static double tiles_of_image(const WinogradLayer *l, const WinogradTile *t)
{
	const int64_t rows = likely_side(l->rows, l->columns),
				  columns = likely_side(l->columns, l->rows);
	return (double)tiles_along(rows, l->dilations[0], t->results[0]) *
	       (double)tiles_along(columns, l->dilations[1], t->results[1]);
}

int64_t winograd_numbers(const WinogradTile *t)
{
	return (t->results[0] + t->chunk[0] - 1) * (t->results[1] + t->chunk[1] - 1);
}

int64_t winograd_depth(const WinogradLayer *l, const WinogradTile *t)
{
	return winograd_chunks(l->taps[0], t->chunk[0]) * winograd_chunks(l->taps[1], t->chunk[1]) *
	       l->channels;
}

// The chunks that need the fewest products for a result along an axis, of tiles that read `inputs`;
// false: there are none.
static bool chunk_of(int64_t taps, int inputs, int64_t *results, int64_t *chunk)
{
	*results = *chunk = 1;
	for (int64_t m = inputs - 2; m > 1 && taps > 2; m--) { // fewer, larger chunks come last
		const int64_t r = inputs + 1 - m;
		if (*chunk == 1 ||
		    winograd_chunks(taps, r) * *results <= winograd_chunks(taps, *chunk) * m) {
			*results = m;
			*chunk = r;
		}
	}
	return taps == 1 || *chunk > 1;
}

// Whether tiles stick out of the image too far, or numbers would lie beside those of no channel.
static bool is_wasteful(const WinogradLayer *l, const WinogradTile *t, int64_t percent)
{
	const int64_t chunks = winograd_depth(l, t) / l->channels;
	const double direct = pixels_of(l) * (double)(l->taps[0] * l->taps[1]);
	const double products = tiles_of_image(l, t) * (double)(winograd_numbers(t) * chunks);
	return (chunks > 1 && l->channels % l->lanes) || products * 100 > direct * (double)percent;
}

static bool rule_fits(const Rule *r, const WinogradLayer *l)
{
	const int64_t most = l->taps[0] > l->taps[1] ? l->taps[0] : l->taps[1];
	const int axes = (l->taps[0] > 1) + (l->taps[1] > 1);
	return axes == r->axes && most >= r->least && most <= r->most && l->channels >= r->channels &&
	       l->outputs >= r->outputs && pixels_of(l) >= (double)r->pixels;
}

bool winograd_tile(const WinogradLayer *l, WinogradTile *t)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const Rule *r = &rules[i];
		if (rule_fits(r, l) && chunk_of(l->taps[0], r->inputs, &t->results[0], &t->chunk[0]) &&
		    chunk_of(l->taps[1], r->inputs, &t->results[1], &t->chunk[1]) &&
		    !is_wasteful(l, t, r->products))
			return true;
	}
	return false;
}

const Dim *winograd_tiles_along(Context *c, const Dim *size, int64_t dilation, int64_t results)
{
	const Dim *high = dim_const(c, dilation * results), *one = dim_const(c, 1);
	const Dim *tiles = dim_div(c, dim_add(c, size, dim_sub(c, high, one)), high);
	return dim_mul(c, tiles, dim_const(c, dilation));
}

const Dim *winograd_stride_of(Context *c, const Dim *tiles, int64_t blocks, int64_t lanes)
{
	return dim_add(c, dim_mul(c, tiles, dim_const(c, blocks * lanes)), dim_const(c, lanes));
}

int64_t winograd_group(const WinogradLayer *l, const WinogradTile *t)
{
	const int64_t numbers = winograd_numbers(t), depth = winograd_depth(l, t);
	const int64_t size = (int64_t)sizeof(float), weights = numbers * depth * l->outputs * size;
	const int64_t cache = weights > LARGE_WEIGHTS ? LARGE_CACHE : CACHE;
	int64_t group = cache / (numbers * (depth + l->q) * size) / l->height * l->height;
	if (group < l->height)
		group = l->height;
	if (!l->images || !l->rows || !l->columns)
		return group;
	const int64_t tiles = l->images * tiles_along(l->rows, l->dilations[0], t->results[0]) *
	                      tiles_along(l->columns, l->dilations[1], t->results[1]);
	// A thread takes groups of tiles, each with groups of output channels.
	const int64_t wide = (l->outputs + l->q - 1) / l->q, parts = (l->threads + wide - 1) / wide;
	const int64_t share = (tiles + parts - 1) / parts;
	if (l->threads > 1 && share < group)
		group = (share + l->height - 1) / l->height * l->height;
	return group < tiles ? group : tiles;
}
