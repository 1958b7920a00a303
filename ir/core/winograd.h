// Winograd's convolutions F(m, r), one dimension at a time: m results of a filter of r taps from
// m + r - 1 elements of the input, with that many products instead of m r. Source: Lavin and Gray,
// "Fast algorithms for convolutional neural networks", 2015; the matrices are those of Toom and
// Cook.
#ifndef PDCC_IR_CORE_WINOGRAD_H
#define PDCC_IR_CORE_WINOGRAD_H

#include "ir/core/core.h"

enum { WINOGRAD_INPUTS = 6, WINOGRAD_TAPS = 5, WINOGRAD_TILE = 4 }; // most there are

// In one dimension: result = out (filter taps) * (in inputs), elementwise in the middle.
typedef struct Winograd {
	int tile;                                      // m: results
	int taps;                                      // r
	int inputs;                                    // m + r - 1: 1, 4 or 6
	int npoint;                                    // of `points`
	const double *points;                          // with 0, both signs, infinity; none for 1
	double filter[WINOGRAD_INPUTS][WINOGRAD_TAPS]; // inputs x taps
	double in[WINOGRAD_INPUTS][WINOGRAD_INPUTS];   // inputs x inputs
	double out[WINOGRAD_TILE][WINOGRAD_INPUTS];    // tile x inputs
} Winograd;

// How many chunks of `chunk` taps a filter of one tap or more has along an axis.
static inline int64_t winograd_chunks(int64_t taps, int64_t chunk)
{
	return 1 + (taps - 1) / chunk;
}

// The transforms along rows and along columns that the attributes `tile` and `chunk` name: each is
// F(1, 1), which is a product, F(2, 3), F(4, 3), F(3, 4) or F(2, 5). False: they name others, or
// are not there.
bool winograd_transforms(const Op *op, Winograd t[2]);

#endif
