// Types of the operators that index by data, say sizes, and make tensors (ir/ops/tensor.yaml).
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

#include <stdlib.h>
#include <string.h>

// ---- sizes --------------------------------------------------------------------------------------

bool infer_hook_shape(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	const Dim *n = dim_const(op->ctx, x->rank);
	infer_set_known(op, 0, x->rank, x->dims);
	return infer_result_shape(op, 0, op_dtype(op, "dtype", DT_I32), 1, &n);
}

bool infer_hook_numel(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	const Dim *n = type_numel(op->ctx, x);
	infer_set_known(op, 0, 1, &n);
	return infer_result_shape(op, 0, DT_I64, 0, NULL);
}

// ---- indexing -----------------------------------------------------------------------------------

// What is known of the elements that are gathered from a known vector.
static void gather_known(Op *op)
{
	const Dim *const *known, *const *index, *picked[MAX_KNOWN];
	int n = infer_known(op, 0, &known), count = infer_known(op, 1, &index);
	if (n < 0 || count < 0 || count > MAX_KNOWN || op_operand(op, 0)->type->rank != 1)
		return;
	for (int i = 0; i < count; i++) {
		if (!dim_is_const(index[i]) || index[i]->value < 0 || index[i]->value >= n)
			return;
		picked[i] = known[index[i]->value];
	}
	infer_set_known(op, 0, count, picked);
}

bool infer_hook_gather(Op *op)
{
	const Type *x = infer_tensor(op, 0), *index = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK];
	int64_t given;
	int axis, rank = 0;
	if (!x || !index || !infer_resolve_int(op, "axis", &given) ||
	    !infer_axis(op, given, x->rank, &axis))
		return false;
	if (index->rank > 2 || (index->rank == 2 && !dim_is(index->dims[1], 1)))
		return op_error(op, "the index must be a vector or a scalar");
	op_set_attr(op, "axis", attr_int(op->ctx, axis));
	for (int d = 0; d < x->rank; d++) {
		if (d != axis)
			shape[rank++] = x->dims[d];
		else if (index->rank)
			shape[rank++] = index->dims[0];
	}
	gather_known(op);
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

// The number of axes that the last axis of an index tensor addresses; -1 after an error.
static int index_width(const Op *op, const Type *x, const Type *index)
{
	if (!index->rank || !dim_is_const(index->dims[index->rank - 1])) {
		op_error(op, "the last axis of the index must have a known size");
		return -1;
	}
	int64_t n = index->dims[index->rank - 1]->value;
	if (n > x->rank) {
		op_error(op, "an index of %lld numbers for a tensor of rank %d", (long long)n, x->rank);
		return -1;
	}
	return (int)n;
}

bool infer_hook_gather_nd(Op *op)
{
	const Type *x = infer_tensor(op, 0), *index = infer_tensor(op, 1);
	const Dim *shape[2 * MAX_RANK];
	int n, rank = 0;
	if (!x || !index || (n = index_width(op, x, index)) < 0)
		return false;
	for (int d = 0; d + 1 < index->rank; d++)
		shape[rank++] = index->dims[d];
	for (int d = n; d < x->rank; d++)
		shape[rank++] = x->dims[d];
	if (rank > MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

// Updates are of the first `rows` sizes of the index, and then of the sizes of x from axis `from`
// on.
static bool check_updates(const Op *op, const Type *x, int from, const Type *index, int rows,
                          const Type *updates)
{
	const Dim *same;
	if (updates->rank != rows + x->rank - from)
		return op_error(op, "updates of rank %d do not fit", updates->rank);
	for (int d = 0; d < updates->rank; d++) {
		const Dim *want = d < rows ? index->dims[d] : x->dims[from + d - rows];
		if (!infer_same_dim(op, want, updates->dims[d], "sizes of the updates and of their places",
		                    &same))
			return false;
	}
	return true;
}

bool infer_hook_scatter_nd_add(Op *op)
{
	const Type *x = infer_tensor(op, 0), *index = infer_tensor(op, 1),
			   *updates = infer_tensor(op, 2);
	int n;
	if (!x || !index || !updates || (n = index_width(op, x, index)) < 0)
		return false;
	return check_updates(op, x, n, index, index->rank - 1, updates) && infer_result(op, 0, x);
}

bool infer_hook_scatter(Op *op)
{
	const Type *x = infer_tensor(op, 0), *index = infer_tensor(op, 1),
			   *updates = infer_tensor(op, 2);
	if (!x || !index || !updates)
		return false;
	if (!x->rank || index->rank > 2 || (index->rank == 2 && !dim_is(index->dims[1], 1)))
		return op_error(op, "the index must be a vector");
	return check_updates(op, x, 1, index, index->rank ? 1 : 0, updates) && infer_result(op, 0, x);
}

bool infer_hook_index_sample(Op *op)
{
	const Type *x = infer_rank(op, 0, 2), *index = infer_rank(op, 1, 2);
	const Dim *rows;
	if (!x || !index || !infer_same_dim(op, x->dims[0], index->dims[0], "numbers of rows", &rows))
		return false;
	return infer_result_shape(op, 0, x->dtype, 2, index->dims);
}

bool infer_hook_take_along_axis(Op *op)
{
	const Type *x = infer_tensor(op, 0), *index = infer_tensor(op, 1);
	int axis;
	if (!x || !index || !infer_axis(op, op_int(op, "axis", 0), x->rank, &axis))
		return false;
	if (x->rank != index->rank)
		return op_error(op, "ranks %d and %d differ", x->rank, index->rank);
	// Another axis of size 1 is read again and again.
	for (int d = 0; d < x->rank; d++)
		if (d != axis && dim_is_const(x->dims[d]) && dim_is_const(index->dims[d]) &&
		    x->dims[d]->value != 1 && index->dims[d]->value > x->dims[d]->value)
			return op_error(op, "axis %d has %lld places, but %lld indices", d,
			                (long long)x->dims[d]->value, (long long)index->dims[d]->value);
	op_set_attr(op, "axis", attr_int(op->ctx, axis));
	return infer_result_shape(op, 0, x->dtype, index->rank, index->dims);
}

bool infer_hook_embedding(Op *op)
{
	const Type *ids = infer_tensor(op, 0), *weight = infer_rank(op, 1, 2);
	const Dim *shape[MAX_RANK];
	if (!ids || !weight)
		return false;
	int rank = ids->rank;
	// Fluid 1.x has ids of shape [.., 1], and an embedding in the place of the last axis.
	if (op_bool(op, "drop_last", false)) {
		if (!rank || (dim_is_const(ids->dims[rank - 1]) && !dim_is(ids->dims[rank - 1], 1)))
			return op_error(op, "the last axis of the ids must be of size 1");
		rank--;
	}
	if (rank == MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	memcpy(shape, ids->dims, sizeof *shape * (size_t)rank);
	shape[rank] = weight->dims[1];
	return infer_result(op, 0, type_tensor(op->ctx, weight->dtype, rank + 1, shape, ids->lod));
}

bool infer_hook_one_hot(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *depth;
	if (!x)
		return false;
	int rank = x->rank;
	if (infer_sizes_bound(op, "depth", &depth, 1) != 1)
		depth = dim_const(op->ctx, op_int(op, "depth", 1));
	if (op_bool(op, "drop_last", false) && rank && dim_is(x->dims[rank - 1], 1))
		rank--;
	if (rank == MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	memcpy(shape, x->dims, sizeof *shape * (size_t)rank);
	shape[rank] = depth;
	return infer_result_shape(op, 0, op_dtype(op, "dtype", DT_F32), rank + 1, shape);
}

// ---- as many elements as the data say -----------------------------------------------------------

const Dim *infer_found_size(const Op *op, const Dim *bound)
{
	const Dim *size = infer_found(op, "n_", op->info->short_name, -1);
	if (bound)
		dim_set_bound(op->ctx, size, bound);
	return size;
}

bool infer_hook_nonzero(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	const Dim *shape[] = {infer_found_size(op, type_numel(op->ctx, x)),
	                      dim_const(op->ctx, x->rank)};
	return infer_result_shape(op, 0, DT_I64, 2, shape);
}

bool infer_hook_masked_select(Op *op)
{
	const Type *both = infer_broadcast_pair(op);
	if (!both)
		return false;
	const Dim *size = infer_found_size(op, type_numel(op->ctx, both));
	return infer_result_shape(op, 0, both->dtype, 1, &size);
}

// ---- making -------------------------------------------------------------------------------------

// `str_value`, when given, takes the place of `value`. Paddle reads it as a double and converts
// that as the machine does: of what i64 does not hold it makes the least i64.
static bool resolve_str_value(Op *op)
{
	const char *s = op_str(op, "str_value", "");
	char *end;
	if (!*s)
		return true;
	double v = strtod(s, &end);
	if (*end)
		return op_error(op, "str_value '%s' is not a number", s);
	if (strspn(s, "-0123456789") == strlen(s))
		op_set_attr(op, "value",
		            attr_int(op->ctx, v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN));
	else
		op_set_attr(op, "value", attr_float(op->ctx, v));
	op_set_attr(op, "str_value", NULL);
	return true;
}

// As an element of type t: what does not fit wraps.
static const Dim *known_whole(Context *c, DType t, int64_t v)
{
	Tensor *element = tensor_new(c->arena, t, 0, NULL);
	tensor_set_i(element, 0, v);
	return dim_const(c, tensor_get_i(element, 0));
}

// A value that every element has: known when it is a whole number and the elements are few.
static void full_known(Op *op, const Type *t)
{
	const Dim *known[MAX_KNOWN];
	const Attr *a = op_attr_or_default(op, "value");
	Value *given = op_operand_named(op, "value_tensor");
	int64_t n;
	const Dim *const *have, *v = NULL;
	if (!dtype_is_int(t->dtype) || !type_const_numel(t, &n) || n > MAX_KNOWN)
		return;
	if (given)
		v = dtype_size(t->dtype) >= 4 && value_known(given, &have) == 1 ? have[0] : NULL;
	else if (a && (a->kind != ATTR_FLOAT || (a->f > -9e15 && a->f < 9e15)))
		v = known_whole(op->ctx, t->dtype,
		                a->kind == ATTR_FLOAT ? whole_from_double(t->dtype, a->f) : a->i);
	for (int64_t i = 0; i < n; i++)
		known[i] = v;
	if (v)
		infer_set_known(op, 0, (int)n, known);
}

bool infer_hook_full(Op *op)
{
	const Dim *shape[MAX_RANK];
	int n = infer_sizes_bound(op, "shape", shape, MAX_RANK);
	if (n < 0 || !resolve_str_value(op))
		return false;
	for (int d = 0; d < n; d++)
		if (dim_is_const(shape[d]) && shape[d]->value < 0)
			return op_error(op, "a negative size in the shape");
	op_set_attr(op, "shape", attr_dims(op->ctx, n, shape));
	if (op_operand(op, 0))
		op_set_operand(op, 0, NULL);
	infer_result_shape(op, 0, op_dtype(op, "dtype", DT_F32), n, shape);
	full_known(op, op->results[0].type);
	return true;
}

bool infer_hook_full_like(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	infer_result(op, 0, type_like(op->ctx, x, op_dtype(op, "dtype", x->dtype)));
	full_known(op, op->results[0].type);
	return true;
}

int infer_batch_size_like(const Op *op, const Dim **shape)
{
	const Type *x = infer_tensor(op, 0);
	int64_t sizes[MAX_RANK];
	int in, out, n = op_ints(op, "shape", sizes, MAX_RANK);
	if (!x || n < 0 || !infer_axis(op, op_int(op, "input_dim_idx", 0), x->rank, &in) ||
	    !infer_axis(op, op_int(op, "output_dim_idx", 0), n, &out))
		return -1;
	for (int d = 0; d < n; d++) {
		if (d != out && sizes[d] < 0) {
			op_error(op, "a negative size in the shape");
			return -1;
		}
		shape[d] = d == out ? x->dims[in] : dim_const(op->ctx, sizes[d]);
	}
	return n;
}

bool infer_hook_full_batch_size_like(Op *op)
{
	const Dim *shape[MAX_RANK];
	int n = resolve_str_value(op) ? infer_batch_size_like(op, shape) : -1;
	return n >= 0 && infer_result_shape(op, 0, op_dtype(op, "dtype", DT_F32), n, shape);
}

// The values in the attribute of their type become `values`.
static const Attr *assigned_values(Op *op)
{
	static const char *const names[] = {"fp32_values", "fp64_values", "int32_values",
	                                    "int64_values", "bool_values"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const Attr *a = op_attr(op, names[i]);
		if (a && a->n && a->kind == ATTR_BOOLS)
			a = attr_ints(op->ctx, a->n, a->ints);
		if (a && a->n)
			op_set_attr(op, "values", a);
		op_set_attr(op, names[i], NULL);
	}
	return op_attr(op, "values");
}

bool infer_hook_assign_value(Op *op)
{
	Context *c = op->ctx;
	const Dim *shape[MAX_RANK], *known[MAX_KNOWN];
	int64_t sizes[MAX_RANK], numel = 1;
	int n = op_ints(op, "shape", sizes, MAX_RANK);
	DType t = op_dtype(op, "dtype", DT_F32);
	const Attr *values = assigned_values(op);
	if (n < 0)
		return op_error(op, "a shape of more than %d axes", MAX_RANK);
	for (int d = 0; d < n; d++) {
		if (sizes[d] < 0 || __builtin_mul_overflow(numel, sizes[d], &numel))
			return op_error(op, "a size of %lld in the shape", (long long)sizes[d]);
		shape[d] = dim_const(c, sizes[d]);
	}
	if ((values ? values->n : 0) != numel)
		return op_error(op, "%d values for %lld elements", values ? values->n : 0,
		                (long long)numel);
	for (int i = 0; dtype_is_int(t) && i < numel && numel <= MAX_KNOWN; i++)
		known[i] = known_whole(c, t,
		                       values->kind == ATTR_INTS ? values->ints[i]
		                                                 : whole_from_double(t, values->floats[i]));
	if (dtype_is_int(t) && numel <= MAX_KNOWN)
		infer_set_known(op, 0, (int)numel, known);
	return infer_result_shape(op, 0, t, n, shape);
}

bool infer_hook_eye(Op *op)
{
	const Dim *shape[2];
	if (infer_resolve(op, "num_rows", shape, 1) != 1 ||
	    infer_resolve(op, "num_columns", shape + 1, 1) != 1)
		return op_error(op, "one number of rows and one of columns needed");
	if (dim_is_const(shape[0]) && shape[0]->value < 0)
		return op_error(op, "%lld rows", (long long)shape[0]->value);
	if (dim_is_const(shape[1]) && shape[1]->value < 0)
		shape[1] = shape[0];
	return infer_result_shape(op, 0, op_dtype(op, "dtype", DT_F32), 2, shape);
}
