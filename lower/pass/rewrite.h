// Small rewrites and questions that several passes share (rewrite.c).
#ifndef PDCC_LOWER_PASS_REWRITE_H
#define PDCC_LOWER_PASS_REWRITE_H

#include "ir/build/build.h"

// Replaces op's results by `with` (types must agree) and erases it.
void op_replace(Op *op, Value *const *with);
// The same type, sizes and bits.
bool tensors_equal(const Tensor *a, const Tensor *b);
// A new parameter (named after `name` and a suffix) holding t, read at `b`.
Value *build_parameter(Builder *b, const char *name, const char *suffix, Tensor *t);

// Element i of t as a scalar, in a loop region.
Value *build_element(Builder *b, const Tensor *t, int64_t i);
// Whether all that says where a slice begins and ends are attributes.
bool slice_is_fixed(const Op *op);
// A position known at compile time, in a loop region.
Value *build_index(Builder *b, int64_t v);

// Calls `visit` on every loop.nest of a region and of the control flow in it; it may replace the
// nest. False: a call gave that, after a diagnostic, and the rest was not visited.
bool nests_visit(Region *r, bool (*visit)(Op *nest));

#endif
