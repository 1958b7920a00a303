// Checks the functions of codegen/text/kernels/math.c.in against libm in double. Usage: math STEP; every STEPth float,
// 1 is all of them. The loops are as generated code has them, so that what is checked is the vector code.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math.c.in"

enum { BLOCK = 4096 };

#define LOOP(f) \
	static void f##_loop(float *restrict y, const float *restrict x) \
	{ \
		for (int i = 0; i < BLOCK; i++) \
			y[i] = f(x[i]); \
	}
// Of the numbers that it is for, the nearest.
static inline float pd_exp_fall_near(float x)
{
	x = x < -64.0f ? -64.0f : x;
	return pd_exp_fall(x > 0.0f ? 0.0f : x);
}

static double exp_beside(double x)
{
	return x < -86 ? 0 : exp(x);
}

// The sum is between 2 and 4, where a unit is twice that of 1.
static inline float pd_tanh_beside_sum(float x)
{
	return 3.0f + pd_tanh_beside(x);
}

static double tanh_sum(double x)
{
	return 3 + tanh(x);
}

static double exp_fall(double x)
{
	return exp(x < -64 ? -64 : x > 0 ? 0 : x);
}

LOOP(pd_expf)
LOOP(pd_exp_fall_near)
LOOP(pd_exp_beside)
LOOP(pd_tanh_beside_sum)
LOOP(pd_tanhf)
LOOP(pd_erff)
LOOP(pd_logf)
LOOP(pd_log1pf)
LOOP(pd_sinf)
LOOP(pd_cosf)

typedef struct Function {
	const char *name;
	void (*loop)(float *y, const float *x);
	double (*exact)(double x);
	double bound; // in ulp
} Function;

// The distance in units of the last place of the result as a float; 0 when both are the same special value.
static double distance(float got, double want)
{
	const float nearest = (float)want;
	if (isnan(want))
		return isnan(got) ? 0 : INFINITY;
	if (isinf(nearest) || want == 0)
		return got == nearest && !signbit(got) == !signbit(nearest) ? 0 : INFINITY;
	int exponent;
	frexp(want, &exponent);
	return fabs(got - want) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static int check(const Function *f, uint64_t step)
{
	static float x[BLOCK], y[BLOCK];
	double worst = 0;
	float at = 0;
	for (uint64_t first = 0; first < UINT64_C(1) << 32; first += BLOCK * step) {
		for (int i = 0; i < BLOCK; i++) {
			uint32_t bits = (uint32_t)(first + (uint64_t)i * step);
			memcpy(&x[i], &bits, sizeof bits);
		}
		f->loop(y, x);
		for (int i = 0; i < BLOCK; i++) {
			double d = distance(y[i], f->exact(x[i]));
			if (d > worst) {
				worst = d;
				at = x[i];
			}
		}
	}
	printf("%s: %.2f ulp at %a, %s\n", f->name, worst, at, worst <= f->bound ? "good" : "too much");
	return worst > f->bound;
}

// pow has two arguments: all pairs of special numbers and others, and many others.
static float pow_argument(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	const uint32_t bits = (uint32_t)(*state >> 32);
	float x;
	memcpy(&x, &bits, sizeof x);
	return bits % 4 ? (float)((double)(int32_t)bits * 0x1p-27) : x;
}

static void pow_loop(float *restrict z, const float *restrict x, const float *restrict y)
{
	for (int i = 0; i < BLOCK; i++)
		z[i] = pd_powf(x[i], y[i]);
}

static int check_pow(uint64_t blocks)
{
	static const float special[] = {0, -0.0f, 1, -1, 2, -2, 0.5f, -0.5f, 3, -3, 2.5f, -2.5f, INFINITY, -INFINITY, NAN,
	                                1e-40f, -1e-40f, 1e30f, -1e30f, 3.4e38f, 16777215, 16777216, 0x1.000002p+0f, 0x1.fffffep-1f};
	enum { SPECIAL = sizeof special / sizeof *special };
	static float x[BLOCK], y[BLOCK], z[BLOCK];
	uint64_t state = 1;
	double worst = 0;
	int at = 0;
	for (uint64_t n = 0; n < blocks; n++) {
		for (int i = 0; i < BLOCK; i++) {
			const bool first = n == 0 && i < SPECIAL * SPECIAL;
			x[i] = first ? special[i % SPECIAL] : pow_argument(&state);
			y[i] = first ? special[i / SPECIAL] : pow_argument(&state);
		}
		pow_loop(z, x, y);
		for (int i = 0; i < BLOCK; i++) {
			const double d = distance(z[i], pow(x[i], y[i]));
			if (d > worst) {
				worst = d;
				printf("%.2f ulp: pow(%a, %a) = %a\n", d, x[i], y[i], z[at = i]);
			}
		}
	}
	printf("pd_powf: %.2f ulp, %s\n", worst, worst <= 0.6 ? "good" : "too much");
	return worst > 0.6;
}

int main(int argc, char **argv)
{
	static const Function functions[] = {
		{"pd_expf", pd_expf_loop, exp, 1.1}, {"pd_tanhf", pd_tanhf_loop, tanh, 1.5},
		{"pd_erff", pd_erff_loop, erf, 5.5}, {"pd_logf", pd_logf_loop, log, 1.0},
		{"pd_log1pf", pd_log1pf_loop, log1p, 2.0}, {"pd_sinf", pd_sinf_loop, sin, 2.0},
		{"pd_cosf", pd_cosf_loop, cos, 2.0}, {"pd_exp_fall", pd_exp_fall_near_loop, exp_fall, 1.1},
		{"pd_exp_beside", pd_exp_beside_loop, exp_beside, 1.5},
		{"pd_tanh_beside", pd_tanh_beside_sum_loop, tanh_sum, 1.5},
	};
	int bad = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		bad |= check(&functions[i], argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
	return bad | check_pow(200);
}
