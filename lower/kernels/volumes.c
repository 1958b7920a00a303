// Convolutions of volumes as those of images: each position along the depth of the result is an
// image, whose channels are those of all the slices that its windows reach. Transposed ones
// likewise: those of images, whose channels are the phases along the depth as well
// (layout_deconv.c). Called by decompose.c, through the operator table.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

typedef struct Volume {
	Op *op;
	Window w;
	const Dim *deep, *taps, *depth; // of the result, of the filter, of the input
} Volume;

// Those that layout_volume.c makes kernels of: each channel by itself, or each pixel.
static bool layout_takes_volume(const PassContext *p, const Op *op, const Volume *v)
{
	const Type *f = op_operand(op, 1)->type;
	const int64_t groups = op_int(op, "groups", 1);
	if (!p->target->channel_lanes)
		return false;
	return volume_is_depthwise(op) || (groups == 1 && volume_is_pointwise(&v->w, f));
}

static bool volume_read(Op *op, Volume *v)
{
	const Value *x = op_operand(op, 0), *filter = op_operand(op, 1);
	v->op = op;
	if (x->type->dtype != DT_F32 || filter->type->dtype != DT_F32 || channels_last(op) ||
	    !window_of_conv(op, &v->w) || v->w.n != 3)
		return false;
	for (int i = 0; i < 3; i++)
		if (!dim_is_const(v->w.before[i]) || !dim_is_const(v->w.after[i]))
			return false;
	for (int i = 0; i < 5; i++)
		if (!dim_is_const(filter->type->dims[i]))
			return false;
	v->deep = op->results[0].type->dims[2];
	v->taps = filter->type->dims[2];
	v->depth = x->type->dims[2];
	return dim_is_const(v->deep) && dim_is_const(v->depth) && dim_is_const(x->type->dims[1]);
}

// Which slices of x are the channels of image i: those at i * stride + t * dilation - before, t <
// taps.
typedef struct Slices {
	Value *x;
	const Dim *images, *taps, *before;
	int64_t stride, dilation;
	bool overhang; // some lie outside of the volume, and are zero
} Slices;

// [N * images x C * taps x H x W].
static Value *slices_gathered(Builder *b, const Slices *s)
{
	Context *c = b->ctx;
	const Type *x = s->x->type;
	const Dim *const *d = x->dims, *dims[4] = {dim_mul(c, d[0], s->images),
	                                           dim_mul(c, d[1], s->taps), d[3], d[4]};
	Nest n = nest_open(b, type_tensor(c, x->dtype, 4, dims, 0));
	Value *images = index_dim(&n.b, s->images), *taps = index_dim(&n.b, s->taps);
	Value *z = index_times(&n.b, index_mod(&n.b, n.at[0], images), s->stride);
	z = index_add(&n.b, z, index_times(&n.b, index_mod(&n.b, n.at[1], taps), s->dilation));
	z = index_sub(&n.b, z, index_dim(&n.b, s->before));
	Value *inside = s->overhang ? index_inside(&n.b, z, d[2]) : NULL;
	Value *at[5] = {index_div(&n.b, n.at[0], images), index_div(&n.b, n.at[1], taps), z, n.at[2],
	                n.at[3]};
	Value *zero = inside ? build_scalar_f(&n.b, x->dtype, 0) : NULL;
	return nest_close(&n, load_or(&n.b, inside, zero, s->x, at));
}

// The pieces of the filter lie as the gathered channels do.
static Value *filter_of_image(Builder *b, const Volume *v)
{
	Value *filter = op_operand(v->op, 1);
	const Dim *const *f = filter->type->dims;
	return build_view(b, filter, 4, (const Dim *[]){f[0], dim_mul(b->ctx, f[1], f[2]), f[3], f[4]});
}

// Whether windows reach along the depth alone.
static bool volume_is_deep(const Volume *v)
{
	const Dim *const *f = op_operand(v->op, 1)->type->dims;
	for (int i = 1; i < 3; i++)
		if (!dim_is(f[2 + i], 1) || v->w.stride[i] != 1 || !dim_is(v->w.before[i], 0) ||
		    !dim_is(v->w.after[i], 0))
			return false;
	return true;
}

// Such a convolution is one of images whose rows are the slices: nothing moves.
static Value *conv_of_slices(Builder *b, const Volume *v)
{
	Context *c = b->ctx;
	Value *x = op_operand(v->op, 0), *filter = op_operand(v->op, 1);
	const Dim *const *d = x->type->dims, *const *f = filter->type->dims;
	Window w = {.n = 2,
	            .before = {v->w.before[0], v->w.before[1]},
	            .after = {v->w.after[0], v->w.after[1]}};
	for (int i = 0; i < 2; i++) {
		w.stride[i] = v->w.stride[i];
		w.dilation[i] = v->w.dilation[i];
	}
	x = build_view(b, x, 4, (const Dim *[]){d[0], d[1], d[2], dim_mul(c, d[3], d[4])});
	filter = build_view(b, filter, 4, (const Dim *[]){f[0], f[1], f[2], f[3]});
	Value *out = x && filter ? build_image_conv(b, x, filter, &w, op_int(v->op, "groups", 1))
	                         : NULL;
	return out ? build_view(b, out, 5, v->op->results[0].type->dims) : NULL;
}

bool decompose_hook_conv3d_of_images(PassContext *p, Op *op)
{
	Volume v = {0};
	if (!volume_read(op, &v) || layout_takes_volume(p, op, &v))
		return true;
	Builder b = builder_before(op);
	if (volume_is_deep(&v)) {
		Value *made = conv_of_slices(&b, &v);
		if (!made)
			return false;
		made->name = op->results[0].name;
		op_replace(op, &made);
		return true;
	}
	const Type *t = op->results[0].type;
	const Slices s = {.x = op_operand(op, 0),
	                  .images = v.deep,
	                  .taps = v.taps,
	                  .before = v.w.before[0],
	                  .stride = v.w.stride[0],
	                  .dilation = v.w.dilation[0],
	                  .overhang = window_overhangs(&v.w, 0)};
	Value *x = slices_gathered(&b, &s), *filter = filter_of_image(&b, &v);
	Value *out = x && filter ? build_image_conv(&b, x, filter, &v.w, op_int(op, "groups", 1))
	                         : NULL;
	if (!out)
		return false;
	out = build_view(&b, out, 5,
	                 (const Dim *[]){t->dims[0], t->dims[2], t->dims[1], t->dims[3], t->dims[4]});
	out = out ? build1(&b, OP_PD_TRANSPOSE, out, "perm",
	                   attr_ints(b.ctx, 5, (int64_t[]){0, 2, 1, 3, 4}), NULL)
	          : NULL;
	if (!out)
		return false;
	out->name = op->results[0].name;
	op_replace(op, &out);
	return true;
}

// ---- transposed ---------------------------------------------------------------------------------

// [IC x OC x KD x KH x KW] to [IC * taps x phases * OC x KH x KW].
static Tensor *filter_of_phases(Context *c, const Tensor *w, const Phase *p)
{
	const int64_t oc = w->dims[1];
	const size_t image = (size_t)(w->dims[3] * w->dims[4]) * dtype_size(w->dtype);
	const int64_t dims[4] = {w->dims[0] * p->taps, p->stride * oc, w->dims[3], w->dims[4]};
	Tensor *t = tensor_new(c->arena, w->dtype, 4, dims);
	if (!t)
		return NULL;
	char *to = t->data;
	for (int64_t i = 0; i < dims[0]; i++)
		for (int64_t o = 0; o < dims[1]; o++, to += image) {
			const int64_t tap = phase_tap(p, o / oc, i % p->taps);
			const int64_t from = (i / p->taps * oc + o % oc) * w->dims[2] + tap;
			if (tap >= 0)
				memcpy(to, (const char *)w->data + (size_t)from * image, image);
		}
	return t;
}

// The result from [N * count x phases * OC x H x W].
static Value *phases_to_volume(Op *op, Value *phases, const Phase *p)
{
	const Type *t = op->results[0].type;
	Builder before = builder_before(op);
	Nest n = nest_open(&before, t);
	Value *phase, *image = phase_split(&n.b, p, n.at[2], &phase);
	image = index_add(&n.b, index_mul(&n.b, n.at[0], index_dim(&n.b, p->count)), image);
	Value *channel = index_mul(&n.b, phase, index_dim(&n.b, t->dims[1]));
	Value *at[4] = {image, index_add(&n.b, channel, n.at[1]), n.at[3], n.at[4]};
	return nest_close(&n, load(&n.b, phases, at));
}

bool decompose_hook_conv3d_transpose_of_images(PassContext *pass, Op *op)
{
	Volume v = {0};
	Phase p;
	(void)pass;
	const Value *filter = op_operand(op, 1);
	const Tensor *w = value_constant(filter);
	if (!w || op_int(op, "groups", 1) != 1 || !volume_read(op, &v) ||
	    !phase_read(op->ctx, &v.w, 0, v.deep, &p))
		return true;
	Tensor *t = filter_of_phases(op->ctx, w, &p);
	if (!t)
		return false;
	Builder b = builder_before(op);
	const Slices s = {.x = op_operand(op, 0),
	                  .images = p.count,
	                  .taps = dim_const(op->ctx, p.taps),
	                  .before = dim_const(op->ctx, p.pad[0]),
	                  .stride = 1,
	                  .dilation = 1,
	                  .overhang = p.pad[0] > 0 || p.pad[1] > 0};
	Value *x = slices_gathered(&b, &s);
	Value *phases = x ? build_image_transposed(&b, x,
	                                           build_parameter(&b, filter->name, "slices", t), &v.w,
	                                           op->results[0].type->dims + 3)
	                  : NULL;
	Value *out = phases ? phases_to_volume(op, phases, &p) : NULL;
	if (!out)
		return false;
	op_replace(op, &out);
	return true;
}
