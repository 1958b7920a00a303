// The schedule table of attention on CUDA: from the sizes of heads, rows and keys to how many of
// these a block of threads has, and how often the keys are split. Called by the attention pass,
// which leaves the name of the row on the kernel, and by codegen, which looks the row up.
#include "lower/target/schedule.h"

#include <string.h>

enum {
	FEW_ROWS = 4,     // that have blocks of their own
	OPEN_ROWS = 64,   // of a block, where sizes are open
	OPEN_KEYS = 2048, // what keys without a bound are taken for beside a known number of rows:
	                  // parts in vain cost one launch
	MIN_KEYS = 256,   // of a part: what a block takes for fewer is less than another launch
	MAX_PARTS = 32
};

// For each unit, those with more rows first: keys and values are read once for all of them.
static const CudaAttention attentions[] = {
	{.name = "row",
     .unit = CUDA_ROW,
     .rows = 1,
     .keys = 128,
     .width = CUDA_MAX_HEAD,
     .threads = 256,
     .blocks = 1},
	{.name = "fma_64x32",
     .unit = CUDA_FMA,
     .rows = 64,
     .keys = 32,
     .width = 64,
     .threads = 128,
     .blocks = 3},
	{.name = "fma_32x32",
     .unit = CUDA_FMA,
     .rows = 32,
     .keys = 32,
     .width = 64,
     .threads = 128,
     .blocks = 3},
	{.name = "fma_32x16",
     .unit = CUDA_FMA,
     .rows = 32,
     .keys = 16,
     .width = CUDA_MAX_HEAD,
     .threads = 128,
     .blocks = 3},
	// A warp has 16 rows, whose query and sums take up to 96 registers (tf32: 128) of each thread;
    // what is on its way from memory takes the more the fewer warps there are.
	{.name = "half_128x64",
     .unit = CUDA_HALF,
     .rows = 128,
     .keys = 64,
     .width = 64,
     .threads = 256,
     .blocks = 1},
	{.name = "half_128x32",
     .unit = CUDA_HALF,
     .rows = 128,
     .keys = 32,
     .width = CUDA_MAX_HEAD,
     .threads = 256,
     .blocks = 1},
	{.name = "half_64x64",
     .unit = CUDA_HALF,
     .rows = 64,
     .keys = 64,
     .width = 64,
     .threads = 128,
     .blocks = 2},
	{.name = "half_64x32",
     .unit = CUDA_HALF,
     .rows = 64,
     .keys = 32,
     .width = CUDA_MAX_HEAD,
     .threads = 128,
     .blocks = 2},
	{.name = "half_32x64",
     .unit = CUDA_HALF,
     .rows = 32,
     .keys = 64,
     .width = 64,
     .threads = 64,
     .blocks = 4},
	{.name = "half_32x32",
     .unit = CUDA_HALF,
     .rows = 32,
     .keys = 32,
     .width = 96,
     .threads = 64,
     .blocks = 4},
	{.name = "tf32_64x32",
     .unit = CUDA_TF32,
     .rows = 64,
     .keys = 32,
     .width = 64,
     .threads = 128,
     .blocks = 2},
	{.name = "tf32_64x16",
     .unit = CUDA_TF32,
     .rows = 64,
     .keys = 16,
     .width = CUDA_MAX_HEAD,
     .threads = 128,
     .blocks = 2},
	{.name = "tf32_32x32",
     .unit = CUDA_TF32,
     .rows = 32,
     .keys = 32,
     .width = 64,
     .threads = 64,
     .blocks = 4},
	{.name = "tf32_32x16",
     .unit = CUDA_TF32,
     .rows = 32,
     .keys = 16,
     .width = 96,
     .threads = 64,
     .blocks = 4},
};

const CudaAttention *cuda_attention_find(const char *name)
{
	for (size_t i = 0; name && i < COUNT_OF(attentions); i++)
		if (!strcmp(attentions[i].name, name))
			return &attentions[i];
	return NULL;
}

// The tallest that leaves no SM without work and no half of it without rows, or else the lowest.
// Where sizes are open, one in between, lest a batch of one be left to a few SMs.
static const CudaAttention *attention_tile(const CudaHeads *h, double batches, double rows)
{
	const bool few = dim_is_const(h->rows) && h->rows->value <= FEW_ROWS;
	const CudaUnit unit = few                         ? CUDA_ROW
	                      : dtype_size(h->dtype) == 2 ? CUDA_HALF
	                      : h->tf32                   ? CUDA_TF32
	                                                  : CUDA_FMA;
	const bool known = dim_is_const(dim_mul(h->ctx, h->batches, h->rows));
	const CudaAttention *best = NULL;
	for (size_t i = 0; i < COUNT_OF(attentions); i++) {
		const CudaAttention *t = &attentions[i];
		if ((t->rows > OPEN_ROWS && !known) || t->unit != unit || t->width < h->width ||
		    (best && best->rows == t->rows))
			continue;
		best = t;
		if (batches * cuda_count_of(rows, t->rows) >= CUDA_SMS && 2 * rows > t->rows)
			break;
	}
	return best;
}

// What comes of parts is little beside the keys of a row alone, so there an open batch is taken for
// the least; when keys are open, too, they are as likely few.
static int attention_split(const CudaHeads *h, const CudaAttention *tile, double batches,
                           double rows)
{
	int64_t lo, keys, least, most;
	dim_range(h->keys, &lo, &keys);
	dim_range(h->batches, &least, &most);
	const bool open = lo < keys && keys > 2 * OPEN_KEYS;
	if (open && dim_is_const(h->rows))
		keys = lo > OPEN_KEYS ? lo : OPEN_KEYS;
	else if (open)
		keys = (int64_t)cuda_size_guess(h->keys);
	else if (tile->unit == CUDA_ROW)
		batches = least < 1 ? 1 : (double)least;
	const double blocks = batches * cuda_count_of(rows, tile->rows);
	if (2 * blocks > CUDA_SMS || keys < 2 * MIN_KEYS)
		return 1;
	const int wanted = (int)(2 * CUDA_SMS / blocks),
			  parts = keys / MIN_KEYS < MAX_PARTS ? (int)(keys / MIN_KEYS) : MAX_PARTS;
	return wanted < parts ? wanted : parts;
}

CudaAttentionSchedule cuda_schedule_attention(const CudaHeads *h)
{
	const double batches = cuda_size_guess(h->batches), rows = cuda_size_guess(h->rows);
	const CudaAttention *tile = attention_tile(h, batches, rows);
	return (CudaAttentionSchedule){tile, tile ? attention_split(h, tile, batches, rows) : 1};
}
