// Blocks of what a kernel goes through (rows, pixels, rows of pixels): a block meets all panels of
// packed operands before the next one does, so that what it reads stays in the cache meanwhile.
#ifndef PDCC_CODEGEN_NEST_BLOCKS_H
#define PDCC_CODEGEN_NEST_BLOCKS_H

#include "codegen/nest/region.h"

// Bytes that one of them reads and that a panel has; how many a block has at least, at most, and
// where a panel fills the cache; whether an open number of them goes in blocks.
typedef struct BlockRule {
	int64_t bytes, panel, least, most, filled;
	bool open;
} BlockRule;

// How many of `extent` a block has: as many as a second-level cache of half a megabyte has beside a
// panel, or, where that fills it, so many that they pay for fetching it from the next one. 0: they
// are few, or read little, and go as one.
int64_t block_size(const Dim *extent, const BlockRule *rule);

// `text` for each block [from, until) of what the C expression `extent` says; NULL after a
// diagnostic.
const char *block_loop(KernelFunc *k, const char *extent, int64_t block, const char *text);

// The arguments `from, until` of the block whose number is the variable `number`.
const char *block_range(KernelFunc *k, const char *number, const char *extent, int64_t block);

#endif
