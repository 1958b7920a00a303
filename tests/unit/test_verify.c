// `pdcc verify` names the first operator where two stages differ.
#include "frontend/driver/driver.h"
#include "ir/text/text.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

// A loop of three rounds; what it does to y is filled in, the last thing on its line.
static const char loop_text[] =
	"builtin.module {\n"
	"  %%n = builtin.constant() {value = dense<1 x i64 [3]>} : () -> (tensor<1 x i64>)\n"
	"  %%i0 = builtin.constant() {value = dense<1 x i64 [0]>} : () -> (tensor<1 x i64>)\n"
	"  %%i, %%y = pd.while(%%i0, %%n) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x i64>, "
	"tensor<1 x i64>) cond {\n"
	"    ^0(%%a: tensor<1 x i64>, %%b: tensor<1 x i64>):\n"
	"      %%go = pd.less_than(%%a, %%n) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x "
	"bool>)\n"
	"      cf.cond_yield(%%go, %%a, %%b) : (tensor<1 x bool>, tensor<1 x i64>, tensor<1 x i64>) -> "
	"()\n"
	"  } body {\n"
	"    ^0(%%c: tensor<1 x i64>, %%d: tensor<1 x i64>):\n"
	"      %%next = pd.scale(%%c) {bias = 1.0} : (tensor<1 x i64>) -> (tensor<1 x i64>)\n"
	"      %%twice = pd.add(%%d, %%d) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x i64>)\n"
	"      %%small = pd.%s(%%twice, %%n) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x "
	"i64>)\n"
	"      cf.yield(%%next, %%small) : (tensor<1 x i64>, tensor<1 x i64>) -> ()\n"
	"  }\n"
	"  pd.fetch(%%y) {col = 0} : (tensor<1 x i64>) -> ()\n"
	"}\n";

static Op *loop_with(Context *c, const char *op)
{
	const char *text = arena_printf(c->arena, loop_text, op);
	return ir_parse(c, "loop.pdir", text, strlen(text));
}

static const char *found(Context *c, const char *a, const char *b)
{
	static const Options options = {0};
	Driver d = {.ctx = c, .options = &options};
	verify_find(&d, loop_with(c, a), loop_with(c, b), "pass 'x'");
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	diag_flush(c->diag, f, false);
	fclose(f);
	const char *copy = arena_strndup(c->arena, text, n);
	free(text);
	return copy;
}

static void first_operator_is_named(void **state)
{
	assert_non_null(strstr(found(*state, "maximum", "remainder"),
	                       "loop.pdir:12:16: error: 'small' is the first value that pass 'x' "
	                       "changes: element 0 is 0, before 6"));
}

// 6 / 3 and 6 & 3 are 2; 4 / 3 and 4 & 3 are 1 and 0.
static void later_rounds_are_counted(void **state)
{
	assert_non_null(strstr(
		found(*state, "floor_divide", "bitwise_and"),
		"'small' is the first value that pass 'x' changes, in round 2: element 0 is 0, before 1"));
}

static void equal_programs_do_not_differ(void **state)
{
	assert_non_null(strstr(found(*state, "add", "add"),
	                       "no value that is there before and after pass 'x' differs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_operator_is_named),
		TEST(later_rounds_are_counted),
		TEST(equal_programs_do_not_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
