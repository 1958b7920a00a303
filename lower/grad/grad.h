// Gradients of programs: what `--grad FETCH --wrt A,B` asks for. Leaves operations that compute
// them behind the program's own, and a fetch `grad.A` for each. Uses ir/gradient and ir/.
#ifndef PDCC_LOWER_GRAD_GRAD_H
#define PDCC_LOWER_GRAD_GRAD_H

#include "ir/core/core.h"

// Adds to the module the gradients of the fetched tensor `of` (the sum of its elements) with
// respect to feeds, parameters or other values of these names, as fetches in the columns behind all
// others. False after a diagnostic.
bool differentiate(Op *module, const char *of, int nwrt, const char *const *wrt);

#endif
