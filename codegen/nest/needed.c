// What of a nest is printed, and where: the loop that each value depends on, and which operations
// are needed under the predicates that are known (codegen/func/needed.c). Called by nest.c and the
// files beside it.
#include "codegen/nest/nest.h"

// ---- levels -------------------------------------------------------------------------------------

int nest_level(const Nest *n, const Value *v)
{
	int level = (int)(intptr_t)pointer_map_get(&n->levels, v) - 1;
	return level < 0 ? 0 : level;
}

static void level_set(Nest *n, const Value *v, int level)
{
	pointer_map_set(&n->levels, v, (const void *)(intptr_t)(level + 1));
}

// The innermost loop that an operation's operands, or those of its regions, depend on.
static int operands_level(const Nest *n, const Op *op)
{
	int level = 0;
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && nest_level(n, op_operand(op, i)) > level)
			level = nest_level(n, op_operand(op, i));
	for (int i = 0; i < op->nregion; i++)
		for (const Op *in = op->regions[i].first->first; in; in = in->next)
			if (operands_level(n, in) > level)
				level = operands_level(n, in);
	return level;
}

static bool op_reads_memory(const Op *op)
{
	return op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR ||
	       op->code == OP_LOOP_TO_INDEX || op->nregion;
}

void nest_levels_find(Nest *n)
{
	for (int i = 0; i < n->nloop; i++)
		level_set(n, n->loops[i].arg, i + 1);
	// Merged arguments lie on the loop of the last of them.
	for (int i = n->body->narg; i-- > 0;) {
		const Value *next = pointer_map_get(&n->s.merged, n->body->args[i]);
		if (next)
			level_set(n, n->body->args[i], nest_level(n, next));
	}
	for (const Op *op = n->body->first; op; op = op->next) {
		int level = operands_level(n, op);
		if (op_reads_memory(op))
			while (level < n->nloop) {
				int64_t lo, hi;
				dim_range(n->loops[level].extent, &lo, &hi);
				if (lo >= 1)
					break;
				level++;
			}
		for (int i = 0; i < op->nresult; i++)
			level_set(n, &op->results[i], level);
	}
}

// ---- what is needed -----------------------------------------------------------------------------

bool nest_needed(const Nest *n, const Op *op)
{
	return needed_is(&n->needed, op);
}

// What stands in front of the loops and is read by what is computed before their rounds.
static void terms_mark(Nest *n)
{
	for (const Op *op = n->body->first; n->terms && op; op = op->next)
		for (int i = 0; pointer_map_get(&n->terms->before, op) && i < op->noperand; i++)
			if (op_operand(op, i) && nest_level(n, op_operand(op, i)) < n->nloop)
				needed_value(&n->needed, op_operand(op, i));
}

void nest_renew(Nest *n)
{
	needed_begin(&n->needed, &n->s);
	terms_mark(n);
	// Terms read what the operations that are needed behind them may read once more.
	n->s.needed = n->terms ? NULL : &n->needed;
	if (n->terms) {
		n->needed.left = n->terms->kept;
		n->needed.nleft = n->terms->n;
	}
	needed_block(&n->needed, n->body);
}

// Of a predicate that is not known: itself or a part of it, without which it does not hold, that
// `fixed` says stays the same; NULL: none.
static const Value *fixed_part(Nest *n, const Value *pred, bool (*fixed)(Nest *n, const Value *v))
{
	const Op *op = pred->def;
	if (scalars_known(&n->s, pred) >= 0)
		return NULL;
	if (fixed(n, pred))
		return pred;
	if (!op || op->code != OP_PD_LOGICAL_AND)
		return NULL;
	const Value *part = fixed_part(n, op_operand(op, 0), fixed);
	return part ? part : fixed_part(n, op_operand(op, 1), fixed);
}

const Value *nest_predicate(Nest *n, const Op *const *ops, int nop,
                            bool (*fixed)(Nest *n, const Value *v))
{
	if (n->s.nknown == (int)COUNT_OF(n->s.known))
		return NULL;
	for (int i = 0; i < nop; i++) {
		if (ops[i]->code != OP_LOOP_LOAD_OR && ops[i]->code != OP_PD_WHERE)
			continue;
		const Value *pred = nest_needed(n, ops[i]) ? fixed_part(n, op_operand(ops[i], 0), fixed)
		                                           : NULL;
		if (pred)
			return pred;
	}
	return NULL;
}
