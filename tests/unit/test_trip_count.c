// Unit tests of trip counts: loops as text, and how many rounds they take.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "ir/ir.h"
#include "ir/text/text.h"
#include "lower/analysis/analysis.h"

// A loop on a counter: how it begins, the condition `go` on %i, and how %next is made of %j.
static const char *counter_loop(Context *c, const char *init, const char *cond, const char *next)
{
	return arena_printf(
		c->arena,
		"builtin.module {\n"
		"  %%x = pd.feed() {col = 0, name = \"x\"} : () -> (tensor<?n x 3 x f32>)\n"
		"  %%f = pd.feed() {col = 1, name = \"f\"} : () -> (tensor<1 x i64>)\n"
		"  %%b = pd.feed() {col = 2, name = \"b\"} : () -> (tensor<1 x bool>)\n"
		"  %%c0 = builtin.constant() {value = dense<1 x i64 [0]>} : () -> (tensor<1 x i64>)\n"
		"  %%c1 = builtin.constant() {value = dense<1 x i64 [1]>} : () -> (tensor<1 x i64>)\n"
		"  %%c10 = builtin.constant() {value = dense<1 x i64 [10]>} : () -> (tensor<1 x i64>)\n"
		"  %%s = pd.shape(%%x) : (tensor<?n x 3 x f32>) -> (tensor<2 x i32>)\n"
		"  %%s0 = pd.slice(%%s) {axes = [0], decrease_axis = [], ends = dims [1], starts = dims "
		"[0]} : (tensor<2 x i32>) -> (tensor<1 x i32>)\n"
		"  %%n = pd.cast(%%s0) {dtype = i64} : (tensor<1 x i32>) -> (tensor<1 x i64>)\n"
		"  %%r = pd.while(%s) : (tensor<1 x i64>) -> (tensor<1 x i64>) cond {\n"
		"    ^0(%%i: tensor<1 x i64>):\n"
		"      %s\n"
		"      cf.cond_yield(%%go, %%i) : (tensor<1 x bool>, tensor<1 x i64>) -> ()\n"
		"  } body {\n"
		"    ^0(%%j: tensor<1 x i64>):\n"
		"      %s\n"
		"      cf.yield(%%next) : (tensor<1 x i64>) -> ()\n"
		"  }\n"
		"  pd.fetch(%%r) {col = 0, name = \"r\"} : (tensor<1 x i64>) -> ()\n"
		"}\n",
		init, cond, next);
}

static const char *count_text(Context *c, const Dim *d)
{
	return d ? dim_text(c, d) : "-";
}

// Checks the only loop of the module.
static void check_text(Context *c, const char *text, const char *exact, const char *at_most)
{
	const Dim *e, *m;
	Op *module = ir_parse(c, "test", text, strlen(text));
	diag_flush(c->diag, stderr, false);
	assert_non_null(module);
	const Op *loop = module_block(module)->first;
	while (loop->code != OP_PD_WHILE)
		loop = loop->next;
	assert_int_equal(while_trip_count(c, loop, &e, &m), strcmp(at_most, "-") != 0);
	assert_string_equal(count_text(c, e), exact);
	assert_string_equal(count_text(c, m), at_most);
}

#define TT "(tensor<1 x i64>, tensor<1 x i64>) -> "
#define UP                                                                                         \
	"%next = pd.scale(%j) {bias = 1.0, bias_after_scale = true, scale = 1.0} : (tensor<1 x i64>) " \
	"-> (tensor<1 x i64>)"
#define STEP(by) \
	"%next = pd.increment(%j) {value = " by "} : (tensor<1 x i64>) -> (tensor<1 x i64>)"
#define LESS(a, b) "%go = pd.less_than(" a ", " b ") : " TT "(tensor<1 x bool>)"

static void test_counters(void **state)
{
	(void)state;
	static const struct {
		const char *init, *cond, *next, *exact, *at_most;
	} cases[] = {
		{"%c0", LESS("%i", "%c10"), UP, "10", "10"},
		{"%c1", LESS("%i", "%c10"), STEP("4.0"), "3", "3"},
		{"%c0", LESS("%i", "%n"), UP, "?n", "?n"},
		{"%c0", LESS("%i", "%n"), STEP("2.0"), "[(?n + 1) / 2]", "[(?n + 1) / 2]"},
		{"%n", LESS("%c0", "%i"), STEP("-1.0"), "?n", "?n"},
		{"%n", "%go = pd.greater_equal(%i, %c0) : " TT "(tensor<1 x bool>)", STEP("-1.0"),
	     "[?n + 1]", "[?n + 1]"},
		{"%c1", "%go = pd.less_equal(%i, %n) : " TT "(tensor<1 x bool>)",
	     "%next = pd.add(%j, %c1) : " TT "(tensor<1 x i64>)", "?n", "?n"},
		{"%c0", "%go = pd.not_equal(%i, %c10) : " TT "(tensor<1 x bool>)", STEP("5.0"), "2", "2"},
		{"%c0", "%go = pd.not_equal(%i, %c10) : " TT "(tensor<1 x bool>)", STEP("3.0"), "-", "-"},
		{"%c10", LESS("%i", "%c1"), UP, "0", "0"},
		// Not known: what comes in, the end, the step; or the wrong way.
		{"%f", LESS("%i", "%c10"), UP, "-", "-"},
		{"%c0", LESS("%i", "%f"), UP, "-", "-"},
		{"%c0", LESS("%i", "%c10"), "%next = pd.add(%j, %f) : " TT "(tensor<1 x i64>)", "-", "-"},
		{"%c0", LESS("%i", "%c10"), "%next = pd.multiply(%j, %j) : " TT "(tensor<1 x i64>)", "-",
	     "-"},
		{"%c0", LESS("%i", "%c10"), STEP("-1.0"), "-", "-"},
		{"%c0", LESS("%i", "%c10"), STEP("0.5"), "-", "-"},
		// A loop that may end earlier.
		{"%c0",
	     "%lt = pd.less_than(%i, %n) : " TT "(tensor<1 x bool>)\n"
	     "%go = pd.logical_and(%lt, %b) : (tensor<1 x bool>, tensor<1 x bool>) -> (tensor<1 x "
	     "bool>)",
	     UP, "-", "?n"},
		{"%c0",
	     "%ge = pd.greater_equal(%i, %n) : " TT "(tensor<1 x bool>)\n"
	     "%stop = pd.logical_or(%ge, %b) : (tensor<1 x bool>, tensor<1 x bool>) -> (tensor<1 x "
	     "bool>)\n"
	     "%go = pd.logical_not(%stop) : (tensor<1 x bool>) -> (tensor<1 x bool>)",
	     UP, "-", "?n"},
		{"%c0",
	     "%lt = pd.less_than(%i, %n) : " TT "(tensor<1 x bool>)\n"
	     "%go = pd.logical_or(%lt, %b) : (tensor<1 x bool>, tensor<1 x bool>) -> (tensor<1 x "
	     "bool>)",
	     UP, "-", "-"},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		Context *c = context_new();
		check_text(c, counter_loop(c, cases[i].init, cases[i].cond, cases[i].next), cases[i].exact,
		           cases[i].at_most);
		context_free(c);
	}
}

// The condition is a variable: looked at once before the loop, then after every round.
static const char *carried_loop(Context *c, const char *init)
{
	return arena_printf(
		c->arena,
		"builtin.module {\n"
		"  %%b = pd.feed() {col = 0, name = \"b\"} : () -> (tensor<1 x bool>)\n"
		"  %%true = builtin.constant() {value = dense<1 x bool [true]>} : () -> (tensor<1 x "
		"bool>)\n"
		"  %%c0 = builtin.constant() {value = dense<1 x i64 [0]>} : () -> (tensor<1 x i64>)\n"
		"  %%c10 = builtin.constant() {value = dense<1 x i64 [10]>} : () -> (tensor<1 x i64>)\n"
		"  %%r, %%q = pd.while(%%c0, %s) : (tensor<1 x i64>, tensor<1 x bool>) -> (tensor<1 x "
		"i64>, tensor<1 x bool>) cond {\n"
		"    ^0(%%i: tensor<1 x i64>, %%g: tensor<1 x bool>):\n"
		"      cf.cond_yield(%%g, %%i, %%g) : (tensor<1 x bool>, tensor<1 x i64>, tensor<1 x "
		"bool>) -> ()\n"
		"  } body {\n"
		"    ^0(%%j: tensor<1 x i64>, %%h: tensor<1 x bool>):\n"
		"      %%next = pd.increment(%%j) {value = 1.0} : (tensor<1 x i64>) -> (tensor<1 x i64>)\n"
		"      "
		"%%go = pd.less_than(%%next, %%c10) : " TT "(tensor<1 x bool>)"
		"\n"
		"      cf.yield(%%next, %%go) : (tensor<1 x i64>, tensor<1 x bool>) -> ()\n"
		"  }\n"
		"  pd.fetch(%%r) {col = 0, name = \"r\"} : (tensor<1 x i64>) -> ()\n"
		"}\n",
		init);
}

static void test_carried(void **state)
{
	(void)state;
	Context *c = context_new();
	check_text(c, carried_loop(c, "%true"), "10", "10");
	check_text(c, carried_loop(c, "%b"), "-", "10");
	context_free(c);
}

// The counter is a size that grows from round to round.
static void test_sizes(void **state)
{
	(void)state;
	Context *c = context_new();
	check_text(
		c,
		"builtin.module {\n"
		"  %x = pd.feed() {col = 0, name = \"x\"} : () -> (tensor<?n x f32>)\n"
		"  %c10 = builtin.constant() {value = dense<1 x i32 [10]>} : () -> (tensor<1 x i32>)\n"
		"  %r = pd.while(%x) : (tensor<?n x f32>) -> (tensor<?!k x f32>) cond {\n"
		"    ^0(%a: tensor<?!k x f32>):\n"
		"      %s = pd.shape(%a) : (tensor<?!k x f32>) -> (tensor<1 x i32>)\n"
		"      %k = pd.slice(%s) {axes = [0], decrease_axis = [], ends = dims [1], starts = dims "
		"[0]} : (tensor<1 x i32>) -> (tensor<1 x i32>)\n"
		"      %go = pd.less_than(%k, %c10) : (tensor<1 x i32>, tensor<1 x i32>) -> (tensor<1 x "
		"bool>)\n"
		"      cf.cond_yield(%go, %a) : (tensor<1 x bool>, tensor<?!k x f32>) -> ()\n"
		"  } body {\n"
		"    ^0(%b: tensor<?!k x f32>):\n"
		"      %one = pd.full() {dtype = f32, shape = dims [1], value = 0.0} : () -> (tensor<1 x "
		"f32>)\n"
		"      %l = builtin.combine(%b, %one) : (tensor<?!k x f32>, tensor<1 x f32>) -> "
		"(vec<tensor<?!k x f32>, tensor<1 x f32>>)\n"
		"      %m = pd.concat(%l) {axis = 0} : (vec<tensor<?!k x f32>, tensor<1 x f32>>) -> "
		"(tensor<[?!k + 1] x f32>)\n"
		"      cf.yield(%m) : (tensor<[?!k + 1] x f32>) -> ()\n"
		"  }\n"
		"  pd.fetch(%r) {col = 0, name = \"r\"} : (tensor<?!k x f32>) -> ()\n"
		"}\n",
		"[max(0, -1 * ?n + 10)]", "[max(0, -1 * ?n + 10)]");
	context_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_carried),
		cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
