// Passes on tensor arrays and stacks: stacks to arrays, arrays to tensors. Leaves neither. Uses
// lower/pass, lower/clean, lower/analysis and ir/.
#ifndef PDCC_LOWER_ARRAYS_ARRAYS_H
#define PDCC_LOWER_ARRAYS_ARRAYS_H

#include "lower/pass/pass.h"

// stacks.c: stacks to tensor arrays
bool pass_stacks(PassContext *p);
// arrays_forward.c: stores to loads, known lengths
bool pass_forward_arrays(PassContext *p);
// arrays.c: tensor arrays to tensors
bool pass_arrays(PassContext *p);

#endif
