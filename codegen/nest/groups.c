// The loops over images and groups of packed weights that convolutions have in common, of floats
// (tuned/conv.c) and of whole numbers (tuned/integer.c), for one thread and for several.
#include "codegen/nest/groups.h"
#include "codegen/nest/blocks.h"

#include <inttypes.h>

// A part of a group goes from `from` to `until`: of its rows, or of pixels where rows run into each
// other.
static void part_goes(GroupLoops *g, const char *from, const char *until)
{
	g->row_from = g->flat ? "0" : from;
	g->row_until = g->flat ? "rows" : until;
	g->from = g->flat ? from : "0";
	g->until = g->flat ? until : "columns";
}

// How many parts there are of a group, of `extent` rows or pixels.
static const Dim *parts_of(KernelFunc *k, const GroupLoops *g, const Dim *extent)
{
	if (g->block)
		return tile_count(k, extent, (int)g->block);
	return g->flat ? tile_count(k, extent, g->ur) : extent;
}

void group_parts(KernelFunc *k, int64_t groups, GroupLoops *g)
{
	const Dim *extent = g->flat ? dim_mul(k->ctx, g->rows, g->columns) : g->rows;
	const Dim *all = dim_mul(k->ctx, g->batch, dim_const(k->ctx, groups)),
			  *parts = parts_of(k, g, extent);
	g->images = kernel_dim(k, g->batch);
	g->inner = NULL;
	g->part = "";
	part_goes(g, "0", g->flat ? "columns" : "rows");
	if (g->block) {
		g->extent = kernel_dim(k, extent);
		g->blocks = kernel_dim(k, parts);
		g->part = "const int64_t from, const int64_t until, ";
		part_goes(g, "from", "until");
	}
	if (!kernel_share(k, dim_mul(k->ctx, all, parts)))
		return;
	if (g->block) {
		g->inner = tile_int(k, groups);
		return;
	}
	g->inner = kernel_dim(k, parts);
	g->part = "const int64_t begin, const int64_t end, ";
	if (g->flat)
		part_goes(g, tile_begin(k, "begin", "columns", extent, g->ur),
		          tile_begin(k, "end", "columns", extent, g->ur));
	else
		part_goes(g, "begin", "end");
}

const char *group_images(KernelFunc *k, const GroupLoops *g, const char *calls)
{
	if (dim_is(g->batch, 1))
		return arena_printf(k->arena, "const int64_t n = 0;\n%s", calls);
	Text t;
	text_init(&t, k->arena);
	text_printf(&t, "for (int64_t n = 0; n < %s; n++) {\n", g->images);
	tile_indent(&t, calls);
	text_str(&t, "}");
	return t.text;
}

// Calls for all groups, which go through all there is, or the block at hand.
static const char *whole_calls(KernelFunc *k, const GroupLoops *g, int64_t blocks, int nv)
{
	Arena *a = k->arena;
	const int64_t whole = blocks / nv, rest = blocks % nv;
	const char *part = g->block ? ", from, until" : "";
	Text calls;
	text_init(&calls, a);
	if (whole == 1)
		text_str(&calls, tile_pass_on(k, "", "_group", arena_printf(a, "n, 0, %d%s", nv, part)));
	else if (whole)
		text_str(
			&calls,
			tile_pass_on(
				k, arena_printf(a, "for (int64_t group = 0; group < %" PRId64 "; group++)", whole),
				"_group", arena_printf(a, "n, group, %d%s", nv, part)));
	if (rest)
		text_printf(
			&calls, "%s%s", whole ? "\n" : "",
			tile_pass_on(k, "", "_group",
		                 arena_printf(a, "n, %" PRId64 ", %" PRId64 "%s", whole, rest, part)));
	return calls.text;
}

// The call for the group `group`, which may be the last and have fewer vectors.
static const char *group_call(KernelFunc *k, int64_t blocks, int nv, const char *part)
{
	Arena *a = k->arena;
	const int64_t whole = blocks / nv, rest = blocks % nv;
	const char *head = whole && rest ? arena_printf(a, "if (group < %" PRId64 ")", whole) : "";
	Text calls;
	text_init(&calls, a);
	if (whole)
		text_printf(&calls, "%s\n",
		            tile_pass_on(k, head, "_group", arena_printf(a, "n, group, %d, %s", nv, part)));
	if (rest)
		text_str(&calls, tile_pass_on(k, whole ? "else" : "", "_group",
		                              arena_printf(a, "n, group, %" PRId64 ", %s", rest, part)));
	return calls.text;
}

// What a thread has of the groups of each block.
static const char *shared_blocks(KernelFunc *k, const GroupLoops *g, int64_t blocks, int nv)
{
	const char *part = block_range(k, "block", g->extent, g->block);
	Text calls;
	text_init(&calls, k->arena);
	text_printf(&calls, "const int64_t n = unit / %s, block = unit %% %s;\n", g->blocks, g->blocks);
	text_str(&calls, "for (int64_t group = from; group < until; group++) {\n");
	tile_indent(&calls, group_call(k, blocks, nv, part));
	text_str(&calls, "}\n");
	return tile_share(k, g->inner, calls.text);
}

// What a thread has: groups, or some rows or tiles of one.
static const char *shared_calls(KernelFunc *k, const GroupLoops *g, int64_t blocks, int nv)
{
	Arena *a = k->arena;
	const int64_t groups = (blocks + nv - 1) / nv;
	return tile_share(
		k, g->inner,
		arena_printf(a, "const int64_t n = unit / %" PRId64 ", group = unit %% %" PRId64 ";\n%s",
	                 groups, groups, group_call(k, blocks, nv, "from, until")));
}

const char *group_calls(KernelFunc *k, const GroupLoops *g, int64_t blocks, int nv)
{
	if (g->inner)
		return g->block ? shared_blocks(k, g, blocks, nv) : shared_calls(k, g, blocks, nv);
	const char *calls = whole_calls(k, g, blocks, nv);
	if (g->block)
		calls = block_loop(k, g->extent, g->block, calls);
	return calls ? group_images(k, g, calls) : NULL;
}
