// Packs buffers of constant size with lifetimes into one workspace: best-fit by offset, tried in
// several orders and then improved by letting the buffers that stick out go first; the smallest
// result is kept. Called by plan_symbolic.c; knows nothing of operations.
#include "lower/memory/plan.h"

#include <stdlib.h>
#include <string.h>

// So often; less where items are kept apart, whose plans are not near to the floor by which one
// knows the end.
enum { IMPROVEMENTS = 200, IMPROVEMENTS_APART = 16, ORDERS = 4 };

// A packing looks at each pair of items: that many pairs at the most, then the orders alone count,
// so that a program of many thousand operations is planned in the time that it takes to read it.
#define MAX_PAIRS (INT64_C(1) << 28)

// From time `at` on so many bytes more are live.
typedef struct Change {
	int at;
	int64_t bytes;
} Change;

// Of the same time, those that end come first.
static int by_at(const void *a, const void *b)
{
	const Change *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int64_t pack_floor(Arena *scratch, int n, const PackItem *items)
{
	Change *changes = NEW_ARRAY(scratch, 2 * (size_t)n + 1, Change);
	int64_t live = 0, most = 0;
	for (int i = 0; i < n; i++) {
		changes[2 * i] = (Change){items[i].span.first, items[i].size};
		changes[2 * i + 1] = (Change){items[i].span.last + 1, -items[i].size};
	}
	qsort(changes, 2 * (size_t)n, sizeof *changes, by_at);
	for (int i = 0; i < 2 * n; i++) {
		live += changes[i].bytes;
		most = live > most ? live : most;
	}
	return most;
}

// Where an item was placed.
typedef struct Spot {
	PackSpan span;
	int64_t offset, end;
} Spot;

// Items placed so far, by rising offset. All of them are gone through for each item, so they lie
// side by side.
typedef struct SpotList {
	int n;
	Spot *items;
} SpotList;

// Where most items live for a short time only, those of each part of the time are kept apart, too:
// an item that lies within one part meets no others.
enum { PARTS = 64 };
typedef struct Placed {
	SpotList all, parts[PARTS];
	int64_t begin, length; // of the time; length 0: no parts
} Placed;

static int part_of(const Placed *p, int at)
{
	return (int)((at - p->begin) * PARTS / p->length);
}

static Placed placed_new(Arena *scratch, int n, const PackItem *items)
{
	Placed p = {.all.items = NEW_ARRAY(scratch, (size_t)n + 1, Spot)};
	int room[PARTS] = {0}, last = 0, total = 0;
	if (!n || items[0].span.apart)
		return p;
	p.begin = items[0].span.first;
	for (int i = 0; i < n; i++) {
		p.begin = items[i].span.first < p.begin ? items[i].span.first : p.begin;
		last = items[i].span.last > last ? items[i].span.last : last;
	}
	p.length = last - p.begin + 1;
	for (int i = 0; i < n; i++)
		for (int k = part_of(&p, items[i].span.first); k <= part_of(&p, items[i].span.last); k++) {
			room[k]++;
			total++;
		}
	if (total > 2 * n)
		p.length = 0;
	for (int k = 0; k < PARTS && p.length; k++)
		p.parts[k].items = NEW_ARRAY(scratch, (size_t)room[k] + 1, Spot);
	return p;
}

// The smallest gap among the items that live when `it` does, or behind them all.
static int64_t best_gap(const SpotList *p, const PackItem *it)
{
	int64_t end = 0, best = -1, best_size = INT64_MAX;
	for (int i = 0; i < p->n; i++) {
		const Spot *o = &p->items[i];
		if (!spans_meet(&o->span, &it->span))
			continue;
		int64_t gap = o->offset - end;
		if (gap >= it->size && gap < best_size) {
			best = end;
			best_size = gap;
		}
		if (o->end > end)
			end = o->end;
	}
	return best >= 0 ? best : end;
}

static void spot_insert(SpotList *p, const PackItem *it)
{
	int i = p->n++;
	while (i > 0 && p->items[i - 1].offset > it->offset)
		i--;
	memmove(p->items + i + 1, p->items + i, (size_t)(p->n - 1 - i) * sizeof *p->items);
	p->items[i] = (Spot){it->span, it->offset, it->offset + it->size};
}

// Gives the item an offset, and notes it.
static void item_place(Placed *p, PackItem *it)
{
	const int from = p->length ? part_of(p, it->span.first) : 0,
			  to = p->length ? part_of(p, it->span.last) : PARTS;
	it->offset = best_gap(from == to ? &p->parts[from] : &p->all, it);
	spot_insert(&p->all, it);
	for (int k = from; k <= to && p->length; k++)
		spot_insert(&p->parts[k], it);
}

static int64_t pack_in_order(Placed *p, int n, PackItem *const *order)
{
	int64_t size = 0;
	p->all.n = 0;
	for (int k = 0; k < PARTS; k++)
		p->parts[k].n = 0;
	for (int i = 0; i < n; i++) {
		item_place(p, order[i]);
		if (order[i]->offset + order[i]->size > size)
			size = order[i]->offset + order[i]->size;
	}
	return size;
}

static int length(const PackItem *it)
{
	return it->span.last - it->span.first + 1;
}

// Every comparison ends in (first, address), so that sorting is the same everywhere.
static int by_time(const void *a, const void *b)
{
	const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
	if (x->span.first != y->span.first)
		return x->span.first < y->span.first ? -1 : 1;
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
	double p = (double)x->size * length(x), q = (double)y->size * length(y);
	return p != q ? (p > q ? -1 : 1) : by_time(a, b);
}

static int by_span(const void *a, const void *b)
{
	const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
	return length(x) != length(y) ? (length(x) > length(y) ? -1 : 1) : by_size(a, b);
}

// How often an order may be improved for n items.
static int improvements(int n, const PackItem *items)
{
	const int most = n && items[0].span.apart ? IMPROVEMENTS_APART : IMPROVEMENTS;
	const int64_t pairs = (int64_t)n * n / 2 + 1, rounds = MAX_PAIRS / pairs / ORDERS;
	return rounds < most ? (int)rounds : most;
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

// Moves the first item in `order` that reaches up to `size` to the front. False when it is there
// already.
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
	static int (*const orders[ORDERS])(const void *, const void *) = {by_size, by_area, by_span,
	                                                                  by_time};
	PackItem **order = NEW_ARRAY(scratch, (size_t)n + 1, PackItem *);
	Placed placed = placed_new(scratch, n, items);
	Best best = {-1, NEW_ARRAY(scratch, (size_t)n + 1, int64_t)};
	int64_t floor = pack_floor(scratch, n, items);
	const int tries = improvements(n, items);
	for (int k = 0; k < ORDERS && best.size != floor; k++) {
		for (int i = 0; i < n; i++)
			order[i] = &items[i];
		qsort(order, (size_t)n, sizeof *order, orders[k]);
		int64_t size = pack_in_order(&placed, n, order);
		best_keep(&best, size, n, items);
		for (int i = 0; i < tries && best.size > floor && tallest_first(n, order, size); i++) {
			size = pack_in_order(&placed, n, order);
			best_keep(&best, size, n, items);
		}
	}
	for (int i = 0; i < n; i++)
		items[i].offset = best.offsets[i];
	return n ? best.size : 0;
}
