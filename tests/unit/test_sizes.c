// What finds a size: one rule for passes that drop results and for gradients that run rounds again.
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "tests/unit/unit.h"

#include <string.h>

static const char text[] =
	"builtin.module {\n"
	"  %x = pd.feed() {col = 0, name = \"x\"} : () -> (tensor<2 x f64>)\n"
	"  %i = pd.full() {dtype = i64, shape = dims [1], value = 0} : () -> (tensor<1 x i64>)\n"
	"  %c = pd.less_than(%i, %i) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x bool>)\n"
	"  %grown = pd.while(%x) : (tensor<2 x f64>) -> (tensor<?!n x f64>) cond {\n"
	"    ^0(%a: tensor<?!n x f64>):\n"
	"      cf.cond_yield(%c, %a) : (tensor<1 x bool>, tensor<?!n x f64>) -> ()\n"
	"  } body {\n"
	"    ^0(%a: tensor<?!n x f64>):\n"
	"      %pair = builtin.combine(%a, %x) : (tensor<?!n x f64>, tensor<2 x f64>) -> "
	"(vec<tensor<?!n x f64>, tensor<2 x f64>>)\n"
	"      %more = pd.concat(%pair) {axis = 0} : (vec<tensor<?!n x f64>, tensor<2 x f64>>) -> "
	"(tensor<[?!n + 2] x f64>)\n"
	"      cf.yield(%more) : (tensor<[?!n + 2] x f64>) -> ()\n"
	"  }\n"
	"  %steady = pd.while(%grown) : (tensor<?!n x f64>) -> (tensor<?!n x f64>) cond {\n"
	"    ^0(%a: tensor<?!n x f64>):\n"
	"      cf.cond_yield(%c, %a) : (tensor<1 x bool>, tensor<?!n x f64>) -> ()\n"
	"  } body {\n"
	"    ^0(%a: tensor<?!n x f64>):\n"
	"      cf.yield(%a) : (tensor<?!n x f64>) -> ()\n"
	"  }\n"
	"  %handed = pd.if(%c) : (tensor<1 x bool>) -> (tensor<?!n x f64>) then {\n"
	"    cf.yield(%grown) : (tensor<?!n x f64>) -> ()\n"
	"  } else {\n"
	"    %new = pd.full() {dtype = f64, shape = dims [?!n], value = 0.0} : () -> "
	"(tensor<?!n x f64>)\n"
	"    cf.yield(%new) : (tensor<?!n x f64>) -> ()\n"
	"  }\n"
	"  %joined = pd.if(%c) : (tensor<1 x bool>) -> (tensor<?!m x f64>) then {\n"
	"    cf.yield(%grown) : (tensor<?!n x f64>) -> ()\n"
	"  } else {\n"
	"    cf.yield(%x) : (tensor<2 x f64>) -> ()\n"
	"  }\n"
	"  %neg = pd.negative(%grown) : (tensor<?!n x f64>) -> (tensor<?!n x f64>)\n"
	"  %zeros = pd.full() {dtype = f64, shape = dims [?!n], value = 0.0} : () -> "
	"(tensor<?!n x f64>)\n"
	"  %none = pd.create_array() : () -> (array<?!e x f64>)\n"
	"  %array = pd.array_write(%none, %i, %x) : (array<?!e x f64>, tensor<1 x i64>, "
	"tensor<2 x f64>) -> (array<?!e x f64>)\n"
	"  %read = pd.array_read(%array, %i) : (array<?!e x f64>, tensor<1 x i64>) -> "
	"(tensor<?!e x f64>)\n"
	"  %nest = loop.nest() : () -> (tensor<?!m x f64>) {\n"
	"    ^0(%k: index):\n"
	"      %zero = loop.constant() {value = 0.0} : () -> (f64)\n"
	"      loop.yield(%zero) : (f64) -> ()\n"
	"  }\n"
	"  loop.bind(%i) {dims = dims [?!k]} : (tensor<1 x i64>) -> ()\n"
	"}\n";

static const Op *named(const Op *module, const char *name)
{
	for (const Op *op = module->regions[0].first->first; op; op = op->next)
		if (op->nresult && op->results[0].name && !strcmp(op->results[0].name, name))
			return op;
	fail_msg("no %s", name);
	return NULL;
}

static void what_finds_a_size(void **state)
{
	Context *c = *state;
	const Op *module = ir_parse(c, "sizes.pdir", text, sizeof text - 1);
	assert_non_null(module);
	static const struct {
		const char *op, *size;
		bool finds;
	} rows[] = {
		{"grown", "n", true},   // a loop, though its rounds end with the size
		{"steady", "n", false}, // which came in with what it begins with
		{"handed", "n", false}, // which its sides end with
		{"joined", "m", true},  // which no side ends with
		{"joined", "n", false}, // which no result has
		{"neg", "n", false},    // which the operand has
		{"zeros", "n", false},  // which an attribute says
		{"none", "e", true},    // an array, of its elements,
		{"array", "e", false},  // which goes from array to array
		{"read", "e", true},    // and to a tensor by reading
		{"nest", "m", false},   // which it only goes over
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (op_finds_size(named(module, rows[i].op), dim_sym_bounded(c, rows[i].size)) !=
		    rows[i].finds)
			fail_msg("%s and %s", rows[i].op, rows[i].size);
	const Op *bind = module->regions[0].first->last;
	assert_true(op_finds_size(bind, dim_sym_bounded(c, "k")));
	assert_false(op_finds_size(bind, dim_sym_bounded(c, "n")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_finds_a_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
