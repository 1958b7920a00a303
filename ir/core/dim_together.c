// Sizes that control flow gives new values, and that are equal all the time: they begin equal, and
// where they were equal before a round they are after it. Called by the frontend, which gives them
// one symbol.
#include "ir/core/dim.h"

static const Dim *renamed(Context *c, const Dim *d, int n, const LoopSize *sizes)
{
	if (d->kind == DIM_CONST)
		return d;
	if (d->kind == DIM_SYM) {
		for (int i = 0; i < n; i++)
			if (sizes[i].sym == d)
				return sizes[sizes[i].same].sym;
		return d;
	}
	const Dim *a = renamed(c, d->a, n, sizes), *b = renamed(c, d->b, n, sizes); // in this order
	return dim_like(c, d, a, b);
}

// All that begin equal are taken to be equal; what a round then makes different is not, until
// nothing changes.
void dims_together(Context *c, int n, LoopSize *sizes)
{
	const Dim **next = NEW_ARRAY(c->arena, (size_t)n + 1, const Dim *);
	int *was = NEW_ARRAY(c->arena, (size_t)n + 1, int);
	for (int i = 0; i < n; i++) {
		sizes[i].same = 0;
		while (sizes[sizes[i].same].first != sizes[i].first)
			sizes[i].same++;
	}
	for (bool changed = true; changed;) {
		changed = false;
		for (int i = 0; i < n; i++) {
			next[i] = renamed(c, sizes[i].next, n, sizes);
			was[i] = sizes[i].same;
		}
		for (int i = 0; i < n; i++) {
			int same = 0;
			while (was[same] != was[i] || next[same] != next[i])
				same++;
			changed |= same != was[i];
			sizes[i].same = same;
		}
	}
}
