// Sizes: the normal form, equalities, evaluation, ranges.
#include "ir/ir.h"
#include "tests/unit/unit.h"

#include <string.h>

static void equal_expressions_are_one_pointer(void **state)
{
	Context *c = *state;
	const Dim *h = dim_sym(c, "h"), *w = dim_sym(c, "w"), *one = dim_const(c, 1),
			  *two = dim_const(c, 2);
	assert_ptr_equal(h, dim_sym(c, "h"));
	assert_ptr_not_equal(h, dim_sym_bounded(c, "h"));
	assert_ptr_equal(dim_add(c, h, w), dim_add(c, w, h));
	assert_ptr_equal(dim_mul(c, h, dim_add(c, w, one)), dim_add(c, dim_mul(c, w, h), h));
	assert_ptr_equal(dim_sub(c, dim_add(c, h, w), w), h);
	assert_ptr_equal(dim_add(c, h, h), dim_mul(c, two, h));
	assert_ptr_equal(dim_div(c, dim_mul(c, h, two), two), h);
	assert_ptr_equal(dim_div(c, dim_mul(c, h, w), w), h);
	assert_ptr_equal(dim_max(c, h, w), dim_max(c, w, h));
	assert_ptr_equal(dim_max(c, h, dim_add(c, h, one)), dim_add(c, h, one));
	assert_ptr_equal(dim_mod(c, dim_mul(c, h, two), two), dim_const(c, 0));
}

static void constants_fold(void **state)
{
	Context *c = *state;
	assert_true(dim_is(dim_add(c, dim_const(c, 2), dim_const(c, 3)), 5));
	assert_true(dim_is(dim_div(c, dim_const(c, -7), dim_const(c, 2)), -4));
	assert_true(dim_is(dim_mod(c, dim_const(c, -7), dim_const(c, 2)), 1));
	assert_true(dim_is(dim_min(c, dim_const(c, 2), dim_const(c, 3)), 2));
	// What does not fit is the largest size, never a wrong one.
	assert_true(dim_is(dim_mul(c, dim_const(c, INT64_MAX), dim_const(c, 2)), INT64_MAX));
}

// The order of a sum's terms must not depend on which symbol a context met first.
static void text_does_not_depend_on_age(void **state)
{
	Context *c = *state, *other = context_new();
	dim_sym(other, "w");
	const Dim *a = dim_add(c, dim_sym(c, "h"), dim_sym(c, "w"));
	const Dim *b = dim_add(other, dim_sym(other, "h"), dim_sym(other, "w"));
	assert_string_equal(dim_text_of(c, a), "[?h + ?w]");
	assert_string_equal(dim_text_of(other, b), "[?h + ?w]");
	context_free(other);
}

static void text_is_readable(void **state)
{
	Context *c = *state;
	const Dim *h = dim_sym(c, "h"), *r = dim_sym_bounded(c, "r"), *two = dim_const(c, 2);
	assert_string_equal(dim_text_of(c, dim_const(c, 3)), "3");
	assert_string_equal(dim_text_of(c, h), "?h");
	assert_string_equal(dim_text_of(c, r), "?!r");
	assert_string_equal(dim_text_of(c, dim_add(c, dim_div(c, h, two), dim_const(c, 1))),
	                    "[?h / 2 + 1]");
	assert_string_equal(dim_text_of(c, dim_sub(c, h, dim_mul(c, two, r))), "[?h - 2 * ?!r]");
}

static int64_t value_of(const Dim *sym, void *arg)
{
	(void)arg;
	return !strcmp(sym->name, "h") ? 7 : 3;
}

static void evaluation_follows_the_text(void **state)
{
	Context *c = *state;
	const Dim *h = dim_sym(c, "h"), *w = dim_sym(c, "w");
	const Dim *d = dim_add(c, dim_div(c, dim_mul(c, h, w), dim_const(c, 2)), dim_mod(c, h, w));
	int64_t v = 0;
	assert_true(dim_eval(d, value_of, NULL, &v));
	assert_int_equal(v, 11);
	assert_false(dim_eval(dim_mul(c, h, dim_const(c, INT64_MAX)), value_of, NULL, &v));
	assert_false(dim_eval(dim_div(c, h, dim_sub(c, w, dim_const(c, 3))), value_of, NULL, &v));
}

static void ranges_hold(void **state)
{
	Context *c = *state;
	int64_t lo, hi;
	dim_range(dim_add(c, dim_sym(c, "h"), dim_const(c, 2)), &lo, &hi);
	assert_int_equal(lo, 3);
	assert_int_equal(hi, INT64_MAX);
	dim_range(dim_mod(c, dim_sym(c, "h"), dim_const(c, 4)), &lo, &hi);
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 3);
	dim_range(dim_min(c, dim_sym(c, "h"), dim_const(c, 8)), &lo, &hi);
	assert_int_equal(hi, 8);
	dim_range(dim_sym_bounded(c, "r"), &lo, &hi);
	assert_int_equal(lo, 0);
}

static void unifying_teaches_once(void **state)
{
	Context *c = *state;
	const Dim *n = dim_sym(c, "n"), *m = dim_sym(c, "m");
	assert_false(dim_unify(c, n, n));
	assert_true(dim_unify(c, n, m));
	assert_ptr_equal(dim_sym(c, "n"), dim_sym(c, "m"));
	assert_false(dim_unify(c, n, m));
	// A symbol that meets a number is that number from then on.
	assert_true(dim_unify(c, dim_mul(c, dim_const(c, 2), dim_sym(c, "k")), dim_const(c, 8)));
	assert_true(dim_is(dim_sym(c, "k"), 4));
}

static int64_t value_of_first(const Dim *sym, void *arg)
{
	return ((const int64_t *)arg)[sym->name[0] != 'n'];
}

static void broadcast_keeps_what_is_not_1(void **state)
{
	Context *c = *state;
	const Dim *n = dim_sym(c, "n"), *k = dim_sym_bounded(c, "k"), *one = dim_const(c, 1),
			  *d = dim_broadcast(c, n, k);
	assert_ptr_equal(dim_broadcast(c, one, k), k);
	assert_ptr_equal(dim_broadcast(c, n, n), n);
	assert_ptr_equal(dim_broadcast(c, k, n), d);
	assert_ptr_equal(dim_broadcast(c, d, n), d);
	assert_true(dim_is(dim_broadcast(c, d, dim_const(c, 4)), 4));
	assert_true(dim_is(dim_broadcast(c, dim_const(c, 0), one), 0));
	static const int64_t cases[][3] = {{1, 5, 5}, {5, 1, 5}, {5, 5, 5},
	                                   {1, 0, 0}, {0, 1, 0}, {1, 1, 1}};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		int64_t values[] = {cases[i][0], cases[i][1]}, got;
		assert_true(dim_eval(d, value_of_first, values, &got));
		assert_int_equal(got, cases[i][2]);
	}
	int64_t lo, hi;
	dim_range(d, &lo, &hi);
	assert_int_equal(lo, 0);
	dim_range(dim_broadcast(c, n, dim_add(c, dim_sym(c, "m"), dim_const(c, 2))), &lo, &hi);
	assert_int_equal(lo, 3);
}

static void slots_are_not_replaced(void **state)
{
	Context *c = *state;
	const Dim *slot = dim_sym_bounded(c, "slot"), *n = dim_sym(c, "n");
	dim_keep(c, slot);
	int checks = dim_check_count(c);
	assert_false(dim_unify(c, slot, dim_const(c, 3)));
	assert_int_equal(dim_check_count(c), checks + 1);
	// Nor is a size that the caller gives, by one that a run finds.
	assert_false(dim_unify(c, n, dim_add(c, slot, dim_const(c, 1))));
	assert_ptr_equal(dim_sym(c, "n"), n);
}

static void earlier_size_is_not_made_of_two_later_ones(void **state)
{
	Context *c = *state;
	const Dim *early = dim_sym_bounded(c, "early"), *n = dim_sym(c, "n"),
			  *rows = dim_sym_bounded(c, "rows"), *columns = dim_sym_bounded(c, "columns");
	const int checks = dim_check_count(c);
	assert_false(dim_unify(c, dim_add(c, early, n), dim_mul(c, rows, columns)));
	assert_int_equal(dim_check_count(c), checks + 1);
	// One later size is told by what finds the early one.
	assert_true(dim_unify(c, early, dim_mul(c, dim_const(c, 2), rows)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_expressions_are_one_pointer),
		TEST(constants_fold),
		TEST(text_does_not_depend_on_age),
		TEST(text_is_readable),
		TEST(evaluation_follows_the_text),
		TEST(ranges_hold),
		TEST(unifying_teaches_once),
		TEST(broadcast_keeps_what_is_not_1),
		TEST(slots_are_not_replaced),
		TEST(earlier_size_is_not_made_of_two_later_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
