// What gradients of branches and loops share: values from around regions, and copies of these.
#ifndef PDCC_GRADIENT_CONTROL_H
#define PDCC_GRADIENT_CONTROL_H

#include "ir/gradient/gradient.h"

typedef struct Captures {
	Context *c;
	int n, cap;
	Value **list;
} Captures;

// Values whose gradients are wanted that code in the regions of op reads.
void captures_find(Captures *k, const Duals *d, const Op *op);
// Whether regions can hand on values of this type; whether they can all captures, else a diagnostic
// at op.
bool control_keeps(const Type *t);
bool captures_kept(const Op *op, const Captures *k);
// Copies of a block's operations, without the terminator, at the end of b's block.
void control_copy(Builder *b, const Block *from, ValueMap *m);
// Whether op stays, read or not.
bool control_stays(const Op *op);
void control_end(Builder *b, enum OpCode code, int n, Value *const *values);
// A gradient from around a region that is handed in, added to there, and comes back whole; NULL:
// nothing has come in for it yet.
Value *dual_taken(const GradientJob *g, Value *v);

#endif
