// Tangents of loop.nest: another nest, whose loads also read the tangents of what is loaded.
#include "ir/gradient/tangent.h"

// Copies of a region's operations without the one that ends it, at the end of b's block, with their
// tangents.
static bool copy_with_tangents(Builder *b, Duals *d, const Block *from, ValueMap *m)
{
	Op *before = b->block->last;
	for (const Op *op = from->first; op != from->last; op = op->next)
		op_append(b->block, op_clone(b->ctx, op, m));
	Op *first = before ? before->next : b->block->first;
	return !first || tangent_ops(d, first, b->block->last);
}

bool tangent_nest(Duals *d, Op *nest)
{
	Builder b = tangent_behind(nest);
	Context *c = b.ctx;
	const Block *body = nest->regions[0].first;
	const Type **types = NEW_ARRAY(c->arena, (size_t)nest->nresult + 1, const Type *);
	Value **out = NEW_ARRAY(c->arena, (size_t)nest->nresult + 1, Value *);
	int *which = NEW_ARRAY(c->arena, (size_t)nest->nresult + 1, int), k = 0;
	bool moves = false;
	for (int i = 0; i < nest->nresult; i++)
		if (value_moves(op_result(nest, i))) {
			which[k] = i;
			types[k++] = nest->results[i].type;
		}
	Nest n = nest_open_several(&b, k, types);
	ValueMap *m = value_map_new(c->arena);
	for (int i = 0; i < body->narg; i++)
		value_map_set(m, body->args[i], n.at[i]);
	if (!copy_with_tangents(&n.b, d, body, m))
		return false;
	for (int i = 0; i < k; i++) {
		Value *element = value_map_get(m, op_operand(body->last, which[i]));
		moves |= duals_get(&n.b, d, element) != NULL;
		out[i] = tangent_or_zero(&n.b, d, element);
	}
	if (!moves) {
		op_erase(n.op);
		return true;
	}
	if (!nest_close_several(&n, out, out))
		return false;
	for (int i = 0; i < k; i++)
		if (!duals_add(&b, d, op_result(nest, which[i]), out[i]))
			return false;
	return true;
}

// The product of all terms but the one at `at`.
static Value *other_terms(Builder *b, const Op *reduce, Value *const *at, Value *count)
{
	const Attr *extents = op_attr(reduce, "extents");
	const Block *body = reduce->regions[0].first;
	Nest r = reduce_open(b, "prod", reduce->results[0].type->dtype, extents->n, extents->dims);
	ValueMap *m = value_map_new(b->ctx->arena);
	Value *same = NULL;
	if (count)
		op_add_operand(r.op, count);
	for (int i = 0; i < body->narg; i++) {
		value_map_set(m, body->args[i], r.at[i]);
		same = pred_and(&r.b, same, index_equal(&r.b, r.at[i], at[i]));
	}
	for (const Op *op = body->first; op != body->last; op = op->next)
		op_append(r.b.block, op_clone(b->ctx, op, m));
	Value *term = value_map_get(m, op_operand(body->last, 0)),
		  *one = build_scalar_f(b, term->type->dtype, 1);
	op_detach(one->def);
	op_insert_before(r.op, one->def);
	return reduce_close(&r, same ? index_where(&r.b, same, one, term) : one);
}

bool tangent_reduce(Duals *d, Op *reduce)
{
	Builder b = tangent_behind(reduce);
	const Attr *extents = op_attr(reduce, "extents");
	const Block *body = reduce->regions[0].first;
	const ReduceKind kind = (ReduceKind)op_enum(reduce, "kind");
	Value *value = op_result(reduce, 0), *count = op_operand(reduce, 0);
	Nest r = reduce_open(&b, "sum", value->type->dtype, extents->n, extents->dims);
	ValueMap *m = value_map_new(b.ctx->arena);
	if (count)
		op_add_operand(r.op, count);
	for (int i = 0; i < body->narg; i++)
		value_map_set(m, body->args[i], r.at[i]);
	if (!copy_with_tangents(&r.b, d, body, m))
		return false;
	Value *term = value_map_get(m, op_operand(body->last, 0)), *t = duals_get(&r.b, d, term);
	if (!t) {
		op_erase(r.op);
		return true;
	}
	if (reduce_is_order(kind))
		t = index_where(&r.b, apply2(&r.b, OP_PD_EQUAL, term, value), t,
		                build_scalar_f(&r.b, t->type->dtype, 0));
	else if (kind == REDUCE_PROD)
		t = tensor_mul(&r.b, t, other_terms(&r.b, reduce, r.at, count));
	t = t ? reduce_close(&r, t) : NULL;
	return t && duals_add(&b, d, value, t);
}

bool tangent_load(Duals *d, Op *op)
{
	Builder b = tangent_behind(op);
	const bool chooses = op->code == OP_LOOP_LOAD_OR;
	const int first = chooses ? 3 : 1;
	Value *tensor = op_operand(op, first - 1), *other = chooses ? op_operand(op, 1) : NULL,
		  *t = duals_get(&b, d, tensor), *t_other = other ? duals_get(&b, d, other) : NULL,
		  *at[MAX_RANK];
	if (!t && !t_other)
		return true;
	for (int i = first; i < op->noperand; i++)
		at[i - first] = op_operand(op, i);
	Value *zero = build_scalar_f(&b, tensor->type->dtype, 0), *pred = op_operand(op, 0);
	if (!chooses)
		t = load(&b, t, at);
	else if (t)
		t = load_or(&b, pred, t_other ? t_other : zero, t, at);
	else
		t = index_where(&b, pred, zero, t_other);
	return t && duals_add(&b, d, op_result(op, 0), t);
}
