// Primitive maps on strips of complex numbers: what Paddle's complex type computes step by step,
// each step rounded as it is there, and the C library's functions, whose infinities, NaN and zeros
// those of the target have, too (codegen/text/kernels/complex.c.in). Called by interp_maps.c and
// interp_strip.c.
#include "ir/interp/hooks.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#define EACH(real, imaginary)                       \
	for (int l = 0; l < n; l++) {                   \
		const double re = (real), im = (imaginary); \
		out[l].f = re;                              \
		out[COMPLEX_IM + l].f = im;                 \
	}                                               \
	break
// A function of C's complex numbers.
#define EACH_OF(function)                                          \
	for (int l = 0; l < n; l++) {                                  \
		double _Complex z = number(A, A_IM);                       \
		z = single ? function##f((float _Complex)z) : function(z); \
		out[l].f = creal(z), out[COMPLEX_IM + l].f = cimag(z);     \
	}                                                              \
	break
#define TRUTH(expr)             \
	for (int l = 0; l < n; l++) \
		out[l].i = (expr);      \
	return true
#define A x[0][l].f
#define A_IM x[0][COMPLEX_IM + l].f
#define B x[1][l].f
#define B_IM x[1][COMPLEX_IM + l].f
// A step that is rounded to the type.
#define R(v) (single ? (double)(float)(v) : (v))

// As C11's CMPLX, which not every compiler has.
static double _Complex number(double re, double im)
{
	const double parts[2] = {re, im};
	double _Complex z;
	memcpy(&z, parts, sizeof z);
	return z;
}

static bool from_complex(DType to, int n, Lane *out, const Lane *const *x)
{
	bool by_zero;
	if (to == DT_BOOL) {
		TRUTH(A != 0 || A_IM != 0);
	}
	return map_lanes(OP_PD_CAST, DT_F64, to, n, out, x, &by_zero);
}

// Real functions of complex numbers.
static bool parts_of_complex(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	if (code != OP_PD_REAL && code != OP_PD_IMAG && code != OP_PD_ABS)
		return false;
	for (int l = 0; l < n; l++)
		out[l].f = code == OP_PD_REAL ? A : code == OP_PD_IMAG ? A_IM : hypot(A, A_IM);
	return true;
}

// Functions that C has for complex numbers.
static bool complex_library(enum OpCode code, bool single, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_SQRT: EACH_OF(csqrt);
	case OP_PD_SIN: EACH_OF(csin);
	case OP_PD_COS: EACH_OF(ccos);
	case OP_PD_TAN: EACH_OF(ctan);
	case OP_PD_SINH: EACH_OF(csinh);
	case OP_PD_COSH: EACH_OF(ccosh);
	case OP_PD_TANH: EACH_OF(ctanh);
	case OP_PD_ASIN: EACH_OF(casin);
	case OP_PD_ACOS: EACH_OF(cacos);
	case OP_PD_ATAN: EACH_OF(catan);
	case OP_PD_ASINH: EACH_OF(casinh);
	case OP_PD_ACOSH: EACH_OF(cacosh);
	case OP_PD_ATANH: EACH_OF(catanh);
	case OP_PD_LOG: EACH_OF(clog);
	default: return false;
	}
	return true;
}

static double _Complex complex_log1p(double _Complex x)
{
	return clog(number(1 + creal(x), 0 + cimag(x)));
}

static float _Complex complex_log1pf(float _Complex x)
{
	return clogf((float _Complex)number(1 + crealf(x), 0 + cimagf(x)));
}

// exp(x) - 1, which near 0 is not a difference.
static double _Complex complex_expm1(double _Complex x)
{
	const double _Complex e = cexp(x);
	const double re = creal(x), half = sin(cimag(x) / 2);
	const double near = expm1(re) * cos(cimag(x)) - 2 * half * half;
	return number(fabs(re) < 1 ? near + 0.0 : creal(e) - 1, cimag(e));
}

static float _Complex complex_expm1f(float _Complex x)
{
	return (float _Complex)complex_expm1(x);
}

// Paddle divides by a complex log(2): NaN beside what is infinite.
static double _Complex complex_log2(double _Complex x)
{
	const double _Complex y = clog(x);
	return number(creal(y) / log(2), (cimag(y) - creal(y) * 0) / log(2));
}

static float _Complex complex_log2f(float _Complex x)
{
	return (float _Complex)complex_log2(x);
}

static double _Complex complex_log10(double _Complex x)
{
	const double _Complex y = clog(x);
	return number(creal(y) / log(10), cimag(y) / log(10));
}

static float _Complex complex_log10f(float _Complex x)
{
	return (float _Complex)complex_log10(x);
}

// Functions that are made of those, and powers: exp(y log x).
static bool complex_function(enum OpCode code, bool single, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_EXP: EACH(R(exp(A)) * R(cos(A_IM)), R(exp(A)) * R(sin(A_IM)));
	case OP_PD_EXPM1: EACH_OF(complex_expm1);
	case OP_PD_LOG1P: EACH_OF(complex_log1p);
	case OP_PD_LOG2: EACH_OF(complex_log2);
	case OP_PD_LOG10: EACH_OF(complex_log10);
	case OP_PD_ELEMENTWISE_POW:
	case OP_PD_WHOLE_POW:
		for (int l = 0; l < n; l++) {
			const double _Complex a = number(A, A_IM), b = number(B, B_IM);
			const double _Complex p = cpow(a, b);
			out[l].f = creal(p), out[COMPLEX_IM + l].f = cimag(p);
		}
		break;
	default: return false;
	}
	return true;
}

// Of order, the real parts come first; there is none with NaN.
#define ORDERED(real, imaginary) \
	(A_IM == A_IM && B_IM == B_IM && ((real) || (A == B && (imaginary))))

static bool complex_truth(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_EQUAL: TRUTH(A == B && A_IM == B_IM);
	case OP_PD_NOT_EQUAL: TRUTH(A != B || A_IM != B_IM);
	case OP_PD_LESS_THAN: TRUTH(ORDERED(A < B, A_IM < B_IM));
	case OP_PD_LESS_EQUAL: TRUTH(ORDERED(A < B, A_IM <= B_IM));
	case OP_PD_GREATER_THAN: TRUTH(ORDERED(A > B, A_IM > B_IM));
	case OP_PD_GREATER_EQUAL: TRUTH(ORDERED(A > B, A_IM >= B_IM));
	case OP_PD_ISNAN: TRUTH(isnan(A) || isnan(A_IM));
	case OP_PD_ISINF: TRUTH(isinf(A) || isinf(A_IM));
	case OP_PD_ISFINITE: TRUTH(isfinite(A) && isfinite(A_IM));
	default: return false;
	}
}

static bool complex_logic(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_LOGICAL_NOT: TRUTH(A == 0 && A_IM == 0);
	case OP_PD_LOGICAL_AND: TRUTH((A != 0 || A_IM != 0) && (B != 0 || B_IM != 0));
	case OP_PD_LOGICAL_OR: TRUTH(A != 0 || A_IM != 0 || B != 0 || B_IM != 0);
	case OP_PD_LOGICAL_XOR: TRUTH((A != 0 || A_IM != 0) != (B != 0 || B_IM != 0));
	default: return false;
	}
}

// The quotient without numbers between that are larger than the operands (R. Smith, "Algorithm
// 116"), as Paddle 3 divides.
static void complex_quotient(bool single, int n, Lane *out, const Lane *const *x)
{
	for (int l = 0; l < n; l++) {
		const bool wide = fabs(B) >= fabs(B_IM);
		const double c = wide ? B : B_IM, d = wide ? B_IM : B, part = R(d / c);
		const double scale = R(1 / R(c + R(d * part)));
		const double re = wide ? R(A + R(A_IM * part)) : R(R(A * part) + A_IM);
		const double im = wide ? R(A_IM - R(A * part)) : R(R(A_IM * part) - A);
		const bool zero = B == 0 && B_IM == 0;
		out[l].f = zero ? A / fabs(B) : re * scale;
		out[COMPLEX_IM + l].f = zero ? A_IM / fabs(B_IM) : im * scale;
	}
}

static bool complex_arithmetic(enum OpCode code, bool single, int n, Lane *out,
                               const Lane *const *x)
{
	switch (code) {
	case OP_PD_COMPLEX: EACH(A, B);
	case OP_PD_ADD: EACH(A + B, A_IM + B_IM);
	case OP_PD_SUBTRACT: EACH(A - B, A_IM - B_IM);
	case OP_PD_MULTIPLY: EACH(R(A * B) - R(A_IM * B_IM), R(A * B_IM) + R(A_IM * B));
	case OP_PD_DIVIDE:
		EACH(R(R(A * B) + R(A_IM * B_IM)) / R(R(B * B) + R(B_IM * B_IM)),
		     R(R(A_IM * B) - R(A * B_IM)) / R(R(B * B) + R(B_IM * B_IM)));
	case OP_PD_DIVIDE_SCALED: complex_quotient(single, n, out, x); break;
	case OP_PD_NEGATIVE: EACH(-A, -A_IM);
	case OP_PD_ROUND: // halves to even, unlike those of real numbers
	case OP_PD_RINT: EACH(rint(A), rint(A_IM));
	case OP_PD_WHERE: EACH(x[0][l].i ? B : x[2][l].f, x[0][l].i ? B_IM : x[2][COMPLEX_IM + l].f);
	default: return false;
	}
	return true;
}

static void to_complex(DType from, int n, Lane *out, const Lane *const *x)
{
	const bool real = !dtype_is_complex(from), whole = real && !dtype_is_float(from);
	for (int l = 0; l < n; l++) {
		const double re = whole ? (double)x[0][l].i : A, im = real ? 0 : A_IM;
		out[l].f = re;
		out[COMPLEX_IM + l].f = im;
	}
}

bool complex_lanes(enum OpCode code, DType from, DType to, int n, Lane *out, const Lane *const *x)
{
	if (code == OP_PD_CAST && !dtype_is_complex(to))
		return from_complex(to, n, out, x);
	if (!dtype_is_complex(from) && code != OP_PD_CAST && code != OP_PD_COMPLEX)
		return false;
	if (parts_of_complex(code, n, out, x)) {
		lanes_round(to, n, out);
		return true;
	}
	if (complex_truth(code, n, out, x) || complex_logic(code, n, out, x))
		return true;
	const bool single = to == DT_C64;
	if (code == OP_PD_CAST)
		to_complex(from, n, out, x);
	else if (!complex_arithmetic(code, single, n, out, x) &&
	         !complex_function(code, single, n, out, x) &&
	         !complex_library(code, single, n, out, x))
		return false;
	lanes_round(dtype_part(to), n, out);
	lanes_round(dtype_part(to), n, out + COMPLEX_IM);
	return true;
}

void complex_gather(const Tensor *t, int n, const int64_t *at, Lane *out)
{
	for (int l = 0; l < n; l++)
		for (int part = 0; part < 2; part++)
			out[part * COMPLEX_IM + l].f = t->dtype == DT_C64
			                                   ? ((const float *)t->data)[2 * at[l] + part]
			                                   : ((const double *)t->data)[2 * at[l] + part];
}

void complex_store(Tensor *t, int64_t at, int n, const Lane *v)
{
	for (int l = 0; l < n; l++)
		for (int part = 0; part < 2; part++) {
			if (t->dtype == DT_C64)
				((float *)t->data)[2 * (at + l) + part] = (float)v[part * COMPLEX_IM + l].f;
			else
				((double *)t->data)[2 * (at + l) + part] = v[part * COMPLEX_IM + l].f;
		}
}

void complex_accumulate(bool product, int n, Lane *acc, const Lane *v)
{
	for (int l = 0; l < n; l++) {
		const double re = acc[l].f, im = acc[COMPLEX_IM + l].f, x = v[l].f, y = v[COMPLEX_IM + l].f;
		acc[l].f = product ? re * x - im * y : re + x;
		acc[COMPLEX_IM + l].f = product ? re * y + im * x : im + y;
	}
}
