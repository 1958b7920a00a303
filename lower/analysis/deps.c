// Dependencies between the steps of a program: which must be done before which, because one writes
// bytes that the other reads or writes. Offsets may be symbolic; what cannot be told apart counts
// as the same bytes. What is left out is what follows from the rest. Called for the nodes
// of graphs (lower/cuda), and by plan_parallel.c.
#include "ir/base/vec.h"
#include "lower/analysis/analysis.h"

#include <string.h>

// ---- accesses -----------------------------------------------------------------------------------

void accesses_add(Arena *a, Accesses *set, Access access)
{
	for (int i = 0; i < set->n; i++) {
		Access *had = &set->items[i];
		if (had->memory == access.memory && had->begin == access.begin && had->end == access.end) {
			had->how |= access.how;
			return;
		}
	}
	VEC_ROOM(a, set->items, set->n, set->cap);
	set->items[set->n++] = access;
}

void accesses_add_all(Arena *a, Accesses *set, const Accesses *more)
{
	for (int i = 0; i < more->n; i++)
		accesses_add(a, set, more->items[i]);
}

static bool may_overlap(Context *c, const Access *x, const Access *y)
{
	if (dim_is_const(x->begin) && dim_is_const(x->end) && dim_is_const(y->begin) &&
	    dim_is_const(y->end))
		return x->begin->value < y->end->value && y->begin->value < x->end->value;
	return !dim_at_least(c, x->begin, y->end) && !dim_at_least(c, y->begin, x->end);
}

static bool accesses_conflict(Context *c, const Access *x, const Access *y)
{
	const unsigned both = x->how | y->how;
	return x->memory == y->memory && both != ACCESS_READ && both != ACCESS_UPDATE &&
	       may_overlap(c, x, y);
}

bool accesses_meet(Context *c, const Accesses *x, const Accesses *y)
{
	for (int i = 0; i < x->n; i++)
		for (int k = 0; k < y->n; k++)
			if (accesses_conflict(c, &x->items[i], &y->items[k]))
				return true;
	return false;
}

// ---- steps --------------------------------------------------------------------------------------

// The last step in front of `below` that is one of `some`, but none of `done`; -1: there is none.
static int last_left(const uint64_t *some, const uint64_t *done, int below)
{
	for (int w = below / 64; w >= 0; w--) {
		uint64_t left = some[w] & ~done[w];
		if (w == below / 64)
			left &= (UINT64_C(1) << (below % 64)) - 1;
		if (left)
			return w * 64 + 63 - __builtin_clzll(left);
	}
	return -1;
}

const Waits *deps_find(Context *c, Arena *a, int n, const Accesses *steps)
{
	const size_t words = (size_t)n / 64 + 1;
	Arena *scratch = arena_scratch(a);
	Waits *waits = NEW_ARRAY(a, (size_t)n + 1, Waits);
	uint64_t **before = NEW_ARRAY(scratch, (size_t)n + 1, uint64_t *); // all that is done by then
	int *found = NEW_ARRAY(scratch, (size_t)n + 1, int);
	uint64_t *some = NEW_ARRAY(scratch, words, uint64_t); // that touch something
	for (int i = 0; i < n; i++) {
		before[i] = NEW_ARRAY(scratch, words, uint64_t);
		// From the nearest on: what an earlier step waits for is known when it is met.
		for (int k = last_left(some, before[i], i); k >= 0; k = last_left(some, before[i], k)) {
			if (!accesses_meet(c, &steps[i], &steps[k]))
				continue;
			found[waits[i].n++] = k;
			before[i][k / 64] |= UINT64_C(1) << (k % 64);
			for (size_t w = 0; w < words; w++)
				before[i][w] |= before[k][w];
		}
		int *list = NEW_ARRAY(a, (size_t)waits[i].n + 1, int);
		memcpy(list, found, (size_t)waits[i].n * sizeof *list);
		waits[i].steps = list;
		if (steps[i].n)
			some[i / 64] |= UINT64_C(1) << (i % 64);
	}
	arena_free(scratch);
	return waits;
}
