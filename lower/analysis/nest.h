// The loops of nests and reductions as printers see them, how loads move along these, what divides
// an index, and what lanes side by side share. Leaves the IR as it was. Passes that choose forms
// and printers that follow them ask the same questions here.
#ifndef PDCC_LOWER_ANALYSIS_NEST_H
#define PDCC_LOWER_ANALYSIS_NEST_H

#include "ir/base/map.h"
#include "ir/core/core.h"

// ---- nest_loops.c -------------------------------------------------------------------------------

// Whether arguments i and i + 1 of a block are nothing but indices of loads side by side, in axes
// of which the second is `extent` long: then they can be one.
bool nest_args_beside(const Block *b, int i, const Dim *extent);
// A block argument, or several merged into their last; and how far it goes.
typedef struct NestLoop {
	const Value *arg;
	const Dim *extent;
} NestLoop;

// Merges arguments that only ever stand side by side in loads of tensors with the same dims there:
// fewer and longer loops. Fills loops[MAX_RANK], and `merged` with each argument that is 0 and the
// next one, which runs for both; returns how many loops there are.
int nest_loops(Context *c, const Block *b, const Dim *const *extents, PointerMap *merged,
               NestLoop *loops);
// Of those the ones that are longer than 1; returns how many are left.
int nest_loops_long(NestLoop *loops, int nloop);
// Notes in `needed` each operation that the end of the block needs, those of regions included.
void nest_needs(const Block *b, PointerMap *needed);

// The operand at which the indices of a load begin; 0: not a load.
int load_indices_at(const Op *op);
const Type *load_tensor(const Op *load); // the type of what it reads
// How much an index grows when `var` grows by one; some large number when that is not a constant.
int64_t index_stride(const Value *index, const Value *var);
// The one constant that an index is divided by, in quotients and rests; 0: none, or several.
int64_t index_divisor(const Value *index);
// 0: the load does not move with var; 1: to the next element; 2: otherwise.
int load_stride(const Op *load, const Value *var);

// How many loads stay, move to the next element, or jump when an index grows by one.
typedef struct Strides {
	int n[3];
} Strides;

void strides_count(const Block *b, const Value *var, Strides *count);

// The largest power of two up to 16 that divides a size, an index, or what a load addresses when
// `arg`, where it is used, is a multiple of `width`.
int size_power(Context *c, const Dim *d);
int index_power(Context *c, const PointerMap *merged, const Value *index, const Value *arg,
                int width);
int load_power(Context *c, const PointerMap *merged, const Op *load, const Value *arg, int width);

// ---- lanes.c ------------------------------------------------------------------------------------

// How a value depends on the lane. Uniform: the same, though its operands move.
typedef enum LaneState { LANE_SAME = 1, LANE_UNIFORM, LANE_MOVES } LaneState;

// A block of scalar operations for several positions of an index at once.
typedef struct Lanes {
	Context *ctx;
	const Block *body;
	const PointerMap *merged; // of nest_loops
	const Value *arg;  // goes up by one from lane to lane; NULL: positions of lanes have nothing in
	                   // common
	const Value *also; // another argument that differs from lane to lane; NULL: none
	int width;         // lanes, which begin at a multiple of it; 0: that is not known
	PointerMap state;  // Op -> LaneState, filled by lanes_find
	PointerMap vector; // load -> itself: one access for all lanes
} Lanes;

void lanes_find(Lanes *l, Arena *a);
LaneState lane_state(const Lanes *l, const Value *v);
bool lanes_load_at_once(const Lanes *l, const Op *load);

#endif
