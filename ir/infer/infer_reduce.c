// Types of reductions, scans and sorts (ir/ops/reduce.yaml).
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- reductions ---------------------------------------------------------------------------------

static bool reduced_flags(const Op *op, int rank, bool *flags)
{
	int64_t axes[2 * MAX_RANK];
	int n = op_ints(op, "axis", axes, 2 * MAX_RANK);
	if (n < 0 || op_bool(op, "reduce_all", false))
		n = 0;
	// Programs give an axis twice now and then, as 1 and as -3: it is reduced once.
	for (int d = 0; d < rank; d++)
		flags[d] = !n;
	for (int i = 0; i < n; i++) {
		int d;
		if (rank == 0 && (axes[i] == 0 || axes[i] == -1))
			continue; // of a scalar
		if (!infer_axis(op, axes[i], rank, &d))
			return false;
		flags[d] = true;
	}
	return true;
}

int reduced_axes(const Op *op, int rank, int *axes)
{
	bool flags[MAX_RANK];
	int n = 0;
	if (!reduced_flags(op, rank, flags))
		return -1;
	for (int d = 0; d < rank; d++)
		if (flags[d])
			axes[n++] = d;
	return n;
}

// Folds what is known of the operand, when it is reduced to one element.
static void reduce_known(Op *op)
{
	Context *c = op->ctx;
	const Dim *const *known, *all;
	int n = infer_known(op, 0, &known);
	int64_t left;
	if (n <= 0 || !type_const_numel(op->results[0].type, &left) || left != 1 ||
	    op->info->noperand != 1)
		return;
	all = known[0];
	for (int i = 1; i < n; i++) {
		switch (op->code) {
		case OP_PD_SUM: all = dim_add(c, all, known[i]); break;
		case OP_PD_PROD: all = dim_mul(c, all, known[i]); break;
		case OP_PD_MAX: all = dim_max(c, all, known[i]); break;
		case OP_PD_MIN: all = dim_min(c, all, known[i]); break;
		default: return;
		}
	}
	infer_set_known(op, 0, 1, &all);
}

// The shape of x without these axes, or with 1 in their places; its rank.
static int without_axes(const Op *op, const Type *x, const bool *axes, bool keep, const Dim **shape)
{
	int rank = 0;
	for (int d = 0; d < x->rank; d++) {
		if (!axes[d])
			shape[rank++] = x->dims[d];
		else if (keep)
			shape[rank++] = dim_const(op->ctx, 1);
	}
	return rank;
}

// Of an operator that reduces one axis, or all, and has the attribute `keep`.
static int without_axis(const Op *op, const Type *x, bool all, int axis, const char *keep,
                        const Dim **shape)
{
	bool axes[MAX_RANK];
	for (int d = 0; d < x->rank; d++)
		axes[d] = all || d == axis;
	return without_axes(op, x, axes, op_bool(op, keep, false), shape);
}

bool infer_hook_reduce(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	bool flags[MAX_RANK];
	if (!x || !reduced_flags(op, x->rank, flags))
		return false;
	int rank = without_axes(op, x, flags, op_bool(op, "keepdim", false), shape);
	// Sums of truth values and of i32 are i64 in Paddle, unless a type is asked for; other
	// reductions keep the type.
	bool wide = op->code == OP_PD_SUM && (x->dtype == DT_BOOL || x->dtype == DT_I32);
	bool truth = op->code == OP_PD_ANY || op->code == OP_PD_ALL;
	DType t = truth ? DT_BOOL : wide ? DT_I64 : x->dtype;
	infer_result_shape(op, 0, op_dtype(op, "dtype", t), rank, shape);
	reduce_known(op);
	return true;
}

bool infer_hook_p_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int axis = 0;
	if (!x)
		return false;
	bool all = op_bool(op, "asvector", false);
	if (!all && !infer_axis(op, op_int(op, "axis", -1), x->rank, &axis))
		return false;
	int rank = without_axis(op, x, all, axis, "keepdim", shape);
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

bool infer_hook_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int axis = 0;
	if (!x || !infer_axis(op, op_int(op, "axis", -1), x->rank, &axis))
		return false;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[axis] = dim_const(op->ctx, 1);
	return infer_result_shape(op, 0, x->dtype, x->rank, x->dims) &&
	       infer_result_shape(op, 1, x->dtype, x->rank, shape);
}

bool infer_hook_dist(Op *op)
{
	const Type *both = infer_broadcast_pair(op);
	return both && infer_result_shape(op, 0, both->dtype, 0, NULL);
}

bool infer_hook_arg_reduce(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t given;
	int axis = 0;
	if (!x || !infer_resolve_int(op, "axis", &given))
		return false;
	bool flatten = op_bool(op, "flatten", false);
	if (!flatten && x->rank && !infer_axis(op, given, x->rank, &axis))
		return false;
	int rank = without_axis(op, x, flatten, axis, "keepdims", shape);
	return infer_result_shape(op, 0, op_dtype(op, "dtype", DT_I64), rank, shape);
}

bool infer_hook_add_n(Op *op)
{
	Value *const *list;
	int n = op_operand_list(op, 0, &list);
	if (n < 1 || !list[0] || !type_is_tensor(list[0]->type))
		return op_error(op, "the list is empty");
	const Type *first = list[0]->type;
	for (int i = 1; i < n; i++) {
		if (!list[i] || !type_is_tensor(list[i]->type) || list[i]->type->rank != first->rank)
			return op_error(op, "element %d of the list is not a tensor of the rank of the first",
			                i);
		if (!infer_same_dims(op, 0, first, list[i]->type, "sizes of the terms"))
			return false;
	}
	return infer_result(op, 0, first);
}

// ---- scans and sorts ----------------------------------------------------------------------------

bool infer_hook_cumsum(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int64_t given;
	int axis = 0;
	if (!x || !infer_resolve_int(op, "axis", &given))
		return false;
	if (op_bool(op, "flatten", false)) {
		const Dim *numel = type_numel(op->ctx, x);
		return infer_result_shape(op, 0, x->dtype, 1, &numel);
	}
	if (x->rank && !infer_axis(op, given, x->rank, &axis))
		return false;
	return infer_result(op, 0, x);
}

// cumprod, cummax, cummin: the axis.
bool verify_hook_scan(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int axis;
	if (x && op->nresult > 1 && dtype_is_complex(x->dtype))
		return op_error(op, "complex numbers have no order");
	return x &&
	       (!x->rank || infer_axis(op, op_int(op, op->code == OP_PD_CUMPROD ? "dim" : "axis", -1),
	                               x->rank, &axis));
}

bool infer_hook_argsort(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int axis;
	if (!x || (x->rank && !infer_axis(op, op_int(op, "axis", -1), x->rank, &axis)))
		return false;
	return infer_result(op, 0, x) && infer_result(op, 1, type_like(op->ctx, x, DT_I64));
}

// How many elements are wanted of an axis; size is NULL for a scalar.
static bool topk_count(Op *op, const Dim *size, const Dim **k)
{
	int n = infer_sizes_bound(op, "k", k, 1);
	if (n < 0 && op_operand(op, 1))
		return false;
	if (n != 1)
		*k = dim_const(op->ctx, op_int(op, "k", 1));
	const int64_t most = size && dim_is_const(size) ? size->value : INT64_MAX;
	if (dim_is_const(*k) && ((*k)->value < 1 || (*k)->value > most))
		return op_error(op, "k is %lld, which the axis does not have", (long long)(*k)->value);
	// An axis of size 0 has no position to look at, which its definition checks.
	return !size || dim_is(*k, 1) || infer_at_least(op, size, *k, "the size of the axis");
}

bool infer_hook_topk(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *k;
	int axis = 0;
	if (!x || (x->rank && !infer_axis(op, op_int(op, "axis", -1), x->rank, &axis)))
		return false;
	if (!topk_count(op, x->rank ? x->dims[axis] : NULL, &k))
		return false;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	if (x->rank)
		shape[axis] = k;
	return infer_result_shape(op, 0, x->dtype, x->rank, shape) &&
	       infer_result_shape(op, 1, DT_I64, x->rank, shape);
}
