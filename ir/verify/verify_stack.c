// The rules of stacks: what a push gives and a pop takes. A stack whose type names its elements
// holds these and no others; of one that does not, the pushes on it are looked for, wherever
// control flow takes it: a pop must take what one of them gave, and, behind a push in its own
// block, what that one gave.
#include "ir/base/vec.h"
#include "ir/core/opinfo.h"
#include "ir/verify/rules.h"

#include <string.h>

// ---- single operations --------------------------------------------------------------------------

bool verify_hook_create_stack(Op *op)
{
	return value_is_stack(&op->results[0]) || verify_fail(op, "the result must be a stack, not %s",
	                                                      type_text(op->ctx, op->results[0].type));
}

static bool operand_is_stack(const Op *op)
{
	return value_is_stack(op->operands[0].value) ||
	       verify_fail(op, "operand 'stack' must be a stack, not %s",
	                   type_text(op->ctx, op->operands[0].value->type));
}

// How many values one pushes or pops, and number i of them.
static int group_count(const Op *op)
{
	return op->code == OP_CF_PUSH_BACK ? op->noperand - 1 : op->nresult;
}

static const Type *group_type(const Op *op, int i)
{
	return op->code == OP_CF_PUSH_BACK ? op->operands[1 + i].value->type : op->results[i].type;
}

static bool group_is_right(const Op *op)
{
	const Type *stack = op->operands[0].value->type;
	const int n = group_count(op);
	if (!n)
		return verify_fail(op, "nothing to push or pop");
	if (!stack->nelem)
		return true;
	if (stack->nelem != n)
		return verify_fail(op, "%d values, but the stack holds %d at a time", n, stack->nelem);
	for (int i = 0; i < n; i++) {
		if (!types_agree(group_type(op, i), stack->elems[i]))
			return verify_fail(op, "value %d has type %s, but the stack holds %s", i,
			                   type_text(op->ctx, group_type(op, i)),
			                   type_text(op->ctx, stack->elems[i]));
	}
	return true;
}

bool verify_hook_push_back(Op *op)
{
	return verify_operands_present(op) && operand_is_stack(op) && group_is_right(op);
}

bool verify_hook_pop_back(Op *op)
{
	return operand_is_stack(op) && group_is_right(op);
}

bool verify_hook_is_empty(Op *op)
{
	return operand_is_stack(op);
}

// ---- pushes and pops of a program ---------------------------------------------------------------

// Values that are one stack have the same root.
typedef struct StackValue {
	const Value *value;
	int up; // nearer to the root; itself: the root
} StackValue;

typedef struct Stacks {
	Context *c;
	int n, room;
	StackValue *list;
	int npush, push_room;
	const Op **pushes;
	bool ok;
} Stacks;

static int stack_at(Stacks *s, const Value *v)
{
	for (int i = 0; i < s->n; i++)
		if (s->list[i].value == v)
			return i;
	VEC_ROOM(s->c->arena, s->list, s->n, s->room);
	s->list[s->n] = (StackValue){v, s->n};
	return s->n++;
}

static int stack_root(Stacks *s, const Value *v)
{
	int i = stack_at(s, v);
	while (s->list[i].up != i)
		i = s->list[i].up;
	return i;
}

static void stack_same(Stacks *s, const Value *a, const Value *b)
{
	if (!value_is_stack(a) || !value_is_stack(b))
		return;
	const int x = stack_root(s, a), y = stack_root(s, b);
	s->list[x].up = y;
}

static bool is_loop(const Op *op)
{
	return op->code == OP_PD_WHILE || op->code == OP_PD_WHILE_GRAD;
}

// What the end of a region gives for result i; NULL: it has no end.
static const Value *given(const Op *op, int region, int i)
{
	const Block *b = op->regions[region].first;
	const Op *end = b ? b->last : NULL;
	const bool yields = end && (end->code == OP_CF_YIELD || end->code == OP_CF_COND_YIELD);
	return yields ? op_operand(end, i + (end->code == OP_CF_COND_YIELD)) : NULL;
}

// Result i of an operation, what its regions give for it, and the arguments that they take it by.
static void result_same(Stacks *s, const Op *op, int i)
{
	const Value *v = &op->results[i];
	if (is_loop(op) && i < op->noperand)
		stack_same(s, v, op_operand(op, i));
	for (int r = 0; r < op->nregion; r++) {
		const Block *b = op->regions[r].first;
		const int arg = is_loop(op) || !b ? i : b->narg - 1;
		stack_same(s, v, given(op, r, i));
		if (b && arg >= 0 && arg < b->narg)
			stack_same(s, v, b->args[arg]);
	}
}

// All other rules are checked after this one: an operation may lack what it needs.
static bool is_whole(const Op *op)
{
	bool whole = op->noperand > 0 && value_is_stack(op_operand(op, 0));
	for (int i = 0; i < op->noperand; i++)
		whole &= op_operand(op, i) && op_operand(op, i)->type;
	for (int i = 0; i < op->nresult; i++)
		whole &= op->results[i].type != NULL;
	return whole;
}

static bool flow_visit(Op *op, void *arg)
{
	Stacks *s = arg;
	for (int i = 0; (is_loop(op) || op_is_branch(op)) && i < op->nresult; i++)
		if (value_is_stack(&op->results[i]))
			result_same(s, op, i);
	if (op->code == OP_CF_PUSH_BACK && is_whole(op)) {
		VEC_ROOM(s->c->arena, s->pushes, s->npush, s->push_room);
		s->pushes[s->npush++] = op;
	}
	return true;
}

static bool groups_agree(const Op *push, const Op *pop)
{
	bool same = group_count(push) == group_count(pop);
	for (int i = 0; same && i < group_count(push); i++)
		same = types_agree(group_type(push, i), group_type(pop, i));
	return same;
}

static const char *group_text(Context *c, const Op *op)
{
	const char *text = "";
	for (int i = 0; i < group_count(op); i++)
		text = arena_printf(c->arena, "%s%s%s", text, i ? ", " : "",
		                    type_text(c, group_type(op, i)));
	return text;
}

// Whether op, or what stands in it, changes the stack.
typedef struct Change {
	Stacks *s;
	int root;
	bool found;
} Change;

static bool change_visit(Op *op, void *arg)
{
	Change *c = arg;
	c->found |= (op->code == OP_CF_PUSH_BACK || op->code == OP_CF_POP_BACK) && is_whole(op) &&
	            stack_root(c->s, op_operand(op, 0)) == c->root;
	return !c->found;
}

// The push in the same block whose group a pop takes; NULL: it is not known.
static const Op *push_before(Stacks *s, const Op *pop, int root)
{
	int deep = 0;
	for (Op *op = pop->prev; op; op = op->prev) {
		Change c = {s, root, false};
		if (op->nregion)
			op_walk(op, change_visit, &c);
		else
			change_visit(op, &c);
		if (!c.found)
			continue;
		if (op->nregion)
			return NULL;
		if (op->code == OP_CF_PUSH_BACK && !deep--)
			return op;
		deep += op->code == OP_CF_POP_BACK;
	}
	return NULL;
}

static bool pop_visit(Op *pop, void *arg)
{
	Stacks *s = arg;
	if (pop->code != OP_CF_POP_BACK || !is_whole(pop))
		return true;
	const int root = stack_root(s, op_operand(pop, 0));
	const Op *last = push_before(s, pop, root), *some = NULL;
	bool found = last && groups_agree(last, pop);
	for (int i = 0; i < s->npush && !last && !found; i++)
		if (stack_root(s, op_operand(s->pushes[i], 0)) == root) {
			some = some ? some : s->pushes[i];
			found = groups_agree(s->pushes[i], pop);
		}
	some = last ? last : some;
	if (some && !found)
		s->ok = verify_fail(pop, "takes %s, but what is pushed is %s", group_text(s->c, pop),
		                    group_text(s->c, some));
	return true;
}

static bool none_visit(Op *op, void *arg)
{
	(void)arg;
	return op->code != OP_CF_POP_BACK;
}

bool verify_stacks(Op *root)
{
	if (op_walk(root, none_visit, NULL))
		return true;
	Stacks s = {.c = root->ctx, .ok = true};
	op_walk(root, flow_visit, &s);
	op_walk(root, pop_visit, &s);
	return s.ok;
}
