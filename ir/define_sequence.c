// What the operators on sequences mean, as loop nests (ir/ops/sequence.yaml).
#include "sequence.h"

#include <string.h>

// ---- offsets --------------------------------------------------------------------------------------------

Value *sequence_start(Builder *b, Value *lod, Value *i, const Dim *rows)
{
	return index_from_data(b, load(b, lod, &i), dim_add(b->ctx, rows, dim_const(b->ctx, 1)), false);
}

Value *sequence_length(Builder *b, Value *lod, Value *i, const Dim *rows)
{
	Value *start = sequence_start(b, lod, i, rows), *end = sequence_start(b, lod, index_plus(b, i, 1), rows);
	return index_max(b, index_sub(b, end, start), index_const(b, 0));
}

Value *sequence_of_row(Builder *b, Value *lod, Value *row)
{
	const Dim *count = sequence_count(b->ctx, lod);
	Nest r = reduce_open(b, "sum", DT_I64, 1, &count);
	Value *next = index_plus(&r.b, r.at[0], 1), *end = load(&r.b, lod, &next);
	Value *before = apply2(&r.b, OP_PD_LESS_EQUAL, end, scalar_from_index(&r.b, row, lod->type->dtype));
	return index_from_data(b, reduce_close(&r, before), count, false);
}

Value *offsets_of_lengths(Builder *b, const Dim *count, SequenceLength *length, void *arg)
{
	Context *c = b->ctx;
	const Dim *size = dim_add(c, count, dim_const(c, 1));
	Nest n = nest_open(b, type_tensor(c, DT_I64, 1, &size, 0));
	Nest r = reduce_open_counted(&n.b, "sum", DT_I64, count, n.at[0]);
	return nest_close(&n, reduce_close(&r, scalar_from_index(&r.b, length(&r.b, r.at[0], arg), DT_I64)));
}

bool bind_rows(Builder *b, Value *lod, const Dim *rows)
{
	Context *c = b->ctx;
	const Dim *last = sequence_count(c, lod);
	Nest n = nest_open(b, type_tensor(c, DT_I64, 0, NULL, 0));
	Value *at = index_dim(&n.b, last), *total = nest_close(&n, load(&n.b, lod, &at));
	const NamedAttr bind = {"dims", attr_dims(c, 1, &rows)};
	return total && build_op(b, OP_LOOP_BIND, 1, &total, 1, &bind);
}

// ---- pooling --------------------------------------------------------------------------------------------

// The place of a row of x, the other positions as in the nest.
static Value *load_row(Builder *b, const Nest *n, Value *x, Value *row)
{
	Value *at[MAX_RANK];
	memcpy(at, n->at, sizeof at);
	at[0] = row;
	return load(b, x, at);
}

static Value *pool_reduced(Nest *n, Value *x, const char *kind, Value *start, Value *length)
{
	bool arg = !strcmp(kind, "argmax");
	Nest r = reduce_open_counted(&n->b, kind, arg ? DT_I64 : x->type->dtype, x->type->dims[0], length);
	return reduce_close(&r, load_row(&r.b, n, x, index_add(&r.b, start, r.at[0])));
}

// The pooled element where the sequence is not empty.
static Value *pool_element(Nest *n, Value *x, const char *kind, Value *start, Value *length)
{
	DType t = x->type->dtype;
	if (!strcmp(kind, "MAX"))
		return pool_reduced(n, x, "max", start, length);
	Value *sum = pool_reduced(n, x, "sum", start, length);
	if (!strcmp(kind, "SUM"))
		return sum;
	Value *count = scalar_from_index(&n->b, index_max(&n->b, length, index_const(&n->b, 1)), t);
	return tensor_div(&n->b, sum, !strcmp(kind, "SQRT") ? apply1(&n->b, OP_PD_SQRT, count) : count);
}

// The first or last row where the sequence is not empty, else `other`.
static Value *pool_end(Nest *n, Value *x, bool last, Value *start, Value *length, Value *some, Value *other)
{
	Value *at[MAX_RANK];
	memcpy(at, n->at, sizeof at);
	at[0] = last ? index_plus(&n->b, index_add(&n->b, start, length), -1) : start;
	return load_or(&n->b, some, other, x, at);
}

bool define_hook_sequence_pool(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 1);
	const char *kind = op_str(op, "pooltype", "AVERAGE");
	const Dim *rows = x->type->dims[0];
	Nest n = nest_open(b, op->results[0].type);
	Value *pad = build_scalar_f(&n.b, x->type->dtype, op_number(op, "pad_value"));
	Value *start = sequence_start(&n.b, lod, n.at[0], rows), *length = sequence_length(&n.b, lod, n.at[0], rows);
	Value *some = index_less(&n.b, index_const(&n.b, 0), length), *element;
	bool last = !strcmp(kind, "LAST");
	if (last || !strcmp(kind, "FIRST"))
		element = pool_end(&n, x, last, start, length, some, pad);
	else
		element = index_where(&n.b, some, pool_element(&n, x, kind, start, length), pad);
	results[0] = nest_close(&n, element);
	if (strcmp(kind, "MAX")) {
		results[1] = build_full(b, op->results[1].type, -1);
		return results[0] && results[1];
	}
	n = nest_open(b, op->results[1].type);
	start = sequence_start(&n.b, lod, n.at[0], rows);
	length = sequence_length(&n.b, lod, n.at[0], rows);
	some = index_less(&n.b, index_const(&n.b, 0), length);
	Value *row = pool_reduced(&n, x, "argmax", start, length);
	row = apply2(&n.b, OP_PD_ADD, row, scalar_from_index(&n.b, start, DT_I64));
	results[1] = nest_close(&n, index_where(&n.b, some, row, build_scalar_f(&n.b, DT_I64, -1)));
	return results[0] && results[1];
}
