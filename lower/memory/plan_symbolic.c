// Packs buffers whose sizes may be symbolic. Called by plan.c. Three plans are made, each with its
// strength, and the one that comes out smallest at sizes as models have them is kept:
//
// - groups: a size is split into a constant and the rest (`c * R`). Buffers of one rest are packed
// by their
//   constants, so a model that is symbolic only in its batch size packs as well as a static one; groups of
//   different rests lie one behind the other.
// - stacks: packed at sample sizes, which says who lies below whom; everyone's offset is then the
// largest end of
//   those below. Good for images of any size.
// - slots: buffers take turns in slots, each as large as its largest user. Always short to say.
#include "lower/memory/plan.h"

#include <stdlib.h>

// An offset that takes more operations than this to say is not worth what it saves.
// Nor is it worth looking for when there are so many kinds of sizes, or so many buffers: which
// layers hide which is a question about three of them.
enum { MAX_NODES = 400, MAX_RESTS = 8, MAX_STACKED = 4096 };

// A plan may be so much larger than another, when it is simpler.
#define MAX_WASTE 0.01
// A plan that is so near to the most bytes live at any time is good enough.
#define GOOD_ENOUGH 0.02

// Sizes as models have them: what every symbol is taken to be when plans are compared.
static const int64_t samples[] = {32, 224, 640};

static int64_t align_up(int64_t v)
{
	return (v + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

// ---- sizes --------------------------------------------------------------------------------------

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
	case DIM_CONST: return d->value;
	case DIM_MUL: return dim_coefficient(d->a) * dim_coefficient(d->b);
	case DIM_ADD: k = gcd(dim_coefficient(d->a), dim_coefficient(d->b)); return k ? k : 1;
	default: return 1;
	}
}

static const Dim *dim_rest(Context *c, const Dim *d)
{
	return dim_is_const(d) ? dim_const(c, 1) : dim_div(c, d, dim_const(c, dim_coefficient(d)));
}

static const Dim *dim_align(Context *c, const Dim *d)
{
	if (dim_coefficient(d) % PLAN_ALIGN == 0)
		return d;
	const Dim *align = dim_const(c, PLAN_ALIGN);
	return dim_mul(c, dim_div(c, dim_add(c, d, dim_const(c, PLAN_ALIGN - 1)), align), align);
}

// What is left of the maximum `d` when `b` will be in it anyway; NULL: nothing.
static const Dim *dim_without(Context *c, const Dim *d, const Dim *b)
{
	if (dim_at_least(c, b, d))
		return NULL;
	if (d->kind != DIM_MAX)
		return d;
	const Dim *left = dim_without(c, d->a, b), *right = dim_without(c, d->b, b);
	return left && right ? dim_max(c, left, right) : left ? left : right;
}

static const Dim *dim_larger(Context *c, const Dim *a, const Dim *b)
{
	if (dim_at_least(c, a, b))
		return a;
	const Dim *rest = dim_without(c, a, b);
	return rest ? dim_max(c, rest, b) : b;
}

// Every symbol is taken to be the same.
static int64_t sample_symbol(const Dim *sym, void *arg)
{
	(void)sym;
	return *(int64_t *)arg;
}

static int64_t dim_sample(const Dim *d, int64_t symbol)
{
	int64_t v;
	return dim_eval(d, sample_symbol, &symbol, &v) ? v : INT64_MAX;
}

double dim_weight(const Dim *d)
{
	double sum = 0;
	for (size_t i = 0; i < COUNT_OF(samples); i++) // no sample outweighs the others
		sum += (double)dim_sample(d, samples[i]) / (double)(samples[i] * samples[i]);
	return sum;
}

static int dim_nodes(const Dim *d, int limit)
{
	if (limit <= 0 || d->kind == DIM_CONST || d->kind == DIM_SYM)
		return 1;
	int n = 1 + dim_nodes(d->a, limit - 1);
	return n >= limit ? n : n + dim_nodes(d->b, limit - n);
}

// ---- groups -------------------------------------------------------------------------------------

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
			int64_t size = align_up(dim_coefficient(items[j].size));
			group[count] = (PackItem){size, items[j].span, 0};
			member[count++] = j;
		}
		int64_t size = pack_items(scratch, count, group);
		for (int k = 0; k < count; k++)
			items[member[k]].offset = dim_add(c, base,
			                                  dim_mul(c, dim_const(c, group[k].offset), rest[i]));
		base = dim_add(c, base, dim_mul(c, dim_const(c, size), rest[i]));
	}
	return base;
}

// ---- stacks -------------------------------------------------------------------------------------

// An item among the others in the order of their sample offsets.
typedef struct Layer {
	int64_t offset;
	int item;
} Layer;

static int by_offset(const void *a, const void *b)
{
	const Layer *x = a, *y = b;
	return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
	                              : (x->item < y->item ? -1 : x->item > y->item);
}

// Whether an item between layers i and k lies above i's and below k's: then i's end need not be
// looked at.
static bool layer_is_hidden(const Layer *layers, const SizedItem *items, int i, int k)
{
	const SizedItem *low = &items[layers[i].item], *high = &items[layers[k].item];
	for (int m = i + 1; m < k; m++) {
		const SizedItem *mid = &items[layers[m].item];
		if (spans_meet(&low->span, &mid->span) && spans_meet(&mid->span, &high->span))
			return true;
	}
	return false;
}

// NULL: too much to say.
static const Dim *pack_stacks(Context *c, Arena *scratch, int n, SizedItem *items, int64_t symbol)
{
	PackItem *sample = NEW_ARRAY(scratch, (size_t)n + 1, PackItem);
	Layer *layers = NEW_ARRAY(scratch, (size_t)n + 1, Layer);
	for (int i = 0; i < n; i++) {
		int64_t size = dim_sample(items[i].size, symbol);
		if (size > INT64_MAX / 2 / (n + 1))
			return NULL;
		sample[i] = (PackItem){align_up(size), items[i].span, 0};
	}
	pack_items(scratch, n, sample);
	for (int i = 0; i < n; i++)
		layers[i] = (Layer){sample[i].offset, i};
	qsort(layers, (size_t)n, sizeof *layers, by_offset);
	const Dim *size = dim_const(c, 0);
	for (int k = 0; k < n; k++) {
		SizedItem *it = &items[layers[k].item];
		it->offset = dim_const(c, 0);
		for (int i = 0; i < k; i++) {
			const SizedItem *low = &items[layers[i].item];
			if (spans_meet(&low->span, &it->span) && !layer_is_hidden(layers, items, i, k))
				it->offset = dim_larger(c, it->offset, dim_add(c, low->offset, low->size));
		}
		size = dim_larger(c, size, dim_add(c, it->offset, it->size));
		if (dim_nodes(it->offset, MAX_NODES) >= MAX_NODES)
			return NULL;
	}
	return size;
}

// ---- slots --------------------------------------------------------------------------------------

typedef struct Slot {
	const Dim *size;
	int first_user; // head of the chain through SlotUse.next
} Slot;

typedef struct SlotUse {
	double weight;
	int item, next;
} SlotUse;

static int by_weight(const void *a, const void *b)
{
	const SlotUse *x = a, *y = b;
	return x->weight != y->weight ? (x->weight > y->weight ? -1 : 1)
	                              : (x->item < y->item ? -1 : x->item > y->item);
}

static bool slot_is_free(const Slot *s, const SlotUse *uses, const SizedItem *items,
                         const SizedItem *it)
{
	for (int u = s->first_user; u >= 0; u = uses[u].next)
		if (spans_meet(&items[uses[u].item].span, &it->span))
			return false;
	return true;
}

// The large ones choose a slot first; a later one takes the smallest slot that is free.
static const Dim *pack_slots(Context *c, Arena *scratch, int n, SizedItem *items)
{
	Slot *slots = NEW_ARRAY(scratch, (size_t)n + 1, Slot);
	SlotUse *uses = NEW_ARRAY(scratch, (size_t)n + 1, SlotUse);
	int nslot = 0;
	for (int i = 0; i < n; i++)
		uses[i] = (SlotUse){dim_weight(items[i].size), i, -1};
	qsort(uses, (size_t)n, sizeof *uses, by_weight);
	for (int u = 0; u < n; u++) {
		const SizedItem *it = &items[uses[u].item];
		int s = nslot - 1;
		while (s >= 0 && !slot_is_free(&slots[s], uses, items, it))
			s--;
		if (s < 0) {
			s = nslot++;
			slots[s] = (Slot){dim_const(c, 0), -1};
		}
		slots[s].size = dim_larger(c, slots[s].size, it->size);
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

// ---- the choice ---------------------------------------------------------------------------------

// Rounds sizes to the alignment: the constant factor where that costs next to nothing compared to
// the largest size, which keeps expressions simple; else the size itself.
static void items_align(Context *c, int n, SizedItem *items)
{
	double largest = 0;
	for (int i = 0; i < n; i++)
		if (dim_weight(items[i].size) > largest)
			largest = dim_weight(items[i].size);
	for (int i = 0; i < n; i++) {
		const Dim *size = items[i].size, *rest = dim_rest(c, size);
		const Dim *rounded = dim_mul(c, dim_const(c, align_up(dim_coefficient(size))), rest);
		double waste = dim_weight(rounded) - dim_weight(size);
		items[i].size = waste <= MAX_WASTE * largest ? rounded : dim_align(c, size);
	}
}

// How many kinds of sizes there are.
static int count_rests(Context *c, int n, const SizedItem *items)
{
	int count = 0;
	for (int i = 0; i < n; i++) {
		bool seen = false;
		for (int j = 0; j < i && !seen; j++)
			seen = dim_rest(c, items[j].size) == dim_rest(c, items[i].size);
		count += !seen;
	}
	return count;
}

// Takes over the plan in `other` when it is clearly smaller than `*size`.
static void keep_smaller(const Dim **size, const Dim *other_size, int n, SizedItem *items,
                         const SizedItem *other)
{
	if (!other_size || dim_weight(other_size) >= (1 - MAX_WASTE) * dim_weight(*size))
		return;
	for (int i = 0; i < n; i++)
		items[i].offset = other[i].offset;
	*size = other_size;
}

// What no plan can be below, weighed like a plan.
static double floor_weight(Arena *scratch, int n, const SizedItem *items)
{
	PackItem *sample = NEW_ARRAY(scratch, (size_t)n + 1, PackItem);
	double sum = 0;
	for (size_t k = 0; k < COUNT_OF(samples); k++) {
		for (int i = 0; i < n; i++)
			sample[i] = (PackItem){dim_sample(items[i].size, samples[k]), items[i].span, 0};
		sum += (double)pack_floor(scratch, n, sample) / (double)(samples[k] * samples[k]);
	}
	return sum;
}

// The best of the three plans for these sizes; the simple ones first, and no more once one is good
// enough.
static const Dim *pack_best(Context *c, Arena *scratch, int n, SizedItem *items, double good)
{
	SizedItem *other = NEW_ARRAY(scratch, (size_t)n + 1, SizedItem);
	items_align(c, n, items);
	for (int i = 0; i < n; i++)
		other[i] = items[i];
	const Dim *size = pack_groups(c, scratch, n, items);
	if (dim_weight(size) > good)
		keep_smaller(&size, pack_slots(c, scratch, n, other), n, items, other);
	bool few = n <= MAX_STACKED && dim_weight(size) > good && count_rests(c, n, items) <= MAX_RESTS;
	for (size_t i = 0; i < COUNT_OF(samples) && few && dim_weight(size) > good; i++)
		keep_smaller(&size, pack_stacks(c, scratch, n, other, samples[i]), n, items, other);
	return size;
}

const Dim *pack_sized(Context *c, Arena *scratch, int n, SizedItem *items)
{
	SizedItem *original = NEW_ARRAY(scratch, (size_t)n + 1, SizedItem);
	for (int i = 0; i < n; i++)
		original[i] = items[i];
	double good = (1 + GOOD_ENOUGH) * floor_weight(scratch, n, items);
	sizes_restate(c, n, items);
	bool same = true;
	for (int i = 0; i < n; i++)
		same = same && original[i].size == items[i].size;
	const Dim *size = pack_best(c, scratch, n, items, good);
	if (!same && dim_weight(size) > good)
		keep_smaller(&size, pack_best(c, scratch, n, original, good), n, items, original);
	return size;
}
