// What the operators of ops/special.yaml mean that have no file of their own.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/infer/quantised.h"

#include <math.h>
#include <string.h>

// ---- quantisation -------------------------------------------------------------------------------

// The scale of the element at a position: one for all, or one per channel on `axis`.
static Value *scale_at(const Nest *n, Builder *b, Value *scale, int64_t axis)
{
	int64_t count;
	if (axis < 0 || (type_const_numel(scale->type, &count) && count == 1))
		return load_scalar(b, scale);
	Value *at[MAX_RANK];
	for (int d = 0; d < scale->type->rank; d++)
		at[d] = index_const(b, 0);
	if (scale->type->rank)
		at[scale->type->rank - 1] = n->at[axis];
	return load(b, scale, at);
}

static Value *clamp(Builder *b, Value *x, Value *low, Value *high)
{
	return apply2(b, OP_PD_MINIMUM, apply2(b, OP_PD_MAXIMUM, x, low), high);
}

static bool passes_through(Builder *b, const Op *op, Value **results)
{
	if (!quantised_observes(op))
		return false;
	results[0] = apply1(b, OP_PD_ASSIGN, op_operand(op, 0));
	return true;
}

// quantize_linear and quantize_dequantize.
bool define_hook_quantize(Builder *b, Op *op, Value **results)
{
	if (passes_through(b, op, results))
		return results[0] != NULL;
	Value *x = op_operand(op, 0);
	DType t = x->type->dtype;
	double most = quantised_most(op_int(op, "bit_length", 8));
	Nest n = nest_open(b, op->results[0].type);
	Value *s = scalar_cast(&n.b,
	                       scale_at(&n, &n.b, op_operand(op, 1), op_int(op, "quant_axis", -1)), t);
	// A scale of next to nothing is kept from dividing by zero, as Paddle does it.
	Value *tiny = build_scalar_f(&n.b, t, 1e-6), *one = build_scalar_f(&n.b, t, 1);
	Value *safe = index_where(&n.b, apply2(&n.b, OP_PD_LESS_EQUAL, s, tiny),
	                          apply2(&n.b, OP_PD_ADD, s, tiny), s);
	Value *inverse = apply2(&n.b, OP_PD_DIVIDE, one, safe), *top = build_scalar_f(&n.b, t, most);
	Value *factor = apply2(&n.b, OP_PD_MULTIPLY, top, inverse), *v = load(&n.b, x, n.at);
	if (!quantised_away(op)) {
		v = apply1(&n.b, OP_PD_RINT, apply2(&n.b, OP_PD_MULTIPLY, factor, v));
		v = clamp(&n.b, v, build_scalar_f(&n.b, t, -most - 1), top);
	} else {
		v = clamp(&n.b, v, apply1(&n.b, OP_PD_NEGATIVE, s), s);
		v = apply1(&n.b, OP_PD_ROUND, apply2(&n.b, OP_PD_MULTIPLY, factor, v));
	}
	if (op->code == OP_PD_QUANTIZE_DEQUANTIZE)
		v = apply2(&n.b, OP_PD_DIVIDE, apply2(&n.b, OP_PD_MULTIPLY, v, s), top);
	results[0] = nest_close(&n, v);
	return results[0] != NULL;
}

bool define_hook_dequantize(Builder *b, Op *op, Value **results)
{
	if (passes_through(b, op, results))
		return results[0] != NULL;
	Value *x = op_operand(op, 0), *const * scales;
	const Type *out = op->results[0].type;
	int64_t bits[2];
	int count = op_operand_list(op, 1, &scales), nbits = op_ints(op, "quant_bits", bits, 2);
	double most = 1;
	for (int i = 0; i < count; i++)
		most *= quantised_most(nbits > i ? bits[i] : op_int(op, "bit_length", 8));
	most = op_attr(op, "max_range") ? op_float(op, "max_range", most) : most;
	Nest n = nest_open(b, out);
	Value *v = scalar_cast(&n.b, load(&n.b, x, n.at), out->dtype);
	Value *s = scale_at(&n, &n.b, scales[0], quantised_axis(op, count));
	v = apply2(&n.b, OP_PD_MULTIPLY, v, s);
	if (count == 2)
		v = apply2(&n.b, OP_PD_MULTIPLY, v, load_scalar(&n.b, scales[1]));
	results[0] = nest_close(&n,
	                        apply2(&n.b, OP_PD_DIVIDE, v, build_scalar_f(&n.b, out->dtype, most)));
	return results[0] != NULL;
}

// ---- random numbers: Philox 2x32 with 10 rounds -------------------------------------------------

static Value *whole(Builder *b, int64_t v)
{
	const Type *type = type_scalar(b->ctx, DT_I64);
	const NamedAttr attrs[] = {{"type", attr_type(b->ctx, type)}, {"value", attr_int(b->ctx, v)}};
	Op *op = build_op(b, OP_LOOP_CONSTANT, 0, NULL, 2, attrs);
	return op ? op_result(op, 0) : NULL;
}

static Value *high_part(Builder *b, Value *x, int64_t unit)
{
	return apply2(b, OP_PD_FLOOR_DIVIDE, x, whole(b, unit));
}

static Value *low_part(Builder *b, Value *x, int64_t unit)
{
	return apply2(b, OP_PD_REMAINDER, x, whole(b, unit));
}

enum { HALF = 1 << 16 };
static const int64_t word = 1LL << 32;

// x and y, of 32 bits each, become others that they and the key decide: `constant`, plus `key`
// where that is not NULL. All arithmetic stays below 2^63, so that it is the same on every target.
static void philox(Builder *b, Value **x, Value **y, Value *key, uint32_t constant)
{
	const int64_t multiplier = 0xD256D193, step = 0x9E3779B9;
	for (int round = 0; round < 10; round++, constant += (uint32_t)step) {
		// multiplier * x in halves of 16 bits.
		Value *low = apply2(b, OP_PD_MULTIPLY, low_part(b, *x, HALF), whole(b, multiplier));
		Value *high = apply2(b, OP_PD_MULTIPLY, high_part(b, *x, HALF), whole(b, multiplier));
		high = apply2(b, OP_PD_ADD, high, high_part(b, low, HALF));
		Value *product_high = high_part(b, high, HALF);
		Value *product_low = apply2(
			b, OP_PD_ADD, apply2(b, OP_PD_MULTIPLY, low_part(b, high, HALF), whole(b, HALF)),
			low_part(b, low, HALF));
		Value *k = whole(b, constant);
		k = key ? low_part(b, apply2(b, OP_PD_ADD, key, k), word) : k;
		*x = apply2(b, OP_PD_BITWISE_XOR, apply2(b, OP_PD_BITWISE_XOR, product_high, k), *y);
		*y = product_low;
	}
}

// Two numbers of 32 bits for the element at a position of the nest. `key` (a tensor of one number,
// or NULL): others for another key.
static void random_bits(Nest *n, const Op *op, Value *key, Value **first, Value **second)
{
	Builder *b = &n->b;
	const Type *out = op->results[0].type;
	uint64_t seed = (uint64_t)op_int(op, "seed", 0), place = (uint64_t)op_int(op, "place", 0);
	uint32_t own = (uint32_t)(seed * 0x9E3779B1u + (seed >> 32) + (place + 1) * 0x85EBCA77u);
	Value *linear = scalar_from_index(b, index_linear(b, out->rank, out->dims, n->at), DT_I64);
	*first = low_part(b, linear, word);
	*second = high_part(b, linear, word);
	key = key ? low_part(b, scalar_cast(b, load_scalar(b, key), DT_I64), word) : NULL;
	philox(b, first, second, key, own);
}

// A number in [0, 1) with the 24 bits that a float can hold.
static Value *unit_of(Builder *b, Value *bits, DType t)
{
	Value *v = scalar_cast(b, high_part(b, bits, 1 << 8), t);
	return apply2(b, OP_PD_MULTIPLY, v, build_scalar_f(b, t, 1.0 / (1 << 24)));
}

bool define_hook_uniform(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	double min = op_float(op, "min", -1), max = op_float(op, "max", 1);
	Nest n = nest_open(b, out);
	Value *x, *y;
	DType t = out->dtype == DT_F64 ? DT_F64 : DT_F32;
	random_bits(&n, op, NULL, &x, &y);
	Value *v = apply2(&n.b, OP_PD_MULTIPLY, unit_of(&n.b, x, t),
	                  build_scalar_f(&n.b, t, max - min));
	results[0] = nest_close(&n, apply2(&n.b, OP_PD_ADD, v, build_scalar_f(&n.b, t, min)));
	return results[0] != NULL;
}

// Box and Muller's transform of two uniform numbers.
bool define_hook_gaussian(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	Nest n = nest_open(b, out);
	DType t = out->dtype == DT_F64 ? DT_F64 : DT_F32;
	Value *x, *y;
	random_bits(&n, op, NULL, &x, &y);
	// 1 - u is above zero, so that the logarithm is finite.
	Value *u = apply2(&n.b, OP_PD_SUBTRACT, build_scalar_f(&n.b, t, 1), unit_of(&n.b, x, t));
	Value *radius = apply2(&n.b, OP_PD_MULTIPLY, apply1(&n.b, OP_PD_LOG, u),
	                       build_scalar_f(&n.b, t, -2));
	const double turn = 6.283185307179586;
	Value *angle = apply2(&n.b, OP_PD_MULTIPLY, unit_of(&n.b, y, t), build_scalar_f(&n.b, t, turn));
	Value *v = apply2(&n.b, OP_PD_MULTIPLY, apply1(&n.b, OP_PD_SQRT, radius),
	                  apply1(&n.b, OP_PD_COS, angle));
	v = apply2(&n.b, OP_PD_MULTIPLY, v, build_scalar_f(&n.b, t, op_float(op, "std", 1)));
	results[0] = nest_close(
		&n, apply2(&n.b, OP_PD_ADD, v, build_scalar_f(&n.b, t, op_float(op, "mean", 0))));
	return results[0] != NULL;
}

bool define_hook_randint(Builder *b, Op *op, Value **results)
{
	int64_t low = op_int(op, "low", 0), high = op_int(op, "high", 1);
	Nest n = nest_open(b, op->results[0].type);
	Value *x, *y;
	random_bits(&n, op, NULL, &x, &y);
	// 62 bits, so that the remainder is as good as even.
	Value *bits = apply2(
		&n.b, OP_PD_ADD,
		apply2(&n.b, OP_PD_MULTIPLY, high_part(&n.b, x, 4), whole(&n.b, 1LL << 32)), y);
	Value *v = apply2(&n.b, OP_PD_REMAINDER, bits, whole(&n.b, high - low));
	results[0] = nest_close(&n, apply2(&n.b, OP_PD_ADD, v, whole(&n.b, low)));
	return results[0] != NULL;
}

bool define_hook_bernoulli(Builder *b, Op *op, Value **results)
{
	Nest n = nest_open(b, op->results[0].type);
	Value *x, *y;
	random_bits(&n, op, op_operand(op, 1), &x, &y);
	Value *p = scalar_cast(&n.b, load(&n.b, op_operand(op, 0), n.at), DT_F32);
	results[0] = nest_close(&n, apply2(&n.b, OP_PD_LESS_THAN, unit_of(&n.b, x, DT_F32), p));
	return results[0] != NULL;
}

bool define_hook_draw(Builder *b, Op *op, Value **results)
{
	Nest n = nest_open(b, op->results[0].type);
	Value *seed = scalar_cast(&n.b, load_scalar(&n.b, op_operand(op, 0)), DT_I64);
	Value *count = scalar_cast(&n.b, load(&n.b, op_operand(op, 1), n.at), DT_I64);
	Value *x = low_part(&n.b, count, word), *y = low_part(&n.b, high_part(&n.b, count, word), word);
	Value *key = low_part(&n.b, seed, word);
	Value *above = low_part(&n.b, high_part(&n.b, seed, word), word);
	y = apply2(&n.b, OP_PD_BITWISE_XOR, y, above);
	philox(&n.b, &x, &y, key, 0);
	results[0] = nest_close(&n, x);
	return results[0] != NULL;
}
