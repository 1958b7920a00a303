// Types of normalisation, and of what else has a number for each channel or class
// (ir/ops/nn.yaml).
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"

#include <string.h>

// A vector operand has as many elements as channels.
static bool check_channels(const Op *op, const char *name, const Dim *channels)
{
	const Dim *same;
	Value *v = op_operand_named(op, name);
	const char *what = arena_printf(op->ctx->arena, "elements of '%s' and their places", name);
	return !v || infer_same_dim(op, type_numel(op->ctx, v->type), channels, what, &same);
}

// The size of the axis of channels; NULL after an error.
static const Dim *channels_of(Op *op, const Type *x)
{
	format_resolve(op);
	if (x->rank >= 2)
		return x->dims[channels_last(op) ? x->rank - 1 : 1];
	op_error(op, "a tensor of rank %d where 2 or more is needed", x->rank);
	return NULL;
}

bool infer_hook_batch_norm(Op *op)
{
	static const char *const names[] = {"mean", "variance", "scale", "bias"};
	const Type *x = infer_tensor(op, 0);
	const Dim *channels = x ? channels_of(op, x) : NULL;
	if (!channels)
		return false;
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (!check_channels(op, names[i], channels))
			return false;
	return infer_result(op, 0, x);
}

bool infer_hook_layer_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int axis;
	if (!x || !infer_axis(op, op_int(op, "begin_norm_axis", 1), x->rank, &axis))
		return false;
	op_set_attr(op, "begin_norm_axis", attr_int(op->ctx, axis));
	const Dim *numel = dims_product(op->ctx, x->rank - axis, x->dims + axis);
	return check_channels(op, "scale", numel) && check_channels(op, "bias", numel) &&
	       infer_result(op, 0, x);
}

// u has an element for each row of the weight as a matrix, v one for each column.
bool infer_hook_spectral_norm(Op *op)
{
	const Type *w = infer_tensor(op, 0);
	int axis;
	if (!w || !infer_axis(op, op_int(op, "dim", 0), w->rank, &axis))
		return false;
	const Dim *columns = dim_const(op->ctx, 1);
	for (int d = 0; d < w->rank; d++)
		columns = d == axis ? columns : dim_mul(op->ctx, columns, w->dims[d]);
	return check_channels(op, "u", w->dims[axis]) && check_channels(op, "v", columns) &&
	       infer_result(op, 0, w);
}

bool infer_hook_instance_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	if (x->rank < 2)
		return op_error(op, "a tensor of rank %d where 2 or more is needed", x->rank);
	return check_channels(op, "scale", x->dims[1]) && check_channels(op, "bias", x->dims[1]) &&
	       infer_result(op, 0, x);
}

bool infer_hook_group_norm(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *channels = x ? channels_of(op, x) : NULL;
	if (!channels)
		return false;
	int64_t groups = op_int(op, "groups", 1);
	if (groups < 1 || (dim_is_const(channels) && channels->value % groups))
		return op_error(op, "the channels do not divide into %lld groups", (long long)groups);
	infer_divided(op->ctx, channels, dim_const(op->ctx, groups));
	return check_channels(op, "scale", channels) && check_channels(op, "bias", channels) &&
	       infer_result(op, 0, x);
}

// As x, for what happens along one axis of it.
bool infer_hook_along_axis(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int axis;
	if (!x)
		return false;
	if (x->rank) {
		if (!infer_axis(op, op_int(op, "axis", -1), x->rank, &axis))
			return false;
		op_set_attr(op, "axis", attr_int(op->ctx, axis));
	}
	return infer_result(op, 0, x);
}

// Labels are class numbers, one in the place of every distribution along axis, or distributions
// themselves.
static bool check_labels(const Op *op, const Type *x, const Type *label, int axis)
{
	const Dim *same, *one = dim_const(op->ctx, 1);
	for (int d = 0; d < label->rank; d++) {
		const Dim *want = d == axis && !op_bool(op, "soft_label", false) ? one : x->dims[d];
		if (!infer_same_dim(op, want, label->dims[d], "sizes of classes and labels", &same))
			return false;
	}
	return true;
}

bool infer_hook_softmax_cross_entropy(Op *op)
{
	const Type *x = infer_tensor(op, 0), *label = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK];
	int axis;
	if (!x || !label || !infer_axis(op, op_int(op, "axis", -1), x->rank, &axis))
		return false;
	if (label->rank != x->rank)
		return op_error(op, "labels of rank %d for logits of rank %d", label->rank, x->rank);
	if (!check_labels(op, x, label, axis))
		return false;
	op_set_attr(op, "axis", attr_int(op->ctx, axis));
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[axis] = dim_const(op->ctx, 1);
	return infer_result(op, 0, x) && infer_result_shape(op, 1, x->dtype, x->rank, shape);
}

bool infer_hook_cross_entropy(Op *op)
{
	const Type *x = infer_tensor(op, 0), *label = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK];
	if (!x || !label)
		return false;
	// Class numbers may go without the axis of size 1 behind, which the result has not either then.
	const int rank = label->rank;
	const bool bare = !op_bool(op, "soft_label", false) && rank == x->rank - 1;
	if (!x->rank || (rank != x->rank && !bare))
		return op_error(op, "labels of rank %d for probabilities of rank %d", rank, x->rank);
	if (!check_labels(op, x, label, x->rank - 1))
		return false;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[x->rank - 1] = dim_const(op->ctx, 1);
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

bool infer_hook_prelu(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const int mode = op_enum(op, "mode");
	const Dim *need = dim_const(c, 1);
	if (!x)
		return false;
	if (mode == SLOPES_CHANNEL) {
		if (!x->rank)
			return op_error(op, "a scalar has no channels");
		need = x->dims[x->rank == 1 ? 0 : channels_last(op) ? x->rank - 1 : 1];
	} else if (mode == SLOPES_ELEMENT) {
		need = dims_product(c, x->rank - 1, x->dims + 1);
	}
	return check_channels(op, "alpha", need) && infer_result(op, 0, x);
}

bool infer_hook_affine_channel(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *channels = x ? channels_of(op, x) : NULL;
	if (!channels)
		return false;
	return check_channels(op, "scale", channels) && check_channels(op, "bias", channels) &&
	       infer_result(op, 0, x);
}
