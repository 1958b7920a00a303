// Transposed convolution with stride s as an ordinary one: pixels of the result that have the same
// position modulo s read the same taps of the filter, so each of the s x s phases is a small
// convolution of stride 1. All phases together are one kernel.conv with s * s times the channels; a
// nest then interleaves them. Zeros are multiplied only where phases have fewer taps than others,
// and between the taps of a dilated filter. Called by layout.c.
//
//   out[o] = sum over i * s + k = o + before of x[i] * w[k];   with o + before = q * s + r and k = r + s * j:
//   out[o] = sum over j of x[q - j] * w[r + s * j]
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

bool phase_read(Context *c, const Window *w, int i, const Dim *out, Phase *p)
{
	if (!dim_is_const(w->kernel[i]) || !dim_is_const(w->before[i]) || w->dilation[i] < 1 ||
	    w->stride[i] < 1)
		return false;
	*p = (Phase){.stride = w->stride[i],
	             .dilation = w->dilation[i],
	             .before = w->before[i]->value,
	             .kernel = (w->kernel[i]->value - 1) * w->dilation[i] + 1};
	p->taps = (p->kernel + p->stride - 1) / p->stride;
	p->first = p->before / p->stride;
	p->pad[0] = p->taps - 1 - p->first;
	// What the result has more than a transposed convolution without padding behind it.
	const Dim *full = dim_add(
		c, dim_mul(c, dim_sub(c, w->size[i], dim_const(c, 1)), dim_const(c, p->stride)),
		dim_const(c, p->kernel - p->before));
	const Dim *more = dim_sub(c, out, full);
	if (!dim_is_const(more))
		return false;
	int64_t last = p->kernel - 1 + more->value;
	p->pad[1] = last / p->stride;
	p->count = dim_add(c, w->size[i], dim_const(c, p->pad[0] + p->pad[1] - p->taps + 1));
	return p->pad[0] >= 0 && last >= 0;
}

int64_t phase_tap(const Phase *p, int64_t phase, int64_t at)
{
	const int64_t k = phase + p->stride * (p->taps - 1 - at);
	return k < p->kernel && k % p->dilation == 0 ? k / p->dilation : -1;
}

// [IC x OC / groups x KH x KW] to [groups * phases * each x IC / groups x taps x taps], flipped;
// `each` is OC / groups, or more with zeros behind.
static Tensor *phase_filter(Context *c, const Tensor *w, const Phase *p, int64_t groups,
                            int64_t each)
{
	int64_t ic = w->dims[0] / groups, oc = w->dims[1], kh = w->dims[2], kw = w->dims[3],
			sx = p[1].stride;
	int64_t share = p[0].stride * sx * each; // of a group
	int64_t dims[4] = {groups * share, ic, p[0].taps, p[1].taps};
	Tensor *t = tensor_new(c->arena, w->dtype, 4, dims);
	if (!t)
		return NULL;
	const size_t size = dtype_size(w->dtype);
	const char *from = w->data;
	char *to = t->data;
	for (int64_t o = 0; o < dims[0]; o++)
		for (int64_t i = 0; i < ic; i++)
			for (int64_t y = 0; y < dims[2]; y++)
				for (int64_t x = 0; x < dims[3]; x++, to += size) {
					int64_t phase = o % share / each, channel = o % each,
							from_channel = o / share * ic + i;
					int64_t ky = phase_tap(&p[0], phase / sx, y);
					int64_t kx = phase_tap(&p[1], phase % sx, x);
					bool inside = channel < oc && ky >= 0 && kx >= 0;
					if (inside)
						memcpy(to,
						       from +
						           (size_t)(((from_channel * oc + channel) * kh + ky) * kw + kx) *
						               size,
						       size);
				}
	return t;
}

// The tap of the filter that position `at` of the small convolution is, in a nest: `inside` learns
// where it is one.
static Value *tap_at(Builder *b, const Phase *p, Value *phase, Value *at, Value **inside)
{
	Value *k = index_times(b, index_sub(b, index_const(b, p->taps - 1), at), p->stride);
	k = index_add(b, phase, k);
	if (p->kernel % p->stride)
		*inside = pred_and(b, *inside, index_less(b, k, index_const(b, p->kernel)));
	if (p->dilation == 1)
		return k;
	Value *by = index_const(b, p->dilation);
	*inside = pred_and(b, *inside, index_equal(b, index_mod(b, k, by), index_const(b, 0)));
	return index_div(b, k, by);
}

// The same of a filter that only a run knows.
static Value *phase_filter_at_run(Builder *b, Value *w, const Phase *p, int64_t groups,
                                  int64_t each)
{
	Context *c = b->ctx;
	const Dim *const *d = w->type->dims;
	const int64_t ic = d[0]->value / groups, oc = d[1]->value,
				  share = p[0].stride * p[1].stride * each;
	const Dim *dims[4] = {dim_const(c, groups * share), dim_const(c, ic), dim_const(c, p[0].taps),
	                      dim_const(c, p[1].taps)};
	Nest n = nest_open(b, type_tensor(c, w->type->dtype, 4, dims, 0));
	Builder *in = &n.b;
	Value *at[4], *inside = NULL, *width = index_const(in, each),
				  *across = index_const(in, p[1].stride);
	Value *phase = index_div(in, index_mod(in, n.at[0], index_const(in, share)), width);
	at[0] = index_add(in, index_times(in, index_div(in, n.at[0], index_const(in, share)), ic),
	                  n.at[1]);
	at[1] = index_mod(in, n.at[0], width);
	if (each > oc)
		inside = index_less(in, at[1], index_const(in, oc));
	at[2] = tap_at(in, &p[0], index_div(in, phase, across), n.at[2], &inside);
	at[3] = tap_at(in, &p[1], index_mod(in, phase, across), n.at[3], &inside);
	return nest_close(&n, load_or(in, inside, build_scalar_f(in, w->type->dtype, 0), w, at));
}

Value *phase_split(Builder *b, const Phase *p, Value *at, Value **rest)
{
	Value *t = index_plus(b, at, p->before - p->first * p->stride);
	Value *s = index_const(b, p->stride);
	*rest = index_mod(b, t, s);
	return index_div(b, t, s);
}

// How the convolution for all phases is built: its images, and where a phase begins among its
// channels.
typedef struct Phases {
	bool depthwise;        // phases of all channels stand side by side, as if of one group
	bool blocked;          // its images
	bool plain;            // the result
	int64_t lanes;         // of the blocks that phases are made of, where the result has blocks
	int64_t each;          // channels from one phase to the next
	int64_t groups, count; // count: phases, which stand side by side in each group
} Phases;

// Few channels would mostly be empty lanes, and groups may end within blocks: then the result is
// plain, else blocked with whole blocks per phase.
static Phases phases_of(const Layout *l, const Type *w, const Phase *p, int64_t groups)
{
	const int64_t lanes = l->target->lanes, oc = w->dims[1]->value;
	const bool blocked = (groups == 1 || l->target->channel_lanes) &&
	                     layout_has_blocks(l, w->dtype);
	Phases s = {.depthwise = blocked && groups > 1 && oc == 1 && dim_is(w->dims[0], groups),
	            .blocked = blocked,
	            .groups = groups,
	            .each = oc,
	            .count = p[0].stride * p[1].stride};
	if (s.depthwise) {
		s.groups = 1;
		s.each = groups;
	}
	s.plain = !blocked || (!s.depthwise && (2 * oc <= lanes || (groups > 1 && oc % lanes)));
	s.lanes = layout_lanes(l, s.depthwise ? groups : oc);
	if (!s.plain && s.count > 1)
		s.each = (s.each + s.lanes - 1) / s.lanes * s.lanes;
	return s;
}

// Where the nest's element lies among `phases`: its channel there is that of its phase.
static void phase_place(Nest *n, Value *phases, Value *phase, const Phases *s, Value **at)
{
	Builder *b = &n->b;
	const int64_t each = s->plain ? s->each : s->each / s->lanes;
	at[1] = index_add(b, index_times(b, phase, each), n->at[1]);
	if (s->groups > 1)
		at[1] = index_add(
			b, at[1],
			index_times(b, index_div(b, n->at[1], index_const(b, each)), (s->count - 1) * each));
	if (!s->blocked)
		return;
	at[4] = n->at[4];
	if (s->plain) {
		Value *channel = at[1], *block = index_dim(b, phases->type->dims[4]);
		at[1] = index_div(b, channel, block);
		at[4] = index_mod(b, channel, block);
	}
}

// Where the element of a nest is whose axes are split: o = stride * at + rest.
static Value *split_position(Builder *b, const Phase *p, Value *at, Value *rest, Value **phase)
{
	Value *s = index_const(b, p->stride);
	Value *t = index_plus(b, rest, p->before - p->first * p->stride);
	*phase = index_mod(b, t, s);
	return index_add(b, at, index_div(b, t, s));
}

// A plain result whose sizes are multiples of the strides: what is divided for each pixel is but
// the number of a phase, which loops of constant length have. NULL: the sizes are none.
static Value *interleave_split(Layout *l, Op *op, Value *phases, const Phase *p, const Phases *s)
{
	Context *c = l->ctx;
	const Type *t = op->results[0].type;
	const Dim *const *d = t->dims;
	Builder b = builder_before(op);
	for (int i = 0; i < 2; i++)
		if (!dim_is(dim_mod(c, d[2 + i], dim_const(c, p[i].stride)), 0))
			return NULL;
	if (s->blocked) {
		const Dim *channels = dim_const(c, s->groups * s->count * s->each);
		const Dim *dims[4] = {d[0], channels, p[0].count, p[1].count};
		Op *plain = layout_kernel(op, OP_KERNEL_UNBLOCK, type_tensor(c, t->dtype, 4, dims, 0), 1,
		                          &phases);
		op_set_attr(plain, "channels", attr_int(c, channels->value));
		phases = &plain->results[0];
	}
	const Dim *dims[7] = {d[0], dim_const(c, s->groups), dim_const(c, s->each)};
	for (int i = 0; i < 2; i++) {
		dims[4 + 2 * i] = dim_const(c, p[i].stride);
		dims[3 + 2 * i] = dim_div(c, d[2 + i], dims[4 + 2 * i]);
	}
	Nest n = nest_open(&b, type_tensor(c, t->dtype, 7, dims, 0));
	Value *ry, *rx, *at[4] = {n.at[0]};
	at[2] = split_position(&n.b, &p[0], n.at[3], n.at[4], &ry);
	at[3] = split_position(&n.b, &p[1], n.at[5], n.at[6], &rx);
	Value *phase = index_add(&n.b, index_times(&n.b, ry, p[1].stride), rx);
	at[1] = index_add(&n.b, index_times(&n.b, n.at[1], s->count * s->each),
	                  index_add(&n.b, index_times(&n.b, phase, s->each), n.at[2]));
	Value *out = nest_close(&n, load(&n.b, phases, at));
	if (!out)
		return NULL;
	out->name = op->results[0].name;
	return build_view(&b, out, 4, d);
}

static Value *interleave(Layout *l, Op *op, Value *phases, const Phase *p, const Phases *s)
{
	const Type *type = op->results[0].type;
	Value *split = s->plain && l->target->channel_lanes ? interleave_split(l, op, phases, p, s)
	                                                    : NULL;
	if (split)
		return split;
	Builder before = builder_before(op);
	Nest n = nest_open(&before, s->plain ? type : type_blocked(l, type));
	Value *ry, *rx, *at[5] = {n.at[0]};
	at[2] = phase_split(&n.b, &p[0], n.at[2], &ry);
	at[3] = phase_split(&n.b, &p[1], n.at[3], &rx);
	phase_place(&n, phases, index_add(&n.b, index_times(&n.b, ry, p[1].stride), rx), s, at);
	return nest_close(&n, load(&n.b, phases, at));
}

// All phases as one convolution; NULL: it does not suit a kernel.
static Value *phases_convolve(Layout *l, const Conv *cv, const Phases *s, const Type *out)
{
	if (s->depthwise)
		return conv_narrow(l, cv, out);
	if (!l->target->tiles)
		return s->groups > 1 ? conv_groups(l, cv, out, s->groups) : conv_dense(l, cv, out);
	ImageForm form = conv_image_form(l, cv, s->groups);
	if (s->groups > 1 && form == IMAGE_BLOCKED)
		form = IMAGE_PLAIN; // phases are no whole blocks
	return (form == IMAGE_BLOCKED) == s->blocked ? conv_image(l, cv, form, out, cv->x, s->groups)
	                                             : NULL;
}

// How many taps in front a phase has not, of those that the small convolutions have.
static int64_t taps_missing(const Phase *p, int64_t phase)
{
	int64_t n = 0;
	while (n < p->taps && phase_tap(p, phase, n) < 0)
		n++;
	return n;
}

// Whether phases have so many fewer taps than others that each is a convolution of its own.
static bool phases_differ(const Layout *l, const Phase *p, const Phases *s)
{
	// Of the products; and how many convolutions the code may have for it.
	enum { WORTH_NUM = 3, WORTH_DEN = 4, MOST = 4 };
	if (s->count > MOST || !s->blocked || s->plain || s->depthwise || s->groups > 1 ||
	    l->target->tiles)
		return false;
	int64_t all = 1, some = 1;
	for (int i = 0; i < 2; i++) {
		all *= p[i].taps * p[i].stride;
		some *= p[i].kernel;
		// A phase without a tap is no convolution, and none begins behind the first pixel.
		if (p[i].dilation != 1 || p[i].kernel < p[i].stride ||
		    (p[i].kernel % p[i].stride && p[i].pad[0] < 1))
			return false;
	}
	return some * WORTH_DEN <= all * WORTH_NUM;
}

// The filter of one phase, without the taps that it has not.
static Tensor *phase_part(Context *c, const Tensor *all, int64_t first, const int64_t *dims)
{
	Tensor *t = tensor_new(c->arena, all->dtype, 4, dims);
	if (!t)
		return NULL;
	const size_t size = dtype_size(all->dtype), row = (size_t)dims[3] * size;
	char *to = t->data;
	for (int64_t o = 0; o < dims[0]; o++)
		for (int64_t i = 0; i < dims[1]; i++)
			for (int64_t y = all->dims[2] - dims[2]; y < all->dims[2]; y++, to += row) {
				const int64_t at = ((first + o) * all->dims[1] + i) * all->dims[2] + y;
				memcpy(to,
				       (const char *)all->data + (size_t)((at + 1) * all->dims[3] - dims[3]) * size,
				       row);
			}
	return t;
}

// As phases_convolve, with a convolution for each phase; their channels stand side by side.
static Value *phases_apart(Layout *l, const Conv *cv, const Phase *p, const Phases *s,
                           const Type *out)
{
	Context *c = l->ctx;
	const Tensor *w = value_constant(cv->filter);
	Value **parts = NEW_ARRAY(c->arena, (size_t)s->count, Value *);
	const Dim *dims[4] = {out->dims[0], dim_const(c, s->each), out->dims[2], out->dims[3]};
	Builder b = builder_before(cv->op);
	for (int64_t i = 0; i < s->count; i++) {
		const int64_t missing[2] = {taps_missing(&p[0], i / p[1].stride),
		                            taps_missing(&p[1], i % p[1].stride)};
		const int64_t sizes[4] = {s->each, cv->ic, cv->kh - missing[0], cv->kw - missing[1]};
		Tensor *t = phase_part(c, w, i * s->each, sizes);
		Conv one = *cv;
		one.filter = t ? build_parameter(&b, cv->filter->name, "part", t) : NULL;
		if (!one.filter)
			return NULL;
		one.oc = s->each;
		one.kh = sizes[2];
		one.kw = sizes[3];
		one.paddings[0] -= missing[0];
		one.paddings[1] -= missing[1];
		parts[i] = conv_dense(l, &one, type_tensor(c, out->dtype, 4, dims, 0));
	}
	Value *list = build(&b, OP_BUILTIN_COMBINE, (int)s->count, parts, NULL);
	return list ? build1(&b, OP_PD_CONCAT, list, "axis", attr_int(c, 1), NULL) : NULL;
}

static bool deconv_dtype(const Layout *l, DType t)
{
	return t == DT_F32 || (l->target->half && dtype_is_half(t));
}

// Whether the types are those of one that becomes a kernel; for CUDA the filter is constant.
static bool transposed_fits(const Layout *l, const Op *op)
{
	const Type *x = op_operand(op, 0)->type, *w = op_operand(op, 1)->type,
			   *out = op->results[0].type;
	if ((l->target->tiles && !value_constant(op_operand(op, 1))) || w->dtype != x->dtype ||
	    w->rank != 4 || !deconv_dtype(l, w->dtype) || !type_blockable(x) || !type_blockable(out))
		return false;
	for (int i = 0; i < 4; i++)
		if (!dim_is_const(w->dims[i]) || w->dims[i]->value < 1)
			return false;
	return w->dims[0]->value == type_channels(x) &&
	       w->dims[1]->value * op_int(op, "groups", 1) == type_channels(out);
}

static bool phases_read(Op *op, Phase *p)
{
	Window w;
	if (!window_of_conv(op, &w) || w.channel != 1)
		return false;
	const Dim *const *made = op->results[0].type->dims + 2;
	return phase_read(op->ctx, &w, 0, made[0], &p[0]) && phase_read(op->ctx, &w, 1, made[1], &p[1]);
}

// The filter of all phases: of depthwise ones, as those of one channel. NULL: there is no memory.
static Value *phases_filter(Builder *b, Value *filter, const Phase *p, const Phases *s)
{
	const Tensor *w = value_constant(filter);
	const Dim *const *d = filter->type->dims;
	if (!w) {
		if (s->depthwise)
			filter = build_view(b, filter, 4,
			                    (const Dim *[]){dim_const(b->ctx, 1), d[0], d[2], d[3]});
		return filter ? phase_filter_at_run(b, filter, p, s->groups, s->each) : NULL;
	}
	Tensor one = *w;
	if (s->depthwise) {
		one.dims[0] = 1;
		one.dims[1] = w->dims[0];
	}
	Tensor *t = phase_filter(b->ctx, &one, p, s->groups, s->each);
	return t ? build_parameter(b, filter->name, "phases", t) : NULL;
}

bool layout_conv_transpose(Layout *l, Op *op)
{
	Context *c = l->ctx;
	const int64_t groups = op_int(op, "groups", 1);
	Phase p[2];
	if (op->info->filter != FILTER_IN || !transposed_fits(l, op) || !phases_read(op, p))
		return false;
	Value *x = op_operand(op, 0), *filter = op_operand(op, 1);
	const Type *out = op->results[0].type;
	bool single = p[0].stride == 1 && p[1].stride == 1;
	const Phases s = phases_of(l, filter->type, p, groups);
	Builder b = builder_before(op);
	filter = phases_filter(&b, filter, p, &s);
	if (!filter)
		return false;
	const Dim *const *t = filter->type->dims;
	Conv cv = {.op = op,
	           .x = x,
	           .filter = filter,
	           .oc = t[0]->value,
	           .ic = t[1]->value,
	           .kh = t[2]->value,
	           .kw = t[3]->value,
	           .channels = type_channels(x->type),
	           .strides = {1, 1},
	           .dilations = {1, 1},
	           .paddings = {p[0].pad[0], p[1].pad[0], p[0].pad[1], p[1].pad[1]}};
	const Dim *dims[4] = {out->dims[0], dim_const(c, cv.oc), p[0].count, p[1].count};
	const Type *made = single ? out : type_tensor(c, out->dtype, 4, dims, 0);
	Value *phases = value_constant(filter) && phases_differ(l, p, &s)
	                    ? phases_apart(l, &cv, p, &s, made)
	                    : phases_convolve(l, &cv, &s, made);
	Value *form = single || !phases ? phases : interleave(l, op, phases, p, &s);
	if (!form)
		return false;
	if (!s.blocked || (!single && s.plain))
		op_replace(op, &form);
	else
		blocked_set(l, op, form);
	return true;
}
