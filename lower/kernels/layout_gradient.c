// What filters and pooled images get in training, by kernels on blocked images. Called by layout.c,
// for C only: on a GPU their definitions, which are sums for each element, fill it.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

// ---- filters ------------------------------------------------------------------------------------

// oc and share: output channels, of a group.
static bool filter_read(Op *op, Conv *cv, int64_t *groups)
{
	Window w;
	const Type *x = op_operand(op, 0)->type, *d = op_operand(op, 1)->type,
			   *out = op->results[0].type;
	if (x->dtype != DT_F32 || d->dtype != DT_F32 || !type_blockable(x) || !type_blockable(d) ||
	    !window_of_conv(op, &w))
		return false;
	*cv = (Conv){.op = op, .x = op_operand(op, 0), .channels = type_channels(x)};
	*groups = op_int(op, "groups", 1);
	for (int i = 0; i < 4; i++)
		if (!dim_is_const(out->dims[i]) || out->dims[i]->value < 1)
			return false;
	for (int i = 0; i < 2; i++) // what a plain image is read by relies on it
		if (window_count(op->ctx, &w, i, false) != d->dims[2 + i])
			return false;
	cv->oc = out->dims[0]->value;
	cv->ic = out->dims[1]->value;
	cv->kh = out->dims[2]->value;
	cv->kw = out->dims[3]->value;
	return conv_window(cv);
}

// An image that no tap leaves.
static Value *image_padded(Builder *b, Conv *cv)
{
	int64_t *p = cv->paddings;
	Value *x = cv->x;
	if (p[0] || p[1] || p[2] || p[3])
		x = build1(b, OP_PD_PAD, x, "paddings",
		           attr_ints(b->ctx, 8, (int64_t[]){0, 0, 0, 0, p[0], p[2], p[1], p[3]}), NULL);
	memset(p, 0, sizeof cv->paddings);
	return x;
}

// The sums as a filter [OC x C x KH x KW]; those of one for each channel have no axis of channels.
static Value *filter_plain(Builder *b, Value *sums, const Type *out)
{
	const int rank = sums->type->rank;
	Nest n = nest_open(b, out);
	Value *lanes = index_dim(&n.b, sums->type->dims[rank - 1]), *at[5];
	at[0] = index_div(&n.b, n.at[0], lanes);
	memcpy(at + 1, n.at + 6 - rank, (size_t)(rank - 2) * sizeof *at);
	at[rank - 1] = index_mod(&n.b, n.at[0], lanes);
	return nest_close(&n, load(&n.b, sums, at));
}

// [ceil(OC / b) x IC x KH x KW x b], without IC where each channel has a filter of its own.
static const Type *sums_type(const Layout *l, const Conv *cv, bool single)
{
	Context *c = l->ctx;
	const int64_t lanes = layout_lanes(l, cv->oc);
	const int64_t sizes[5] = {(cv->oc + lanes - 1) / lanes, cv->ic, cv->kh, cv->kw, lanes};
	const Dim *dims[5];
	int rank = 0;
	for (int i = 0; i < 5; i++)
		if (i != 1 || !single)
			dims[rank++] = dim_const(c, sizes[i]);
	return type_tensor(c, DT_F32, rank, dims, 0);
}

// Few channels that nobody has in blocks are read plain.
static Value *filter_sums(Layout *l, Builder *b, Conv *cv, int64_t groups, bool single)
{
	Context *c = l->ctx;
	Value *x = blocked_find(l, cv->x), *d = blocked_get(l, op_operand(cv->op, 1));
	const bool plain = !x && groups == 1 && cv->channels <= MAX_PLAIN_CHANNELS;
	if (!x)
		x = plain ? image_padded(b, cv) : blocked_get(l, cv->x);
	if (!x)
		return NULL;
	Op *kernel = layout_kernel(
		cv->op, single ? OP_KERNEL_FILTER_GRADIENT_SINGLE : OP_KERNEL_FILTER_GRADIENT,
		sums_type(l, cv, single), 2, (Value *[]){x, d});
	conv_set_geometry(kernel, cv);
	if (!single) {
		op_set_attr(kernel, "groups", attr_int(c, groups));
		op_set_attr(kernel, "in_channels", attr_int(c, cv->ic));
		op_set_attr(kernel, "plain_input", attr_bool(c, plain));
	}
	return &kernel->results[0];
}

bool layout_filter_gradient(Layout *l, Op *op)
{
	Conv cv;
	int64_t groups;
	if (!target_has(l->target, OP_KERNEL_FILTER_GRADIENT) || op->code != OP_PD_FILTER2D_GRADIENT ||
	    !filter_read(op, &cv, &groups))
		return false;
	const bool single = groups > 1 && cv.ic == 1 && cv.oc == groups && cv.channels == groups;
	if (!single && groups > 1 && cv.oc / groups % layout_lanes(l, cv.oc))
		return false;
	Builder b = builder_before(op);
	Value *sums = filter_sums(l, &b, &cv, groups, single),
		  *out = sums ? filter_plain(&b, sums, op->results[0].type) : NULL;
	if (!out)
		return false;
	op_replace(op, &out);
	return true;
}

// ---- pooling ------------------------------------------------------------------------------------

// Whether any operand is there in blocks, so that all are read so.
static bool reads_blocks(const Layout *l, const Op *op)
{
	bool blocked = false;
	for (int i = 0; i < op->noperand; i++)
		blocked |= op_operand(op, i) && blocked_find(l, op_operand(op, i));
	return blocked && type_blockable(op->results[0].type);
}

// `even`: windows share the axes out. False: only a run knows them.
static bool pool_read(Op *op, Window *w, int64_t *paddings, bool *even)
{
	if (!window_of_pool(op, w))
		return false;
	*even = w->whole || w->adaptive;
	for (int i = 0; i < 2; i++) {
		if (!dim_is_const(w->before[i]) || (!*even && !dim_is_const(w->kernel[i])))
			return false;
		paddings[i] = w->before[i]->value;
	}
	return true;
}

// Whether each element of the image lies in one window.
static bool windows_tile(const Op *op, const Window *w, const int64_t *paddings, bool even)
{
	for (int i = 0; i < 2; i++) {
		const Dim *size = w->size[i], *count = op_operand(op, 0)->type->dims[2 + i];
		if (!dim_is_const(size) || !dim_is_const(count))
			return false;
		if (even ? size->value % count->value
		         : !dim_is(w->kernel[i], w->stride[i]) ||
		               count->value * w->stride[i] < size->value + paddings[i])
			return false;
	}
	return true;
}

// Whether a pooling with the words of its gradient made the maxima of this image.
static bool makes_maxima(const Op *gradient)
{
	static const char *const words[] = {"kernel_size",       "strides",        "paddings",
	                                    "ceil_mode",         "global_pooling", "adaptive",
	                                    "padding_algorithm", "pooling_type"};
	const Op *pool = op_operand(gradient, 2) ? op_operand(gradient, 2)->def : NULL;
	if (!pool || pool->code != OP_PD_POOL2D || channels_last(pool) ||
	    op_operand(pool, 0) != op_operand(gradient, 1))
		return false;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (op_attr(pool, words[i]) != op_attr(gradient, words[i]))
			return false;
	return true;
}

bool layout_pool_gradient(Layout *l, Op *op)
{
	Context *c = l->ctx;
	Window w;
	const Type *t = op->results[0].type;
	int64_t paddings[2];
	bool even;
	if (!target_has(l->target, OP_KERNEL_POOL_GRADIENT) || op->code != OP_PD_POOL2D_GRADIENT ||
	    t->dtype != DT_F32 || t->rank != 4 || !pool_read(op, &w, paddings, &even))
		return false;
	const bool blocked = reads_blocks(l, op), tiled = windows_tile(op, &w, paddings, even);
	// What a window reads to find its maximum is what it writes: nobody need keep the maxima.
	const int noperand = tiled && makes_maxima(op) ? 2 : op->noperand;
	Value *operands[3];
	for (int i = 0; i < noperand; i++) {
		Value *v = op_operand(op, i);
		operands[i] = v && blocked ? blocked_get(l, v) : v;
	}
	Op *kernel = layout_kernel(op, OP_KERNEL_POOL_GRADIENT, blocked ? type_blocked(l, t) : t,
	                           noperand, operands);
	op_set_attr(kernel, "kernel",
	            attr_dims(c, 2, even ? op_operand(op, 0)->type->dims + 2 : w.kernel));
	op_set_attr(kernel, "strides", attr_ints(c, 2, w.stride));
	op_set_attr(kernel, "paddings", attr_ints(c, 2, paddings));
	op_set_attr(kernel, "adaptive", attr_bool(c, even));
	op_set_attr(kernel, "exclusive", attr_bool(c, op_bool(op, "exclusive", true)));
	op_set_attr(kernel, "tiled", attr_bool(c, tiled));
	op_set_attr(kernel, "blocked", attr_bool(c, blocked));
	if (blocked)
		blocked_set(l, op, &kernel->results[0]);
	else
		op_replace(op, (Value *[]){&kernel->results[0]});
	return true;
}
