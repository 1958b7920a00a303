// Primitive maps on strips of complex numbers, with the formulas of Paddle's complex type: computed
// in double and rounded at the end. Called by interp_maps.c and interp_strip.c.
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
#define EACH_OF(function)                                      \
	for (int l = 0; l < n; l++) {                              \
		const double parts[2] = {A, A_IM};                     \
		double _Complex z;                                     \
		memcpy(&z, parts, sizeof z);                           \
		z = function(z);                                       \
		out[l].f = creal(z), out[COMPLEX_IM + l].f = cimag(z); \
	}                                                          \
	break
#define TRUTH(expr)             \
	for (int l = 0; l < n; l++) \
		out[l].i = (expr);      \
	return true
#define A x[0][l].f
#define A_IM x[0][COMPLEX_IM + l].f
#define B x[1][l].f
#define B_IM x[1][COMPLEX_IM + l].f

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

// Functions that have a series; false: another one.
static bool complex_function(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_EXP: EACH(exp(A) * cos(A_IM), exp(A) * sin(A_IM));
	case OP_PD_SIN: EACH(sin(A) * cosh(A_IM), cos(A) * sinh(A_IM));
	case OP_PD_COS: EACH(cos(A) * cosh(A_IM), -sin(A) * sinh(A_IM));
	case OP_PD_SINH: EACH(sinh(A) * cos(A_IM), cosh(A) * sin(A_IM));
	case OP_PD_COSH: EACH(cosh(A) * cos(A_IM), sinh(A) * sin(A_IM));
	default: return false;
	}
	return true;
}

// Functions that C has for complex numbers, and expm1.
static bool complex_library(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_EXPM1:
		EACH(expm1(A) * cos(A_IM) - 2 * sin(A_IM / 2) * sin(A_IM / 2), exp(A) * sin(A_IM));
	case OP_PD_SQRT: EACH_OF(csqrt);
	case OP_PD_TAN: EACH_OF(ctan);
	case OP_PD_TANH: EACH_OF(ctanh);
	case OP_PD_ASIN: EACH_OF(casin);
	case OP_PD_ACOS: EACH_OF(cacos);
	case OP_PD_ATAN: EACH_OF(catan);
	case OP_PD_ASINH: EACH_OF(casinh);
	case OP_PD_ACOSH: EACH_OF(cacosh);
	case OP_PD_ATANH: EACH_OF(catanh);
	default: return false;
	}
	return true;
}

// Logarithms, and powers: exp(y log x).
static bool complex_logarithm(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_LOG: EACH(log(hypot(A, A_IM)), atan2(A_IM, A));
	case OP_PD_LOG1P: EACH(log(hypot(A + 1, A_IM)), atan2(A_IM, A + 1));
	case OP_PD_LOG2: // divides by a complex log(2), as Paddle does: NaN beside what is infinite
		EACH(log2(hypot(A, A_IM)), (atan2(A_IM, A) - log2(hypot(A, A_IM)) * 0) / log(2));
	case OP_PD_LOG10: EACH(log10(hypot(A, A_IM)), atan2(A_IM, A) / log(10));
	case OP_PD_ELEMENTWISE_POW:
	case OP_PD_WHOLE_POW:
		for (int l = 0; l < n; l++) {
			const double size = log(hypot(A, A_IM)), turn = atan2(A_IM, A);
			const bool whole = B == 0 && B_IM == 0, zero = A == 0 && A_IM == 0 && B > 0;
			const double r = whole ? 1 : zero ? 0 : exp(B * size - B_IM * turn);
			const double angle = whole || zero ? 0 : B_IM * size + B * turn;
			out[l].f = r * cos(angle), out[COMPLEX_IM + l].f = r * sin(angle);
		}
		break;
	default: return false;
	}
	return true;
}

// Questions; of order, the real parts come first.
static bool complex_truth(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_EQUAL: TRUTH(A == B && A_IM == B_IM);
	case OP_PD_NOT_EQUAL: TRUTH(A != B || A_IM != B_IM);
	case OP_PD_LESS_THAN: TRUTH(A < B || (A == B && A_IM < B_IM));
	case OP_PD_LESS_EQUAL: TRUTH(A < B || (A == B && A_IM <= B_IM));
	case OP_PD_GREATER_THAN: TRUTH(A > B || (A == B && A_IM > B_IM));
	case OP_PD_GREATER_EQUAL: TRUTH(A > B || (A == B && A_IM >= B_IM));
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

static bool complex_arithmetic(enum OpCode code, int n, Lane *out, const Lane *const *x)
{
	switch (code) {
	case OP_PD_COMPLEX: EACH(A, B);
	case OP_PD_ADD: EACH(A + B, A_IM + B_IM);
	case OP_PD_SUBTRACT: EACH(A - B, A_IM - B_IM);
	case OP_PD_MULTIPLY: EACH(A * B - A_IM * B_IM, A * B_IM + A_IM * B);
	case OP_PD_DIVIDE:
		EACH((A * B + A_IM * B_IM) / (B * B + B_IM * B_IM),
		     (A_IM * B - A * B_IM) / (B * B + B_IM * B_IM));
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
	if (code == OP_PD_CAST)
		to_complex(from, n, out, x);
	else if (!complex_arithmetic(code, n, out, x) && !complex_function(code, n, out, x) &&
	         !complex_library(code, n, out, x) && !complex_logarithm(code, n, out, x))
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
