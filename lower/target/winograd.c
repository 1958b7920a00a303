// The table of convolutions for which Winograd's transforms are worth their time and the weights
// that they make larger. Read by lower/kernels/winograd.c.
#include "lower/target/winograd.h"

// Rows count from the first that fits. Measured on AVX-512 and AVX2 (docs/performance.md).
static const struct {
	int64_t taps[2], tile[2];  // along the axis with more taps, and along the other one
	int64_t channels, outputs; // at least; of the input, of the result
	int64_t pixels;            // of an image of the result, at least
	int64_t products;          // for a pixel and two channels at most, in percent of a direct one's
} rules[] = {
	{{3, 3}, {4, 4}, 16, 16, 256, 44}, {{3, 3}, {2, 2}, 32, 32, 49, 66},
	{{5, 5}, {2, 2}, 16, 16, 49, 66},  {{3, 1}, {4, 1}, 16, 16, 8, 75},
	{{4, 1}, {3, 1}, 16, 16, 8, 75},   {{5, 1}, {2, 1}, 16, 16, 8, 75},
};

enum {
	UNKNOWN = 196,           // pixels of an image that only a run knows
	CACHE = 512 << 10,       // bytes of a group of tiles
	LARGE_CACHE = 2 << 20,   // the same where weights are large, since each group reads them again
	LARGE_WEIGHTS = 1 << 20, // bytes
};

static int64_t tiles_along(int64_t size, int64_t dilation, int64_t tile)
{
	return (size + tile * dilation - 1) / (tile * dilation) * dilation;
}

static int64_t tiles_of_image(const WinogradLayer *l, const int64_t *tile)
{
	return tiles_along(l->rows, l->dilations[0], tile[0]) *
	       tiles_along(l->columns, l->dilations[1], tile[1]);
}

int64_t winograd_numbers(const WinogradLayer *l, const int64_t *tile)
{
	return (tile[0] + l->taps[0] - 1) * (tile[1] + l->taps[1] - 1);
}

bool winograd_tile(const WinogradLayer *l, int64_t *tile)
{
	const bool known = l->rows && l->columns, turned = l->taps[1] > l->taps[0];
	if (!known && (l->dilations[0] > 1 || l->dilations[1] > 1))
		return false; // how far tiles stick out is not known
	const int64_t pixels = known ? l->rows * l->columns : UNKNOWN;
	const int64_t direct = pixels * l->taps[0] * l->taps[1];
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		tile[0] = rules[i].tile[turned];
		tile[1] = rules[i].tile[!turned];
		if (l->taps[turned] == rules[i].taps[0] && l->taps[!turned] == rules[i].taps[1] &&
		    l->channels >= rules[i].channels && l->outputs >= rules[i].outputs &&
		    pixels >= rules[i].pixels &&
		    (!known || tiles_of_image(l, tile) * winograd_numbers(l, tile) * 100 <=
		                   direct * rules[i].products))
			return true;
	}
	return false;
}

int64_t winograd_group(const WinogradLayer *l, const int64_t *tile)
{
	const int64_t numbers = winograd_numbers(l, tile), size = (int64_t)sizeof(float);
	const int64_t weights = numbers * l->channels * l->outputs * size;
	const int64_t cache = weights > LARGE_WEIGHTS ? LARGE_CACHE : CACHE;
	int64_t group = cache / (numbers * (l->channels + l->q) * size) / l->height * l->height;
	if (group < l->height)
		group = l->height;
	if (!l->images || !l->rows || !l->columns)
		return group;
	const int64_t tiles = l->images * tiles_of_image(l, tile);
	// A thread takes groups of tiles, each with groups of output channels.
	const int64_t wide = (l->outputs + l->q - 1) / l->q, parts = (l->threads + wide - 1) / wide;
	const int64_t share = (tiles + parts - 1) / parts;
	if (l->threads > 1 && share < group)
		group = (share + l->height - 1) / l->height * l->height;
	return group < tiles ? group : tiles;
}
