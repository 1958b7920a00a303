// What kernels work in, as the pass scratch asks for it: one tensor.
#ifndef PDCC_LOWER_KERNELS_SCRATCH_H
#define PDCC_LOWER_KERNELS_SCRATCH_H

#include "ir/core/core.h"

const Type *library_scratch(Context *c, const Op *op);  // library.c: a call of cuBLASLt or cuDNN
const Type *winograd_scratch(Context *c, const Op *op); // winograd.c

#endif
