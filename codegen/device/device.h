// Functions of CUDA that run on the device: nests and kernels as blocks of threads. Leaves
// functions in a Codegen. Uses codegen/nest, codegen/func and what is below.
#ifndef PDCC_CODEGEN_DEVICE_DEVICE_H
#define PDCC_CODEGEN_DEVICE_DEVICE_H

#include "codegen/nest/nest.h"

// ---- nest.c -------------------------------------------------------------------------------------

bool cuda_nest_emit(KernelFunc *k);

#endif
