// Primitive maps on strips of elements: the interpreter's arithmetic. Floats are computed in double
// and rounded to their type after every operation, which for + - * / and sqrt of f32 is exact;
// integers wrap. NaN, infinities and conversions out of range are what Paddle's x86 kernels give.
#include "ir/interp/hooks.h"

#include <math.h>

#define EACH(statement)           \
	for (int l = 0; l < n; l++) { \
		statement;                \
	}                             \
	return true
// In groups of 8 lanes, some past the n asked for: compilers make vector code of that. For
// operations that cannot fail and cost next to nothing.
#define GROUPS(statement)                 \
	for (int g = 0; g < n; g += 8)        \
		for (int l = g; l < g + 8; l++) { \
			statement;                    \
		}                                 \
	return true
#define FLOAT(expr) EACH(out[l].f = (expr))
#define WHOLE(expr) EACH(out[l].i = (expr))
#define FLOAT_QUICK(expr) GROUPS(out[l].f = (expr))
#define WHOLE_QUICK(expr) GROUPS(out[l].i = (expr))
#define A x[0][l]
#define B x[1][l]
#define C x[2][l]

// ---- rounding -----------------------------------------------------------------------------------

void lanes_round(DType t, int n, Lane *v)
{
#define ROUND(field, expr)      \
	for (int l = 0; l < n; l++) \
		v[l].field = (expr);    \
	break
	switch (t) {
	case DT_F32:
		for (int g = 0; g < n; g += 8)
			for (int l = g; l < g + 8; l++)
				v[l].f = (float)v[l].f;
		break;
	case DT_F16: // by way of f32, as Paddle computes
		ROUND(f, half_to_float(float_to_half((float)v[l].f)));
	case DT_BF16: ROUND(f, bf16_to_float(float_to_bf16((float)v[l].f)));
	case DT_BOOL: ROUND(i, v[l].i != 0);
	case DT_U8: ROUND(i, (uint8_t)v[l].i);
	case DT_I8: ROUND(i, (int8_t)(uint8_t)v[l].i);
	case DT_I16: ROUND(i, (int16_t)(uint16_t)v[l].i);
	case DT_I32: ROUND(i, (int32_t)(uint32_t)v[l].i);
	default: break;
	}
#undef ROUND
}

static double round_one(DType t, double v)
{
	Lane lanes[8] = {{.f = v}};
	lanes_round(t, 1, lanes);
	return lanes[0].f;
}

// ---- special functions --------------------------------------------------------------------------

// By recurrence up to 10, then the asymptotic series; reflection below 0.
static double digamma(double x)
{
	const double pi = 3.14159265358979323846;
	if (x <= 0 && x == floor(x))
		return NAN;
	if (x < 0)
		return digamma(1 - x) - pi / tan(pi * x);
	double sum = 0;
	for (; x < 10; x++)
		sum -= 1 / x;
	double y = 1 / (x * x);
	static const double c[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
	                           1. / 132, -691. / 32760, 1. / 12};
	double series = 0;
	for (int i = (int)COUNT_OF(c) - 1; i >= 0; i--)
		series = (series + c[i]) * y;
	return sum + log(x) - 0.5 / x - series;
}

// The regularised upper incomplete gamma function of order a from x on: the power series of the
// lower one up to x = a, else the continued fraction (Abramowitz and Stegun 6.5.29 and 6.5.31).
static double gammaincc(double a, double x)
{
	if (isnan(a) || isnan(x))
		return NAN;
	if (x <= 0 || a <= 0)
		return 1;
	double scale = a * log(x) - x - lgamma(a);
	bool series = x < 1 || x < a;
	if (scale < -709.782712893384)
		return series ? 1 : 0;
	scale = exp(scale);
	if (series) {
		double sum = 1, term = 1;
		for (double r = a + 1; term > sum * 1e-17; r++)
			sum += term *= x / r;
		return 1 - sum * scale / a;
	}
	double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
	for (int i = 1; i < 100000; i++) { // Lentz
		double an = -i * (i - a);
		b += 2;
		d = 1 / (an * d + b);
		c = b + an / c;
		value *= c * d;
		if (fabs(c * d - 1) < 1e-16)
			break;
	}
	return value * scale;
}

static double float_remainder(double x, double y)
{
	double r = fmod(x, y);
	return r != 0 && (y < 0) != (r < 0) ? r + y : r;
}

// Python's floored division: exact where x / y rounds up to a whole number.
static double float_floor_divide(DType t, double x, double y)
{
	if (y == 0)
		return round_one(t, x / y);
	double r = fmod(x, y), q = round_one(t, round_one(t, x - r) / y);
	if (r != 0 && (y < 0) != (r < 0))
		q = round_one(t, q - 1);
	if (q == 0)
		return copysign(0, round_one(t, x / y));
	double whole = floor(q);
	return q - whole > 0.5 ? whole + 1 : whole;
}

// ---- floats -------------------------------------------------------------------------------------

static bool float_extreme(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_MAXIMUM: FLOAT_QUICK(A.f > B.f ? A.f : B.f);
	case OP_PD_MINIMUM: FLOAT_QUICK(A.f < B.f ? A.f : B.f);
	case OP_PD_FMAX: FLOAT(fmax(A.f, B.f));
	case OP_PD_FMIN: FLOAT(fmin(A.f, B.f));
	default: return false;
	}
}

static bool float_binary(enum OpCode code, DType t, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_ADD: FLOAT_QUICK(A.f + B.f);
	case OP_PD_SUBTRACT: FLOAT_QUICK(A.f - B.f);
	case OP_PD_MULTIPLY: FLOAT_QUICK(A.f * B.f);
	case OP_PD_DIVIDE:
	case OP_PD_DIVIDE_SCALED: FLOAT_QUICK(A.f / B.f);
	case OP_PD_FLOOR_DIVIDE: FLOAT(float_floor_divide(t, A.f, B.f));
	case OP_PD_REMAINDER: FLOAT(float_remainder(A.f, B.f));
	case OP_PD_ELEMENTWISE_POW:
	case OP_PD_WHOLE_POW: FLOAT(pow(A.f, B.f));
	case OP_PD_NEXTAFTER:
		FLOAT(t == DT_F32 ? (double)nextafterf((float)A.f, (float)B.f) : nextafter(A.f, B.f));
	case OP_PD_ATAN2: FLOAT(atan2(A.f, B.f));
	case OP_PD_GAMMAINCC: FLOAT(gammaincc(A.f, B.f));
	default: return false;
	}
}

static bool float_compare(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_LESS_THAN: WHOLE_QUICK(A.f < B.f);
	case OP_PD_LESS_EQUAL: WHOLE_QUICK(A.f <= B.f);
	case OP_PD_GREATER_THAN: WHOLE_QUICK(A.f > B.f);
	case OP_PD_GREATER_EQUAL: WHOLE_QUICK(A.f >= B.f);
	case OP_PD_EQUAL: WHOLE_QUICK(A.f == B.f);
	case OP_PD_NOT_EQUAL: WHOLE_QUICK(A.f != B.f);
	default: return false;
	}
}

static bool float_truth(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_LOGICAL_AND: WHOLE_QUICK(A.f != 0 && B.f != 0);
	case OP_PD_LOGICAL_OR: WHOLE_QUICK(A.f != 0 || B.f != 0);
	case OP_PD_LOGICAL_XOR: WHOLE_QUICK((A.f != 0) != (B.f != 0));
	case OP_PD_LOGICAL_NOT: WHOLE_QUICK(A.f == 0);
	case OP_PD_ISNAN: WHOLE_QUICK(isnan(A.f) != 0);
	case OP_PD_ISINF: WHOLE_QUICK(isinf(A.f) != 0);
	case OP_PD_ISFINITE: WHOLE_QUICK(isfinite(A.f) != 0);
	default: return false;
	}
}

static bool float_unary(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_NEGATIVE: FLOAT_QUICK(-A.f);
	case OP_PD_ABS: FLOAT_QUICK(fabs(A.f));
	case OP_PD_SQRT: FLOAT_QUICK(sqrt(A.f));
	case OP_PD_RSQRT: FLOAT(1 / sqrt(A.f));
	case OP_PD_EXP: FLOAT(exp(A.f));
	case OP_PD_EXPM1: FLOAT(expm1(A.f));
	case OP_PD_LOG: FLOAT(log(A.f));
	case OP_PD_LOG2: FLOAT(log2(A.f));
	case OP_PD_LOG10: FLOAT(log10(A.f));
	case OP_PD_LOG1P: FLOAT(log1p(A.f));
	case OP_PD_ERF: FLOAT(erf(A.f));
	case OP_PD_LGAMMA: FLOAT(lgamma(A.f));
	case OP_PD_DIGAMMA: FLOAT(digamma(A.f));
	default: return false;
	}
}

static bool float_rounded(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_FLOOR: FLOAT(floor(A.f));
	case OP_PD_CEIL: FLOAT(ceil(A.f));
	case OP_PD_ROUND: FLOAT(round(A.f));
	case OP_PD_RINT: FLOAT(rint(A.f));
	case OP_PD_TRUNC: FLOAT(trunc(A.f));
	default: return false;
	}
}

static bool float_trigonometric(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_SIN: FLOAT(sin(A.f));
	case OP_PD_COS: FLOAT(cos(A.f));
	case OP_PD_TAN: FLOAT(tan(A.f));
	case OP_PD_ASIN: FLOAT(asin(A.f));
	case OP_PD_ACOS: FLOAT(acos(A.f));
	case OP_PD_ATAN: FLOAT(atan(A.f));
	case OP_PD_SINH: FLOAT(sinh(A.f));
	case OP_PD_COSH: FLOAT(cosh(A.f));
	case OP_PD_TANH: FLOAT(tanh(A.f));
	case OP_PD_ASINH: FLOAT(asinh(A.f));
	case OP_PD_ACOSH: FLOAT(acosh(A.f));
	case OP_PD_ATANH: FLOAT(atanh(A.f));
	default: return false;
	}
}

// ---- integers, bool and index -------------------------------------------------------------------

static int64_t floor_divide(int64_t a, int64_t b)
{
	if (b == -1) // INT64_MIN / -1 wraps
		return (int64_t)(0 - (uint64_t)a);
	int64_t q = a / b;
	return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t truncated_divide(int64_t a, int64_t b)
{
	return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t floor_remainder(int64_t a, int64_t b)
{
	if (b == -1)
		return 0;
	int64_t r = a % b;
	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Integer powers are computed in double and rounded; out of range gives the smallest, as
// conversions do.
static int64_t whole_power(DType t, int64_t a, int64_t b)
{
	return whole_from_double(t, rint(pow((double)a, (double)b)));
}

// Multiplied out, which wraps; 1 over it, towards 0, where the power is negative.
static int64_t multiplied_power(int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, out = 1;
	if (b < 0)
		return a != 1 && a != -1 ? 0 : b % 2 ? a : 1;
	for (; b; b /= 2, x *= x)
		out *= b % 2 ? x : 1;
	return (int64_t)out;
}

static bool whole_divide(enum OpCode code, int n, Lane *out, const Lane *const *x, bool *by_zero)
{
	if (code != OP_PD_DIVIDE && code != OP_PD_FLOOR_DIVIDE && code != OP_PD_REMAINDER)
		return false;
	for (int l = 0; l < n; l++) {
		if (B.i == 0) {
			*by_zero = true;
			return false;
		}
	}
	if (code == OP_PD_DIVIDE) {
		WHOLE(truncated_divide(A.i, B.i));
	} else if (code == OP_PD_FLOOR_DIVIDE) {
		WHOLE(floor_divide(A.i, B.i));
	} else {
		WHOLE(floor_remainder(A.i, B.i));
	}
}

static bool whole_binary(enum OpCode code, DType t, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_ADD: WHOLE_QUICK((int64_t)((uint64_t)A.i + (uint64_t)B.i));
	case OP_PD_SUBTRACT: WHOLE_QUICK((int64_t)((uint64_t)A.i - (uint64_t)B.i));
	case OP_PD_MULTIPLY: WHOLE_QUICK((int64_t)((uint64_t)A.i * (uint64_t)B.i));
	case OP_PD_ELEMENTWISE_POW: WHOLE(whole_power(t, A.i, B.i));
	case OP_PD_WHOLE_POW: WHOLE(multiplied_power(A.i, B.i));
	case OP_PD_MAXIMUM:
	case OP_PD_FMAX: WHOLE_QUICK(A.i > B.i ? A.i : B.i);
	case OP_PD_MINIMUM:
	case OP_PD_FMIN: WHOLE_QUICK(A.i < B.i ? A.i : B.i);
	default: return false;
	}
}

static bool whole_logic(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_BITWISE_AND: WHOLE_QUICK(A.i & B.i);
	case OP_PD_BITWISE_OR: WHOLE_QUICK(A.i | B.i);
	case OP_PD_BITWISE_XOR: WHOLE_QUICK(A.i ^ B.i);
	case OP_PD_LOGICAL_AND: WHOLE_QUICK(A.i && B.i);
	case OP_PD_LOGICAL_OR: WHOLE_QUICK(A.i || B.i);
	case OP_PD_LOGICAL_XOR: WHOLE_QUICK(!A.i != !B.i);
	default: return false;
	}
}

// x with its bits y places lower. At or over its width, or below 0: only the sign stays, or
// nothing.
static int64_t shifted_right(DType t, int64_t x, int64_t y, bool logical)
{
	const int64_t bits = (int64_t)dtype_size(t) * 8;
	if (y < 0 || y >= bits)
		return logical || x >= 0 ? 0 : -1;
	if (logical && y)
		return (int64_t)(((uint64_t)x << (64 - bits)) >> (64 - bits + y));
	return x < 0 ? ~(~x >> y) : x >> y;
}

static bool whole_shift(enum OpCode code, DType t, int n, Lane *out, const Lane *const *x)
{
	const int64_t bits = (int64_t)dtype_size(t) * 8;
	switch (code) {
	case OP_PD_BITWISE_LEFT_SHIFT:
		WHOLE(B.i < 0 || B.i >= bits ? 0 : (int64_t)((uint64_t)A.i << B.i));
	case OP_PD_RIGHT_SHIFT: WHOLE(shifted_right(t, A.i, B.i, false));
	case OP_PD_RIGHT_SHIFT_LOGICAL: WHOLE(shifted_right(t, A.i, B.i, true));
	default: return false;
	}
}

static bool whole_compare(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_LESS_THAN: WHOLE_QUICK(A.i < B.i);
	case OP_PD_LESS_EQUAL: WHOLE_QUICK(A.i <= B.i);
	case OP_PD_GREATER_THAN: WHOLE_QUICK(A.i > B.i);
	case OP_PD_GREATER_EQUAL: WHOLE_QUICK(A.i >= B.i);
	case OP_PD_EQUAL: WHOLE_QUICK(A.i == B.i);
	case OP_PD_NOT_EQUAL: WHOLE_QUICK(A.i != B.i);
	default: return false;
	}
}

static bool whole_unary(enum OpCode code, DType from, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_NEGATIVE: WHOLE_QUICK((int64_t)(0 - (uint64_t)A.i));
	case OP_PD_ABS: WHOLE_QUICK(A.i < 0 ? (int64_t)(0 - (uint64_t)A.i) : A.i);
	case OP_PD_FLOOR:
	case OP_PD_CEIL:
	case OP_PD_ROUND:
	case OP_PD_RINT:
	case OP_PD_TRUNC: WHOLE_QUICK(A.i);
	case OP_PD_LOGICAL_NOT: WHOLE_QUICK(!A.i);
	case OP_PD_BITWISE_NOT:
		if (from == DT_BOOL) {
			WHOLE_QUICK(!A.i);
		} else {
			WHOLE_QUICK(~A.i);
		}
	case OP_PD_ISNAN:
	case OP_PD_ISINF: WHOLE_QUICK(0);
	case OP_PD_ISFINITE: WHOLE_QUICK(1);
	default: return false;
	}
}

// ---- conversions --------------------------------------------------------------------------------

static bool cast_lanes(DType from, DType to, int n, Lane *out, const Lane *const *x)
{
	bool f = dtype_is_float(from);
	if (to == DT_BOOL) {
		WHOLE(f ? A.f != 0 : A.i != 0);
	} else if (dtype_is_float(to)) {
		FLOAT(f ? A.f : (double)A.i);
	} else {
		WHOLE(f ? whole_from_double(to, A.f) : A.i);
	}
}

static bool float_lanes(enum OpCode code, DType t, int n, Lane *out, const Lane *const *x)
{
	return float_binary(code, t, n, out, x) || float_extreme(code, n, out, x) ||
	       float_unary(code, n, out, x) || float_rounded(code, n, out, x) ||
	       float_trigonometric(code, n, out, x) || float_compare(code, n, out, x) ||
	       float_truth(code, n, out, x);
}

static bool whole_lanes(enum OpCode code, DType from, DType to, int n, Lane *out,
                        const Lane *const *x, bool *by_zero)
{
	if (whole_divide(code, n, out, x, by_zero))
		return true;
	return !*by_zero && (whole_binary(code, to, n, out, x) || whole_logic(code, n, out, x) ||
	                     whole_compare(code, n, out, x) || whole_shift(code, from, n, out, x) ||
	                     whole_unary(code, from, n, out, x));
}

bool map_lanes(enum OpCode code, DType from, DType to, int n, Lane *out, const Lane *const *x,
               bool *by_zero)
{
	*by_zero = false;
	if (dtype_is_complex(from) || dtype_is_complex(to))
		return complex_lanes(code, from, to, n, out, x);
	if (code == OP_PD_WHERE) {
		GROUPS(out[l].i = A.i ? B.i : C.i);
	}
	const bool done = code == OP_PD_CAST     ? cast_lanes(from, to, n, out, x)
	                  : dtype_is_float(from) ? float_lanes(code, from, n, out, x)
	                                         : whole_lanes(code, from, to, n, out, x, by_zero);
	if (done && to != DT_BOOL)
		lanes_round(to, n, out);
	else if (done && from == DT_BOOL &&
	         (code == OP_PD_ADD || code == OP_PD_SUBTRACT || code == OP_PD_NEGATIVE))
		lanes_round(to, n, out); // the others leave 0 or 1
	return done;
}
