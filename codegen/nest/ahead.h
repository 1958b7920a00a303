// Packed operands read ahead: while the tiles of a panel are summed, each fetches a share of the
// panel behind it. Weights that no cache holds come from memory meanwhile, and a panel's first tile
// does not wait for all of it.
#ifndef PDCC_CODEGEN_NEST_AHEAD_H
#define PDCC_CODEGEN_NEST_AHEAD_H

#include "codegen/func/func.h"

// The tiles of a panel, in C: the next panel begins `panel` * `depth` behind `base`; `first` is
// where the tile at hand begins, of `extent`; there are `tiles` of them, 0: an open number, which a
// run counts as `count`, or which is large where that is NULL. A panel has `depth` steps of `width`
// elements.
typedef struct Ahead {
	const char *base, *panel, *first, *extent, *depth, *count;
	int64_t tiles, width;
} Ahead;

// How many elements of a step each of `tiles` fetches, of `width`, which it divides.
int64_t ahead_step(int64_t tiles, int64_t width);

// The arguments `ahead, step` of a tile's function, which fetches what lies at ahead + p * step in
// step p of the depth. Emits PD_PREFETCH; NULL after a diagnostic.
const char *ahead_share(KernelFunc *k, const Ahead *a);

// What sets `step` where a run counts the tiles; "": it is known.
const char *ahead_count(KernelFunc *k, const Ahead *a);

// Whether panels of so many bytes, all together, are worth it: fewer stay in a near cache.
bool ahead_pays(int64_t bytes);

#endif
