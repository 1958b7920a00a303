// What a pass is, and what passes share when they rewrite (rewrite.h, control.h). Leaves the IR as
// sound as it was. Uses ir/ and lower/target.
#ifndef PDCC_LOWER_PASS_PASS_H
#define PDCC_LOWER_PASS_PASS_H

#include "lower/target/target.h"

typedef struct PassContext {
	Context *ctx;
	Op *module;
	const Target *target;
	bool verify; // run ir_verify after each pass
	bool time_report;
	const char *print_before,
		*print_after; // the pass around whose runs the module goes to standard error; "all"; NULL
	int64_t max_trip; // rounds that a loop may take, 0: any number
	bool allow_tf32;  // CUDA: products of f32 may round their operands
	bool cuda_libs;   // CUDA: products and convolutions are calls of cuBLASLt and cuDNN where these
	                  // can do them
	bool winograd;    // convolutions may go through Winograd's transforms
	int threads;      // C: as many may share a run; below 2: one
	int64_t max_array; // elements of a tensor array where the program does not say; 0: the caller
	                   // says it
} PassContext;

typedef bool PassFunction(PassContext *p); // false after a diagnostic

typedef struct Pass {
	const char *name, *summary;
	PassFunction *run;
} Pass;

#endif
