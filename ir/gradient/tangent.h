// What the files of tangents (tangent*.c) share; gradient.h says what a tangent is.
#ifndef PDCC_TANGENT_H
#define PDCC_TANGENT_H

#include "ir/gradient/gradient.h"

// Builds right behind op.
Builder tangent_behind(Op *op);
// NULL after a diagnostic.
Value *tangent_or_zero(Builder *b, Duals *d, Value *v);

// tangent_control.c: the operation is gone afterwards, another stands for it. Its own results keep
// their tangents in `d`.
bool tangent_branch(Duals *d, Op *op);
bool tangent_while(Duals *d, Op *op);
// tangent_nest.c: of a nest, and of what stands in one.
bool tangent_nest(Duals *d, Op *nest);
bool tangent_reduce(Duals *d, Op *reduce);
bool tangent_load(Duals *d, Op *load);

#endif
