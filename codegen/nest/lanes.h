// A tile of lanes over the innermost loop of a nest, which lanes.c prints and lanes_row.c has
// several of in a row.
#ifndef PDCC_NEST_LANES_H
#define PDCC_NEST_LANES_H

#include "codegen/nest/nest.h"

typedef struct LaneTile {
	Nest *n;
	Lanes lanes;
	int width;
	int vector;         // the lanes of a vector, of the widest that is accumulated
	bool joins;         // what fills no vector is in a tile with whole vectors
	int ngroup, cgroup; // the group being gathered
	const Op **group;
	const char *first; // the index of lane 0
	bool stores;       // sums as they are, in whole vectors
	PointerMap sums;   // Value in the body -> the array whose element it is
} LaneTile;

void lane_tile_init(LaneTile *l, Nest *n);
// The block in `width` lanes, of which the first has the index `first`, a C expression.
bool lane_tile_print(LaneTile *l, int width, const char *first, int depth);
// Whether what is stored is sums as they are, in arrays of which vectors can be made.
bool lane_stores_sums(const Nest *n);

#endif
