// What one side of a branch alone reads is computed there, so that the other side does not pay for
// it. Run when the program is clean, before `hoist`: nothing goes into a loop from outside of it.
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"

// The region of a pd.if in the same block that holds all readers; NULL: none.
static Region *sink_region(const Op *op)
{
	Region *only = NULL;
	for (int i = 0; i < op->nresult; i++)
		for (const Use *u = op->results[i].uses; u; u = u->next) {
			const Op *at = u->user;
			while (at && op_parent(at) && op_parent(at)->block != op->block)
				at = op_parent(at);
			const Op *branch = at ? op_parent(at) : NULL;
			if (!branch || branch->code != OP_PD_IF || !control_is_plain(branch))
				return NULL;
			Region *r = at->block->region;
			if (only && only != r)
				return NULL;
			only = r;
		}
	return only;
}

static bool op_may_sink(const Op *op)
{
	if (!(op->info->traits & TRAIT_PURE) ||
	    (op->info->traits & (TRAIT_CONSTANT | TRAIT_TERMINATOR)) || op->nregion)
		return false;
	return op->nresult > 0 && results_are_sized(op);
}

// Backwards: what an operation reads follows it.
static void region_sink(Region *r)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->last, *prev; op; op = prev) {
			prev = op->prev;
			for (int i = 0; i < op->nregion && op->info->kind == KIND_CONTROL; i++)
				region_sink(&op->regions[i]);
			Region *to = op_may_sink(op) ? sink_region(op) : NULL;
			if (!to)
				continue;
			op_detach(op);
			op_insert_before(to->first->first, op);
		}
}

// Needs: nothing.
// Keeps: everything but the place of operations.
// Breaks: nothing. What reached an inner branch's border goes on into it the next time.
bool pass_sink(PassContext *p)
{
	region_sink(&p->module->regions[0]);
	return true;
}
