// Operators that stand for several, and small ones of Paddle's models (ir/ops/fused.yaml): types
// and meaning.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/infer/infer.h"

#include <string.h>

bool define_hook_fsp(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *flat[2];
	const Dim *size = NULL;
	for (int i = 0; i < 2; i++) {
		const Type *t = infer_rank(op, i, 4);
		if (!t)
			return false;
		size = dim_mul(c, t->dims[2], t->dims[3]);
		const Dim *dims[] = {t->dims[0], t->dims[1], size};
		flat[i] = tensor_reshape(b, op_operand(op, i), 3, dims);
	}
	Value *sum = flat[0] && flat[1] ? build2(b, OP_PD_MATMUL, flat[0], flat[1], "transpose_y",
	                                         attr_bool(c, true), NULL)
	                                : NULL;
	if (!sum)
		return false;
	Nest n = nest_open(b, sum->type);
	Value *count = scalar_from_index(&n.b, index_dim(&n.b, size), sum->type->dtype);
	results[0] = nest_close(&n, tensor_div(&n.b, load(&n.b, sum, n.at), count));
	return results[0] != NULL;
}

bool define_hook_cvm(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_rank(op, 0, 2);
	if (!t)
		return false;
	Value *x = op_operand(op, 0);
	if (!op_bool(op, "use_cvm", true)) {
		const Dim *dims[] = {t->dims[0], dim_sub(c, t->dims[1], dim_const(c, 2))};
		Nest n = nest_open(b, type_tensor(c, t->dtype, 2, dims, 0));
		Value *from[] = {n.at[0], index_plus(&n.b, n.at[1], 2)};
		results[0] = nest_close(&n, load(&n.b, x, from));
		return results[0] != NULL;
	}
	Nest n = nest_open(b, t);
	Value *first[] = {n.at[0], index_const(&n.b, 0)}, *one = build_scalar_f(&n.b, t->dtype, 1),
		  *own = load(&n.b, x, n.at);
	Value *shows = apply1(&n.b, OP_PD_LOG, tensor_add(&n.b, load(&n.b, x, first), one));
	Value *log = apply1(&n.b, OP_PD_LOG, tensor_add(&n.b, own, one));
	Value *v = index_where(&n.b, index_equal(&n.b, n.at[1], index_const(&n.b, 1)),
	                       tensor_sub(&n.b, log, shows), own);
	results[0] = nest_close(
		&n, index_where(&n.b, index_equal(&n.b, n.at[1], index_const(&n.b, 0)), log, v));
	return results[0] != NULL;
}

bool define_hook_number_count(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	int64_t range = op_int(op, "upper_range", 0);
	if (!t || range < 1)
		return t && op_error(op, "upper_range is %lld", (long long)range);
	const Dim *count = dim_const(b->ctx, range), *numel = type_numel(b->ctx, t);
	Value *flat = tensor_reshape(b, op_operand(op, 0), 1, &numel);
	Nest n = nest_open(b, type_tensor(b->ctx, t->dtype, 1, &count, 0));
	Nest s = reduce_open(&n.b, "sum", t->dtype, 1, &numel);
	Value *here = apply2(&s.b, OP_PD_EQUAL, load(&s.b, flat, s.at),
	                     scalar_from_index(&s.b, n.at[0], t->dtype));
	results[0] = flat ? nest_close(&n, reduce_close(&s, scalar_cast(&s.b, here, t->dtype))) : NULL;
	return results[0] != NULL;
}

// ---- boxes --------------------------------------------------------------------------------------

bool define_hook_polygon_box(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 4);
	if (!t)
		return false;
	Nest n = nest_open(b, t);
	Value *even = index_equal(&n.b, index_mod(&n.b, n.at[1], index_const(&n.b, 2)),
	                          index_const(&n.b, 0));
	Value *at = index_times(&n.b, index_where(&n.b, even, n.at[3], n.at[2]), 4);
	results[0] = nest_close(&n, tensor_sub(&n.b, scalar_from_index(&n.b, at, t->dtype),
	                                       load(&n.b, op_operand(op, 0), n.at)));
	return results[0] != NULL;
}

static Value *side(Builder *b, Value *low, Value *high, double more)
{
	return tensor_add(b, tensor_sub(b, high, low), build_scalar_f(b, low->type->dtype, more));
}

bool define_hook_iou_similarity(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_rank(op, 0, 2), *y = x ? infer_rank(op, 1, 2) : NULL;
	if (!y)
		return false;
	if (x->dtype != y->dtype)
		return op_error(op, "boxes of %s and %s", dtype_name(x->dtype), dtype_name(y->dtype));
	const Dim *dims[] = {x->dims[0], y->dims[0]};
	double more = op_bool(op, "box_normalized", true) ? 0 : 1;
	Nest n = nest_open(b, type_tensor(b->ctx, x->dtype, 2, dims, 0));
	Value *p[4], *q[4], *zero = build_scalar_f(&n.b, x->dtype, 0), *common = NULL;
	for (int i = 0; i < 4; i++) {
		Value *from[] = {n.at[0], index_const(&n.b, i)}, *to[] = {n.at[1], index_const(&n.b, i)};
		p[i] = load(&n.b, op_operand(op, 0), from);
		q[i] = load(&n.b, op_operand(op, 1), to);
	}
	for (int i = 0; i < 2; i++) {
		Value *low = apply2(&n.b, OP_PD_MAXIMUM, p[i], q[i]),
			  *high = apply2(&n.b, OP_PD_MINIMUM, p[i + 2], q[i + 2]);
		Value *length = apply2(&n.b, OP_PD_MAXIMUM, side(&n.b, low, high, more), zero);
		common = common ? tensor_mul(&n.b, common, length) : length;
	}
	Value *first = tensor_mul(&n.b, side(&n.b, p[0], p[2], more), side(&n.b, p[1], p[3], more));
	Value *second = tensor_mul(&n.b, side(&n.b, q[0], q[2], more), side(&n.b, q[1], q[3], more));
	Value *both = tensor_sub(&n.b, tensor_add(&n.b, first, second), common);
	Value *some = apply2(&n.b, OP_PD_GREATER_THAN, both, zero);
	Value *safe = index_where(&n.b, some, both, build_scalar_f(&n.b, x->dtype, 1));
	results[0] = nest_close(&n, index_where(&n.b, some, tensor_div(&n.b, common, safe), zero));
	return results[0] != NULL;
}

bool infer_hook_nms(Op *op)
{
	const Type *t = infer_rank(op, 0, 2);
	const Dim *same, *size = t ? infer_found_size(op, t->dims[0]) : NULL;
	return t &&
	       infer_same_dim(op, t->dims[1], dim_const(op->ctx, 4), "the corners of a box", &same) &&
	       infer_result_shape(op, 0, DT_I64, 1, &size);
}

bool define_hook_nms(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = op_operand(op, 0)->type, *out = op->results[0].type;
	Nest o = nest_open(b, type_tensor(c, DT_I32, 1, t->dims, 0));
	Value *order = nest_close(&o, scalar_from_index(&o.b, o.at[0], DT_I32));
	Nest s = nest_open(b, type_tensor(c, DT_I32, 0, NULL, 0));
	Value *count = nest_close(&s, scalar_from_index(&s.b, index_dim(&s.b, t->dims[0]), DT_I32));
	Chosen kept = select_apart(b, op_operand(op, 0), (Chosen){order, count},
	                           op_number(op, "iou_threshold"), 1, false);
	if (!kept.at || !bind_size(b, kept.count, out->dims[0]))
		return false;
	Nest n = nest_open(b, out);
	results[0] = nest_close(&n, scalar_cast(&n.b, load(&n.b, kept.at, n.at), DT_I64));
	return results[0] != NULL;
}

// ---- views that are copies here -----------------------------------------------------------------

bool define_hook_as_strided(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	int64_t sizes[MAX_RANK], strides[MAX_RANK], offset = op_int(op, "offset", 0), last, numel;
	const Dim *dims[MAX_RANK], *count = t ? type_numel(c, t) : NULL;
	int rank = op_ints(op, "dims", sizes, MAX_RANK);
	if (!t)
		return false;
	if (rank < 0 || op_ints(op, "stride", strides, MAX_RANK) != rank ||
	    offset % (int64_t)dtype_size(t->dtype))
		return op_error(op, "sizes and strides do not belong together");
	last = offset /= (int64_t)dtype_size(t->dtype); // Paddle counts it in bytes
	for (int d = 0; d < rank; d++) {
		dims[d] = dim_const(c, sizes[d]);
		last += (sizes[d] - 1) * strides[d];
		if (sizes[d] < 1 || strides[d] < 0)
			return op_error(op, "a size of %lld, a stride of %lld", (long long)sizes[d],
			                (long long)strides[d]);
	}
	if (!type_const_numel(t, &numel) || offset < 0 || last >= numel)
		return op_error(op, "elements outside of the operand");
	Value *flat = tensor_reshape(b, op_operand(op, 0), 1, &count);
	Nest n = nest_open(b, type_tensor(c, t->dtype, rank, dims, 0));
	Value *at = index_const(&n.b, offset);
	for (int d = 0; d < rank; d++)
		at = index_add(&n.b, at, index_times(&n.b, n.at[d], strides[d]));
	results[0] = flat ? nest_close(&n, load(&n.b, flat, &at)) : NULL;
	return results[0] != NULL;
}

bool define_hook_tensor_unfold(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	int64_t size = op_int(op, "size", 1), step = op_int(op, "step", 1);
	const Dim *dims[MAX_RANK];
	Value *from[MAX_RANK];
	int axis;
	if (!t || !infer_axis(op, op_int(op, "axis", 0), t->rank, &axis))
		return false;
	if (size < 1 || step < 1 || t->rank >= MAX_RANK ||
	    (dim_is_const(t->dims[axis]) && t->dims[axis]->value < size))
		return op_error(op, "pieces of %lld, %lld apart", (long long)size, (long long)step);
	memcpy(dims, t->dims, sizeof dims[0] * (size_t)t->rank);
	dims[axis] = dim_add(c,
	                     dim_div(c, dim_sub(c, dims[axis], dim_const(c, size)), dim_const(c, step)),
	                     dim_const(c, 1));
	dims[t->rank] = dim_const(c, size);
	Nest n = nest_open(b, type_tensor(c, t->dtype, t->rank + 1, dims, 0));
	memcpy(from, n.at, sizeof from);
	from[axis] = index_add(&n.b, index_times(&n.b, n.at[axis], step), n.at[t->rank]);
	results[0] = nest_close(&n, load(&n.b, op_operand(op, 0), from));
	return results[0] != NULL;
}

bool define_hook_index_select_strided(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	int64_t at = op_int(op, "index", 0);
	const Dim *dims[MAX_RANK];
	Value *from[MAX_RANK];
	int axis, k = 0;
	if (!t || !infer_axis(op, op_int(op, "axis", 0), t->rank, &axis))
		return false;
	if (!dim_is_const(t->dims[axis]) || at < 0 || at >= t->dims[axis]->value)
		return op_error(op, "the axis has no position %lld, or its size is not known",
		                (long long)at);
	for (int d = 0; d < t->rank; d++)
		if (d != axis)
			dims[k++] = t->dims[d];
	Nest n = nest_open(b, type_tensor(b->ctx, t->dtype, k, dims, 0));
	k = 0;
	for (int d = 0; d < t->rank; d++)
		from[d] = d == axis ? index_const(&n.b, at) : n.at[k++];
	results[0] = nest_close(&n, load(&n.b, op_operand(op, 0), from));
	return results[0] != NULL;
}

// ---- quantisation -------------------------------------------------------------------------------

bool define_hook_quantize_abs_max(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	int64_t axis = op_int(op, "quant_axis", -1), axes[MAX_RANK];
	int n = 0;
	if (!t || axis >= t->rank)
		return t && op_error(op, "no axis %lld", (long long)axis);
	if (!infer_bits(op, op_int(op, "bit_length", 8)))
		return false;
	if (op_bool(op, "is_test", false)) // the scale of training, which is no input
		return op_error(op, "is_test is not supported");
	for (int d = 0; d < t->rank; d++)
		if (d != axis)
			axes[n++] = d;
	const Dim *size = axis < 0 ? dim_const(c, 1) : t->dims[axis];
	Value *x = op_operand(op, 0), *largest = apply1(b, OP_PD_ABS, x);
	results[1] = tensor_reshape(b, n ? tensor_reduce(b, OP_PD_MAX, largest, n, axes) : largest, 1,
	                            &size);
	bool back = op_bool(op, "back", false);
	results[0] = results[1] ? build2(b, back ? OP_PD_QUANTIZE_DEQUANTIZE : OP_PD_QUANTIZE_LINEAR, x,
	                                 results[1], "quant_axis", attr_int(c, axis < 0 ? -1 : axis),
	                                 "bit_length", attr_int(c, op_int(op, "bit_length", 8)),
	                                 "round_type", attr_int(c, op_int(op, "round_type", 1)), NULL)
	                        : NULL;
	return results[0] != NULL;
}

bool define_hook_dequantize_log(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0), *table = t ? infer_rank(op, 1, 1) : NULL;
	if (!table)
		return false;
	Nest n = nest_open(b, type_like(b->ctx, t, table->dtype));
	Value *x = scalar_cast(&n.b, load(&n.b, op_operand(op, 0), n.at), DT_I64),
		  *zero = build_scalar_f(&n.b, DT_I64, 0);
	Value *below = apply2(&n.b, OP_PD_LESS_THAN, x, zero),
		  *moved = tensor_add(&n.b, x, build_scalar_f(&n.b, DT_I64, 128));
	Value *at = index_from_data(&n.b, index_where(&n.b, below, moved, x), table->dims[0], false),
		  *v = load(&n.b, op_operand(op, 1), &at);
	results[0] = nest_close(&n, index_where(&n.b, below, apply1(&n.b, OP_PD_NEGATIVE, v), v));
	return results[0] != NULL;
}

bool last_halves(Builder *b, Op *op, Value *x, Value **halves)
{
	const int axis = x->type->rank - 1;
	const Dim *size = x->type->dims[axis], *half = dim_div(b->ctx, size, dim_const(b->ctx, 2));
	const Dim *twice = dim_mul(b->ctx, half, dim_const(b->ctx, 2));
	if (dim_is_const(size) && size->value % 2)
		return op_error(op, "%lld elements have no halves", (long long)size->value);
	if (!check_sizes(b, 1, &size, &twice, false, "an odd size has no halves"))
		return false;
	halves[1] = tensor_slice(b, x, axis, half, size);
	halves[0] = tensor_slice(b, x, axis, dim_const(b->ctx, 0), half);
	return halves[0] && halves[1];
}

bool define_hook_swiglu(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	if (!t || t->rank < 1)
		return t && op_error(op, "no axis");
	Value *parts[] = {op_operand(op, 0), op->noperand > 1 ? op_operand(op, 1) : NULL};
	if (!parts[1] && !last_halves(b, op, parts[0], parts))
		return false;
	results[0] = tensor_mul(b, apply1(b, OP_PD_SILU, parts[0]), parts[1]);
	return results[0] != NULL;
}
