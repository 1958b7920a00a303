// Every use of a stack sees the operation that made it, before stacks become arrays: results,
// variables and region arguments through which control flow hands a stack on are gone, and so are
// regions `init`. Called by stacks.c.
#include "ir/build/build.h"
#include "lower/arrays/parts.h"
#include "lower/pass/pass.h"

enum { MAX_NESTING = 200 };

const Op *region_end(const Op *op, int r)
{
	const Block *b = op->regions[r].first;
	return b && b->last && (b->last->info->traits & TRAIT_TERMINATOR) ? b->last : NULL;
}

// The stack that op takes as result i from outside, or from its own region `init`; NULL: it comes
// from inside.
static Value *stack_from_outside(Op *op, int i)
{
	const int parts = op_parts(op);
	if (op->nregion > parts && i == op->nresult - 1) {
		Op *create = op->regions[parts].first->first;
		op_detach(create);
		op_insert_before(op, create);
		return op_result(create, 0);
	}
	return op->code == OP_PD_WHILE ? op_operand(op, i) : NULL;
}

static bool region_resolve(Region *r, int depth);

// Takes operand i away from what ends region r; it must be `root`, when that is known. Gives what
// it was.
static Value *end_take(Op *op, int r, int i, const Value *root)
{
	Op *end = (Op *)region_end(op, r);
	if (!end)
		return (Value *)root;
	i += end->code == OP_CF_COND_YIELD;
	Value *v = i < end->noperand ? op_operand(end, i) : NULL;
	if (v)
		op_remove_operand(end, i);
	return root && v != root ? NULL : v;
}

// Takes result i, a stack, out of an operation: readers see the stack itself.
static bool result_resolve(Op *op, int i, Value *root)
{
	bool loop = op->code == OP_PD_WHILE;
	for (int r = 0; r < op_parts(op); r++) {
		Value *v = end_take(op, r, i, root);
		if (!v || (!root && v->def && op_parent(v->def) == op))
			return op_error(op, "which stack it passes on must be known");
		root = v;
	}
	value_replace(&op->results[i], root);
	if (loop && i < op->noperand)
		op_remove_operand(op, i);
	return true;
}

// The same operation without its region `init`, and without results that are stacks.
static void results_drop(Op *op)
{
	const Type **types = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, const Type *);
	Value **operands = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand + 1, Value *);
	int n = 0;
	for (int i = 0; i < op->nresult; i++)
		if (!value_is_stack(&op->results[i]))
			types[n++] = op->results[i].type;
	for (int i = 0; i < op->noperand; i++)
		operands[i] = op_operand(op, i);
	Op *with = op_new(op->ctx, op->code, op->loc, n, types, op->noperand, operands, op_parts(op),
	                  0);
	with->attrs = op->attrs;
	with->nattr = op->nattr;
	op_insert_before(op, with);
	op_take_regions(with, op, op_parts(op));
	n = 0;
	for (int i = 0; i < op->nresult; i++) {
		if (value_is_stack(&op->results[i]))
			continue;
		with->results[n].name = op->results[i].name;
		value_replace(&op->results[i], &with->results[n++]);
	}
	op_erase(op);
}

// The argument of a region through which the stack of result i comes in; -1: none.
static int stack_argument(const Op *op, const Block *b, int i)
{
	const int at = !b ? -1 : op->code == OP_PD_WHILE ? i : b->narg - 1;
	return at >= 0 && at < b->narg ? at : -1;
}

// Regions see the stack itself instead of their argument.
static void stack_hand_in(Op *op, int i, Value *root)
{
	for (int r = 0; r < op_parts(op); r++) {
		Block *b = op->regions[r].first;
		const int at = stack_argument(op, b, i);
		if (at >= 0 && (op->code == OP_PD_WHILE || value_is_stack(b->args[at])))
			value_replace(b->args[at], root);
	}
}

static void stack_arguments_remove(Op *op, int i)
{
	for (int r = 0; r < op_parts(op); r++) {
		Block *b = op->regions[r].first;
		const int at = stack_argument(op, b, i);
		if (at >= 0 && value_is_stack(b->args[at]) && !value_used(b->args[at]))
			block_remove_arg(b, at);
	}
}

static bool control_resolve(Op *op, int depth)
{
	Value **roots = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	bool any = op->nregion > op_parts(op);
	for (int i = 0; i < op->nresult; i++) {
		if (!value_is_stack(&op->results[i]))
			continue;
		any = true;
		roots[i] = stack_from_outside(op, i);
		if (roots[i])
			stack_hand_in(op, i, roots[i]);
	}
	for (int r = 0; r < op_parts(op); r++)
		if (!region_resolve(&op->regions[r], depth + 1))
			return false;
	for (int i = op->nresult; i-- > 0 && any;) {
		if (!value_is_stack(&op->results[i]))
			continue;
		stack_arguments_remove(op, i);
		if (!result_resolve(op, i, roots[i]))
			return false;
	}
	if (any)
		results_drop(op);
	return true;
}

static bool region_resolve(Region *r, int depth)
{
	if (depth > MAX_NESTING)
		return op_error(r->op, "control flow is nested too deep");
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			bool control = op_is_branch(op) || op->code == OP_PD_WHILE;
			if (control && !control_resolve(op, depth))
				return false;
		}
	return true;
}

bool stacks_resolve(Region *r)
{
	return region_resolve(r, 0);
}
