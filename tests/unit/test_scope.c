// Rules of the verifier that text cannot break, since it does not even parse: values used outside
// of their regions, branches into other regions, operations that are not in the program.
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static const char text[] = "builtin.module {\n"
						   "  %c = pd.feed() {name = \"c\"} : () -> (tensor<1 x bool>)\n"
						   "  %x = pd.feed() {name = \"x\"} : () -> (tensor<f32>)\n"
						   "  %r = pd.if(%c) : (tensor<1 x bool>) -> (tensor<f32>) then {\n"
						   "    %in = pd.abs(%x) : (tensor<f32>) -> (tensor<f32>)\n"
						   "    cf.yield(%in) : (tensor<f32>) -> ()\n"
						   "  } else {\n"
						   "    %neg = pd.negative(%x) : (tensor<f32>) -> (tensor<f32>)\n"
						   "    cf.yield(%neg) : (tensor<f32>) -> ()\n"
						   "  }\n"
						   "  func.func() {name = \"f\", type = type () -> ()} : () -> () {\n"
						   "    cf.br() ^1 : () -> ()\n"
						   "    ^1:\n"
						   "      func.return() : () -> ()\n"
						   "  }\n"
						   "  pd.fetch(%r) {col = 0, name = \"r\"} : (tensor<f32>) -> ()\n"
						   "}\n";

typedef struct Found {
	Op *module, *branch, *fetch, *function;
} Found;

static Found parse(Context *c)
{
	Found f = {.module = ir_parse(c, "scope.pdir", text, sizeof text - 1)};
	assert_non_null(f.module);
	assert_true(ir_verify(f.module));
	for (Op *op = module_block(f.module)->first; op; op = op->next) {
		if (op->code == OP_PD_IF)
			f.branch = op;
		if (op->code == OP_PD_FETCH)
			f.fetch = op;
		if (op->code == OP_FUNC_FUNC)
			f.function = op;
	}
	return f;
}

// The verifier must say this.
static void must_say(Context *c, Op *module, const char *what)
{
	char *said = NULL;
	size_t n = 0;
	assert_false(ir_verify(module));
	FILE *to = open_memstream(&said, &n);
	diag_flush(c->diag, to, false);
	fclose(to);
	if (!strstr(said, what))
		fail_msg("'%s' is not in: %s", what, said);
	free(said);
}

static void value_of_a_branch_is_not_seen_after_it(void **state)
{
	Found f = parse(*state);
	op_set_operand(f.fetch, 0, op_result(f.branch->regions[0].first->first, 0));
	must_say(*state, f.module,
	         "pd.fetch: operand 'x' (%in) is used outside of the region that defines it");
}

static void value_of_one_branch_is_not_seen_in_the_other(void **state)
{
	Found f = parse(*state);
	op_set_operand(f.branch->regions[1].first->last, 0,
	               op_result(f.branch->regions[0].first->first, 0));
	must_say(*state, f.module,
	         "cf.yield: operand 0 (%in) is used outside of the region that defines it");
}

static void user_must_be_in_the_program(void **state)
{
	Found f = parse(*state);
	op_detach(f.branch->regions[0].first->first);
	must_say(*state, f.module, "a value is used by 'pd.abs', which is not in the program");
}

static void branch_stays_in_its_region(void **state)
{
	Found f = parse(*state);
	f.function->regions[0].first->last->succs[0].block = f.branch->regions[0].first;
	must_say(*state, f.module, "cf.br: successor 0 is in another region");
}

static void successors_take_the_last_operands(void **state)
{
	Found f = parse(*state);
	f.function->regions[0].first->last->succs[0].first = 1;
	must_say(*state, f.module, "cf.br: the arguments of its successors are not its last operands");
}

static void argument_belongs_to_its_block(void **state)
{
	Found f = parse(*state);
	Block *b = f.function->regions[0].first->next;
	block_add_arg(*state, b, op_result(f.branch, 0)->type)->block = f.branch->block;
	must_say(*state, f.module, "a block's argument 0 does not belong to it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(value_of_a_branch_is_not_seen_after_it),
		TEST(value_of_one_branch_is_not_seen_in_the_other),
		TEST(user_must_be_in_the_program),
		TEST(branch_stays_in_its_region),
		TEST(successors_take_the_last_operands),
		TEST(argument_belongs_to_its_block),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
