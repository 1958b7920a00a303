// What the files that print loop.nest for CUDA share: device/nest.c, device/index.c, device/wide.c,
// device/turn.c, device/reduce.c.
#ifndef PDCC_CUDA_NEST_H
#define PDCC_CUDA_NEST_H

#include "codegen/nest/nest.h"

// ---- device/index.c: how wide positions are, and what divides them ------------------------------

// Sets k->index (and k->sizes) for a nest: int where no position can become too large for it.
void index_width_choose(const Nest *n);
// The largest power of two up to 16 that divides a size, or what a load of `op` addresses when
// `arg`, where it is used, is a multiple of `width`.
int size_power(Context *c, const Dim *d);
int index_power(const Scalars *s, const Value *index, const Value *arg, int width);
int load_power(const Scalars *s, const Op *load, const Value *arg, int width);

// ---- device/wide.c: several elements side by side -----------------------------------------------

// A block of scalar operations for `width` positions of an index at once: loads of what lies side
// by side are one access.
typedef struct WideBlock {
	Scalars *s;
	const Block *body;
	const Value
		*arg; // goes up by one from lane to lane; NULL: positions of lanes have nothing in common
	int width;
	bool (*is_vector)(const struct WideBlock *l, const Op *load);
	const Nest *nest;  // for is_vector
	const char *first; // C expression: the index in the first lane
	const char *rest;  // how many lanes there are at the end of memory; NULL: always all
	PointerMap state;  // Op -> how it depends on the lane
	PointerMap vector, base,
		lane; // Op -> itself: one access; known for the first lane; computed for each
} WideBlock;

// How many lanes suit the loads and the results of a block; 1: none.
int wide_lanes(const Scalars *s, const Block *body, const Value *arg, const Type *const *results,
               int nresult);
void wide_init(WideBlock *l);
// Whether some loads are made for all lanes at once.
bool wide_any(const WideBlock *l);
// What all lanes share, and the loads.
bool wide_base_print(WideBlock *l, int depth, Text *out);
// What each lane computes, inside of a loop over `l`, where the index has the name `name`.
bool wide_lane_print(WideBlock *l, const char *name, int depth, Text *out);
// A nest by vectors: false with *done unset where that does not suit.
bool nest_wide_print(Nest *n, const Dim *total, bool *done);

// ---- device/turn.c ------------------------------------------------------------------------------

// A nest by squares: *done unset where nothing is turned.
bool nest_turned_print(Nest *n, bool *done);

// ---- device/reduce.c: threads that reduce together ----------------------------------------------

// The form in which the reductions of a nest are shared by threads.
ReduceTeam reduce_team(const Nest *n, const Dim *total);

// ---- device/nest.c ------------------------------------------------------------------------------

// Names for the positions of element `e`, declared where something needs them; step: they are
// changed later.
void positions_print(Nest *n, const char *element, bool step, int depth);
void positions_advance(Nest *n, int depth);
// Whether an operation of the body that is needed has regions.
bool nest_has_regions(const Nest *n);

#endif
