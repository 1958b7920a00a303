// The loops over images and groups of packed weights that convolutions have in common, of floats
// (tuned/conv.c) and of whole numbers (tuned/integer.c), for one thread and for several.
#include "codegen/nest/groups.h"

#include <inttypes.h>

void group_parts(KernelFunc *k, int64_t groups, GroupLoops *g)
{
	const Dim *across = dim_mul(k->ctx, g->rows, g->columns),
			  *inner = g->flat ? tile_count(k, across, g->ur) : g->rows;
	const Dim *all = dim_mul(k->ctx, g->batch, dim_const(k->ctx, groups));
	g->images = kernel_dim(k, g->batch);
	g->inner = NULL;
	g->part = "";
	g->row_from = g->from = "0";
	g->row_until = "rows";
	g->until = "columns";
	if (!kernel_share(k, dim_mul(k->ctx, all, inner)))
		return;
	g->inner = kernel_dim(k, inner);
	g->part = "const int64_t begin, const int64_t end, ";
	if (g->flat) {
		g->from = tile_begin(k, "begin", "columns", across, g->ur);
		g->until = tile_begin(k, "end", "columns", across, g->ur);
	} else {
		g->row_from = "begin";
		g->row_until = "end";
	}
}

const char *group_images(KernelFunc *k, const GroupLoops *g, const char *calls)
{
	Text t;
	text_init(&t, k->arena);
	text_printf(&t, "for (int64_t n = 0; n < %s; n++) {\n", g->images);
	tile_indent(&t, calls);
	text_str(&t, "}");
	return t.text;
}

// What a thread has: groups, or some rows or tiles of one.
static const char *shared_calls(KernelFunc *k, const GroupLoops *g, int64_t blocks, int nv)
{
	Arena *a = k->arena;
	const int64_t whole = blocks / nv, rest = blocks % nv, groups = whole + (rest > 0);
	const char *head = whole && rest ? arena_printf(a, "if (group < %" PRId64 ")", whole) : "";
	Text calls;
	text_init(&calls, a);
	text_printf(&calls, "const int64_t n = unit / %" PRId64 ", group = unit %% %" PRId64 ";\n",
	            groups, groups);
	if (whole)
		text_printf(
			&calls, "%s\n",
			tile_pass_on(k, head, "_group", arena_printf(a, "n, group, %d, from, until", nv)));
	if (rest)
		text_str(&calls, tile_pass_on(k, whole ? "else" : "", "_group",
		                              arena_printf(a, "n, group, %" PRId64 ", from, until", rest)));
	return tile_share(k, g->inner, calls.text);
}

const char *group_calls(KernelFunc *k, const GroupLoops *g, int64_t blocks, int nv)
{
	const int64_t whole = blocks / nv, rest = blocks % nv;
	Text calls;
	if (g->inner)
		return shared_calls(k, g, blocks, nv);
	text_init(&calls, k->arena);
	if (whole)
		text_str(&calls, whole == 1 ? tile_group(k, "n", 0, nv) : tile_groups(k, "n", whole, nv));
	if (rest)
		text_printf(&calls, "%s%s", whole ? "\n" : "", tile_group(k, "n", whole, rest));
	return group_images(k, g, calls.text);
}
