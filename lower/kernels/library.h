// Matrices as libraries see them (library.c).
#ifndef PDCC_LOWER_KERNELS_LIBRARY_H
#define PDCC_LOWER_KERNELS_LIBRARY_H

#include "ir/core/core.h"

// How many matrices lie in front of the last two dims; and how far apart they are in an operand of
// a product of that type, 0: there is one for all, NULL: they lie otherwise.
const Dim *matrix_count(Context *c, const Type *t);
const Dim *matrix_stride(Context *c, const Type *t, const Type *out);

#endif
