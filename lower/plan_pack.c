// Packs buffers with lifetimes into one workspace. Called by plan.c; knows nothing of operations.
//
// Constant sizes: best-fit by offset, tried in several orders and then improved by letting the buffers
// that stick out go first; the smallest result is kept.
//
// Symbolic sizes: a size is split into a constant and the rest (`c * R`). Buffers of one rest are packed by
// their constants, so a model that is symbolic only in its batch size packs as well as a static one; groups
// of different rests lie one behind the other. Where slots (buffers that take turns, each as large as its
// largest user) come out smaller, they are used instead.
#include "plan.h"

#include <stdlib.h>

enum { IMPROVEMENTS = 200 };

static int64_t align_up(int64_t v)
{
	return (v + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

// ---- constant sizes -----------------------------------------------------------------------------------

static bool overlap_in_time(int first_a, int last_a, int first_b, int last_b)
{
	return first_a <= last_b && first_b <= last_a;
}

int64_t pack_floor(int n, const PackItem *items)
{
	int64_t most = 0;
	for (int i = 0; i < n; i++) { // live bytes only rise where something starts
		int64_t live = 0;
		for (int j = 0; j < n; j++)
			if (overlap_in_time(items[i].first, items[i].first, items[j].first, items[j].last))
				live += items[j].size;
		if (live > most)
			most = live;
	}
	return most;
}

// Items placed so far, by rising offset.
typedef struct Placed {
	int n;
	const PackItem **items;
} Placed;

// The smallest gap among the items that live when `it` does, or behind them all.
static int64_t best_gap(const Placed *p, const PackItem *it)
{
	int64_t end = 0, best = -1, best_size = INT64_MAX;
	for (int i = 0; i < p->n; i++) {
		const PackItem *o = p->items[i];
		if (!overlap_in_time(o->first, o->last, it->first, it->last))
			continue;
		int64_t gap = o->offset - end;
		if (gap >= it->size && gap < best_size) {
			best = end;
			best_size = gap;
		}
		if (o->offset + o->size > end)
			end = o->offset + o->size;
	}
	return best >= 0 ? best : end;
}

static void placed_insert(Placed *p, const PackItem *it)
{
	int i = p->n++;
	for (; i > 0 && p->items[i - 1]->offset > it->offset; i--)
		p->items[i] = p->items[i - 1];
	p->items[i] = it;
}

static int64_t pack_in_order(Placed *p, int n, PackItem *const *order)
{
	int64_t size = 0;
	p->n = 0;
	for (int i = 0; i < n; i++) {
		order[i]->offset = best_gap(p, order[i]);
		placed_insert(p, order[i]);
		if (order[i]->offset + order[i]->size > size)
			size = order[i]->offset + order[i]->size;
	}
	return size;
}

static int span(const PackItem *it)
{
	return it->last - it->first + 1;
}

// Every comparison ends in (first, address), so that sorting is the same everywhere.
static int by_time(const void *a, const void *b)
{
	const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_size(const void *a, const void *b)
{
	const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
	return x->size != y->size ? (x->size > y->size ? -1 : 1) : by_time(a, b);
}

static int by_area(const void *a, const void *b)
{
	const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
	double p = (double)x->size * span(x), q = (double)y->size * span(y);
	return p != q ? (p > q ? -1 : 1) : by_time(a, b);
}

static int by_span(const void *a, const void *b)
{
	const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
	return span(x) != span(y) ? (span(x) > span(y) ? -1 : 1) : by_size(a, b);
}

// The best plan so far.
typedef struct Best {
	int64_t size;
	int64_t *offsets;
} Best;

static void best_keep(Best *best, int64_t size, int n, const PackItem *items)
{
	if (best->size >= 0 && size >= best->size)
		return;
	best->size = size;
	for (int i = 0; i < n; i++)
		best->offsets[i] = items[i].offset;
}

// Moves the first item in `order` that reaches up to `size` to the front. False when it is there already.
static bool tallest_first(int n, PackItem **order, int64_t size)
{
	for (int i = 0; i < n; i++) {
		PackItem *it = order[i];
		if (it->offset + it->size != size)
			continue;
		for (int j = i; j > 0; j--)
			order[j] = order[j - 1];
		order[0] = it;
		return i > 0;
	}
	return false;
}

int64_t pack_items(Arena *scratch, int n, PackItem *items)
{
	static int (*const orders[])(const void *, const void *) = {by_size, by_area, by_span, by_time};
	PackItem **order = NEW_ARRAY(scratch, (size_t)n + 1, PackItem *);
	Placed placed = {0, NEW_ARRAY(scratch, (size_t)n + 1, const PackItem *)};
	Best best = {-1, NEW_ARRAY(scratch, (size_t)n + 1, int64_t)};
	int64_t floor = pack_floor(n, items);
	for (size_t k = 0; k < COUNT_OF(orders) && best.size != floor; k++) {
		for (int i = 0; i < n; i++)
			order[i] = &items[i];
		qsort(order, (size_t)n, sizeof *order, orders[k]);
		int64_t size = pack_in_order(&placed, n, order);
		best_keep(&best, size, n, items);
		for (int i = 0; i < IMPROVEMENTS && best.size > floor && tallest_first(n, order, size); i++) {
			size = pack_in_order(&placed, n, order);
			best_keep(&best, size, n, items);
		}
	}
	for (int i = 0; i < n; i++)
		items[i].offset = best.offsets[i];
	return n ? best.size : 0;
}

// ---- symbolic sizes ----------------------------------------------------------------------------------

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t r = a % b;
		a = b;
		b = r;
	}
	return a < 0 ? -a : a;
}

// The constant factor of a size: d = dim_coefficient(d) * dim_rest(d).
static int64_t dim_coefficient(const Dim *d)
{
	int64_t k;
	switch (d->kind) {
	case DIM_CONST:
		return d->value;
	case DIM_MUL:
		return dim_coefficient(d->a) * dim_coefficient(d->b);
	case DIM_ADD:
		k = gcd(dim_coefficient(d->a), dim_coefficient(d->b));
		return k ? k : 1;
	default:
		return 1;
	}
}

static const Dim *dim_shrink(Context *c, const Dim *d, int64_t by);

static const Dim *dim_rest(Context *c, const Dim *d)
{
	switch (d->kind) {
	case DIM_CONST:
		return dim_const(c, 1);
	case DIM_MUL:
		return dim_mul(c, dim_rest(c, d->a), dim_rest(c, d->b));
	case DIM_ADD:
		return dim_shrink(c, d, dim_coefficient(d));
	default:
		return d;
	}
}

// d / by, where `by` divides every term.
static const Dim *dim_shrink(Context *c, const Dim *d, int64_t by)
{
	if (d->kind == DIM_ADD)
		return dim_add(c, dim_shrink(c, d->a, by), dim_shrink(c, d->b, by));
	return dim_mul(c, dim_const(c, dim_coefficient(d) / by), dim_rest(c, d));
}

static bool dim_at_least(Context *c, const Dim *a, const Dim *b)
{
	int64_t lo, hi;
	if (a == b)
		return true;
	dim_range(dim_sub(c, a, b), &lo, &hi);
	return lo >= 0;
}

static const Dim *dim_larger(Context *c, const Dim *a, const Dim *b)
{
	if (!a || dim_at_least(c, b, a))
		return b;
	return dim_at_least(c, a, b) ? a : dim_max(c, a, b);
}

static const Dim *dim_align(Context *c, const Dim *d)
{
	if (dim_coefficient(d) % PLAN_ALIGN == 0)
		return d;
	const Dim *align = dim_const(c, PLAN_ALIGN);
	return dim_mul(c, dim_div(c, dim_add(c, d, dim_const(c, PLAN_ALIGN - 1)), align), align);
}

// What a plan comes to at sizes as models have them, to choose between plans.
static int64_t sample_symbol(const Dim *sym, void *arg)
{
	(void)sym;
	return *(int64_t *)arg;
}

static double dim_weight(const Dim *d)
{
	static const int64_t samples[] = {1, 32, 224, 640};
	double sum = 0;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		int64_t at = samples[i], v = 0;
		if (dim_eval(d, sample_symbol, &at, &v))
			sum += (double)v / (double)(at * at); // no sample outweighs the others
	}
	return sum;
}

// Plan one: a region for every rest, the coefficients packed inside it.
static const Dim *pack_groups(Context *c, Arena *scratch, int n, SizedItem *items)
{
	PackItem *group = NEW_ARRAY(scratch, (size_t)n + 1, PackItem);
	int *member = NEW_ARRAY(scratch, (size_t)n + 1, int);
	const Dim **rest = NEW_ARRAY(scratch, (size_t)n + 1, const Dim *);
	for (int i = 0; i < n; i++) {
		rest[i] = dim_rest(c, items[i].size);
		items[i].offset = NULL;
	}
	const Dim *base = dim_const(c, 0);
	for (int i = 0; i < n; i++) {
		if (items[i].offset)
			continue;
		int count = 0;
		for (int j = i; j < n; j++) {
			if (rest[j] != rest[i])
				continue;
			group[count] = (PackItem){align_up(dim_coefficient(items[j].size)), items[j].first, items[j].last, 0};
			member[count++] = j;
		}
		int64_t size = pack_items(scratch, count, group);
		for (int k = 0; k < count; k++)
			items[member[k]].offset = dim_add(c, base, dim_mul(c, dim_const(c, group[k].offset), rest[i]));
		base = dim_add(c, base, dim_mul(c, dim_const(c, size), rest[i]));
	}
	return base;
}

typedef struct Slot {
	const Dim *size;
	int first_user; // head of the chain through SlotUse.next
} Slot;

typedef struct SlotUse {
	double weight;
	int item, slot, next;
} SlotUse;

static int by_weight(const void *a, const void *b)
{
	const SlotUse *x = a, *y = b;
	return x->weight != y->weight ? (x->weight > y->weight ? -1 : 1) : (x->item < y->item ? -1 : x->item > y->item);
}

static bool slot_is_free(const Slot *s, const SlotUse *uses, const SizedItem *items, const SizedItem *it)
{
	for (int u = s->first_user; u >= 0; u = uses[u].next) {
		const SizedItem *o = &items[uses[u].item];
		if (overlap_in_time(o->first, o->last, it->first, it->last))
			return false;
	}
	return true;
}

// Plan two: the large ones choose a slot first; a later one takes the smallest slot that is free.
static const Dim *pack_slots(Context *c, Arena *scratch, int n, SizedItem *items)
{
	Slot *slots = NEW_ARRAY(scratch, (size_t)n + 1, Slot);
	SlotUse *uses = NEW_ARRAY(scratch, (size_t)n + 1, SlotUse);
	int nslot = 0;
	for (int i = 0; i < n; i++)
		uses[i] = (SlotUse){dim_weight(items[i].size), i, 0, -1};
	qsort(uses, (size_t)n, sizeof *uses, by_weight);
	for (int u = 0; u < n; u++) {
		const SizedItem *it = &items[uses[u].item];
		int s = nslot - 1;
		while (s >= 0 && !slot_is_free(&slots[s], uses, items, it))
			s--;
		if (s < 0) {
			s = nslot++;
			slots[s].first_user = -1;
		}
		slots[s].size = dim_larger(c, slots[s].size, dim_align(c, it->size));
		uses[u].slot = s;
		uses[u].next = slots[s].first_user;
		slots[s].first_user = u;
	}
	const Dim *base = dim_const(c, 0);
	for (int s = 0; s < nslot; s++) {
		for (int u = slots[s].first_user; u >= 0; u = uses[u].next)
			items[uses[u].item].offset = base;
		base = dim_add(c, base, slots[s].size);
	}
	return base;
}

const Dim *pack_sized(Context *c, Arena *scratch, int n, SizedItem *items)
{
	SizedItem *other = NEW_ARRAY(scratch, (size_t)n + 1, SizedItem);
	bool symbolic = false;
	for (int i = 0; i < n; i++) {
		other[i] = items[i];
		symbolic = symbolic || !dim_is_const(items[i].size);
	}
	const Dim *size = pack_groups(c, scratch, n, items);
	if (!symbolic)
		return size;
	const Dim *slots = pack_slots(c, scratch, n, other);
	if (dim_weight(slots) >= dim_weight(size))
		return size;
	for (int i = 0; i < n; i++)
		items[i].offset = other[i].offset;
	return slots;
}
