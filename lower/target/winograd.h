// Which convolutions are worth Winograd's transforms, by a table of measurements, and how much
// memory these work in (winograd.c).
#ifndef PDCC_LOWER_TARGET_WINOGRAD_H
#define PDCC_LOWER_TARGET_WINOGRAD_H

#include "ir/core/core.h"

// A convolution of stride 1 and one group.
typedef struct WinogradLayer {
	int64_t taps[2];               // rows, columns of its filter
	int64_t channels, outputs;     // of the input, of the result
	int64_t images, rows, columns; // of the result; 0: only a run knows
	int64_t dilations[2];          // rows, columns of a tile are so far from each other
	int64_t lanes;                 // channels in a block
	int64_t q;                     // output channels side by side in packed weights
	int64_t height;                // of the target's register tile
	int threads;                   // that may share it; below 2: one
} WinogradLayer;

// Of rows and of columns: results of a tile, and taps that one transform takes.
typedef struct WinogradTile {
	int64_t results[2], chunk[2];
} WinogradTile;

// How to transform a convolution; false: a direct one is faster.
bool winograd_tile(const WinogradLayer *l, WinogradTile *t);
// The products of a tile for each two channels and each chunk of taps.
int64_t winograd_numbers(const WinogradTile *t);
// Channels of the input, for each chunk of taps.
int64_t winograd_depth(const WinogradLayer *l, const WinogradTile *t);
// Tiles along an axis of such a size, with so many results each.
const Dim *winograd_tiles_along(Context *c, const Dim *size, int64_t dilation, int64_t results);
// The most tiles whose products are in memory at once.
int64_t winograd_group(const WinogradLayer *l, const WinogradTile *t);

// Floats from one of the numbers of `tiles` tiles to the next: of the input, with
// `blocks` blocks of channels, or of a group of output channels, which has as many blocks. One
// block more keeps it from being a power of two.
static inline int64_t winograd_stride(int64_t tiles, int64_t blocks, int64_t lanes)
{
	return (tiles * blocks + 1) * lanes;
}

// The same of as many tiles as a run finds.
const Dim *winograd_stride_of(Context *c, const Dim *tiles, int64_t blocks, int64_t lanes);

#endif
