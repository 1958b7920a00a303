// Stacks that nobody pops, nor asks whether they are empty, with all that is pushed on them: what
// the forward half of a program keeps for a gradient that is not there. The regions `init` that
// make them go, too.
#include "ir/base/map.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"

typedef struct Stacks {
	PointerMap live; // values that are stacks somebody reads
	bool changed;
} Stacks;

// ---- which are read -----------------------------------------------------------------------------

static bool is_live(const Stacks *s, const Value *v)
{
	return pointer_map_get(&s->live, v) != NULL;
}

static void live_set(Stacks *s, Value *v)
{
	if (!value_is_stack(v) || is_live(s, v))
		return;
	pointer_map_set(&s->live, v, v);
	s->changed = true;
}

static bool passes_on(const Op *op)
{
	return op_is_branch(op) || op->code == OP_PD_WHILE || op->code == OP_PD_WHILE_GRAD;
}

static bool is_loop(const Op *op)
{
	return passes_on(op) && !op_is_branch(op);
}

// Whether result i is the stack that region `init` makes.
static bool is_own(const Op *op, int i)
{
	return op->nregion > op_parts(op) && i == op->nresult - 1;
}

// The argument of region r through which the stack of result i comes in; -1: none.
static int stack_argument(const Op *op, int r, int i)
{
	const Block *b = op->regions[r].first;
	if (!b || (!is_loop(op) && !is_own(op, i)))
		return -1;
	const int at = is_loop(op) ? i : b->narg - 1;
	return at >= 0 && at < b->narg && value_is_stack(b->args[at]) ? at : -1;
}

// The operand of what ends region r that is given for result i; -1: none.
static int stack_given(const Op *op, int r, int i)
{
	const Block *b = op->regions[r].first;
	const Op *end = b ? b->last : NULL;
	const bool init = r >= op_parts(op);
	if (!end || (end->code != OP_CF_YIELD && end->code != OP_CF_COND_YIELD) ||
	    (init && !is_loop(op) && !is_own(op, i)))
		return -1;
	const int at = init && !is_loop(op) ? 0 : i + (end->code == OP_CF_COND_YIELD);
	return at < end->noperand ? at : -1;
}

typedef void StackVisit(Stacks *s, Value *v, bool *any);

// All values that are result i of op, in front of it, inside and behind.
static void stack_visit(Stacks *s, Op *op, int i, StackVisit *visit, bool *any)
{
	visit(s, op_result(op, i), any);
	if (is_loop(op) && i < op->noperand)
		visit(s, op_operand(op, i), any);
	for (int r = 0; r < op->nregion; r++) {
		const int in = stack_argument(op, r, i), out = stack_given(op, r, i);
		if (in >= 0)
			visit(s, op->regions[r].first->args[in], any);
		if (out >= 0)
			visit(s, op_operand(op->regions[r].first->last, out), any);
	}
}

static void visit_find(Stacks *s, Value *v, bool *any)
{
	*any |= is_live(s, v);
}

static void visit_set(Stacks *s, Value *v, bool *any)
{
	(void)any;
	live_set(s, v);
}

// What is read where op stands, and what is one stack with that.
static bool op_visit(Op *op, void *arg)
{
	Stacks *s = arg;
	const Op *around = op_parent(op);
	const bool ends = (op->info->traits & TRAIT_TERMINATOR) && around && passes_on(around);
	for (int i = 0; i < op->noperand; i++)
		if (!(ends || (is_loop(op) && i < op->nresult) || (op->code == OP_CF_PUSH_BACK && !i)))
			live_set(s, op_operand(op, i));
	for (int i = 0; i < op->nresult; i++) {
		bool any = false;
		if (!value_is_stack(op_result(op, i)))
			continue;
		if (!passes_on(op)) {
			if (op->code != OP_CF_CREATE_STACK)
				live_set(s, op_result(op, i));
			continue;
		}
		stack_visit(s, op, i, visit_find, &any);
		if (any)
			stack_visit(s, op, i, visit_set, &any);
	}
	return true;
}

// ---- without the others -------------------------------------------------------------------------

static bool result_is_dead(const Stacks *s, const Op *op, int i)
{
	return value_is_stack(&op->results[i]) && !is_live(s, &op->results[i]);
}

// No region gives such a stack any more: before anything goes that made it.
static bool ends_visit(Op *op, void *arg)
{
	const Stacks *s = arg;
	for (int i = op->nresult; i-- > 0 && passes_on(op);)
		for (int r = 0; result_is_dead(s, op, i) && r < op->nregion; r++)
			if (stack_given(op, r, i) >= 0)
				op_remove_operand(op->regions[r].first->last, stack_given(op, r, i));
	return true;
}

// Nor takes one.
static void arguments_remove(const Stacks *s, Op *op)
{
	for (int i = op->nresult; i-- > 0;)
		for (int r = 0; result_is_dead(s, op, i) && r < op->nregion; r++)
			if (stack_argument(op, r, i) >= 0)
				block_remove_arg(op->regions[r].first, stack_argument(op, r, i));
}

// Where what --grad keeps loses a variable, there is one less.
static void attrs_move(const Stacks *s, const Op *op, Op *with)
{
	int64_t kept = op_int(op, "kept", 0);
	const int first = op->nresult - (int)kept;
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(with, op->attrs[i].name, op->attrs[i].attr);
	for (int i = first > 0 ? first : 0; i < op->nresult && op_attr(op, "kept"); i++)
		kept -= result_is_dead(s, op, i);
	if (op_attr(op, "kept"))
		op_set_attr(with, "kept", attr_int(op->ctx, kept));
}

// The operation without its results that are stacks nobody reads. NULL: it has none.
static Op *op_narrow(const Stacks *s, Op *op)
{
	Context *c = op->ctx;
	int n = 0, given = 0;
	const Type **types = NEW_ARRAY(c->arena, (size_t)op->nresult + 1, const Type *);
	Value **operands = NEW_ARRAY(c->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->nresult; i++)
		if (!result_is_dead(s, op, i))
			types[n++] = op->results[i].type;
	if (n == op->nresult)
		return NULL;
	for (int i = 0; i < op->noperand; i++)
		if (!is_loop(op) || i >= op->nresult || !result_is_dead(s, op, i))
			operands[given++] = op_operand(op, i);
	const bool init = op->nregion > op_parts(op) && !result_is_dead(s, op, op->nresult - 1);
	arguments_remove(s, op);
	Op *with = op_new(c, op->code, op->loc, n, types, given, operands, op_parts(op) + init, 0);
	attrs_move(s, op, with);
	op_insert_before(op, with);
	op_take_regions(with, op, with->nregion);
	n = 0;
	for (int i = 0; i < op->nresult; i++)
		if (!result_is_dead(s, op, i))
			value_take(op_result(op, i), op_result(with, n++));
	return with;
}

static void region_narrow(const Stacks *s, Region *r);

// Inner operations first: they read the arguments of those around them. Readers of what an
// operation gives follow it, so it is erased at the end.
static void op_clean(const Stacks *s, Op *op)
{
	for (int i = 0; i < op->nregion; i++)
		region_narrow(s, &op->regions[i]);
	if (op->code == OP_CF_PUSH_BACK && !is_live(s, op_operand(op, 0)))
		op_erase(op);
	else if (passes_on(op) && op_narrow(s, op))
		op_erase(op);
	else if (op->code == OP_CF_CREATE_STACK && !value_used(op_result(op, 0)))
		op_erase(op);
}

// Backwards, so that who reads a stack is gone before what makes it.
static void region_narrow(const Stacks *s, Region *r)
{
	for (Block *b = r->last; b; b = b->prev)
		for (Op *op = b->last, *prev; op; op = prev) {
			prev = op->prev;
			op_clean(s, op);
		}
}

static bool none_visit(Op *op, void *arg)
{
	(void)arg;
	return op->code != OP_CF_CREATE_STACK;
}

// Needs: structured control flow.
// Keeps: everything that somebody reads.
// Breaks: nothing. What only was pushed is dead.
bool pass_dead_stacks(PassContext *p)
{
	if (op_walk(p->module, none_visit, NULL))
		return true;
	Stacks s = {.changed = true};
	pointer_map_init(&s.live, p->ctx->arena);
	while (s.changed) {
		s.changed = false;
		op_walk(p->module, op_visit, &s);
	}
	op_walk(p->module, ends_visit, &s);
	region_narrow(&s, &p->module->regions[0]);
	return true;
}
