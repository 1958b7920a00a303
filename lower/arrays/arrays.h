// Passes on tensor arrays and stacks: stacks to arrays, arrays to tensors. Leaves neither. Uses
// lower/pass, lower/clean, lower/analysis and ir/.
#ifndef PDCC_LOWER_ARRAYS_ARRAYS_H
#define PDCC_LOWER_ARRAYS_ARRAYS_H

#include "lower/pass/pass.h"

// What each does: the table in lower/pipeline.c.
PassFunction pass_stacks, pass_forward_arrays, pass_arrays;

#endif
