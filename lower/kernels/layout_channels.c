// Concatenation and slices along the channels of blocked tensors: of whole blocks where they end at
// multiples of the block, else by a nest that looks every channel up. Called by layout.c.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

// ---- by channel ---------------------------------------------------------------------------------

// The channel at the nest's position; lanes past the last channel repeat it, so that nothing
// outside is read.
static Value *channel_at(const Layout *l, Nest *n, int64_t channels)
{
	const int64_t b = layout_lanes(l, channels);
	Value *c = index_add(&n->b, index_times(&n->b, n->at[1], b), n->at[4]);
	return channels % b ? index_min(&n->b, c, index_const(&n->b, channels - 1)) : c;
}

// Where channel `c` is in the blocked tensor `form`, at the nest's image and pixel.
static void channel_place(const Value *form, Nest *n, Value *c, Value **at)
{
	Value *b = index_dim(&n->b, form->type->dims[4]);
	at[0] = n->at[0];
	at[1] = index_div(&n->b, c, b);
	at[2] = n->at[2];
	at[3] = n->at[3];
	at[4] = index_mod(&n->b, c, b);
}

static Value *slice_by_pieces(Layout *l, Op *op, Value *form, int64_t start)
{
	Context *c = l->ctx;
	const Type *t = op->results[0].type;
	const int64_t channels = type_channels(t);
	Op *kernel = layout_kernel(op, OP_KERNEL_JOIN_BLOCKS, type_blocked(l, t), 1, &form);
	op_set_attr(kernel, "channels", attr_ints(c, 1, &channels));
	op_set_attr(kernel, "from", attr_ints(c, 1, &start));
	return &kernel->results[0];
}

static Value *slice_by_channel(Layout *l, Op *op, Value *form, int64_t start)
{
	Builder before = builder_before(op);
	const Type *t = op->results[0].type;
	Nest n = nest_open(&before, type_blocked(l, t));
	Value *at[5];
	channel_place(form, &n, index_plus(&n.b, channel_at(l, &n, type_channels(t)), start), at);
	return nest_close(&n, load(&n.b, form, at));
}

// Where the nest's channel is in a part of a concatenation that begins at channel `start` of blocks
// of `lanes`. Not negative even when the channel is in another part.
static void part_place(const Value *form, Nest *n, Value *c, int64_t start, int64_t lanes,
                       Value **at)
{
	Builder *b = &n->b;
	if (start % lanes || !dim_is(form->type->dims[4], lanes)) {
		Value *s = index_const(b, start);
		channel_place(form, n, index_sub(b, index_max(b, c, s), s), at);
		return;
	}
	memcpy(at, n->at, 5 * sizeof *at);
	Value *s = index_const(b, start / lanes);
	at[1] = index_sub(b, index_max(b, n->at[1], s), s);
}

static Value *concat_by_pieces(Layout *l, Op *op, int count, Value *const *parts)
{
	Context *c = l->ctx;
	Value **forms = NEW_ARRAY(c->arena, (size_t)count, Value *);
	int64_t *channels = NEW_ARRAY(c->arena, (size_t)count, int64_t);
	for (int i = 0; i < count; i++) {
		forms[i] = blocked_get(l, parts[i]);
		channels[i] = type_channels(parts[i]->type);
	}
	Op *kernel = layout_kernel(op, OP_KERNEL_JOIN_BLOCKS, type_blocked(l, op->results[0].type),
	                           count, forms);
	op_set_attr(kernel, "channels", attr_ints(c, count, channels));
	return &kernel->results[0];
}

static Value *concat_by_channel(Layout *l, Op *op, int count, Value *const *parts)
{
	Builder before = builder_before(op);
	const Type *t = op->results[0].type;
	int64_t end = type_channels(t);
	const int64_t lanes = layout_lanes(l, end);
	Nest n = nest_open(&before, type_blocked(l, t));
	Builder *b = &n.b;
	Value *c = index_add(b, index_times(b, n.at[1], lanes), n.at[4]),
		  *v = build_scalar_f(b, t->dtype, 0), *at[5];
	for (int i = count - 1; i >= 0; i--) {
		int64_t start = end - type_channels(parts[i]->type);
		// Lanes past the last channel are in no part.
		Value *before_end = index_less(b, c, index_const(b, end));
		Value *after_start = start ? index_less(b, index_const(b, start - 1), c) : NULL;
		Value *form = blocked_get(l, parts[i]);
		part_place(form, &n, c, start, lanes, at);
		v = load_or(b, pred_and(b, before_end, after_start), v, form, at);
		end = start;
	}
	return nest_close(&n, v);
}

// Whether a value has the sizes given.
static bool has_dims(const Value *v, int rank, const Dim *const *dims)
{
	for (int i = 0; i < rank && v->type->rank == rank; i++)
		if (v->type->dims[i] != dims[i])
			return false;
	return v->type->rank == rank;
}

// The image whose channels are interleaved by `last`, the end of reshape, transpose, reshape: [N x
// C x H x W] as [N x groups x C / groups x H x W], axes 1 and 2 swapped, back. NULL: something
// else.
static Value *shuffled_image(Op *last, Op **transpose, Op **first, int64_t *groups)
{
	static const int64_t swap[5] = {0, 2, 1, 3, 4};
	int64_t perm[5];
	Op *t = op_operand(last, 0)->def;
	if (last->code != OP_PD_RESHAPE || !t || t->code != OP_PD_TRANSPOSE ||
	    op_numbers(t, "perm", perm, 5) != 5 || memcmp(perm, swap, sizeof swap) ||
	    value_use_count(&t->results[0]) != 1)
		return NULL;
	Op *f = op_operand(t, 0)->def;
	if (!f || f->code != OP_PD_RESHAPE || value_use_count(&f->results[0]) != 1)
		return NULL;
	Value *x = op_operand(f, 0);
	const Type *split = f->results[0].type, *plain = last->results[0].type;
	if (!type_blockable(plain) || !has_dims(x, 4, plain->dims) || !dim_is_const(split->dims[1]))
		return NULL;
	*groups = split->dims[1]->value;
	*transpose = t;
	*first = f;
	if (*groups < 1)
		return NULL;
	const Dim *each = dim_div(last->ctx, plain->dims[1], split->dims[1]);
	const Dim *dims[5] = {plain->dims[0], split->dims[1], each, plain->dims[2], plain->dims[3]};
	return has_dims(&f->results[0], 5, dims) ? x : NULL;
}

static bool layout_shuffle(Layout *l, Op *op)
{
	Op *transpose = NULL, *first = NULL;
	int64_t groups = 1;
	Value *x = shuffled_image(op, &transpose, &first, &groups), *form = blocked_find(l, x);
	if (!form)
		return false;
	Builder before = builder_before(op);
	const Type *t = op->results[0].type;
	Nest n = nest_open(&before, type_blocked(l, t));
	Builder *b = &n.b;
	int64_t channels = type_channels(t);
	Value *c = channel_at(l, &n, channels), *g = index_const(b, groups), *at[5];
	Value *from = index_add(b, index_times(b, index_mod(b, c, g), channels / groups),
	                        index_div(b, c, g));
	channel_place(form, &n, from, at);
	Value *out = nest_close(&n, load(b, form, at));
	if (!out)
		return false;
	old_add(l, first);
	old_add(l, transpose);
	blocked_set(l, op, out);
	return true;
}

// ---- handlers -----------------------------------------------------------------------------------

static Value *slice_blocks(Layout *l, Op *op, Value *form, int64_t start)
{
	Context *c = l->ctx;
	const Type *t = op->results[0].type;
	const int64_t b = form->type->dims[4]->value, first = start / b,
				  last = (start + type_channels(t) + b - 1) / b;
	Op *copy = op_rebuild(op, type_blocked(l, t), 1, &form);
	op_set_attr(copy, "starts", attr_numbers(c, 1, &first));
	op_set_attr(copy, "ends", attr_numbers(c, 1, &last));
	return &copy->results[0];
}

// `blocks`: the slice's axis is that of the blocks, too.
static Value *slice_form(Layout *l, Op *op, Value *form, int64_t start, bool blocks)
{
	const int64_t b = form->type->dims[4]->value;
	if (blocks && start % b == 0 && b == layout_lanes(l, type_channels(op->results[0].type)))
		return slice_blocks(l, op, form, start);
	return target_has(l->target, OP_KERNEL_JOIN_BLOCKS) ? slice_by_pieces(l, op, form, start)
	                                                    : slice_by_channel(l, op, form, start);
}

static bool layout_slice(Layout *l, Op *op)
{
	int64_t axis, start, dropped[MAX_RANK];
	Value *x = op_operand(op, 0), *form = blocked_find(l, x);
	const Type *t = op->results[0].type;
	if (!form || op_numbers(op, "axes", &axis, 1) != 1 || (axis != 1 && axis != -3) ||
	    !type_blockable(t) || op_numbers(op, "starts", &start, 1) != 1 ||
	    op_numbers(op, "decrease_axis", dropped, MAX_RANK) > 0 || !slice_is_fixed(op))
		return false;
	start = start < 0 ? start + type_channels(x->type) : start;
	if (start < 0 || start + type_channels(t) > type_channels(x->type))
		return false;
	Value *out = slice_form(l, op, form, start, axis == 1);
	if (!out)
		return false;
	blocked_set(l, op, out);
	return true;
}

static Value *concat_blocks(Layout *l, Op *op, int n, Value *const *parts, int64_t axis)
{
	Value **forms = NEW_ARRAY(l->ctx->arena, (size_t)n, Value *);
	for (int i = 0; i < n; i++)
		forms[i] = blocked_get(l, parts[i]);
	Builder b = builder_before(op);
	Value *list = build(&b, OP_BUILTIN_COMBINE, n, forms, NULL);
	if (!list)
		return NULL;
	Op *copy = op_rebuild(op, type_blocked(l, op->results[0].type), 1, &list);
	op_set_attr(copy, "axis", attr_int(l->ctx, axis));
	return &copy->results[0];
}

// Most of the parts must be blocked already, or blocking costs more than it saves. `whole`: whether
// each begins with a block of the result.
static bool parts_are_blocked(Layout *l, const Type *joined, int n, Value *const *parts,
                              int64_t axis, bool *whole)
{
	const int64_t b = layout_lanes(l, type_channels(joined));
	int blocked = 0;
	*whole = true;
	for (int i = 0; i < n; i++) {
		if (!type_blockable(parts[i]->type))
			return false;
		blocked += blocked_find(l, parts[i]) != NULL;
		const int64_t channels = type_channels(parts[i]->type);
		*whole = *whole && layout_lanes(l, channels) == b &&
		         (axis != 1 || i == n - 1 || channels % b == 0);
	}
	return 2 * blocked >= n && blocked > 0;
}

static bool layout_concat(Layout *l, Op *op)
{
	Value *const *parts;
	int n = op_operand_list(op, 0, &parts);
	const Type *t = op->results[0].type;
	int64_t axis = op_int(op, "axis", 0);
	axis = axis < 0 ? axis + t->rank : axis;
	if (!type_blockable(t) || (op->noperand > 1 && op_operand(op, 1)))
		return false;
	bool whole;
	if (axis == 0 || !parts_are_blocked(l, t, n, parts, axis, &whole))
		return false;
	const bool joins = target_has(l->target, OP_KERNEL_JOIN_BLOCKS);
	Value *out = whole   ? concat_blocks(l, op, n, parts, axis)
	             : joins ? concat_by_pieces(l, op, n, parts)
	                     : concat_by_channel(l, op, n, parts);
	if (!out)
		return false;
	Op *list = op_operand(op, 0)->def;
	if (list && list->code == OP_BUILTIN_COMBINE && value_use_count(&list->results[0]) == 1)
		old_add(l, list);
	blocked_set(l, op, out);
	return true;
}

bool layout_channels(Layout *l, Op *op)
{
	switch (op->code) {
	case OP_PD_CONCAT: return layout_concat(l, op);
	case OP_PD_SLICE: return layout_slice(l, op);
	case OP_PD_RESHAPE: return layout_shuffle(l, op);
	default: return false;
	}
}
