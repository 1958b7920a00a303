// Images whose channels lie behind each other, [N x H x W x C]: tokens of transformers seen as
// pixels. What a program says about them in [N x C x H x W] has a form in that order where they
// come from it or go to it, so that depthwise convolutions and the maps behind them run on tokens
// as they lie, and blocked images turn into tokens in one step. Called by layout.c; not for CUDA.
#include "ir/build/build.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

static const int64_t behind[4] = {0, 2, 3, 1}, in_front[4] = {0, 3, 1, 2};

static bool transposes_by(const Op *op, int n, const int64_t *perm)
{
	int64_t have[MAX_RANK];
	if (!op || op->code != OP_PD_TRANSPOSE || op_numbers(op, "perm", have, MAX_RANK) != n)
		return false;
	return !memcmp(have, perm, (size_t)n * sizeof *perm);
}

static Value *turn(Builder *b, Value *x, int n, const int64_t *perm)
{
	return build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(b->ctx, n, perm), NULL);
}

// Whether `rows` is [N x C x T] or, with `last`, [N x T x C], of an image [N x C x H x W].
static bool pixels_in_row(Context *c, const Type *rows, const Type *image, bool last)
{
	const Dim *all = dim_mul(c, image->dims[2], image->dims[3]);
	return rows->rank == 3 && image->rank == 4 && rows->dims[0] == image->dims[0] &&
	       rows->dims[last ? 2 : 1] == image->dims[1] && rows->dims[last ? 1 : 2] == all;
}

Value *last_find(Layout *l, Op *before, Value *v)
{
	static const int64_t swapped[3] = {0, 2, 1};
	Value *form = value_map_get(l->last, v);
	if (form != v && form)
		return form;
	if (!l->target->channel_lanes || !type_blockable(v->type) || !v->def)
		return NULL;
	if (transposes_by(v->def, 4, in_front))
		return op_operand(v->def, 0);
	Value *row = v->def->code == OP_PD_RESHAPE ? op_operand(v->def, 0) : NULL;
	if (!row || !type_is_tensor(row->type) || !transposes_by(row->def, 3, swapped) ||
	    !pixels_in_row(l->ctx, row->type, v->type, false))
		return NULL;
	const Dim *const *d = v->type->dims, *dims[4] = {d[0], d[2], d[3], d[1]};
	Builder b = builder_before(before);
	return build_view(&b, op_operand(row->def, 0), 4, dims);
}

void last_set(Layout *l, Op *op, Value *form)
{
	old_add(l, op);
	form->name = op->results[0].name;
	value_map_set(l->last, &op->results[0], form);
}

Value *last_to_plain(Layout *l, Builder *b, Value *v)
{
	Value *form = value_map_get(l->last, v);
	return form && form != v ? turn(b, form, 4, in_front) : NULL;
}

// ---- between blocks and tokens ------------------------------------------------------------------

Value *last_to_blocks(Layout *l, Builder *b, Value *form, const Type *type)
{
	static const int64_t perm[5] = {0, 3, 1, 2, 4};
	const Dim *const *t = type->dims;
	if (!dim_is(form->type->dims[3], t[1]->value * t[4]->value))
		return NULL;
	Value *parts = build_view(b, form, 5, (const Dim *[]){t[0], t[2], t[3], t[1], t[4]});
	return parts ? turn(b, parts, 5, perm) : NULL;
}

static Value *blocks_to_last(Layout *l, Builder *b, Value *v)
{
	static const int64_t perm[5] = {0, 2, 3, 1, 4};
	Value *form = blocked_find(l, v);
	if (!form || type_channels(v->type) % form->type->dims[4]->value)
		return NULL;
	const Dim *const *d = v->type->dims;
	Value *turned = turn(b, form, 5, perm);
	return turned ? build_view(b, turned, 4, (const Dim *[]){d[0], d[2], d[3], d[1]}) : NULL;
}

// The image whose channels `op` moves behind its pixels, which may be in one row.
static Value *image_turned_by(const Layout *l, const Op *op)
{
	static const int64_t swapped[3] = {0, 2, 1};
	Value *x = op_operand(op, 0);
	if (transposes_by(op, 4, behind))
		return x;
	if (!transposes_by(op, 3, swapped) || !x->def || !(x->def->info->traits & TRAIT_VIEW))
		return NULL;
	Value *image = op_operand(x->def, 0);
	return type_blockable(image->type) && pixels_in_row(l->ctx, x->type, image->type, false) ? image
	                                                                                         : NULL;
}

bool layout_turn(Layout *l, Op *op)
{
	if (!l->target->channel_lanes || op->code != OP_PD_TRANSPOSE)
		return false;
	Value *image = image_turned_by(l, op);
	if (!image)
		return false;
	Builder b = builder_before(op);
	Value *form = last_find(l, op, image);
	if (!form)
		form = blocks_to_last(l, &b, image);
	const Type *t = op->results[0].type;
	if (!form || !(form = build_view(&b, form, t->rank, t->dims)))
		return false;
	op_replace(op, &form);
	return true;
}

// ---- maps ---------------------------------------------------------------------------------------

// An operand beside such images: one of them, or the same for all pixels. NULL: neither.
static Value *map_operand(Layout *l, Op *op, Value *v, const Type *out)
{
	const Type *t = v->type;
	if (!type_is_tensor(t) || t->rank > 4)
		return NULL;
	if (t->rank == 4 && !memcmp(t->dims, out->dims, 4 * sizeof *t->dims))
		return last_find(l, op, v);
	for (int i = 0; i < t->rank; i++)
		if (!dim_is(t->dims[i], 1) && i != t->rank - 3)
			return NULL;
	Builder b = builder_before(op);
	const Dim *const channels = t->rank >= 3 ? t->dims[t->rank - 3] : dim_const(l->ctx, 1);
	return build_view(&b, v, 1, &channels);
}

// Whether an operand is an image that has got that form here, and all of the result's size have it.
static bool map_wants_last(Layout *l, Op *op)
{
	const Type *out = op->results[0].type;
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i), *form = v ? value_map_get(l->last, v) : NULL;
		if (form && form != v && !memcmp(v->type->dims, out->dims, 4 * sizeof *out->dims))
			return true;
	}
	return false;
}

bool last_map(Layout *l, Op *op)
{
	const Type *out = op->results[0].type;
	if (!type_blockable(out) || !map_wants_last(l, op))
		return false;
	const Dim *const *d = out->dims, *dims[4] = {d[0], d[2], d[3], d[1]};
	const Type *type = type_tensor(l->ctx, out->dtype, 4, dims, 0);
	Op *new = layout_rebuild(l, op, type, map_operand);
	if (new)
		last_set(l, op, &new->results[0]);
	return new != NULL;
}
