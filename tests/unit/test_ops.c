// Operations, use lists, blocks, cloning and walking.
#include "tests/unit/unit.h"

#include <string.h>

static const Type *f32_tensor(Context *c)
{
	const Dim *dims[] = {dim_const(c, 2)};
	return type_tensor(c, DT_F32, 1, dims, 0);
}

static Op *make(Context *c, Block *b, enum OpCode code, int n, Value *const *operands)
{
	const Type *t = f32_tensor(c);
	Op *op = op_new(c, code, NULL, 1, &t, n, operands, 0, 0);
	if (b)
		op_append(b, op);
	return op;
}

static void operations_link_into_blocks(void **state)
{
	Context *c = *state;
	Op *m = module_new(c);
	Block *b = module_block(m);
	Op *x = make(c, b, OP_PD_FEED, 0, NULL), *z = make(c, b, OP_PD_FEED, 0, NULL);
	Op *y = make(c, NULL, OP_PD_FEED, 0, NULL), *w = make(c, NULL, OP_PD_FEED, 0, NULL);
	op_insert_before(z, y);
	op_insert_after(z, w);
	assert_ptr_equal(b->first, x);
	assert_ptr_equal(x->next, y);
	assert_ptr_equal(y->next, z);
	assert_ptr_equal(b->last, w);
	assert_true(op_is_before(x, w));
	assert_false(op_is_before(w, x));
	assert_ptr_equal(op_parent(y), m);
	op_detach(x);
	op_detach(w);
	assert_ptr_equal(b->first, y);
	assert_ptr_equal(b->last, z);
	assert_null(y->prev);
	assert_null(op_parent(x));
}

static void use_lists_follow_operands(void **state)
{
	Context *c = *state;
	Block *b = module_block(module_new(c));
	Value *x = op_result(make(c, b, OP_PD_FEED, 0, NULL), 0),
		  *y = op_result(make(c, b, OP_PD_FEED, 0, NULL), 0);
	Value *operands[] = {x, x, NULL, y};
	Op *op = make(c, b, OP_BUILTIN_COMBINE, 4, operands);
	assert_int_equal(value_use_count(x), 2);
	assert_int_equal(value_use_count(y), 1);
	op_set_operand(op, 0, y);
	op_set_operand(op, 2, y);
	assert_int_equal(value_use_count(x), 1);
	assert_int_equal(value_use_count(y), 3);
	op_add_operand(op, x);
	assert_int_equal(op->noperand, 5);
	assert_int_equal(value_use_count(x), 2);
	op_remove_operand(op, 0);
	assert_int_equal(op->noperand, 4);
	assert_int_equal(value_use_count(y), 2);
	assert_ptr_equal(op_operand(op, 0), x);
	assert_ptr_equal(op_operand(op, 3), x);
	assert_null(op_operand(op, 4));
	for (Use *u = x->uses; u; u = u->next)
		assert_ptr_equal(&u->user->operands[u->index], u);
	value_replace(x, y);
	assert_false(value_used(x));
	assert_int_equal(value_use_count(y), 4);
	op_erase(op);
	assert_false(value_used(y));
}

static void attributes_are_sorted_by_name(void **state)
{
	Context *c = *state;
	Op *op = make(c, NULL, OP_PD_FEED, 0, NULL);
	op_set_attr(op, "name", attr_str(c, "x"));
	op_set_attr(op, "col", attr_int(c, 3));
	op_set_attr(op, "place", attr_bool(c, true));
	op_set_attr(op, "col", attr_int(c, 4));
	assert_int_equal(op->nattr, 3);
	assert_string_equal(op->attrs[0].name, "col");
	assert_string_equal(op->attrs[2].name, "place");
	assert_int_equal(op_int(op, "col", 0), 4);
	assert_int_equal(op_int(op, "row", 9), 9);
	assert_string_equal(op_str(op, "name", ""), "x");
	assert_true(op_bool(op, "place", false));
	op_set_attr(op, "name", NULL);
	assert_int_equal(op->nattr, 2);
	assert_null(op_attr(op, "name"));
}

static void block_arguments_keep_their_index(void **state)
{
	Context *c = *state;
	Op *nest = op_new(c, OP_LOOP_NEST, NULL, 0, NULL, 0, NULL, 1, 0);
	Block *b = block_new(c, &nest->regions[0]);
	Value *args[9];
	for (int i = 0; i < 9; i++)
		args[i] = block_add_arg(c, b, type_index(c));
	block_remove_arg(b, 4);
	assert_int_equal(b->narg, 8);
	assert_ptr_equal(b->args[4], args[5]);
	for (int i = 0; i < 8; i++)
		assert_int_equal(b->args[i]->index, i);
	assert_ptr_equal(value_op(args[0]), nest);
}

// A pd.if whose branches use a value from outside and one of their own.
static Op *make_if(Context *c, Block *b, Value *cond, Value *x)
{
	const Type *t = x->type;
	Op *op = op_new(c, OP_PD_IF, NULL, 1, &t, 1, &cond, 2, 0);
	for (int i = 0; i < 2; i++) {
		Block *body = block_new(c, &op->regions[i]);
		Value *v = op_result(make(c, body, OP_PD_ABS, 1, &x), 0);
		op_append(body, op_new(c, OP_CF_YIELD, NULL, 0, NULL, 1, &v, 0, 0));
	}
	op_append(b, op);
	return op;
}

static void clones_are_independent(void **state)
{
	Context *c = *state;
	Block *b = module_block(module_new(c));
	Value *x = op_result(make(c, b, OP_PD_FEED, 0, NULL), 0),
		  *cond = op_result(make(c, b, OP_PD_FEED, 0, NULL), 0);
	Op *op = make_if(c, b, cond, x);
	op->results[0].name = context_str(c, "out");
	ValueMap *m = value_map_new(c->arena);
	Op *copy = op_clone(c, op, m);
	assert_null(copy->block);
	assert_int_equal(value_use_count(x), 4);
	assert_string_equal(copy->results[0].name, "out");
	assert_ptr_equal(value_map_get(m, op_result(op, 0)), op_result(copy, 0));
	assert_ptr_equal(value_map_get(m, x), x);
	// The copy's branches yield the copy's own values.
	const Op *yield = copy->regions[0].first->last;
	assert_ptr_equal(op_operand(yield, 0), op_result(copy->regions[0].first->first, 0));
	op_erase(copy);
	assert_int_equal(value_use_count(x), 2);
}

typedef struct Seen {
	Text text;
	enum OpCode stop;
} Seen;

static bool see(Op *op, void *arg)
{
	Seen *s = arg;
	text_printf(&s->text, "%s ", op->info->short_name);
	return op->code != s->stop;
}

static void walks_go_outside_in(void **state)
{
	Context *c = *state;
	Op *m = module_new(c);
	Block *b = module_block(m);
	Value *x = op_result(make(c, b, OP_PD_FEED, 0, NULL), 0);
	make_if(c, b, x, x);
	make(c, b, OP_PD_ABS, 1, &x);
	Seen s = {.stop = OP_COUNT};
	text_init(&s.text, c->arena);
	assert_true(op_walk(m, see, &s));
	assert_string_equal(s.text.text, "feed if abs yield abs yield abs ");
	text_init(&s.text, c->arena);
	s.stop = OP_CF_YIELD;
	assert_false(op_walk(m, see, &s));
	assert_string_equal(s.text.text, "feed if abs yield ");
}

static bool erase_abs(Op *op, void *arg)
{
	(void)arg;
	if (op->code == OP_PD_ABS && !value_used(op_result(op, 0)))
		op_erase(op);
	return true;
}

static void a_walk_may_erase_what_it_sees(void **state)
{
	Context *c = *state;
	Op *m = module_new(c);
	Block *b = module_block(m);
	Value *x = op_result(make(c, b, OP_PD_FEED, 0, NULL), 0);
	for (int i = 0; i < 5; i++)
		make(c, b, OP_PD_ABS, 1, &x);
	assert_true(op_walk(m, erase_abs, NULL));
	assert_ptr_equal(b->first, b->last);
	assert_false(value_used(x));
}

static void lists_see_through_combine(void **state)
{
	Context *c = *state;
	Block *b = module_block(module_new(c));
	Value *x = op_result(make(c, b, OP_PD_FEED, 0, NULL), 0), *const * list;
	Value *two[] = {x, x};
	Value *v = op_result(make(c, b, OP_BUILTIN_COMBINE, 2, two), 0);
	Value *operands[] = {v, x, NULL};
	Op *op = make(c, b, OP_PD_CONCAT, 3, operands);
	assert_int_equal(op_operand_list(op, 0, &list), 2);
	assert_ptr_equal(list[1], x);
	assert_int_equal(op_operand_list(op, 1, &list), 1);
	assert_int_equal(op_operand_list(op, 2, &list), 0);
	assert_int_equal(op_operand_list(op, 7, &list), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(operations_link_into_blocks),   TEST(use_lists_follow_operands),
		TEST(attributes_are_sorted_by_name), TEST(block_arguments_keep_their_index),
		TEST(clones_are_independent),        TEST(walks_go_outside_in),
		TEST(a_walk_may_erase_what_it_sees), TEST(lists_see_through_combine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
