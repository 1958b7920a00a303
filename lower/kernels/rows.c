// Softmax and norms to kernels that take a row at a time. They read their input through a region,
// so that fusion can put work into them, and write through another. C has them for f32; CUDA for
// 16-bit types as well, with f32 between the regions. Called by decompose.c and attention.c.
#include "lower/kernels/rows.h"
#include "ir/build/build.h"
#include "ir/infer/geometry.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

static Value *cast_to(Builder *b, Value *v, DType dtype)
{
	return v && v->type->dtype != dtype
	           ? build1(b, OP_PD_CAST, v, "dtype", attr_dtype(b->ctx, dtype), NULL)
	           : v;
}

bool region_read(Op *kernel, Region *r, Value *x)
{
	Context *c = kernel->ctx;
	Block *block = block_new(c, r);
	Value *operands[MAX_RANK + 1] = {x};
	for (int i = 0; i < x->type->rank; i++)
		operands[i + 1] = block_add_arg(c, block, type_index(c));
	Builder b = builder_at_end(c, block, kernel->loc);
	Value *v = cast_to(&b, build(&b, OP_LOOP_LOAD, x->type->rank + 1, operands, NULL), DT_F32);
	return v && build_op(&b, OP_LOOP_YIELD, 1, &v, 0, NULL);
}

bool region_pass(Op *kernel, Region *r)
{
	Context *c = kernel->ctx;
	const Type *t = kernel->results[0].type;
	Block *block = block_new(c, r);
	Value *acc = block_add_arg(c, block, type_scalar(c, DT_F32));
	for (int i = 0; i < t->rank; i++)
		block_add_arg(c, block, type_index(c));
	Builder b = builder_at_end(c, block, kernel->loc);
	acc = cast_to(&b, acc, t->dtype);
	return acc && build_op(&b, OP_LOOP_YIELD, 1, &acc, 0, NULL) != NULL;
}

// A kernel over `x` element by element, whose result has elements of type t: regions input and
// epilogue.
static Op *kernel_reading(Op *op, enum OpCode code, Value *x, DType t, int noperand,
                          Value *const *operands)
{
	const Type *result = type_like(op->ctx, x->type, t);
	Op *kernel = op_new(op->ctx, code, op->loc, 1, &result, noperand, operands, 2, 0);
	op_insert_before(op, kernel);
	if (region_read(kernel, &kernel->regions[0], x) && region_pass(kernel, &kernel->regions[1]))
		return kernel;
	return NULL;
}

static bool dtype_has_kernel(const PassContext *p, DType t)
{
	return t == DT_F32 || (p->target->half && dtype_is_half(t));
}

// ---- softmax ------------------------------------------------------------------------------------

static Value *swap_with_last(Builder *b, Value *x, int axis)
{
	int64_t perm[MAX_RANK];
	int last = x->type->rank - 1;
	for (int i = 0; i <= last; i++)
		perm[i] = i;
	perm[axis] = last;
	perm[last] = axis;
	return build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(b->ctx, last + 1, perm), NULL);
}

// Whether what stands behind the axis fills a vector.
static bool axis_is_wide(const Target *target, const Type *t, int64_t axis)
{
	int64_t behind = 1;
	for (int64_t i = axis + 1; i < t->rank && behind < target->lanes; i++)
		behind = dim_is_const(t->dims[i]) ? behind * t->dims[i]->value : target->lanes;
	return behind >= target->lanes;
}

// Whether a kernel computes it: a GPU's does along any axis, a CPU's along few far ones.
static bool softmax_has_kernel(PassContext *p, const Op *op, int64_t axis)
{
	const Type *t = op_operand(op, 0)->type;
	if (!dtype_has_kernel(p, t->dtype) || t->rank < 1 || op->results[0].type != t || axis < 0 ||
	    axis >= t->rank)
		return false;
	return p->target->simt || (op->code != OP_PD_LOG_SOFTMAX && !axis_is_wide(p->target, t, axis));
}

// CUDA has threads side by side behind any axis. In C nests have lanes side by side there, else the
// axis is moved to the end; and nests evaluate the logarithm faster.
bool decompose_hook_softmax(PassContext *p, Op *op)
{
	Value *x = op_operand(op, 0);
	const Type *t = x->type;
	const bool log = op->code == OP_PD_LOG_SOFTMAX;
	int64_t axis = op_int(op, "axis", -1);
	axis = axis < 0 ? axis + t->rank : axis;
	if (!softmax_has_kernel(p, op, axis))
		return true;
	Builder b = builder_before(op);
	const bool last = axis == t->rank - 1, swap = !last && !p->target->simt;
	if (swap && !(x = swap_with_last(&b, x, (int)axis)))
		return false;
	Op *kernel = kernel_reading(op, OP_KERNEL_SOFTMAX, x, t->dtype, 0, NULL);
	if (!kernel)
		return false;
	if (!last && !swap)
		op_set_attr(kernel, "axis", attr_int(op->ctx, axis));
	if (log)
		op_set_attr(kernel, "log", attr_bool(op->ctx, true));
	Value *out = &kernel->results[0];
	if (swap && !(out = swap_with_last(&b, out, (int)axis)))
		return false;
	op_replace(op, &out);
	return true;
}

// ---- norms --------------------------------------------------------------------------------------

// The trailing `axes` axes of x normalised, as elements of type t.
static Value *norm_kernel(Op *op, Value *x, DType t, int axes, Value *scale, Value *bias)
{
	Op *kernel = kernel_reading(op, OP_KERNEL_LAYER_NORM, x, t, 2, (Value *[]){scale, bias});
	if (!kernel)
		return NULL;
	op_set_attr(kernel, "epsilon", attr_float(op->ctx, op_float(op, "epsilon", 1e-5)));
	op_set_attr(kernel, "axes", attr_int(op->ctx, axes));
	return &kernel->results[0];
}

bool decompose_hook_layer_norm(PassContext *p, Op *op)
{
	Value *x = op_operand(op, 0), *scale = op_operand(op, 1), *bias = op_operand(op, 2);
	const Type *t = x->type;
	int64_t begin = op_int(op, "begin_norm_axis", 1);
	if (!dtype_has_kernel(p, t->dtype) || op->results[0].type != t || begin < 0 ||
	    begin >= t->rank || (scale && !dtype_has_kernel(p, scale->type->dtype)) ||
	    (bias && !dtype_has_kernel(p, bias->type->dtype)))
		return true;
	Builder b = builder_before(op);
	Value *factor = cast_to(&b, scale, DT_F32), *shift = cast_to(&b, bias, DT_F32);
	if ((scale && !factor) || (bias && !shift))
		return false;
	Value *out = norm_kernel(op, x, t->dtype, (int)(t->rank - begin), factor, shift);
	if (!out)
		return false;
	op_replace(op, &out);
	return true;
}

// v of one element per channel, along axis 1 of a tensor of that rank.
static Value *along_channels(Builder *b, Value *v, int rank)
{
	const Dim *dims[MAX_RANK];
	for (int i = 0; i < rank; i++)
		dims[i] = dim_const(b->ctx, 1);
	dims[1] = v->type->dims[0];
	return build1(b, OP_PD_RESHAPE, v, "shape", attr_dims(b->ctx, rank, dims), NULL);
}

static Value *scaled_channels(Builder *b, Value *out, Value *scale, Value *bias)
{
	const int rank = out->type->rank;
	scale = cast_to(b, scale, DT_F32);
	bias = cast_to(b, bias, DT_F32);
	if (scale && (scale = along_channels(b, scale, rank)))
		out = build2(b, OP_PD_MULTIPLY, out, scale, NULL);
	if (out && bias && (bias = along_channels(b, bias, rank)))
		out = build2(b, OP_PD_ADD, out, bias, NULL);
	return out;
}

static bool norm_has_kernel(const PassContext *p, const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	const Value *scale = op_operand(op, 1), *bias = op_operand(op, 2);
	return p->target->simt && dtype_has_kernel(p, t->dtype) && t->rank >= 3 && t->rank < MAX_RANK &&
	       op->results[0].type == t && (!scale || dtype_has_kernel(p, scale->type->dtype)) &&
	       (!bias || dtype_has_kernel(p, bias->type->dtype));
}

// From the kernel's f32 on, scale and bias included, all is fused into its epilogue.
bool decompose_hook_norm_of_channels(PassContext *p, Op *op)
{
	Context *c = op->ctx;
	Value *x = op_operand(op, 0), *scale = op_operand(op, 1), *bias = op_operand(op, 2), *rows = x;
	const Type *t = x->type;
	if (!norm_has_kernel(p, op))
		return true;
	Builder b = builder_before(op);
	if (op->code == OP_PD_GROUP_NORM) {
		const Dim *dims[MAX_RANK + 1] = {t->dims[0], dim_const(c, op_int(op, "groups", 1))};
		if (channels_last(op))
			return true;
		dims[2] = dim_div(c, t->dims[1], dims[1]);
		for (int d = 2; d < t->rank; d++)
			dims[d + 1] = t->dims[d];
		rows = build1(&b, OP_PD_RESHAPE, x, "shape", attr_dims(c, t->rank + 1, dims), NULL);
	}
	Value *out = rows ? norm_kernel(op, rows, DT_F32, rows->type->rank - 2, NULL, NULL) : NULL;
	if (out && rows != x)
		out = build1(&b, OP_PD_RESHAPE, out, "shape", attr_dims(c, t->rank, t->dims), NULL);
	out = out ? scaled_channels(&b, out, scale, bias) : NULL;
	out = cast_to(&b, out, t->dtype);
	if (!out)
		return false;
	op_replace(op, &out);
	return true;
}
