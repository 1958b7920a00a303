// The schedule tables of CUDA: from the sizes of a product to the tile that a block computes and how often the depth is split;
// from those of attention to rows and keys of a block, and how often the keys are split. Called by the layout and attention
// passes, which leave the name of the row on the kernel, and by codegen, which looks the row up. A graphics processor is taken for one with 132 SMs (H100, H200; A100 has 108) of 128 lanes.
#include "lower.h"

#include <string.h>

enum {
	SMS = 132,
	LANES = 128,      // products of f32 that an SM makes in a cycle
	UNKNOWN = 256,    // what a size is taken for that nothing is known of
	MIN_DEPTH = 128,  // of a part of a split product
	MAX_SPLIT = 16,
	MAX_ROWS = 8,     // that go through the products of rows
	PASS = 4000,      // cycles that the second pass of a split product takes to begin
	TRAFFIC = 2000,   // bytes that all SMs move in a cycle
	FEW_ROWS = 4,     // of attention, that have blocks of their own
	OPEN_ROWS = 64,   // of a block, where sizes are open
	OPEN_KEYS = 2048, // what keys without a bound are taken for: parts that are not needed cost one launch
	MIN_KEYS = 256,   // of a part: what a block takes for fewer is less than another launch
	MAX_PARTS = 32
};

// Slices of both operands, `depth` deep, lie in shared memory twice. `speed` is what of an SM's peak the inner loop gets
// when there are threads enough: two reads of 16 bytes from shared memory serve 4 x 4 products, four 8 x 8. `blocks` share
// an SM, so a thread may have 65536 / (blocks * threads) registers.
static const CudaTile tiles[] = {
	// 168 registers, three blocks: 12 warps hide what 64 independent sums per thread leave to hide. 12.5 KiB.
	{.name = "fma_128x64", .rows = 128, .columns = 64, .depth = 8, .part_rows = 8, .part_columns = 8, .blocks = 3, .speed = 100},
	// Half the tile for products that leave SMs without work. 128 registers, 17 KiB.
	{.name = "fma_64x64", .rows = 64, .columns = 64, .depth = 16, .part_rows = 8, .part_columns = 4, .blocks = 4, .speed = 85},
	// 96 registers, which windows of convolutions need, 13 KiB.
	{.name = "fma_32x64", .rows = 32, .columns = 64, .depth = 16, .part_rows = 4, .part_columns = 4, .blocks = 5, .speed = 65},
	// Small images at the end of a network, heads of attention. 128 registers, 9 KiB.
	{.name = "fma_32x32", .rows = 32, .columns = 32, .depth = 16, .part_rows = 4, .part_columns = 4, .blocks = 8, .speed = 60},
	// Few rows: recurrent steps, small batches. 128 registers, 11 KiB.
	{.name = "fma_16x64", .rows = 16, .columns = 64, .depth = 16, .part_rows = 4, .part_columns = 4, .blocks = 8, .speed = 55},
	// Up to eight rows, whose products read each weight once: memory decides. A warp for one to four columns, as many as leave four
	// blocks for each SM; nothing is shared.
	{.name = "row_4", .unit = CUDA_ROW, .rows = 8, .columns = 16, .part_rows = 8, .part_columns = 4, .blocks = 4, .speed = 100},
	{.name = "row_2", .unit = CUDA_ROW, .rows = 8, .columns = 8, .part_rows = 8, .part_columns = 2, .blocks = 4, .speed = 100},
	{.name = "row_1", .unit = CUDA_ROW, .rows = 8, .columns = 4, .part_rows = 8, .part_columns = 1, .blocks = 4, .speed = 100},
	// Tensor cores: a slice is 64 bytes deep. Eight warps of 64 x 32 read each element of shared memory two to four times; up
	// to 255 registers, 40 KiB, one block: L2 gives no more, and two would spill.
	{.name = "tf32_128x128", .unit = CUDA_TF32, .rows = 128, .columns = 128, .depth = 16, .part_rows = 64, .part_columns = 32,
	 .blocks = 1, .speed = 450},
	{.name = "half_128x128", .unit = CUDA_HALF, .rows = 128, .columns = 128, .depth = 32, .part_rows = 64, .part_columns = 32,
	 .blocks = 1, .speed = 900},
	// Four warps of 32 x 32: 128 registers, 20 KiB, four blocks.
	{.name = "tf32_64x64", .unit = CUDA_TF32, .rows = 64, .columns = 64, .depth = 16, .part_rows = 32, .part_columns = 32,
	 .blocks = 4, .speed = 300},
	{.name = "half_64x64", .unit = CUDA_HALF, .rows = 64, .columns = 64, .depth = 32, .part_rows = 32, .part_columns = 32,
	 .blocks = 4, .speed = 600},
	// Four warps of 16 x 16, for few rows or few blocks: 80 registers, 15 KiB, six blocks.
	{.name = "tf32_32x32", .unit = CUDA_TF32, .rows = 32, .columns = 32, .depth = 16, .part_rows = 16, .part_columns = 16,
	 .blocks = 6, .speed = 150},
	{.name = "half_32x32", .unit = CUDA_HALF, .rows = 32, .columns = 32, .depth = 32, .part_rows = 16, .part_columns = 16,
	 .blocks = 6, .speed = 300},
	// Two warps of 16 x 32: 128 registers, 12 KiB, eight blocks.
	{.name = "tf32_16x64", .unit = CUDA_TF32, .rows = 16, .columns = 64, .depth = 16, .part_rows = 16, .part_columns = 32,
	 .blocks = 8, .speed = 150},
	{.name = "half_16x64", .unit = CUDA_HALF, .rows = 16, .columns = 64, .depth = 32, .part_rows = 16, .part_columns = 32,
	 .blocks = 8, .speed = 300},
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
	const CudaTile *t = op->code == OP_KERNEL_MATMUL || op->code == OP_KERNEL_CONV ? cuda_tile_find(op_str(op, "schedule", NULL)) : NULL;
	return t && t->unit == CUDA_LIBRARY;
}

bool cuda_library_rounds(const Op *op)
{
	return !strcmp(op_str(op, "schedule", ""), "library_tf32");
}

int cuda_tile_threads(const CudaTile *t)
{
	return t->rows / t->part_rows * (t->columns / t->part_columns) * (t->unit == CUDA_FMA ? 1 : 32);
}

// What a size is taken for: itself, or its bound where that is of use.
static double size_guess(const Dim *d)
{
	int64_t lo, hi;
	dim_range(d, &lo, &hi);
	if (lo != hi && hi > 16 * UNKNOWN)
		hi = lo > UNKNOWN ? lo : UNKNOWN;
	return hi < 1 ? 1 : (double)hi;
}

static double count_of(double n, double each)
{
	return (double)(int64_t)((n + each - 1) / each);
}

// Cycles for a product of `depth`: SMs work side by side, each on its share of the blocks. So many warps that wait for
// memory in turns reach warps / (warps + 2) of what the loop can.
static double tile_cycles(const CudaTile *t, double batches, double m, double n, double depth)
{
	const double blocks = batches * count_of(m, t->rows) * count_of(n, t->columns);
	const double each = count_of(blocks, SMS), side = each < t->blocks ? each : t->blocks;
	const double warps = side * cuda_tile_threads(t) / 32;
	return each * t->rows * t->columns * depth / LANES * 100 / t->speed * (warps + 2) / warps;
}

const CudaTile *cuda_schedule_rows(const CudaProduct *p)
{
	int64_t lo, hi;
	dim_range(p->k, &lo, &hi);
	if (!dim_is_const(p->m) || p->m->value < 1 || p->m->value > MAX_ROWS || p->dtype != DT_F32 || hi < LANES / 2)
		return NULL;
	const CudaTile *best = NULL;
	for (size_t i = 0; i < COUNT_OF(tiles); i++) {
		const CudaTile *t = &tiles[i];
		if (t->unit != CUDA_ROW || (best && size_guess(p->batches) * count_of(size_guess(p->n), best->columns) >= SMS * best->blocks))
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
	const double batches = size_guess(p->batches), m = size_guess(p->m), n = size_guess(p->n), k = size_guess(p->k);
	const bool known = !p->whole && dim_is_const(p->k) && dim_is_const(dim_mul(p->ctx, p->batches, dim_mul(p->ctx, p->m, p->n)));
	const int parts = known ? (int)(k / MIN_DEPTH) : 1; // a split costs memory: not for a guess
	const CudaUnit unit = dtype_size(p->dtype) == 2 ? CUDA_HALF : p->tf32 ? CUDA_TF32 : CUDA_FMA;
	CudaSchedule best = {.tile = NULL};
	double least = 0;
	for (size_t i = 0; i < COUNT_OF(tiles); i++)
		for (int split = 1; tiles[i].unit == unit && (split == 1 || (split <= parts && split <= MAX_SPLIT)); split *= 2) {
			const double cycles = tile_cycles(&tiles[i], batches * split, m, n, k / split) + split_cycles(split, batches, m, n);
			if (!best.tile || cycles < (split > best.split ? 0.8 : 1) * least) {
				best = (CudaSchedule){&tiles[i], split};
				least = cycles;
			}
		}
	return best;
}

// ---- attention --------------------------------------------------------------------------------------------------

// For each unit, those with more rows first: keys and values are read once for all of them.
static const CudaAttention attentions[] = {
	{.name = "row", .unit = CUDA_ROW, .rows = 1, .keys = 128, .width = CUDA_MAX_HEAD, .threads = 256, .blocks = 1},
	{.name = "fma_64x32", .unit = CUDA_FMA, .rows = 64, .keys = 32, .width = 64, .threads = 128, .blocks = 3},
	{.name = "fma_32x32", .unit = CUDA_FMA, .rows = 32, .keys = 32, .width = 64, .threads = 128, .blocks = 3},
	{.name = "fma_32x16", .unit = CUDA_FMA, .rows = 32, .keys = 16, .width = CUDA_MAX_HEAD, .threads = 128, .blocks = 3},
	// A warp has 16 rows, whose query and sums take up to 96 registers (tf32: 128) of each thread; what is on its way from memory
	// takes the more the fewer warps there are.
	{.name = "half_128x64", .unit = CUDA_HALF, .rows = 128, .keys = 64, .width = 64, .threads = 256, .blocks = 1},
	{.name = "half_128x32", .unit = CUDA_HALF, .rows = 128, .keys = 32, .width = CUDA_MAX_HEAD, .threads = 256, .blocks = 1},
	{.name = "half_64x64", .unit = CUDA_HALF, .rows = 64, .keys = 64, .width = 64, .threads = 128, .blocks = 2},
	{.name = "half_64x32", .unit = CUDA_HALF, .rows = 64, .keys = 32, .width = CUDA_MAX_HEAD, .threads = 128, .blocks = 2},
	{.name = "half_32x64", .unit = CUDA_HALF, .rows = 32, .keys = 64, .width = 64, .threads = 64, .blocks = 4},
	{.name = "half_32x32", .unit = CUDA_HALF, .rows = 32, .keys = 32, .width = CUDA_MAX_HEAD, .threads = 64, .blocks = 4},
	{.name = "tf32_64x32", .unit = CUDA_TF32, .rows = 64, .keys = 32, .width = 64, .threads = 128, .blocks = 2},
	{.name = "tf32_64x16", .unit = CUDA_TF32, .rows = 64, .keys = 16, .width = CUDA_MAX_HEAD, .threads = 128, .blocks = 2},
	{.name = "tf32_32x32", .unit = CUDA_TF32, .rows = 32, .keys = 32, .width = 64, .threads = 64, .blocks = 4},
	{.name = "tf32_32x16", .unit = CUDA_TF32, .rows = 32, .keys = 16, .width = CUDA_MAX_HEAD, .threads = 64, .blocks = 4},
};

const CudaAttention *cuda_attention_find(const char *name)
{
	for (size_t i = 0; name && i < COUNT_OF(attentions); i++)
		if (!strcmp(attentions[i].name, name))
			return &attentions[i];
	return NULL;
}

// The tallest that leaves no SM without work and no half of it without rows, or else the lowest. Where sizes are open, one in
// between, lest a batch of one be left to a few SMs.
static const CudaAttention *attention_tile(const CudaHeads *h, double batches, double rows)
{
	const bool few = dim_is_const(h->rows) && h->rows->value <= FEW_ROWS;
	const CudaUnit unit = few ? CUDA_ROW : dtype_size(h->dtype) == 2 ? CUDA_HALF : h->tf32 ? CUDA_TF32 : CUDA_FMA;
	const bool known = dim_is_const(dim_mul(h->ctx, h->batches, h->rows));
	const CudaAttention *best = NULL;
	for (size_t i = 0; i < COUNT_OF(attentions); i++) {
		const CudaAttention *t = &attentions[i];
		if ((t->rows > OPEN_ROWS && !known) || t->unit != unit || t->width < h->width || (best && best->rows == t->rows))
			continue;
		best = t;
		if (batches * count_of(rows, t->rows) >= SMS && 2 * rows > t->rows)
			break;
	}
	return best;
}

// What comes of parts is little beside the keys of a row alone, so there an open batch is taken for the least; when keys are open,
// too, they are as likely few.
static int attention_split(const CudaHeads *h, const CudaAttention *tile, double batches, double rows)
{
	int64_t lo, keys, least, most;
	dim_range(h->keys, &lo, &keys);
	dim_range(h->batches, &least, &most);
	const bool open = lo < keys && keys > 2 * OPEN_KEYS;
	if (open)
		keys = lo > OPEN_KEYS ? lo : OPEN_KEYS;
	else if (tile->unit == CUDA_ROW)
		batches = least < 1 ? 1 : (double)least;
	const double blocks = batches * count_of(rows, tile->rows);
	if (2 * blocks > SMS || keys < 2 * MIN_KEYS)
		return 1;
	const int wanted = (int)(2 * SMS / blocks), parts = keys / MIN_KEYS < MAX_PARTS ? (int)(keys / MIN_KEYS) : MAX_PARTS;
	return wanted < parts ? wanted : parts;
}

CudaAttentionSchedule cuda_schedule_attention(const CudaHeads *h)
{
	const double batches = size_guess(h->batches), rows = size_guess(h->rows);
	const CudaAttention *tile = attention_tile(h, batches, rows);
	return (CudaAttentionSchedule){tile, tile ? attention_split(h, tile, batches, rows) : 1};
}
