// Kernels of CUDA that take a row at a time: cuda_rows.c; and attention: cuda_attention.c.
#ifndef PDCC_CUDA_ROWS_H
#define PDCC_CUDA_ROWS_H

#include "codegen.h"

bool cuda_softmax_emit(KernelFunc *k);
bool cuda_layer_norm_emit(KernelFunc *k);
// Threads that it is for, where a warp has a row; else blocks.
const Dim *cuda_rows_total(Context *c, const Op *op);

bool cuda_attention_emit(KernelFunc *k);
const Dim *cuda_attention_blocks(Context *c, const Op *op);

#endif
