// Tables of machines: instruction sets and the sizes that kernel templates are built with, and the
// schedules of CUDA. Leaves the row that suits. Uses ir/core only.
#ifndef PDCC_LOWER_TARGET_TARGET_H
#define PDCC_LOWER_TARGET_TARGET_H

#include "ir/core/core.h"

// What 32 bits of a vector of whole numbers are multiplied and summed by one instruction, if any.
typedef enum DotKind {
	DOT_NONE,
	DOT_PAIRS, // i16 and i16
	DOT_QUADS, // u8 and i8
} DotKind;

// What code is made for: the instruction set, how such a machine computes, and the sizes that the
// kernel templates are built with.
typedef struct Target {
	const char *name;   // --isa: "avx512vnni", "avx512", "avx2", "sse4", "neon", "generic"; "cuda"
	const char *cflags; // what the external compiler needs to be told, e.g. "-mavx2 -mfma"
	const char *macros; // what compilers define that may make such code: "__AVX2__ __FMA__"
	Language language;  // that code is printed in
	bool vector;        // GCC vector extensions; else plain ISO C11
	bool simt; // lanes are threads: along any axis, in their thousands, each branching for itself
	bool channel_lanes; // channels fill vectors: images lie in blocks of them, or have them last
	bool tiles;         // contractions load tiles of operands as they lie; else weights are packed
	bool half;          // kernels take f16 and bf16, and round to them what they have in f32
	bool graph;   // runs are launches that wait for each other only; no host sees what they find
	bool doubles; // products take f64, in the tile of those of f32
	int lanes;    // f32 in a vector register, and b of the blocked layout
	int few; // b of images with no more channels than that, in vectors of as many; 0: as others
	int gemm_mr, gemm_nv; // register tile of GEMM: rows x vectors; NR = gemm_nv * lanes
	int conv_ur,
		conv_nv; // register tile of convolution: output pixels x vectors of output channels
	DotKind dots;
} Target;

// NULL: no such target. "native" is resolved by the driver before.
const Target *target_find(const char *name);
// Elements of f32 or f64 in a vector register.
int target_lanes(const Target *t, DType element);
// Whether the language has a kernel for such operations (`emit` in the operator table).
bool target_has(const Target *t, enum OpCode code);

#endif
