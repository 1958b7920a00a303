// Gradients in the code of a loop.nest: copies of it at a position (Body), in which one iteration
// gives what it adds to the gradient of a load, and those of the loop operations inside of nests.
// gradient_nest.c calls it for each load, gradient.c for what stands in such copies.
#include "ir/base/vec.h"
#include "ir/gradient/load_site.h"

// Elements are read only where the position exists.
static Value *guarded_load(Body *y, const Op *load)
{
	Value *tensor = value_map_get(y->map, load_tensor(load)), *at[MAX_RANK];
	for (int i = 0; i < tensor->type->rank; i++)
		at[i] = value_map_get(y->map, load_index(load, i));
	if (load->code == OP_LOOP_LOAD)
		return load_or(y->b, y->guard,
		               y->guard ? build_scalar_f(y->b, tensor->type->dtype, 0) : NULL, tensor, at);
	Value *pred = pred_and(y->b, y->guard, value_map_get(y->map, op_operand(load, 0)));
	return load_or(y->b, pred, value_map_get(y->map, op_operand(load, 1)), tensor, at);
}

// A loop.reduce as a whole: for its value.
static bool copy_reduce(Body *y, Op *reduce)
{
	Op *copy = op_new(y->b->ctx, reduce->code, reduce->loc, 1, &reduce->results[0].type, 0, NULL, 1,
	                  0);
	for (int i = 0; i < reduce->nattr; i++)
		op_set_attr(copy, reduce->attrs[i].name, reduce->attrs[i].attr);
	if (reduce->noperand)
		op_add_operand(copy, value_map_get(y->map, op_operand(reduce, 0)));
	if (y->b->before)
		op_insert_before(y->b->before, copy);
	else
		op_append(y->b->block, copy);
	const Block *body = reduce->regions[0].first;
	Block *to = block_new(y->b->ctx, &copy->regions[0]);
	Builder inner = builder_at_end(y->b->ctx, to, reduce->loc), *outer = y->b;
	for (int i = 0; i < body->narg; i++)
		value_map_set(y->map, body->args[i], block_add_arg(y->b->ctx, to, body->args[i]->type));
	y->b = &inner;
	bool ok = body_copy(y, body);
	y->b = outer;
	Value *yielded = value_map_get(y->map, op_operand(body->last, 0));
	if (ok)
		op_append(to, op_new(inner.ctx, OP_LOOP_YIELD, reduce->loc, 0, NULL, 1, &yielded, 0, 0));
	value_map_set(y->map, op_result(reduce, 0), op_result(copy, 0));
	return ok;
}

static bool copy_op(Body *y, Op *op)
{
	if (op->code == OP_LOOP_REDUCE)
		return copy_reduce(y, op);
	if (op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR) {
		Value *v = guarded_load(y, op);
		if (!v)
			return false;
		value_map_set(y->map, op_result(op, 0), v);
		return true;
	}
	Op *copy = op_clone(y->b->ctx, op, y->map);
	if (y->b->before)
		op_insert_before(y->b->before, copy);
	else
		op_append(y->b->block, copy);
	return true;
}

bool body_copy(Body *y, const Block *from)
{
	for (Op *op = from->first; op && op != from->last; op = op->next)
		if (!copy_op(y, op))
			return false;
	return true;
}

// The product of the terms of a reduction without the one at `at`: what division by a term of 0
// cannot give.
static Value *other_terms(Body *y, const Op *reduce, Value *const *at)
{
	const Attr *extents = op_attr(reduce, "extents");
	const Block *body = reduce->regions[0].first;
	Nest r = reduce_open(y->b, "prod", reduce->results[0].type->dtype, extents->n, extents->dims);
	if (reduce->noperand)
		op_add_operand(r.op, value_map_get(y->map, op_operand(reduce, 0)));
	Body inner = {.b = &r.b, .s = y->s, .guard = y->guard, .map = value_map_copy(y->map)};
	Value *same = NULL;
	for (int i = 0; i < body->narg; i++) {
		value_map_set(inner.map, body->args[i], r.at[i]);
		same = pred_and(&r.b, same, index_equal(&r.b, r.at[i], at[i]));
	}
	if (!body_copy(&inner, body))
		return NULL;
	Value *term = value_map_get(inner.map, op_operand(body->last, 0)),
		  *one = build_scalar_f(&r.b, term->type->dtype, 1);
	return reduce_close(&r, same ? index_where(&r.b, same, one, term) : one);
}

// What the term at `at` of a reduction contributes to the gradient `dv` of its value.
static Value *term_gradient(Body *y, const Op *reduce, Value *const *at, Value *value, Value *term,
                            Value *dv)
{
	const ReduceKind kind = (ReduceKind)op_enum(reduce, "kind");
	if (kind == REDUCE_SUM)
		return dv;
	if (reduce_is_order(kind))
		return index_where(y->b, apply2(y->b, OP_PD_EQUAL, term, value), dv,
		                   build_scalar_f(y->b, dv->type->dtype, 0));
	if (kind == REDUCE_PROD)
		return tensor_mul(y->b, dv, other_terms(y, reduce, at));
	return build_scalar_f(y->b, dv->type->dtype, 0);
}

// Copies the code of a block, brings `dv` for what it yields to `want`, and gives the gradient of
// that; NULL: none.
static bool through_block(Body *y, const Block *block, Value *const *dv, int ndv, Op *want,
                          Value **out)
{
	Block *at = y->b->block;
	Op *before = y->b->before ? y->b->before->prev : at->last;
	if (!body_copy(y, block))
		return false;
	Op *first = before ? before->next : at->first,
	   *last = y->b->before ? y->b->before->prev : at->last;
	Duals *d = duals_new(y->b->ctx, NULL);
	Value *target = value_map_get(y->map, op_result(want, 0));
	duals_want(d, target);
	for (int i = 0; i < ndv; i++)
		if (dv[i] && !duals_add(y->b, d, value_map_get(y->map, op_operand(block->last, i)), dv[i]))
			return false;
	if (first && first != y->b->before && !gradient_ops(y->b, d, first, last))
		return false;
	*out = duals_get(y->b, d, target);
	return true;
}

// From the gradient of a reduction's value to that of what its region yields, at the position that
// s->vars have.
static Value *enter_reduce(Body *y, Op *reduce, Value *have)
{
	const Block *block = reduce->regions[0].first;
	Value *value = value_map_get(y->map, op_result(reduce, 0)), *at[MAX_VARS];
	for (int k = 0; k < block->narg; k++) {
		at[k] = y->s->vars[site_var(y->s, block->args[k])].at;
		value_map_set(y->map, block->args[k], at[k]);
	}
	// The terms themselves are needed where not all count alike.
	bool alike = op_enum(reduce, "kind") == REDUCE_SUM;
	if (!alike && !body_copy(y, block))
		return NULL;
	return term_gradient(y, reduce, at, value,
	                     alike ? NULL : value_map_get(y->map, op_operand(block->last, 0)), have);
}

// The gradient of the load at the position of s->vars, for these gradients of what the nest yields;
// NULL: zero.
static bool load_gradient(Body *y, Value *const *dv, int ndv, Value **out)
{
	LoadSite *s = y->s;
	const Block *block = s->nest->regions[0].first;
	Value *have[MAX_PATH + 1];
	*out = NULL;
	for (int i = 0; i < s->npath; i++) {
		if (!through_block(y, block, dv, ndv, s->path[i], &have[i]))
			return false;
		if (!have[i])
			return true;
		have[i] = enter_reduce(y, s->path[i], have[i]);
		if (!have[i])
			return false;
		dv = &have[i];
		ndv = 1;
		block = s->path[i]->regions[0].first;
	}
	if (!through_block(y, block, dv, ndv, s->load, out))
		return false;
	if (*out && s->load->code == OP_LOOP_LOAD_OR) {
		Value *pred = value_map_get(y->map, op_operand(s->load, 0));
		*out = index_where(y->b, pred, *out, build_scalar_f(y->b, (*out)->type->dtype, 0));
		return *out != NULL;
	}
	return true;
}

// The gradients of the nest's results at the position of its variables.
static void incoming(Body *y, Value *const *d_results, Value **dv)
{
	LoadSite *s = y->s;
	Value *at[MAX_RANK];
	for (int i = 0; i < s->nest->results[0].type->rank; i++)
		at[i] = s->vars[i].at;
	for (int i = 0; i < s->nest->nresult; i++) {
		dv[i] = NULL;
		if (d_results[i] && type_moves(d_results[i]->type))
			dv[i] = load_or(y->b, y->guard,
			                y->guard ? build_scalar_f(y->b, d_results[i]->type->dtype, 0) : NULL,
			                d_results[i], at);
	}
}

bool body_guard(Builder *b, LoadSite *s, Value **guard)
{
	for (int i = 0; i < s->nvar; i++) {
		if (!s->vars[i].counted)
			continue;
		Body y = {.b = b, .s = s, .guard = *guard, .map = value_map_new(b->ctx->arena)};
		for (int v = 0; v < s->nvar; v++)
			value_map_set(y.map, s->vars[v].arg, s->vars[v].at);
		const Block *block = s->nest->regions[0].first;
		for (int k = 0; k < s->npath && s->path[k] != s->vars[i].counted; k++) {
			if (!body_copy(&y, block))
				return false;
			block = s->path[k]->regions[0].first;
			for (int v = 0; v < s->nvar; v++)
				value_map_set(y.map, s->vars[v].arg, s->vars[v].at);
		}
		if (!body_copy(&y, block))
			return false;
		Value *count = value_map_get(y.map, op_operand(s->vars[i].counted, 0));
		*guard = pred_and(b, *guard, index_less(b, s->vars[i].at, count));
	}
	return true;
}

Value *body_gradient(Builder *b, Op *nest, LoadSite *s, Value *guard, Value *const *d_results,
                     bool *none)
{
	*none = false;
	if (!body_guard(b, s, &guard))
		return NULL;
	Body y = {.b = b, .s = s, .guard = guard, .map = value_map_new(b->ctx->arena)};
	Value **dv = NEW_ARRAY(b->ctx->arena, (size_t)s->nest->nresult, Value *), *out = NULL;
	const Block *body = s->nest->regions[0].first;
	for (int i = 0; i < body->narg; i++)
		value_map_set(y.map, body->args[i], s->vars[i].at);
	incoming(&y, d_results, dv);
	if (!load_gradient(&y, dv, s->nest->nresult, &out))
		return NULL;
	*none = !out;
	if (!out)
		op_erase(nest);
	if (!out || !guard)
		return out;
	return index_where(b, guard, out, build_scalar_f(b, out->type->dtype, 0));
}

typedef struct Scalars {
	int n, room;
	Value **list;
} Scalars;

// Scalars of the code around `op` that code in `region` reads and whose gradients are wanted.
static void captured(const Duals *d, const Op *op, const Region *region, Scalars *s)
{
	for (const Op *o = region->first->first; o; o = o->next) {
		for (int i = 0; i < o->noperand; i++) {
			Value *v = o->operands[i].value;
			bool have = !v || v->type->kind != TY_SCALAR || !duals_wanted(d, v) ||
			            value_is_within(v, op);
			for (int k = 0; k < s->n && !have; k++)
				have = s->list[k] == v;
			if (have)
				continue;
			VEC_ROOM(op->ctx->arena, s->list, s->n, s->room);
			s->list[s->n++] = v;
		}
		for (int r = 0; r < o->nregion; r++)
			captured(d, op, &o->regions[r], s);
	}
}

bool gradient_reduce(Builder *b, Op *reduce, Duals *d)
{
	Value *have = duals_get(b, d, op_result(reduce, 0));
	const Attr *extents = op_attr(reduce, "extents");
	Block *body = reduce->regions[0].first;
	Scalars s = {0};
	captured(d, reduce, &reduce->regions[0], &s);
	LoadSite none = {0};
	for (int i = 0; i < s.n; i++) {
		Nest r = reduce_open(b, "sum", s.list[i]->type->dtype, extents->n, extents->dims);
		if (reduce->noperand)
			op_add_operand(r.op, op_operand(reduce, 0));
		Body y = {.b = &r.b, .s = &none, .map = value_map_new(b->ctx->arena)};
		for (int k = 0; k < body->narg; k++)
			value_map_set(y.map, body->args[k], r.at[k]);
		if (!body_copy(&y, body))
			return false;
		Op *first = r.b.block->first, *last = r.b.block->last;
		Value *term = value_map_get(y.map, op_operand(body->last, 0));
		Value *dterm = term_gradient(&y, reduce, r.at, op_result(reduce, 0), term, have);
		Duals *inner = duals_new(b->ctx, NULL);
		duals_want(inner, s.list[i]);
		if (!dterm || !duals_add(&r.b, inner, term, dterm) ||
		    (first && !gradient_ops(&r.b, inner, first, last)))
			return false;
		Value *dv = duals_get(&r.b, inner, s.list[i]);
		dv = dv ? dv : build_scalar_f(&r.b, s.list[i]->type->dtype, 0);
		if (!duals_add(b, d, s.list[i], reduce_close(&r, dv)))
			return false;
	}
	return true;
}

bool gradient_load_or(Builder *b, Op *load, Duals *d)
{
	Value *other = op_operand(load, 1), *have = duals_get(b, d, op_result(load, 0));
	if (!duals_wanted(d, other) || !have)
		return true;
	Value *dv = index_where(b, op_operand(load, 0), build_scalar_f(b, have->type->dtype, 0), have);
	return dv && duals_add(b, d, other, dv);
}
