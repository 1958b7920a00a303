// What runs on blocked tensors besides the kernels: elementwise maps and operations on axes 2 and
// 3. They are those of the plain layout on one more axis, which their definitions pass through.
// Called by layout.c.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

enum { MIN_POOLED = 9 }; // pixels in a window

// ---- elementwise --------------------------------------------------------------------------------

static bool all_ones(const Type *t)
{
	for (int i = 0; i < t->rank; i++)
		if (!dim_is(t->dims[i], 1))
			return false;
	return true;
}

// Sizes of `t` on axes N, C, H, W under broadcasting with trailing alignment.
static void dims_as_image(Context *c, const Type *t, const Dim **dims)
{
	for (int i = 0; i < 4; i++) {
		int at = i - (4 - t->rank);
		dims[i] = at >= 0 ? t->dims[at] : dim_const(c, 1);
	}
}

// An operand of an elementwise operation whose result is an image `out`, for the blocked operation.
// NULL: there is no such form.
static Value *map_operand(Layout *l, Op *op, Value *v, const Type *out)
{
	Context *c = l->ctx;
	Builder b = builder_before(op);
	const Type *t = v->type;
	const Dim *dims[5];
	if (!type_is_tensor(t) || t->rank > 4)
		return NULL;
	if (all_ones(t))
		return t->rank <= 1 ? v : build_view(&b, v, 1, (const Dim *[]){dim_const(c, 1)});
	dims_as_image(c, t, dims);
	if (dim_is(dims[1], 1) && !dim_is(out->dims[1], 1)) {
		// The same for all channels: an axis of one block with one lane.
		Value *form = blocked_find(l, v);
		if (form)
			return tensor_cut(&b, form, 4, 0, 1);
		dims[4] = dim_const(c, 1);
		return build_view(&b, v, 5, dims);
	}
	if (dims[1] != out->dims[1])
		return NULL;
	if (t->rank < 4 && !(v = build_view(&b, v, 4, dims)))
		return NULL;
	return blocked_get(l, v);
}

// Blocked when that is what the operands are: one that has all of the result's elements decides.
static bool map_wants_blocks(const Layout *l, const Op *op)
{
	const Type *out = op->results[0].type;
	bool any = false;
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		if (!v)
			continue;
		const Type *t = v->type;
		bool full = t->rank == 4 && !memcmp(t->dims, out->dims, 4 * sizeof *t->dims);
		if (full && blocked_find(l, v))
			any = true;
		else if (full && !value_constant(v) && !(v->def && v->def->code == OP_PD_FEED) && !any &&
		         i > 0)
			return false;
	}
	return any;
}

bool layout_map(Layout *l, Op *op)
{
	const Type *out = op->results[0].type;
	if (!type_blockable(out) || !map_wants_blocks(l, op))
		return false;
	Op *new = layout_rebuild(l, op, type_blocked(l, out), map_operand);
	if (new)
		blocked_set(l, op, &new->results[0]);
	return new != NULL;
}

// ---- operations on axes 2 and 3 -----------------------------------------------------------------

bool format_is_nchw(const Op *op)
{
	const DataFormatKind format = (DataFormatKind)op_enum(op, "data_format");
	return format == DATA_FORMAT_NCHW || format == DATA_FORMAT_ANYLAYOUT;
}

enum { IMAGES = 1, SPACE = 4 | 8 }; // axes of a tensor of rank 4, as bits

// Those that an INTS attribute names; 0: none.
static unsigned axes_named(const Op *op, const char *name)
{
	int64_t axes[MAX_RANK];
	unsigned named = 0;
	int n = op_numbers(op, name, axes, MAX_RANK);
	for (int i = 0; i < n; i++)
		named |= 1u << (axes[i] < 0 ? axes[i] + 4 : axes[i]);
	return named;
}

// Whether it names some, and none but these.
static bool axes_are_of(const Op *op, const char *name, unsigned axes)
{
	const unsigned named = axes_named(op, name);
	return named && !(named & ~axes);
}

static bool pads_space_only(const Op *op)
{
	int64_t p[8];
	return op_numbers(op, "paddings", p, 8) == 8 && !p[0] && !p[1] && !p[2] && !p[3];
}

// Axes 2 and 3 are all that it changes, of a reduction also 0, as its attributes say.
static bool op_is_spatial(const Op *op)
{
	int64_t dropped[MAX_RANK];
	if (!(op->info->traits & TRAIT_SPACE))
		return false;
	if (op_info_attr(op->info, "data_format"))
		return format_is_nchw(op);
	if (op_info_attr(op->info, "paddings"))
		return pads_space_only(op);
	if (op_info_attr(op->info, "axes"))
		return axes_are_of(op, "axes", SPACE) &&
		       op_numbers(op, "decrease_axis", dropped, MAX_RANK) <= 0;
	return axes_are_of(op, "axis", op->info->kind == KIND_REDUCE ? IMAGES | SPACE : SPACE) &&
	       !op_bool(op, "reduce_all", false);
}

// Attributes that count axes from the end, or list all of them, see one axis more.
static void fix_axes(Op *op)
{
	Context *c = op->ctx;
	int64_t v[MAX_RANK];
	const char *name = op_info_attr(op->info, "axes") ? "axes" : "axis";
	if (op_info_attr(op->info, "paddings") && !op_info_attr(op->info, "data_format")) {
		op_numbers(op, "paddings", v, 8);
		v[8] = v[9] = 0;
		op_set_attr(op, "paddings", attr_ints(c, 10, v));
		return;
	}
	int n = op_numbers(op, name, v, MAX_RANK);
	for (int i = 0; i < n; i++)
		v[i] = v[i] < 0 ? v[i] + 4 : v[i];
	if (n > 0)
		op_set_attr(op, name, attr_ints(c, n, v));
}

// A reduction that drops its axes: keep them in blocked form, then [N x C/b x 1 x 1 x b] to [N x
// C], or that of one image, the sum of all, to [C].
static bool reduce_to_matrix(Layout *l, Op *op, Value *form);

bool pool_wants_blocks(const Layout *l, Op *op)
{
	const Type *x = op_operand(op, 0)->type;
	Window w;
	if (!l->target->channel_lanes || (op->code != OP_PD_POOL2D && op->code != OP_PD_POOL3D) ||
	    x->dtype != DT_F32 || 2 * type_channels(x) <= layout_lanes(l, type_channels(x)) ||
	    !window_of_pool(op, &w) || w.whole)
		return false;
	int64_t pixels = 1;
	for (int i = 0; i < w.n && !w.adaptive; i++)
		pixels *= dim_is_const(w.kernel[i]) ? w.kernel[i]->value : 1;
	return w.adaptive || pixels >= MIN_POOLED;
}

bool layout_space(Layout *l, Op *op)
{
	Value *x = op_operand(op, 0), *form = blocked_find(l, x);
	const Type *t = op->results[0].type;
	if (!form && op_is_spatial(op) && type_blockable(x->type) && pool_wants_blocks(l, op))
		form = blocked_get(l, x);
	if (!form || !op_is_spatial(op) ||
	    ((op->info->traits & TRAIT_ENLARGES) &&
	     2 * type_channels(x->type) <= layout_lanes(l, type_channels(x->type))))
		return false; // enlarging mostly empty lanes costs more than unblocking before
	bool reduce = op->info->kind == KIND_REDUCE;
	if (reduce && !op_bool(op, "keepdim", false))
		return reduce_to_matrix(l, op, form);
	if (!type_blockable(t) || t->dims[1] != x->type->dims[1])
		return false;
	Value **operands = NEW_ARRAY(l->ctx->arena, (size_t)op->noperand, Value *);
	for (int i = 0; i < op->noperand; i++)
		operands[i] = i ? op_operand(op, i) : form;
	Op *copy = op_rebuild(op, type_blocked(l, t), op->noperand, operands);
	fix_axes(copy);
	blocked_set(l, op, &copy->results[0]);
	return true;
}

// ---- back to matrices ---------------------------------------------------------------------------

// Replaces `op`, whose result has the elements of a blocked `form` with one pixel per channel, by a
// view of it.
static bool replace_by_matrix(Layout *l, Op *op, Value *form, int64_t channels)
{
	Context *c = l->ctx;
	Builder b = builder_before(op);
	const Type *t = op->results[0].type, *f = form->type;
	const Dim *all = dim_const(c, f->dims[1]->value * f->dims[4]->value);
	Value *v = build_view(&b, form, 2, (const Dim *[]){f->dims[0], all});
	if (v && all->value != channels)
		v = tensor_cut(&b, v, 1, 0, channels);
	if (!v || !(v = build_view(&b, v, t->rank, t->dims)))
		return false;
	op_replace(op, &v);
	return true;
}

static bool reduce_to_matrix(Layout *l, Op *op, Value *form)
{
	Context *c = l->ctx;
	const unsigned axes = axes_named(op, "axis");
	if ((axes & SPACE) != SPACE)
		return false;
	const Dim *one = dim_const(c, 1), *images = axes & IMAGES ? one : form->type->dims[0];
	const Dim *dims[5] = {images, form->type->dims[1], one, one, form->type->dims[4]};
	Op *copy = op_rebuild(op, type_tensor(c, op->results[0].type->dtype, 5, dims, 0), 1, &form);
	fix_axes(copy);
	op_set_attr(copy, "keepdim", attr_bool(c, true));
	return replace_by_matrix(l, op, &copy->results[0], type_channels(op_operand(op, 0)->type));
}

// A view of [N x C x 1 x 1]: nothing moves when it goes on in channel order.
bool layout_flatten(Layout *l, Op *op)
{
	Value *x = op->noperand ? op_operand(op, 0) : NULL, *form = blocked_find(l, x);
	if (!form || !(op->info->traits & TRAIT_VIEW) || !dim_is(x->type->dims[2], 1) ||
	    !dim_is(x->type->dims[3], 1))
		return false;
	return replace_by_matrix(l, op, form, type_channels(x->type));
}
