// What happens on the way to a block: sizes that arguments set, and, for CUDA, tensors that move,
// one after the other. Behind the plan. Leaves the IR as it was. Uses ir/core.
#ifndef PDCC_LOWER_ANALYSIS_EDGES_H
#define PDCC_LOWER_ANALYSIS_EDGES_H

#include "lower/analysis/places.h"

// ---- sizes --------------------------------------------------------------------------------------

// The symbols in the types of a block's arguments take the sizes of what a branch passes.
typedef struct EdgeSize {
	const Dim *sym, *from; // in the sizes before the branch
} EdgeSize;

typedef struct EdgeSizes {
	int n;
	const EdgeSize *items;
} EdgeSizes;

// The first argument with a symbol sets it.
EdgeSizes edge_sizes_find(Arena *a, const Op *op, int s);
const Dim *edge_size_from(const EdgeSizes *z, const Dim *sym); // NULL: the branch does not set it
// Whether a size of an argument is by its form that of the value passed.
bool edge_size_is_same(const EdgeSizes *z, const Dim *want, const Dim *have);
// Whether any size changes or is to be checked.
bool edge_sizes_work(const EdgeSizes *z, const Op *op, int s);

// ---- moves --------------------------------------------------------------------------------------

// One step of what CUDA does: `arg` gets the elements of `value`, which lie where `source` did.
typedef struct EdgeMove {
	const Value *arg, *value, *source;
	Place to, from;
	const Type *back; // as what the place that the value comes from takes what was in the other;
	                  // NULL: it moves there, and that is all
} EdgeMove;

// The moves to the arguments of successor s, one behind the other, in *moves; their number. All
// values are read before any is written: each move waits for those that read what it writes. What
// is left goes round in circles: two buffers take each other's place, and whoever wants what was in
// the first finds it in the second. Where nothing waits, those whose sizes are known go first:
// little steps that stand beside each other are one kernel. -1: the plan does not say.
int edge_moves_find(Arena *a, const Op *op, int s, const EdgeMove **moves);

// How many elements a move has: sizes on the device, and what the host knows.
enum { MOVE_SIZES = 2 };
typedef struct MoveCount {
	const Dim *host;
	int n;
	const Dim *sizes[MOVE_SIZES];
} MoveCount;

// False: it is no such product.
bool move_count(Context *c, const Type *t, MoveCount *count);
// At most how many bytes, and elements, of v move, whatever sizes a run that fails finds.
const Dim *move_bytes(Context *c, const Value *v);
const Dim *move_most(Context *c, const Value *v);

#endif
