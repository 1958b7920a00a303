// Kernels that read through regions: made in rows.c, for decompose.c and attention.c.
#ifndef PDCC_ROWS_H
#define PDCC_ROWS_H

#include "lower/pass/pass.h"

// Region r yields the element of x at the position that its arguments give, as f32 when x is
// narrower.
bool region_read(Op *kernel, Region *r, Value *x);
// Region r yields what the kernel computed, an f32 first argument, as an element of the result.
bool region_pass(Op *kernel, Region *r);

#endif
