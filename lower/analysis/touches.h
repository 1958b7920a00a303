// What steps of a CUDA program touch: bytes, sizes and conditions on the device, how the run goes.
// Behind the plan. Leaves the IR as it was. Uses ir/ and what else is in lower/analysis.
#ifndef PDCC_LOWER_ANALYSIS_TOUCHES_H
#define PDCC_LOWER_ANALYSIS_TOUCHES_H

#include "lower/analysis/analysis.h"
#include "lower/analysis/edges.h"

// What a step touches lies in one of these memories; each output is one more.
enum { MEMORY_WORKSPACE, MEMORY_STATE, MEMORY_SIZES, MEMORY_CONDITIONS, MEMORY_OUTPUTS };

// What one step does, for the order of steps.
typedef struct Touches {
	Context *ctx;
	Arena *arena;
	Accesses accesses;
	int nsize, csize; // sizes on the device that are named so far: numbers of MEMORY_SIZES
	const Dim **sizes;
	int ntensor, nsymbol; // arguments: of the step that was noted last, at most
} Touches;

void touch_tensor(Touches *t, const Value *v, unsigned how);
void touch_place(Touches *t, const Place *p, unsigned how);
void touch_output(Touches *t, int col, unsigned how);
void touch_state(Touches *t, unsigned how); // how the run goes
void touch_number(Touches *t, int memory, int number, unsigned how);
// A size that a run finds.
void touch_size(Touches *t, const Dim *sym, unsigned how);
// All that an operation that is a step touches; all that setting sizes on a branch touches.
void touch_op(Touches *t, const Op *op);
void touch_edge_sizes(Touches *t, const EdgeSizes *z, const Op *op, int s);
// What loop.update must check when it runs.
typedef struct UpdateNeeds {
	bool sign, end;           // whether the position may be negative, or behind the last slice
	bool length;              // whether the slice may be too short for what is written
	const Dim *slice, *count; // elements of a slice, and of what is written
} UpdateNeeds;
UpdateNeeds update_needs(const Op *op);
// Whether a step may tell a failure of the run: it checks indices from data, or room.
bool op_may_fail(const Op *op);
// Whether touch_op names that size.
bool op_touches_size(Arena *a, const Op *op, const Dim *sym);

#endif
