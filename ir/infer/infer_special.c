// Types of the operators of ops/special.yaml that have no file of their own.
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"
#include "ir/infer/quantised.h"

#include <string.h>

// ---- quantisation -------------------------------------------------------------------------------

bool infer_bits(Op *op, int64_t bits)
{
	return (bits >= 2 && bits <= 31) || op_error(op, "%lld bits", (long long)bits);
}

// A scale is one number, or one for every position of axis (negative: one number it must be).
static bool check_scale(Op *op, const Value *scale, const Type *x, int64_t axis)
{
	int64_t count;
	if (!scale || !type_is_tensor(scale->type) || !dtype_is_float(scale->type->dtype))
		return op_error(op, "a scale is not a tensor of floats");
	if (axis >= x->rank)
		return op_error(op, "axis %lld of a tensor of rank %d", (long long)axis, x->rank);
	const Type *t = scale->type;
	if (type_const_numel(t, &count) && (count == 1 || (axis < 0 && count > 0)))
		return true;
	if (axis < 0 || !t->rank || !dim_is_const(type_numel(op->ctx, t)) ||
	    !dim_is(t->dims[t->rank - 1], count))
		return op_error(op, "a scale has the wrong number of elements");
	const Dim *size;
	return infer_same_dim(op, x->dims[axis], t->dims[t->rank - 1], "channels and scales", &size);
}

double quantised_most(int64_t bits)
{
	return (double)((INT64_C(1) << (bits - 1)) - 1);
}

bool quantised_away(const Op *op)
{
	return op_int(op, "round_type", op->code == OP_PD_QUANTIZE_DEQUANTIZE) != 0;
}

int64_t quantised_axis(const Op *op, int scales)
{
	const int64_t rows = op_int(op, "x_num_col_dims", 1);
	return scales < 2 ? op_int(op, "quant_axis", -1) : rows > 1 ? rows : 1;
}

bool quantised_observes(const Op *op)
{
	return op_bool(op, "only_observer", false);
}

bool verify_hook_quantize(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	if (!op_bool(op, "is_test", true))
		return op_error(op, "scales can only be learnt in training, which is not supported");
	return infer_bits(op, op_int(op, "bit_length", 8)) &&
	       check_scale(op, op_operand(op, 1), x, op_int(op, "quant_axis", -1));
}

bool infer_hook_dequantize(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	Value *const *scales;
	int64_t bits[2];
	int n = op_operand_list(op, 1, &scales), nbits = op_ints(op, "quant_bits", bits, 2);
	if (!x)
		return false;
	if (n < 1 || n > 2 || (nbits > 0 && nbits < n))
		return op_error(op, "%d scales and %d numbers of bits", n, nbits);
	int64_t axis = quantised_axis(op, n);
	for (int i = 0; i < n; i++)
		if (!infer_bits(op, nbits > i ? bits[i] : op_int(op, "bit_length", 8)) ||
		    !check_scale(op, scales[i], x, i ? -1 : axis))
			return false;
	return infer_result(op, 0,
	                    quantised_observes(op) ? x : type_like(op->ctx, x, scales[0]->type->dtype));
}

// ---- random numbers -----------------------------------------------------------------------------

void infer_keep_place(Op *op)
{
	if (!op_attr(op, "place"))
		op_set_attr(op, "place",
		            attr_int(op->ctx, (op->loc->block < 0 ? 0 : op->loc->block) * 65536LL +
		                                  (op->loc->op < 0 ? 0 : op->loc->op)));
}

bool infer_hook_uniform(Op *op)
{
	const Dim *shape[MAX_RANK];
	int n = infer_resolve(op, "shape", shape, MAX_RANK);
	if (n < 0)
		return false;
	for (int d = 0; d < n; d++)
		if (dim_is_const(shape[d]) && shape[d]->value < 0)
			return op_error(op, "a negative size in the shape");
	infer_keep_place(op);
	DType otherwise = op->code == OP_PD_RANDINT ? DT_I64 : DT_F32;
	if (op->code == OP_PD_RANDINT && op_int(op, "high", 0) <= op_int(op, "low", 0))
		return op_error(op, "no number is at least low and below high");
	return infer_result_shape(op, 0, op_dtype(op, "dtype", otherwise), n, shape);
}

bool infer_hook_uniform_batch_size_like(Op *op)
{
	const Dim *shape[MAX_RANK];
	int n = infer_batch_size_like(op, shape);
	if (n < 0)
		return false;
	infer_keep_place(op);
	return infer_result_shape(op, 0, op_dtype(op, "dtype", DT_F32), n, shape);
}

bool infer_hook_bernoulli(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	infer_keep_place(op);
	return x && infer_result(op, 0, x);
}

// ---- detection ----------------------------------------------------------------------------------

bool infer_hook_yolo_box(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 4), *size = x ? infer_rank(op, 1, 2) : NULL;
	const Attr *anchors = op_attr(op, "anchors");
	int64_t classes = op_int(op, "class_num", 0);
	if (!size)
		return false;
	if (!anchors || anchors->n < 2 || anchors->n % 2 || classes < 1 || classes > INT32_MAX)
		return op_error(op, "anchors must come in pairs, and there must be a class");
	const Dim *same;
	if (!infer_same_dim(op, x->dims[0], size->dims[0], "numbers of images and of their sizes",
	                    &same) ||
	    !infer_same_dim(op, dim_const(c, 2), size->dims[1], "a height, a width and what there is",
	                    &same))
		return false;
	int64_t n = anchors->n / 2,
			channels = n * (5 + classes + (op_bool(op, "iou_aware", false) ? 1 : 0));
	if (!infer_same_dim(op, x->dims[1], dim_const(c, channels),
	                    "channels that there are and that are needed", &same))
		return false;
	const Dim *boxes = dim_mul(c, dim_const(c, n), dim_mul(c, x->dims[2], x->dims[3]));
	const Dim *shape[] = {x->dims[0], boxes, dim_const(c, 4)};
	infer_result_shape(op, 0, x->dtype, 3, shape);
	shape[2] = dim_const(c, classes);
	return infer_result_shape(op, 1, x->dtype, 3, shape);
}

// The offsets (two for every tap of the filter and group) and the mask (one) have the size of the
// result.
static bool check_offsets(const Op *op, const Type *x, const Type *filter, const Type *offset,
                          const Type *t, int each)
{
	Context *c = op->ctx;
	const Dim *taps = dim_mul(c, filter->dims[2], filter->dims[3]), *same;
	const Dim *want = dim_mul(c, taps, dim_const(c, each * op_int(op, "deformable_groups", 1)));
	return infer_same_dim(op, x->dims[0], t->dims[0], "numbers of images and of their offsets",
	                      &same) &&
	       infer_same_dim(op, want, t->dims[1], "taps of the filter and channels of their offsets",
	                      &same) &&
	       infer_same_dim(op, offset->dims[2], t->dims[2], "heights of offset and mask", &same) &&
	       infer_same_dim(op, offset->dims[3], t->dims[3], "widths of offset and mask", &same);
}

static bool divides(const Dim *size, int64_t groups)
{
	return !dim_is_const(size) || size->value % groups == 0;
}

// The attributes of a deformable convolution.
static bool check_deformable(const Op *op, const Type *x, const Type *filter)
{
	static const char *const names[] = {"strides", "paddings", "dilations"};
	int64_t lists[3][2];
	for (int i = 0; i < 3; i++)
		if (op_ints(op, names[i], lists[i], 2) != 2)
			return op_error(op, "'%s' needs 2 values", names[i]);
	for (int i = 0; i < 2; i++)
		if (lists[0][i] < 1 || lists[2][i] < 1)
			return op_error(op, "a stride of %lld, a dilation of %lld", (long long)lists[0][i],
			                (long long)lists[2][i]);
	const int64_t groups = op_int(op, "groups", 1), parts = op_int(op, "deformable_groups", 1);
	if (groups < 1 || parts < 1 || parts > INT32_MAX || !divides(filter->dims[0], groups) ||
	    !divides(x->dims[1], parts))
		return op_error(op, "the channels do not divide into %lld and %lld groups",
		                (long long)groups, (long long)parts);
	return true;
}

bool infer_hook_deformable_conv(Op *op)
{
	const Type *x = infer_rank(op, 0, 4), *offset = x ? infer_rank(op, 1, 4) : NULL;
	const Type *filter = offset ? infer_rank(op, 2, 4) : NULL;
	if (!filter || !check_deformable(op, x, filter))
		return false;
	const Dim *same, *groups = dim_const(op->ctx, op_int(op, "groups", 1)),
					 *in = dim_mul(op->ctx, filter->dims[1], groups);
	const Type *mask = op_operand_named(op, "mask") ? infer_rank(op, 3, 4) : NULL;
	if (op_operand_named(op, "mask") && !mask)
		return false;
	if (!infer_same_dim(op, x->dims[1], in, "channels of the input and of the filter times groups",
	                    &same) ||
	    !check_offsets(op, x, filter, offset, offset, 2) ||
	    (mask && !check_offsets(op, x, filter, offset, mask, 1)))
		return false;
	// The offsets have the size of the result.
	const Dim *shape[] = {x->dims[0], filter->dims[0], offset->dims[2], offset->dims[3]};
	return infer_result_shape(op, 0, x->dtype, 4, shape);
}
