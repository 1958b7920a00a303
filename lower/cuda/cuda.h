// Passes for CUDA alone. Leaves in the IR what its printers need to know. Uses lower/pass,
// lower/analysis, lower/target and ir/.
#ifndef PDCC_LOWER_CUDA_CUDA_H
#define PDCC_LOWER_CUDA_CUDA_H

#include "lower/pass/pass.h"

// What each does: the table in lower/pipeline.c.
PassFunction pass_count_loops, pass_cuda_epilogues, pass_cuda_forms, pass_cuda_steps,
	pass_cuda_waits, pass_check_kernels, pass_check_waits;

#endif
