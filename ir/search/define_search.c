// Searching sorted sequences and counting what lies where (searchsorted, histogram, bincount of
// ir/ops/search.yaml): types and meaning.
#include "ir/search/search.h"

#include <string.h>

// ---- sorted sequences ---------------------------------------------------------------------------

bool infer_hook_searchsorted(Op *op)
{
	const Type *s = infer_tensor(op, 0), *v = s ? infer_tensor(op, 1) : NULL;
	const Dim *same;
	if (!v)
		return false;
	if (s->rank < 1 || (s->rank > 1 && s->rank != v->rank))
		return op_error(op, "a sequence of %d axes for values of %d", s->rank, v->rank);
	for (int d = 0; d + 1 < s->rank; d++)
		if (!infer_same_dim(op, s->dims[d], v->dims[d], "rows of the sequence and of the values",
		                    &same))
			return false;
	return infer_result(op, 0,
	                    type_like(op->ctx, v, op_bool(op, "out_int32", false) ? DT_I32 : DT_I64));
}

// The number of halvings that leave nothing of n elements.
static int halvings(const Dim *n)
{
	int steps = 1;
	for (int64_t left = dim_is_const(n) ? n->value : (int64_t)1 << 40; left > 0; left /= 2)
		steps++;
	return steps;
}

// As std::lower_bound and std::upper_bound halve the range, so that sequences out of order give the
// same, too.
bool define_hook_searchsorted(Builder *b, Op *op, Value **results)
{
	Value *s = op_operand(op, 0), *values = op_operand(op, 1), *at[MAX_RANK];
	const Dim *size = s->type->dims[s->type->rank - 1];
	DType t = dtype_is_float(s->type->dtype) ? s->type->dtype : values->type->dtype;
	bool right = op_bool(op, "right", false);
	Nest n = nest_open(b, op->results[0].type);
	memcpy(at, n.at, sizeof at);
	Value *v = scalar_cast(&n.b, load(&n.b, values, n.at), t);
	Value *start = index_const(&n.b, 0), *end = index_dim(&n.b, size), *two = index_const(&n.b, 2);
	Value *zero = build_scalar_f(&n.b, s->type->dtype, 0);
	for (int i = halvings(size); i > 0; i--) {
		Value *open = index_less(&n.b, start, end);
		Value *mid = index_div(&n.b, index_add(&n.b, start, end), two);
		at[s->type->rank - 1] = mid;
		Value *x = scalar_cast(&n.b, load_or(&n.b, open, zero, s, at), t);
		Value *behind = apply2(&n.b, right ? OP_PD_GREATER_THAN : OP_PD_LESS_THAN, x, v);
		if (right)
			behind = apply1(&n.b, OP_PD_LOGICAL_NOT, behind);
		start = index_where(&n.b, pred_and(&n.b, open, behind), index_plus(&n.b, mid, 1), start);
		end = index_where(&n.b, pred_and(&n.b, open, apply1(&n.b, OP_PD_LOGICAL_NOT, behind)), mid,
		                  end);
	}
	if (dtype_is_float(t)) // Paddle puts what is not finite behind everything
		start = index_where(&n.b, apply1(&n.b, OP_PD_ISFINITE, v), start, index_dim(&n.b, size));
	results[0] = nest_close(&n, scalar_from_index(&n.b, start, op->results[0].type->dtype));
	return results[0] != NULL;
}

// ---- counting -----------------------------------------------------------------------------------

// How many elements of `at` (a vector of i64) are each number below `count`, or the sums of
// `weights`; others count as nothing.
static Value *counts_of(Builder *b, Value *at, Value *weights, const Dim *count, DType t)
{
	Nest n = nest_open(b, type_tensor(b->ctx, t, 1, &count, 0));
	Nest s = reduce_open(&n.b, "sum", t, 1, at->type->dims);
	Value *here = apply2(&s.b, OP_PD_EQUAL, load(&s.b, at, s.at),
	                     scalar_from_index(&s.b, n.at[0], DT_I64));
	Value *one = weights ? scalar_cast(&s.b, load(&s.b, weights, s.at), t)
	                     : build_scalar_f(&s.b, t, 1);
	return nest_close(&n,
	                  reduce_close(&s, index_where(&s.b, here, one, build_scalar_f(&s.b, t, 0))));
}

// The ends of the range, as tensors without axes: given, or the smallest and the largest element.
static bool histogram_range(Builder *b, const Op *op, Value *x, DType t, Value **low, Value **high)
{
	double min = op_number(op, "min"), max = op_number(op, "max");
	if (max < min)
		return op_error(op, "max is below min");
	*low = tensor_number(b, t, min);
	*high = tensor_number(b, t, max);
	if (min == max) {
		*low = build1(b, OP_PD_MIN, x, "reduce_all", attr_bool(b->ctx, true), NULL);
		*high = build1(b, OP_PD_MAX, x, "reduce_all", attr_bool(b->ctx, true), NULL);
		*low = tensor_cast(b, *low, t);
		*high = tensor_cast(b, *high, t);
		Value *same = *low && *high ? build2(b, OP_PD_EQUAL, *low, *high, NULL) : NULL;
		Value *one = same ? build1(b, OP_PD_CAST, same, "dtype", attr_dtype(b->ctx, t), NULL)
		                  : NULL;
		*low = tensor_sub(b, *low, one);
		*high = tensor_add(b, *high, one);
	}
	return *low && *high;
}

// Counts as a density: over the sum of all and the width of a part.
static Value *density_of(Builder *b, Value *counts, Value *low, Value *high, DType t)
{
	const int64_t first = 0;
	Value *sum = tensor_reduce(b, OP_PD_SUM, counts, 1, &first);
	Nest n = nest_open(b, type_like(b->ctx, counts->type, DT_F32));
	Value *bins = scalar_from_index(&n.b, index_dim(&n.b, counts->type->dims[0]), t);
	Value *width = tensor_sub(&n.b, load_scalar(&n.b, high), load_scalar(&n.b, low));
	Value *all = tensor_mul(&n.b, load_scalar(&n.b, sum), tensor_div(&n.b, width, bins));
	return nest_close(&n, tensor_div(&n.b, load(&n.b, counts, n.at), all));
}

// Which part of the range from low to high each element of x lies in; -1: none.
static Value *parts_of(Builder *b, Value *x, Value *low, Value *high, int64_t bins, DType real)
{
	Nest n = nest_open(b, type_like(b->ctx, x->type, DT_I64));
	Value *v = scalar_cast(&n.b, load(&n.b, x, n.at), real), *from = load_scalar(&n.b, low),
		  *to = load_scalar(&n.b, high);
	Value *in = pred_and(&n.b, apply2(&n.b, OP_PD_GREATER_EQUAL, v, from),
	                     apply2(&n.b, OP_PD_LESS_EQUAL, v, to));
	Value *part = tensor_mul(&n.b, tensor_sub(&n.b, v, from),
	                         build_scalar_f(&n.b, real, (double)bins));
	part = scalar_cast(&n.b, tensor_div(&n.b, part, tensor_sub(&n.b, to, from)), DT_I64);
	part = apply2(&n.b, OP_PD_MINIMUM, part, build_scalar_f(&n.b, DT_I64, (double)(bins - 1)));
	return nest_close(&n, index_where(&n.b, in, part, build_scalar_f(&n.b, DT_I64, -1)));
}

// The weights of elements x as a vector, where there are some.
static bool weights_of(Builder *b, const Op *op, const Value *x, Value **weight)
{
	const Dim *same;
	if (!*weight)
		return true;
	*weight = tensor_flat(b, *weight);
	return *weight && infer_same_dim(op, x->type->dims[0], (*weight)->type->dims[0],
	                                 "elements and weights", &same);
}

bool define_hook_histogram(Builder *b, Op *op, Value **results)
{
	int64_t bins = op_int(op, "bins", 100);
	const Type *t = infer_tensor(op, 0);
	if (!t || bins < 1 || bins > INT32_MAX)
		return t && op_error(op, "%lld bins", (long long)bins);
	DType real = t->dtype == DT_F32 ? DT_F32 : DT_F64;
	Value *x = tensor_flat(b, op_operand(op, 0)), *low = NULL, *high = NULL;
	if (!x || !histogram_range(b, op, x, real, &low, &high))
		return false;
	Value *at = parts_of(b, x, low, high, bins, real);
	Value *weight = op_operand(op, 1);
	bool density = op_bool(op, "density", false);
	DType sums = density ? real : weight ? weight->type->dtype : DT_I64;
	if (!at || !weights_of(b, op, x, &weight))
		return false;
	Value *counts = counts_of(b, at, weight, dim_const(b->ctx, bins), sums);
	results[0] = density && counts ? density_of(b, counts, low, high, real) : counts;
	return results[0] != NULL;
}

bool infer_hook_bincount(Op *op)
{
	const Type *x = infer_rank(op, 0, 1);
	Value *weights = op_operand_named(op, "weights");
	const Dim *same;
	if (!x || (weights && !infer_same_dim(op, x->dims[0], weights->type->dims[0],
	                                      "numbers and weights", &same)))
		return false;
	// Counts are i64, whatever x is.
	DType t = !weights ? DT_I64 : weights->type->dtype == DT_F32 ? DT_F32 : DT_F64;
	const Dim *size = infer_found_size(op, NULL);
	return infer_result_shape(op, 0, t, 1, &size);
}

bool define_hook_bincount(Builder *b, Op *op, Value **results)
{
	Value *x = tensor_cast(b, op_operand(op, 0), DT_I64),
		  *least = op_operand_named(op, "minlength_tensor");
	const Type *out = op->results[0].type;
	if (!x)
		return false;
	// The largest number and one; numbers below 0 make the run fail, as a size that is not
	// possible.
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0));
	Nest s = reduce_open(&n.b, "max", DT_I64, 1, x->type->dims);
	Value *at = index_from_data(&s.b, load(&s.b, x, s.at), dim_const(b->ctx, INT32_MAX), false);
	Value *most = reduce_close(&s, scalar_from_index(&s.b, index_plus(&s.b, at, 1), DT_I64));
	Value *low = least ? scalar_cast(&n.b, load_scalar(&n.b, least), DT_I64)
	                   : build_scalar_f(&n.b, DT_I64, op_number(op, "minlength"));
	Value *size = nest_close(&n, apply2(&n.b, OP_PD_MAXIMUM, most, low));
	if (!bind_size(b, size, out->dims[0]))
		return false;
	results[0] = counts_of(b, x, op_operand_named(op, "weights"), out->dims[0], out->dtype);
	return results[0] != NULL;
}
