// Sequences by length, as the dynamic recurrent networks of Fluid take them apart, and rows by a
// mask: types and meaning (ir/ops/sequence.yaml). A rank table has a row (number, length) for each
// sequence, the longest first.
#include "ir/build/build.h"
#include "ir/sequence/sequence.h"

#include <string.h>

enum { NUMBER, LENGTH };

static bool check_table(const Op *op, int i)
{
	const Type *t = infer_rank(op, i, 2);
	return t && (dim_is(t->dims[1], 2) ||
	             op_error(op, "operand '%s' is no rank table", op->info->operands[i].name));
}

static const Dim *plus_one(Context *c, const Dim *d)
{
	return dim_add(c, d, dim_const(c, 1));
}

// Like t with another number of rows.
static bool result_of_rows(Op *op, int result, const Type *t, const Dim *rows)
{
	const Dim *shape[MAX_RANK];
	if (!t->rank)
		return op_error(op, "a tensor without rows");
	memcpy(shape, t->dims, sizeof *shape * (size_t)t->rank);
	shape[0] = rows;
	return infer_result_shape(op, result, t->dtype, t->rank, shape);
}

// The number or length in row `i` of a table, as a position up to `limit`.
static Value *table_at(Builder *b, Value *table, Value *i, int column, const Dim *limit)
{
	Value *at[] = {i, index_const(b, column)};
	return index_from_data(b, load(b, table, at), limit, false);
}

static Value *load_row(Builder *b, const Nest *n, Value *x, Value *row)
{
	Value *at[MAX_RANK];
	memcpy(at, n->at, sizeof at);
	at[0] = row;
	return load(b, x, at);
}

// ---- the table ----------------------------------------------------------------------------------

bool infer_hook_lod_rank_table(Op *op)
{
	if (!infer_tensor(op, 0) || !infer_rank(op, 1, 1))
		return false;
	const Dim *shape[] = {sequence_count(op->ctx, op_operand(op, 1)), dim_const(op->ctx, 2)};
	return infer_result_shape(op, 0, DT_I64, 2, shape);
}

// For each sequence how many come before it: longer ones, and those before it that are as long.
static Value *places_by_length(Builder *b, Value *lod, const Dim *rows)
{
	const Dim *count = sequence_count(b->ctx, lod);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &count, 0));
	Value *mine = sequence_length(&n.b, lod, n.at[0], rows);
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &count);
	Value *its = sequence_length(&r.b, lod, r.at[0], rows);
	Value *tie = pred_and(&r.b, index_equal(&r.b, its, mine), index_less(&r.b, r.at[0], n.at[0]));
	return nest_close(
		&n, reduce_close(&r, apply2(&r.b, OP_PD_LOGICAL_OR, index_less(&r.b, mine, its), tie)));
}

bool define_hook_lod_rank_table(Builder *b, Op *op, Value **results)
{
	Value *lod = op_operand(op, 1);
	const Dim *rows = op_operand(op, 0)->type->dims[0], *count = sequence_count(b->ctx, lod);
	Value *places = places_by_length(b, lod, rows);
	if (!places)
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *wanted = scalar_from_index(&n.b, n.at[0], DT_I64);
	Nest r = reduce_open(&n.b, "argmax", DT_I64, 1, &count);
	Value *found = apply2(&r.b, OP_PD_EQUAL, load(&r.b, places, r.at), wanted);
	Value *number = reduce_close(&r, scalar_cast(&r.b, found, DT_I32));
	Value *i = index_from_data(&n.b, number, count, false);
	Value *length = i ? scalar_from_index(&n.b, sequence_length(&n.b, lod, i, rows), DT_I64) : NULL;
	results[0] = nest_close(
		&n,
		index_where(&n.b, index_equal(&n.b, n.at[1], index_const(&n.b, NUMBER)), number, length));
	return results[0] != NULL;
}

bool infer_hook_max_sequence_len(Op *op)
{
	const Dim *one = dim_const(op->ctx, 1);
	return check_table(op, 0) && infer_result_shape(op, 0, DT_I64, 1, &one);
}

bool define_hook_max_sequence_len(Builder *b, Op *op, Value **results)
{
	Nest n = nest_open(b, op->results[0].type);
	Value *at[] = {index_const(&n.b, 0), index_const(&n.b, LENGTH)};
	results[0] = nest_close(&n, load(&n.b, op_operand(op, 0), at));
	return results[0] != NULL;
}

// ---- steps --------------------------------------------------------------------------------------

// How many sequences are longer than the step that `i` holds: a tensor of one i64, which gives
// `size` its value.
static bool bind_running(Builder *b, Value *table, Value *i, const Dim *size)
{
	const Dim *count = table->type->dims[0];
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0));
	Value *step = scalar_cast(&n.b, load_scalar(&n.b, i), DT_I64);
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &count);
	Value *at[] = {r.at[0], index_const(&r.b, LENGTH)};
	Value *longer = apply2(&r.b, OP_PD_GREATER_THAN,
	                       scalar_cast(&r.b, load(&r.b, table, at), DT_I64), step);
	return bind_size(b, nest_close(&n, reduce_close(&r, longer)), size);
}

bool infer_hook_lod_step(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x || !check_table(op, 1) || !infer_tensor(op, 2) || !infer_rank(op, 3, 1))
		return false;
	return result_of_rows(op, 0, x, infer_found_size(op, op_operand(op, 1)->type->dims[0]));
}

bool define_hook_lod_step(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *table = op_operand(op, 1), *i = op_operand(op, 2),
		  *lod = op_operand(op, 3);
	const Type *out = op->results[0].type;
	const Dim *rows = x->type->dims[0];
	if (!bind_running(b, table, i, out->dims[0]))
		return false;
	Nest n = nest_open(b, out);
	Value *step = index_from_data(&n.b, load_scalar(&n.b, i), plus_one(b->ctx, rows), false);
	Value *place = index_from_data(&n.b, scalar_from_index(&n.b, n.at[0], DT_I64),
	                               table->type->dims[0], false);
	Value *number = place ? table_at(&n.b, table, place, NUMBER, sequence_count(b->ctx, lod))
	                      : NULL;
	if (!number)
		return false;
	Value *row = index_add(&n.b, sequence_start(&n.b, lod, number, rows), step);
	row = index_from_data(&n.b, scalar_from_index(&n.b, row, DT_I64), rows, false);
	results[0] = nest_close(&n, load_row(&n.b, &n, x, row));
	return results[0] != NULL;
}

bool infer_hook_lod_unstep(Op *op)
{
	const Type *x = infer_tensor(op, 0), *like = infer_tensor(op, 2);
	if (!x || !like || !check_table(op, 1) || !infer_rank(op, 3, 1))
		return false;
	return like->rank ? result_of_rows(op, 0, x, like->dims[0])
	                  : op_error(op, "'like' has no rows");
}

// Row t of sequence s stands behind the rows of all steps before t, and those of longer sequences
// in its own.
bool define_hook_lod_unstep(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 3);
	const Dim *rows = op_operand(op, 2)->type->dims[0], *count = sequence_count(b->ctx, lod);
	Value *places = places_by_length(b, lod, rows);
	if (!places)
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *i = sequence_of_row(&n.b, lod, n.at[0]);
	Value *step = i ? index_sub(&n.b, n.at[0], sequence_start(&n.b, lod, i, rows)) : NULL;
	if (!step)
		return false;
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &count);
	Value *before = index_min(&r.b, sequence_length(&r.b, lod, r.at[0], rows), step);
	Value *sum = reduce_close(&r, scalar_from_index(&r.b, before, DT_I64));
	Value *row = apply2(&n.b, OP_PD_ADD, sum, load(&n.b, places, &i));
	results[0] = nest_close(
		&n, load_row(&n.b, &n, x, index_from_data(&n.b, row, x->type->dims[0], false)));
	return results[0] != NULL;
}

bool infer_hook_shrink_rnn_memory(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x || !check_table(op, 1) || !infer_tensor(op, 2))
		return false;
	return result_of_rows(op, 0, x, infer_found_size(op, op_operand(op, 1)->type->dims[0]));
}

bool define_hook_shrink_rnn_memory(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	const Type *out = op->results[0].type;
	if (!bind_running(b, op_operand(op, 1), op_operand(op, 2), out->dims[0]))
		return false;
	Nest n = nest_open(b, out);
	Value *row = index_from_data(&n.b, scalar_from_index(&n.b, n.at[0], DT_I64), x->type->dims[0],
	                             false);
	results[0] = nest_close(&n, load_row(&n.b, &n, x, row));
	return results[0] != NULL;
}

// ---- reordering ---------------------------------------------------------------------------------

bool infer_hook_reorder_by_rank(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	Value *lod = op_operand(op, 2);
	if (!x || !check_table(op, 1) || (lod && !infer_rank(op, 2, 1)))
		return false;
	const Dim *count = op_operand(op, 1)->type->dims[0], *offsets = plus_one(op->ctx, count), *same;
	if (lod &&
	    !infer_same_dim(op, sequence_count(op->ctx, lod), count, "numbers of sequences", &same))
		return false;
	return result_of_rows(op, 0, x, lod ? x->dims[0] : count) &&
	       infer_result_shape(op, 1, DT_I64, 1, &offsets);
}

typedef struct Reorder {
	Value *table, *lod;
	const Dim *rows;
} Reorder;

static Value *reordered_length(Builder *b, Value *i, void *arg)
{
	const Reorder *r = arg;
	Value *from = table_at(b, r->table, i, NUMBER, sequence_count(b->ctx, r->lod));
	return from ? sequence_length(b, r->lod, from, r->rows) : NULL;
}

bool define_hook_reorder_by_rank(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *row;
	Reorder r = {op_operand(op, 1), op_operand(op, 2), x->type->dims[0]};
	results[1] = r.lod ? offsets_of_lengths(b, r.table->type->dims[0], reordered_length, &r)
	                   : build_full(b, op->results[1].type, 0); // nobody asks
	Nest n = nest_open(b, op->results[0].type);
	if (r.lod && results[1]) {
		Value *i = sequence_of_row(&n.b, results[1], n.at[0]);
		Value *from = i ? table_at(&n.b, r.table, i, NUMBER, sequence_count(b->ctx, r.lod)) : NULL;
		if (!from)
			return false;
		Value *behind = index_sub(&n.b, n.at[0], sequence_start(&n.b, results[1], i, r.rows));
		row = index_add(&n.b, sequence_start(&n.b, r.lod, from, r.rows), behind);
		row = index_from_data(&n.b, scalar_from_index(&n.b, row, DT_I64), r.rows, false);
	} else {
		row = table_at(&n.b, r.table, n.at[0], NUMBER, r.rows);
	}
	results[0] = nest_close(&n, row ? load_row(&n.b, &n, x, row) : NULL);
	return results[0] && results[1];
}

// ---- rows by a mask -----------------------------------------------------------------------------

// A size of the rows that the mask keeps or leaves, at most those of x.
static const Dim *rows_found(const Op *op, const Dim *rows, const char *which)
{
	const Dim *size = infer_found(op, "n_", which, -1);
	dim_set_bound(op->ctx, size, rows);
	return size;
}

bool infer_hook_split_rows(Op *op)
{
	const Type *x = infer_tensor(op, 0), *mask = infer_tensor(op, 1);
	const Dim *same;
	if (!x || !mask || !x->rank)
		return x && mask ? op_error(op, "a tensor without rows") : false;
	return infer_same_dim(op, x->dims[0], type_numel(op->ctx, mask),
	                      "numbers of rows and of the mask", &same) &&
	       result_of_rows(op, 0, x, rows_found(op, x->dims[0], "true")) &&
	       result_of_rows(op, 1, x, rows_found(op, x->dims[0], "false"));
}

static Value *rows_where(Builder *b, Value *x, Value *mask, const Type *out)
{
	Chosen kept = select_true(b, mask);
	if (!kept.at || !bind_size(b, kept.count, out->dims[0]))
		return NULL;
	Nest n = nest_open(b, out);
	Value *at = index_from_data(&n.b, scalar_from_index(&n.b, n.at[0], DT_I64), x->type->dims[0],
	                            false);
	Value *row = at ? index_from_data(&n.b, load(&n.b, kept.at, &at), x->type->dims[0], false)
	                : NULL;
	return nest_close(&n, row ? load_row(&n.b, &n, x, row) : NULL);
}

bool define_hook_split_rows(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0),
		  *mask = tensor_reshape(b, op_operand(op, 1), 1, &x->type->dims[0]);
	Value *others = apply1(b, OP_PD_LOGICAL_NOT, mask);
	results[0] = mask ? rows_where(b, x, mask, op->results[0].type) : NULL;
	results[1] = others ? rows_where(b, x, others, op->results[1].type) : NULL;
	return results[0] && results[1];
}

bool infer_hook_merge_rows(Op *op)
{
	const Type *mask = infer_tensor(op, 1), *yes = infer_tensor(op, 2), *no = infer_tensor(op, 3);
	if (!mask || !yes || !no)
		return false;
	if (yes->rank != no->rank || yes->dtype != no->dtype)
		return op_error(op, "rows of different kinds");
	return infer_same_dims(op, 1, yes, no, "sizes of rows") &&
	       result_of_rows(op, 0, yes, type_numel(op->ctx, mask));
}

bool define_hook_merge_rows(Builder *b, Op *op, Value **results)
{
	Value *from[] = {op_operand(op, 2), op_operand(op, 3)}, *row[2], *at[2][MAX_RANK];
	const Type *out = op->results[0].type;
	Value *mask = tensor_reshape(b, op_operand(op, 1), 1, &out->dims[0]);
	if (!mask)
		return false;
	Nest n = nest_open(b, out);
	Nest r = reduce_open_counted(&n.b, "sum", DT_I64, out->dims[0], n.at[0]);
	Value *before = reduce_close(&r, load(&r.b, mask, r.at));
	before = index_from_data(&n.b, before, plus_one(b->ctx, out->dims[0]), false);
	row[0] = before;
	row[1] = before ? index_sub(&n.b, n.at[0], before) : NULL;
	Value *yes = load(&n.b, mask, n.at), *element = build_scalar_f(&n.b, out->dtype, 0);
	Value *no = apply1(&n.b, OP_PD_LOGICAL_NOT, yes);
	for (int k = 0; k < 2 && row[k]; k++) {
		const Dim *rows = from[k]->type->dims[0];
		Value *pred = k ? no : yes, *any = index_where(&n.b, pred, row[k], index_const(&n.b, 0));
		memcpy(at[k], n.at, sizeof at[k]);
		at[k][0] = index_from_data(&n.b, scalar_from_index(&n.b, any, DT_I64),
		                           dim_max(b->ctx, rows, dim_const(b->ctx, 1)), false);
		element = load_or(&n.b, pred, element, from[k], at[k]);
	}
	results[0] = nest_close(&n, row[1] ? element : NULL);
	return results[0] != NULL;
}
