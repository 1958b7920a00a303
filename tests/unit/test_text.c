// Printing, parsing and verifying IR that was made in memory; damage that text cannot express.
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "tests/unit/unit.h"

#include <string.h>

static const char module_text[] =
	"builtin.module {\n"
	"  %x!s = pd.feed() {col = 0, name = \"x\"} : () -> (tensor<?n x 4 x f32>) loc(0:0 \"feed\" "
	"Out \"x\")\n"
	"  %\"a b\"!p = pd.abs(%x) : (tensor<?n x 4 x f32>) -> (tensor<?n x 4 x f32>)\n"
	"  %x#1 = pd.abs(%\"a b\") : (tensor<?n x 4 x f32>) -> (tensor<?n x 4 x f32>)\n"
	"  %0 = pd.abs(%x#1) : (tensor<?n x 4 x f32>) -> (tensor<?n x 4 x f32>)\n"
	"}\n";

static Op *parse(Context *c, const char *text)
{
	return ir_parse(c, "t.pdir", text, strlen(text));
}

static void text_restores_the_ir(void **state)
{
	Context *c = *state;
	Op *m = parse(c, module_text);
	assert_non_null(m);
	assert_true(ir_verify(m));
	const Op *feed = module_block(m)->first, *abs = feed->next;
	assert_true(feed->results[0].stop_gradient);
	assert_false(feed->results[0].persistable);
	assert_string_equal(feed->results[0].name, "x");
	assert_string_equal(feed->loc->type, "feed");
	assert_int_equal(feed->loc->line, 2);
	assert_true(abs->results[0].persistable);
	assert_string_equal(abs->results[0].name, "a b");
	assert_string_equal(abs->next->results[0].name, "x");
	assert_null(abs->next->next->results[0].name);
	assert_null(abs->results[0].known);
	assert_string_equal(op_text_of(c, m), module_text);
}

static void one_operation_prints_alone(void **state)
{
	Context *c = *state;
	const Op *abs = module_block(parse(c, module_text))->last;
	assert_string_equal(op_text_of(c, abs),
	                    "%0 = pd.abs(%x) : (tensor<?n x 4 x f32>) -> (tensor<?n x 4 x f32>)\n");
}

static void an_empty_block_is_not_an_empty_region(void **state)
{
	Context *c = *state;
	Op *m = module_new(c);
	assert_string_equal(op_text_of(c, m), "builtin.module {\n  ^0:\n}\n");
	Op *again = parse(c, op_text_of(c, m));
	assert_non_null(again);
	assert_non_null(module_block(again));
	assert_true(ir_verify(again));
}

// `n` times `open`, then nothing: only the depth matters.
static const char *repeated(Context *c, const char *head, const char *open, int n)
{
	Text t;
	text_init(&t, c->arena);
	text_str(&t, head);
	for (int i = 0; i < n; i++)
		text_str(&t, open);
	return t.text;
}

static void deep_text_is_refused(void **state)
{
	Context *c = *state;
	enum { DEEP = 100000 };
	assert_null(parse(c, repeated(c, "", "builtin.module { ", DEEP)));
	assert_null(parse(c, repeated(c, "builtin.module { %a = pd.feed() : () -> (", "vec<", DEEP)));
	assert_null(
		parse(c, repeated(c, "builtin.module { %a = pd.feed() : () -> (tensor<[", "(", DEEP)));
	assert_null(
		parse(c, repeated(c, "builtin.module { %a = pd.feed() : () -> (tensor<[", "-", DEEP)));
	assert_null(parse(
		c, repeated(c, "builtin.module { %a = pd.feed() : () -> (tensor<[?a", " / ?b", DEEP)));
	assert_int_equal(diag_errors(c->diag), 5);
}

static void every_prefix_is_refused_or_read(void **state)
{
	Context *c = *state;
	size_t whole = strlen(module_text);
	for (size_t n = 0; n < whole; n++) {
		int before = diag_errors(c->diag);
		// An exact copy, so that a sanitizer sees a read past its end.
		char *copy = test_malloc(n + 1);
		memcpy(copy, module_text, n);
		Op *m = ir_parse(c, "t.pdir", copy, n);
		assert_true(n == whole - 1 ? m != NULL : !m);
		assert_int_equal(diag_errors(c->diag) > before, !m);
		test_free(copy);
	}
}

// ---- damage that the verifier finds -------------------------------------------------------------

static void broken_use_lists_are_found(void **state)
{
	Context *c = *state;
	Op *m = parse(c, module_text);
	Op *feed = module_block(m)->first, *abs = feed->next;
	Use *uses = feed->results[0].uses;
	feed->results[0].uses = NULL;
	assert_false(ir_verify(m));
	feed->results[0].uses = uses;
	assert_true(ir_verify(m));
	abs->operands[0].index = 3;
	assert_false(ir_verify(m));
	abs->operands[0].index = 0;
	abs->operands[0].value = op_result(abs->next, 0);
	assert_false(ir_verify(m));
}

static void broken_links_are_found(void **state)
{
	Context *c = *state;
	Op *m = parse(c, module_text);
	Block *b = module_block(m);
	Op *abs = b->first->next;
	abs->prev = NULL;
	assert_false(ir_verify(m));
	abs->prev = b->first;
	abs->block = NULL;
	assert_false(ir_verify(m));
	abs->block = b;
	b->last = abs;
	assert_false(ir_verify(m));
	b->last = abs->next->next;
	assert_true(ir_verify(m));
	abs->results[0].type = NULL;
	assert_false(ir_verify(m));
}

static void detached_definitions_and_users_are_found(void **state)
{
	Context *c = *state;
	Op *m = parse(c, module_text);
	Op *feed = module_block(m)->first, *abs = feed->next;
	op_detach(abs);
	assert_false(ir_verify(m)); // the feed is used by what is not in the program
	op_insert_after(feed, abs);
	assert_true(ir_verify(m));
	Op *last = module_block(m)->last, *stray = op_clone(c, feed, NULL);
	op_set_operand(last, 0, op_result(stray, 0));
	assert_false(ir_verify(m)); // defined by what is not in the program
}

static void attributes_out_of_order_are_found(void **state)
{
	Context *c = *state;
	Op *m = parse(c, module_text);
	Op *feed = module_block(m)->first;
	NamedAttr first = feed->attrs[0];
	feed->attrs[0] = feed->attrs[1];
	feed->attrs[1] = first;
	assert_false(ir_verify(m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(text_restores_the_ir),
		TEST(one_operation_prints_alone),
		TEST(an_empty_block_is_not_an_empty_region),
		TEST(deep_text_is_refused),
		TEST(every_prefix_is_refused_or_read),
		TEST(broken_use_lists_are_found),
		TEST(broken_links_are_found),
		TEST(detached_definitions_and_users_are_found),
		TEST(attributes_out_of_order_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
