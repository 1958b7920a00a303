// What gradient operators of legacy programs are called after. Private to frontend/.
#ifndef PDCC_FRONTEND_GRADIENT_NAMES_H
#define PDCC_FRONTEND_GRADIENT_NAMES_H

#include "frontend/read/desc.h"
#include "ir/core/core.h"

#define GRAD "@GRAD" // what the gradient of a variable, and a slot of gradients, is called after it

// How many times an operator of this type differentiates another, whose row is
// *forward and whose type the first *n characters are; 0: it is no gradient operator.
int gradient_forward(const char *type, const OpInfo **forward, size_t *n);
// *keep: how many characters are in front of `end`.
bool name_ends_with(const char *s, const char *end, size_t *keep);
// The slot of the operator, among inputs or outputs, that is called `slot`, or after its gradient;
// `depth` counts @GRAD. `second`: the operator differentiates twice, and has other names as well.
const Paddle__OpSlot *gradient_slot(size_t n, Paddle__OpSlot *const *slots, const char *slot,
                                    int depth, bool second);
bool gradient_second_name(const char *name, const char *slot, int depth);
// Whether a gradient variable is called after the variable it belongs to.
bool gradient_named_after(const Paddle__OpSlot *gradient, const Paddle__OpSlot *of);
// What a gradient operator is given of its forward operator in a slot of that.
const Paddle__OpSlot *gradient_given(const Paddle__OpDesc *d, const char *slot, bool second);
// How well the operator `of` fits that the gradient operator `d` names; -1: it is another one.
int gradient_likeness(const Paddle__OpDesc *d, const Paddle__OpDesc *of, bool second);
// Why the attributes of a gradient operator cannot be passed over: one is unknown, or has another
// value than in each of the n operators that it may belong to; NULL: they can.
const char *gradient_objection(Context *c, const Paddle__OpDesc *d, size_t n,
                               Paddle__OpDesc *const *before);

#endif
