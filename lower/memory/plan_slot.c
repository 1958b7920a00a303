// Computing where a slice of a tensor lies: what a nest makes for a loop.update is written there at
// once, and those who read it in the same block read it there. Nothing is left to copy. Called by
// plan_place.c.
#include "lower/analysis/places.h"
#include "lower/analysis/touches.h"
#include "lower/memory/plan.h"

// Fewer elements are variables of C, or copied by a load and a store.
enum { SLOT_ELEMENTS = 9 };

// The last operation that reads r; -1 where one outside of the block does, or what ends it.
static int last_read(const Root *r, const BlockPlan *b)
{
	int last = r->at;
	for (int i = 0; i < r->nuse; i++) {
		if (r->uses[i] < b->start || r->uses[i] >= b->end)
			return -1;
		last = r->uses[i] > last ? r->uses[i] : last;
	}
	return last;
}

static bool used_between(const Root *r, int first, int end)
{
	for (int i = 0; i < r->nuse; i++)
		if (r->uses[i] >= first && r->uses[i] < end)
			return true;
	return false;
}

// Whether nobody but the update touches what lies in `to` from where x is made on, until it has
// been read last: the old elements of the slice are not read, and the new ones not written over.
static bool slice_is_free(const Plan *p, const Op *update, const Root *x, const Buffer *to,
                          int last)
{
	const int at = op_plan(update)->at;
	for (const Root *r = to->roots; r; r = r->next)
		if (used_between(r, x->at, at) ||
		    (r->at >= x->at && r->at <= last && r->value->def != update))
			return false;
	for (const Op *op = update->next; op && op_plan(op)->at <= last; op = op->next)
		if (op_updates(op) && value_buffer(p, op_operand(op, 0)) == to)
			return false;
	return true;
}

// The value whose elements the update takes, which lies alone so far and may lie in the slice.
static Root *slot_candidate(const Plan *p, const Op *update)
{
	const Value *x = op_operand(update, 2);
	const Op *made = x->def;
	int64_t least, most;
	if (!made || made->code != OP_LOOP_NEST || made->block != update->block)
		return NULL;
	dim_range(type_numel(p->ctx, x->type), &least, &most);
	Root *r = value_root(p, x);
	const Buffer *alone = r ? buffer_root(r->buffer) : NULL;
	return least >= SLOT_ELEMENTS && alone && alone->roots == r && !r->next &&
	               alone->place == IN_WORKSPACE && !update_needs(update).length &&
	               x->type->dtype == update->results[0].type->dtype
	           ? r
	           : NULL;
}

void plan_slot(Plan *p, const Op *update)
{
	Root *x = slot_candidate(p, update);
	const Root *at = value_root(p, op_operand(update, 1));
	Buffer *to = value_buffer(p, &update->results[0]);
	if (!x || !at || at->at >= x->at || to->place != IN_WORKSPACE ||
	    value_buffer(p, op_operand(update, 0)) != to)
		return;
	const int last = last_read(x, root_block(p, x));
	if (last < 0 || !slice_is_free(p, update, x, to, last))
		return;
	buffers_merge(to, buffer_root(x->buffer));
	x->slot = true;
}
