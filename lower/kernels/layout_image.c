// Convolutions for CUDA: kernel.conv and kernel.depthwise. Those for tensor cores run on blocked
// images, of eight channels, so that 16 bytes are of one pixel, and have a filter whose rows, one
// for each output channel, lie in the same order. All others are on [N x C x H x W], with filters
// turned so that the output channels lie side by side. Images with the channels behind are
// transposed around the kernel. Called by layout.c. What does not fit (other element types,
// paddings that only a run tells) stays for to-loops.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"
#include "lower/target/schedule.h"

#include <string.h>

enum {
	MAX_TAPS = 49, // of a depthwise filter: its weights stay in registers
	MIN_CHANNELS =
		4,          // of the result and group, of a product; fewer would leave most of a tile empty
	MIN_DEPTH = 8,  // products in a sum
	MAX_SIDES = 32, // height and width of a filter together: a bit for each row and column
	MAX_NARROW =
		8 // channels of group and result, in a group, that are narrow: of a tile few rows were used
};

// ---- what fits ----------------------------------------------------------------------------------

static bool image_conv_read(Op *op, Conv *cv)
{
	if (op->info->filter != FILTER_OUT)
		return false;
	const Value *x = op_operand(op, 0), *filter = op_operand(op, 1);
	const Type *t = x->type, *f = filter->type;
	if (!type_is_tensor(t) || !type_is_tensor(f) || t->rank != 4 || f->rank != 4 || t->lod ||
	    !dtype_is_f32_or_half(t->dtype) || f->dtype != t->dtype)
		return false;
	const Dim *channels = t->dims[channels_last(op) ? 3 : 1];
	for (int i = 0; i < 4; i++)
		if (!dim_is_const(f->dims[i]) || f->dims[i]->value < 1)
			return false;
	*cv = (Conv){.op = op,
	             .x = op_operand(op, 0),
	             .filter = op_operand(op, 1),
	             .oc = f->dims[0]->value,
	             .ic = f->dims[1]->value,
	             .kh = f->dims[2]->value,
	             .kw = f->dims[3]->value};
	cv->channels = dim_is_const(channels) ? channels->value : 0;
	return cv->channels > 0 && conv_window(cv);
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
	Value *inside = dim_is(type->dims[4], cv->oc)
	                    ? NULL
	                    : index_less(&n.b, n.at[4], index_const(&n.b, cv->oc));
	Value *at[4] = {n.at[4], n.at[1], n.at[2], n.at[3]};
	return nest_close(&n,
	                  load_or(&n.b, inside, build_scalar_f(&n.b, type->dtype, 0), cv->filter, at));
}

// Whether what is made of the filter is made once, while compiling.
static bool filter_stays(const Value *filter)
{
	const Op *op = filter->def;
	if (!op || !(op->info->traits & TRAIT_CONSTANT))
		return false;
	return op->code != OP_BUILTIN_GET_PARAMETER ||
	       !param_is_written(op->ctx, op_str(op, "name", ""));
}

// The filter as one panel: rows of all output channels, each a multiple of 16 bytes long.
static Value *filter_panel(const Conv *cv)
{
	Context *c = cv->op->ctx;
	const DType t = cv->filter->type->dtype;
	const int64_t vector = 16 / (int64_t)dtype_size(t), q = (cv->oc + vector - 1) / vector * vector;
	const Dim *const *f = cv->filter->type->dims,
					 *dims[5] = {dim_const(c, 1), f[1], f[2], f[3], dim_const(c, q)};
	const Type *type = type_tensor(c, t, 5, dims, 0);
	if (!filter_stays(cv->filter))
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

// [C x 1 x KH x KW] as [ceil(C / b) x KH x KW x b].
static Value *depthwise_blocks(const Layout *l, const Conv *cv)
{
	Context *c = l->ctx;
	Value *filter = cv->filter;
	const Dim *const *f = filter->type->dims, *lanes = dim_const(c, l->target->lanes);
	const Dim *blocks = dim_div(c, dim_add(c, f[0], dim_const(c, l->target->lanes - 1)), lanes);
	const Dim *dims[5] = {dim_const(c, 1), blocks, f[2], f[3], lanes};
	if (filter_stays(filter)) {
		Op *pack = layout_kernel(cv->op, OP_KERNEL_PACK_CONV,
		                         type_tensor(c, filter->type->dtype, 4, dims + 1, 0), 1, &filter);
		pack->results[0].name = filter->name;
		return &pack->results[0];
	}
	Builder b = builder_before(cv->op);
	Value *image = build_view(&b, filter, 4, (const Dim *[]){dims[0], f[0], f[2], f[3]});
	image = image ? block_by_nest(&b, image, type_tensor(c, filter->type->dtype, 5, dims, 0))
	              : NULL;
	return image ? build_view(&b, image, 4, dims + 1) : NULL;
}

static Value *image_depthwise(Layout *l, const Conv *cv, ImageForm form, const Type *out, Value *x)
{
	Context *c = l->ctx;
	Builder b = builder_before(cv->op);
	const Dim *const *f = cv->filter->type->dims, *dims[4] = {f[0], f[2], f[3], dim_const(c, 1)};
	const bool blocked = form == IMAGE_BLOCKED;
	Value *w = blocked ? depthwise_blocks(l, cv) : build_view(&b, cv->filter, 4, dims);
	if (blocked)
		x = blocked_get(l, x);
	return w && x
	           ? &image_kernel(cv, OP_KERNEL_DEPTHWISE, blocked ? type_blocked(l, out) : out, x, w)
	                  ->results[0]
	           : NULL;
}

static Value *image_product(const Conv *cv, const Type *out, Value *x, Value *w, int64_t groups,
                            const CudaSchedule *s)
{
	Context *c = cv->op->ctx;
	Op *kernel = image_kernel(cv, OP_KERNEL_CONV, out, x, w);
	op_set_attr(kernel, "groups", attr_int(c, groups));
	op_set_attr(kernel, "in_channels", attr_int(c, cv->ic));
	op_set_attr(kernel, "plain_input", attr_bool(c, x->type->rank == 4));
	if (s) {
		op_set_attr(kernel, "schedule", attr_str(c, s->tile->name));
		op_set_attr(kernel, "split", attr_int(c, s->split));
	}
	return &kernel->results[0];
}

// Through cuDNN, which takes the filter as it lies: panels of one output channel.
static Value *image_library(const Layout *l, const Conv *cv, const Type *out, Value *x,
                            int64_t groups)
{
	Builder b = builder_before(cv->op);
	const Dim *const *f = cv->filter->type->dims,
					 *dims[5] = {f[0], f[1], f[2], f[3], dim_const(b.ctx, 1)};
	Value *w = build_view(&b, cv->filter, 5, dims);
	const CudaSchedule s = cuda_schedule_library(l->allow_tf32);
	return w ? image_product(cv, out, x, w, groups, &s) : NULL;
}

// Of plain images: a product for each image and group, of output channels by pixels. Of blocked
// ones: for each group, of the pixels of all images by output channels.
static CudaProduct product_of(const Layout *l, const Conv *cv, ImageForm form, const Type *out,
                              int64_t groups)
{
	Context *c = l->ctx;
	const int64_t lanes = l->target->lanes, share = cv->oc / groups, taps = cv->kh * cv->kw;
	const Dim *pixels = dim_mul(c, out->dims[2], out->dims[3]), *g = dim_const(c, groups);
	CudaProduct p = {.ctx = c, .dtype = out->dtype, .tf32 = l->allow_tf32};
	if (form == IMAGE_PLAIN) {
		p.batches = dim_mul(c, out->dims[0], g);
		p.m = dim_const(c, share);
		p.n = pixels;
		p.k = dim_const(c, cv->ic * taps);
		return p;
	}
	p.batches = g;
	p.m = dim_mul(c, out->dims[0], pixels);
	p.n = dim_const(c, (share + lanes - 1) / lanes * lanes);
	p.k = dim_const(c, (cv->ic + lanes - 1) / lanes * lanes * taps);
	return p;
}

Value *conv_image(Layout *l, const Conv *cv, ImageForm form, const Type *out, Value *x,
                  int64_t groups)
{
	Context *c = l->ctx;
	const bool blocked = form == IMAGE_BLOCKED;
	if (l->cuda_libs && library_takes_conv(c, cv, x->type, out))
		return image_library(l, cv, out, x, groups);
	const CudaProduct product = product_of(l, cv, form, out, groups);
	Value *w = blocked ? blocked_get(l, cv->filter) : filter_panel(cv);
	if (blocked) {
		x = blocked_get(l, x);
		out = type_blocked(l, out);
	}
	if (!w || !x)
		return NULL;
	if (form == IMAGE_NARROW)
		return image_product(cv, out, x, w, groups, NULL);
	const CudaSchedule s = cuda_schedule(&product);
	if (s.split == 1)
		return image_product(cv, out, x, w, groups, &s);
	const Dim *dims[6] = {dim_const(c, s.split)};
	memcpy(dims + 1, out->dims, (size_t)out->rank * sizeof *dims);
	Builder b = builder_before(cv->op);
	return build_parts_sum(
		&b, image_product(cv, type_tensor(c, DT_F32, out->rank + 1, dims, 0), x, w, groups, &s),
		out->dtype);
}

ImageForm conv_image_form(const Layout *l, const Conv *cv, int64_t groups)
{
	const int64_t lanes = l->target->lanes, share = cv->oc / groups;
	if (cv->ic * cv->kh * cv->kw < MIN_DEPTH || cv->kh + cv->kw > MAX_SIDES)
		return IMAGE_NARROW;
	if (layout_has_blocks(l, cv->x->type->dtype) &&
	    (groups == 1 || (cv->ic % lanes == 0 && share % lanes == 0)))
		return IMAGE_BLOCKED;
	const bool narrow = share < MIN_CHANNELS ||
	                    (groups > 1 && share <= MAX_NARROW && cv->ic <= MAX_NARROW);
	return narrow ? IMAGE_NARROW : IMAGE_PLAIN;
}

// One filter for each channel, whose weights fit into registers.
static ImageForm depthwise_form(const Layout *l, const Conv *cv, int64_t groups)
{
	if (cv->ic != 1 || groups != cv->channels || cv->kh * cv->kw > MAX_TAPS)
		return IMAGE_NONE;
	return layout_has_blocks(l, cv->x->type->dtype) && cv->oc == groups ? IMAGE_BLOCKED
	                                                                    : IMAGE_PLAIN;
}

// ---- handlers -----------------------------------------------------------------------------------

bool layout_image_conv(Layout *l, Op *op)
{
	static const int64_t to_front[4] = {0, 3, 1, 2}, to_back[4] = {0, 2, 3, 1};
	Conv cv;
	if (!image_conv_read(op, &cv))
		return false;
	const int64_t groups = op_int(op, "groups", 1);
	const bool last = channels_last(op);
	ImageForm form = depthwise_form(l, &cv, groups);
	const bool depthwise = form != IMAGE_NONE;
	if (!depthwise)
		form = conv_image_form(l, &cv, groups);
	Builder b = builder_before(op);
	const Type *out = op->results[0].type;
	Value *x = last ? move_axes(&b, cv.x, to_front) : cv.x;
	if (last)
		out = type_tensor(l->ctx, out->dtype, 4,
		                  (const Dim *[]){out->dims[0], out->dims[3], out->dims[1], out->dims[2]},
		                  0);
	if (!x)
		return false;
	Value *made = depthwise ? image_depthwise(l, &cv, form, out, x)
	                        : conv_image(l, &cv, form, out, x, groups);
	if (made && form == IMAGE_BLOCKED && !last)
		return blocked_set(l, op, made), true;
	if (made && form == IMAGE_BLOCKED)
		made = unblock_by_nest(&b, made, out);
	if (made && last)
		made = move_axes(&b, made, to_back);
	if (!made)
		return false;
	made->name = op->results[0].name;
	op_replace(op, &made);
	return true;
}
