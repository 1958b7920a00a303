// What runs on blocked tensors besides the kernels: elementwise maps, operations on axes 2 and 3, and what moves
// whole blocks of channels. The operations are those of the plain layout on one more axis; their definitions pass
// it through. Called by layout.c.
#include "layout.h"

#include <string.h>

// ---- elementwise -----------------------------------------------------------------------------------------

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

// An operand of an elementwise operation whose result is an image `out`, for the blocked operation. NULL: there
// is no such form.
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
			return build1(&b, OP_PD_SLICE, form, "axes", attr_ints(c, 1, (int64_t[]){4}), "starts",
			              attr_ints(c, 1, (int64_t[]){0}), "ends", attr_ints(c, 1, (int64_t[]){1}), NULL);
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
		else if (full && !value_constant(v) && !(v->def && v->def->code == OP_PD_FEED) && !any && i > 0)
			return false;
	}
	return any;
}

bool layout_map(Layout *l, Op *op)
{
	const Type *out = op->results[0].type;
	Value *operands[8];
	if (!type_blockable(out) || op->noperand > (int)COUNT_OF(operands) || !map_wants_blocks(l, op))
		return false;
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		operands[i] = v ? map_operand(l, op, v, out) : NULL;
		if (v && !operands[i])
			return false;
	}
	blocked_set(l, op, &op_rebuild(op, type_blocked(l, out), op->noperand, operands)->results[0]);
	return true;
}

// ---- operations on axes 2 and 3 ----------------------------------------------------------------------------

static bool format_is_nchw(const Op *op)
{
	const char *format = op_str(op, "data_format", "NCHW");
	return !strcmp(format, "NCHW") || !strcmp(format, "AnyLayout");
}

// Axes that an INTS attribute names, of a tensor of rank 4, are all 2 or 3.
static bool axes_are_space(const Op *op, const char *name)
{
	int64_t axes[MAX_RANK];
	int n = op_ints(op, name, axes, MAX_RANK);
	for (int i = 0; i < n; i++) {
		int64_t axis = axes[i] < 0 ? axes[i] + 4 : axes[i];
		if (axis != 2 && axis != 3)
			return false;
	}
	return n > 0;
}

static bool pads_space_only(const Op *op)
{
	int64_t p[8];
	return op_ints(op, "paddings", p, 8) == 8 && !p[0] && !p[1] && !p[2] && !p[3];
}

static bool op_is_spatial(const Op *op)
{
	switch (op->code) {
	case OP_PD_POOL2D:
	case OP_PD_NEAREST_INTERP:
	case OP_PD_BILINEAR_INTERP:
	case OP_PD_BICUBIC_INTERP:
	case OP_PD_PAD2D:
		return format_is_nchw(op);
	case OP_PD_PAD:
		return pads_space_only(op);
	case OP_PD_SUM:
	case OP_PD_MEAN:
	case OP_PD_MAX:
	case OP_PD_MIN:
		return axes_are_space(op, "axis") && !op_bool(op, "reduce_all", false);
	case OP_PD_SLICE:
	case OP_PD_STRIDED_SLICE: {
		int64_t dropped[MAX_RANK];
		return axes_are_space(op, "axes") && op_ints(op, "decrease_axis", dropped, MAX_RANK) <= 0;
	}
	default:
		return false;
	}
}

// Attributes that count axes from the end, or list all of them, see one axis more.
static void fix_axes(Op *op)
{
	Context *c = op->ctx;
	int64_t v[MAX_RANK];
	const char *name = op->code == OP_PD_SLICE || op->code == OP_PD_STRIDED_SLICE ? "axes" : "axis";
	if (op->code == OP_PD_PAD) {
		op_ints(op, "paddings", v, 8);
		v[8] = v[9] = 0;
		op_set_attr(op, "paddings", attr_ints(c, 10, v));
		return;
	}
	int n = op_ints(op, name, v, MAX_RANK);
	for (int i = 0; i < n; i++)
		v[i] = v[i] < 0 ? v[i] + 4 : v[i];
	if (n > 0)
		op_set_attr(op, name, attr_ints(c, n, v));
}

// A reduction that drops its axes: keep them in blocked form, then [N x C/b x 1 x 1 x b] to [N x C].
static bool reduce_to_matrix(Layout *l, Op *op, Value *form);

bool layout_space(Layout *l, Op *op)
{
	Value *x = op_operand(op, 0), *form = blocked_find(l, x);
	const Type *t = op->results[0].type;
	if (!form || !op_is_spatial(op))
		return false;
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

// ---- blocks of channels ------------------------------------------------------------------------------------

// Replaces `op`, whose result has the elements of a blocked `form` with one pixel per channel, by a view of it.
static bool replace_by_matrix(Layout *l, Op *op, Value *form, int64_t channels)
{
	Context *c = l->ctx;
	Builder b = builder_before(op);
	const Type *t = op->results[0].type, *f = form->type;
	const Dim *all = dim_const(c, f->dims[1]->value * l->target->lanes);
	Value *v = build_view(&b, form, 2, (const Dim *[]){f->dims[0], all});
	if (v && all->value != channels)
		v = build1(&b, OP_PD_SLICE, v, "axes", attr_ints(c, 1, (int64_t[]){1}), "starts",
		           attr_ints(c, 1, (int64_t[]){0}), "ends", attr_ints(c, 1, (int64_t[]){channels}), NULL);
	if (!v || !(v = build_view(&b, v, t->rank, t->dims)))
		return false;
	op_replace(op, &v);
	return true;
}

static bool reduce_to_matrix(Layout *l, Op *op, Value *form)
{
	Context *c = l->ctx;
	int64_t axes[MAX_RANK];
	if (op_ints(op, "axis", axes, MAX_RANK) != 2)
		return false;
	const Dim *one = dim_const(c, 1);
	const Dim *dims[5] = {form->type->dims[0], form->type->dims[1], one, one, form->type->dims[4]};
	Op *copy = op_rebuild(op, type_tensor(c, op->results[0].type->dtype, 5, dims, 0), 1, &form);
	fix_axes(copy);
	op_set_attr(copy, "keepdim", attr_bool(c, true));
	return replace_by_matrix(l, op, &copy->results[0], type_channels(op_operand(op, 0)->type));
}

// A view of [N x C x 1 x 1]: nothing moves when it goes on in channel order.
static bool layout_flatten(Layout *l, Op *op, Value *x, Value *form)
{
	const Type *t = x->type;
	if (!dim_is(t->dims[2], 1) || !dim_is(t->dims[3], 1))
		return false;
	return replace_by_matrix(l, op, form, type_channels(t));
}

static bool layout_slice(Layout *l, Op *op, Value *x, Value *form)
{
	Context *c = l->ctx;
	int64_t axis, start, end, dropped[MAX_RANK], b = l->target->lanes, channels = type_channels(x->type);
	const Type *t = op->results[0].type;
	if (op_ints(op, "axes", &axis, 1) != 1 || axis != 1 || !type_blockable(t) || op->noperand > 1 ||
	    op_ints(op, "starts", &start, 1) != 1 || op_ints(op, "ends", &end, 1) != 1 ||
	    op_ints(op, "decrease_axis", dropped, MAX_RANK) > 0)
		return false;
	start = start < 0 ? start + channels : start;
	end = start + type_channels(t);
	if (start < 0 || start % b || end > channels)
		return false;
	int64_t first = start / b, last = (end + b - 1) / b;
	Op *copy = op_rebuild(op, type_blocked(l, t), 1, &form);
	op_set_attr(copy, "starts", attr_ints(c, 1, &first));
	op_set_attr(copy, "ends", attr_ints(c, 1, &last));
	blocked_set(l, op, &copy->results[0]);
	return true;
}

// Concatenation on channels moves whole blocks when all parts but the last fill theirs.
static bool concat_fits(const Layout *l, const Op *op, int n, Value *const *parts)
{
	int64_t axis = op_int(op, "axis", 0);
	bool any = false;
	axis = axis < 0 ? axis + 4 : axis;
	if (axis < 1 || !type_blockable(op->results[0].type))
		return false;
	for (int i = 0; i < n; i++) {
		if (!type_blockable(parts[i]->type))
			return false;
		if (axis == 1 && i < n - 1 && type_channels(parts[i]->type) % l->target->lanes)
			return false;
		any |= blocked_find(l, parts[i]) != NULL;
	}
	return any;
}

static bool layout_concat(Layout *l, Op *op)
{
	Context *c = l->ctx;
	Value *const *parts;
	int n = op_operand_list(op, 0, &parts);
	if ((op->noperand > 1 && op_operand(op, 1)) || !concat_fits(l, op, n, parts))
		return false;
	Value **forms = NEW_ARRAY(c->arena, (size_t)n, Value *);
	for (int i = 0; i < n; i++)
		forms[i] = blocked_get(l, parts[i]);
	Builder b = builder_before(op);
	Value *list = build(&b, OP_BUILTIN_COMBINE, n, forms, NULL);
	if (!list)
		return false;
	Op *copy = op_rebuild(op, type_blocked(l, op->results[0].type), 1, &list);
	int64_t axis = op_int(op, "axis", 0);
	op_set_attr(copy, "axis", attr_int(c, axis < 0 ? axis + 4 : axis));
	blocked_set(l, op, &copy->results[0]);
	return true;
}

bool layout_channels(Layout *l, Op *op)
{
	if (op->code == OP_PD_CONCAT)
		return layout_concat(l, op);
	Value *x = op->noperand ? op_operand(op, 0) : NULL, *form = blocked_find(l, x);
	if (!form)
		return false;
	if (op->info->traits & TRAIT_VIEW)
		return layout_flatten(l, op, x, form);
	return op->code == OP_PD_SLICE && layout_slice(l, op, x, form);
}
