// Types of the operators whose attributes only data tell (ir/ops/tensor.yaml; their meaning:
// define_mutable.c). Their sizes are found at run time.
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"

#include <string.h>

// A size that this operation finds on axis d of its result.
static const Dim *found_on(const Op *op, int d)
{
	const char *what = op->info->short_name;
	return infer_found(op, op_bool(op, "back", false) ? "n_back_" : "n_", what, d);
}

// ---- an axis that moves -------------------------------------------------------------------------

bool infer_hook_move_axis(Op *op)
{
	const Type *x = infer_tensor(op, 0), *axis = x ? infer_tensor(op, 1) : NULL;
	const Dim *dims[MAX_RANK], *one;
	if (!axis || !infer_same_dim(op, type_numel(op->ctx, axis), dim_const(op->ctx, 1),
	                             "axes that there are and one", &one))
		return false;
	bool same = true; // whatever moves where
	for (int d = 1; d < x->rank; d++)
		same = same && x->dims[d] == x->dims[0];
	for (int d = 0; d < x->rank; d++)
		dims[d] = same ? x->dims[d] : found_on(op, d);
	return infer_result_shape(op, 0, x->dtype, x->rank, dims);
}

// ---- slices -------------------------------------------------------------------------------------

// How long a list is that operands or attributes hold.
static int list_length(const Op *op, const char *attr)
{
	const AttrInfo *info = op_info_attr(op->info, attr);
	Value *v = op_operand_named(op, info->operand), *const * list;
	const Dim *dims[MAX_RANK];
	int64_t n;
	if (!v)
		return op_dims(op, attr, dims, MAX_RANK);
	if (v->type->kind == TY_VEC)
		return op_operand_list(op, op_info_operand(op->info, info->operand), &list);
	return type_const_numel(v->type, &n) && n <= MAX_RANK ? (int)n : -1;
}

// Whether the strides of a strided_slice are known only at run time.
bool slice_is_open(const Op *op)
{
	const Dim *dims[MAX_RANK];
	int n = op->code == OP_PD_STRIDED_SLICE && op_operand_named(op, "strides_tensor")
	            ? infer_sizes(op, "strides", dims, MAX_RANK)
	            : 0;
	for (int k = 0; k < n; k++)
		if (!dim_is_const(dims[k]))
			n = -1;
	return n < 0;
}

bool infer_open_slice(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *kept[MAX_RANK];
	int64_t axes[MAX_RANK];
	bool dropped[MAX_RANK];
	int n = op_ints(op, "axes", axes, MAX_RANK), rank = 0, d;
	if (!x || !slice_drops(op, x->rank, dropped))
		return false;
	if (n < 0 || list_length(op, "starts") != n || list_length(op, "ends") != n ||
	    list_length(op, "strides") != n)
		return op_error(op, "axes, starts, ends and strides are of different lengths");
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	for (int k = 0; k < n; k++) {
		if (!infer_axis(op, axes[k], x->rank, &d))
			return false;
		shape[d] = found_on(op, d);
	}
	for (d = 0; d < x->rank; d++)
		if (!dropped[d])
			kept[rank++] = shape[d];
	return infer_result_shape(op, 0, x->dtype, rank, kept);
}
