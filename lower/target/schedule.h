// The schedule tables of CUDA (cuda_schedule.c, cuda_attention.c).
#ifndef PDCC_LOWER_TARGET_SCHEDULE_H
#define PDCC_LOWER_TARGET_SCHEDULE_H

#include "ir/core/core.h"

// How a block of threads computes a tile of a product: a row of the schedule table.
// CUDA_LIBRARY: it is a call of cuBLASLt, or, of convolutions, of cuDNN.
typedef enum CudaUnit {
	CUDA_FMA,
	CUDA_ROW,
	CUDA_TF32,
	CUDA_HALF,
	CUDA_LIBRARY
} CudaUnit; // f32 exactly; tensor cores

typedef struct CudaTile {
	const char *name;
	CudaUnit unit;
	int rows, columns, depth;    // of the tile, and of a slice of the operands in shared memory
	int part_rows, part_columns; // what a thread of it sums; on tensor cores, a warp
	int stages;                  // slices in shared memory
	int registers;               // that a thread may have
	int speed;                   // of the inner loop, per cent of the best
} CudaTile;

typedef struct CudaProduct {
	Context *ctx;
	const Dim *batches, *m, *n, *k;
	DType dtype; // of the operands
	bool tf32;   // f32 may be rounded to it
	bool whole;  // its depth must not be split
} CudaProduct;

typedef struct CudaSchedule {
	const CudaTile *tile;
	int split; // parts of the depth that different blocks sum
} CudaSchedule;

CudaSchedule cuda_schedule(const CudaProduct *p);
// For products of few rows with a right operand that lies [n][k]; NULL: this is none.
const CudaTile *cuda_schedule_rows(const CudaProduct *p);
const CudaTile *cuda_tile_find(const char *name); // NULL: none
const CudaTile *cuda_tile_next(
	const CudaTile *t); // the next smaller one of the unit, whose slices are as deep
int cuda_tile_threads(const CudaTile *t);
int cuda_tile_shared(const CudaTile *t); // bytes that a block has
int cuda_tile_blocks(const CudaTile *t); // that share an SM
// A call of a library; tf32: which may round f32 to it. Whether a kernel is one, and is such a one.
CudaSchedule cuda_schedule_library(bool tf32);
bool cuda_op_is_library(const Op *op);
bool cuda_library_rounds(const Op *op);

// How blocks of threads share attention: a row of its own table, which has rows for heads of up to
// so many elements.
enum { CUDA_MAX_HEAD = 128 };
typedef struct CudaAttention {
	const char *name;
	CudaUnit unit;       // of both products; CUDA_ROW: a block for a row
	int rows, keys;      // whose scores a block has at a time
	int width;           // elements of the widest head that it is for
	int threads, blocks; // of a block; on one SM at a time
} CudaAttention;

typedef struct CudaHeads {
	Context *ctx;
	const Dim *batches, *rows, *keys;
	int64_t width; // of a key or a value, whichever is wider
	DType dtype;   // of the products' operands
	bool tf32;
} CudaHeads;

typedef struct CudaAttentionSchedule {
	const CudaAttention *tile;
	int split; // parts of the keys that different blocks take
} CudaAttentionSchedule;

CudaAttentionSchedule cuda_schedule_attention(const CudaHeads *h);
const CudaAttention *cuda_attention_find(const char *name); // NULL: none

// What both tables count with. A graphics processor is taken for one with 132 SMs (H100, H200; A100
// has 108) of 128 lanes.
enum { CUDA_SMS = 132 };
// What a size is taken for: itself, or its bound where that is of use.
double cuda_size_guess(const Dim *d);
double cuda_count_of(double n, double each); // how many pieces of `each` cover n

#endif
