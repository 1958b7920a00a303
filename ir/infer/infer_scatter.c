// Types of the operators that change elements at positions from data: index_put, put_along_axis,
// index_add.
#include "ir/build/infer.h"
#include "ir/infer/infer.h"

#include <string.h>

const Dim *index_put_found(const Op *op, int i)
{
	return infer_found(op, "n_", "index_put", i);
}

// What a value must be broadcast to must not have more axes, nor sizes that differ.
static bool check_spread(const Op *op, const Type *value, int rank, const Dim *const *dims)
{
	int shift = rank - value->rank;
	const Dim *same;
	if (shift < 0)
		return op_error(op, "a value of rank %d for places of rank %d", value->rank, rank);
	for (int d = 0; d < value->rank; d++)
		if (dim_is_const(value->dims[d]) && !dim_is(value->dims[d], 1) &&
		    dim_is_const(dims[d + shift]) &&
		    !infer_same_dim(op, value->dims[d], dims[d + shift], "sizes of value and places",
		                    &same))
			return false; // what only a run tells is for pd.expand to check
	return true;
}

// A mask has the sizes of the axes of x that it covers.
static bool check_mask(const Op *op, const Type *x, int axis, const Type *mask)
{
	const Dim *same;
	if (!mask->rank || axis + mask->rank > x->rank)
		return op_error(op, "a mask of rank %d from axis %d on, of a tensor of rank %d", mask->rank,
		                axis, x->rank);
	for (int d = 0; d < mask->rank; d++)
		if (!infer_same_dim(op, x->dims[axis + d], mask->dims[d], "sizes of x and of a mask",
		                    &same))
			return false;
	return true;
}

// An index, which stands for the axes from `axis` on; `rank` and `dims`: what all broadcast to.
static bool index_take(Op *op, const Type *x, int i, const Type *t, int *axis, int *rank,
                       const Dim **dims)
{
	const bool mask = type_is_tensor(t) && t->dtype == DT_BOOL;
	if (!type_is_tensor(t) || (!mask && !dtype_is_int(t->dtype)))
		return op_error(op, "an index must be a tensor of whole numbers or a mask");
	if (mask && !check_mask(op, x, *axis, t))
		return false;
	*axis += mask ? t->rank : 1;
	return index_put_spread(op, i, t, rank, dims);
}

bool index_put_spread(const Op *op, int i, const Type *t, int *rank, const Dim **dims)
{
	const Dim *found = index_put_found(op, i), *have[2 * MAX_RANK];
	memcpy(have, dims, sizeof *have * (size_t)*rank); // more axes move those that are there
	if (t->dtype == DT_BOOL)
		return infer_broadcast(op, *rank, have, 1, &found, rank, dims);
	return infer_broadcast_open(op, *rank, have, t->rank, t->dims, rank, dims);
}

bool infer_hook_index_put(Op *op)
{
	const Type *x = infer_tensor(op, 0), *value = x ? infer_tensor(op, 2) : NULL;
	const Dim *dims[2 * MAX_RANK];
	Value *const *indices;
	int n = op_operand_list(op, 1, &indices), rank = 0, axis = 0;
	if (!value)
		return false;
	if (n < 1 || n > MAX_RANK)
		return op_error(op, "%d indices", n);
	for (int i = 0; i < n; i++)
		if (!index_take(op, x, i, indices[i]->type, &axis, &rank, dims))
			return false;
	if (axis > x->rank || rank + x->rank - axis > MAX_RANK)
		return op_error(op, "indices for %d axes of a tensor of rank %d", axis, x->rank);
	for (; axis < x->rank; axis++)
		dims[rank++] = x->dims[axis];
	if (value->dtype != x->dtype)
		return op_error(op, "a value of %s for a tensor of %s", dtype_name(value->dtype),
		                dtype_name(x->dtype));
	return check_spread(op, value, rank, dims) && infer_result(op, 0, x);
}

const Dim *put_along_used(const Type *index, const Type *value, int d)
{
	const Dim *n = index->dims[d], *have = value->dims[d];
	return dim_is_const(n) && dim_is_const(have) && n->value < have->value ? n : have;
}

// What put_along_axis reads of the value, which broadcasts to the index.
static const Type *used_type(Context *c, const Type *index, const Type *value)
{
	const Dim *dims[MAX_RANK];
	if (value->rank != index->rank)
		return value;
	for (int d = 0; d < value->rank; d++)
		dims[d] = put_along_used(index, value, d);
	return type_tensor(c, value->dtype, value->rank, dims, 0);
}

bool infer_hook_put_along_axis(Op *op)
{
	const Type *x = infer_tensor(op, 0), *index = x ? infer_tensor(op, 1) : NULL,
			   *value = index ? infer_tensor(op, 2) : NULL;
	int axis;
	if (!value || !infer_axis(op, op_int(op, "axis", 0), x->rank, &axis))
		return false;
	if (index->rank != x->rank || value->dtype != x->dtype)
		return op_error(op,
		                "x and index must have as many axes, x and value the same element type");
	for (int d = 0; d < x->rank; d++)
		if (d != axis && dim_is_const(x->dims[d]) && dim_is_const(index->dims[d]) &&
		    index->dims[d]->value > x->dims[d]->value)
			return op_error(op, "the index is larger than x on axis %d", d);
	return check_spread(op, used_type(op->ctx, index, value), index->rank, index->dims) &&
	       infer_result(op, 0, x);
}

bool infer_hook_index_add(Op *op)
{
	const Type *x = infer_tensor(op, 0), *index = x ? infer_rank(op, 1, 1) : NULL,
			   *value = index ? infer_tensor(op, 2) : NULL;
	const Dim *same;
	int axis;
	if (!value || !infer_axis(op, op_int(op, "axis", 0), x->rank, &axis))
		return false;
	if (value->rank != x->rank || value->dtype != x->dtype)
		return op_error(op, "what is added must have the rank and the element type of x");
	for (int d = 0; d < x->rank; d++)
		if (!infer_same_dim(op, d == axis ? index->dims[0] : x->dims[d], value->dims[d],
		                    "sizes of x and what is added", &same))
			return false;
	return infer_result(op, 0, x);
}
