// C: where loads find neighbouring axes by quotient and rest of one position, as a window or an
// image that is numbered through does, they read a view in which these are one axis: nothing is
// divided, and lanes see elements side by side. Called by pipeline.c.
#include "ir/build/nest.h"
#include "lower/analysis/nest.h"
#include "lower/nests/fuse.h"
#include "lower/nests/nests.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

// The position that `code` divides by that size; NULL: v is something else.
static Value *divided(const Value *v, enum OpCode code, const Dim *by)
{
	const Op *op = v->def;
	return op && op->code == code && index_size(op_operand(op, 1)) == by ? op_operand(op, 0) : NULL;
}

// The first of two axes that the load finds by one position; -1: there are none.
static int joint_axes(const Op *load, int first, Value **position)
{
	const Type *t = load_tensor(load);
	for (int d = 0; d + 1 < t->rank; d++) {
		const Dim *by = t->dims[d + 1];
		*position = divided(op_operand(load, first + d), OP_PD_FLOOR_DIVIDE, by);
		if (*position && divided(op_operand(load, first + d + 1), OP_PD_REMAINDER, by) == *position)
			return d;
	}
	return -1;
}

// A view of x in front of the nest, in which axes `at` and the next are one. Loads of one tensor
// share it.
static Value *joint_view(Op *nest, Value *x, int at)
{
	Context *c = nest->ctx;
	const Dim *dims[MAX_RANK];
	const Type *t = x->type;
	for (int d = 0; d < t->rank; d++)
		dims[d - (d > at)] = d == at + 1 ? dim_mul(c, t->dims[at], t->dims[d]) : t->dims[d];
	const Type *joint = type_tensor(c, t->dtype, t->rank - 1, dims, 0);
	for (Op *op = nest->prev; op && op->code == OP_PD_RESHAPE; op = op->prev)
		if (op_operand(op, 0) == x && op->results[0].type == joint)
			return &op->results[0];
	Builder before = builder_before(nest);
	return tensor_reshape(&before, x, joint->rank, joint->dims);
}

static bool block_visit(Op *nest, Block *b, bool *changed)
{
	for (Op *op = b->first; op; op = op->next) {
		const int first = load_indices_at(op);
		Value *position;
		for (int at; first && (at = joint_axes(op, first, &position)) >= 0;) {
			Value *view = joint_view(nest, op_operand(op, first - 1), at);
			if (!view)
				return false;
			op_set_operand(op, first - 1, view);
			op_set_operand(op, first + at, position);
			op_remove_operand(op, first + at + 1);
			*changed = true;
		}
		for (int i = 0; i < op->nregion; i++)
			if (!block_visit(nest, op->regions[i].first, changed))
				return false;
	}
	return true;
}

static bool nest_visit(Op *nest)
{
	bool changed = false;
	if (!block_visit(nest, nest->regions[0].first, &changed))
		return false;
	if (changed)
		scalar_simplify(nest);
	return true;
}

// Needs: nests.  Keeps: everything.  Breaks: nothing; what is read is views of fewer dims.
bool pass_join_axes(PassContext *p)
{
	return (p->target && p->target->simt) || nests_visit(&p->module->regions[0], nest_visit);
}
