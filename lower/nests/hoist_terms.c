// What a reduction computes anew for each of its terms, though it does not change from term to
// term, goes in front of it: what printers and the schedule of CUDA see of a nest is then what is
// printed. Called by pipeline.c.
#include "lower/nests/nests.h"
#include "lower/pass/rewrite.h"

static bool value_is_inside(const Value *v, const Op *around)
{
	for (const Op *op = value_op(v); op; op = op_parent(op)) {
		if (op == around)
			return v->block ? true : v->def != around;
		if (op->code == OP_LOOP_NEST)
			return false;
	}
	return false;
}

// Whether nothing that `op` uses, in its regions too, is made inside of `around`, leaving out op
// itself.
static bool op_is_invariant(const Op *op, const Op *self, const Op *around)
{
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (v && value_is_inside(v, around) && !value_is_inside(v, self))
			return false;
	}
	for (int i = 0; i < op->nregion; i++)
		for (const Op *in = op->regions[i].first->first; in; in = in->next)
			if (!op_is_invariant(in, self, around))
				return false;
	return true;
}

static bool op_reads_memory(const Op *op)
{
	return op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR ||
	       op->code == OP_LOOP_TO_INDEX || op->nregion;
}

static bool runs_at_least_once(const Op *reduce)
{
	const Attr *extents = op_attr(reduce, "extents");
	for (int i = 0; i < extents->n; i++) {
		int64_t lo, hi;
		dim_range(extents->dims[i], &lo, &hi);
		if (lo < 1)
			return false;
	}
	return !op_operand(reduce, 0);
}

// What reads memory stays where the terms may be none.
static void block_hoist(Block *b)
{
	for (Op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (op->code != OP_LOOP_REDUCE)
			continue;
		Block *inner = op->regions[0].first;
		block_hoist(inner);
		const bool runs = runs_at_least_once(op);
		for (Op *in = inner->first, *after; in; in = after) {
			after = in->next;
			if (in == block_terminator(inner) || (op_reads_memory(in) && !runs) ||
			    !op_is_invariant(in, in, op))
				continue;
			op_detach(in);
			op_insert_before(op, in);
		}
	}
}

static bool nest_visit(Op *nest)
{
	block_hoist(nest->regions[0].first);
	return true;
}

// Needs: nests.  Keeps: everything.  Breaks: nothing.
bool pass_hoist_terms(PassContext *p)
{
	return nests_visit(&p->module->regions[0], nest_visit);
}
