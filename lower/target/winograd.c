// The table of convolutions for which Winograd's transforms are worth their time and the weights
// that they make larger. Read by lower/kernels/winograd.c.
#include "lower/target/winograd.h"

// Rows count from the first that fits. Measured on AVX-512 and AVX2 (docs/performance.md).
static const struct {
	int tile;
	int64_t channels, outputs; // at least; of the input, of the result
	int64_t pixels;            // of an image of the result, at least
	int64_t products;          // for a pixel and two channels at most, where a direct one has 9
} rules[] = {
	{4, 16, 16, 256, 4},
	{2, 32, 32, 49, 6},
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

static int64_t tiles_of_image(const WinogradLayer *l, int tile)
{
	return tiles_along(l->rows, l->dilations[0], tile) *
	       tiles_along(l->columns, l->dilations[1], tile);
}

int winograd_tile(const WinogradLayer *l)
{
	const bool known = l->rows && l->columns;
	if (!known && (l->dilations[0] > 1 || l->dilations[1] > 1))
		return 0; // how far tiles stick out is not known
	const int64_t pixels = known ? l->rows * l->columns : UNKNOWN;
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const int tile = rules[i].tile, numbers = (tile + 2) * (tile + 2);
		if (l->channels >= rules[i].channels && l->outputs >= rules[i].outputs &&
		    pixels >= rules[i].pixels &&
		    (!known || tiles_of_image(l, tile) * numbers <= pixels * rules[i].products))
			return tile;
	}
	return 0;
}

int64_t winograd_group(const WinogradLayer *l, int tile)
{
	const int64_t numbers = (tile + 2) * (tile + 2), size = (int64_t)sizeof(float);
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
