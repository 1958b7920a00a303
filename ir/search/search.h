// Searching, counting, order statistics and comparisons of whole tensors: what these operators
// mean, as loop nests. Leaves the results built where a Builder stands; the operator table has its
// hooks, so nobody else includes it. Uses ir/build and ir/infer.
#ifndef PDCC_IR_SEARCH_SEARCH_H
#define PDCC_IR_SEARCH_SEARCH_H

#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/infer/infer.h"

#endif
