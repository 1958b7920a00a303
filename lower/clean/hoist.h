// What hoist.c and hoist_guard.c share.
#ifndef PDCC_LOWER_HOIST_H
#define PDCC_LOWER_HOIST_H

#include "lower/pass/control.h"

// Whether op costs so much that a loop without rounds must not run it: products, composites,
// branches that hold such.
bool op_is_dear(const Op *op);
// Whether the loop may run no round, and its condition can be asked in front of it.
bool loop_wants_guard(const Op *loop);
// Moves the operations of the body, which read nothing made in it but by each other, in front of
// the loop, for the case that there is a round.
void hoist_guarded(Op *loop, Op *const *ops, int n);

#endif
