// What tiles of packed operands fetch for the next panel. Called by tuned/gemm.c, conv.c and
// winograd.c.
#include "codegen/nest/ahead.h"

#include <inttypes.h>

// All shares together are the panel and no more: there are as many as tiles, where that divides the
// width.
int64_t ahead_step(int64_t tiles, int64_t width)
{
	enum { OPEN = 8 };
	int64_t n = tiles ? tiles : OPEN;
	if (n > width)
		n = width;
	while (width % n)
		n--;
	return width / n;
}

const char *ahead_share(KernelFunc *k, const Ahead *a)
{
	Arena *to = k->arena;
	const int64_t step = ahead_step(a->tiles, a->width), n = a->width / step;
	if (!kernel_helper(k, "prefetch.c", 0, NULL) ||
	    (a->count && !kernel_helper(k, "ahead_step.c", 0, NULL)))
		return NULL;
	if (a->count)
		return arena_printf(to, "%s + (%s + %s * (%" PRId64 " / step) / %s * step) * %s, step",
		                    a->base, a->panel, a->first, a->width, a->extent, a->depth);
	if (n == 1)
		return arena_printf(to, "%s + %s * %s, %" PRId64, a->base, a->panel, a->depth, step);
	return arena_printf(to, "%s + (%s + %s * %" PRId64 " / %s%s) * %s, %" PRId64, a->base, a->panel,
	                    a->first, n, a->extent,
	                    step == 1 ? "" : arena_printf(to, " * %" PRId64, step), a->depth, step);
}

const char *ahead_count(KernelFunc *k, const Ahead *a)
{
	return a->count
	           ? arena_printf(k->arena, "step = pd_ahead_step(%s, %" PRId64 ")", a->count, a->width)
	           : "";
}

bool ahead_pays(int64_t bytes)
{
	enum { NEAR = 256 << 10 }; // in a second-level cache, from one run to the next
	return bytes >= NEAR;
}
