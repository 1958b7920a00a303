// Regions that kernels of CUDA evaluate for 4 or 8 neighbouring elements at once; see
// device/vector.c.
#ifndef PDCC_CUDA_VECTOR_H
#define PDCC_CUDA_VECTOR_H

#include "codegen/device/device.h"
#include "lower/analysis/rows.h"

enum { VECTOR_LANES = 8 }; // at most

// The statements that evaluate the region where s has the names of its arguments, `wide` neighbours
// along the argument `axis`; acc: what the first argument is in each of them, or NULL. values[l]
// become what is yielded. False after a diagnostic.
bool vector_region_print(Scalars *s, const Region *r, int axis, int wide, const char *const *acc,
                         Text *out, const char **values);

#endif
