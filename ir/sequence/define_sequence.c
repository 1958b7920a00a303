// What the operators on sequences mean, as loop nests (ir/ops/sequence.yaml).
#include "ir/build/build.h"
#include "ir/sequence/sequence.h"

#include <string.h>

// ---- offsets ------------------------------------------------------------------------------------

Value *sequence_start(Builder *b, Value *lod, Value *i, const Dim *rows)
{
	return index_from_data(b, load(b, lod, &i), dim_add(b->ctx, rows, dim_const(b->ctx, 1)), false);
}

Value *sequence_length(Builder *b, Value *lod, Value *i, const Dim *rows)
{
	Value *start = sequence_start(b, lod, i, rows),
		  *end = sequence_start(b, lod, index_plus(b, i, 1), rows);
	return index_max(b, index_sub(b, end, start), index_const(b, 0));
}

Value *sequence_length_or(Builder *b, Value *lengths, Value *lod, Value *i, const Dim *rows)
{
	if (!lengths)
		return sequence_length(b, lod, i, rows);
	const Dim *end = dim_add(b->ctx, rows, dim_const(b->ctx, 1));
	return index_from_data(b, load(b, lengths, &i), end, false);
}

Value *longest_of_lengths(Builder *b, Value *lengths)
{
	const Dim *one = dim_const(b->ctx, 1);
	Value *most = build1(b, OP_PD_MAX, lengths, "reduce_all", attr_bool(b->ctx, true), NULL);
	return tensor_cast(b, tensor_reshape(b, most, 1, &one), DT_I64);
}

Value *sequence_of_row(Builder *b, Value *lod, Value *row)
{
	const Dim *count = sequence_count(b->ctx, lod);
	Nest r = reduce_open(b, "sum", DT_I64, 1, &count);
	Value *next = index_plus(&r.b, r.at[0], 1), *end = load(&r.b, lod, &next);
	Value *before = apply2(&r.b, OP_PD_LESS_EQUAL, end,
	                       scalar_from_index(&r.b, row, lod->type->dtype));
	return index_from_data(b, reduce_close(&r, before), count, false);
}

Value *offsets_of_lengths(Builder *b, const Dim *count, SequenceLength *length, void *arg)
{
	Context *c = b->ctx;
	const Dim *size = dim_add(c, count, dim_const(c, 1));
	Nest n = nest_open(b, type_tensor(c, DT_I64, 1, &size, 0));
	Nest r = reduce_open_counted(&n.b, "sum", DT_I64, count, n.at[0]);
	return nest_close(
		&n, reduce_close(&r, scalar_from_index(&r.b, length(&r.b, r.at[0], arg), DT_I64)));
}

static Value *length_of(Builder *b, Value *i, void *counts)
{
	Value *v = counts;
	return index_from_data(b, load(b, v, &i), dim_const(b->ctx, INT32_MAX), false);
}

Value *offsets_of_counts(Builder *b, Value *counts)
{
	return counts ? offsets_of_lengths(b, counts->type->dims[0], length_of, counts) : NULL;
}

bool bind_rows(Builder *b, Value *lod, const Dim *rows)
{
	Context *c = b->ctx;
	const Dim *last = sequence_count(c, lod);
	Nest n = nest_open(b, type_tensor(c, DT_I64, 0, NULL, 0));
	Value *at = index_dim(&n.b, last), *total = nest_close(&n, load(&n.b, lod, &at));
	return bind_size(b, total, rows);
}

// ---- pooling ------------------------------------------------------------------------------------

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
	Nest r = reduce_open_counted(&n->b, kind, arg ? DT_I64 : x->type->dtype, x->type->dims[0],
	                             length);
	return reduce_close(&r, load_row(&r.b, n, x, index_add(&r.b, start, r.at[0])));
}

// The pooled element where the sequence is not empty.
static Value *pool_element(Nest *n, Value *x, SequencePoolKind kind, Value *start, Value *length)
{
	DType t = x->type->dtype;
	if (kind == SEQUENCE_POOL_MAX)
		return pool_reduced(n, x, "max", start, length);
	Value *sum = pool_reduced(n, x, "sum", start, length);
	if (kind == SEQUENCE_POOL_SUM)
		return sum;
	Value *count = scalar_from_index(&n->b, index_max(&n->b, length, index_const(&n->b, 1)), t);
	return tensor_div(&n->b, sum,
	                  kind == SEQUENCE_POOL_SQRT ? apply1(&n->b, OP_PD_SQRT, count) : count);
}

// The first or last row where the sequence is not empty, else `other`.
static Value *pool_end(Nest *n, Value *x, bool last, Value *start, Value *length, Value *some,
                       Value *other)
{
	Value *at[MAX_RANK];
	memcpy(at, n->at, sizeof at);
	at[0] = last ? index_plus(&n->b, index_add(&n->b, start, length), -1) : start;
	return load_or(&n->b, some, other, x, at);
}

bool define_hook_sequence_pool(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 1);
	const SequencePoolKind kind = (SequencePoolKind)op_enum(op, "pooltype");
	const Dim *rows = x->type->dims[0];
	Nest n = nest_open(b, op->results[0].type);
	Value *pad = build_scalar_f(&n.b, x->type->dtype, op_number(op, "pad_value"));
	Value *start = sequence_start(&n.b, lod, n.at[0], rows),
		  *length = sequence_length(&n.b, lod, n.at[0], rows);
	Value *some = index_less(&n.b, index_const(&n.b, 0), length), *element;
	const bool last = kind == SEQUENCE_POOL_LAST;
	if (last || kind == SEQUENCE_POOL_FIRST)
		element = pool_end(&n, x, last, start, length, some, pad);
	else
		element = index_where(&n.b, some, pool_element(&n, x, kind, start, length), pad);
	results[0] = nest_close(&n, element);
	if (kind != SEQUENCE_POOL_MAX) {
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

// ---- the same rows ------------------------------------------------------------------------------

// A row of a nest in its sequence.
typedef struct RowPlace {
	Value *sequence, *start, *length, *end; // end: start + length
} RowPlace;

static RowPlace row_place(Builder *b, Value *lod, Value *row, const Dim *rows)
{
	RowPlace p = {.sequence = sequence_of_row(b, lod, row)};
	p.start = p.sequence ? sequence_start(b, lod, p.sequence, rows) : NULL;
	p.length = p.start ? sequence_length(b, lod, p.sequence, rows) : NULL;
	p.end = p.length ? index_add(b, p.start, p.length) : NULL;
	return p;
}

// For each sequence and column the reduction of x, or of e^(x - most).
static Value *columns_reduced(Builder *b, Value *x, Value *lod, Value *most)
{
	const Dim *shape[MAX_RANK], *rows = x->type->dims[0];
	memcpy(shape, x->type->dims, sizeof shape[0] * (size_t)x->type->rank);
	shape[0] = sequence_count(b->ctx, lod);
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, x->type->rank, shape, 0));
	Value *start = sequence_start(&n.b, lod, n.at[0], rows),
		  *length = sequence_length(&n.b, lod, n.at[0], rows);
	Nest r = reduce_open_counted(&n.b, most ? "sum" : "max", x->type->dtype, rows, length);
	Value *element = load_row(&r.b, &n, x, index_add(&r.b, start, r.at[0]));
	if (most)
		element = apply1(&r.b, OP_PD_EXP, tensor_sub(&r.b, element, load(&r.b, most, n.at)));
	return nest_close(&n, reduce_close(&r, element));
}

bool define_hook_sequence_softmax(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 1);
	Value *most = columns_reduced(b, x, lod, NULL),
		  *sum = most ? columns_reduced(b, x, lod, most) : NULL;
	if (!sum)
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *at = sequence_of_row(&n.b, lod, n.at[0]);
	Value *small = tensor_sub(&n.b, load(&n.b, x, n.at), load_row(&n.b, &n, most, at));
	results[0] = nest_close(
		&n, tensor_div(&n.b, apply1(&n.b, OP_PD_EXP, small), load_row(&n.b, &n, sum, at)));
	return results[0] != NULL;
}

bool define_hook_sequence_reverse(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 1);
	const Dim *rows = x->type->dims[0];
	Nest n = nest_open(b, op->results[0].type);
	RowPlace p = row_place(&n.b, lod, n.at[0], rows);
	Value *from = index_sub(&n.b, index_plus(&n.b, index_add(&n.b, p.start, p.end), -1), n.at[0]);
	from = index_from_data(&n.b, scalar_from_index(&n.b, from, DT_I64), rows, false);
	results[0] = nest_close(&n, load_row(&n.b, &n, x, from));
	return results[0] != NULL;
}

bool define_hook_sequence_enumerate(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 1);
	Nest n = nest_open(b, op->results[0].type);
	RowPlace p = row_place(&n.b, lod, n.at[0], x->type->dims[0]);
	Value *row = index_add(&n.b, n.at[0], n.at[1]), *at[] = {row, index_const(&n.b, 0)};
	Value *pad = build_scalar_f(&n.b, x->type->dtype, (double)op_int(op, "pad_value", 0));
	results[0] = nest_close(&n,
	                        p.end ? load_or(&n.b, index_less(&n.b, row, p.end), pad, x, at) : NULL);
	return results[0] != NULL;
}

// The row that a context reaches with `step` (from its start on) is in front of or behind the
// sequence: one of padding data, or zeros without.
static Value *context_padding(Nest *n, Value *padding, int64_t up, Value *row, const RowPlace *p,
                              Value *column)
{
	if (!padding)
		return build_scalar_f(&n->b, n->op->results[0].type->dtype, 0);
	Value *front = index_less(&n->b, row, p->start);
	Value *at = index_where(&n->b, front, index_sub(&n->b, row, p->start),
	                        index_sub(&n->b, row, p->end));
	at = scalar_from_index(&n->b, index_plus(&n->b, at, up), DT_I64);
	Value *place[] = {index_from_data(&n->b, at, padding->type->dims[0], false), column};
	return load(&n->b, padding, place);
}

bool define_hook_sequence_conv(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *filter = op_operand(op, 1), *lod = op_operand(op, 3), *split[2];
	int64_t first = op_int(op, "context_start", 0), length = op_int(op, "context_length", 1);
	bool trainable = op_bool(op, "padding_trainable", false);
	const Dim *shape[] = {x->type->dims[0], filter->type->dims[0]},
			  *parts[] = {dim_const(c, length), x->type->dims[1]};
	Nest n = nest_open(b, type_tensor(c, x->type->dtype, 2, shape, 0));
	RowPlace p = row_place(&n.b, lod, n.at[0], x->type->dims[0]);
	if (!p.end)
		return false;
	index_split(&n.b, n.at[1], 2, parts, split);
	Value *row = index_plus(&n.b, index_add(&n.b, n.at[0], split[0]), first),
		  *at[] = {row, split[1]};
	Value *early = apply2(&n.b, OP_PD_GREATER_EQUAL, row, p.start);
	Value *inside = pred_and(&n.b, early, index_less(&n.b, row, p.end));
	// What stands for a row inside is not looked at: any row that has padding will do.
	Value *padding = trainable ? op_operand(op, 2) : NULL,
		  *some = first < 0 ? index_plus(&n.b, p.start, -1) : p.end;
	Value *away = padding ? index_where(&n.b, inside, some, row) : row;
	Value *other = context_padding(&n, padding, first < 0 ? -first : 0, away, &p, split[1]);
	Value *context = nest_close(&n, load_or(&n.b, inside, other, x, at));
	results[0] = apply2(b, OP_PD_MATMUL, context, filter);
	return results[0] != NULL;
}

bool define_hook_row_conv(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *filter = op_operand(op, 1), *lod = op_operand(op, 2), *from[3];
	int rank = x->type->rank, time = rank - 2;
	Nest n = nest_open(b, op->results[0].type);
	Value *end = index_dim(&n.b, x->type->dims[time]);
	if (lod)
		end = row_place(&n.b, lod, n.at[0], x->type->dims[0]).end;
	const Dim *extent = filter->type->dims[0];
	Nest r = reduce_open(&n.b, "sum", x->type->dtype, 1, &extent);
	memcpy(from, n.at, sizeof *from * (size_t)rank);
	from[time] = index_add(&r.b, n.at[time], r.at[0]);
	Value *at[] = {r.at[0], n.at[rank - 1]}, *zero = build_scalar_f(&r.b, x->type->dtype, 0);
	Value *near = end ? load_or(&r.b, index_less(&r.b, from[time], end), zero, x, from) : NULL;
	results[0] = nest_close(&n, reduce_close(&r, tensor_mul(&r.b, near, load(&r.b, filter, at))));
	return results[0] != NULL;
}

bool define_hook_sequence_scatter(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *ids = op_operand(op, 1), *updates = op_operand(op, 2),
		  *lod = op_operand(op, 3);
	const Dim *rows = ids->type->dims[0], *numel = type_numel(b->ctx, updates->type),
			  *many = type_numel(b->ctx, ids->type), *same;
	updates = tensor_reshape(b, updates, 1, &numel);
	ids = tensor_reshape(b, ids, 1, &many);
	if (!updates || !ids || x->type->rank != 2)
		return op_error(op, "x of rank %d", x->type->rank);
	if (!infer_same_dim(op, numel, many, "numbers of updates and of ids", &same))
		return false;
	Nest n = nest_open(b, x->type);
	Value *start = sequence_start(&n.b, lod, n.at[0], rows),
		  *length = sequence_length(&n.b, lod, n.at[0], rows);
	Nest r = reduce_open_counted(&n.b, "sum", x->type->dtype, rows, length);
	Value *at = index_add(&r.b, start, r.at[0]);
	Value *hit = index_equal(
		&r.b, index_from_data(&r.b, load(&r.b, ids, &at), x->type->dims[1], false), n.at[1]);
	Value *sum = reduce_close(
		&r, load_or(&r.b, hit, build_scalar_f(&r.b, x->type->dtype, 0), updates, &at));
	results[0] = nest_close(&n, tensor_add(&n.b, load(&n.b, x, n.at), sum));
	return results[0] != NULL;
}

Value *log_sum_exp(Builder *b, Value *const *x, int n)
{
	Value *most = x[0], *sum = NULL;
	for (int i = 1; i < n; i++)
		most = apply2(b, OP_PD_MAXIMUM, most, x[i]);
	for (int i = 0; i < n; i++) {
		Value *e = apply1(b, OP_PD_EXP, tensor_sub(b, x[i], most));
		sum = i ? tensor_add(b, sum, e) : e;
	}
	return tensor_add(b, most, apply1(b, OP_PD_LOG, sum));
}

// ---- sines of positions -------------------------------------------------------------------------

// How many rows come before this one in its sequence.
static Value *place_in_sequence(Builder *b, Value *lod, Value *row, const Dim *rows)
{
	Value *start = sequence_start(b, lod, sequence_of_row(b, lod, row), rows);
	return index_sub(b, row, start);
}

// What a position counts by in pair k of `half` of them: from 1 to 10000; a single one has 10000.
static Value *step_of_sines(Builder *b, const Dim *half, Value *k)
{
	Value *step = build_scalar_f(b, DT_F64, 10000), *one = index_const(b, 1);
	if (dim_is(half, 1))
		return step;
	Value *size = index_dim(b, half), *gaps = index_max(b, index_plus(b, size, -1), one);
	Value *part = tensor_div(b, k, scalar_from_index(b, gaps, DT_F64));
	if (!dim_is_const(half))
		part = index_where(b, index_less(b, one, size), part, build_scalar_f(b, DT_F64, 1));
	return apply2(b, OP_PD_ELEMENTWISE_POW, step, part);
}

// x [n x positions x size], or rows of sequences: the first half of a position gets sines, the
// second cosines.
bool define_hook_position_encoding(Builder *b, Op *op, Value **results)
{
	Value *lod = op_operand_named(op, "x_lod");
	const Type *t = infer_rank(op, 0, lod ? 2 : 3);
	if (!t)
		return false;
	const int last = t->rank - 1;
	const Dim *two = dim_const(b->ctx, 2), *half = dim_div(b->ctx, t->dims[last], two);
	const Dim *even = dim_mul(b->ctx, half, two);
	if (dim_is_const(t->dims[last]) ? t->dims[last]->value % 2
	                                : !check_sizes(b, 1, &t->dims[last], &even, false,
	                                               "positions to encode have an odd size"))
		return op_error(op, "the last axis must have an even size");
	Nest n = nest_open(b, t);
	Value *size = index_dim(&n.b, half), *first = index_less(&n.b, n.at[last], size);
	Value *k = scalar_from_index(&n.b, index_mod(&n.b, n.at[last], size), DT_F64);
	Value *place = scalar_from_index(
		&n.b, lod ? place_in_sequence(&n.b, lod, n.at[0], t->dims[0]) : n.at[1], DT_F64);
	Value *step = step_of_sines(&n.b, half, k);
	Value *angle = scalar_cast(&n.b, tensor_div(&n.b, place, step), t->dtype);
	Value *wave = index_where(&n.b, first, apply1(&n.b, OP_PD_SIN, angle),
	                          apply1(&n.b, OP_PD_COS, angle));
	Value *own = tensor_mul(&n.b, load(&n.b, op_operand(op, 0), n.at),
	                        build_scalar_f(&n.b, t->dtype, op_number(op, "alpha")));
	wave = tensor_mul(&n.b, wave, build_scalar_f(&n.b, t->dtype, op_number(op, "beta")));
	results[0] = nest_close(&n, tensor_add(&n.b, own, wave));
	return results[0] != NULL;
}
