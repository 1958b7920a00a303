// Kernels that read through regions: made in rows.c, for decompose.c and attention.c.
#ifndef PDCC_ROWS_H
#define PDCC_ROWS_H

#include "lower.h"

// Region r yields the element of x at the position that its arguments give, as f32 when x is narrower.
bool region_read(Op *kernel, Region *r, Value *x);
// Region r yields what the kernel computed, an f32 first argument, as an element of the result.
bool region_pass(Op *kernel, Region *r);

// False after a diagnostic; what does not fit stays as it is.
bool softmax_to_kernel(const PassContext *p, Op *op);
bool layer_norm_to_kernel(const PassContext *p, Op *op);
// CUDA: pd.instance_norm and pd.group_norm, where the elements of a group lie side by side.
bool norm_of_channels_to_kernel(const PassContext *p, Op *op);

#endif
