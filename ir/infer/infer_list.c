// Types of the operators that make one tensor of several, or several of one (ir/ops/tensor.yaml).
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"

#include <string.h>

// All elements of a list of tensors, one after the other, when all are known.
static void list_known(Op *op, int n, Value *const *list)
{
	const Dim *all[MAX_KNOWN];
	int count = 0;
	for (int i = 0; i < n; i++) {
		const Dim *const *known;
		int k = value_known(list[i], &known);
		if (k < 0 || count + k > MAX_KNOWN)
			return;
		memcpy(all + count, known, sizeof *all * (size_t)k);
		count += k;
	}
	infer_set_known(op, 0, count, all);
}

// The operands of a list, all tensors of one rank.
static int infer_list(Op *op, Value *const **list)
{
	int n = op_operand_list(op, 0, list);
	for (int i = 0; i < n; i++) {
		Value *v = (*list)[i];
		if (!v || !type_is_tensor(v->type) || v->type->rank != (*list)[0]->type->rank) {
			op_error(op, "element %d of the list is not a tensor of the rank of the first", i);
			return -1;
		}
	}
	if (!n)
		op_error(op, "the list is empty");
	return n ? n : -1;
}

bool infer_hook_concat(Op *op)
{
	Context *c = op->ctx;
	Value *const *list;
	const Dim *shape[MAX_RANK];
	int64_t given;
	int n = infer_list(op, &list), axis = 0;
	if (n < 0 || !infer_resolve_int(op, "axis", &given))
		return false;
	const Type *first = list[0]->type;
	if (!infer_axis(op, given, first->rank, &axis))
		return false;
	op_set_attr(op, "axis", attr_int(c, axis));
	memcpy(shape, first->dims, sizeof *shape * (size_t)first->rank);
	for (int i = 1; i < n; i++) {
		const Type *t = list[i]->type;
		if (t->dtype != first->dtype)
			return op_error(op, "element %d is %s, the first is %s", i, dtype_name(t->dtype),
			                dtype_name(first->dtype));
		for (int d = 0; d < first->rank; d++) {
			if (d == axis)
				shape[d] = dim_add(c, shape[d], t->dims[d]);
			else if (!infer_same_dim(op, shape[d], t->dims[d], "sizes of the parts", &shape[d]))
				return false;
		}
	}
	if (first->rank == 1)
		list_known(op, n, list);
	return infer_result_shape(op, 0, first->dtype, first->rank, shape);
}

bool infer_hook_stack(Op *op)
{
	Value *const *list;
	const Dim *shape[MAX_RANK];
	int n = infer_list(op, &list), axis;
	if (n < 0)
		return false;
	const Type *first = list[0]->type;
	if (first->rank == MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	if (!infer_axis(op, op_int(op, "axis", 0), first->rank + 1, &axis))
		return false;
	op_set_attr(op, "axis", attr_int(op->ctx, axis));
	for (int d = 0; d < first->rank; d++) {
		const Dim **at = &shape[d + (d >= axis)];
		*at = first->dims[d];
		for (int i = 1; i < n; i++)
			if (!infer_same_dim(op, *at, list[i]->type->dims[d], "sizes of the parts", at))
				return false;
	}
	shape[axis] = dim_const(op->ctx, n);
	if (axis == 0)
		list_known(op, n, list);
	return infer_result_shape(op, 0, first->dtype, first->rank + 1, shape);
}

static bool list_result(Op *op, int n, const Type *const *types)
{
	return infer_result(op, 0, type_group(op->ctx, TY_VEC, n, types));
}

// Sizes of the pieces: `sections` (one may be -1) or `num` equal ones. Returns how many, -1 after
// an error.
static int split_sizes(Op *op, const Dim *size, const Dim ***out)
{
	Context *c = op->ctx;
	enum { MAX_PIECES = 1024 };
	const Dim **sizes = NEW_ARRAY(c->arena, MAX_PIECES, const Dim *);
	*out = sizes;
	int n = infer_resolve(op, "sections", sizes, MAX_PIECES);
	if (n > 0) {
		const Dim *rest = size;
		int free_piece = -1;
		for (int i = 0; i < n; i++) {
			if (dim_is(sizes[i], -1))
				free_piece = i;
			else
				rest = dim_sub(c, rest, sizes[i]);
		}
		if (free_piece >= 0)
			sizes[free_piece] = rest;
		else if (!infer_same_dim(op, rest, dim_const(c, 0), "the size and the sum of the sections",
		                         &rest))
			return -1;
		return n;
	}
	int64_t num = op_int(op, "num", 0);
	if (num < 1 || num > MAX_PIECES || (dim_is_const(size) && size->value % num)) {
		op_error(op, "an axis cannot be split into %lld equal pieces", (long long)num);
		return -1;
	}
	const Dim *each = infer_divided(c, size, dim_const(c, num));
	for (int i = 0; i < num; i++)
		sizes[i] = each;
	return (int)num;
}

bool infer_hook_split(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim **sizes, *shape[MAX_RANK];
	int64_t given;
	int axis, n;
	if (!x || !infer_resolve_int(op, "axis", &given) || !infer_axis(op, given, x->rank, &axis) ||
	    (n = split_sizes(op, x->dims[axis], &sizes)) < 0)
		return false;
	op_set_attr(op, "axis", attr_int(c, axis));
	const Type **types = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	for (int i = 0; i < n; i++) {
		shape[axis] = sizes[i];
		types[i] = type_tensor(c, x->dtype, x->rank, shape, 0);
	}
	return list_result(op, n, types);
}

bool infer_hook_unstack(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *size;
	int axis, k = 0;
	if (!x || !infer_axis(op, op_int(op, "axis", 0), x->rank, &axis))
		return false;
	size = x->dims[axis];
	if (!dim_is_const(size) && op_int(op, "num", 0) > 0) {
		infer_equal_dims(op, size, dim_const(c, op_int(op, "num", 0)));
		size = dim_const(c, op_int(op, "num", 0));
	}
	if (!dim_is_const(size) || size->value > 4096)
		return op_error(op, "the number of pieces must be known when the program is compiled");
	op_set_attr(op, "axis", attr_int(c, axis));
	for (int d = 0; d < x->rank; d++)
		if (d != axis)
			shape[k++] = x->dims[d];
	const Type **types = NEW_ARRAY(c->arena, (size_t)size->value + 1, const Type *);
	for (int i = 0; i < size->value; i++)
		types[i] = type_tensor(c, x->dtype, k, shape, 0);
	return list_result(op, (int)size->value, types);
}

bool infer_hook_meshgrid(Op *op)
{
	Context *c = op->ctx;
	Value *const *list;
	const Dim *shape[MAX_RANK];
	int n = op_operand_list(op, 0, &list);
	if (n > MAX_RANK)
		return op_error(op, "a grid of more than %d axes", MAX_RANK);
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	for (int i = 0; i < n; i++) {
		if (!list[i] || !type_is_tensor(list[i]->type) || list[i]->type->rank > 1)
			return op_error(op, "input %d is not a vector", i);
		shape[i] = type_numel(c, list[i]->type);
	}
	for (int i = 0; i < n; i++)
		types[i] = type_tensor(c, list[i]->type->dtype, n, shape, 0);
	return list_result(op, n, types);
}
