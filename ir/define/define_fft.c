// Fourier transforms as loop nests (ir/ops/complex.yaml). Along an axis of known size n = r1 r2 ..
// rp a nest for each factor: the axis is seen as K x r x m (K: digits of the frequency that are
// done, the first digit outermost), and
//
//     Y[k, q, j2] = sum over j1 < r of X[k, j1, j2] exp(s i 2 pi (j1 m + j2) q / (r m))
//
// takes one digit more (Cooley and Tukey, decimation in frequency, with the twiddle factors in the
// sum). The last nest reads the digits in the order that puts frequencies where they belong. A size
// that only a run knows is one sum over all of it. Real and imaginary parts are tensors of their
// own in between, so that nests are of real numbers.
#include "ir/build/nest.h"
#include "ir/infer/infer.h"

#include <math.h>
#include <string.h>

static const double full_turn = 6.283185307179586476925;

typedef struct Parts {
	Value *re, *im; // im: NULL for real numbers
} Parts;

typedef struct Transform {
	Builder *b;
	DType t;
	double sign;
	const Dim *outer, *n, *inner; // what lies before the axis, the axis, and what lies behind
	Value *cosines, *sines;       // [n] when n is known
} Transform;

enum { MAX_FACTORS = 40 };

// Radices of up to 8 where factors allow; the product is n.
static int factors_of(int64_t n, int64_t *out)
{
	int count = 0;
	for (int64_t r = 8; r > 1; r--)
		for (; r != 6 && n % r == 0 && count < MAX_FACTORS; n /= r)
			out[count++] = r;
	for (int64_t p = 11; n > 1 && count < MAX_FACTORS; p += 2) {
		p = p * p > n ? n : p;
		for (; n % p == 0; n /= p)
			out[count++] = p;
	}
	if (!count)
		out[count++] = 1;
	return count;
}

static Value *turns(const Transform *f, bool sines)
{
	Context *c = f->b->ctx;
	int64_t n = f->n->value;
	Tensor *t = tensor_new(c->arena, f->t, 1, &n);
	if (!t)
		return NULL;
	for (int64_t i = 0; i < n; i++) {
		double angle = full_turn * (double)i / (double)n;
		// Half a turn has no sine at all: sums that are real stay so.
		double sine = 2 * i == n ? 0 : f->sign * sin(angle);
		tensor_set_f(t, i, sines ? sine : cos(angle));
	}
	return build_constant(f->b, t);
}

// Cosine and sine of the step-th part of n of a turn.
static void turn_load(const Transform *f, Builder *b, Value *step, Value **cosine, Value **sine)
{
	if (f->cosines) {
		*cosine = load(b, f->cosines, &step);
		*sine = load(b, f->sines, &step);
		return;
	}
	Value *part = apply2(b, OP_PD_DIVIDE, scalar_from_index(b, step, DT_F64),
	                     scalar_from_index(b, index_dim(b, f->n), DT_F64));
	Value *angle = apply2(b, OP_PD_MULTIPLY, part, build_scalar_f(b, DT_F64, f->sign * full_turn));
	*cosine = scalar_cast(b, apply1(b, OP_PD_COS, angle), f->t);
	*sine = scalar_cast(b, apply1(b, OP_PD_SIN, angle), f->t);
}

// One stage's sum: part 0 real, 1 imaginary. x: [outer, done, r, m, inner].
static Value *stage_sum(const Transform *f, Nest *n, Parts x, int part, Value *const *at, Value *q,
                        const Dim *r, const Dim *m)
{
	Context *c = f->b->ctx;
	Nest s = reduce_open(&n->b, "sum", f->t, 1, &r);
	Value *j = index_add(&s.b, index_mul(&s.b, s.at[0], index_dim(&s.b, m)), at[3]);
	const Dim *span = dim_mul(c, r, m);
	Value *step = index_mod(&s.b, index_mul(&s.b, j, q), index_dim(&s.b, span));
	step = index_mul(&s.b, step, index_dim(&s.b, dim_div(c, f->n, span)));
	Value *from[] = {at[0], at[1], s.at[0], at[3], at[4]}, *cosine, *sine;
	turn_load(f, &s.b, step, &cosine, &sine);
	Value *re = load(&s.b, x.re, from), *v = tensor_mul(&s.b, re, part ? sine : cosine);
	if (x.im) {
		Value *im = load(&s.b, x.im, from);
		v = part ? tensor_add(&s.b, v, tensor_mul(&s.b, im, cosine))
		         : tensor_sub(&s.b, v, tensor_mul(&s.b, im, sine));
	}
	return reduce_close(&s, v);
}

static Parts parts_reshape(const Transform *f, Parts x, int rank, const Dim *const *dims)
{
	Parts p = {tensor_reshape(f->b, x.re, rank, dims),
	           x.im ? tensor_reshape(f->b, x.im, rank, dims) : NULL};
	return p;
}

// A stage that is not the last: [outer, done, r, m, inner] gives [outer, done, r (the new digit),
// m, inner].
static Parts stage(const Transform *f, Parts x, int64_t done, int64_t r, const Dim *m)
{
	Context *c = f->b->ctx;
	const Dim *dims[] = {f->outer, dim_const(c, done), dim_const(c, r), m, f->inner};
	x = parts_reshape(f, x, 5, dims);
	const Type *t = type_tensor(c, f->t, 5, dims, 0), *types[] = {t, t};
	Nest n = nest_open_several(f->b, 2, types);
	Value *v[2], *results[2] = {NULL, NULL};
	for (int part = 0; part < 2; part++)
		v[part] = stage_sum(f, &n, x, part, n.at, n.at[2], dims[2], m);
	nest_close_several(&n, v, results);
	return (Parts){results[0], results[1]};
}

// The place among the digits done of the frequency whose digits `at` has: the first digit is its
// lowest.
static Value *digits_place(Builder *b, Value *at, int nfactor, const int64_t *factors, Value **last)
{
	Value *place = index_const(b, 0), *rest = at;
	for (int i = 0; i + 1 < nfactor; i++) {
		Value *r = index_const(b, factors[i]);
		place = index_add(b, index_mul(b, place, r), index_mod(b, rest, r));
		rest = index_div(b, rest, r);
	}
	*last = rest;
	return place;
}

// The last stage, of the first `count` frequencies.
static Parts last_stage(const Transform *f, Parts x, int nfactor, const int64_t *factors,
                        const Dim *count, bool imaginary)
{
	Context *c = f->b->ctx;
	int64_t done = 1;
	for (int i = 0; i + 1 < nfactor; i++)
		done *= factors[i];
	const Dim *one = dim_const(c, 1),
			  *r = dim_is_const(f->n) ? dim_const(c, factors[nfactor - 1]) : f->n;
	const Dim *dims[] = {f->outer, dim_const(c, done), r, one, f->inner},
			  *out[] = {f->outer, count, f->inner};
	x = parts_reshape(f, x, 5, dims);
	const Type *t = type_tensor(c, f->t, 3, out, 0), *types[] = {t, t};
	Nest n = nest_open_several(f->b, imaginary ? 2 : 1, types);
	Value *q, *place = digits_place(&n.b, n.at[1], nfactor, factors, &q);
	Value *at[] = {n.at[0], place, NULL, index_const(&n.b, 0), n.at[2]}, *v[2],
		  *results[2] = {NULL, NULL};
	for (int part = 0; part < 1 + imaginary; part++)
		v[part] = stage_sum(f, &n, x, part, at, q, r, one);
	nest_close_several(&n, v, results);
	return (Parts){results[0], results[1]};
}

// Along one axis; `count` frequencies are wanted.
static Parts transform_axis(Builder *b, Parts x, int axis, double sign, const Dim *count,
                            bool imaginary)
{
	Context *c = b->ctx;
	if (!x.re)
		return x;
	const Type *t = x.re->type;
	const Dim *shape[MAX_RANK], *one = dim_const(c, 1);
	Transform f = {
		.b = b, .t = t->dtype, .sign = sign, .outer = one, .n = t->dims[axis], .inner = one};
	for (int d = 0; d < t->rank; d++) {
		shape[d] = d == axis ? count : t->dims[d];
		if (d != axis)
			*(d < axis ? &f.outer : &f.inner) = dim_mul(c, d < axis ? f.outer : f.inner,
			                                            t->dims[d]);
	}
	int64_t factors[MAX_FACTORS] = {1}, done = 1;
	int nfactor = 1;
	if (dim_is_const(f.n)) {
		nfactor = factors_of(f.n->value, factors);
		f.cosines = turns(&f, false);
		f.sines = turns(&f, true);
	}
	for (int i = 0; i + 1 < nfactor && x.re; i++) {
		x = stage(&f, x, done, factors[i], dim_const(c, f.n->value / done / factors[i]));
		done *= factors[i];
	}
	x = x.re ? last_stage(&f, x, nfactor, factors, count, imaginary) : x;
	return parts_reshape(&f, x, t->rank, shape);
}

// All n elements of the axis of which x has the first half: the others are the conjugates from
// behind.
static Parts mirrored(Builder *b, Parts x, int axis, const Dim *size)
{
	Context *c = b->ctx;
	const Dim *shape[MAX_RANK];
	memcpy(shape, x.re->type->dims, sizeof shape[0] * (size_t)x.re->type->rank);
	const Dim *have = shape[axis];
	shape[axis] = size;
	const Type *t = type_tensor(c, x.re->type->dtype, x.re->type->rank, shape, 0),
			   *types[] = {t, t};
	Nest n = nest_open_several(b, 2, types);
	Value *zero = build_scalar_f(&n.b, t->dtype, 0), *results[2] = {NULL, NULL}, *from[MAX_RANK];
	memcpy(from, n.at, sizeof from);
	Value *half = index_const(&n.b, 2), *at = n.at[axis];
	Value *first = index_less(&n.b, at,
	                          index_plus(&n.b, index_div(&n.b, index_dim(&n.b, size), half), 1));
	from[axis] = index_where(&n.b, first, at, index_sub(&n.b, index_dim(&n.b, size), at));
	Value *there = index_less(&n.b, from[axis],
	                          index_dim(&n.b, have)); // padded with zeros where there are too few
	Value *im = load_or(&n.b, there, zero, x.im, from);
	Value *v[] = {load_or(&n.b, there, zero, x.re, from),
	              index_where(&n.b, first, im, apply1(&n.b, OP_PD_NEGATIVE, im))};
	nest_close_several(&n, v, results);
	return (Parts){results[0], results[1]};
}

// The parts times what normalises them, as complex or real numbers.
static Value *finished(Builder *b, const Op *op, Parts x, const Dim *total)
{
	const int how = op_enum(op, "normalization");
	DType t = x.re->type->dtype;
	const bool root = how == NORMALIZATION_ORTHO, forward = how == NORMALIZATION_FORWARD;
	if (root || forward == op_bool(op, "forward", true)) {
		Value *factor;
		if (dim_is_const(total)) {
			double n = (double)total->value;
			factor = tensor_number(b, t, 1 / (root ? sqrt(n) : n));
		} else {
			Nest n = nest_open(b, type_tensor(b->ctx, t, 0, NULL, 0));
			Value *v = scalar_from_index(&n.b, index_dim(&n.b, total), t);
			v = root ? apply1(&n.b, OP_PD_SQRT, v) : v;
			factor = nest_close(&n, apply2(&n.b, OP_PD_DIVIDE, build_scalar_f(&n.b, t, 1), v));
		}
		x.re = tensor_mul(b, x.re, factor);
		x.im = x.im ? tensor_mul(b, x.im, factor) : NULL;
	}
	return !x.im ? x.re : build2(b, OP_PD_COMPLEX, x.re, x.im, NULL);
}

// The axes to transform, the last of them separately; false after a diagnostic.
static bool fft_axes(const Op *op, const Type *t, int *n, int *axes)
{
	int64_t given[MAX_RANK];
	*n = op_ints(op, "axes", given, MAX_RANK);
	if (*n < 1)
		return op_error(op, "no axes");
	for (int i = 0; i < *n; i++) {
		if (!infer_axis(op, given[i], t->rank, &axes[i]))
			return false;
		if (dim_is(t->dims[axes[i]], 0))
			return op_error(op, "axis %d has no elements", axes[i]);
	}
	return true;
}

// How long the transformed last axis is, and how many of its numbers the transform gives.
static const Dim *fft_last(const Op *op, const Dim *size, const Dim **count)
{
	Context *c = op->ctx;
	const Dim *one = dim_const(c, 1), *two = dim_const(c, 2);
	if (op->code == OP_PD_FFT_C2R) {
		int64_t given = op_int(op, "last_dim_size", 0);
		size = given > 0 ? dim_const(c, given) : dim_mul(c, two, dim_sub(c, size, one));
	}
	*count = op->code == OP_PD_FFT_R2C && op_bool(op, "onesided", true)
	             ? dim_add(c, dim_div(c, size, two), one)
	             : size;
	return size;
}

// Whether the operand holds what the operator transforms: real numbers, or complex ones.
static bool fft_holds(const Op *op, DType t)
{
	const bool holds = op->code == OP_PD_FFT_R2C ? t == DT_F32 || t == DT_F64 : dtype_is_complex(t);
	return holds || op_error(op, "the operand holds %s", dtype_name(t));
}

// How many numbers each sum has: the product of the axes' lengths, the last one's being `size`.
static const Dim *fft_total(Context *c, const Type *t, int n, const int *axes, const Dim *size)
{
	const Dim *total = dim_const(c, 1);
	for (int i = 0; i < n; i++)
		total = dim_mul(c, total, axes[i] == axes[n - 1] ? size : t->dims[axes[i]]);
	return total;
}

bool define_hook_fft(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	int n, axes[MAX_RANK];
	if (!t || !fft_axes(op, t, &n, axes) || !fft_holds(op, t->dtype))
		return false;
	bool to_real = op->code == OP_PD_FFT_C2R, from_real = op->code == OP_PD_FFT_R2C;
	double sign = op_bool(op, "forward", true) ? -1 : 1;
	Value *x = op_operand(op, 0);
	Parts p = {from_real ? x : build1(b, OP_PD_REAL, x, NULL),
	           from_real ? NULL : build1(b, OP_PD_IMAG, x, NULL)};
	int last = axes[n - 1];
	const Dim *count, *size = fft_last(op, t->dims[last], &count);
	if (from_real)
		p = transform_axis(b, p, last, sign, count, true);
	for (int i = n - 1; i >= 0; i--)
		if (axes[i] != last)
			p = transform_axis(b, p, axes[i], sign, t->dims[axes[i]], true);
	if (!p.re)
		return false;
	if (to_real)
		p = mirrored(b, p, last, size);
	if (!from_real)
		p = transform_axis(b, p, last, sign, size, !to_real);
	results[0] = p.re ? finished(b, op, p, fft_total(b->ctx, t, n, axes, size)) : NULL;
	return results[0] != NULL;
}

bool infer_hook_as_complex(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *same;
	if (!x || x->rank < 1 || (x->dtype != DT_F32 && x->dtype != DT_F64))
		return x && op_error(op, "needs an axis of f32 or f64");
	return infer_same_dim(op, x->dims[x->rank - 1], dim_const(op->ctx, 2), "the parts of a number",
	                      &same) &&
	       infer_result_shape(op, 0, x->dtype == DT_F64 ? DT_C128 : DT_C64, x->rank - 1, x->dims);
}

bool define_hook_as_complex(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK], *parts[2];
	Nest n = nest_open(b, op->results[0].type);
	memcpy(from, n.at, sizeof from);
	for (int i = 0; i < 2; i++) {
		from[x->type->rank - 1] = index_const(&n.b, i);
		parts[i] = load(&n.b, x, from);
	}
	results[0] = nest_close(&n, apply2(&n.b, OP_PD_COMPLEX, parts[0], parts[1]));
	return results[0] != NULL;
}

// ---- signals ------------------------------------------------------------------------------------

// Whether frames lie along the first axis; only the ends are possible.
static bool frame_axis(const Op *op, bool *first)
{
	int64_t axis = op_int(op, "axis", -1);
	*first = axis == 0;
	return axis == 0 || axis == -1 || op_error(op, "the axis must be 0 or -1");
}

bool infer_hook_frame(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t length = op_int(op, "frame_length", 0), hop = op_int(op, "hop_length", 0);
	bool first;
	if (!x || !frame_axis(op, &first))
		return false;
	if (length < 1 || hop < 1 || x->rank < 1 || x->rank + 1 > MAX_RANK)
		return op_error(op, "frames of %lld elements, %lld apart", (long long)length,
		                (long long)hop);
	const Dim *size = x->dims[first ? 0 : x->rank - 1];
	if (dim_is_const(size) && size->value < length)
		return op_error(op, "frames are longer than the axis");
	const Dim *count = dim_add(
		c, dim_div(c, dim_sub(c, size, dim_const(c, length)), dim_const(c, hop)), dim_const(c, 1));
	int rest = x->rank - 1;
	for (int d = 0; d < rest; d++)
		shape[first ? d + 2 : d] = x->dims[first ? d + 1 : d];
	shape[first ? 0 : rest + 1] = count;
	shape[first ? 1 : rest] = dim_const(c, length);
	return infer_result_shape(op, 0, x->dtype, x->rank + 1, shape);
}

bool define_hook_frame(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int rest = x->type->rank - 1;
	bool first = op_int(op, "axis", -1) == 0;
	Nest n = nest_open(b, op->results[0].type);
	Value *frame = n.at[first ? 0 : rest + 1], *in = n.at[first ? 1 : rest];
	for (int d = 0; d < rest; d++)
		from[first ? d + 1 : d] = n.at[first ? d + 2 : d];
	from[first ? 0 : rest] = index_add(&n.b, index_times(&n.b, frame, op_int(op, "hop_length", 1)),
	                                   in);
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

bool infer_hook_overlap_add(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t hop = op_int(op, "hop_length", 0);
	bool first;
	if (!x || !frame_axis(op, &first))
		return false;
	if (hop < 1 || x->rank < 2)
		return op_error(op, "frames %lld apart in %d axes", (long long)hop, x->rank);
	int rest = x->rank - 2;
	const Dim *count = x->dims[first ? 0 : rest + 1], *length = x->dims[first ? 1 : rest];
	for (int d = 0; d < rest; d++)
		shape[first ? d + 1 : d] = x->dims[first ? d + 2 : d];
	shape[first ? 0 : rest] = dim_add(
		c, dim_mul(c, dim_sub(c, count, dim_const(c, 1)), dim_const(c, hop)), length);
	return infer_result_shape(op, 0, x->dtype, x->rank - 1, shape);
}

// A sum over the frames that may reach a position: the one that begins last before it, and those
// before.
bool define_hook_overlap_add(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int rest = x->type->rank - 2;
	int64_t hop = op_int(op, "hop_length", 1);
	bool first = op_int(op, "axis", -1) == 0;
	const Dim *count = x->type->dims[first ? 0 : rest + 1],
			  *length = x->type->dims[first ? 1 : rest];
	const Dim *reach = dim_div(c, dim_add(c, length, dim_const(c, hop - 1)), dim_const(c, hop));
	Nest n = nest_open(b, op->results[0].type);
	Value *at = n.at[first ? 0 : rest];
	Nest s = reduce_open(&n.b, "sum", x->type->dtype, 1, &reach);
	Value *frame = index_sub(&s.b, index_div(&s.b, at, index_const(&s.b, hop)), s.at[0]);
	Value *in = index_sub(&s.b, at, index_times(&s.b, frame, hop));
	for (int d = 0; d < rest; d++)
		from[first ? d + 2 : d] = n.at[first ? d + 1 : d];
	from[first ? 0 : rest + 1] = frame;
	from[first ? 1 : rest] = in;
	Value *there = pred_and(&s.b, index_inside(&s.b, frame, count), index_inside(&s.b, in, length));
	Value *v = load_or(&s.b, there, build_scalar_f(&s.b, x->type->dtype, 0), x, from);
	results[0] = nest_close(&n, reduce_close(&s, v));
	return results[0] != NULL;
}
