// The target table: what `--isa` may name and the tile sizes that the kernel templates are built
// with. The driver looks targets up here; the layout pass and codegen read the sizes from
// PassContext.
#include "lower/target/target.h"

#include <string.h>

// What targets with vectors of 512 bits share.
#define TILES_512                                                                                \
	.vector = true, .channel_lanes = true, .doubles = true, .lanes = 16, .few = 8, .gemm_mr = 8, \
	.gemm_nv = 3, .conv_ur = 7, .conv_nv = 4
#define FLAGS_512 "-mavx512f -mavx512bw -mavx512vl -mavx512dq"
#define MACROS_512 "__AVX512F__ __AVX512BW__ __AVX512VL__ __AVX512DQ__"

// Register tiles leave room for the operands that stream past the accumulators: of 32 vector
// registers 24 accumulate (neon) or 28 (avx512 convolutions), of 16 twelve do (avx2, sse4).
// `generic` is plain ISO C11: its "vectors" are four floats, which most machines have registers
// for, and short arrays where the compiler has no vectors. Convolutions on avx512 are 7 pixels high
// because images are 7 times a power of two wide at the end of most networks.
static const Target targets[] = {
	{.name = "avx512vnni",
     .cflags = FLAGS_512 " -mavx512vnni -mfma",
     .macros = MACROS_512 " __AVX512VNNI__ __FMA__",
     .dots = DOT_QUADS,
     TILES_512},
	{.name = "avx512",
     .cflags = FLAGS_512 " -mfma",
     .macros = MACROS_512 " __FMA__",
     .dots = DOT_PAIRS,
     TILES_512},
	{.name = "avx2",
     .cflags = "-mavx2 -mfma",
     .macros = "__AVX2__ __FMA__",
     .vector = true,
     .channel_lanes = true,
     .doubles = true,
     .lanes = 8,
     .gemm_mr = 6,
     .gemm_nv = 2,
     .conv_ur = 6,
     .conv_nv = 2,
     .dots = DOT_PAIRS},
	{.name = "sse4",
     .cflags = "-msse4.2",
     .macros = "__SSE4_2__",
     .vector = true,
     .channel_lanes = true,
     .doubles = true,
     .lanes = 4,
     .gemm_mr = 6,
     .gemm_nv = 2,
     .conv_ur = 6,
     .conv_nv = 2,
     .dots = DOT_PAIRS},
	{.name = "neon",
     .cflags = "",
     .macros = "__ARM_NEON",
     .vector = true,
     .channel_lanes = true,
     .doubles = true,
     .lanes = 4,
     .gemm_mr = 8,
     .gemm_nv = 3,
     .conv_ur = 8,
     .conv_nv = 3},
	{.name = "generic",
     .cflags = "",
     .macros = "",
     .channel_lanes = true,
     .doubles = true,
     .lanes = 4,
     .gemm_mr = 6,
     .gemm_nv = 2,
     .conv_ur = 6,
     .conv_nv = 2},
	{.name = "cuda",
     .cflags = "",
     .macros = "",
     .language = LANGUAGE_CUDA,
     .simt = true,
     .tiles = true,
     .half = true,
     .graph = true,
     .lanes = 8,
     .gemm_mr = 4,
     .gemm_nv = 4,
     .conv_ur = 8,
     .conv_nv = 1},
};

const Target *target_find(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(targets); i++)
		if (!strcmp(targets[i].name, name))
			return &targets[i];
	return NULL;
}

int target_lanes(const Target *t, DType element)
{
	return t->lanes * (int)dtype_size(DT_F32) / (int)dtype_size(element);
}

bool target_has(const Target *t, enum OpCode code)
{
	return op_table[code].languages >> t->language & 1;
}
