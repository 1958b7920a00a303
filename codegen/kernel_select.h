// What the kernels that choose elements have in common: kernel_select.c, cuda_select.c.
#ifndef PDCC_CODEGEN_KERNEL_SELECT_H
#define PDCC_CODEGEN_KERNEL_SELECT_H

#include "codegen.h"

// Whether `a` comes before `b` in kernel.sort, ties aside, as a C expression; NaN is larger than all else.
const char *sort_comes_first(KernelFunc *k, DType t, const char *a, const char *b);
// The statements that choose the elements of row r one after the other; NULL after a diagnostic.
const char *sort_heap_text(KernelFunc *k);

#endif
