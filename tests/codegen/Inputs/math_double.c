// Checks the functions of doubles of codegen/text/kernels/math.c.in against libm in long double, on numbers of all exponents, on
// those in which results are neither 0 nor 1, and on special ones. Usage: math_double BLOCKS.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math.c.in"

enum { BLOCK = 4096 };

#define LOOP(f) \
	static void f##_loop(double *restrict y, const double *restrict x) \
	{ \
		for (int i = 0; i < BLOCK; i++) \
			y[i] = f(x[i]); \
	}
LOOP(pd_exp)
LOOP(pd_tanh)
LOOP(pd_log)

typedef struct Function {
	const char *name;
	void (*loop)(double *y, const double *x);
	long double (*exact)(long double x);
	double bound; // in ulp
} Function;

// The distance in units of the last place of the result as a double; 0 when both are the same special value.
static double distance(double got, long double want)
{
	const double nearest = (double)want;
	if (isnan(want))
		return isnan(got) ? 0 : INFINITY;
	if (isinf(nearest) || want == 0)
		return got == nearest && !signbit(got) == !signbit(nearest) ? 0 : INFINITY;
	int exponent;
	frexpl(want, &exponent);
	return (double)(fabsl(got - want) / ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53));
}

static uint64_t next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 32 << 32 | (*state * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

// Any bits, or a number between -range and range, or one near 1.
static double argument(uint64_t *state, int kind)
{
	static const double ranges[] = {800, 25, 1};
	const uint64_t bits = next(state);
	const double unit = (double)(int64_t)bits * 0x1p-63;
	if (kind < 3)
		return unit * ranges[kind];
	return kind == 3 ? 1 + unit * 0.5 : pd_bits_double(bits);
}

static int check(const Function *f, int blocks)
{
	static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1p-1074, 0x1p-1022, 1, -1, 709.782712893384,
	                                 709.7827128933841, -745.1332191019411, -745.1332191019412, -708.4, 0x1.fffffffffffffp+1023};
	static double x[BLOCK], y[BLOCK];
	double worst = 0, at = 0;
	uint64_t state = 1;
	for (int block = 0; block < blocks; block++) {
		for (int i = 0; i < BLOCK; i++)
			x[i] = argument(&state, (block + i) % 5);
		if (block == 0)
			memcpy(x, special, sizeof special);
		f->loop(y, x);
		for (int i = 0; i < BLOCK; i++) {
			const double d = distance(y[i], f->exact(x[i]));
			if (d > worst) {
				worst = d;
				at = x[i];
			}
		}
	}
	printf("%s: %.2f ulp at %a, %s\n", f->name, worst, at, worst <= f->bound ? "good" : "too much");
	return worst > f->bound;
}

int main(int argc, char **argv)
{
	static const Function functions[] = {
		{"pd_exp", pd_exp_loop, expl, 1.2}, {"pd_tanh", pd_tanh_loop, tanhl, 2.7}, {"pd_log", pd_log_loop, logl, 1.0}};
	int bad = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		bad |= check(&functions[i], argc > 1 ? atoi(argv[1]) : 1000);
	return bad;
}
