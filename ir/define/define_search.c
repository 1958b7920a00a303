// Searching, counting, order statistics and comparisons of whole tensors (ir/ops/search.yaml):
// types and meaning.
#include "ir/build/nest.h"
#include "ir/infer/infer.h"
#include "ir/define/define.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const Dim *found_size(const Op *op, const Dim *bound)
{
	const Dim *size = infer_found(op, "n_", op->info->short_name, -1);
	if (bound)
		dim_set_bound(op->ctx, size, bound);
	return size;
}

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

static Value *flat(Builder *b, Value *x)
{
	const Dim *numel = x ? type_numel(b->ctx, x->type) : NULL;
	return tensor_reshape(b, x, 1, &numel);
}

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
	*weight = flat(b, *weight);
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
	Value *x = flat(b, op_operand(op, 0)), *low = NULL, *high = NULL;
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
	const Dim *size = found_size(op, NULL);
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

// ---- order statistics ---------------------------------------------------------------------------

static Value *dropped_axis(Builder *b, Value *x, int axis, bool keep)
{
	const Dim *dims[MAX_RANK];
	int rank = 0;
	if (!x || keep)
		return x;
	for (int d = 0; d < x->type->rank; d++)
		if (d != axis)
			dims[rank++] = x->type->dims[d];
	return tensor_reshape(b, x, rank, dims);
}

bool define_hook_kthvalue(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	int axis = 0;
	int64_t k = op_int(op, "k", 1);
	if (!t || (t->rank && !infer_axis(op, op_int(op, "axis", -1), t->rank, &axis)))
		return false;
	const NamedAttr attrs[] = {
		{"k", attr_int(c, k)}, {"axis", attr_int(c, axis)}, {"largest", attr_bool(c, false)}};
	Op *top = build_op(b, OP_PD_TOPK, 1, (Value *const[]){op_operand(op, 0)}, 3, attrs);
	if (!top)
		return false;
	for (int i = 0; i < 2; i++) {
		Value *v = op_result(top, i);
		if (t->rank)
			v = tensor_cut(b, v, axis, k - 1, k);
		results[i] = dropped_axis(b, v, axis, op_bool(op, "keepdim", false) || !t->rank);
	}
	return results[0] && results[1];
}

// The mode of one element without an axis.
static bool mode_of_one(Builder *b, Value *x, Value **results)
{
	Nest n = nest_open(b, x->type);
	results[0] = nest_close(&n, load_scalar(&n.b, x));
	results[1] = build_full(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0), 0);
	return results[0] && results[1];
}

// How often each element occurs along the axis; then the smallest of those that do most often.
bool define_hook_mode(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int axis = 0;
	if (t && !t->rank)
		return mode_of_one(b, x, results);
	if (!t || !infer_axis(op, op_int(op, "axis", -1), t->rank, &axis))
		return t && op_error(op, "no axis");
	const Dim *dims[MAX_RANK], *size = t->dims[axis];
	Nest n = nest_open(b, type_like(b->ctx, t, DT_I64));
	Nest s = reduce_open(&n.b, "sum", DT_I64, 1, &size);
	memcpy(from, n.at, sizeof from);
	from[axis] = s.at[0];
	Value *same = apply2(&s.b, OP_PD_EQUAL, load(&s.b, x, from), load(&s.b, x, n.at));
	Value *often = nest_close(&n, reduce_close(&s, scalar_cast(&s.b, same, DT_I64)));
	const int64_t axes[] = {axis};
	Value *most = tensor_reduce(b, OP_PD_MAX, often, 1, axes);
	if (!most)
		return false;
	memcpy(dims, t->dims, sizeof dims[0] * (size_t)t->rank);
	dims[axis] = dim_const(b->ctx, 1);
	const Type *v_type = type_tensor(b->ctx, t->dtype, t->rank, dims, 0);
	Nest v = nest_open(b, v_type);
	memcpy(from, v.at, sizeof from);
	Nest a = reduce_open(&v.b, "argmax", DT_I64, 1,
	                     &size); // the first of the most frequent; any with these elements will do
	from[axis] = a.at[0];
	Value *is = apply2(&a.b, OP_PD_EQUAL, load(&a.b, often, from), load(&a.b, most, v.at));
	Value *first = index_from_data(&v.b, reduce_close(&a, scalar_cast(&a.b, is, DT_I32)), size,
	                               false);
	from[axis] = first;
	Value *some = load(&v.b, x, from);
	Nest m = reduce_open(&v.b, "min", t->dtype, 1, &size);
	from[axis] = m.at[0];
	is = apply2(&m.b, OP_PD_EQUAL, load(&m.b, often, from), load(&m.b, most, v.at));
	Value *least = nest_close(&v,
	                          reduce_close(&m, index_where(&m.b, is, load(&m.b, x, from), some)));
	if (!least)
		return false;
	Nest p = nest_open(b, type_tensor(b->ctx, DT_I64, t->rank, dims, 0));
	memcpy(from, p.at, sizeof from);
	Nest l = reduce_open(&p.b, "max", DT_I64, 1, &size);
	from[axis] = l.at[0];
	is = apply2(&l.b, OP_PD_EQUAL, load(&l.b, x, from), load(&l.b, least, p.at));
	Value *last = reduce_close(&l, index_where(&l.b, is, scalar_from_index(&l.b, l.at[0], DT_I64),
	                                           build_scalar_f(&l.b, DT_I64, 0)));
	Value *position = nest_close(&p, last);
	if (!position)
		return false;
	// Read from there, so that it is this element that has the gradient.
	Nest o = nest_open(b, v_type);
	memcpy(from, o.at, sizeof from);
	from[axis] = index_from_data(&o.b, load(&o.b, position, o.at), size, false);
	Value *out = nest_close(&o, load(&o.b, x, from));
	bool keep = op_bool(op, "keepdim", false);
	results[1] = dropped_axis(b, position, axis, keep);
	results[0] = dropped_axis(b, out, axis, keep);
	return results[0] && results[1];
}

// x with the axes to reduce behind the others, as one; and the shape of the result.
static Value *reduced_behind(Builder *b, Value *x, const bool *flags, bool keep, int *rank,
                             const Dim **out)
{
	const Type *t = x->type;
	const Dim *dims[MAX_RANK], *inner = dim_const(b->ctx, 1);
	int64_t perm[MAX_RANK];
	int n = 0, outer;
	*rank = 0;
	for (int d = 0; d < t->rank; d++) {
		if (!flags[d]) {
			dims[n] = t->dims[d];
			perm[n++] = d;
		}
		if (!flags[d] || keep)
			out[(*rank)++] = flags[d] ? dim_const(b->ctx, 1) : t->dims[d];
	}
	outer = n;
	for (int d = 0; d < t->rank; d++)
		if (flags[d]) {
			inner = dim_mul(b->ctx, inner, t->dims[d]);
			perm[n++] = d;
		}
	dims[outer] = inner;
	return tensor_reshape(b, n ? tensor_transpose(b, x, n, perm) : x, outer + 1, dims);
}

// How many elements of a row count: numbers, or all.
static Value *row_numbers(Nest *m, Value *rows, int last)
{
	const Dim *size = rows->type->dims[last];
	DType t = rows->type->dtype;
	Value *from[MAX_RANK];
	memcpy(from, m->at, sizeof from);
	Nest s = reduce_open(&m->b, "sum", DT_I64, 1, &size);
	from[last] = s.at[0];
	Value *x = load(&s.b, rows, from);
	Value *number = dtype_is_float(t)
	                    ? apply1(&s.b, OP_PD_LOGICAL_NOT, apply1(&s.b, OP_PD_ISNAN, x))
	                    : NULL;
	Value *one = number ? scalar_cast(&s.b, number, DT_I64) : build_scalar_f(&s.b, DT_I64, 1);
	return index_from_data(&m->b, reduce_close(&s, one),
	                       dim_add(m->b.ctx, size, dim_const(m->b.ctx, 1)), false);
}

// Where in rows the middle elements are: [..., 2]. NaN come last in order: where there is nothing
// else, element 0 is one, and where one counts, the first of them is behind all numbers.
static Value *middle_elements(Builder *b, Value *rows, int last, bool skip)
{
	const Dim *dims[MAX_RANK], *size = rows->type->dims[last];
	Value *order = select_sorted(b, rows, false, NULL, size).at, *from[MAX_RANK];
	memcpy(dims, rows->type->dims, sizeof *dims * (size_t)last);
	dims[last] = dim_const(b->ctx, 2);
	Nest m = nest_open(b, type_tensor(b->ctx, DT_I64, last + 1, dims, 0));
	memcpy(from, m.at, sizeof from);
	Value *count = row_numbers(&m, rows, last), *end = index_dim(&m.b, size);
	Value *less = index_max(&m.b, index_plus(&m.b, index_add(&m.b, count, m.at[last]), -1),
	                        index_const(&m.b, 0));
	Value *at = index_div(&m.b, less, index_const(&m.b, 2));
	if (!skip)
		at = index_where(&m.b, index_equal(&m.b, count, end), at, count);
	from[last] = index_min(&m.b, at, index_plus(&m.b, end, -1));
	return nest_close(&m, scalar_cast(&m.b, load(&m.b, order, from), DT_I64));
}

bool define_hook_median(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	const Dim *out[MAX_RANK];
	int64_t axes[MAX_RANK];
	bool flags[MAX_RANK], lower = op_enum(op, "mode") == MEDIAN_MIN;
	int rank, n = op_ints(op, "axis", axes, MAX_RANK);
	if (!t || !infer_axes(op, n < 0 ? 0 : n, axes, t->rank, true, flags))
		return false;
	Value *rows = reduced_behind(b, op_operand(op, 0), flags, op_bool(op, "keepdim", true), &rank,
	                             out);
	int last = rows ? rows->type->rank - 1 : 0;
	Value *middle = rows ? middle_elements(b, rows, last, op->code == OP_PD_NANMEDIAN) : NULL;
	if (!middle)
		return false;
	Nest m = nest_open(b, type_tensor(b->ctx, t->dtype, last, rows->type->dims, 0));
	Value *from[MAX_RANK], *v[2];
	for (int i = 0; i < 2; i++) {
		memcpy(from, m.at, sizeof from);
		from[last] = index_const(&m.b, i);
		from[last] = index_from_data(&m.b, load(&m.b, middle, from), rows->type->dims[last], false);
		v[i] = load(&m.b, rows, from);
	}
	Value *half = tensor_div(&m.b, tensor_add(&m.b, v[0], v[1]), build_scalar_f(&m.b, t->dtype, 2));
	Value *same = apply2(&m.b, OP_PD_EQUAL, v[0], v[1]); // of infinities, too
	Value *chosen = lower ? v[0] : index_where(&m.b, same, v[0], half);
	results[0] = tensor_reshape(b, nest_close(&m, chosen), rank, out);
	if (lower)
		middle = tensor_cut(b, middle, last, 0, 1);
	out[rank] = dim_const(b->ctx, 2);
	results[1] = tensor_reshape(b, middle, rank + !lower, out);
	return results[0] && results[1];
}

// ---- runs of equal elements ---------------------------------------------------------------------

bool infer_hook_unique_consecutive(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *numel;
	int64_t axes[MAX_RANK];
	int axis = 0, n = op_ints(op, "axis", axes, MAX_RANK);
	if (!x)
		return false;
	if (n > 1 || (n == 1 && !infer_axis(op, axes[0], x->rank, &axis)))
		return n > 1 && op_error(op, "more than one axis");
	numel = n == 1 ? x->dims[axis] : type_numel(op->ctx, x);
	const Dim *count = found_size(op, numel);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[n == 1 ? axis : 0] = count;
	DType t = op_dtype(op, "dtype", DT_I64);
	return infer_result_shape(op, 0, x->dtype, n == 1 ? x->rank : 1, shape) &&
	       infer_result_shape(op, 1, t, 1, &numel) && infer_result_shape(op, 2, t, 1, &count);
}

// Whether slice i of the axis differs from the one before.
static Value *begins(Builder *b, Value *x, int axis)
{
	const Type *t = x->type;
	const Dim *extents[MAX_RANK];
	Value *here[MAX_RANK], *before[MAX_RANK];
	int k = 0;
	for (int d = 0; d < t->rank; d++)
		if (d != axis)
			extents[k++] = t->dims[d];
	Nest n = nest_open(b, type_tensor(b->ctx, DT_BOOL, 1, &t->dims[axis], 0));
	Nest r = {.b = n.b};
	if (k)
		r = reduce_open(&n.b, "any", DT_BOOL, k, extents);
	for (int d = 0, i = 0; d < t->rank; d++)
		here[d] = before[d] = d == axis ? n.at[0] : r.at[i++];
	before[axis] = index_max(&r.b, index_plus(&r.b, n.at[0], -1), index_const(&r.b, 0));
	Value *differ = apply2(&r.b, OP_PD_NOT_EQUAL, load(&r.b, x, here), load(&r.b, x, before));
	differ = k ? reduce_close(&r, differ) : differ;
	Value *first = index_equal(&n.b, n.at[0], index_const(&n.b, 0));
	return nest_close(&n, differ ? build2(&n.b, OP_PD_LOGICAL_OR, first, differ, NULL) : NULL);
}

bool define_hook_unique_consecutive(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int64_t axes[1];
	const Type *out = op->results[0].type;
	const Dim *count = op->results[2].type->dims[0];
	int axis = op_ints(op, "axis", axes, 1) == 1 ? axis_norm(axes[0], x->type->rank) : 0;
	if (op_ints(op, "axis", axes, 1) != 1)
		x = flat(b, x);
	Value *starts = x ? begins(b, x, axis) : NULL;
	Chosen found = select_true(b, starts);
	const Dim *size = x ? x->type->dims[axis] : NULL;
	if (!found.at || !bind_size(b, found.count, count))
		return false;
	Nest n = nest_open(b, out);
	memcpy(from, n.at, sizeof from);
	from[axis] = index_from_data(&n.b, load(&n.b, found.at, &n.at[axis]), size, false);
	results[0] = nest_close(&n, load(&n.b, x, from));
	Value *sums = scan_along(b, tensor_cast(b, starts, DT_I64), "sum", 0, false, false, NULL);
	results[1] = sums ? tensor_cast(b, tensor_sub(b, sums, tensor_number(b, DT_I64, 1)),
	                                op->results[1].type->dtype)
	                  : NULL;
	Nest l = nest_open(b, op->results[2].type);
	Value *next = index_plus(&l.b, l.at[0], 1),
		  *more = index_less(&l.b, next, index_dim(&l.b, count));
	Value *start = scalar_cast(&l.b, load(&l.b, found.at, l.at), DT_I64);
	Value *none = build_scalar_f(&l.b, found.at->type->dtype, 0);
	Value *end = scalar_cast(&l.b, load_or(&l.b, more, none, found.at, &next), DT_I64);
	end = index_where(&l.b, more, end, scalar_from_index(&l.b, index_dim(&l.b, size), DT_I64));
	results[2] = nest_close(&l, tensor_sub(&l.b, end, start));
	return results[0] && results[1] && results[2];
}

// ---- comparisons --------------------------------------------------------------------------------

// A tolerance: a tensor of one number, or a text that holds one.
static Value *tolerance(Builder *b, const Op *op, const char *name, const char *tensor)
{
	Value *v = op_operand_named(op, tensor);
	if (v)
		return tensor_cast(b, tensor_reshape(b, v, 0, NULL), DT_F64);
	const char *text = op_str(op, name, "0");
	char *end;
	double number = strtod(text, &end);
	if (end == text || *end) {
		op_error(op, "attribute '%s' is no number: '%s'", name, text);
		return NULL;
	}
	return tensor_number(b, DT_F64, number);
}

bool define_hook_isclose(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	if (!x || !y)
		return false;
	const bool complex = dtype_is_complex(x->type->dtype) || dtype_is_complex(y->type->dtype);
	x = tensor_cast(b, x, complex ? DT_C128 : DT_F64);
	y = tensor_cast(b, y, complex ? DT_C128 : DT_F64);
	Value *rtol = tolerance(b, op, "rtol", "rtol_tensor"),
		  *atol = tolerance(b, op, "atol", "atol_tensor");
	if (!x || !y || !rtol || !atol)
		return false;
	Value *most = tensor_add(b, atol, tensor_mul(b, rtol, apply1(b, OP_PD_ABS, y)));
	Value *away = apply1(b, OP_PD_ABS, tensor_sub(b, x, y));
	Value *close = apply2(b, OP_PD_LOGICAL_OR, apply2(b, OP_PD_EQUAL, x, y),
	                      apply2(b, OP_PD_LESS_EQUAL, away, most));
	close = apply2(b, OP_PD_LOGICAL_OR, close,
	               apply2(b, OP_PD_LESS_EQUAL, apply1(b, OP_PD_ABS, tensor_sub(b, away, most)),
	                      tensor_number(b, DT_F64, 1e-15)));
	if (complex || op_bool(op, "equal_nan", false)) {
		Value *none = apply2(b, complex ? OP_PD_LOGICAL_OR : OP_PD_LOGICAL_AND,
		                     apply1(b, OP_PD_ISNAN, x), apply1(b, OP_PD_ISNAN, y));
		close = apply2(b, OP_PD_LOGICAL_OR, close, none);
	}
	results[0] = close;
	return results[0] != NULL;
}

bool define_hook_allclose(Builder *b, Op *op, Value **results)
{
	Value *close;
	if (!define_hook_isclose(b, op, &close))
		return false;
	results[0] = build1(b, OP_PD_ALL, close, "reduce_all", attr_bool(b->ctx, true), NULL);
	return results[0] != NULL;
}

static Value *same_or_near(Builder *b, Value *x, Value *y, double tolerance)
{
	Value *same = apply2(b, OP_PD_EQUAL, x, y);
	if (!same || (x->type->dtype != DT_F32 && x->type->dtype != DT_F64))
		return same;
	Value *apart = scalar_cast(b, apply1(b, OP_PD_ABS, apply2(b, OP_PD_SUBTRACT, x, y)), DT_F64),
		  *limit = build_scalar_f(b, DT_F64, tolerance);
	return apply2(b, OP_PD_LOGICAL_OR, same, apply2(b, OP_PD_LESS_THAN, apart, limit));
}

// Shapes are compared when the program runs, where they are not known before.
bool define_hook_equal_all(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_tensor(op, 0), *y = x ? infer_tensor(op, 1) : NULL,
			   *one = type_tensor(b->ctx, DT_BOOL, 0, NULL, 0);
	if (!y)
		return false;
	bool same = x->rank == y->rank;
	for (int d = 0; d < x->rank && same; d++)
		same = x->dims[d] == y->dims[d] || !dim_is_const(x->dims[d]) || !dim_is_const(y->dims[d]);
	if (!same) {
		results[0] = build_full(b, one, 0);
		return results[0] != NULL;
	}
	Nest n = nest_open(b, one), r = {.b = n.b};
	Value *shapes = NULL, *inside = NULL;
	for (int d = 0; d < x->rank; d++)
		if (x->dims[d] != y->dims[d])
			shapes = pred_and(
				&n.b, shapes,
				index_equal(&n.b, index_dim(&n.b, x->dims[d]), index_dim(&n.b, y->dims[d])));
	if (x->rank)
		r = reduce_open(&n.b, "all", DT_BOOL, x->rank, x->dims);
	for (int d = 0; d < x->rank; d++)
		if (x->dims[d] != y->dims[d])
			inside = pred_and(&r.b, inside, index_less(&r.b, r.at[d], index_dim(&r.b, y->dims[d])));
	Value *other = load_or(&r.b, inside, inside ? build_scalar_f(&r.b, y->dtype, 0) : NULL,
	                       op_operand(op, 1), r.at);
	Value *equal = same_or_near(&r.b, load(&r.b, op_operand(op, 0), r.at), other,
	                            op_float(op, "tolerance", 0));
	equal = x->rank ? reduce_close(&r, equal) : equal;
	results[0] = nest_close(&n, pred_and(&n.b, shapes, equal));
	return results[0] != NULL;
}
