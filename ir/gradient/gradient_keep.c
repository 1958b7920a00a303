// What rounds of a loop keep for the loop backwards, in arrays in the place of the stack: element i
// is of round i. Arrays are values, so both loops can be differentiated again (gradient.h).
#include "ir/gradient/gradient.h"
#include "ir/gradient/gradient_sizes.h"

static Value *array_op(Builder *b, enum OpCode code, const Type *t, int n, Value *const *operands)
{
	Op *op = op_new(b->ctx, code, b->loc, 1, &t, n, operands, 0, 0);
	op_insert_before(b->before, op);
	return op_result(op, 0);
}

// The elements that the round backwards pops, read at the position of the round that made them.
static bool read_elements(Op *pop, Value *const *arrays)
{
	Builder b = builder_before(pop);
	const Dim *one = dim_const(b.ctx, 1);
	Value *left = pop->block->args[0],
		  *at = tensor_sub(&b, left, build_full(&b, type_tensor(b.ctx, DT_I64, 1, &one, 0), 1));
	if (!at)
		return false;
	for (int i = 0; i < pop->nresult; i++) {
		Value *const operands[] = {arrays[i], at};
		value_replace(op_result(pop, i),
		              array_op(&b, OP_PD_ARRAY_READ, pop->results[i].type, 2, operands));
	}
	op_erase(pop);
	return true;
}

Op *gradient_keep_arrays(Op *loop, Op *push, Op *pop)
{
	Context *c = loop->ctx;
	const int own = loop->nresult - 1, // variables and the counter
		n = push ? push->noperand - 1 : 0;
	const Type **types = NEW_ARRAY(c->arena, (size_t)(own + n) + 1, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)(own + n) + 1, Value *);
	Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	Value *count = body->args[own - 1];
	Builder in_front = builder_before(loop), at_push = builder_before(push ? push : body->last);
	for (int i = 0; i < own; i++) {
		types[i] = loop->results[i].type;
		inits[i] = op_operand(loop, i);
	}
	for (int i = own; i < own + n; i++) {
		const Type *t = op_operand(push, 1 + i - own)->type;
		types[i] = type_found_anew(c, TY_ARRAY, t);
		inits[i] = array_op(&in_front, OP_PD_CREATE_ARRAY, types[i], 0, NULL);
	}
	Op *with = op_new(c, loop->code, loop->loc, own + n, types, own + n, inits, 2, 0);
	if (op_attr(loop, "rounds"))
		op_set_attr(with, "rounds", op_attr(loop, "rounds"));
	op_insert_before(loop, with);
	op_remove_operand(cond->last, cond->last->noperand - 1);
	block_remove_arg(cond, cond->narg - 1);
	for (int i = own; i < own + n; i++) {
		Value *const operands[] = {block_add_arg(c, body, types[i]), count,
		                           op_operand(push, 1 + i - own)};
		op_add_operand(cond->last, block_add_arg(c, cond, types[i]));
		op_add_operand(body->last, array_op(&at_push, OP_PD_ARRAY_WRITE, types[i], 3, operands));
	}
	if (push)
		op_erase(push);
	op_remove_operand(body->last, own);
	block_remove_arg(body, own);
	op_take_regions(with, loop, 2);
	for (int i = 0; i < own; i++)
		value_take(op_result(loop, i), op_result(with, i));
	Value **arrays = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++)
		arrays[i] = op_result(with, own + i);
	if (pop && !read_elements(pop, arrays))
		return NULL;
	op_erase(loop);
	return with;
}
