// Unit tests of the memory plan's packing: nothing that lives at one time overlaps, and little is
// wasted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "lower/memory/plan.h"

// A small generator of our own, so that the tests are the same everywhere.
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void check_items(int n, const PackItem *items, int64_t size)
{
	for (int i = 0; i < n; i++) {
		assert_true(items[i].offset >= 0 && items[i].offset % PLAN_ALIGN == 0);
		assert_true(items[i].offset + items[i].size <= size);
		for (int j = 0; j < i; j++) {
			if (!spans_meet(&items[i].span, &items[j].span))
				continue;
			assert_true(items[i].offset + items[i].size <= items[j].offset ||
			            items[j].offset + items[j].size <= items[i].offset);
		}
	}
}

static void test_random(void **state)
{
	(void)state;
	enum { N = 200 };
	static PackItem items[N];
	for (uint32_t seed = 1; seed <= 50; seed++) {
		Arena *a = arena_new();
		uint32_t r = seed;
		for (int i = 0; i < N; i++) {
			int first = (int)(next_random(&r) % 300);
			int64_t size = PLAN_ALIGN *
			               (1 + (int64_t)(next_random(&r) % (1u << next_random(&r) % 10)));
			items[i] = (PackItem){
				size, {first, first + (int)(next_random(&r) % (i % 10 ? 4 : 60)), i, NULL}, -1};
		}
		int64_t size = pack_items(a, N, items), floor = pack_floor(a, N, items);
		check_items(N, items, size);
		assert_true((double)size <= 1.1 * (double)floor);
		arena_free(a);
	}
}

// Programs of thousands of operations, whose values live for a short or a long time: orders are
// improved less often, and short lives are packed by parts of the time.
static void test_many(void **state)
{
	(void)state;
	enum { N = 3000 };
	static PackItem items[N];
	static const uint32_t lives[] = {4, 3 * N};
	for (size_t k = 0; k < COUNT_OF(lives); k++) {
		Arena *a = arena_new();
		uint32_t r = 7;
		for (int i = 0; i < N; i++) {
			int64_t size = PLAN_ALIGN * (1 + (int64_t)(next_random(&r) % 64));
			items[i] = (PackItem){
				size, {2 * i, 2 * i + 1 + (int)(next_random(&r) % lives[k]), i, NULL}, -1};
		}
		int64_t size = pack_items(a, N, items);
		check_items(N, items, size);
		assert_true((double)size <= 1.1 * (double)pack_floor(a, N, items));
		arena_free(a);
	}
}

// What a chain of layers with shortcuts asks for.
static int make_network(PackItem *items)
{
	int n = 0, at = 0;
	for (int stage = 0; stage < 4; stage++) {
		for (int block = 0; block < 4; block++) {
			int64_t size = PLAN_ALIGN * (4096 >> stage);
			items[n++] = (PackItem){
				size, {at, at + 3, 0, NULL}, -1}; // block input, read by the shortcut
			items[n++] = (PackItem){size / 2, {at + 1, at + 2, 0, NULL}, -1};
			items[n++] = (PackItem){size / 2, {at + 2, at + 3, 0, NULL}, -1};
			at += 3;
		}
	}
	return n;
}

static void test_network_is_tight(void **state)
{
	(void)state;
	Arena *a = arena_new();
	PackItem items[64];
	int n = make_network(items);
	int64_t size = pack_items(a, n, items);
	check_items(n, items, size);
	assert_int_equal(size, pack_floor(a, n, items));
	arena_free(a);
}

static void test_empty(void **state)
{
	(void)state;
	Arena *a = arena_new();
	assert_int_equal(pack_items(a, 0, NULL), 0);
	arena_free(a);
}

// ---- symbolic sizes -----------------------------------------------------------------------------

typedef struct Binding {
	int64_t n, h;
} Binding;

static int64_t value_of(const Dim *sym, void *arg)
{
	const Binding *b = arg;
	return sym->name[0] == 'n' ? b->n : b->h;
}

static int64_t eval(const Dim *d, const Binding *b)
{
	int64_t v = -1;
	Binding copy = *b;
	assert_true(dim_eval(d, value_of, &copy, &v));
	return v;
}

static void check_sized(int n, const SizedItem *items, const Dim *size)
{
	static const Binding bindings[] = {{1, 1}, {1, 7}, {3, 32}, {2, 33}, {16, 640}, {5, 1000}};
	PackItem at[64];
	for (size_t k = 0; k < COUNT_OF(bindings); k++) {
		for (int i = 0; i < n; i++)
			at[i] = (PackItem){eval(items[i].size, &bindings[k]), items[i].span,
			                   eval(items[i].offset, &bindings[k])};
		check_items(n, at, eval(size, &bindings[k]));
	}
}

static void test_batch_packs_like_static(void **state)
{
	(void)state;
	Context *c = context_new();
	PackItem fixed[64];
	SizedItem items[64];
	int n = make_network(fixed);
	const Dim *batch = dim_sym(c, "n");
	for (int i = 0; i < n; i++)
		items[i] = (SizedItem){dim_mul(c, dim_const(c, fixed[i].size), batch), fixed[i].span, NULL};
	const Dim *size = pack_sized(c, c->arena, n, items);
	check_sized(n, items, size);
	assert_int_equal(eval(size, &(Binding){7, 1}), 7 * pack_floor(c->arena, n, fixed));
	context_free(c);
}

static void test_images_of_any_size(void **state)
{
	(void)state;
	Context *c = context_new();
	SizedItem items[64];
	PackItem fixed[64];
	int n = make_network(fixed);
	const Dim *batch = dim_sym(c, "n"), *side = dim_sym(c, "h"), *one = dim_const(c, 1);
	for (int i = 0; i < n; i++) {
		if (i && i % 12 == 0) // a stage halves the image
			side = dim_add(c, dim_div(c, dim_sub(c, side, one), dim_const(c, 2)), one);
		int64_t channels = 4 * (i % 3 ? 16 : 32);
		const Dim *pixels = dim_mul(c, dim_mul(c, batch, side), side);
		items[i] = (SizedItem){dim_mul(c, pixels, dim_const(c, channels)), fixed[i].span, NULL};
	}
	items[n] = (SizedItem){dim_const(c, 100), {3, 9, 0, NULL}, NULL}; // and something fixed
	n++;
	const Dim *size = pack_sized(c, c->arena, n, items);
	check_sized(n, items, size);
	context_free(c);
}

// ---- comparing sizes ----------------------------------------------------------------------------

// A random size over n and h, as shape inference makes them.
static const Dim *random_size(Context *c, uint32_t *r, int depth)
{
	const Dim *k = dim_const(c, 1 + (int64_t)(next_random(r) % 5));
	if (depth == 0)
		return next_random(r) % 3 ? dim_sym(c, next_random(r) % 2 ? "n" : "h") : k;
	const Dim *a = random_size(c, r, depth - 1), *b = random_size(c, r, depth - 1);
	switch (next_random(r) % 7) {
	case 0: return dim_add(c, a, b);
	case 1: return dim_mul(c, a, b);
	case 2: return dim_max(c, a, b);
	case 3: return dim_sub(c, a, k);
	case 4: return dim_min(c, a, b);
	case 5: return dim_div(c, dim_add(c, a, k), dim_const(c, 2));
	default: return dim_div(c, a, k);
	}
}

// What is proved holds wherever it is tried.
static void test_proofs_hold(void **state)
{
	(void)state;
	static const int64_t values[] = {1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 100};
	int proved = 0;
	uint32_t r = 7;
	Context *c = context_new();
	for (int i = 0; i < 4000; i++) {
		const Dim *a = random_size(c, &r, 1 + i % 4), *b = random_size(c, &r, 1 + i % 3);
		const bool covers = dim_at_least(c, a, b);
		assert_int_equal(dim_at_least(c, a, b), covers); // kept, for this pair in this order
		if (!covers)
			continue;
		proved++;
		for (size_t x = 0; x < COUNT_OF(values); x++)
			for (size_t y = 0; y < COUNT_OF(values); y++)
				assert_true(eval(a, &(Binding){values[x], values[y]}) >=
				            eval(b, &(Binding){values[x], values[y]}));
	}
	assert_true(proved > 500);
	context_free(c);
}

// Halved again and again, with rounding up: each is at most its power of two times the last.
static void test_halves_compare(void **state)
{
	(void)state;
	Context *c = context_new();
	const Dim *one = dim_const(c, 1), *two = dim_const(c, 2), *level[6] = {dim_sym(c, "h")};
	for (int i = 1; i < 6; i++)
		level[i] = dim_div(c, dim_add(c, level[i - 1], one), two);
	for (int i = 0; i < 6; i++) {
		for (int j = i; j < 6; j++) {
			assert_true(dim_at_least(c, level[i], level[j]));
			assert_true(
				dim_at_least(c, dim_mul(c, dim_const(c, 1 << (j - i)), level[j]), level[i]));
		}
	}
	context_free(c);
}

static void test_restated_sizes_cover(void **state)
{
	(void)state;
	uint32_t r = 3;
	for (int round = 0; round < 100; round++) {
		Context *c = context_new();
		SizedItem before[16], after[16];
		for (int i = 0; i < 16; i++)
			after[i] = before[i] = (SizedItem){
				dim_max(c, random_size(c, &r, 3), dim_const(c, 1)), {0, 1, 0, NULL}, NULL};
		sizes_restate(c, 16, after);
		for (int i = 0; i < 16; i++)
			for (int64_t v = 1; v < 40; v++) {
				const Binding at = {v % 5 + 1, v};
				assert_true(eval(after[i].size, &at) >= eval(before[i].size, &at));
			}
		context_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_network_is_tight),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_batch_packs_like_static),
		cmocka_unit_test(test_images_of_any_size),
		cmocka_unit_test(test_proofs_hold),
		cmocka_unit_test(test_halves_compare),
		cmocka_unit_test(test_restated_sizes_cover),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
