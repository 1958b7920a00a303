// Derivatives of programs: what `--grad FETCH --wrt A,B` and `--jvp FETCH --wrt A,B` ask for.
// Leaves operations that compute them beside the program's own, and fetches behind all others. Uses
// ir/gradient and ir/.
#ifndef PDCC_LOWER_GRAD_GRAD_H
#define PDCC_LOWER_GRAD_GRAD_H

#include "ir/core/core.h"
#include "ir/gradient/gradient.h"

// How derivatives go about it, whatever they are of.
typedef struct DeriveHow {
	bool expand; // operators that go step by step may become loops: strip-backward leaves them so
	RematHow remat;
} DeriveHow;

typedef struct Derivative {
	bool forward;   // how `of` moves when `wrt` moves, or else the gradients of `of`
	const char *of; // a fetched tensor
	int nwrt;
	const char *const *wrt; // feeds, parameters or other values
	const char *cotangent;  // reverse: the name of the new input that holds what comes in for `of`;
	                        // NULL: ones, which is the gradient of the sum of its elements
} Derivative;

// Adds these derivatives to the module, one after the other: a later one may be of what an earlier
// one fetches. Reverse: a fetch `grad.A` for each of wrt; of a derivative OF, `OF.A`. Forward: an
// input `tangent.A` for each of wrt, and a fetch `tangent.OF`. False after a diagnostic.
bool differentiate(Op *module, int n, const Derivative *list, const DeriveHow *how);
// What adds derivatives to a module: differentiate() or train(). False after a diagnostic.
typedef bool DeriveFn(Op *module, const DeriveHow *how, const void *arg);
// Says on loops of the module of how many rounds they keep the beginning (their attribute
// `checkpoints`), as many as there is room for when what all loops keep, once `derive` has been
// there, is to be at most `budget` bytes; or else sets how->remat, when that is enough. False after
// a diagnostic: it cannot be done, or is not known.
bool checkpoint_loops(Op *module, int64_t budget, DeriveFn *derive, DeriveHow *how,
                      const void *arg);
// The name of what the derivative fetches for wrt number i; forward has one.
const char *derivative_name(Context *c, const Derivative *d, int i);

#endif
