// The schedule table of CUDA products: which tile a block computes, from the sizes of the product. Called by the layout
// pass, which leaves the name of the row on the kernel, and by codegen, which looks the row up.
#include "lower.h"

#include <string.h>

enum { SMS = 132, BUSY_THREADS = 256, UNKNOWN = 4096 };

// A slice of either operand, `depth` deep, lies in shared memory twice. `speed` is what of an SM's peak the inner loop gets
// when there are threads enough: two reads of 16 bytes from shared memory are worth 4 x 4 products, four 8 x 8.
// `blocks` share an SM; so many registers a thread may have: 65536 / (blocks * threads).
static const CudaTile tiles[] = {
	// 168 registers, three blocks: 12 warps hide what 64 independent sums per thread leave to hide.
	{.name = "fma_128x64", .rows = 128, .columns = 64, .depth = 16, .thread_rows = 8, .thread_columns = 8, .blocks = 3, .speed = 100},
	// Four times the blocks of 128 x 128, for products that leave SMs without work.
	{.name = "fma_64x64", .rows = 64, .columns = 64, .depth = 16, .thread_rows = 8, .thread_columns = 4, .blocks = 4, .speed = 85},
	{.name = "fma_32x64", .rows = 32, .columns = 64, .depth = 16, .thread_rows = 4, .thread_columns = 4, .blocks = 6, .speed = 65},
	// Small images at the end of a network, heads of attention.
	{.name = "fma_32x32", .rows = 32, .columns = 32, .depth = 16, .thread_rows = 4, .thread_columns = 4, .blocks = 8, .speed = 60},
	// Few rows: recurrent steps, small batches.
	{.name = "fma_16x64", .rows = 16, .columns = 64, .depth = 16, .thread_rows = 4, .thread_columns = 4, .blocks = 8, .speed = 55},
};

const CudaTile *cuda_tile_find(const char *name)
{
	for (size_t i = 0; name && i < COUNT_OF(tiles); i++)
		if (!strcmp(tiles[i].name, name))
			return &tiles[i];
	return NULL;
}

int cuda_tile_threads(const CudaTile *t)
{
	return t->rows / t->thread_rows * (t->columns / t->thread_columns);
}

// What a size is taken for: itself, or its bound where that is of use.
static double size_guess(const Dim *d)
{
	int64_t lo, hi;
	dim_range(d, &lo, &hi);
	if (hi > UNKNOWN && lo != hi)
		return lo > UNKNOWN / 16 ? (double)lo : UNKNOWN / 16;
	return hi < 1 ? 1 : (double)hi;
}

static double round_up(double n, double to)
{
	return to * (double)(int64_t)((n + to - 1) / to);
}

// Time, in units of a product per SM: SMs work side by side, each on its share of the blocks, and slower when these have
// too few threads to keep it busy.
static double tile_time(const CudaTile *t, double batches, double m, double n)
{
	const double blocks = batches * (round_up(m, t->rows) / t->rows) * (round_up(n, t->columns) / t->columns);
	const double each = round_up(blocks, SMS) / SMS, side = each < t->blocks ? each : t->blocks;
	const double busy = side * cuda_tile_threads(t) / BUSY_THREADS;
	return each * t->rows * t->columns / t->speed / (busy < 1 ? busy : 1);
}

const CudaTile *cuda_schedule(const CudaProduct *p)
{
	const double batches = size_guess(p->batches), m = size_guess(p->m), n = size_guess(p->n);
	const CudaTile *best = &tiles[0];
	for (size_t i = 1; i < COUNT_OF(tiles); i++)
		if (tile_time(&tiles[i], batches, m, n) < tile_time(best, batches, m, n))
			best = &tiles[i];
	return best;
}
