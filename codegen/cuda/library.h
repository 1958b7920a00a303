// What the files that print calls of libraries share: cuda/library.c (cuBLASLt) and
// cuda/library_conv.c (cuDNN).
#ifndef PDCC_CODEGEN_CUDA_LIBRARY_H
#define PDCC_CODEGEN_CUDA_LIBRARY_H

#include "codegen/cuda/cuda.h"

// activation(alpha * sum + bias + addend)
typedef struct LibraryEpilogue {
	double alpha;
	const Value *bias;   // one element for each position along the axis `channel`; NULL: none
	const Value *addend; // as the result; NULL: none
	EpilogueKind activation;
} LibraryEpilogue;

// What the call of a kernel does of its epilogue, as pass cuda-epilogues says; false: nothing.
bool library_epilogue_read(const Op *op, LibraryEpilogue *e);

// What the call of a kernel passes, as C: its operator, pointers, and the memory that it works in.
typedef struct LibraryCall {
	KernelFunc *k;
	const char *title, *a, *b, *out, *bias, *addend, *scratch, *bytes, *alpha;
} LibraryCall;

// A comment, helpers, and what the node touches; e: NULL when the epilogue is a kernel behind the
// call. False after a diagnostic.
bool library_call_begin(Codegen *cg, const Op *op, const char *helper, const LibraryEpilogue *e,
                        LibraryCall *call);
// Printed behind a call: what it counts as in reports; then the epilogue as a kernel, if there is
// one.
bool library_call_end(Codegen *cg, const LibraryCall *call, const char *name,
                      const LibraryEpilogue *e);
// What a library calls the type of elements and how it multiplies them, by that of the results.
typedef struct LibraryTypes {
	const char *f16, *bf16, *tf32, *f32;
} LibraryTypes;
const char *library_type(const Op *op, const LibraryTypes *t);
// A size as the host computes it.
const char *library_size(Codegen *cg, const Dim *d);

bool cuda_library_conv_print(Codegen *cg, const Op *op);

#endif
