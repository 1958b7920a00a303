// The memory plan where operations that do not wait for each other run side by side: a buffer that
// takes the bytes of another makes its operations wait for those of the other. So buffers are kept
// apart when nothing else orders them, as far as the workspace grows little by it: first all of
// them, then only such as stand near each other in the program. Called by plan.c.
//
// Memory that calls of libraries work in is large and nobody's operand: calls side by side get
// bytes of their own where that does not double the workspace, else they wait for each other, and
// the rest is as without them.
//
// Only buffers of one block, which is what becomes one graph, are looked at.
#include "lower/analysis/analysis.h"
#include "lower/memory/plan.h"
#include "lower/target/schedule.h"

#include <stdlib.h>
#include <string.h>

// The workspace may become so many times larger, and a little.
#define MAX_GROWTH 1.25
#define MAX_SCRATCH_GROWTH 2.0
enum { LITTLE_BYTES = 64 << 10 };

// Who is kept apart: how many operations may be between two buffers; and whether memory to work in
// counts.
typedef struct Attempt {
	int window;
	bool scratch;
} Attempt;

static const Attempt attempts[] = {{INT32_MAX, true}, {64, true},         {16, true},  {4, true},
                                   {1, true},         {INT32_MAX, false}, {64, false}, {16, false}};

// ---- what is ordered ----------------------------------------------------------------------------

// The operations of a block, and for each the set of those that are done before it begins.
typedef struct Order {
	const Plan *plan;
	const BlockPlan *block;
	int n;
	uint64_t **before;
} Order;

static bool set_has(const uint64_t *set, int i)
{
	return set[i / 64] >> (i % 64) & 1;
}

static void set_add(uint64_t *set, int i)
{
	set[i / 64] |= UINT64_C(1) << (i % 64);
}

// Operation `at` touches a buffer, whatever of it.
static void order_touch(const Order *o, Accesses *steps, int at, int buffer, unsigned how)
{
	Context *c = o->plan->ctx;
	if (at >= o->block->start && at <= o->block->end)
		accesses_add(o->plan->arena, &steps[at - o->block->start],
		             (Access){buffer, how, dim_const(c, 0), dim_const(c, 1)});
}

// As the graph will be when no buffer takes the bytes of another.
static void order_find(Order *o)
{
	const Plan *p = o->plan;
	o->n = o->block->end - o->block->start + 1;
	Accesses *steps = NEW_ARRAY(p->arena, (size_t)o->n + 1, Accesses);
	int number = 0;
	for (Buffer *b = p->first; b; b = b->next, number++)
		// Nobody writes parameters, and so nobody waits for them.
		for (const Root *r = b->merged || b->place == IN_PARAM ? NULL : b->roots; r; r = r->next) {
			order_touch(o, steps, r->at, number, ACCESS_WRITE);
			for (int i = 0; i < r->nuse; i++)
				order_touch(o, steps, r->uses[i], number, ACCESS_READ);
		}
	const Waits *waits = deps_find(p->ctx, p->arena, o->n, steps);
	const size_t words = (size_t)o->n / 64 + 1;
	o->before = NEW_ARRAY(p->arena, (size_t)o->n + 1, uint64_t *);
	for (int i = 0; i < o->n; i++) {
		o->before[i] = NEW_ARRAY(p->arena, words, uint64_t);
		for (int k = 0; k < waits[i].n; k++) {
			const int w = waits[i].steps[k];
			set_add(o->before[i], w);
			for (size_t j = 0; j < words; j++)
				o->before[i][j] |= o->before[w][j];
		}
	}
}

static bool done_before(const Order *o, int at, int then)
{
	return set_has(o->before[then - o->block->start], at - o->block->start);
}

// Whether all that touches buffer a is done when b begins.
static bool buffer_done_before(const Order *o, const Buffer *a, const Buffer *b)
{
	for (const Root *r = a->roots; r; r = r->next) {
		if (!done_before(o, r->at, b->first))
			return false;
		for (int i = 0; i < r->nuse; i++)
			if (!done_before(o, r->uses[i], b->first))
				return false;
	}
	return true;
}

// ---- who is kept apart --------------------------------------------------------------------------

// A buffer of the block that is looked at, and which of the items it is.
typedef struct Candidate {
	const Buffer *of;
	int item;
} Candidate;

static bool inside_block(const BlockPlan *block, const Buffer *b)
{
	return !b->moving && b->first >= block->start && b->last <= block->end;
}

// Whether it is what a call of a library works in.
static bool is_scratch(const Buffer *b)
{
	const Value *v = b->roots->value;
	return v->def && v->index == 1 && cuda_op_is_library(v->def);
}

static bool counts(const Attempt *t, const BlockPlan *block, const Buffer *b)
{
	return inside_block(block, b) && (t->scratch || !is_scratch(b));
}

static int compare_begins(const void *a, const void *b)
{
	const Candidate *x = a, *y = b;
	return x->of->first != y->of->first ? (x->of->first < y->of->first ? -1 : 1)
	                                    : x->item - y->item;
}

// Where those begin that begin behind `at`.
static int first_behind(int n, const Candidate *list, int at)
{
	int from = 0;
	while (from < n) {
		const int mid = from + (n - from) / 2;
		if (list[mid].of->first > at)
			n = mid;
		else
			from = mid + 1;
	}
	return from;
}

static void block_keep_apart(const Order *o, int n, Buffer *const *of, const Attempt *t,
                             uint64_t **apart)
{
	Candidate *list = NEW_ARRAY(o->plan->arena, (size_t)n + 1, Candidate);
	int count = 0;
	for (int i = 0; i < n; i++)
		if (counts(t, o->block, of[i]))
			list[count++] = (Candidate){of[i], i};
	qsort(list, (size_t)count, sizeof *list, compare_begins);
	for (int i = 0; i < count; i++) {
		const Candidate *a = &list[i];
		for (int k = first_behind(count, list, a->of->last); k < count; k++) {
			const Candidate *b = &list[k];
			if (b->of->first - a->of->last > t->window)
				break;
			if (buffer_done_before(o, a->of, b->of))
				continue;
			set_add(apart[a->item], b->item);
			set_add(apart[b->item], a->item);
		}
	}
}

const Dim *pack_parallel(Plan *p, int n, Buffer *const *of, SizedItem *items)
{
	const Dim *least = pack_sized(p->ctx, p->arena, n, items);
	bool calls = false;
	for (int i = 0; i < n; i++)
		calls |= is_scratch(of[i]);
	Order *orders = NEW_ARRAY(p->arena, (size_t)p->nblock + 1, Order);
	for (int k = 0; k < p->nblock; k++) {
		orders[k] = (Order){.plan = p, .block = &p->blocks[k]};
		order_find(&orders[k]);
	}
	SizedItem *wide = NEW_ARRAY(p->arena, (size_t)n + 1, SizedItem);
	for (const Attempt *t = attempts; t < attempts + COUNT_OF(attempts); t++) {
		if (t->scratch && !calls)
			continue;
		const double growth = t->scratch ? MAX_SCRATCH_GROWTH : MAX_GROWTH;
		uint64_t **apart = NEW_ARRAY(p->arena, (size_t)n + 1, uint64_t *);
		for (int i = 0; i < n; i++) {
			apart[i] = NEW_ARRAY(p->arena, (size_t)n / 64 + 1, uint64_t);
			wide[i] = (SizedItem){of[i]->bytes, {of[i]->first, of[i]->last, i, apart[i]}, NULL};
		}
		for (int k = 0; k < p->nblock; k++)
			block_keep_apart(&orders[k], n, of, t, apart);
		const Dim *size = pack_sized(p->ctx, p->arena, n, wide);
		if (dim_weight(size) >
		    growth * dim_weight(least) + dim_weight(dim_const(p->ctx, LITTLE_BYTES)))
			continue;
		memcpy(items, wide, (size_t)n * sizeof *items);
		return size;
	}
	return least;
}
