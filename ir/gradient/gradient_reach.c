// Which values depend on what is wanted (duals_reach). What a branch or a loop gives does where
// what its regions hand on does, not where something else in them does: a variable that is only
// compared with what is wanted has no gradient.
#include "ir/gradient/gradient.h"

// Of the operations of a region's block; the last hands on. NULL: an empty region.
static const Op *block_reach(Duals *d, const Block *b)
{
	if (!b)
		return NULL;
	for (Op *op = b->first; op; op = op->next)
		duals_reach(d, op);
	return b->last;
}

// What a region hands on from operand `first` on, to values; whether one of these is wanted now
// that was not.
static bool hand_on(Duals *d, const Op *end, int first, int n, Value *const *to)
{
	bool more = false;
	for (int i = 0; end && i < n && first + i < end->noperand; i++)
		if (duals_wanted(d, op_operand(end, first + i)) && !duals_wanted(d, to[i])) {
			duals_want(d, to[i]);
			more |= duals_wanted(d, to[i]);
		}
	return more;
}

static Value **results_of(Op *op)
{
	Value **v = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	for (int i = 0; i < op->nresult; i++)
		v[i] = op_result(op, i);
	return v;
}

static void branch_reach(Duals *d, Op *op)
{
	Value **results = results_of(op);
	for (int r = 0; r < op_parts(op); r++)
		hand_on(d, block_reach(d, op->regions[r].first), 0, op->nresult, results);
}

// Until rounds make no more variables depend on what is wanted.
static void loop_reach(Duals *d, Op *op)
{
	Block *cond = op->regions[0].first, *body = op->regions[1].first;
	Value **results = results_of(op);
	hand_on(d, op, 0, op->nresult, cond->args);
	do {
		hand_on(d, block_reach(d, cond), 1, op->nresult, body->args);
	} while (hand_on(d, block_reach(d, body), 0, op->nresult, cond->args));
	hand_on(d, cond->last, 1, op->nresult, results);
}

static bool reads_wanted(const Duals *d, const Op *op)
{
	if (!(op->info->traits & TRAIT_SIZES_OF))
		return op_reads_any(op, dual_is_wanted, d);
	for (int i = 1; i < op->noperand; i++)
		if (duals_wanted(d, op_operand(op, i)))
			return true;
	return false;
}

void duals_reach(Duals *d, Op *op)
{
	if (!op->nresult || !reads_wanted(d, op) || op_stops_gradient(op))
		return;
	// Regions that make stacks hand on more than what is told apart here.
	const int parts = op->code == OP_PD_WHILE ? 2 : op_is_branch(op) ? op_parts(op) : 0;
	if (parts && (op->nregion <= parts || !op->regions[parts].first)) {
		if (op->code == OP_PD_WHILE)
			loop_reach(d, op);
		else
			branch_reach(d, op);
		return;
	}
	for (int i = 0; i < op->nresult; i++)
		duals_want(d, op_result(op, i));
}
