// Loops that the translator makes itself, for operators that go step by step: a counter from 0 on,
// and values that are carried. Also gather_tree, which is such a loop.
#include "control.h"

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
	const int64_t axes[] = {0};
	const Dim *from = dim_const(c, axis), *to = dim_const(c, axis + 1);
	if (dim_is_const(x->type->dims[axis]))
		return whole(b, x->type->dims[axis]->value);
	Value *shape = build1(b, OP_PD_SHAPE, x, NULL);
	Value *size = build1(b, OP_PD_SLICE, shape, "axes", attr_ints(c, 1, axes), "starts",
	                     attr_dims(c, 1, &from), "ends", attr_dims(c, 1, &to), NULL);
	return build1(b, OP_PD_CAST, size, "dtype", attr_dtype(c, DT_I64), NULL);
}

bool count_begin(CountedLoop *l, OpJob *j, Value *count, bool down, int n, Value *const *inits)
{
	Context *c = j->t->c;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	Value **all = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	Builder b = builder_at_end(c, j->t->block, j->b.loc);
	all[0] = whole(&b, 0);
	for (int i = 0; i < n; i++)
		all[i + 1] = inits[i];
	for (int i = 0; i <= n; i++)
		types[i] = all[i]->type;
	l->n = n;
	l->op = op_new(c, OP_PD_WHILE, j->b.loc, n + 1, types, n + 1, all, 2, 0);
	op_append(j->t->block, l->op);
	Block *cond = block_new(c, &l->op->regions[0]);
	l->body = block_new(c, &l->op->regions[1]);
	Value **pass = NEW_ARRAY(c->arena, (size_t)n + 2, Value *);
	for (int i = 0; i <= n; i++) {
		pass[i + 1] = block_add_arg(c, cond, types[i]);
		block_add_arg(c, l->body, types[i]);
	}
	l->args = l->body->args + 1;
	b = builder_at_end(c, cond, j->b.loc);
	pass[0] = build2(&b, OP_PD_LESS_THAN, cond->args[0], count, NULL);
	if (!pass[0])
		return false;
	op_append(cond, op_new(c, OP_CF_COND_YIELD, j->b.loc, 0, NULL, n + 2, pass, 0, 0));
	b = builder_at_end(c, l->body, j->b.loc);
	l->at = l->body->args[0];
	if (down) {
		Value *last = build2(&b, OP_PD_SUBTRACT, count, whole(&b, 1), NULL);
		l->at = build2(&b, OP_PD_SUBTRACT, last, l->at, NULL);
	}
	return l->at != NULL;
}

bool count_end(CountedLoop *l, OpJob *j, Value *const *next)
{
	Context *c = j->t->c;
	Value **all = NEW_ARRAY(c->arena, (size_t)l->n + 1, Value *);
	Builder b = builder_at_end(c, l->body, j->b.loc);
	all[0] = build2(&b, OP_PD_ADD, l->body->args[0], whole(&b, 1), NULL);
	for (int i = 0; i < l->n; i++)
		all[i + 1] = next[i];
	if (!all[0])
		return false;
	op_append(l->body, op_new(c, OP_CF_YIELD, j->b.loc, 0, NULL, l->n + 1, all, 0, 0));
	return true;
}

Value *count_result(const CountedLoop *l, int i)
{
	return op_result(l->op, i + 1);
}

// The slice of x at position `at` of axis 0, without that axis.
Value *build_step(Builder *b, Value *x, Value *at)
{
	Value *row = build2(b, OP_PD_GATHER, x, at, "axis", attr_int(b->ctx, 0), NULL);
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
	return row ? build(b, OP_PD_SCATTER, 3, operands, "overwrite", attr_bool(b->ctx, true),
	                   NULL)
	           : NULL;
}

// ---- gather_tree: beams from their last step back ---------------------------------------------

// Every beam at the last step: 0, 1, 2 ... along the last axis, for every batch.
static Value *last_beams(Builder *b, const Type *t)
{
	Context *c = b->ctx;
	const int64_t axes[] = {0};
	Value *start = build_number(b, t->dtype, 0, 0), *step = build_number(b, t->dtype, 0, 1);
	Value *zeros = build_full(b, type_tensor(c, t->dtype, 2, t->dims + 1, 0), 0);
	Value *size = build_size(b, zeros, 1);
	Value *end = build1(b, OP_PD_CAST, size, "dtype", attr_dtype(c, t->dtype), NULL);
	Value *scalar =
		end ? build1(b, OP_PD_SQUEEZE, end, "axis", attr_ints(c, 1, axes), NULL) : NULL;
	Value *const bounds[] = {start, scalar, step};
	Value *beams = scalar ? build(b, OP_PD_ARANGE, 3, bounds, NULL) : NULL;
	return beams ? build2(b, OP_PD_ADD, zeros, beams, NULL) : NULL;
}

bool gather_tree_translate(OpJob *j)
{
	const char *i = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "Ids"), 0);
	const char *p = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "Parents"), 0);
	const char *out = slot_var(slot_find(j->desc->n_outputs, j->desc->outputs, "Out"), 0);
	if (!i || !p || !out)
		return job_fail(j, "needs variables in Ids, Parents and Out");
	Context *c = j->t->c;
	Value *ids = read_var(j, "Ids", i), *parents = ids ? read_var(j, "Parents", p) : NULL;
	if (!parents)
		return false;
	if (!type_is_tensor(ids->type) || ids->type->rank != 3 || !dtype_is_int(ids->type->dtype) ||
	    !type_is_tensor(parents->type) || parents->type->rank != 3)
		return job_fail(j, "Ids and Parents must be integers of three axes");
	Value *count = build_size(&j->b, ids, 0), *beams = last_beams(&j->b, parents->type);
	if (!count || !beams)
		return false;
	CountedLoop l;
	if (!count_begin(&l, j, count, true, 2, (Value *const[]){beams, ids}))
		return false;
	Builder b = builder_at_end(c, l.body, j->b.loc);
	const Attr *axis = attr_int(c, 1);
	Value *id = build_step(&b, ids, l.at), *parent = build_step(&b, parents, l.at);
	Value *picked = build2(&b, OP_PD_TAKE_ALONG_AXIS, id, l.args[0], "axis", axis, NULL);
	Value *above = build2(&b, OP_PD_TAKE_ALONG_AXIS, parent, l.args[0], "axis", axis, NULL);
	Value *path = picked ? build_set_step(&b, l.args[1], l.at, picked) : NULL;
	if (!above || !path || !count_end(&l, j, (Value *const[]){above, path}))
		return false;
	write_var(j, out, count_result(&l, 1));
	return true;
}
