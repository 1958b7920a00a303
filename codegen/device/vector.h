// Regions that kernels of CUDA evaluate for 4 or 8 neighbouring elements at once; see
// device/vector.c.
#ifndef PDCC_CUDA_VECTOR_H
#define PDCC_CUDA_VECTOR_H

#include "codegen/device/device.h"

enum { VECTOR_LANES = 8 }; // at most

// Whether `wide` neighbours along the region's argument `axis` can be evaluated together: where it
// is read, it is the last index of a load of elements that are aligned when it is a multiple of
// `wide`.
bool vector_suits(const Region *r, int axis, int wide);
// Whether so many neighbours along the last axis of a tensor may be moved at once.
bool vector_aligned(const Value *tensor, int wide);
// Whether the region reads elements of 2 bytes along that argument: 8 of them are 16 bytes.
bool vector_reads_halves(const Region *r, int axis);
// The statements that evaluate the region where s has the names of its arguments, `wide` neighbours
// along the argument `axis`; acc: what the first argument is in each of them, or NULL. values[l]
// become what is yielded. False after a diagnostic.
bool vector_region_print(Scalars *s, const Region *r, int axis, int wide, const char *const *acc,
                         Text *out, const char **values);

#endif
