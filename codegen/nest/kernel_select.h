// What the kernels that choose elements have in common: kernel_select.c, device/select.c.
#ifndef PDCC_CODEGEN_KERNEL_SELECT_H
#define PDCC_CODEGEN_KERNEL_SELECT_H

#include "codegen/nest/nest.h"

// Whether `a` comes before `b` in kernel.sort, ties aside, as a C expression; NaN is larger than
// all else.
const char *sort_comes_first(KernelFunc *k, DType t, const char *a, const char *b);
// The keys that the templates of kernel.nms share, and its helper: how many there are; 0: after a
// diagnostic, or not for such boxes.
int nms_keys(KernelFunc *k, TemplateKey *keys);
// What that helper is called, which says how much two boxes overlap.
const char *nms_overlap_name(const KernelFunc *k, const Type *boxes);
// kernel.scan in sequence, a line at a time; with CUDA a thread has a line.
bool kernel_scan_emit(KernelFunc *k);

#endif
