// Single numbers in the function that a program becomes: tensors of one element in the workspace
// are variables where there are loops and branches, and nests that compute nothing else are
// statements. So a counter lives in a register, and a condition reads as one. Called by the
// printers.
#include "lower/analysis/numbers.h"
#include "lower/analysis/places.h"

#include <string.h>

enum { MAX_STATEMENTS = 16 };

// ---- which values are one variable --------------------------------------------------------------

static bool value_is_number(const Value *v)
{
	int64_t n;
	return type_is_tensor(v->type) && type_const_numel(v->type, &n) && n == 1 &&
	       !dtype_is_complex(v->type->dtype);
}

static const Value *class_of(const Numbers *n, const Value *v)
{
	for (const Value *up; (up = pointer_map_get(&n->classes, v)); v = up)
		;
	return v;
}

// Branches leave in place what was computed there: argument and value are one variable.
static void classes_join(Numbers *n, const Op *branch)
{
	for (int s = 0; s < branch->nsucc; s++)
		for (uint32_t i = 0; i < branch->succs[s].count; i++) {
			if (branch_move(branch, s, (int)i) != MOVE_NONE)
				continue;
			const Value *arg = class_of(n, branch->succs[s].block->args[i]);
			const Value *value = class_of(
				n, value_place(op_operand(branch, (int)(branch->succs[s].first + i))).root);
			if (arg != value)
				pointer_map_set(&n->classes, value, arg);
		}
}

// What loop.update changes lies in memory, also when it is one element.
static void memory_mark(Numbers *n, const Value *v)
{
	const Value *root = class_of(n, value_place(v).root);
	pointer_map_set(&n->in_memory, root, root);
}

void numbers_find(Numbers *n, Arena *a, const Op *module, bool wanted)
{
	const Region *r = &module->regions[0];
	*n = (Numbers){.variables = wanted && r->first != r->last};
	pointer_map_init(&n->classes, a);
	pointer_map_init(&n->in_memory, a);
	for (const Block *b = r->first; n->variables && b; b = b->next) {
		if (b->last && b->last->nsucc)
			classes_join(n, b->last);
	}
	for (const Block *b = r->first; n->variables && b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (op_updates(op)) {
				memory_mark(n, op_operand(op, 0));
				memory_mark(n, &op->results[0]);
			}
}

const Value *number_variable(const Numbers *n, const Place *p)
{
	if (!n->variables || p->kind != PLACE_WORKSPACE || p->moving || p->state ||
	    !value_is_number(p->root))
		return NULL;
	const Value *root = class_of(n, p->root);
	return pointer_map_get(&n->in_memory, root) ? NULL : root;
}

// ---- constants ----------------------------------------------------------------------------------

bool constant_is_number(const Value *v)
{
	const Op *op = v->def;
	const Attr *data = op && op->code == OP_BUILTIN_CONSTANT ? op_attr(op, "value") : NULL;
	return data && data->kind == ATTR_TENSOR && value_is_number(v) &&
	       !dtype_is_half(v->type->dtype);
}

// Whether a branch passes the operand to arguments of one element alone.
static bool passes_number(const Op *branch, uint32_t operand)
{
	bool passes = false;
	for (int s = 0; s < branch->nsucc; s++) {
		const Succ *succ = &branch->succs[s];
		if (operand < succ->first || operand >= succ->first + succ->count)
			continue;
		if (!value_is_number(succ->block->args[operand - succ->first]))
			return false;
		passes = true;
	}
	return passes;
}

bool constant_is_passed(const Value *v)
{
	if (!constant_is_number(v))
		return false;
	for (const Use *u = v->uses; u; u = u->next)
		if (!u->user->nsucc || !passes_number(u->user, u->index))
			return false;
	return true;
}

// ---- sums that cannot overflow ------------------------------------------------------------------

// Whether every way from the first block to `b` leads through `over`. Blocks are numbered.
static bool block_dominates(Arena *a, const Block *over, const Block *b)
{
	const Region *r = b->region;
	size_t n = r->last->id + (size_t)1;
	bool *seen = NEW_ARRAY(a, n, bool);
	const Block **todo = NEW_ARRAY(a, n, const Block *);
	size_t count = 0;
	if (r->first != over) {
		seen[r->first->id] = true;
		todo[count++] = r->first;
	}
	while (count) {
		const Block *at = todo[--count];
		if (at == b)
			return false;
		for (int s = 0; at->last && s < at->last->nsucc; s++) {
			const Block *to = at->last->succs[s].block;
			if (to == over || seen[to->id])
				continue;
			seen[to->id] = true;
			todo[count++] = to;
		}
	}
	return true;
}

// Whether the way into the block is this branch alone.
static bool branch_leads_alone(const Op *branch, const Block *b)
{
	int ways = 0;
	for (const Block *from = b->region->first; from; from = from->next)
		for (int s = 0; from->last && s < from->last->nsucc; s++)
			ways += from->last->succs[s].block == b;
	return ways == 1 && branch->succs[0].block == b;
}

static const Value *loaded(const Value *v)
{
	return v && v->def && v->def->code == OP_LOOP_LOAD ? op_operand(v->def, 0) : NULL;
}

// Whether cond says that what `v` holds is less (or greater) than something.
static bool condition_bounds(const Value *cond, const Value *v, bool above)
{
	const Op *nest = cond->def;
	if (!nest || nest->code != OP_LOOP_NEST)
		return false;
	const Value *test = op_operand(nest->regions[0].first->last, (int)cond->index);
	const Op *op = test ? test->def : NULL;
	if (!op || (op->code != OP_PD_LESS_THAN && op->code != OP_PD_GREATER_THAN))
		return false;
	return loaded(op_operand(op, (op->code == OP_PD_LESS_THAN) == above ? 0 : 1)) == v;
}

// Where conditions that read v are branched on: a branch there bounds v on its way to `b`.
static bool value_is_bounded(Arena *a, const Value *v, bool above, const Block *b)
{
	for (const Block *from = b->region->first; from; from = from->next) {
		const Op *end = from->last;
		if (end && end->code == OP_CF_COND_BR && condition_bounds(op_operand(end, 0), v, above) &&
		    branch_leads_alone(end, end->succs[0].block) &&
		    block_dominates(a, end->succs[0].block, b))
			return true;
	}
	return false;
}

// By how much a sum or difference of a number in memory and a constant of 1 changes it: 1 or -1; 0:
// it is none.
static int step_of(const Op *op)
{
	const Type *t = op->results[0].type;
	if ((op->code != OP_PD_ADD && op->code != OP_PD_SUBTRACT) || t->kind != TY_SCALAR ||
	    (t->dtype != DT_I64 && t->dtype != DT_I32))
		return 0;
	const Op *by = op_operand(op, 1) ? op_operand(op, 1)->def : NULL;
	const Attr *step = by && by->code == OP_LOOP_CONSTANT ? op_attr(by, "value") : NULL;
	if (!step || step->kind != ATTR_INT || (step->i != 1 && step->i != -1))
		return 0;
	return (step->i > 0) == (op->code == OP_PD_ADD) ? 1 : -1;
}

bool sum_fits(Arena *a, const Op *op)
{
	const int step = step_of(op);
	const Value *v = step ? loaded(op_operand(op, 0)) : NULL;
	const Op *nest = op_parent(op);
	return v && nest && nest->block && value_is_bounded(a, v, step > 0, nest->block);
}

// ---- statements ---------------------------------------------------------------------------------

bool nest_is_statement(const Numbers *numbers, const Op *op)
{
	if (op->code != OP_LOOP_NEST || !numbers->variables)
		return false;
	for (int i = 0; i < op->nresult; i++)
		if (!value_is_number(&op->results[i]))
			return false;
	int n = 0;
	for (const Op *in = op->regions[0].first->first; in; in = in->next, n++)
		if (in->nregion || in->code == OP_LOOP_TO_INDEX)
			return false;
	return n <= MAX_STATEMENTS;
}
