// What must wait for what, by the bytes that are touched: lower/analysis/deps.c.
#include "lower/analysis/analysis.h"
#include "tests/unit/unit.h"

static void touch(Context *c, Accesses *step, unsigned how, int64_t begin, int64_t end)
{
	accesses_add(c->arena, step, (Access){0, how, dim_const(c, begin), dim_const(c, end)});
}

// What a step waits for must be these, the last one first; they end with -1.
static void waits_are(const Waits *w, const int *want)
{
	int n = 0;
	while (want[n] >= 0)
		n++;
	assert_int_equal(w->n, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(w->steps[i], want[i]);
}
#define WAITS_ARE(w, ...) waits_are(w, (const int[]){__VA_ARGS__})

// Two branches from one result that meet again.
static void test_branches(void **state)
{
	Context *c = *state;
	Accesses s[4] = {0};
	touch(c, &s[0], ACCESS_WRITE, 0, 64);
	touch(c, &s[1], ACCESS_READ, 0, 64);
	touch(c, &s[1], ACCESS_WRITE, 64, 128);
	touch(c, &s[2], ACCESS_READ, 0, 64);
	touch(c, &s[2], ACCESS_WRITE, 128, 192);
	touch(c, &s[3], ACCESS_READ, 0, 64); // what the other two wait for, too
	touch(c, &s[3], ACCESS_READ, 64, 192);
	touch(c, &s[3], ACCESS_WRITE, 192, 256);
	const Waits *w = deps_find(c, c->arena, 4, s);
	WAITS_ARE(&w[0], -1);
	WAITS_ARE(&w[1], 0, -1);
	WAITS_ARE(&w[2], 0, -1);
	WAITS_ARE(&w[3], 2, 1, -1);
}

// Bytes that are taken over: the new owner waits for readers of the old one, and for its writer
// where nobody read.
static void test_reuse(void **state)
{
	Context *c = *state;
	Accesses s[5] = {0};
	touch(c, &s[0], ACCESS_WRITE, 0, 128);
	touch(c, &s[1], ACCESS_READ, 0, 64);
	touch(c, &s[2], ACCESS_READ, 64, 128);
	touch(c, &s[3], ACCESS_WRITE, 0, 65);    // one byte of what step 2 reads
	touch(c, &s[4], ACCESS_WRITE, 128, 192); // next to all
	const Waits *w = deps_find(c, c->arena, 5, s);
	WAITS_ARE(&w[3], 2, 1, -1);
	WAITS_ARE(&w[4], -1);
	Accesses t[2] = {0};
	touch(c, &t[0], ACCESS_WRITE, 0, 64);
	touch(c, &t[1], ACCESS_WRITE, 63, 64);
	w = deps_find(c, c->arena, 2, t);
	WAITS_ARE(&w[1], 0, -1);
}

// Updates come in any order, but not beside readers or writers; another memory is another matter.
static void test_updates(void **state)
{
	Context *c = *state;
	Accesses s[5] = {0};
	touch(c, &s[0], ACCESS_UPDATE, 0, 8);
	touch(c, &s[1], ACCESS_UPDATE, 0, 8);
	touch(c, &s[2], ACCESS_READ, 0, 8);
	touch(c, &s[3], ACCESS_UPDATE, 0, 8);
	accesses_add(c->arena, &s[4], (Access){1, ACCESS_WRITE, dim_const(c, 0), dim_const(c, 8)});
	const Waits *w = deps_find(c, c->arena, 5, s);
	WAITS_ARE(&w[1], -1);
	WAITS_ARE(&w[2], 1, 0, -1);
	WAITS_ARE(&w[3], 2, -1);
	WAITS_ARE(&w[4], -1);
}

// The same bytes touched twice are one access.
static void test_joined(void **state)
{
	Context *c = *state;
	Accesses s = {0}, all = {0};
	touch(c, &s, ACCESS_READ, 0, 64);
	touch(c, &s, ACCESS_WRITE, 0, 64);
	touch(c, &s, ACCESS_READ, 0, 32);
	accesses_add_all(c->arena, &all, &s);
	accesses_add_all(c->arena, &all, &s);
	assert_int_equal(all.n, 2);
	assert_int_equal(all.items[0].how, ACCESS_READ | ACCESS_WRITE);
}

// Offsets in sizes: apart for all sizes, or not known to be.
static void test_symbolic(void **state)
{
	Context *c = *state;
	const Dim *zero = dim_const(c, 0), *line = dim_const(c, 64);
	const Dim *end = dim_mul(c, line, dim_sym(c, "n")), *other = dim_mul(c, line, dim_sym(c, "k"));
	Accesses s[4] = {0};
	accesses_add(c->arena, &s[0], (Access){0, ACCESS_WRITE, zero, end});
	accesses_add(c->arena, &s[1], (Access){0, ACCESS_WRITE, end, dim_add(c, end, other)});
	accesses_add(c->arena, &s[2], (Access){0, ACCESS_WRITE, other, dim_add(c, other, line)});
	accesses_add(c->arena, &s[3], (Access){0, ACCESS_READ, zero, line});
	const Waits *w = deps_find(c, c->arena, 4, s);
	WAITS_ARE(&w[1], -1);
	WAITS_ARE(&w[2], 1, 0, -1);
	WAITS_ARE(&w[3], 0, -1); // k is at least 1: not the bytes of step 2
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_branches), TEST(test_reuse),    TEST(test_updates),
		TEST(test_joined),   TEST(test_symbolic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
