// What the files that print loop.nest for CUDA share: device/nest.c, device/wide.c, device/turn.c,
// device/reduce.c. Which form a nest has, its attributes say (lower/cuda/forms.c).
#ifndef PDCC_CUDA_NEST_H
#define PDCC_CUDA_NEST_H

#include "codegen/nest/nest.h"

// ---- device/wide.c: several elements side by side -----------------------------------------------

// A block of scalar operations for `width` positions of an index at once: loads of what lies side
// by side are one access.
typedef struct WideBlock {
	Scalars *s;
	Lanes lanes;       // of its loads those with the attribute `lanes` are one access
	const char *first; // C expression: the index in the first lane
	const char *rest;  // how many lanes there are at the end of memory; NULL: always all
	PointerMap vector, base,
		lane; // Op -> the name of its vector; itself: known for the first lane; computed for each
} WideBlock;

// With s and lanes but for what lanes_find fills.
void wide_init(WideBlock *l);
// What all lanes share, and the loads.
bool wide_base_print(WideBlock *l, int depth, Text *out);
// What each lane computes, inside of a loop over `l`, where the index has the name `name`.
bool wide_lane_print(WideBlock *l, const char *name, int depth, Text *out);
// A nest by vectors.
bool nest_wide_print(Nest *n, const Dim *total);

// ---- device/turn.c ------------------------------------------------------------------------------

// A nest by squares.
bool nest_turned_print(Nest *n);

// ---- device/nest.c ------------------------------------------------------------------------------

// Names for the positions of element `e`, declared where something needs them; step: they are
// changed later.
void positions_print(Nest *n, const char *element, bool step, int depth);
void positions_advance(Nest *n, int depth);

#endif
