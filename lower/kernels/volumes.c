// Convolutions of volumes as those of images: each position along the depth of the result is an
// image, whose channels are those of all the slices that its windows reach. Called by decompose.c,
// through the operator table.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

typedef struct Volume {
	Op *op;
	Window w;
	const Dim *deep, *taps, *depth; // of the result, of the filter, of the input
} Volume;

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

// [N * deep x C * taps x H x W]; slices outside of the volume are zero.
static Value *slices_gathered(Builder *b, const Volume *v)
{
	Context *c = b->ctx;
	Value *x = op_operand(v->op, 0);
	const Dim *const *d = x->type->dims,
					 *dims[4] = {dim_mul(c, d[0], v->deep), dim_mul(c, d[1], v->taps), d[3], d[4]};
	Nest n = nest_open(b, type_tensor(c, x->type->dtype, 4, dims, 0));
	Value *deep = index_dim(&n.b, v->deep), *taps = index_dim(&n.b, v->taps);
	Value *z = index_times(&n.b, index_mod(&n.b, n.at[0], deep), v->w.stride[0]);
	z = index_add(&n.b, z, index_times(&n.b, index_mod(&n.b, n.at[1], taps), v->w.dilation[0]));
	z = index_sub(&n.b, z, index_dim(&n.b, v->w.before[0]));
	Value *inside = window_overhangs(&v->w, 0) ? index_inside(&n.b, z, v->depth) : NULL;
	Value *at[5] = {index_div(&n.b, n.at[0], deep), index_div(&n.b, n.at[1], taps), z, n.at[2],
	                n.at[3]};
	Value *zero = inside ? build_scalar_f(&n.b, x->type->dtype, 0) : NULL;
	return nest_close(&n, load_or(&n.b, inside, zero, x, at));
}

// The pieces of the filter lie as the gathered channels do.
static Value *filter_of_image(Builder *b, const Volume *v)
{
	Value *filter = op_operand(v->op, 1);
	const Dim *const *f = filter->type->dims;
	return build_view(b, filter, 4, (const Dim *[]){f[0], dim_mul(b->ctx, f[1], f[2]), f[3], f[4]});
}

bool decompose_hook_conv3d_of_images(PassContext *p, Op *op)
{
	Volume v = {0};
	(void)p;
	if (!volume_read(op, &v))
		return true;
	Builder b = builder_before(op);
	const Type *t = op->results[0].type;
	Value *x = slices_gathered(&b, &v), *filter = filter_of_image(&b, &v);
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
