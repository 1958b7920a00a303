// What the files of the fuse pass share. Private to lower/nests/fuse*.c.
#ifndef PDCC_FUSE_H
#define PDCC_FUSE_H

#include "ir/build/build.h"
#include "lower/analysis/analysis.h"
#include "lower/target/target.h"

// ---- fuse_index.c: a scalar operation made simple -----------------------------------------------

// What gives the same as op, in front of it, or as good as the same: of x + 0 the sign of zero may
// differ; NULL: nothing simpler.
Value *scalar_simplified(Op *op);

// ---- fuse_simplify.c: scalar code made simple ---------------------------------------------------

// Folds index arithmetic with what is known about ranges, merges equal scalar operations and drops
// dead ones, in all regions of a nest or kernel.
void scalar_simplify(Op *op);
// ---- fuse_range.c: what is known of indices ----------------------------------------------------

// The index value as a size, when it is a constant or a loop.dim; else NULL.
const Dim *index_size(const Value *v);
// The size of the range that a region's argument runs over; NULL when the argument is no index.
const Dim *index_extent(const Value *arg);

// ---- fuse_inline.c: nests into their readers ----------------------------------------------------

// Replaces every load of the nest's result by the nest's body where that pays. True when the nest
// is gone.
bool nest_inline(Op *nest);
bool op_has_region_code(const Op *op); // a nest or a kernel: its regions hold scalar code
// Whether operand `i` of a load is the tensor that it reads.
bool load_reads(const Op *load, int i);
// Whether `op` may be computed at `to`, later in its block: no parameter that it reads is stored in
// between.
bool op_may_move(const Op *op, const Op *to);
// How many operations its regions have; `deep`: with those in the regions of these.
int op_count(const Op *op, bool deep);

// ---- fuse_epilogue.c: nests into the kernel that made what they read ----------------------------

// Merges an elementwise nest into the epilogue of the kernel whose result it reads. True when the
// nest is gone.
bool nest_merge_into_kernel(Op *nest, const Target *target); // NULL: none

// ---- fuse_join.c: nests and their first readers -------------------------------------------------

// Makes one nest of two where the second reads the first element by element, all over the block.
void block_join(Block *block);

#endif
