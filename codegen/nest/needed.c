// What of a nest is printed, and where: the loop that each value depends on, and which operations
// are needed under the predicates that are known. Called by nest.c and the files beside it.
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
	return pointer_map_get(&n->needed, op) != NULL;
}

static bool term_kept(const Nest *n, const Value *v)
{
	for (int i = 0; n->terms && i < n->terms->n; i++)
		if (n->terms->kept[i] == v)
			return true;
	return false;
}

static void value_mark(Nest *n, const Value *v)
{
	if (v && v->def && !term_kept(n, v))
		pointer_map_set(&n->needed, v->def, v->def);
}

// Whether the parts that loops are in, and known predicates, leave at most one operand of the
// operation, which is marked.
static bool span_mark(Nest *n, const Op *op, bool choice)
{
	int64_t at;
	if (!op->nresult)
		return false;
	if (spans_exact(&n->s, &op->results[0], &at) ||
	    (!choice && scalars_known(&n->s, &op->results[0]) >= 0))
		return true;
	const Value *limit = spans_limit(&n->s, op);
	if (!limit)
		limit = spans_rest(&n->s, op, &at);
	if (!limit)
		limit = scalars_rest(&n->s, op);
	if (limit)
		value_mark(n, limit);
	return limit != NULL;
}

// A reduction is printed with all that is in it, so all that it takes from around it is.
static void region_mark(Nest *n, const Block *b)
{
	for (const Op *op = b->first; op; op = op->next)
		for (int i = 0; i < op->noperand; i++) {
			const Value *v = op_operand(op, i);
			if (v && v->def && v->def->block != b)
				value_mark(n, v);
		}
}

static void op_mark(Nest *n, const Op *op)
{
	bool choice = op->code == OP_LOOP_LOAD_OR || op->code == OP_PD_WHERE;
	int known = choice ? scalars_known(&n->s, op_operand(op, 0)) : -1;
	int from = 0, to = op->noperand;
	if (span_mark(n, op, choice))
		return;
	if (known >= 0 && op->code == OP_PD_WHERE) {
		from = known ? 1 : 2;
		to = from + 1;
	} else if (known >= 0) {
		from = known ? 2 : 1;
		to = known ? to : 2;
	}
	for (int i = from; i < to; i++)
		value_mark(n, op_operand(op, i));
	for (int i = 0; i < op->nregion; i++) {
		nest_mark(n, op->regions[i].first);
		region_mark(n, op->regions[i].first);
	}
}

void nest_mark(Nest *n, const Block *b)
{
	const Op *end = block_terminator(b);
	op_mark(n, end);
	for (const Op *op = end->prev; op; op = op->prev)
		if (nest_needed(n, op))
			op_mark(n, op);
}

// What stands in front of the loops and is read by what is computed before their rounds.
static void terms_mark(Nest *n)
{
	for (const Op *op = n->body->first; n->terms && op; op = op->next)
		for (int i = 0; pointer_map_get(&n->terms->before, op) && i < op->noperand; i++) {
			const Value *v = op_operand(op, i);
			if (v && v->def && nest_level(n, v) < n->nloop)
				pointer_map_set(&n->needed, v->def, v->def);
		}
}

void nest_renew(Nest *n)
{
	pointer_map_init(&n->needed, n->k->arena);
	terms_mark(n);
	nest_mark(n, n->body);
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
