// Order statistics along an axis (kthvalue, mode, median, nanmedian of ir/ops/search.yaml): what
// they mean.
#include "ir/search/search.h"

#include <string.h>

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
