// What operators mean that read an image at positions that another tensor gives: grid_sample and
// deformable_conv (ir/ops/nn.yaml, ir/ops/special.yaml).
#include "ir/build/build.h"
#include "ir/image/image.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- an element at a position, and between positions --------------------------------------------

// Whether the whole number x is a position of the axis.
static Value *number_inside(Builder *b, Value *x, const Dim *size)
{
	if (!x)
		return NULL;
	const DType t = x->type->dtype;
	Value *low = build2(b, OP_PD_GREATER_EQUAL, x, number(b, t, 0), NULL);
	return pred_and(b, low, build2(b, OP_PD_LESS_EQUAL, x, last_of(b, t, size), NULL));
}

// The element at `from` where it lies inside; else 0, of what is there in any case if positions are
// brought into the image: then nothing depends on the choice but which number is taken.
static Value *chosen(Builder *b, Value *x, Value *const *from, Value *inside)
{
	Value *zero = build_scalar_f(b, x->type->dtype, 0);
	for (int i = 2; i < x->type->rank; i++)
		if (!position_is_near(x->type->dims[i]))
			return load_or(b, inside, zero, x, from);
	Value *v = load(b, x, from), *operands[] = {inside, v, zero};
	return inside && v ? build(b, OP_PD_WHERE, 3, operands, NULL) : v;
}

// The element of x at the whole numbers p[0], p[1].. of the axes from 2 on, 0 outside of x, in the
// type of p; from[0] and from[1] are where it is on the axes before, the rest is room.
static Value *sample_at(Builder *b, Value *x, Value **from, Value *const *p)
{
	Value *inside = NULL;
	for (int i = 2; i < x->type->rank; i++) {
		const Dim *size = x->type->dims[i];
		inside = pred_and(b, inside, number_inside(b, p[i - 2], size));
		from[i] = position(b, p[i - 2], size);
	}
	return p[0] ? scalar_cast(b, chosen(b, x, from, inside), p[0]->type->dtype) : NULL;
}

// The weighted sum of the elements around p, of which each may lie outside.
static Value *sample_between(Builder *b, Value *x, Value **from, Value *const *p)
{
	const int n = x->type->rank - 2;
	Value *low[3], *weight[3], *sum = NULL;
	for (int i = 0; i < n; i++) {
		low[i] = floor_of(b, p[i]);
		weight[i] = tensor_sub(b, p[i], low[i]);
	}
	for (int corner = 0; corner < 1 << n; corner++) {
		Value *at[3], *factor = NULL;
		for (int i = 0; i < n; i++) {
			const bool high = corner >> i & 1;
			at[i] = high ? plus(b, low[i], 1) : low[i];
			Value *w = high ? weight[i] : minus(b, 1, weight[i]);
			factor = factor ? tensor_mul(b, factor, w) : w;
		}
		Value *term = tensor_mul(b, sample_at(b, x, from, at), factor);
		sum = sum ? tensor_add(b, sum, term) : term;
	}
	return sum;
}

// ---- grid_sample --------------------------------------------------------------------------------

// Brings a position back into the image, mirrored at its edges as often as needed.
static Value *reflected(Builder *b, Value *x, const Dim *size, bool corners)
{
	Context *c = b->ctx;
	// Mirrors at 0 and size - 1, or at -0.5 and size - 0.5. An image of one element has only 0.
	const Dim *one = dim_const(c, 1), *span = corners ? dim_sub(c, size, one) : size;
	const DType t = x->type->dtype;
	if (dim_is(span, 0))
		return number(b, t, 0);
	span = dim_max(c, span, one);
	Value *width = scalar_from_index(b, index_dim(b, span), t);
	Value *y = build1(b, OP_PD_ABS, corners ? x : plus(b, x, 0.5), NULL);
	Value *twice = times(b, width, 2);
	// y modulo twice the width, then folded at the width.
	Value *rounds = y ? floor_of(b, tensor_div(b, y, twice)) : NULL;
	y = tensor_sub(b, y, tensor_mul(b, rounds, twice));
	Value *back = tensor_sub(b, twice, y);
	y = y && back ? build2(b, OP_PD_MINIMUM, y, back, NULL) : NULL;
	return corners ? y : clamp(b, plus(b, y, -0.5), 0, last_of(b, t, size));
}

// The position on axis i that the grid gives in [-1, 1], after padding by mirror or border.
static Value *grid_position(Builder *b, const Op *op, Value *g, const Dim *size)
{
	bool corners = op_bool(op, "align_corners", true);
	const int padding = op_enum(op, "padding_mode");
	const DType t = g->type->dtype;
	Value *x;
	if (corners)
		x = tensor_mul(b, times(b, plus(b, g, 1), 0.5), last_of(b, t, size));
	else
		x = times(
			b,
			plus(b, tensor_mul(b, plus(b, g, 1), scalar_from_index(b, index_dim(b, size), t)), -1),
			0.5);
	if (padding == BORDER_BORDER)
		return clamp(b, x, 0, last_of(b, t, size));
	return padding == BORDER_REFLECTION && x ? reflected(b, x, size, corners) : x;
}

bool define_hook_grid_sample(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *grid = op_operand(op, 1), *from[MAX_RANK], *at[MAX_RANK], *p[3];
	const int n = x->type->rank - 2;
	const bool nearest = op_enum(op, "mode") == GRID_NEAREST;
	const DType t = x->type->dtype == DT_F64 ? DT_F64 : DT_F32;
	Nest nest = nest_open(b, op->results[0].type);
	Builder *in = &nest.b;
	at[0] = nest.at[0];
	memcpy(at + 1, nest.at + 2, sizeof *at * (size_t)n);
	for (int i = 0; i < n; i++) {
		at[n + 1] = index_const(in, n - 1 - i); // the grid has the last axis first
		Value *g = scalar_cast(in, load(in, grid, at), t);
		p[i] = !g ? NULL : grid_position(in, op, g, x->type->dims[2 + i]);
		if (p[i] && nearest)
			p[i] = build1(in, OP_PD_ROUND, p[i], NULL);
		if (!p[i])
			return false;
	}
	from[0] = nest.at[0];
	from[1] = nest.at[1];
	results[0] = nest_close(&nest,
	                        nearest ? sample_at(in, x, from, p) : sample_between(in, x, from, p));
	return results[0] != NULL;
}

// ---- deformable convolution ---------------------------------------------------------------------

typedef struct Deformed {
	Value *x, *offset, *filter, *mask;
	int64_t stride[2], pad[2], dilation[2], groups, parts;
} Deformed;

static Deformed deformed_of(const Op *op)
{
	Deformed d = {.x = op_operand(op, 0),
	              .offset = op_operand(op, 1),
	              .filter = op_operand(op, 2),
	              .mask = op_operand(op, 3),
	              .stride = {1, 1},
	              .dilation = {1, 1},
	              .groups = op_int(op, "groups", 1),
	              .parts = op_int(op, "deformable_groups", 1)};
	op_ints(op, "strides", d.stride, 2);
	op_ints(op, "paddings", d.pad, 2);
	op_ints(op, "dilations", d.dilation, 2);
	return d;
}

// What tap (k[0], k[1]) of the filter meets in the channel, where its result is at (q[0], q[1]).
static Value *deformed_at(const Deformed *d, Builder *b, Value *image, Value *channel,
                          Value *const *q, Value *const *k)
{
	Context *c = b->ctx;
	const Dim *const *f = d->filter->type->dims;
	// The tap's number among those of its deformable group, which some of the channels share.
	const Dim *share = dim_div(c, d->x->type->dims[1], dim_const(c, d->parts));
	Value *tap = d->parts > 1 ? index_div(b, channel, index_dim(b, share)) : index_const(b, 0),
		  *p[2];
	for (int i = 0; i < 2; i++)
		tap = index_add(b, index_mul(b, tap, index_dim(b, f[2 + i])), k[i]);
	for (int i = 0; i < 2; i++) {
		Value *place = index_plus(
			b,
			index_add(b, index_times(b, q[i], d->stride[i]), index_times(b, k[i], d->dilation[i])),
			-d->pad[i]);
		Value *number = index_plus(b, index_times(b, tap, 2), i);
		Value *moved = load(b, d->offset, (Value *const[]){image, number, q[0], q[1]});
		p[i] = tensor_add(b, scalar_from_index(b, place, d->x->type->dtype), moved);
	}
	Value *from[4] = {image, channel}, *v = sample_between(b, d->x, from, p);
	return d->mask ? tensor_mul(b, v, load(b, d->mask, (Value *const[]){image, tap, q[0], q[1]}))
	               : v;
}

// What all taps meet, which all channels of the result share: [images x positions x taps], of each
// group where there are several.
static Value *deformed_columns(const Deformed *d, Builder *b, const Type *out)
{
	enum { IMAGE, GROUP, ROW, COLUMN, TAP_ROW, TAP_COLUMN, CHANNEL, AXES };
	Context *c = b->ctx;
	const Dim *const *f = d->filter->type->dims, *groups = dim_const(c, d->groups), *flat[4];
	const Dim *dims[AXES] = {out->dims[0], groups, out->dims[2], out->dims[3], f[2], f[3], f[1]};
	Nest n = nest_open(b, type_tensor(c, out->dtype, AXES, dims, 0));
	Value *channel = n.at[CHANNEL];
	int rank = 0;
	flat[rank++] = dims[IMAGE];
	if (d->groups > 1) {
		channel = index_add(&n.b, index_mul(&n.b, n.at[GROUP], index_dim(&n.b, f[1])), channel);
		flat[rank++] = groups;
	}
	flat[rank++] = dim_mul(c, dims[ROW], dims[COLUMN]);
	flat[rank++] = dim_mul(c, f[1], dim_mul(c, f[2], f[3]));
	return tensor_reshape(
		b, nest_close(&n, deformed_at(d, &n.b, n.at[IMAGE], channel, n.at + ROW, n.at + TAP_ROW)),
		rank, flat);
}

// The filter as a matrix, taps by channels of the result, of each group where there are several.
static Value *deformed_filter(const Deformed *d, Builder *b)
{
	Context *c = b->ctx;
	const Dim *const *f = d->filter->type->dims, *groups = dim_const(c, d->groups);
	const Dim *each = dim_div(c, f[0], groups);
	const Dim *apart[] = {groups, each, f[1], f[2], f[3]};
	const Dim *flat[] = {groups, dim_mul(c, f[1], dim_mul(c, f[2], f[3])), each};
	Value *w = tensor_reshape(b, d->filter, 5, apart);
	w = w ? tensor_transpose(b, w, 5, (const int64_t[]){0, 3, 4, 2, 1}) : NULL;
	return d->groups > 1 ? tensor_reshape(b, w, 3, flat) : tensor_reshape(b, w, 2, flat + 1);
}

// A product of what the taps meet and the filter: a nest would look for it again for each channel
// of the result.
bool define_hook_deformable_conv(Builder *b, Op *op, Value **results)
{
	static const int64_t perm[] = {0, 2, 1}, perm_of_groups[] = {0, 1, 3, 2};
	const Type *out = op->results[0].type;
	const Deformed d = deformed_of(op);
	const bool grouped = d.groups > 1;
	Value *columns = deformed_columns(&d, b, out), *w = deformed_filter(&d, b);
	Value *sums = columns && w ? apply2(b, OP_PD_MATMUL, columns, w) : NULL;
	if (sums)
		sums = tensor_transpose(b, sums, sums->type->rank, grouped ? perm_of_groups : perm);
	results[0] = tensor_reshape(b, sums, 4, out->dims);
	return results[0] != NULL;
}
