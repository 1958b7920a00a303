// Which operations of a block are printed: what its terminator needs where the predicates and
// positions that Scalars know leave other operands aside. Called by codegen/nest.
#include "codegen/func/func.h"

void needed_begin(Needed *n, const Scalars *s)
{
	n->s = s;
	n->left = NULL;
	n->nleft = 0;
	pointer_map_init(&n->ops, s->k->arena);
}

bool needed_is(const Needed *n, const Op *op)
{
	return pointer_map_get(&n->ops, op) != NULL;
}

void needed_value(Needed *n, const Value *v)
{
	for (int i = 0; i < n->nleft; i++)
		if (n->left[i] == v)
			return;
	if (v && v->def)
		pointer_map_set(&n->ops, v->def, v->def);
}

// Whether the parts that loops are in, and known predicates, leave at most one operand of the
// operation, which is marked.
static bool span_mark(Needed *n, const Op *op, bool choice)
{
	int64_t at;
	if (!op->nresult)
		return false;
	if (spans_exact(n->s, &op->results[0], &at) ||
	    (!choice && scalars_known(n->s, &op->results[0]) >= 0))
		return true;
	const Value *limit = spans_limit(n->s, op);
	if (!limit)
		limit = spans_rest(n->s, op, &at);
	if (!limit)
		limit = scalars_rest(n->s, op);
	if (limit)
		needed_value(n, limit);
	return limit != NULL;
}

static bool is_choice(const Op *op)
{
	return op->code == OP_LOOP_LOAD_OR || op->code == OP_PD_WHERE;
}

// Which operands are read where the predicate of a choice is known, [first, end); else all.
static void operands_read(const Needed *n, const Op *op, int *first, int *end)
{
	const int known = is_choice(op) ? scalars_known(n->s, op_operand(op, 0)) : -1;
	*first = 0;
	*end = op->noperand;
	if (known >= 0 && op->code == OP_PD_WHERE) {
		*first = known ? 1 : 2;
		*end = *first + 1;
	} else if (known >= 0) {
		*first = known ? 2 : 1;
		*end = known ? *end : 2;
	}
}

const Use *needed_use(const Needed *n, const Value *v)
{
	const Use *only = NULL;
	for (const Use *u = v->uses; u; u = u->next) {
		int first, end;
		if (u->user->nresult && !needed_is(n, u->user))
			continue;
		operands_read(n, u->user, &first, &end);
		if ((int)u->index < first || (int)u->index >= end)
			continue;
		if (only)
			return NULL;
		only = u;
	}
	return only;
}

static void op_mark(Needed *n, const Op *op)
{
	int first, end;
	if (span_mark(n, op, is_choice(op)))
		return;
	operands_read(n, op, &first, &end);
	for (int i = first; i < end; i++)
		needed_value(n, op_operand(op, i));
	for (int i = 0; i < op->nregion; i++)
		needed_block(n, op->regions[i].first);
}

void needed_block(Needed *n, const Block *b)
{
	const Op *end = block_terminator(b);
	op_mark(n, end);
	for (const Op *op = end->prev; op; op = op->prev)
		if (needed_is(n, op))
			op_mark(n, op);
}
