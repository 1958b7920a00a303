// Computing in place: a nest that reads an operand only at the element that it writes takes over the operand's
// bytes when nobody needs them afterwards. Called by plan.c.
#include "plan.h"

#include <string.h>

// Whether index v is the nest's position along axis i, of size `dim`.
static bool index_is_position(const Value *v, const Block *body, int i, const Dim *dim)
{
	if (v == body->args[i])
		return true;
	return dim_is(dim, 1) && v->def && v->def->code == OP_LOOP_CONSTANT && op_int(v->def, "value", -1) == 0;
}

static bool load_at_identity(const Op *load, const Op *nest)
{
	const Block *body = region_entry(&nest->regions[0]);
	int tensor = load->code == OP_LOOP_LOAD ? 0 : 2;
	if (load->block != body || load->noperand != tensor + 1 + body->narg)
		return false; // in a reduction it may be read again after the element was written
	for (int i = 0; i < body->narg; i++)
		if (!index_is_position(op_operand(load, tensor + 1 + i), body, i, nest->results[0].type->dims[i]))
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
		bool same = t->rank == r->result->rank && dtype_size(t->dtype) == dtype_size(r->result->dtype) &&
		            (t->rank == 0 || !memcmp(t->dims, r->result->dims, sizeof *t->dims * (size_t)t->rank));
		if (!same || (op->code != OP_LOOP_LOAD && op->code != OP_LOOP_LOAD_OR) || !load_at_identity(op, r->nest))
			r->only_identity = false;
	}
	return r->only_identity;
}

bool op_reads_in_place(const Plan *p, const Op *op, int i, const Root *r)
{
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
	Op *nest;
	int result;
	Buffer *found;
} Search;

static bool search_visit(Op *op, void *arg)
{
	Search *s = arg;
	if (op->code != OP_LOOP_LOAD && op->code != OP_LOOP_LOAD_OR)
		return true;
	const Value *v = op_operand(op, op->code == OP_LOOP_LOAD ? 0 : 2);
	Buffer *b = v ? value_buffer(s->plan, v) : NULL, *result = value_buffer(s->plan, &s->nest->results[s->result]);
	if (b && b != result && b->bytes == result->bytes && b->place == IN_WORKSPACE &&
	    !(b->moving && result->place != IN_WORKSPACE) && !buffers_meet(s->plan, b, result))
		s->found = b;
	return !s->found;
}

void plan_in_place(Plan *p)
{
	for (int k = 0; k < p->nblock; k++)
		for (Op *op = p->blocks[k].block->first; op; op = op->next) {
			for (int i = 0; i < op->nresult && op->code == OP_LOOP_NEST; i++) {
				Search s = {p, op, i, NULL};
				op_walk(op, search_visit, &s);
				if (!s.found)
					continue;
				Buffer *result = value_buffer(p, &op->results[i]);
				s.found->place = result->place;
				s.found->col = result->col;
				if (result->moving && !s.found->moving)
					s.found->moving = result->moving;
				buffers_merge(s.found, result);
			}
		}
}
