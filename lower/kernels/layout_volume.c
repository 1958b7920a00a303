// Volumes [N x C x D x H x W] as images whose rows are those of all slices, [N x C x D * H x W],
// where nothing looks from slice to slice but depthwise convolutions, which kernel.depthwise knows:
// these, convolutions of single pixels, maps and reductions over all of space run on blocked images
// then. Called by layout.c; not for CUDA.
#include "ir/build/build.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

static bool is_volume(const Type *t)
{
	return type_is_tensor(t) && t->rank == 5 && !t->lod && dim_is_const(t->dims[1]) &&
	       t->dims[1]->value > 0;
}

static const Type *image_type(Context *c, const Type *t)
{
	const Dim *const *d = t->dims, *dims[4] = {d[0], d[1], dim_mul(c, d[2], d[3]), d[4]};
	return type_tensor(c, t->dtype, 4, dims, 0);
}

// The image that v is a view of, NULL when it is none.
static Value *image_behind(Context *c, Value *v)
{
	if (!is_volume(v->type) || !v->def || v->def->code != OP_PD_RESHAPE)
		return NULL;
	Value *x = op_operand(v->def, 0);
	return x->type == image_type(c, v->type) ? x : NULL;
}

static Value *image_of(Builder *b, Value *v)
{
	Value *behind = image_behind(b->ctx, v);
	return behind ? behind : build_view(b, v, 4, image_type(b->ctx, v->type)->dims);
}

// The readers of op's result read a view of `image`, which goes at the end if these need none,
// before what `handler` makes old.
static bool volume_set(Layout *l, Op *op, Value *image, bool (*handler)(Layout *l, Op *op))
{
	Builder b = builder_before(op);
	const Type *t = op->results[0].type;
	Value *view = image ? build_view(&b, image, t->rank, t->dims) : NULL;
	if (!view)
		return false;
	op_replace(op, &view);
	if (handler)
		handler(l, image->def);
	old_add(l, view->def);
	return true;
}

// ---- convolutions -------------------------------------------------------------------------------

bool volume_is_depthwise(const Op *op)
{
	const Type *x = op_operand(op, 0)->type, *f = op_operand(op, 1)->type;
	const int64_t groups = op_int(op, "groups", 1);
	return groups > 1 && dim_is(x->dims[1], groups) && dim_is(f->dims[0], groups) &&
	       dim_is(f->dims[1], 1);
}

bool volume_is_pointwise(const Window *w, const Type *filter)
{
	for (int i = 0; i < 3; i++)
		if (!dim_is(filter->dims[2 + i], 1) || w->stride[i] != 1 || !dim_is(w->before[i], 0) ||
		    !dim_is(w->after[i], 0))
			return false;
	return true;
}

static bool window_is_known(const Op *op, const Window *w)
{
	const Type *x = op_operand(op, 0)->type, *f = op_operand(op, 1)->type;
	for (int i = 0; i < 5; i++)
		if (!dim_is_const(f->dims[i]) || f->dims[i]->value < 1)
			return false;
	for (int i = 0; i < w->n; i++)
		if (!dim_is_const(w->before[i]) || !dim_is_const(w->after[i]))
			return false;
	return dim_is_const(x->dims[2]) && dim_is_const(x->dims[3]) &&
	       dim_is_const(op->results[0].type->dims[2]) && x->dims[2]->value > 0 &&
	       x->dims[3]->value > 0 && op->results[0].type->dims[2]->value > 0;
}

// The blocked image.
static Value *depthwise(Layout *l, Op *op, const Window *w)
{
	Builder b = builder_before(op);
	Context *c = l->ctx;
	const Type *x = op_operand(op, 0)->type, *t = op->results[0].type;
	const Dim *const *f = op_operand(op, 1)->type->dims;
	const Dim *dims[4] = {f[0], f[1], dim_mul(c, f[2], f[3]), f[4]};
	Conv cv = {.op = op,
	           .x = image_of(&b, op_operand(op, 0)),
	           .filter = build_view(&b, op_operand(op, 1), 4, dims),
	           .oc = f[0]->value,
	           .ic = 1,
	           .kh = dims[2]->value,
	           .kw = f[4]->value,
	           .channels = f[0]->value,
	           .strides = {w->stride[1], w->stride[2]},
	           .dilations = {w->dilation[1], w->dilation[2]},
	           .paddings = {w->before[1]->value, w->before[2]->value, w->after[1]->value,
	                        w->after[2]->value}};
	if (!cv.x || !cv.filter)
		return NULL;
	Value *made = conv_narrow(l, &cv, image_type(c, t));
	op_set_attr(made->def, "volume",
	            attr_ints(c, 6,
	                      (int64_t[]){x->dims[2]->value, t->dims[2]->value, f[2]->value,
	                                  w->stride[0], w->before[0]->value, w->dilation[0]}));
	return made;
}

// Has `form` stand for the image that op's result is.
static bool volume_of_blocks(Layout *l, Op *op, Value *form)
{
	Builder b = builder_before(op);
	Value *operands[2] = {op_operand(op, 0), op->noperand > 1 ? op_operand(op, 1) : NULL};
	Op *plain = op_rebuild(op, op->results[0].type, op->noperand, operands);
	Value *image = build_view(&b, &plain->results[0], 4,
	                          image_type(l->ctx, op->results[0].type)->dims);
	if (!image)
		return false;
	old_add(l, plain);
	blocked_set(l, image->def, form);
	return volume_set(l, op, image, NULL);
}

// A convolution of volumes of f32 whose windows are known.
static bool volume_window(Op *op, Window *w)
{
	const Type *t = op->results[0].type;
	if (op->info->filter != FILTER_OUT || t->dtype != DT_F32 || !is_volume(t))
		return false;
	const Type *f = op_operand(op, 1)->type;
	return f->dtype == DT_F32 && f->rank == 5 && window_of_conv(op, w) && w->n == 3 &&
	       w->channel == 1 && window_is_known(op, w);
}

static bool volume_conv(Layout *l, Op *op)
{
	Window w;
	if (!volume_window(op, &w))
		return false;
	if (volume_is_depthwise(op)) {
		Value *form = depthwise(l, op, &w);
		return form && volume_of_blocks(l, op, form);
	}
	const Type *filter = op_operand(op, 1)->type;
	if (op_int(op, "groups", 1) != 1 || !volume_is_pointwise(&w, filter))
		return false;
	Builder b = builder_before(op);
	Value *x = image_of(&b, op_operand(op, 0)),
		  *pixel = build_view(&b, op_operand(op, 1), 4, filter->dims);
	Value *image = x && pixel ? build_image_conv(&b, x, pixel, &w, 1) : NULL;
	return image && image->type == image_type(l->ctx, op->results[0].type) &&
	       volume_set(l, op, image, layout_conv);
}

// ---- pooling ------------------------------------------------------------------------------------

// On [N x C/b x D x H x W x b], a view of the blocked image: pooling passes axes behind space
// through.
static bool volume_pool(Layout *l, Op *op)
{
	Context *c = l->ctx;
	Builder b = builder_before(op);
	Value *x = op_operand(op, 0), *image = image_behind(c, x);
	Value *form = image ? blocked_find(l, image) : NULL;
	const Type *t = op->results[0].type;
	if (!is_volume(x->type) || !is_volume(t) || channels_last(op) || t->dtype != DT_F32 ||
	    (!form && !pool_wants_blocks(l, op)))
		return false;
	if (!form && (image = image_of(&b, x)))
		form = blocked_get(l, image);
	if (!form)
		return false;
	const Dim *const *f = form->type->dims, *const *d = x->type->dims, *const *o = t->dims;
	Value *deep = build_view(&b, form, 6, (const Dim *[]){f[0], f[1], d[2], d[3], d[4], f[4]});
	const Dim *dims[6] = {f[0], f[1], o[2], o[3], o[4], f[4]};
	Op *pool = deep ? op_rebuild(op, type_tensor(c, t->dtype, 6, dims, 0), 1, &deep) : NULL;
	const Dim *rows[5] = {f[0], f[1], dim_mul(c, o[2], o[3]), o[4], f[4]};
	Value *made = pool ? build_view(&b, &pool->results[0], 5, rows) : NULL;
	return made && volume_of_blocks(l, op, made);
}

// ---- maps and reductions ------------------------------------------------------------------------

// An operand of a map whose result is a volume like `out`, for one whose result is its image; NULL:
// there is none.
static Value *map_operand(Layout *l, Op *op, Value *v, const Type *out)
{
	Builder b = builder_before(op);
	const Type *t = v->type;
	if (!type_is_tensor(t) || t->rank > 5)
		return NULL;
	if (t->rank == 5 && !memcmp(t->dims, out->dims, 5 * sizeof *t->dims))
		return image_of(&b, v);
	for (int i = 1; i <= t->rank && i <= 3; i++)
		if (!dim_is(t->dims[t->rank - i], 1))
			return NULL;
	if (t->rank < 4) // one for all channels, with axes in front of it left out
		return t->rank < 2 ? v : build_view(&b, v, 1, (const Dim *[]){dim_const(l->ctx, 1)});
	const Dim *const *d = t->dims, *one = dim_const(l->ctx, 1);
	return t->rank == 4 ? build_view(&b, v, 3, (const Dim *[]){d[0], one, one})
	                    : build_view(&b, v, 4, (const Dim *[]){d[0], d[1], one, one});
}

static bool volume_map(Layout *l, Op *op)
{
	const Type *t = op->results[0].type;
	bool blocked = false;
	for (int i = 0; i < op->noperand && is_volume(t); i++) {
		Value *v = op_operand(op, i), *image = v ? image_behind(l->ctx, v) : NULL;
		blocked |= image && blocked_find(l, image);
	}
	Op *map = blocked ? layout_rebuild(l, op, image_type(l->ctx, t), map_operand) : NULL;
	return map && volume_set(l, op, &map->results[0], layout_map);
}

// Over all of space; the axes may be gone afterwards.
static bool volume_reduce(Layout *l, Op *op)
{
	Context *c = l->ctx;
	int64_t axes[MAX_RANK], seen = 0;
	Value *image = op->noperand == 1 ? image_behind(c, op_operand(op, 0)) : NULL;
	if (!image || !blocked_find(l, image) || op_bool(op, "reduce_all", false) ||
	    op_numbers(op, "axis", axes, MAX_RANK) != 3)
		return false;
	for (int i = 0; i < 3; i++)
		seen |= INT64_C(1) << (axes[i] < 0 ? axes[i] + 5 : axes[i]);
	if (seen != (1 << 2 | 1 << 3 | 1 << 4))
		return false;
	const Type *t = op->results[0].type;
	const bool keeps = op_bool(op, "keepdim", false);
	Op *reduce = op_rebuild(op, keeps ? image_type(c, t) : t, 1, &image);
	op_set_attr(reduce, "axis", attr_ints(c, 2, (int64_t[]){2, 3}));
	Value *out = &reduce->results[0];
	if (keeps)
		return volume_set(l, op, out, layout_space);
	op_replace(op, &out);
	layout_space(l, reduce);
	return true;
}

bool layout_volume(Layout *l, Op *op)
{
	if (!l->target->channel_lanes)
		return false;
	switch (op->info->kind) {
	case KIND_CONTRACT: return op->code == OP_PD_POOL3D ? volume_pool(l, op) : volume_conv(l, op);
	case KIND_MAP: return volume_map(l, op);
	case KIND_REDUCE: return volume_reduce(l, op);
	default: return false;
	}
}
