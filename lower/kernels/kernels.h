// Passes that make kernels of operators: attention, softmax and norms, contractions in the layouts
// that their templates want, cut reductions, calls of libraries. Leaves kernel.* operations and
// nests. Uses lower/pass, lower/clean, lower/analysis, lower/target and ir/.
#ifndef PDCC_LOWER_KERNELS_KERNELS_H
#define PDCC_LOWER_KERNELS_KERNELS_H

#include "lower/pass/pass.h"

// What each does: the table in lower/pipeline.c.
PassFunction pass_attention, pass_decompose, pass_layout, pass_split_reductions, pass_winograd,
	pass_threads, pass_scratch;

#endif
