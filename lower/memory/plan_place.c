// Computing in place: a nest, or a kernel's epilogue, that reads an operand only at the element
// that it writes takes over the operand's bytes when nobody needs them afterwards; so does an
// update, which then writes nothing but the new elements, and what a maximum's image gets. Called
// by plan.c.
#include "lower/analysis/places.h"
#include "lower/memory/plan.h"

#include <string.h>

typedef struct Search {
	const Plan *plan;
	const Op *op;
	int result;
	Buffer *found;
} Search;

static void search_try(Search *s, const Value *v)
{
	const Buffer *result = value_buffer(s->plan, &s->op->results[s->result]);
	Buffer *b = v ? value_buffer(s->plan, v) : NULL;
	bool fits = b && (b->bytes == result->bytes ||
	                  (s->op->code == OP_LOOP_APPEND && result->place == IN_WORKSPACE &&
	                   buffers_can_be_one(s->plan, b, result)));
	if (b && b != result && fits && b->place == IN_WORKSPACE &&
	    !(b->moving && result->place != IN_WORKSPACE) &&
	    !(buffer_has_args(b) && result->place == IN_STATE) && !buffers_meet(s->plan, b, result))
		s->found = b;
}

static bool search_visit(Op *op, void *arg)
{
	Search *s = arg;
	if (op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR)
		search_try(s, op_operand(op, op->code == OP_LOOP_LOAD ? 0 : 2));
	return !s->found;
}

static void op_in_place(Plan *p, Op *op)
{
	for (int i = 0; i < op->nresult; i++) {
		Search s = {p, op, i, NULL};
		if (op_reads_by_element(p, op))
			op_walk(op, search_visit, &s);
		else
			search_try(&s, op_operand(op, op_place_operand(op)));
		if (!s.found)
			continue;
		Buffer *result = value_buffer(p, &op->results[i]);
		s.found->bytes = dim_max(p->ctx, s.found->bytes, result->bytes);
		s.found->place = result->place;
		s.found->col = result->col;
		s.found->data_key = result->data_key;
		if (result->moving && !s.found->moving)
			s.found->moving = result->moving;
		buffers_merge(s.found, result);
	}
}

// What may be computed in a slice of something else is not to lie elsewhere by then.
static void plan_slots(Plan *p)
{
	for (int k = 0; k < p->nblock; k++)
		for (Op *op = p->blocks[k].block->first; op; op = op->next)
			if (op->code == OP_LOOP_UPDATE) {
				op_in_place(p, op);
				plan_slot(p, op);
			}
}

void plan_in_place(Plan *p)
{
	if (!p->parallel)
		plan_slots(p);
	for (int k = 0; k < p->nblock; k++)
		for (Op *op = p->blocks[k].block->first; op; op = op->next)
			if (op_reads_by_element(p, op) || op_place_operand(op) >= 0)
				op_in_place(p, op);
}
