// Passes for CUDA alone. Leaves in the IR what its printers need to know. Uses lower/pass,
// lower/analysis, lower/target and ir/.
#ifndef PDCC_LOWER_CUDA_CUDA_H
#define PDCC_LOWER_CUDA_CUDA_H

#include "lower/pass/pass.h"

// count_loops.c: loops whose rounds are known on entry count them, for CUDA
bool pass_count_loops(PassContext *p);
// forms.c: vectors, squares, teams of threads
bool pass_cuda_forms(PassContext *p);
// steps.c: what one block does; the forms of loops
bool pass_cuda_steps(PassContext *p);

#endif
