// Computing in place: a nest that reads an operand only at the element that it writes takes over
// the operand's bytes when nobody needs them afterwards; so does an update, which then writes
// nothing but the new elements. Called by plan.c.
#include "lower/memory/plan.h"

#include <string.h>

// Whether index v is the nest's position along axis i, of size `dim`.
static bool index_is_position(const Value *v, const Block *body, int i, const Dim *dim)
{
	if (v == body->args[i])
		return true;
	return dim_is(dim, 1) && v->def && v->def->code == OP_LOOP_CONSTANT &&
	       op_int(v->def, "value", -1) == 0;
}

static bool load_at_identity(const Op *load, const Op *nest)
{
	const Block *body = region_entry(&nest->regions[0]);
	int tensor = load->code == OP_LOOP_LOAD ? 0 : 2;
	if (load->block != body || load->noperand != tensor + 1 + body->narg)
		return false; // in a reduction it may be read again after the element was written
	for (int i = 0; i < body->narg; i++)
		if (!index_is_position(op_operand(load, tensor + 1 + i), body, i,
		                       nest->results[0].type->dims[i]))
			return false;
	return true;
}

// What a nest does with one value.
typedef struct Reads {
	const Plan *plan;
	const Op *nest;
	const Root *root;
	const Type *result;
	bool only_identity;
} Reads;

static bool reads_visit(Op *op, void *arg)
{
	Reads *r = arg;
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (!v || value_root(r->plan, v) != r->root)
			continue;
		const Type *t = v->type;
		bool same = t->rank == r->result->rank &&
		            dtype_size(t->dtype) == dtype_size(r->result->dtype) &&
		            (t->rank == 0 ||
		             !memcmp(t->dims, r->result->dims, sizeof *t->dims * (size_t)t->rank));
		if (!same || (op->code != OP_LOOP_LOAD && op->code != OP_LOOP_LOAD_OR) ||
		    !load_at_identity(op, r->nest))
			r->only_identity = false;
	}
	return r->only_identity;
}

// What is appended must not lie in front of where it goes.
static bool append_reads_in_place(const Plan *p, const Op *op, const Root *r)
{
	return value_root(p, op_operand(op, 0)) == r && value_root(p, op_operand(op, 1)) != r;
}

// An update leaves what it does not replace; but the new elements and the position must not lie in
// between.
static bool update_reads_in_place(const Plan *p, const Op *op, const Root *r)
{
	return value_root(p, op_operand(op, 0)) == r && value_root(p, op_operand(op, 1)) != r &&
	       value_root(p, op_operand(op, 2)) != r;
}

bool op_reads_in_place(const Plan *p, const Op *op, int i, const Root *r)
{
	if (op->code == OP_LOOP_UPDATE)
		return update_reads_in_place(p, op, r);
	if (op->code == OP_LOOP_APPEND)
		return append_reads_in_place(p, op, r);
	if (op->code != OP_LOOP_NEST)
		return false;
	Reads reads = {p, op, r, op->results[i].type, true};
	op_walk((Op *)op, reads_visit, &reads); // looks only
	return reads.only_identity;
}

void buffers_merge(Buffer *into, Buffer *b)
{
	Root **tail = &into->roots;
	while (*tail)
		tail = &(*tail)->next;
	*tail = b->roots;
	b->roots = NULL;
	b->merged = into;
}

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
		if (op->code == OP_LOOP_UPDATE || op->code == OP_LOOP_APPEND)
			search_try(&s, op_operand(op, 0));
		else
			op_walk(op, search_visit, &s);
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

void plan_in_place(Plan *p)
{
	for (int k = 0; k < p->nblock; k++)
		for (Op *op = p->blocks[k].block->first; op; op = op->next)
			if (op->code == OP_LOOP_NEST || op->code == OP_LOOP_UPDATE ||
			    op->code == OP_LOOP_APPEND)
				op_in_place(p, op);
}
