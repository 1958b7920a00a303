// How an operation reads a value: at most at the element that it then writes, so that it may
// compute in place.
#include "lower/analysis/places.h"
#include "lower/memory/plan.h"

#include <string.h>

// Whether index v is `position`, that along an axis of size `dim`.
static bool index_is_position(const Value *v, const Value *position, const Dim *dim)
{
	if (v == position)
		return true;
	int64_t at;
	return dim_is(dim, 1) && index_constant(v, &at) && at == 0;
}

// Of a nest, or of a kernel's epilogue, which has the sum in front of the positions.
static bool load_at_identity(const Op *load, const Op *nest)
{
	const Block *body = region_entry(&nest->regions[0]);
	const int tensor = load->code == OP_LOOP_LOAD ? 0 : 2;
	const int first = nest->code == OP_LOOP_NEST ? 0 : 1, rank = body->narg - first;
	if (load->block != body || load->noperand != tensor + 1 + rank)
		return false; // in a reduction it may be read again after the element was written
	for (int i = 0; i < rank; i++)
		if (!index_is_position(op_operand(load, tensor + 1 + i), body->args[first + i],
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

// Whether operand `place`, none if that is below 0, lies at r and no other operand does.
static bool only_place_is_at(const Plan *p, const Op *op, int place, const Root *r)
{
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (v && (value_root(p, v) == r) != (i == place))
			return false;
	}
	return true;
}

bool op_reads_by_element(const Plan *p, const Op *op)
{
	return op->code == OP_LOOP_NEST ||
	       (!p->parallel && (op->info->traits & TRAIT_STORES_ONCE) && op->regions[0].first);
}

bool op_reads_in_place(const Plan *p, const Op *op, int i, const Root *r)
{
	const int place = op_place_operand(op);
	if (!only_place_is_at(p, op, place, r))
		return false;
	if (place >= 0 || !op_reads_by_element(p, op))
		return place >= 0;
	Reads reads = {p, op, r, op->results[i].type, true};
	op_walk((Op *)op, reads_visit, &reads); // looks only
	return reads.only_identity;
}
