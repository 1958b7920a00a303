// What a batch tells of a ranking and of a classifier (positive_negative_pair and precision_recall
// of ir/ops/loss.yaml).
#include "ir/loss/loss.h"
#include "ir/infer/infer.h"

static Value *number(Builder *b, DType t, double v)
{
	return build_scalar_f(b, t, v);
}

// Operand i with one element for each row, as a vector; NULL where there is none, or after a
// diagnostic.
static Value *row_numbers(Builder *b, Op *op, int i, const Dim *rows)
{
	Value *v = op_operand(op, i);
	const Dim *same;
	if (!v || !infer_same_dim(op, type_numel(b->ctx, v->type), rows, "numbers of rows", &same))
		return NULL;
	return tensor_flat(b, v);
}

// ---- pairs --------------------------------------------------------------------------------------

// What is known of the items of a ranking, each a vector; weight may be NULL.
typedef struct Items {
	Value *score, *label, *query, *weight;
} Items;

// The score of each row, the element of one column.
static Value *scores_of(Builder *b, Op *op, const Type *score)
{
	const int64_t column = op_int(op, "column", 0);
	const Dim *width = score->dims[1];
	if (dim_is_const(width) && (column >= width->value || column < -width->value)) {
		op_error(op, "column %lld of %lld", (long long)column, (long long)width->value);
		return NULL;
	}
	Nest n = nest_open(b, type_tensor(b->ctx, score->dtype, 1, score->dims, 0));
	Value *at[] = {n.at[0],
	               index_from_data(&n.b, number(&n.b, DT_I64, (double)column), width, true)};
	return nest_close(&n, load(&n.b, op_operand(op, 0), at));
}

// Whether positions i < j are items of one query that should not be equal.
static Value *is_pair(Builder *b, const Items *t, Value **i, Value **j)
{
	Value *same = apply2(b, OP_PD_EQUAL, load(b, t->query, i), load(b, t->query, j));
	Value *differ = apply2(b, OP_PD_NOT_EQUAL, load(b, t->label, i), load(b, t->label, j));
	return pred_and(b, index_less(b, *i, *j), pred_and(b, same, differ));
}

// Whether the pair is of the kind that result `kind` counts: in order, not so, or of equal scores
// (which are not in order, either).
static Value *is_of_kind(Builder *b, const Items *t, Value **i, Value **j, int kind)
{
	Value *first = load(b, t->score, i), *second = load(b, t->score, j);
	if (kind == 2)
		return apply2(b, OP_PD_EQUAL, first, second);
	Value *apart = tensor_sub(b, load(b, t->label, i), load(b, t->label, j));
	Value *agree = apply2(b, OP_PD_GREATER_THAN, tensor_mul(b, tensor_sub(b, first, second), apart),
	                      number(b, first->type->dtype, 0));
	return kind ? apply1(b, OP_PD_LOGICAL_NOT, agree) : agree;
}

// The sum of the weights of the pairs of a kind, behind `before` where there is one.
static Value *pairs_of(Builder *b, const Items *t, Value *before, int kind)
{
	const DType type = t->score->type->dtype;
	const Dim *one = dim_const(b->ctx, 1), *rows = t->score->type->dims[0], *both[] = {rows, rows};
	Nest n = nest_open(b, type_tensor(b->ctx, type, 1, &one, 0));
	Nest r = reduce_open(&n.b, "sum", type, 2, both);
	Value **i = &r.at[0], **j = &r.at[1], *weight = number(&r.b, type, 1);
	if (t->weight)
		weight = tensor_mul(&r.b,
		                    tensor_add(&r.b, load(&r.b, t->weight, i), load(&r.b, t->weight, j)),
		                    number(&r.b, type, 0.5));
	Value *counts = pred_and(&r.b, is_pair(&r.b, t, i, j), is_of_kind(&r.b, t, i, j, kind));
	Value *sum = reduce_close(&r, index_where(&r.b, counts, weight, number(&r.b, type, 0)));
	if (before)
		sum = tensor_add(&n.b, load(&n.b, before, n.at), sum);
	return nest_close(&n, sum);
}

// What was counted before, three vectors of one element or none; how many, or -1 after a
// diagnostic.
static int counts_before(Builder *b, Op *op, Value **before)
{
	const Dim *one = dim_const(b->ctx, 1);
	int given = 0;
	for (int k = 0; k < 3; k++) {
		before[k] = row_numbers(b, op, 3 + k, one);
		given += before[k] != NULL;
		if (op_operand(op, 3 + k) && !before[k])
			return -1;
	}
	return given;
}

bool define_hook_positive_negative_pair(Builder *b, Op *op, Value **results)
{
	const Type *score = infer_rank(op, 0, 2);
	Value *before[3];
	const int given = score ? counts_before(b, op, before) : -1;
	if (given < 0)
		return false;
	if (given % 3)
		return op_error(op, "only %d of 3 counts from before", given);
	Items t = {scores_of(b, op, score), row_numbers(b, op, 1, score->dims[0]),
	           row_numbers(b, op, 2, score->dims[0]), row_numbers(b, op, 6, score->dims[0])};
	if (!t.score || !t.label || !t.query || (op_operand(op, 6) && !t.weight))
		return false;
	for (int k = 0; k < 3; k++)
		results[k] = pairs_of(b, &t, before[k], k);
	return results[0] && results[1] && results[2];
}

// ---- classes ------------------------------------------------------------------------------------

// Positions in [0, classes) that a vector names, checked, as i64.
static Value *classes_of(Builder *b, Value *v, const Dim *classes)
{
	if (!v)
		return NULL;
	Nest n = nest_open(b, type_like(b->ctx, v->type, DT_I64));
	Value *at = index_from_data(&n.b, load(&n.b, v, n.at), classes, false);
	return nest_close(&n, scalar_from_index(&n.b, at, DT_I64));
}

// Of each class, what it weighs that it was rightly found, wrongly found, rightly not found and
// wrongly not found: [classes x 4] of type t.
static Value *states_of(Builder *b, Value *found, Value *label, Value *weight, const Dim *classes,
                        DType t)
{
	const Dim *dims[] = {classes, dim_const(b->ctx, 4)}, *rows = found->type->dims[0];
	Nest n = nest_open(b, type_tensor(b->ctx, t, 2, dims, 0));
	Value *own = scalar_from_index(&n.b, n.at[0], DT_I64),
		  *kind = scalar_from_index(&n.b, n.at[1], DT_I64);
	Nest r = reduce_open(&n.b, "sum", t, 1, &rows);
	Value *is_found = apply2(&r.b, OP_PD_EQUAL, load(&r.b, found, r.at), own);
	Value *is_right = apply2(&r.b, OP_PD_EQUAL, load(&r.b, label, r.at), own);
	Value *yes = index_where(&r.b, is_right, number(&r.b, DT_I64, 0), number(&r.b, DT_I64, 1));
	Value *no = index_where(&r.b, is_right, number(&r.b, DT_I64, 3), number(&r.b, DT_I64, 2));
	Value *hit = apply2(&r.b, OP_PD_EQUAL, index_where(&r.b, is_found, yes, no), kind);
	Value *each = weight ? load(&r.b, weight, r.at) : number(&r.b, t, 1);
	return nest_close(&n, reduce_close(&r, index_where(&r.b, hit, each, number(&r.b, t, 0))));
}

// part / (x + y), `other` where neither x nor y is positive.
static Value *part_of_sum(Builder *b, Value *part, Value *x, Value *y, double other)
{
	const DType t = x->type->dtype;
	Value *none = tensor_number(b, t, 0), *one = tensor_number(b, t, 1);
	Value *some = apply2(b, OP_PD_LOGICAL_OR, apply2(b, OP_PD_GREATER_THAN, x, none),
	                     apply2(b, OP_PD_GREATER_THAN, y, none));
	Value *sum = index_where(b, some, tensor_add(b, x, y), one);
	return index_where(b, some, tensor_div(b, part, sum), tensor_number(b, t, other));
}

// Precision, recall and their harmonic mean: the means of those of the classes, and those of the
// sums, f64 [6].
static Value *measures_of(Builder *b, Value *states)
{
	const int64_t axis = 0;
	const Dim *classes = states->type->dims[0], *six = dim_const(b->ctx, 6);
	const DType t = states->type->dtype;
	Value *sums = tensor_reduce(b, OP_PD_SUM, states, 1, &axis), *parts[6];
	for (int k = 0; k < 2; k++) {
		Value *of = k ? sums : states, *right = tensor_cut(b, of, 1, 0, 1);
		Value *precision = part_of_sum(b, right, right, tensor_cut(b, of, 1, 1, 2), 1);
		Value *recall = part_of_sum(b, right, right, tensor_cut(b, of, 1, 3, 4), 1);
		if (!k) {
			Value *number_of = tensor_number(b, t, (double)classes->value);
			precision = tensor_div(b, tensor_reduce(b, OP_PD_SUM, precision, 1, &axis), number_of);
			recall = tensor_div(b, tensor_reduce(b, OP_PD_SUM, recall, 1, &axis), number_of);
		}
		Value *twice = tensor_mul(b, tensor_mul(b, tensor_number(b, t, 2), precision), recall);
		parts[3 * k] = precision;
		parts[3 * k + 1] = recall;
		parts[3 * k + 2] = part_of_sum(b, twice, precision, recall, 0);
	}
	return tensor_cast(b, tensor_reshape(b, tensor_concat(b, 6, parts, 0), 1, &six), DT_F64);
}

// The states with those from before, where there are any.
static Value *states_together(Builder *b, Op *op, Value *states)
{
	Value *before = op_operand(op, 4);
	const Dim *same;
	if (!before)
		return states;
	if (!states || !infer_rank(op, 4, 2) ||
	    !infer_same_dim(op, before->type->dims[0], states->type->dims[0], "classes", &same) ||
	    !infer_same_dim(op, before->type->dims[1], states->type->dims[1], "states", &same))
		return NULL;
	return tensor_add(b, before, states);
}

bool define_hook_precision_recall(Builder *b, Op *op, Value **results)
{
	const Type *most = infer_tensor(op, 0), *found = most ? infer_tensor(op, 1) : NULL;
	const int64_t number_of = op_int(op, "class_number", 0);
	const Dim *classes = dim_const(b->ctx, number_of);
	if (!found || number_of < 1)
		return found && op_error(op, "%lld classes", (long long)number_of);
	const Dim *rows = type_numel(b->ctx, found);
	Value *at = classes_of(b, row_numbers(b, op, 1, rows), classes),
		  *label = classes_of(b, row_numbers(b, op, 2, rows), classes),
		  *weight = row_numbers(b, op, 3, rows);
	if (!at || !label || (op_operand(op, 3) && !weight))
		return false;
	Value *states = states_of(b, at, label, weight, classes, most->dtype);
	results[2] = states_together(b, op, states);
	if (!states || !results[2])
		return false;
	results[0] = measures_of(b, states);
	results[1] = measures_of(b, results[2]);
	return results[0] && results[1];
}
