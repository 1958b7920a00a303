// Sizes of blocks, and the loops over them. Called by gemm.c, conv.c and groups.c.
#include "codegen/nest/blocks.h"

#include <inttypes.h>

int64_t block_size(const Dim *extent, const BlockRule *rule)
{
	enum { BLOCK = 192 << 10, PANEL = 96 << 10, SMALL = 1 << 20 };
	int64_t block = rule->panel > PANEL ? rule->filled : BLOCK / rule->bytes;
	block = block < rule->least ? rule->least : block > rule->most ? rule->most : block;
	if (!dim_is_const(extent))
		return rule->open ? block : 0;
	return extent->value > SMALL / rule->bytes && 2 * extent->value > 3 * block ? block : 0;
}

const char *block_loop(KernelFunc *k, const char *extent, int64_t block, const char *text)
{
	const char *end = tile_end_within(k, "from", extent, block);
	if (!end)
		return NULL;
	Text t;
	text_init(&t, k->arena);
	text_printf(&t,
	            "for (int64_t from = 0, until; from < %s; from = until) {\n"
	            "\tuntil = %s;\n",
	            extent, end);
	tile_indent(&t, text);
	text_str(&t, "}\n");
	return t.text;
}

const char *block_range(KernelFunc *k, const char *number, const char *extent, int64_t block)
{
	return arena_printf(
		k->arena, "pd_tile_begin(%s, %s, %" PRId64 "), pd_tile_begin(%s + 1, %s, %" PRId64 ")",
		number, extent, block, number, extent, block);
}
