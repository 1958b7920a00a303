// Checks the functions of codegen/text/kernels/complex.c.in against those of <complex.h>, on all pairs of parts that are special
// or ordinary: values within 1e-12 (1e-6 of floats), infinities, NaN and the signs of zeros exactly. Prints a line for each.
#include "pdrt.h"
#include "pdrt_threads.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "prelude.c.in"

#include "complex.c.in"

#define PARTS (int)(sizeof parts / sizeof *parts)

static const double parts[] = {0.0,   -0.0, 1.0,   -1.0,  0.5,   -2.0,   3.0,   INFINITY, -INFINITY,
                               NAN,   1e30, -1e30, 1e-30, 300.0, -712.0, 720.0, 20.0};

static double _Complex number(double re, double im)
{
	const double pair[2] = {re, im};
	double _Complex z;
	memcpy(&z, pair, sizeof z);
	return z;
}

static bool part_good(double is, double want, double error)
{
	if (isnan(want) || isnan(is))
		return isnan(want) && isnan(is);
	if (is == want)
		return want != 0.0 || signbit(is) == signbit(want);
	return fabs(is - want) <= error;
}

static bool good(double re, double im, double _Complex want, double precision)
{
	const double a = fabs(creal(want)), b = fabs(cimag(want));
	const double size = fmax(isfinite(a) ? a : 0.0, isfinite(b) ? b : 0.0);
	return part_good(re, creal(want), precision * size) && part_good(im, cimag(want), precision * size);
}

static int wrong(const char *name, double _Complex x, double re, double im, double _Complex want)
{
	printf("%s(%g, %g): (%g, %g), not (%g, %g)\n", name, creal(x), cimag(x), re, im, creal(want),
	       cimag(want));
	return 1;
}

static void compare(const char *name, pd_c128 (*f)(pd_c128), double _Complex (*want)(double _Complex),
                    pd_c64 (*f32)(pd_c64), float _Complex (*want32)(float _Complex))
{
	int bad = 0;
	for (int i = 0; i < PARTS * PARTS; i++) {
		const double re = parts[i / PARTS], im = parts[i % PARTS];
		const double _Complex z = number(re, im), w = want(z);
		const pd_c128 y = f(pd_c128_make(re, im));
		if (!good(y.re, y.im, w, 1e-12))
			bad += wrong(name, z, y.re, y.im, w);
		const float _Complex v = want32((float _Complex)z);
		const pd_c64 u = f32(pd_c64_make((float)re, (float)im));
		if (!good(u.re, u.im, v, 1e-6))
			bad += wrong("float", z, u.re, u.im, v);
	}
	printf("%s: %s\n", name, bad ? "bad" : "good");
}

// Of two operands, in double: floats round at every step.
static void compare2(const char *name, pd_c128 (*f)(pd_c128, pd_c128),
                     double _Complex (*want)(double _Complex, double _Complex))
{
	int bad = 0;
	for (int i = 0; i < PARTS * PARTS * PARTS * PARTS; i++) {
		const double a = parts[i % PARTS], b = parts[i / PARTS % PARTS],
					 c = parts[i / PARTS / PARTS % PARTS], d = parts[i / PARTS / PARTS / PARTS];
		const double _Complex x = number(a, b), w = want(x, number(c, d));
		const pd_c128 y = f(pd_c128_make(a, b), pd_c128_make(c, d));
		const double turns = fabs(c) + fabs(d); // angles that rounding decides
		if (!good(y.re, y.im, w, 1e-12) && !(turns > 900.0 && !isinf(turns)))
			bad += wrong(name, x, y.re, y.im, w);
	}
	printf("%s: %s\n", name, bad ? "bad" : "good");
}

static double _Complex log1p_of(double _Complex x)
{
	return clog(number(1.0 + creal(x), 0.0 + cimag(x)));
}

static float _Complex log1p_of32(float _Complex x)
{
	return clogf((float _Complex)number(1.0f + crealf(x), 0.0f + cimagf(x)));
}

static double _Complex product(double _Complex x, double _Complex y)
{
	return x * y;
}

#define COMPARE(name) compare("c" #name, pd_c128_##name, c##name, pd_c64_##name, c##name##f)

int main(void)
{
	COMPARE(sqrt);
	COMPARE(log);
	COMPARE(sin);
	COMPARE(cos);
	COMPARE(tan);
	COMPARE(sinh);
	COMPARE(cosh);
	COMPARE(tanh);
	COMPARE(asin);
	COMPARE(acos);
	COMPARE(atan);
	COMPARE(asinh);
	COMPARE(acosh);
	COMPARE(atanh);
	compare("log1p", pd_c128_log1p, log1p_of, pd_c64_log1p, log1p_of32);
	compare2("product", pd_c128_mul_kept, product);
	compare2("cpow", pd_c128_pow, cpow);
	return 0;
}
