// What the operators that index by data, and those that make tensors, mean (ir/ops/tensor.yaml).
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- gathering ----------------------------------------------------------------------------------

bool define_hook_gather(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *index = op_operand(op, 1), *from[MAX_RANK], *at[MAX_RANK];
	int axis = axis_norm(op_int(op, "axis", 0), x->type->rank);
	Nest n = nest_open(b, op->results[0].type);
	// A scalar index drops the axis; a column of indices counts as a vector.
	bool scalar = index->type->rank == 0;
	for (int d = 0, k = 0; d < x->type->rank; d++)
		from[d] = d == axis && scalar ? NULL : n.at[k++];
	for (int d = 0; d < index->type->rank; d++)
		at[d] = d ? index_const(&n.b, 0) : from[axis];
	Value *number = load(&n.b, index, at);
	from[axis] = index_from_data(&n.b, number, x->type->dims[axis], op_bool(op, "wrap", false));
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

void index_row(Builder *b, const Op *op, Value *const *at, int count, Value **from)
{
	const Type *x = op_operand(op, 0)->type;
	Value *index = op_operand(op, 1), *place[MAX_RANK];
	const bool wrap = op_bool(op, "wrap", false);
	int rows = index->type->rank - 1;
	memcpy(place, at, sizeof *at * (size_t)rows);
	for (int k = 0; k < count; k++) {
		place[rows] = index_const(b, k);
		from[k] = index_from_data(b, load(b, index, place), x->dims[k], wrap);
	}
}

bool define_hook_gather_nd(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *index = op_operand(op, 1), *from[MAX_RANK];
	int rows = index->type->rank - 1, count = (int)index->type->dims[rows]->value;
	Nest n = nest_open(b, op->results[0].type);
	index_row(&n.b, op, n.at, count, from);
	for (int d = count; d < x->type->rank; d++)
		from[d] = n.at[rows + d - count];
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

bool define_hook_take_along_axis(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Dim *const *size = x->type->dims, *const *wanted = op_operand(op, 1)->type->dims,
					 *need[MAX_RANK];
	int axis = axis_norm(op_int(op, "axis", 1), x->type->rank);
	for (int d = 0; d < x->type->rank; d++)
		need[d] = d == axis || dim_is(size[d], 1) ? size[d] : wanted[d];
	if (!check_within(b, x->type->rank, need, size, "more indices than there are elements beside"))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	memcpy(from, n.at, sizeof from);
	from[axis] = index_from_data(&n.b, load(&n.b, op_operand(op, 1), n.at), size[axis],
	                             op_bool(op, "wrap", false));
	for (int d = 0; d < x->type->rank; d++)
		if (d != axis && dim_is(x->type->dims[d], 1))
			from[d] = index_const(&n.b, 0);
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

bool define_hook_embedding(Builder *b, Op *op, Value **results)
{
	Value *ids = op_operand(op, 0), *weight = op_operand(op, 1), *at[MAX_RANK], *from[2];
	const Type *out = op->results[0].type;
	int64_t padding = op_int(op, "padding_idx", -1);
	Nest n = nest_open(b, out);
	for (int d = 0; d < ids->type->rank; d++)
		at[d] = d + 1 < out->rank ? n.at[d] : index_const(&n.b, 0);
	Value *id = load(&n.b, ids, at), *pred = NULL, *zero = NULL;
	if (padding >= 0) {
		Value *pad = build_scalar_f(&n.b, ids->type->dtype, (double)padding);
		pred = id ? build2(&n.b, OP_PD_NOT_EQUAL, id, pad, NULL) : NULL;
		zero = build_scalar_f(&n.b, out->dtype, 0);
	}
	from[0] = index_from_data(&n.b, id, weight->type->dims[0], false);
	from[1] = n.at[out->rank - 1];
	results[0] = nest_close(&n, load_or(&n.b, pred, zero, weight, from));
	return results[0] != NULL;
}

bool define_hook_one_hot(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *at[MAX_RANK];
	const Type *out = op->results[0].type;
	const Dim *depth = out->dims[out->rank - 1];
	Nest n = nest_open(b, out);
	for (int d = 0; d < x->type->rank; d++)
		at[d] = d + 1 < out->rank ? n.at[d] : index_const(&n.b, 0);
	Value *id = load(&n.b, x, at), *hot;
	if (op_bool(op, "allow_out_of_range", false)) {
		Value *here = scalar_from_index(&n.b, n.at[out->rank - 1], x->type->dtype);
		hot = id ? build2(&n.b, OP_PD_EQUAL, id, here, NULL) : NULL;
	} else {
		hot = index_equal(&n.b, index_from_data(&n.b, id, depth, false), n.at[out->rank - 1]);
	}
	results[0] = nest_close(&n, hot);
	return results[0] != NULL;
}

// ---- as many elements as the data say -----------------------------------------------------------

// The positions of the elements that are not zero; binds the size of the result to their number.
static Value *find_nonzero(Builder *b, Value *x, const Dim *total)
{
	Nest n = nest_open(b, type_like(b->ctx, x->type, DT_BOOL));
	Value *zero = build_scalar_f(&n.b, x->type->dtype, 0);
	Chosen found = select_true(
		b, nest_close(&n, apply2(&n.b, OP_PD_NOT_EQUAL, load(&n.b, x, n.at), zero)));
	return found.at && bind_size(b, found.count, total) ? found.at : NULL;
}

bool define_hook_nonzero(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[0].type;
	Value *found = find_nonzero(b, x, out->dims[0]);
	if (!found)
		return false;
	Nest n = nest_open(b, out);
	Value *at = index_from_data(&n.b, load(&n.b, found, n.at), found->type->dims[0], false);
	index_split(&n.b, at, x->type->rank, x->type->dims, from);
	Value *element = x->type->rank ? from[0] : index_const(&n.b, 0);
	for (int d = 1; d < x->type->rank; d++)
		element = index_where(&n.b, index_equal(&n.b, n.at[1], index_const(&n.b, d)), from[d],
		                      element);
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}

bool define_hook_masked_select(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *mask = op_operand(op, 1);
	const Type *out = op->results[0].type;
	const Dim *shape[MAX_RANK];
	int rank;
	if (!infer_broadcast(op, x->type->rank, x->type->dims, mask->type->rank, mask->type->dims,
	                     &rank, shape))
		return false;
	x = tensor_spread(b, x, rank, shape);
	mask = tensor_spread(b, mask, rank, shape);
	if (!x || !mask)
		return false;
	Value *found = find_nonzero(b, mask, out->dims[0]);
	const Dim *numel = type_numel(b->ctx, x->type);
	Value *flat = tensor_flat(b, x);
	if (!found || !flat)
		return false;
	Nest n = nest_open(b, out);
	Value *from = index_from_data(&n.b, load(&n.b, found, n.at), numel, false);
	results[0] = nest_close(&n, load(&n.b, flat, &from));
	return results[0] != NULL;
}

// ---- making -------------------------------------------------------------------------------------

// A scalar of the exact value that a number attribute holds.
static Value *scalar_attr(Builder *b, const Attr *a, DType t)
{
	if (a && a->kind == ATTR_INT && dtype_is_int(t)) {
		const Type *type = type_scalar(b->ctx, t);
		const NamedAttr attrs[] = {{"type", attr_type(b->ctx, type)}, {"value", a}};
		Op *op = build_op(b, OP_LOOP_CONSTANT, 0, NULL, 2, attrs);
		return op ? op_result(op, 0) : NULL;
	}
	return build_scalar_f(b, t, !a ? 0 : a->kind == ATTR_FLOAT ? a->f : (double)a->i);
}

bool define_hook_full(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	Value *value = op_operand_named(op, "value_tensor");
	Nest n = nest_open(b, out);
	Value *element = value ? load_scalar(&n.b, value)
	                       : scalar_attr(&n.b, op_attr(op, "value"), out->dtype);
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}

bool define_hook_assign_value(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	const Attr *values = op_attr(op, "values");
	int64_t dims[MAX_RANK], count;
	if (!type_const_numel(out, &count) || (values ? values->n : 0) != count)
		return op_error(op, "the number of values is not that of the shape's elements");
	for (int d = 0; d < out->rank; d++)
		dims[d] = out->dims[d]->value;
	Tensor *t = tensor_new(b->ctx->arena, out->dtype, out->rank, dims);
	if (!t)
		return op_error(op, "its result is too large");
	for (int i = 0; values && i < values->n; i++) {
		if (values->kind == ATTR_INTS)
			tensor_set_i(t, i, values->ints[i]);
		else
			tensor_set_f(t, i, values->floats[i]);
	}
	results[0] = build_constant(b, t);
	return results[0] != NULL;
}

bool define_hook_arange(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	Nest n = nest_open(b, out);
	Value *start = scalar_cast(&n.b, load_scalar(&n.b, op_operand(op, 0)), out->dtype);
	Value *step = scalar_cast(&n.b, load_scalar(&n.b, op_operand(op, 2)), out->dtype);
	Value *number = scalar_from_index(&n.b, n.at[0], out->dtype);
	Value *way = step && number ? build2(&n.b, OP_PD_MULTIPLY, number, step, NULL) : NULL;
	results[0] = nest_close(&n, start && way ? build2(&n.b, OP_PD_ADD, start, way, NULL) : NULL);
	return results[0] != NULL;
}

// start + step * i in the first half, stop - step * (num - 1 - i) in the second, in double: so that
// both ends are exact. A single number is the start.
bool define_hook_linspace(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *out = op->results[0].type;
	const Dim *num = out->dims[0], *last = dim_sub(c, num, dim_const(c, 1));
	Nest n = nest_open(b, out);
	Value *start = scalar_cast(&n.b, load_scalar(&n.b, op_operand(op, 0)), DT_F64);
	if (dim_is(num, 1)) {
		results[0] = nest_close(&n, start);
		return results[0] != NULL;
	}
	Value *stop = scalar_cast(&n.b, load_scalar(&n.b, op_operand(op, 1)), DT_F64);
	Value *parts = scalar_from_index(
		&n.b, index_max(&n.b, index_dim(&n.b, last), index_const(&n.b, 1)), DT_F64);
	Value *left = scalar_from_index(&n.b, index_sub(&n.b, index_dim(&n.b, last), n.at[0]), DT_F64);
	Value *done = scalar_from_index(&n.b, n.at[0], DT_F64);
	if (!start || !stop || !parts || !left || !done)
		return false;
	Value *step = tensor_div(&n.b, tensor_sub(&n.b, stop, start), parts);
	Value *up = tensor_add(&n.b, start, tensor_mul(&n.b, step, done));
	Value *down = tensor_sub(&n.b, stop, tensor_mul(&n.b, step, left));
	const Dim *half = dim_max(c, dim_div(c, num, dim_const(c, 2)), dim_const(c, 1));
	Value *first = index_less(&n.b, n.at[0], index_dim(&n.b, half));
	results[0] = nest_close(&n, index_where(&n.b, first, up, down));
	return results[0] != NULL;
}

bool define_hook_eye(Builder *b, Op *op, Value **results)
{
	Nest n = nest_open(b, op->results[0].type);
	results[0] = nest_close(&n, index_equal(&n.b, n.at[0], n.at[1]));
	return results[0] != NULL;
}

// shape and numel.
bool define_hook_shape(Builder *b, Op *op, Value **results)
{
	const Type *x = op_operand(op, 0)->type, *out = op->results[0].type;
	Nest n = nest_open(b, out);
	Value *element;
	if (op->code == OP_PD_NUMEL) {
		element = index_dim(&n.b, type_numel(b->ctx, x));
	} else {
		element = index_dim(&n.b, x->rank ? x->dims[0] : dim_const(b->ctx, 0));
		for (int d = 1; d < x->rank; d++) {
			Value *here = index_equal(&n.b, n.at[0], index_const(&n.b, d));
			element = index_where(&n.b, here, index_dim(&n.b, x->dims[d]), element);
		}
	}
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}
