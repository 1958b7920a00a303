// The schedule tables of CUDA: from the sizes of a product to the tile that a block computes and
// how often the depth is split. Called by the layout passes, which leave the name of the row on the
// kernel, and by codegen, which looks the row up; cuda_attention.c has the table of attention.
#include "lower/target/schedule.h"

#include <string.h>

enum {
	LANES = 128,     // products of f32 that an SM makes in a cycle
	LATENCY = 800,   // cycles until what is asked for has come from memory
	L2_RATE = 32,    // bytes that an SM gets from L2 in a cycle while all do
	UNKNOWN = 256,   // what a size is taken for that nothing is known of
	MIN_DEPTH = 128, // of a part of a split product
	MAX_SPLIT = 16,
	MAX_ROWS = 8,   // that go through the products of rows
	ROW_BLOCKS = 4, // of these, on an SM
	PASS = 4000,    // cycles that the second pass of a split product takes to begin
	TRAFFIC = 2000  // bytes that all SMs move in a cycle
};

// What the blocks of an SM share: of sm_80, which has the least shared memory (sm_90: 228 KiB). The
// system takes some for each.
enum { REGISTERS = 65536, MAX_THREADS = 2048, SHARED = 164 << 10, SHARED_OF_SYSTEM = 1 << 10 };

// `stages` slices of both operands, `depth` deep, lie in shared memory. All rows stay under 99 KiB,
// which a block may have on any GPU from sm_80 on. `speed` is what of the rate of FMAs the inner
// loop gets when there are threads enough. f32: two reads of 16 bytes from shared memory serve 4 x
// 4 products, four 8 x 8. Tensor cores do 800 (16 bits) or 400 (tf32), but a warp of W x V reads 1
// / W + 1 / V elements of shared memory for each product, at 128 bytes a cycle: no more than 800 or
// 400 for 32 x 32, half of it for 16 x 16, and what is copied there and instructions in between
// take their share, too. docs/kernels.md has the figures.
static const CudaTile tiles[] = {
	// Three blocks: 12 warps hide what 64 independent sums per thread leave to hide.
	{.name = "fma_128x64",
     .rows = 128,
     .columns = 64,
     .depth = 8,
     .stages = 4,
     .part_rows = 8,
     .part_columns = 8,
     .registers = 168,
     .speed = 100},
	// Half the tile for products that leave SMs without work.
	{.name = "fma_64x64",
     .rows = 64,
     .columns = 64,
     .depth = 16,
     .stages = 4,
     .part_rows = 8,
     .part_columns = 4,
     .registers = 128,
     .speed = 85},
	{.name = "fma_32x64",
     .rows = 32,
     .columns = 64,
     .depth = 16,
     .stages = 4,
     .part_rows = 4,
     .part_columns = 4,
     .registers = 96,
     .speed = 65},
	// Small images at the end of a network, heads of attention.
	{.name = "fma_32x32",
     .rows = 32,
     .columns = 32,
     .depth = 16,
     .stages = 4,
     .part_rows = 4,
     .part_columns = 4,
     .registers = 128,
     .speed = 60},
	// Few rows: recurrent steps, small batches.
	{.name = "fma_16x64",
     .rows = 16,
     .columns = 64,
     .depth = 16,
     .stages = 4,
     .part_rows = 4,
     .part_columns = 4,
     .registers = 128,
     .speed = 55},
	// Up to eight rows, whose products read each weight once: memory decides. A warp for one to
	// four columns, as many as leave four
	// blocks for each SM; nothing is shared.
	{.name = "row_4",
     .unit = CUDA_ROW,
     .rows = 8,
     .columns = 16,
     .part_rows = 8,
     .part_columns = 4,
     .speed = 100},
	{.name = "row_2",
     .unit = CUDA_ROW,
     .rows = 8,
     .columns = 8,
     .part_rows = 8,
     .part_columns = 2,
     .speed = 100},
	{.name = "row_1",
     .unit = CUDA_ROW,
     .rows = 8,
     .columns = 4,
     .part_rows = 8,
     .part_columns = 1,
     .speed = 100},
	// Tensor cores: a slice is 64 bytes deep. Eight warps of 64 x 64, a block for each SM: least
	// traffic, for the largest products.
	{.name = "tf32_256x128",
     .unit = CUDA_TF32,
     .rows = 256,
     .columns = 128,
     .depth = 16,
     .stages = 4,
     .part_rows = 64,
     .part_columns = 64,
     .registers = 255,
     .speed = 400},
	{.name = "half_256x128",
     .unit = CUDA_HALF,
     .rows = 256,
     .columns = 128,
     .depth = 32,
     .stages = 4,
     .part_rows = 64,
     .part_columns = 64,
     .registers = 255,
     .speed = 800},
	// Eight warps of 64 x 32; of 16 bits two blocks.
	{.name = "tf32_128x128",
     .unit = CUDA_TF32,
     .rows = 128,
     .columns = 128,
     .depth = 16,
     .stages = 4,
     .part_rows = 64,
     .part_columns = 32,
     .registers = 255,
     .speed = 350},
	{.name = "half_128x128",
     .unit = CUDA_HALF,
     .rows = 128,
     .columns = 128,
     .depth = 32,
     .stages = 4,
     .part_rows = 64,
     .part_columns = 32,
     .registers = 128,
     .speed = 720},
	// Four warps of 32 x 32, four blocks.
	{.name = "tf32_64x64",
     .unit = CUDA_TF32,
     .rows = 64,
     .columns = 64,
     .depth = 16,
     .stages = 4,
     .part_rows = 32,
     .part_columns = 32,
     .registers = 128,
     .speed = 300},
	{.name = "half_64x64",
     .unit = CUDA_HALF,
     .rows = 64,
     .columns = 64,
     .depth = 32,
     .stages = 4,
     .part_rows = 32,
     .part_columns = 32,
     .registers = 128,
     .speed = 600},
	// Four warps of 16 x 16, for few rows or few blocks; six of these.
	{.name = "tf32_32x32",
     .unit = CUDA_TF32,
     .rows = 32,
     .columns = 32,
     .depth = 16,
     .stages = 4,
     .part_rows = 16,
     .part_columns = 16,
     .registers = 80,
     .speed = 150},
	{.name = "half_32x32",
     .unit = CUDA_HALF,
     .rows = 32,
     .columns = 32,
     .depth = 32,
     .stages = 4,
     .part_rows = 16,
     .part_columns = 16,
     .registers = 80,
     .speed = 300},
	// Two warps of 16 x 32, eight blocks.
	{.name = "tf32_16x64",
     .unit = CUDA_TF32,
     .rows = 16,
     .columns = 64,
     .depth = 16,
     .stages = 3,
     .part_rows = 16,
     .part_columns = 32,
     .registers = 128,
     .speed = 150},
	{.name = "half_16x64",
     .unit = CUDA_HALF,
     .rows = 16,
     .columns = 64,
     .depth = 32,
     .stages = 3,
     .part_rows = 16,
     .part_columns = 32,
     .registers = 128,
     .speed = 300},
	// What a library does is its own affair.
	{.name = "library", .unit = CUDA_LIBRARY},
	{.name = "library_tf32", .unit = CUDA_LIBRARY},
};

const CudaTile *cuda_tile_find(const char *name)
{
	for (size_t i = 0; name && i < COUNT_OF(tiles); i++)
		if (!strcmp(tiles[i].name, name))
			return &tiles[i];
	return NULL;
}

CudaSchedule cuda_schedule_library(bool tf32)
{
	return (CudaSchedule){cuda_tile_find(tf32 ? "library_tf32" : "library"), 1};
}

bool cuda_op_is_library(const Op *op)
{
	const CudaTile *t = op->code == OP_KERNEL_MATMUL || op->code == OP_KERNEL_CONV
	                        ? cuda_tile_find(op_str(op, "schedule", NULL))
	                        : NULL;
	return t && t->unit == CUDA_LIBRARY;
}

bool cuda_library_rounds(const Op *op)
{
	return !strcmp(op_str(op, "schedule", ""), "library_tf32");
}

const CudaTile *cuda_tile_next(const CudaTile *t)
{
	const CudaTile *next = t + 1;
	while (next < tiles + COUNT_OF(tiles) && (next->unit != t->unit || next->depth != t->depth))
		next++;
	return next < tiles + COUNT_OF(tiles) ? next : t;
}

// f32 without tensor cores has padding; see cuda_tile.c.in and cuda_mma.c.in.
int cuda_tile_shared(const CudaTile *t)
{
	const int size = t->unit == CUDA_HALF ? 2 : 4, depth = t->depth + (t->unit == CUDA_FMA);
	return t->unit == CUDA_ROW ? 0 : t->stages * (t->rows + t->columns) * depth * size;
}

int cuda_tile_threads(const CudaTile *t)
{
	return t->rows / t->part_rows * (t->columns / t->part_columns) * (t->unit == CUDA_FMA ? 1 : 32);
}

int cuda_tile_blocks(const CudaTile *t)
{
	const int threads = cuda_tile_threads(t),
			  shared = SHARED / (cuda_tile_shared(t) + SHARED_OF_SYSTEM);
	const int registers = t->unit == CUDA_ROW ? ROW_BLOCKS : REGISTERS / (t->registers * threads);
	const int least = registers < shared ? registers : shared;
	return least < MAX_THREADS / threads ? least : MAX_THREADS / threads;
}

double cuda_size_guess(const Dim *d)
{
	int64_t lo, hi;
	dim_range(d, &lo, &hi);
	if (lo != hi && hi > 16 * UNKNOWN)
		hi = lo > UNKNOWN ? lo : UNKNOWN;
	return hi < 1 ? 1 : (double)hi;
}

double cuda_count_of(double n, double each)
{
	return (double)(int64_t)((n + each - 1) / each);
}

// Cycles for a product of `depth`: SMs work side by side, each on its share of the blocks, so many
// at once as fit. While these multiply a slice, the ones that follow come: as many bytes as L2
// gives, and within the time of the slices between. So many warps that wait in turns reach warps /
// (warps + 2) of what the loop can. A block begins with nothing to multiply.
static double tile_cycles(const CudaTile *t, double batches, double m, double n, double depth)
{
	const double blocks = batches * cuda_count_of(m, t->rows) * cuda_count_of(n, t->columns),
				 most = cuda_tile_blocks(t);
	const double each = cuda_count_of(blocks, CUDA_SMS), side = each < most ? each : most;
	const double warps = side * cuda_tile_threads(t) / 32, bytes = cuda_tile_shared(t) / t->stages;
	double slice = (double)t->rows * t->columns * t->depth / LANES * 100 / t->speed * (warps + 2) /
	               warps; // of one block
	if (slice < bytes / L2_RATE)
		slice = bytes / L2_RATE;
	if (side * slice < LATENCY / (t->stages - 1))
		slice = LATENCY / (t->stages - 1) / side;
	return each * slice * cuda_count_of(depth, t->depth) + cuda_count_of(each, most) * LATENCY;
}

const CudaTile *cuda_schedule_rows(const CudaProduct *p)
{
	int64_t lo, hi;
	dim_range(p->k, &lo, &hi);
	if (!dim_is_const(p->m) || p->m->value < 1 || p->m->value > MAX_ROWS || p->dtype != DT_F32 ||
	    hi < LANES / 2)
		return NULL;
	const CudaTile *best = NULL;
	for (size_t i = 0; i < COUNT_OF(tiles); i++) {
		const CudaTile *t = &tiles[i];
		if (t->unit != CUDA_ROW ||
		    (best &&
		     cuda_size_guess(p->batches) * cuda_count_of(cuda_size_guess(p->n), best->columns) >=
		         CUDA_SMS * ROW_BLOCKS))
			continue;
		best = t;
	}
	return best;
}

// The parts' sums are written, read and added up by a kernel of their own.
static double split_cycles(int split, double batches, double m, double n)
{
	return split > 1 ? PASS + 2 * sizeof(float) * split * batches * m * n / TRAFFIC : 0;
}

CudaSchedule cuda_schedule(const CudaProduct *p)
{
	const double batches = cuda_size_guess(p->batches), m = cuda_size_guess(p->m),
				 n = cuda_size_guess(p->n), k = cuda_size_guess(p->k);
	const bool known = !p->whole && dim_is_const(p->k) &&
	                   dim_is_const(dim_mul(p->ctx, p->batches, dim_mul(p->ctx, p->m, p->n)));
	const int parts = known ? (int)(k / MIN_DEPTH) : 1; // a split costs memory: not for a guess
	const CudaUnit unit = dtype_size(p->dtype) == 2 ? CUDA_HALF : p->tf32 ? CUDA_TF32 : CUDA_FMA;
	CudaSchedule best = {.tile = NULL};
	double least = 0;
	for (size_t i = 0; i < COUNT_OF(tiles); i++)
		for (int split = 1;
		     tiles[i].unit == unit && (split == 1 || (split <= parts && split <= MAX_SPLIT));
		     split *= 2) {
			const double cycles = tile_cycles(&tiles[i], batches * split, m, n, k / split) +
			                      split_cycles(split, batches, m, n);
			if (!best.tile || cycles < (split > best.split ? 0.8 : 1) * least) {
				best = (CudaSchedule){&tiles[i], split};
				least = cycles;
			}
		}
	return best;
}
