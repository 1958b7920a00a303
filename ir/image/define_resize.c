// What the operators that resize and rearrange images mean (ir/ops/nn.yaml).
#include "ir/build/build.h"
#include "ir/image/image.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- interpolation ------------------------------------------------------------------------------

// Whether positions follow from the scale, not from the two sizes.
static bool goes_by_scale(const Op *op, const Resize *r, int i)
{
	return (r->scale[i] > 0 || r->found) && op_bool(op, "use_scale_ratio", true) &&
	       !op_bool(op, "align_corners", true);
}

// How far one step of the result goes in the image, in single precision as Paddle has it. A result
// of one element looks at the first.
static Value *interp_ratio(Builder *b, const Op *op, const Resize *r, int i)
{
	Context *c = b->ctx;
	bool corners = op_bool(op, "align_corners", true),
		 known = dim_is_const(r->in[i]) && dim_is_const(r->out[i]);
	const Dim *one = dim_const(c, 1), *in = r->in[i], *out = r->out[i];
	Value *ratio, *several = NULL;
	int64_t least, most;
	dim_range(out, &least, &most);
	if (dim_is(out, 1))
		return number(b, DT_F32, 0);
	if (least < 2)
		several = index_less(b, index_const(b, 1), index_dim(b, out));
	if (goes_by_scale(op, r, i)) {
		ratio = r->found ? tensor_div(b, number(b, DT_F32, 1), resize_scale_found(b, r, i))
		                 : number(b, DT_F32, 1.0f / r->scale[i]);
		return several ? index_where(b, several, ratio, number(b, DT_F32, 0)) : ratio;
	}
	if (corners) {
		in = dim_sub(c, in, one);
		out = dim_sub(c, out, one);
	}
	if (known)
		return number(b, DT_F32, (float)in->value / (float)out->value);
	Value *x = scalar_from_index(b, index_dim(b, in), DT_F32),
		  *steps = index_max(b, index_dim(b, out), index_const(b, 1));
	ratio = tensor_div(b, x, scalar_from_index(b, steps, DT_F32));
	return several ? index_where(b, several, ratio, number(b, DT_F32, 0)) : ratio;
}

// 2^k when the image is enlarged exactly so: then positions are whole numbers, without rounding.
static int64_t power_of_two(Context *c, const Op *op, const Resize *r, int i)
{
	if (op_bool(op, "align_corners", true))
		return 0;
	for (int64_t p = 1; p <= 64; p *= 2) {
		bool fits = r->out[i] == dim_mul(c, r->in[i], dim_const(c, p));
		bool scaled = r->scale[i] > 0 && op_bool(op, "use_scale_ratio", true);
		if (fits && (!scaled || r->scale[i] == (float)p))
			return p;
	}
	return 0;
}

static Value *nearest_position(Builder *b, const Op *op, const Resize *r, int i, Value *at)
{
	int64_t p = power_of_two(b->ctx, op, r, i);
	if (p)
		return index_div(b, at, index_const(b, p));
	Value *x = tensor_mul(b, interp_ratio(b, op, r, i), scalar_from_index(b, at, DT_F32));
	if (op_bool(op, "align_corners", true)) {
		// The half is added in double: in single precision it could round up to the next position.
		x = tensor_add(b, scalar_cast(b, x, DT_F64), build_scalar_f(b, DT_F64, 0.5));
		x = scalar_cast(b, floor_of(b, x), DT_F32);
	}
	return position(b, floor_of(b, x), r->in[i]);
}

// Where an element of the result is, on all axes. False after a diagnostic.
static bool interp_open(Builder *b, Op *op, Resize *r, Nest *n, Value **from)
{
	if (!resize_of_interp(op, r))
		return false;
	*n = nest_open(b, op->results[0].type);
	memcpy(from, n->at, sizeof n->at);
	return true;
}

bool define_hook_nearest_interp(Builder *b, Op *op, Value **results)
{
	Value *from[MAX_RANK];
	Resize r;
	Nest n;
	if (!interp_open(b, op, &r, &n, from))
		return false;
	for (int i = 0; i < r.n; i++)
		from[r.axis[i]] = nearest_position(&n.b, op, &r, i, n.at[r.axis[i]]);
	results[0] = nest_close(&n, load(&n.b, op_operand(op, 0), from));
	return results[0] != NULL;
}

// The ratio as a fraction of whole numbers, where it is one.
static bool ratio_fraction(Context *c, const Op *op, const Resize *r, int i, const Dim **num,
                           const Dim **den)
{
	const Dim *one = dim_const(c, 1);
	*num = r->in[i];
	*den = r->out[i];
	if (op_bool(op, "align_corners", true)) {
		*num = dim_sub(c, *num, one);
		*den = dim_max(c, dim_sub(c, *den, one), one);
		return true;
	}
	if (!goes_by_scale(op, r, i))
		return true;
	for (int64_t by = 1; by <= 1 << 12 && !r->found; by *= 2) {
		int64_t top;
		if (number_whole((double)r->scale[i] * (double)by, &top) && top < 1 << 20) {
			*num = dim_const(c, by);
			*den = dim_const(c, top);
			return true;
		}
	}
	return false;
}

// A product, rounded before what is made of it is: the larger of it and a number below all of them,
// which compilers cannot make one operation with a sum of.
static Value *rounded(Builder *b, Value *product)
{
	return build2(b, OP_PD_MAXIMUM, product, number(b, DT_F32, -1e30), NULL);
}

// A place between positions of one axis: the position below as an index (-1 at least), and how far
// above it. Whole numbers find the position where they can: interpolation does not jump when
// rounding puts the place on the other side of one.
typedef struct Place {
	Value *low, *rest;
} Place;

static Place interp_place(Builder *b, const Op *op, const Resize *r, int i, Value *at, bool half)
{
	Context *c = b->ctx;
	Place p;
	const Dim *num, *den;
	Value *x = scalar_from_index(b, at, DT_F32), *ratio = interp_ratio(b, op, r, i);
	x = tensor_mul(b, ratio, half ? plus(b, x, 0.5) : x);
	if (!dtype_is_float(op_operand(op, 0)->type->dtype))
		x = rounded(b, x);
	x = half ? plus(b, x, -0.5) : x;
	if (dim_is(r->out[i], 1)) {
		p.low = index_const(b, half ? -1 : 0);
	} else if (!ratio_fraction(c, op, r, i, &num, &den)) {
		// One more, so that the checked conversion sees no negative number.
		const Dim *beyond = dim_add(c, r->in[i], dim_const(c, 1));
		p.low = index_plus(b, position(b, plus(b, floor_of(b, x), 1), beyond), -1);
	} else if (half) {
		Value *twice = index_mul(b, index_plus(b, index_times(b, at, 2), 1), index_dim(b, num));
		p.low = index_div(b, index_add(b, twice, index_dim(b, den)),
		                  index_dim(b, dim_mul(c, den, dim_const(c, 2))));
		p.low = index_plus(b, p.low, -1);
	} else {
		p.low = index_div(b, index_mul(b, at, index_dim(b, num)), index_dim(b, den));
	}
	if (!dim_is_const(r->out[i])) {
		Value *several = index_less(b, index_const(b, 1), index_dim(b, r->out[i]));
		p.low = index_where(b, several, p.low, index_const(b, half ? -1 : 0));
	}
	p.rest = tensor_sub(b, x, scalar_from_index(b, p.low, DT_F32));
	return p;
}

// The two neighbours of a position on one axis, and their weights.
typedef struct Pair {
	Value *at[2], *weight[2];
} Pair;

static Pair linear_pair(Builder *b, const Op *op, const Resize *r, int i, Value *at)
{
	Pair p;
	bool half = op_int(op, "align_mode", 1) == 0 && !op_bool(op, "align_corners", true);
	Place place = interp_place(b, op, r, i, at, half);
	Value *last = index_dim(b, dim_sub(b->ctx, r->in[i], dim_const(b->ctx, 1)));
	p.weight[1] = place.rest;
	p.at[0] = place.low;
	p.at[1] = index_min(b, index_plus(b, place.low, 1), last);
	if (half) {
		// Before the first position both neighbours are that one.
		Value *zero = index_const(b, 0);
		p.at[0] = index_max(b, p.at[0], zero);
		Value *outside = index_less(b, place.low, zero);
		p.weight[1] = index_where(b, outside, number(b, DT_F32, 0), p.weight[1]);
	}
	p.weight[0] = minus(b, 1, p.weight[1]);
	return p;
}

// Weights are f32; elements are weighed in their own type where that is f64, else in f32.
static DType weighed_type(const Value *x)
{
	return x->type->dtype == DT_F64 ? DT_F64 : DT_F32;
}

static Value *weighed(Builder *b, Value *x, Value *const *at, Value *weight)
{
	const DType t = weighed_type(x);
	return tensor_mul(b, scalar_cast(b, load(b, x, at), t), scalar_cast(b, weight, t));
}

// The sum of whole elements, which are weighed on one axis after the other, in the order of
// Paddle's kernels: what becomes a whole number again shows how it was rounded.
static Value *whole_sum(Nest *n, Value *x, const Resize *r, const Pair *pairs, Value **from)
{
	Value *sum = NULL;
	for (int corner = 0; corner < 1 << r->n; corner++) {
		Value *term = NULL;
		int side[3];
		for (int i = 0; i < r->n; i++) {
			side[i] = corner >> (r->n == 3 ? 2 - i : i) & 1;
			from[r->axis[i]] = pairs[i].at[side[i]];
		}
		term = scalar_cast(&n->b, load(&n->b, x, from), DT_F32);
		for (int i = 0; i < r->n; i++)
			term = tensor_mul(&n->b, term, pairs[i].weight[side[i]]);
		term = rounded(&n->b, term);
		sum = sum ? tensor_add(&n->b, sum, term) : term;
	}
	return scalar_cast(&n->b, sum, x->type->dtype);
}

// linear, bilinear and trilinear: the weighted sum over the corners around a position.
bool define_hook_linear_interp(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK], *sum = NULL;
	Pair pairs[3];
	Resize r;
	Nest n;
	if (!interp_open(b, op, &r, &n, from))
		return false;
	for (int i = 0; i < r.n; i++)
		pairs[i] = linear_pair(&n.b, op, &r, i, n.at[r.axis[i]]);
	if (!dtype_is_float(x->type->dtype)) {
		results[0] = nest_close(&n, whole_sum(&n, x, &r, pairs, from));
		return results[0] != NULL;
	}
	for (int corner = 0; corner < 1 << r.n; corner++) {
		Value *weight = NULL;
		for (int i = 0; i < r.n; i++) {
			int side = corner >> (r.n - 1 - i) & 1;
			from[r.axis[i]] = pairs[i].at[side];
			weight = weight ? tensor_mul(&n.b, weight, pairs[i].weight[side])
			                : pairs[i].weight[side];
		}
		Value *term = weighed(&n.b, x, from, weight);
		sum = sum ? tensor_add(&n.b, sum, term) : term;
	}
	results[0] = nest_close(&n, sum);
	return results[0] != NULL;
}

// Four neighbours and their weights.
typedef struct Quad {
	Value *at[4], *weight[4];
} Quad;

// ((a + 2) x - (a + 3)) x x + 1, for distances up to 1.
static Value *cubic_near(Builder *b, Value *x)
{
	const double a = -0.75;
	Value *v = plus(b, times(b, x, a + 2), -(a + 3));
	return plus(b, tensor_mul(b, tensor_mul(b, v, x), x), 1);
}

// ((a x - 5 a) x + 8 a) x - 4 a, for distances from 1 to 2.
static Value *cubic_far(Builder *b, Value *x)
{
	const double a = -0.75;
	Value *v = plus(b, times(b, x, a), -5 * a);
	v = plus(b, tensor_mul(b, v, x), 8 * a);
	return plus(b, tensor_mul(b, v, x), -4 * a);
}

static Quad cubic_quad(Builder *b, const Op *op, const Resize *r, int i, Value *at)
{
	Quad q;
	Place place = interp_place(b, op, r, i, at, !op_bool(op, "align_corners", true));
	Value *t = place.rest, *rest = minus(b, 1, t), *zero = index_const(b, 0);
	Value *last = index_dim(b, dim_sub(b->ctx, r->in[i], dim_const(b->ctx, 1)));
	q.weight[0] = cubic_far(b, plus(b, t, 1));
	q.weight[1] = cubic_near(b, t);
	q.weight[2] = cubic_near(b, rest);
	q.weight[3] = cubic_far(b, plus(b, rest, 1));
	for (int k = 0; k < 4; k++)
		q.at[k] = index_min(b, index_max(b, index_plus(b, place.low, k - 1), zero), last);
	return q;
}

bool define_hook_bicubic_interp(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK], *sum = NULL;
	Resize r;
	if (!resize_of_interp(op, &r))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	memcpy(from, n.at, sizeof from);
	Quad y = cubic_quad(&n.b, op, &r, 0, n.at[r.axis[0]]),
		 z = cubic_quad(&n.b, op, &r, 1, n.at[r.axis[1]]);
	for (int k = 0; k < 4; k++) {
		Value *row = NULL;
		from[r.axis[0]] = y.at[k];
		for (int j = 0; j < 4; j++) {
			from[r.axis[1]] = z.at[j];
			Value *term = weighed(&n.b, x, from, z.weight[j]);
			row = row ? tensor_add(&n.b, row, term) : term;
		}
		row = tensor_mul(&n.b, row, scalar_cast(&n.b, y.weight[k], weighed_type(x)));
		sum = sum ? tensor_add(&n.b, sum, row) : row;
	}
	results[0] = nest_close(&n, sum);
	return results[0] != NULL;
}

// ---- channels to space --------------------------------------------------------------------------

bool define_hook_pixel_shuffle(Builder *b, Op *op, Value **results)
{
	static const int64_t perm[] = {0, 1, 4, 2, 5, 3};
	Value *x = op_operand(op, 0);
	const Dim *const *in = x->type->dims;
	const Type *out = op->results[0].type;
	const Dim *by = dim_const(b->ctx, op_int(op, "upscale_factor", 1));
	const Dim *first[6] = {in[0], out->dims[1], by, by, in[2], in[3]};
	const Dim *last[6] = {in[0], in[1], in[2], out->dims[3], by, by};
	bool tail = channels_last(op);
	Value *split = tensor_reshape(b, x, 6, tail ? last : first);
	Value *moved = tensor_transpose(b, split, 6, perm);
	results[0] = tensor_reshape(b, moved, 4, out->dims);
	return results[0] != NULL;
}

bool define_hook_shuffle_channel(Builder *b, Op *op, Value **results)
{
	static const int64_t perm[] = {0, 2, 1, 3, 4};
	Context *c = b->ctx;
	Value *x = op_operand(op, 0);
	const Dim *const *in = x->type->dims, *groups = dim_const(c, op_int(op, "group", 1));
	const Dim *split[5] = {in[0], groups, dim_div(c, in[1], groups), in[2], in[3]};
	Value *moved = tensor_transpose(b, tensor_reshape(b, x, 5, split), 5, perm);
	results[0] = tensor_reshape(b, moved, 4, in);
	return results[0] != NULL;
}
