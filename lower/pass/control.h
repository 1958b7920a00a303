// What passes on pd.if and pd.while share: see control.c.
#ifndef PDCC_LOWER_CONTROL_H
#define PDCC_LOWER_CONTROL_H

#include "lower/pass/pass.h"

// Whether op has no effect but its results, its regions included. Whether a loop ends does not
// count.
bool control_is_pure(const Op *op);
bool region_is_pure(const Region *r);
// Whether an attribute of op mentions a size that a run finds: such a size is known only behind the
// operation that finds it.
bool attrs_are_found(const Op *op);
// Whether a size stands in the op's results' types, its attributes, or its blocks' arguments; not
// what is inside of it.
bool op_mentions(const Op *op, const Dim *size);
// Whether an operation of the module mentions the size that is neither `op` nor inside of it.
bool size_used_beside(const Op *op, const Dim *size);
// Whether a result is read, or a size that a run finds with it is: `full(shape(nonzero(x)))` needs
// no element of nonzero's result. A result that is not needed may go.
bool result_needed(const Value *result);
// Whether an operation, its regions included, works with a size that is found only at run time;
// whether one of the region does.
bool op_finds(const Op *op);
bool region_finds(const Region *r);
// Whether all results are tensors of sizes that no run has to find first.
bool results_are_sized(const Op *op);
// Visits all of the region that are `code` (OP_PD_IF or OP_PD_WHILE), inner ones first; a visit may
// replace what it visits. Stops at the first that fails.
bool control_visit(PassContext *p, Region *r, enum OpCode code,
                   bool (*visit)(PassContext *p, Op *op));
// A pd.if or pd.while without a stack, whose regions are one block each.
bool control_is_plain(const Op *op);
// A plain pd.while whose variables go through the condition as they come.
bool loop_is_plain(const Op *loop);
// The operations in a region, those of its own regions included; constants and terminators count
// nothing.
int region_size(const Region *r);
// Rebuilds the operation with the results (and variables) that `keep` says. The others must be
// unused.
Op *control_keep(Op *op, const bool *keep);
// Rebuilds the operation with its results (and variables) in another order: the i-th is the one
// that was from[i].
Op *control_order(Op *op, const int *from);
// Moves the operations of a region in front of `where` and drops the terminator, whose operands
// from `first` on are given.
void region_inline(Region *r, Op *where, int first, Value **given);
// As region_inline with a copy of the operations, through the map.
void region_copy(const Region *r, Op *where, int first, ValueMap *m, Value **given);
// Whether v is an argument or result of something inside of `op`.
bool value_is_in(const Value *v, const Op *op);
// Whether the use stands in the region, at any depth.
bool use_is_in(const Use *u, const Region *r);

#endif
