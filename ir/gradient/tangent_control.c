// Tangents of pd.if, pd.case and pd.while: the same with the tangents of what they pass on behind
// it.
#include "ir/build/infer.h"
#include "ir/gradient/tangent.h"

// Results, or variables, whose tangents are passed on.
typedef struct Moving {
	int n, *which;
} Moving;

static Moving moving_results(const Duals *d, Op *op)
{
	Moving m = {0, NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, int)};
	for (int i = 0; i < op->nresult; i++)
		if (duals_wanted(d, op_result(op, i)))
			m.which[m.n++] = i;
	return m;
}

// In the place of op: with these results behind its own.
static bool take_place(Duals *d, Op *op, Op *with, const Moving *m)
{
	Builder b = tangent_behind(with);
	op_take_regions(with, op, op->nregion);
	for (int i = 0; i < op->nresult; i++)
		value_take(op_result(op, i), op_result(with, i));
	for (int i = 0; i < m->n; i++) {
		Value *t = op_result(with, op->nresult + i);
		if (!duals_add(&b, d, op_result(op, m->which[i]), t) ||
		    !duals_add(&b, d, op_result(with, m->which[i]), t))
			return false;
		duals_want(d, op_result(with, m->which[i]));
	}
	op_erase(op);
	return true;
}

// Results of op, then those of m.
static const Type **types_with(const Op *op, const Moving *m)
{
	const Type **types = NEW_ARRAY(op->ctx->arena, (size_t)(op->nresult + m->n) + 1, const Type *);
	for (int i = 0; i < op->nresult; i++)
		types[i] = op->results[i].type;
	for (int i = 0; i < m->n; i++)
		types[op->nresult + i] = types[m->which[i]];
	return types;
}

// The tangents in a region, and those of what it hands on behind that.
static bool region_tangents(Duals *d, Block *body, const Moving *m, int first)
{
	Op *end = body->last;
	if (end->prev && !tangent_ops(d, body->first, end->prev))
		return false;
	Builder b = builder_before(end);
	for (int i = 0; i < m->n; i++) {
		Value *t = tangent_or_zero(&b, d, op_operand(end, first + m->which[i]));
		if (!t)
			return false;
		op_add_operand(end, t);
	}
	return true;
}

static bool passes_lists(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (op->results[i].type->kind != TY_TENSOR && op->results[i].type->kind != TY_ARRAY)
			return true;
	const int parts = op_parts(op);
	return op->nregion > parts && op->regions[parts].first;
}

bool tangent_branch(Duals *d, Op *op)
{
	Value *cond = op_operand(op, 0);
	Moving m = moving_results(d, op);
	if (passes_lists(op))
		return op_error(op, "the tangent of a branch that passes on stacks or lists is not "
		                    "supported");
	for (int r = 0; r < op_parts(op); r++)
		if (!region_tangents(d, op->regions[r].first, &m, 0))
			return false;
	Op *with = op_new(op->ctx, op->code, op->loc, op->nresult + m.n, types_with(op, &m), 1, &cond,
	                  op->nregion, 0);
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(with, op->attrs[i].name, op->attrs[i].attr);
	op_insert_before(op, with);
	return take_place(d, op, with, &m);
}

bool tangent_while(Duals *d, Op *op)
{
	Context *c = op->ctx;
	if (passes_lists(op))
		return op_error(op, "the tangent of a loop that passes on stacks or lists is not "
		                    "supported");
	Moving m = moving_results(d, op);
	const Type **types = types_with(op, &m);
	Value **inits = NEW_ARRAY(c->arena, (size_t)(op->nresult + m.n) + 1, Value *);
	Builder b = builder_before(op);
	for (int i = 0; i < op->nresult; i++)
		inits[i] = op_operand(op, i);
	for (int i = 0; i < m.n; i++)
		inits[op->nresult + i] = tangent_or_zero(&b, d, inits[m.which[i]]);
	for (int i = 0; i < m.n; i++)
		if (!inits[op->nresult + i])
			return false;
	for (int r = 0; r < 2; r++) {
		Block *block = op->regions[r].first;
		for (int i = 0; i < m.n; i++) {
			Value *t = block_add_arg(c, block, types[op->nresult + i]);
			if (!duals_add(&b, d, block->args[m.which[i]], t))
				return false;
		}
	}
	if (!region_tangents(d, op->regions[0].first, &m, 1) ||
	    !region_tangents(d, op->regions[1].first, &m, 0))
		return false;
	Op *with = op_new(c, op->code, op->loc, op->nresult + m.n, types, op->nresult + m.n, inits,
	                  op->nregion, 0);
	op_insert_before(op, with);
	return take_place(d, op, with, &m);
}
