// What the driver asks for, and what it gets.
#ifndef PDCC_CODEGEN_FUNC_OPTIONS_H
#define PDCC_CODEGEN_FUNC_OPTIONS_H

#include "ir/core/core.h"

typedef enum WeightsMode {
	WEIGHTS_AUTO,   // inline below 64 KiB, else a file
	WEIGHTS_INLINE, // arrays in model.c, hexadecimal floats
	WEIGHTS_FILE,   // model.weights, handed to model_init by the caller
	WEIGHTS_OBJECT  // model.weights pulled into the object file with .incbin (GNU assembler)
} WeightsMode;

// A name that the user chose, in place of the one that pdcc would give.
typedef struct NamePair {
	const char *old, *chosen;
} NamePair;

typedef struct CodegenOptions {
	const char *prefix;       // C identifier that all global symbols begin with: "model"
	const char *entry;        // what a run is called behind the prefix: "train_step"; NULL: "run"
	const char *header_name;  // "model.h": what the source includes
	const char *weights_name; // "model.weights": what .incbin reads and comments name
	const char *version;      // of pdcc: "0.1.0"
	const char *banner;       // what the code was made from: "model.pdmodel"
	const char *given;        // the options that the code hangs on: "--weights=file", or ""
	uint64_t model_hash;      // of the model's file
	const char *compile;      // CUDA: how the code says to compile it, or NULL
	WeightsMode weights;
	int nsize_name;
	const NamePair *size_names; // of sizes that the caller chooses or the run finds
	bool map;                   // C: CodegenResult gets a source map
	bool trace;         // C: model_trace, and calls of what it is given around each operator
	bool assert_finite; // C: a result that is not finite ends the run
	bool call;          // also print model_call, with a static workspace (static shapes only)
	bool shared; // for a shared library: what the header declares is visible outside of it, with
	             // model_call where shapes are static
} CodegenOptions;

// One launch of generated CUDA, for reports: see cuda/report.c for what sizes count as.
typedef struct CudaLaunch {
	const char *kernel;      // the function; several launches may share it
	int64_t blocks, threads; // threads: of a block; 0: what a library launches
	int shared;              // bytes of shared memory that the launch gives a block
	int access;              // the most bytes that a thread moves at once; 16 is best
	bool tensor_cores;
	int64_t read, written; // bytes of operands and results
} CudaLaunch;

// Lines of generated C, from 1, that do what operators of the model do.
typedef struct CodeSpan {
	const Op *op;    // of the lowered program
	int first, last; // lines
	int nloc;
	const Loc *const *locs; // of the operators
} CodeSpan;

typedef struct CodegenResult {
	Text source; // model.c or model.cu
	Text header; // model.h
	Text map;    // JSON: see --map in docs/internals.md
	int nspan;   // C, with a map: of model_run, then of functions; lines may be in several
	const CodeSpan *spans;
	const uint8_t *weights; // bytes of model.weights, header and all; NULL when they are inline
	size_t weights_size;
	int nstate;
	const char **states;     // names of the parameters that runs change
	int ntraced;             // with --trace
	const Op *const *traced; // the operations, by their number in events
	int nlaunch;             // CUDA
	const CudaLaunch *launches;
	int64_t least_bytes;   // CUDA: inputs, outputs and what is read of weights, each once
	const char *libraries; // CUDA: what to link with besides the runtime: " -lcublasLt", or ""
} CodegenResult;

#endif
