// What convolution and pooling mean, as loop nests (ir/ops/nn.yaml).
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/infer/geometry.h"

#include <float.h>
#include <math.h>
#include <string.h>

// ---- convolution --------------------------------------------------------------------------------

// out[n, oc, o] = sum over c, k of input[n, group of oc + c, o * stride - before + k * dilation] *
// filter[oc, c, k]
bool define_hook_conv(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *filter = op_operand(op, 1), *at[MAX_RANK], *from[MAX_RANK],
		  *inside = NULL;
	const Type *out = op->results[0].type;
	int64_t groups = op_int(op, "groups", 1);
	Window w;
	if (!window_of_conv(op, &w))
		return false;
	Nest n = nest_open(b, out);
	Nest r = reduce_open(&n.b, "sum", out->dtype, 1 + w.n, filter->type->dims + 1);
	Value *oc = n.at[w.channel], *channel = r.at[0];
	if (groups > 1) {
		const Dim *per_group = dim_div(b->ctx, filter->type->dims[0], dim_const(b->ctx, groups));
		Value *group = index_div(&r.b, oc, index_dim(&r.b, per_group));
		channel = index_add(&r.b, index_mul(&r.b, group, index_dim(&r.b, filter->type->dims[1])),
		                    channel);
	}
	from[0] = n.at[0];
	from[w.channel] = channel;
	at[0] = oc;
	at[1] = r.at[0];
	for (int i = 0; i < w.n; i++) {
		Value *k = at[2 + i] = r.at[1 + i];
		Value *first = index_times(&r.b, n.at[w.axis[i]], w.stride[i]);
		Value *place = index_add(&r.b, first, index_times(&r.b, k, w.dilation[i]));
		from[w.axis[i]] = index_sub(&r.b, place, index_dim(&r.b, w.before[i]));
		if (window_overhangs(&w, i))
			inside = pred_and(&r.b, inside, index_inside(&r.b, from[w.axis[i]], w.size[i]));
	}
	const int64_t zero_point = op_int(op, "zero_point", 0);
	Value *zero = inside ? build_scalar_f(&r.b, x->type->dtype, (double)zero_point) : NULL;
	Value *element = scalar_cast(&r.b, load_or(&r.b, inside, zero, x, from), out->dtype);
	if (zero_point)
		element = tensor_sub(&r.b, element, build_scalar_f(&r.b, out->dtype, (double)zero_point));
	Value *weight = scalar_cast(&r.b, load(&r.b, filter, at), out->dtype);
	results[0] = nest_close(&n, reduce_close(&r, tensor_mul(&r.b, element, weight)));
	return results[0] != NULL;
}

// out[oc, c, k] = sum over images n and positions o of input[n, group of oc + c, o * stride -
// before + k * dilation] * d_out[n, oc, o]
bool define_hook_filter_gradient(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *d = op_operand(op, 1), *from[MAX_RANK], *at[MAX_RANK],
		  *inside = NULL;
	const Type *out = op->results[0].type;
	const Dim *extents[4] = {d->type->dims[0]};
	Window w;
	if (!window_of_conv(op, &w))
		return false;
	memcpy(extents + 1, d->type->dims + 2, (size_t)w.n * sizeof *extents);
	Nest n = nest_open(b, out);
	Value *channel = n.at[1];
	if (op_int(op, "groups", 1) > 1) {
		const Dim *per_group = dim_div(b->ctx, out->dims[0],
		                               dim_const(b->ctx, op_int(op, "groups", 1)));
		Value *group = index_div(&n.b, n.at[0], index_dim(&n.b, per_group));
		channel = index_add(&n.b, index_mul(&n.b, group, index_dim(&n.b, out->dims[1])), channel);
	}
	Nest r = reduce_open(&n.b, "sum", out->dtype, 1 + w.n, extents);
	from[0] = at[0] = r.at[0];
	from[1] = channel;
	at[1] = n.at[0];
	for (int i = 0; i < w.n; i++) {
		const bool fits = window_count(b->ctx, &w, i, false) == d->type->dims[2 + i];
		at[2 + i] = r.at[1 + i];
		Value *place = index_add(&r.b, index_times(&r.b, r.at[1 + i], w.stride[i]),
		                         index_times(&r.b, n.at[2 + i], w.dilation[i]));
		from[2 + i] = index_sub(&r.b, place, index_dim(&r.b, w.before[i]));
		if (!fits || window_overhangs(&w, i))
			inside = pred_and(&r.b, inside, index_inside(&r.b, from[2 + i], w.size[i]));
	}
	Value *zero = inside ? build_scalar_f(&r.b, x->type->dtype, 0) : NULL;
	Value *element = scalar_cast(&r.b, load_or(&r.b, inside, zero, x, from), out->dtype);
	Value *weight = scalar_cast(&r.b, load(&r.b, d, at), out->dtype);
	results[0] = nest_close(&n, reduce_close(&r, tensor_mul(&r.b, element, weight)));
	return results[0] != NULL;
}

// The input position that reaches output position `o` through kernel position k: (o + before - k *
// dilation) / stride, where that is a position and the division leaves no rest.
static Value *transposed_position(Nest *r, const Window *w, int i, Value *o, Value *k,
                                  Value **inside)
{
	Builder *b = &r->b;
	Value *way = index_add(b, o, index_dim(b, w->before[i]));
	way = index_sub(b, way, index_times(b, k, w->dilation[i]));
	if (w->stride[i] > 1) {
		Value *safe = index_max(b, way, index_const(b, 0)), *stride = index_const(b, w->stride[i]);
		*inside = pred_and(b, *inside, index_less(b, index_const(b, -1), way));
		*inside = pred_and(b, *inside,
		                   index_equal(b, index_mod(b, safe, stride), index_const(b, 0)));
		way = index_div(b, safe, stride);
		*inside = pred_and(b, *inside, index_less(b, way, index_dim(b, w->size[i])));
		return way;
	}
	*inside = pred_and(b, *inside, index_inside(b, way, w->size[i]));
	return way;
}

bool define_hook_conv_transpose(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *filter = op_operand(op, 1), *at[MAX_RANK], *from[MAX_RANK],
		  *inside = NULL;
	const Type *out = op->results[0].type;
	const Dim *extents[4], *groups = dim_const(b->ctx, op_int(op, "groups", 1));
	Window w;
	if (!window_of_conv(op, &w))
		return false;
	const Dim *per_group = dim_div(b->ctx, filter->type->dims[0], groups);
	extents[0] = per_group;
	memcpy(extents + 1, w.kernel, sizeof *extents * (size_t)w.n);
	Nest n = nest_open(b, out);
	Nest r = reduce_open(&n.b, "sum", out->dtype, 1 + w.n, extents);
	Value *oc = n.at[w.channel], *channel = r.at[0];
	at[1] = oc;
	if (!dim_is(groups, 1)) {
		Value *width = index_dim(&r.b, filter->type->dims[1]);
		at[1] = index_mod(&r.b, oc, width);
		channel = index_add(
			&r.b, index_mul(&r.b, index_div(&r.b, oc, width), index_dim(&r.b, per_group)), channel);
	}
	at[0] = channel;
	from[0] = n.at[0];
	from[w.channel] = channel;
	for (int i = 0; i < w.n; i++) {
		at[2 + i] = r.at[1 + i];
		from[w.axis[i]] = transposed_position(&r, &w, i, n.at[w.axis[i]], r.at[1 + i], &inside);
	}
	Value *element = load_or(&r.b, inside, build_scalar_f(&r.b, out->dtype, 0), x, from);
	Value *sum = reduce_close(&r, tensor_mul(&r.b, element, load(&r.b, filter, at)));
	results[0] = nest_close(&n, sum);
	return results[0] != NULL;
}

// ---- pooling ------------------------------------------------------------------------------------

// The window of one output position on one axis: from `start`, at most `extent` long, up to `end`.
// `end` is NULL where every position of the extent is inside.
typedef struct Span {
	Value *start, *end;
	const Dim *extent;
	bool below; // start may be negative
} Span;

static Span pool_span(Builder *b, const Window *w, int i, const Dim *out, Value *at, bool ceil)
{
	Context *c = b->ctx;
	Span s = {.extent = w->kernel[i]};
	if (w->whole || (w->adaptive && dim_is(out, 1))) {
		s.start = index_const(b, 0);
		s.extent = w->size[i];
	} else if (w->adaptive && dim_is(dim_mod(c, w->size[i], out), 0)) {
		s.extent = dim_div(c, w->size[i], out);
		s.start = index_mul(b, at, index_dim(b, s.extent));
	} else if (w->adaptive) {
		// floor(o * size / out) to ceil((o + 1) * size / out), which are at most size / out + 2
		// positions.
		Value *size = index_dim(b, w->size[i]), *count = index_dim(b, out);
		const Dim *less = dim_sub(c, out, dim_const(c, 1));
		s.start = index_div(b, index_mul(b, at, size), count);
		Value *end = index_mul(b, index_plus(b, at, 1), size);
		s.end = index_div(b, index_add(b, end, index_dim(b, less)), count);
		s.extent = dim_add(c, dim_div(c, dim_add(c, w->size[i], less), out), dim_const(c, 1));
	} else {
		s.start = index_sub(b, index_times(b, at, w->stride[i]), index_dim(b, w->before[i]));
		s.below = !dim_is(w->before[i], 0);
		if (ceil || w->counted || window_overhangs(w, i))
			s.end = index_dim(b, w->size[i]);
	}
	return s;
}

// Position in the image of position k of a window; `inside` learns where it is one.
static Value *span_position(Builder *b, const Span *s, Value *k, Value **inside)
{
	Value *x = index_add(b, s->start, k);
	if (s->below)
		*inside = pred_and(b, *inside, index_less(b, index_const(b, -1), x));
	if (s->end)
		*inside = pred_and(b, *inside, index_less(b, x, s->end));
	return x;
}

// The number of positions that an average divides by on one axis: those inside the image, or those
// inside the image with its padding.
static Value *span_count(Builder *b, const Window *w, int i, const Span *s, bool exclusive)
{
	Value *start = s->start, *kernel = index_dim(b, s->extent);
	if (!s->end)
		return kernel;
	if (w->adaptive)
		return index_sub(b, s->end, start);
	Value *end = index_add(b, start, kernel);
	if (exclusive) {
		end = index_min(b, end, index_dim(b, w->size[i]));
		start = s->below ? index_max(b, start, index_const(b, 0)) : start;
	} else {
		end = index_min(b, end, index_dim(b, dim_add(b->ctx, w->size[i], w->before[i])));
	}
	return index_sub(b, end, start);
}

static Value *powered(Builder *b, Value *x, double by)
{
	return x ? apply2(b, OP_PD_ELEMENTWISE_POW, x, build_scalar_f(b, x->type->dtype, by)) : NULL;
}

// Paddle begins with -FLT_MAX, which is the maximum of a window of -inf.
static Value *pool_max(Builder *b, Value *max)
{
	if (!max || !dtype_is_float(max->type->dtype))
		return max;
	return apply2(b, OP_PD_MAXIMUM, build_scalar_f(b, max->type->dtype, -FLT_MAX), max);
}

bool define_hook_pool(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK], *inside = NULL;
	const Type *out = op->results[0].type;
	const double norm = op_float(op, "norm_type", 0);
	const bool lp = op->code == OP_PD_LP_POOL2D && !isinf(norm),
			   max = isinf(norm) || op_enum(op, "pooling_type") == POOL_MAX,
			   ceil = op_bool(op, "ceil_mode", false);
	Window w;
	Span s[3];
	const Dim *extents[3];
	if (!window_of_pool(op, &w))
		return false;
	Nest n = nest_open(b, out);
	for (int i = 0; i < w.n; i++) {
		s[i] = pool_span(&n.b, &w, i, out->dims[w.axis[i]], n.at[w.axis[i]], ceil);
		extents[i] = s[i].extent;
	}
	Nest r = reduce_open(&n.b, max ? "max" : "sum", out->dtype, w.n, extents);
	memcpy(from, n.at, sizeof from);
	for (int i = 0; i < w.n; i++)
		from[w.axis[i]] = span_position(&r.b, &s[i], r.at[i], &inside);
	Value *other = inside ? build_scalar_f(&r.b, out->dtype, max ? -FLT_MAX : 0) : NULL;
	Value *element = load_or(&r.b, inside, other, x, from);
	if (lp)
		element = powered(&r.b, element, norm);
	element = reduce_close(&r, element);
	if (max) {
		element = pool_max(&n.b, element);
	} else if (lp) {
		element = powered(&n.b, element, 1 / norm);
	} else {
		Value *count = index_const(&n.b, 1);
		bool exclusive = op_bool(op, "exclusive", true) || w.adaptive;
		for (int i = 0; i < w.n; i++)
			count = index_mul(&n.b, count, span_count(&n.b, &w, i, &s[i], exclusive));
		element = tensor_div(&n.b, element, scalar_from_index(&n.b, count, out->dtype));
	}
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}

// ---- gradients of pooling -----------------------------------------------------------------------

// Which windows position `at` of an image may lie in: `count` of them from `last` down.
typedef struct Covering {
	Value *last;
	const Dim *count;
} Covering;

static Covering pool_covering(Builder *b, const Window *w, int i, const Dim *out, Value *at)
{
	Context *c = b->ctx;
	const Dim *one = dim_const(c, 1);
	if (w->whole || (w->adaptive && dim_is(out, 1)))
		return (Covering){index_const(b, 0), one};
	if (w->adaptive && dim_is(dim_mod(c, w->size[i], out), 0))
		return (Covering){index_div(b, at, index_dim(b, dim_div(c, w->size[i], out))), one};
	if (w->adaptive) {
		// o * size / out <= at, rounded down, for the last time.
		Value *size = index_dim(b, w->size[i]);
		Value *next = index_mul(b, index_plus(b, at, 1), index_dim(b, out));
		Value *last = index_plus(b, index_div(b, index_plus(b, index_add(b, next, size), -1), size),
		                         -1);
		return (Covering){last, dim_add(c, dim_div(c, out, w->size[i]), dim_const(c, 2))};
	}
	Value *way = index_add(b, at, index_dim(b, w->before[i]));
	const Dim *stride = dim_const(c, w->stride[i]);
	return (Covering){index_div(b, way, index_dim(b, stride)),
	                  dim_div(c, dim_add(c, w->kernel[i], dim_const(c, w->stride[i] - 1)), stride)};
}

// Whether an element of the window in front of that at `place` is the maximum, too.
static Value *pool_tie_before(Nest *r, const Window *w, const Span *s, Value *x, Value *most,
                              Value *const *window, Value *const *at, Value *covers)
{
	const Dim *extents[3];
	Value *from[MAX_RANK], *inside = covers, *rank = NULL, *own = NULL;
	for (int i = 0; i < w->n; i++)
		extents[i] = s[i].extent;
	Nest t = reduce_open(&r->b, "sum", DT_I32, w->n, extents);
	memcpy(from, window, sizeof from);
	for (int i = 0; i < w->n; i++) {
		Value *size = index_dim(&t.b, extents[i]), *k = index_sub(&t.b, at[w->axis[i]], s[i].start);
		from[w->axis[i]] = span_position(&t.b, &s[i], t.at[i], &inside);
		rank = rank ? index_add(&t.b, index_mul(&t.b, rank, size), t.at[i]) : t.at[i];
		own = own ? index_add(&t.b, index_mul(&t.b, own, size), k) : k;
	}
	inside = pred_and(&t.b, inside, index_less(&t.b, rank, own));
	Value *zero = build_scalar_f(&t.b, x->type->dtype, 0);
	Value *same = apply2(&t.b, OP_PD_EQUAL, load_or(&t.b, inside, zero, x, from), most);
	same = pred_and(&t.b, inside, same);
	Value *ties = reduce_close(&t, index_where(&t.b, same, build_scalar_f(&t.b, DT_I32, 1),
	                                           build_scalar_f(&t.b, DT_I32, 0)));
	return apply2(&r->b, OP_PD_GREATER_THAN, ties, build_scalar_f(&r->b, DT_I32, 0));
}

// Each element gathers from the windows that it lies in.
bool define_hook_pool_gradient(Builder *b, Op *op, Value **results)
{
	Value *d = op_operand(op, 0), *x = op_operand(op, 1), *out = op_operand(op, 2), *covers = NULL,
		  *window[MAX_RANK];
	const Type *type = op->results[0].type, *of = d->type;
	const bool ceil = op_bool(op, "ceil_mode", false);
	Window w;
	Covering last[3];
	Span s[3];
	const Dim *extents[3];
	if (!window_of_pool(op, &w))
		return false;
	Nest n = nest_open(b, type);
	for (int i = 0; i < w.n; i++) {
		last[i] = pool_covering(&n.b, &w, i, of->dims[w.axis[i]], n.at[w.axis[i]]);
		extents[i] = last[i].count;
	}
	Nest r = reduce_open(&n.b, "sum", type->dtype, w.n, extents);
	memcpy(window, n.at, sizeof window);
	Value *count = index_const(&r.b, 1), *zero = build_scalar_f(&r.b, type->dtype, 0);
	for (int i = 0; i < w.n; i++) {
		Value *at = index_sub(&r.b, last[i].last, r.at[i]), *here = n.at[w.axis[i]];
		covers = pred_and(&r.b, covers, index_inside(&r.b, at, of->dims[w.axis[i]]));
		at = window[w.axis[i]] = index_max(&r.b, at, index_const(&r.b, 0));
		s[i] = pool_span(&r.b, &w, i, of->dims[w.axis[i]], at, ceil);
		covers = pred_and(&r.b, covers,
		                  index_inside(&r.b, index_sub(&r.b, here, s[i].start), s[i].extent));
		if (s[i].end)
			covers = pred_and(&r.b, covers, index_less(&r.b, here, s[i].end));
		count = index_mul(
			&r.b, count,
			span_count(&r.b, &w, i, &s[i], op_bool(op, "exclusive", true) || w.adaptive));
	}
	Value *term = load_or(&r.b, covers, zero, d, window);
	if (x) {
		Value *most = load_or(&r.b, covers, zero, out, window);
		Value *hit = apply2(&r.b, OP_PD_EQUAL, load(&r.b, x, n.at), most);
		Value *before = pool_tie_before(&r, &w, s, x, most, window, n.at, covers);
		hit = pred_and(&r.b, hit, apply1(&r.b, OP_PD_LOGICAL_NOT, before));
		term = index_where(&r.b, hit, term, zero);
	} else {
		count = index_max(&r.b, count, index_const(&r.b, 1)); // not where nothing is covered
		term = tensor_div(&r.b, term, scalar_from_index(&r.b, count, type->dtype));
	}
	results[0] = nest_close(&n, reduce_close(&r, term));
	return results[0] != NULL;
}

// The window is laid out as one axis, so that argmax finds the first largest in row order. Paddle
// takes what is more than -FLT_MAX: where nothing is, as in a window of NaN, that is the maximum,
// and its place -1.
bool define_hook_max_pool_with_index(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK], *k[3], *inside = NULL;
	const Type *out = op->results[0].type, *types[] = {out, op->results[1].type};
	Window w;
	Span s[3];
	const Dim *extents[3], *size = dim_const(b->ctx, 1);
	if (!window_of_pool(op, &w))
		return false;
	Nest n = nest_open_several(b, 2, types);
	for (int i = 0; i < w.n; i++) {
		s[i] = pool_span(&n.b, &w, i, out->dims[w.axis[i]], n.at[w.axis[i]],
		                 op_bool(op, "ceil_mode", false));
		extents[i] = s[i].extent;
		size = dim_mul(b->ctx, size, s[i].extent);
	}
	Nest r = reduce_open(&n.b, "argmax", DT_I64, 1, &size);
	index_split(&r.b, r.at[0], w.n, extents, k);
	memcpy(from, n.at, sizeof from);
	for (int i = 0; i < w.n; i++)
		from[w.axis[i]] = span_position(&r.b, &s[i], k[i], &inside);
	Value *other = inside ? build_scalar_f(&r.b, out->dtype, -FLT_MAX) : NULL;
	Value *best = reduce_close(&r, load_or(&r.b, inside, other, x, from));
	Value *place[3], *none = NULL;
	index_split(&n.b, index_from_data(&n.b, best, size, false), w.n, extents, place);
	for (int i = 0; i < w.n; i++)
		from[w.axis[i]] = place[i] = span_position(&n.b, &s[i], place[i], &none);
	other = build_scalar_f(&n.b, out->dtype, -FLT_MAX);
	Value *most = load_or(&n.b, none, none ? other : NULL, x, from);
	Value *more = apply2(&n.b, OP_PD_GREATER_THAN, most, other);
	Value *at = index_linear(&n.b, w.n, w.size, place);
	Value *elements[] = {index_where(&n.b, more, most, other),
	                     index_where(&n.b, more, at, index_const(&n.b, -1))};
	return nest_close_several(&n, elements, results);
}

// ---- patches ------------------------------------------------------------------------------------

bool define_hook_unfold(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *patch[3], *place[2], *from[4], *inside = NULL;
	int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, pads[4] = {0}, dilation[2] = {1, 1};
	op_ints(op, "kernel_sizes", kernel, 2);
	op_ints(op, "strides", stride, 2);
	op_ints(op, "paddings", pads, 4);
	op_ints(op, "dilations", dilation, 2);
	const Dim *inner[3] = {x->type->dims[1], dim_const(c, kernel[0]), dim_const(c, kernel[1])},
			  *outer[2];
	for (int i = 0; i < 2; i++) {
		const Dim *room = dim_add(c, x->type->dims[2 + i], dim_const(c, pads[i] + pads[2 + i]));
		room = dim_sub(c, room, dim_const(c, dilation[i] * (kernel[i] - 1) + 1));
		outer[i] = dim_add(c, dim_div(c, room, dim_const(c, stride[i])), dim_const(c, 1));
	}
	Nest n = nest_open(b, op->results[0].type);
	index_split(&n.b, n.at[1], 3, inner, patch);
	index_split(&n.b, n.at[2], 2, outer, place);
	from[0] = n.at[0];
	from[1] = patch[0];
	for (int i = 0; i < 2; i++) {
		Value *at = index_add(&n.b, index_times(&n.b, place[i], stride[i]),
		                      index_times(&n.b, patch[1 + i], dilation[i]));
		from[2 + i] = index_plus(&n.b, at, -pads[i]);
		inside = pred_and(&n.b, inside, index_inside(&n.b, from[2 + i], x->type->dims[2 + i]));
	}
	Value *zero = build_scalar_f(&n.b, x->type->dtype, 0);
	results[0] = nest_close(&n, load_or(&n.b, inside, zero, x, from));
	return results[0] != NULL;
}

// ---- with what stands behind them ---------------------------------------------------------------

// A vector for the channels of an image.
static Value *of_channels(Builder *b, const Op *op, Value *vector, const Value *image)
{
	const int rank = image->type->rank;
	return tensor_along(b, vector, rank, channels_last(op) ? rank - 1 : 1);
}

bool define_hook_fused_conv(Builder *b, Op *op, Value **results)
{
	static const char *const names[] = {"strides",   "paddings", "padding_algorithm",
	                                    "dilations", "groups",   "data_format"};
	NamedAttr attrs[COUNT_OF(names)];
	const int n = op_attrs_given(op, COUNT_OF(names), names, attrs);
	Value *const operands[] = {op_operand(op, 0), op_operand(op, 1)};
	Value *bias = op_operand(op, 2), *residual = op_operand(op, 3);
	enum OpCode code = op->code == OP_PD_FUSED_CONV3D ? OP_PD_CONV3D : OP_PD_CONV2D;
	Op *conv = build_op(b, code, 2, operands, n, attrs);
	Value *out = conv ? op_result(conv, 0) : NULL;
	if (out && bias)
		out = tensor_add(b, out, of_channels(b, op, bias, out));
	if (out && residual)
		out = tensor_add(b, out, residual);
	results[0] = fused_function(b, op, out);
	return results[0] != NULL;
}
