// Convolutions of images in plain layout, for CUDA: kernel.conv and kernel.depthwise on [N x C x H x W]. Filters are turned
// so that the output channels lie side by side; images with the channels behind are transposed around the kernel. Called by
// layout.c. What does not fit (other element types, few channels, paddings that only a run tells) stays for to-loops.
#include "layout.h"
#include "../ir/define.h"
#include "../ir/geometry.h"

#include <string.h>

enum {
	MAX_TAPS = 49,    // of a depthwise filter: its weights stay in registers
	MIN_CHANNELS = 4, // of the result and group; fewer would leave most of a tile empty
	MIN_DEPTH = 8,    // products in a sum
	MAX_SIDES = 32    // height and width of a filter together: a bit for each row and column
};

// ---- what fits ----------------------------------------------------------------------------------

bool conv_image_dtype(DType t)
{
	return t == DT_F32 || t == DT_F16 || t == DT_BF16;
}

static bool window_read(Conv *cv)
{
	Window w;
	if (!window_of_conv(cv->op, &w) || w.n != 2)
		return false;
	for (int i = 0; i < 2; i++) {
		if (!dim_is_const(w.before[i]) || !dim_is_const(w.after[i]))
			return false;
		cv->strides[i] = w.stride[i];
		cv->dilations[i] = w.dilation[i];
		cv->paddings[i] = w.before[i]->value;
		cv->paddings[2 + i] = w.after[i]->value;
	}
	return true;
}

static bool image_conv_read(Op *op, Conv *cv)
{
	if (op->code != OP_PD_CONV2D && op->code != OP_PD_DEPTHWISE_CONV2D)
		return false;
	const Value *x = op_operand(op, 0), *filter = op_operand(op, 1);
	const Type *t = x->type, *f = filter->type;
	if (!type_is_tensor(t) || !type_is_tensor(f) || t->rank != 4 || f->rank != 4 || t->lod || !conv_image_dtype(t->dtype) ||
	    f->dtype != t->dtype)
		return false;
	const Dim *channels = t->dims[channels_last(op) ? 3 : 1];
	for (int i = 0; i < 4; i++)
		if (!dim_is_const(f->dims[i]) || f->dims[i]->value < 1)
			return false;
	*cv = (Conv){.op = op, .x = op_operand(op, 0), .filter = op_operand(op, 1), .oc = f->dims[0]->value, .ic = f->dims[1]->value,
	             .kh = f->dims[2]->value, .kw = f->dims[3]->value};
	cv->channels = dim_is_const(channels) ? channels->value : 0;
	return cv->channels > 0 && window_read(cv);
}

// ---- building -----------------------------------------------------------------------------------

static Value *move_axes(Builder *b, Value *x, const int64_t *perm)
{
	return build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(b->ctx, 4, perm), NULL);
}

// [OC x C x KH x KW] as [1 x C x KH x KW x q] by a nest, when only a run has the filter.
static Value *turn_by_nest(const Conv *cv, const Type *type)
{
	Builder before = builder_before(cv->op);
	Nest n = nest_open(&before, type);
	Value *inside = dim_is(type->dims[4], cv->oc) ? NULL : index_less(&n.b, n.at[4], index_const(&n.b, cv->oc));
	Value *at[4] = {n.at[4], n.at[1], n.at[2], n.at[3]};
	return nest_close(&n, load_or(&n.b, inside, build_scalar_f(&n.b, type->dtype, 0), cv->filter, at));
}

// The filter as one panel: rows of all output channels, each a multiple of 16 bytes long.
static Value *filter_panel(const Conv *cv)
{
	Context *c = cv->op->ctx;
	const DType t = cv->filter->type->dtype;
	const int64_t vector = 16 / (int64_t)dtype_size(t), q = (cv->oc + vector - 1) / vector * vector;
	const Dim *const *f = cv->filter->type->dims, *dims[5] = {dim_const(c, 1), f[1], f[2], f[3], dim_const(c, q)};
	const Type *type = type_tensor(c, t, 5, dims, 0);
	if (!cv->filter->def || !(cv->filter->def->info->traits & TRAIT_CONSTANT))
		return turn_by_nest(cv, type);
	Op *pack = layout_kernel(cv->op, OP_KERNEL_PACK_CONV, type, 1, (Value *[]){cv->filter});
	pack->results[0].name = cv->filter->name;
	return &pack->results[0];
}

static Op *image_kernel(const Conv *cv, enum OpCode code, const Type *out, Value *x, Value *w)
{
	Context *c = cv->op->ctx;
	Op *kernel = layout_kernel(cv->op, code, out, 2, (Value *[]){x, w});
	op_set_attr(kernel, "strides", attr_ints(c, 2, cv->strides));
	op_set_attr(kernel, "paddings", attr_ints(c, 4, cv->paddings));
	op_set_attr(kernel, "dilations", attr_ints(c, 2, cv->dilations));
	epilogue_identity(kernel, &kernel->regions[0]);
	return kernel;
}

static Value *image_depthwise(const Conv *cv, const Type *out, Value *x)
{
	Context *c = cv->op->ctx;
	Builder b = builder_before(cv->op);
	const Dim *const *f = cv->filter->type->dims, *dims[4] = {f[0], f[2], f[3], dim_const(c, 1)};
	Value *w = build_view(&b, cv->filter, 4, dims);
	return w ? &image_kernel(cv, OP_KERNEL_DEPTHWISE, out, x, w)->results[0] : NULL;
}

static Value *image_product(const Conv *cv, const Type *out, Value *x, Value *w, int64_t groups, const CudaSchedule *s)
{
	Context *c = cv->op->ctx;
	Op *kernel = image_kernel(cv, OP_KERNEL_CONV, out, x, w);
	op_set_attr(kernel, "groups", attr_int(c, groups));
	op_set_attr(kernel, "in_channels", attr_int(c, cv->ic));
	op_set_attr(kernel, "plain_input", attr_bool(c, true));
	op_set_attr(kernel, "schedule", attr_str(c, s->tile->name));
	op_set_attr(kernel, "split", attr_int(c, s->split));
	return &kernel->results[0];
}

// Through cuDNN, which takes the filter as it lies: panels of one output channel.
static Value *image_library(const Layout *l, const Conv *cv, const Type *out, Value *x, int64_t groups)
{
	Builder b = builder_before(cv->op);
	const Dim *const *f = cv->filter->type->dims, *dims[5] = {f[0], f[1], f[2], f[3], dim_const(b.ctx, 1)};
	Value *w = build_view(&b, cv->filter, 5, dims);
	const CudaSchedule s = cuda_schedule_library(l->allow_tf32);
	return w ? image_product(cv, out, x, w, groups, &s) : NULL;
}

Value *conv_image(const Layout *l, const Conv *cv, const Type *out, Value *x, int64_t groups)
{
	Context *c = cv->op->ctx;
	if (l->cuda_libs && library_takes_conv(c, cv, x->type, out))
		return image_library(l, cv, out, x, groups);
	Value *w = filter_panel(cv);
	if (!w)
		return NULL;
	const CudaProduct product = {c, dim_mul(c, out->dims[0], dim_const(c, groups)), dim_const(c, cv->oc / groups),
	                             dim_mul(c, out->dims[2], out->dims[3]), dim_const(c, cv->ic * cv->kh * cv->kw),
	                             out->dtype, l->allow_tf32, false};
	const CudaSchedule s = cuda_schedule(&product);
	if (s.split == 1)
		return image_product(cv, out, x, w, groups, &s);
	const Dim *const *d = out->dims, *dims[5] = {dim_const(c, s.split), d[0], d[1], d[2], d[3]};
	Builder b = builder_before(cv->op);
	return build_parts_sum(&b, image_product(cv, type_tensor(c, DT_F32, 5, dims, 0), x, w, groups, &s), out->dtype);
}

bool conv_image_fits(const Conv *cv, int64_t groups)
{
	return cv->oc / groups >= MIN_CHANNELS && cv->ic * cv->kh * cv->kw >= MIN_DEPTH && cv->kh + cv->kw <= MAX_SIDES;
}

// ---- handlers -----------------------------------------------------------------------------------

bool layout_image_conv(Layout *l, Op *op)
{
	static const int64_t to_front[4] = {0, 3, 1, 2}, to_back[4] = {0, 2, 3, 1};
	Conv cv;
	if (!image_conv_read(op, &cv))
		return false;
	const int64_t groups = op_int(op, "groups", 1);
	const bool depthwise = cv.ic == 1 && groups == cv.channels && cv.kh * cv.kw <= MAX_TAPS, last = channels_last(op);
	if (!depthwise && !conv_image_fits(&cv, groups))
		return false;
	Builder b = builder_before(op);
	const Type *out = op->results[0].type;
	Value *x = last ? move_axes(&b, cv.x, to_front) : cv.x;
	if (last)
		out = type_tensor(l->ctx, out->dtype, 4, (const Dim *[]){out->dims[0], out->dims[3], out->dims[1], out->dims[2]}, 0);
	if (!x)
		return false;
	Value *made = depthwise ? image_depthwise(&cv, out, x) : conv_image(l, &cv, out, x, groups);
	if (made && last)
		made = move_axes(&b, made, to_back);
	if (!made)
		return false;
	made->name = op->results[0].name;
	op_replace(op, &made);
	return true;
}
