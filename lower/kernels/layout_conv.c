// Convolutions to kernel.conv and kernel.depthwise on blocked tensors, with weights packed as these
// read them. Called by layout.c. What does not fit (other element types, sizes that only a run
// tells) stays for to-loops.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

// ---- attributes ---------------------------------------------------------------------------------

bool conv_window(Conv *cv)
{
	Window w;
	if (!window_of_conv(cv->op, &w) || w.n != 2)
		return false;
	for (int i = 0; i < 2; i++) {
		cv->strides[i] = w.stride[i];
		cv->dilations[i] = w.dilation[i];
		if (!dim_is_const(w.before[i]) || !dim_is_const(w.after[i]))
			return false;
		cv->paddings[i] = w.before[i]->value;
		cv->paddings[2 + i] = w.after[i]->value;
	}
	return true;
}

static bool conv_read(Op *op, Conv *cv)
{
	if (op->info->filter != FILTER_OUT)
		return false;
	cv->op = op;
	cv->x = op_operand(op, 0);
	cv->filter = op_operand(op, 1);
	const Type *t = cv->x->type, *f = cv->filter->type;
	if (!format_is_nchw(op))
		return false;
	if (!type_blockable(t) || t->dtype != DT_F32 || f->dtype != DT_F32 || f->rank != 4)
		return false;
	for (int i = 0; i < 4; i++)
		if (!dim_is_const(f->dims[i]) || f->dims[i]->value < 1)
			return false;
	cv->oc = f->dims[0]->value;
	cv->ic = f->dims[1]->value;
	cv->kh = f->dims[2]->value;
	cv->kw = f->dims[3]->value;
	cv->channels = type_channels(t);
	return type_blockable(op->results[0].type) && conv_window(cv);
}

// ---- kernels ------------------------------------------------------------------------------------

void conv_set_geometry(Op *kernel, const Conv *cv)
{
	Context *c = kernel->ctx;
	op_set_attr(kernel, "strides", attr_ints(c, 2, cv->strides));
	op_set_attr(kernel, "paddings", attr_ints(c, 4, cv->paddings));
	op_set_attr(kernel, "dilations", attr_ints(c, 2, cv->dilations));
}

static Value *pack_filter(Op *op, Value *filter, int rank, const int64_t *sizes)
{
	Context *c = op->ctx;
	const Dim *dims[5];
	for (int i = 0; i < rank; i++)
		dims[i] = dim_const(c, sizes[i]);
	const Type *type = type_tensor(c, filter->type->dtype, rank, dims, 0);
	Op *pack = layout_kernel(op, OP_KERNEL_PACK_CONV, type, 1, &filter);
	pack->results[0].name = filter->name;
	return &pack->results[0];
}

int64_t conv_tile_vectors(const Layout *l, int64_t oc, int64_t b)
{
	int64_t blocks = (oc + b - 1) / b, max = l->target->conv_nv;
	int64_t groups = (blocks + max - 1) / max;
	return (blocks + groups - 1) / groups;
}

// Where tiles are two vectors wide, an odd number of them would leave one for the last tiles, whose
// sums are too few to hide the latency of an addition. Three are as good as two, if the pixels are
// fewer, so they are taken where nothing or two are left then.
static int64_t dense_tile_vectors(const Layout *l, int64_t oc, int64_t b)
{
	const int64_t blocks = (oc + b - 1) / b;
	const bool threes = l->target->conv_nv == 2 && blocks > 1 && blocks % 2 && blocks % 3 != 1;
	return threes ? 3 : conv_tile_vectors(l, oc, b);
}

Value *conv_dense(Layout *l, const Conv *cv, const Type *out)
{
	Context *c = l->ctx;
	const int64_t b = layout_lanes(l, cv->oc), q = dense_tile_vectors(l, cv->oc, b) * b;
	int64_t sizes[5] = {(cv->oc + q - 1) / q, cv->ic, cv->kh, cv->kw, q};
	Value *w = pack_filter(cv->op, cv->filter, 5, sizes), *x = blocked_find(l, cv->x);
	bool plain = !x && cv->channels <= MAX_PLAIN_CHANNELS;
	if (!x)
		x = plain ? cv->x : blocked_get(l, cv->x);
	Op *kernel = layout_kernel(cv->op, OP_KERNEL_CONV, type_blocked(l, out), 2, (Value *[]){x, w});
	conv_set_geometry(kernel, cv);
	op_set_attr(kernel, "groups", attr_int(c, 1));
	op_set_attr(kernel, "in_channels", attr_int(c, cv->channels));
	op_set_attr(kernel, "plain_input", attr_bool(c, plain));
	epilogue_identity(kernel, &kernel->regions[0]);
	return &kernel->results[0];
}

// Groups that share blocks, as many channels in as out: lanes need not leave their block.
static bool groups_are_narrow(const Layout *l, const Conv *cv, int64_t groups)
{
	const int64_t b = layout_lanes(l, cv->channels);
	return cv->ic * groups == cv->oc && cv->ic < b && b % cv->ic == 0;
}

Value *conv_narrow(Layout *l, const Conv *cv, const Type *out)
{
	const int64_t b = layout_lanes(l, cv->channels);
	int64_t sizes[5] = {(cv->oc + b - 1) / b, cv->ic, cv->kh, cv->kw, b};
	const bool depthwise = cv->ic == 1;
	if (depthwise)
		memmove(sizes + 1, sizes + 2, 3 * sizeof *sizes);
	Value *w = pack_filter(cv->op, cv->filter, depthwise ? 4 : 5, sizes),
		  *x = blocked_get(l, cv->x);
	Op *kernel = layout_kernel(cv->op, OP_KERNEL_DEPTHWISE, type_in_blocks(l->ctx, out, b), 2,
	                           (Value *[]){x, w});
	conv_set_geometry(kernel, cv);
	epilogue_identity(kernel, &kernel->regions[0]);
	return &kernel->results[0];
}

// [C * m x 1 x KH x KW] to [m * each x 1 x KH x KW]: what channels have first, then what they have
// second.
static Value *filter_of_repeats(const Conv *cv, int64_t m, int64_t each)
{
	Context *c = cv->op->ctx;
	Builder b = builder_before(cv->op);
	const Dim *const *f = cv->filter->type->dims;
	const Dim *dims[4] = {dim_const(c, cv->channels), dim_const(c, m), f[2], f[3]};
	Value *w = build_view(&b, cv->filter, 4, dims);
	w = w ? build1(&b, OP_PD_TRANSPOSE, w, "perm", attr_ints(c, 4, (int64_t[]){1, 0, 2, 3}), NULL)
	      : NULL;
	if (w && each > cv->channels)
		w = build1(&b, OP_PD_PAD, w, "paddings",
		           attr_ints(c, 8, (int64_t[]){0, 0, 0, each - cv->channels, 0, 0, 0, 0}), NULL);
	return w ? build_view(&b, w, 4, (const Dim *[]){dim_const(c, m * each), f[1], f[2], f[3]})
	         : NULL;
}

// m results of each channel: kernel.depthwise makes the first ones of all channels, then the
// second, and a nest brings them in order.
static Value *conv_repeats(Layout *l, const Conv *cv)
{
	const int64_t lanes = layout_lanes(l, cv->channels), made_of = layout_lanes(l, cv->oc),
				  m = cv->oc / cv->channels, each = (cv->channels + lanes - 1) / lanes * lanes;
	const Type *t = cv->op->results[0].type;
	Conv all = *cv;
	all.oc = m * each;
	all.filter = filter_of_repeats(cv, m, each);
	if (!all.filter)
		return NULL;
	const Dim *dims[4] = {t->dims[0], dim_const(l->ctx, all.oc), t->dims[2], t->dims[3]};
	Value *made = conv_narrow(l, &all, type_tensor(l->ctx, t->dtype, 4, dims, 0));
	Builder before = builder_before(cv->op);
	Nest n = nest_open(&before, type_blocked(l, t));
	Builder *b = &n.b;
	Value *channel = index_add(b, index_times(b, n.at[1], made_of), n.at[4]);
	if (made_of > lanes) // lanes past the last channel read none that is not there
		channel = index_min(b, channel, index_const(b, cv->oc - 1));
	Value *of = index_const(b, m), *block = index_const(b, lanes),
		  *from = index_div(b, channel, of);
	Value *at[5] = {n.at[0], index_times(b, index_mod(b, channel, of), each / lanes), n.at[2],
	                n.at[3], index_mod(b, from, block)};
	at[1] = index_add(b, at[1], index_div(b, from, block));
	return nest_close(&n, load(b, made, at));
}

// Each group's filters begin a row of packed weights, which they need not fill.
static Value *filter_of_groups(const Conv *cv, int64_t groups, int64_t q)
{
	Context *c = cv->op->ctx;
	Builder b = builder_before(cv->op);
	const int64_t share = cv->oc / groups, more = (share + q - 1) / q * q - share;
	const Dim *const *f = cv->filter->type->dims;
	if (!more)
		return cv->filter;
	Value *w = build_view(
		&b, cv->filter, 5,
		(const Dim *[]){dim_const(c, groups), dim_const(c, share), f[1], f[2], f[3]});
	w = build1(&b, OP_PD_PAD, w, "paddings",
	           attr_ints(c, 10, (int64_t[]){0, 0, 0, more, 0, 0, 0, 0, 0, 0}), NULL);
	return w ? build_view(&b, w, 4,
	                      (const Dim *[]){dim_const(c, groups * (share + more)), f[1], f[2], f[3]})
	         : NULL;
}

Value *conv_groups(Layout *l, const Conv *cv, const Type *out, int64_t groups)
{
	Context *c = l->ctx;
	const int64_t share = cv->oc / groups, b = layout_lanes(l, cv->oc),
				  q = conv_tile_vectors(l, share, b) * b;
	Value *filter = filter_of_groups(cv, groups, q), *x = filter ? blocked_get(l, cv->x) : NULL;
	if (!x)
		return NULL;
	const int64_t rows = groups * ((share + q - 1) / q);
	Value *w = pack_filter(cv->op, filter, 5, (int64_t[]){rows, cv->ic, cv->kh, cv->kw, q});
	Op *kernel = layout_kernel(cv->op, OP_KERNEL_CONV, type_blocked(l, out), 2, (Value *[]){x, w});
	conv_set_geometry(kernel, cv);
	op_set_attr(kernel, "groups", attr_int(c, groups));
	op_set_attr(kernel, "in_channels", attr_int(c, cv->ic));
	op_set_attr(kernel, "out_channels", attr_int(c, share));
	epilogue_identity(kernel, &kernel->regions[0]);
	return &kernel->results[0];
}

// On an image whose channels lie behind each other, in whole vectors; NULL: it is none.
static Value *conv_last(Layout *l, const Conv *cv)
{
	const int64_t b = layout_lanes(l, cv->oc), sizes[4] = {cv->oc / b, cv->kh, cv->kw, b};
	Value *x = blocked_find(l, cv->x) || cv->oc % b ? NULL : last_find(l, cv->op, cv->x);
	if (!x)
		return NULL;
	const Dim *const *d = cv->op->results[0].type->dims, *dims[4] = {d[0], d[2], d[3], d[1]};
	Value *w = pack_filter(cv->op, cv->filter, 4, sizes);
	Op *kernel = layout_kernel(cv->op, OP_KERNEL_DEPTHWISE, type_tensor(l->ctx, DT_F32, 4, dims, 0),
	                           2, (Value *[]){x, w});
	conv_set_geometry(kernel, cv);
	op_set_attr(kernel, "channels_last", attr_bool(l->ctx, true));
	epilogue_identity(kernel, &kernel->regions[0]);
	return &kernel->results[0];
}

// x [N x C x H x W] with the columns as channels and the rows side by side, [N x C * W x 1 x H].
static Value *rows_as_columns(Builder *b, Value *x)
{
	const Dim *const *d = x->type->dims;
	Value *v = build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(b->ctx, 4, (int64_t[]){0, 1, 3, 2}),
	                  NULL);
	const Dim *dims[4] = {d[0], dim_mul(b->ctx, d[1], d[3]), dim_const(b->ctx, 1), d[2]};
	return v ? build_view(b, v, 4, dims) : NULL;
}

// A filter as wide as the image, as texts have it: there is one column of results, and a tile wants
// pixels of a row. NULL: it is none.
static Value *conv_narrow_image(Layout *l, const Conv *cv)
{
	const Type *t = cv->op->results[0].type, *x = cv->x->type;
	if (!dim_is(x->dims[3], cv->kw) || cv->kw == 1 || !dim_is(t->dims[3], 1) ||
	    dim_is(t->dims[2], 1) || cv->paddings[1] || cv->paddings[3] || blocked_find(l, cv->x))
		return NULL;
	Builder b = builder_before(cv->op);
	Conv turned = *cv;
	turned.x = rows_as_columns(&b, cv->x);
	turned.filter = rows_as_columns(&b, cv->filter);
	turned.ic = turned.channels = cv->channels * cv->kw;
	turned.kh = 1;
	turned.kw = cv->kh;
	for (int i = 0; i < 4; i++) // rows are columns now, and there is one row
		turned.paddings[i] = i % 2 ? cv->paddings[i - 1] : 0;
	turned.strides[0] = turned.dilations[0] = 1;
	turned.strides[1] = cv->strides[0];
	turned.dilations[1] = cv->dilations[0];
	const Dim *dims[4] = {t->dims[0], t->dims[1], t->dims[3], t->dims[2]};
	if (!turned.x || !turned.filter)
		return NULL;
	Value *made = conv_dense(l, &turned, type_tensor(l->ctx, t->dtype, 4, dims, 0));
	return made ? build_view(&b, made, 5, type_blocked(l, t)->dims) : NULL;
}

Value *build_image_conv(Builder *b, Value *x, Value *filter, const Window *w, int64_t groups)
{
	Context *c = b->ctx;
	const int space = w->n - 2;
	int64_t paddings[4];
	for (int i = 0; i < 2; i++) {
		paddings[2 * i] = w->before[space + i]->value;
		paddings[2 * i + 1] = w->after[space + i]->value;
	}
	return build2(b, OP_PD_CONV2D, x, filter, "strides", attr_ints(c, 2, w->stride + space),
	              "paddings", attr_ints(c, 4, paddings), "dilations",
	              attr_ints(c, 2, w->dilation + space), "groups", attr_int(c, groups), NULL);
}

Value *build_image_transposed(Builder *b, Value *x, Value *filter, const Window *w,
                              const Dim *const *size)
{
	Context *c = b->ctx;
	const int64_t paddings[4] = {w->before[1]->value, w->after[1]->value, w->before[2]->value,
	                             w->after[2]->value};
	return build2(b, OP_PD_CONV2D_TRANSPOSE, x, filter, "strides", attr_ints(c, 2, w->stride + 1),
	              "paddings", attr_ints(c, 4, paddings), "dilations",
	              attr_ints(c, 2, w->dilation + 1), "output_size", attr_dims(c, 2, size), NULL);
}

// The blocked result.
static Value *conv_made(Layout *l, const Conv *cv, int64_t groups)
{
	const Type *out = cv->op->results[0].type;
	if (groups == 1)
		return conv_dense(l, cv, out);
	if (groups_are_narrow(l, cv, groups))
		return conv_narrow(l, cv, out);
	// With few channels most lanes would be empty.
	return cv->ic == 1 && 2 * groups >= layout_lanes(l, groups) ? conv_repeats(l, cv)
	                                                            : conv_groups(l, cv, out, groups);
}

bool layout_conv(Layout *l, Op *op)
{
	Conv cv = {0};
	if (!conv_read(op, &cv))
		return false;
	int64_t groups = op_int(op, "groups", 1);
	if (groups < 1 || cv.ic * groups != cv.channels || cv.oc % groups)
		return false;
	Value *last = cv.ic == 1 && cv.oc == groups ? conv_last(l, &cv) : NULL;
	if (last) {
		last_set(l, op, last);
		return true;
	}
	Value *rows = groups == 1 ? conv_narrow_image(l, &cv) : NULL;
	if (rows) {
		blocked_set(l, op, rows);
		return true;
	}
	Value *few = groups == 1 ? conv_few(l, &cv) : NULL;
	if (few) {
		op_replace(op, &few);
		return true;
	}
	Value *made = conv_made(l, &cv, groups);
	if (made)
		blocked_set(l, op, made);
	return made != NULL;
}
