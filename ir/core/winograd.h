// Winograd's convolutions F(m, 3): m x m results of a 3 x 3 filter from (m + 2) x (m + 2) elements
// of the input, with that many products instead of 9 m m. Source: Lavin and Gray, "Fast algorithms
// for convolutional neural networks", 2015; the matrices are those of Toom and Cook.
#ifndef PDCC_IR_CORE_WINOGRAD_H
#define PDCC_IR_CORE_WINOGRAD_H

#include <stdbool.h>

enum { WINOGRAD_INPUTS = 6 }; // most that a row of a tile needs

// In one dimension: result = out (filter taps) * (in inputs), elementwise in the middle.
typedef struct Winograd {
	int tile;                                         // m: 2 or 4
	int inputs;                                       // m + 2
	const double *points;                             // tile / 2: with 0, both signs, infinity
	double filter[WINOGRAD_INPUTS][3];                // of `inputs` rows
	double in[WINOGRAD_INPUTS][WINOGRAD_INPUTS];      // inputs x inputs
	double out[WINOGRAD_INPUTS - 2][WINOGRAD_INPUTS]; // tile x inputs
} Winograd;

// False: there is none of that size.
bool winograd_init(Winograd *w, int tile);

#endif
