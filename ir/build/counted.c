// Loops of a counter from 0 on (counted.h).
#include "ir/build/counted.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

Value *build_number(Builder *b, DType t, int rank, int64_t v)
{
	const Dim *one = dim_const(b->ctx, 1);
	Value *full = build_full(b, type_tensor(b->ctx, t, rank, &one, 0), (double)v);
	return op_infer(full->def) ? full : NULL;
}

static Value *whole(Builder *b, int64_t v)
{
	return build_number(b, DT_I64, 1, v);
}

Value *build_size(Builder *b, Value *x, int axis)
{
	Context *c = b->ctx;
	if (dim_is_const(x->type->dims[axis]))
		return whole(b, x->type->dims[axis]->value);
	Value *shape = build1(b, OP_PD_SHAPE, x, NULL);
	Value *size = tensor_cut(b, shape, 0, axis, axis + 1);
	return build1(b, OP_PD_CAST, size, "dtype", attr_dtype(c, DT_I64), NULL);
}

// Both regions with their arguments, and the condition.
static bool regions_build(CountedLoop *l, const Builder *b, Value *count, int n,
                          const Type *const *types)
{
	Context *c = b->ctx;
	Block *cond = block_new(c, &l->op->regions[0]);
	l->body = block_new(c, &l->op->regions[1]);
	Value **pass = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		pass[i + 1] = block_add_arg(c, cond, types[i]);
		block_add_arg(c, l->body, types[i]);
	}
	Builder in = builder_at_end(c, cond, b->loc);
	pass[0] = build2(&in, OP_PD_LESS_THAN, cond->args[0], count, NULL);
	if (!pass[0])
		return false;
	op_append(cond, op_new(c, OP_CF_COND_YIELD, b->loc, 0, NULL, n + 1, pass, 0, 0));
	return true;
}

static void arg_name(CountedLoop *l, int i, const char *name)
{
	for (int r = 0; r < l->op->nregion; r++)
		l->op->regions[r].first->args[i]->name = context_str(l->b.ctx, name);
}

void count_name(CountedLoop *l, int i, const char *name)
{
	arg_name(l, i + 1, name);
}

void count_names(CountedLoop *l, const char *const *names)
{
	for (int i = 0; i < l->n; i++)
		count_name(l, i, names[i]);
}

bool count_begin(CountedLoop *l, Builder *b, Value *count, bool down, int n, Value *const *inits)
{
	Context *c = b->ctx;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	Value **all = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	all[0] = whole(b, 0);
	for (int i = 0; i < n; i++)
		all[i + 1] = inits[i];
	for (int i = 0; i <= n; i++) {
		if (!all[i])
			return false;
		types[i] = all[i]->type;
	}
	l->n = n;
	l->op = op_new(c, OP_PD_WHILE, b->loc, n + 1, types, n + 1, all, 2, 0);
	builder_insert(b, l->op);
	if (!regions_build(l, b, count, n + 1, types))
		return false;
	l->args = l->body->args + 1;
	l->b = builder_at_end(c, l->body, b->loc);
	l->at = l->body->args[0];
	arg_name(l, 0, "step");
	if (down) {
		Value *last = build2(&l->b, OP_PD_SUBTRACT, count, whole(&l->b, 1), NULL);
		l->at = build2(&l->b, OP_PD_SUBTRACT, last, l->at, NULL);
	}
	return l->at != NULL;
}

bool count_end(CountedLoop *l, Value *const *next)
{
	Context *c = l->b.ctx;
	Value **all = NEW_ARRAY(c->arena, (size_t)l->n + 1, Value *);
	all[0] = build2(&l->b, OP_PD_ADD, l->body->args[0], whole(&l->b, 1), NULL);
	for (int i = 0; i < l->n; i++)
		all[i + 1] = next[i];
	for (int i = 0; i <= l->n; i++) {
		if (!all[i])
			return false;
		const char *name = l->body->args[i]->name;
		if (name && !all[i]->name)
			all[i]->name = context_str(c, arena_printf(c->arena, "%s_next", name));
	}
	op_append(l->body, op_new(c, OP_CF_YIELD, l->b.loc, 0, NULL, l->n + 1, all, 0, 0));
	return true;
}

Value *count_result(const CountedLoop *l, int i)
{
	return op_result(l->op, i + 1);
}

// The slice of x at position `at` of axis 0, without that axis.
Value *build_step(Builder *b, Value *x, Value *at)
{
	Value *row = tensor_rows(b, x, at);
	if (!row)
		return NULL;
	return build1(b, OP_PD_RESHAPE, row, "shape",
	              attr_dims(b->ctx, x->type->rank - 1, x->type->dims + 1), NULL);
}

// x with that slice replaced.
Value *build_set_step(Builder *b, Value *x, Value *at, Value *step)
{
	const Dim *dims[MAX_RANK] = {dim_const(b->ctx, 1)};
	for (int d = 0; d < step->type->rank; d++)
		dims[d + 1] = step->type->dims[d];
	Value *row = build1(b, OP_PD_RESHAPE, step, "shape",
	                    attr_dims(b->ctx, step->type->rank + 1, dims), NULL);
	Value *const operands[] = {x, at, row};
	return row ? build(b, OP_PD_SCATTER, 3, operands, "overwrite", attr_bool(b->ctx, true), NULL)
	           : NULL;
}
