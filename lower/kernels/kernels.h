// Passes that make kernels of operators: attention, softmax and norms, contractions in the layouts
// that their templates want, cut reductions, calls of libraries. Leaves kernel.* operations and
// nests. Uses lower/pass, lower/clean, lower/analysis, lower/target and ir/.
#ifndef PDCC_LOWER_KERNELS_KERNELS_H
#define PDCC_LOWER_KERNELS_KERNELS_H

#include "lower/pass/pass.h"

// attention.c: products around softmax to one kernel, for CUDA
bool pass_attention(PassContext *p);
// decompose.c: composites, transposed convolutions, softmax
bool pass_decompose(PassContext *p);
// and norms to kernels
// layout.c: contractions to kernels, blocked channels, packed weights
bool pass_layout(PassContext *p);
// split_reduce.c
bool pass_split_reductions(PassContext *p);
// winograd.c: convolutions by 3 x 3 filters
bool pass_winograd(PassContext *p);
// threads.c: what several threads of C share
bool pass_threads(PassContext *p);
// scratch.c: memory that kernels work in
bool pass_scratch(PassContext *p);

#endif
