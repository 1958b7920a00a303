// Checks instances of the kernel templates (INSTANCES, written by kernels.c) against plain loops in
// double, or times them against the machine's peak of fused multiply-adds. Usage: kernels_run
// check|time. Run by kernels.sh.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime_stub/pdrt.h"

typedef struct Case {
	char kind;
	int64_t d[16];
	int epilogue;
	void (*run)(float *out, const float *a, const float *b, const float *t);
} Case;

#include INSTANCES

typedef struct Data {
	float *a, *b, *t, *out; // as the kernel sees them: exactly as long as they must be
	double *pa, *pb;        // plain: before packing
	int64_t nout;
} Data;

static uint32_t seed = 1;

static float number(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (float)(int)(seed >> 24) / 64.0f - 2.0f;
}

static float *floats(int64_t n)
{
	float *p = aligned_alloc(64, (size_t)((n * 4 + 63) / 64 * 64 + (n == 0) * 64));
	for (int64_t i = 0; i < n; i++)
		p[i] = number();
	return p;
}

static double *doubles(int64_t n)
{
	double *p = malloc((size_t)(n + 1) * sizeof *p);
	for (int64_t i = 0; i < n; i++)
		p[i] = number();
	return p;
}

static int64_t up(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

static double finish(const Case *x, double acc, double bias)
{
	if (!x->epilogue)
		return acc;
	return acc + bias > 0 ? acc + bias : 0;
}

static bool differs(const Case *x, float got, double want, double scale)
{
	if (fabs(got - want) <= 1e-5 * scale + 1e-5 * fabs(want))
		return false;
	printf("'%c'", x->kind);
	for (int i = 0; i < 16; i++)
		printf(" %d", (int)x->d[i]);
	printf(": got %g, want %g\n", got, want);
	return true;
}

// ---- matrix products ----------------------------------------------------------------------------

static void gemm_data(const Case *x, Data *d)
{
	const int64_t m = x->d[0], n = x->d[1], k = x->d[2], batch = x->d[3], nb = x->d[4] ? batch : 1;
	d->pa = NULL;
	d->a = floats(batch * m * k);
	d->pb = doubles(nb * k * n);
	d->b = floats(nb * up(n, PANEL) * k);
	d->t = floats(n);
	d->nout = batch * m * n;
	for (int64_t b = 0; b < nb; b++)
		for (int64_t j = 0; j < up(n, PANEL); j++)
			for (int64_t i = 0; i < k; i++)
				d->b[b * up(n, PANEL) * k + (j / PANEL * k + i) * PANEL + j % PANEL] =
					j < n ? (float)d->pb[(b * k + i) * n + j] : 0;
}

static bool gemm_check(const Case *x, const Data *d)
{
	const int64_t m = x->d[0], n = x->d[1], k = x->d[2], batch = x->d[3];
	for (int64_t b = 0; b < batch; b++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				double sum = 0;
				for (int64_t p = 0; p < k; p++)
					sum += d->a[(b * m + i) * k + p] * d->pb[((x->d[4] ? b : 0) * k + p) * n + j];
				if (differs(x, d->out[(b * m + i) * n + j], finish(x, sum, d->t[j]),
				            sqrt((double)k)))
					return false;
			}
	return true;
}

// ---- convolutions -------------------------------------------------------------------------------

static int64_t out_size(const Case *x, int axis)
{
	const int64_t *d = x->d + axis;
	return (d[2] + d[9] + d[11] - d[13] * (d[5] - 1) - 1) / d[7] + 1;
}

static void conv_data(const Case *x, Data *d)
{
	const int64_t n = x->d[0], c = x->d[1], h = x->d[2], w = x->d[3], oc = x->d[4],
				  taps = x->d[5] * x->d[6];
	const int64_t q = x->d[15] * LANES, cp = up(c, LANES), per = x->kind == 'd' ? 1 : c;
	d->pa = doubles(n * c * h * w);
	d->pb = doubles(oc * per * taps);
	d->a = floats(x->kind == 'p' ? n * c * h * w : n * cp * h * w);
	d->b = floats(x->kind == 'd' ? cp * taps : up(oc, q) * c * taps);
	d->t = floats(up(oc, LANES));
	d->nout = n * up(oc, LANES) * out_size(x, 0) * out_size(x, 1);
	for (int64_t i = 0; i < n; i++)
		for (int64_t ch = 0; ch < c; ch++)
			for (int64_t p = 0; p < h * w; p++) {
				int64_t at = x->kind == 'p'
				                 ? (i * c + ch) * h * w + p
				                 : (i * cp + ch / LANES * LANES) * h * w + p * LANES + ch % LANES;
				d->a[at] = (float)d->pa[(i * c + ch) * h * w + p];
			}
	for (int64_t o = 0; o < oc; o++)
		for (int64_t i = 0; i < per; i++)
			for (int64_t p = 0; p < taps; p++) {
				int64_t at = x->kind == 'd' ? (o / LANES * taps + p) * LANES + o % LANES
				                            : ((o / q * c + i) * taps + p) * q + o % q;
				d->b[at] = (float)d->pb[(o * per + i) * taps + p];
			}
}

static double conv_one(const Case *x, const Data *d, int64_t n, int64_t o, int64_t y, int64_t xx)
{
	const int64_t c = x->d[1], h = x->d[2], w = x->d[3], kh = x->d[5], kw = x->d[6],
				  deep = x->kind == 'd', per = deep ? 1 : c;
	double sum = 0;
	for (int64_t i = 0; i < per; i++)
		for (int64_t ky = 0; ky < kh; ky++)
			for (int64_t kx = 0; kx < kw; kx++) {
				int64_t iy = y * x->d[7] - x->d[9] + ky * x->d[13],
						ix = xx * x->d[8] - x->d[10] + kx * x->d[14];
				if (iy >= 0 && iy < h && ix >= 0 && ix < w)
					sum += d->pa[((n * c + (deep ? o : i)) * h + iy) * w + ix] *
					       d->pb[((o * per + i) * kh + ky) * kw + kx];
			}
	return sum;
}

static bool conv_check(const Case *x, const Data *d)
{
	const int64_t oc = x->d[4], oh = out_size(x, 0), ow = out_size(x, 1);
	for (int64_t n = 0; n < x->d[0]; n++)
		for (int64_t o = 0; o < oc; o++)
			for (int64_t y = 0; y < oh; y++)
				for (int64_t xx = 0; xx < ow; xx++) {
					float got =
						d->out[(((n * up(oc, LANES) / LANES + o / LANES) * oh + y) * ow + xx) *
					               LANES +
					           o % LANES];
					double want = finish(x, conv_one(x, d, n, o, y, xx), d->t[o]);
					if (differs(x, got, want, sqrt((double)(x->d[1] * x->d[5] * x->d[6]))))
						return false;
				}
	return true;
}

// ---- rows ---------------------------------------------------------------------------------------

static void rows_data(const Case *x, Data *d)
{
	d->pa = d->pb = NULL;
	float *input = floats(x->d[0] * x->d[1]), *scale = floats(x->d[1]);
	d->a = x->kind == 's' ? input : scale;
	d->b = x->kind == 's' ? scale : input;
	d->t = NULL;
	d->nout = x->d[0] * x->d[1];
}

static bool rows_check(const Case *x, const Data *d)
{
	const int64_t n = x->d[1];
	for (int64_t r = 0; r < x->d[0]; r++) {
		const float *in = (x->kind == 's' ? d->a : d->b) + r * n;
		double top = -INFINITY, sum = 0, squares = 0, total = 0;
		for (int64_t j = 0; j < n; j++)
			top = fmax(top, in[j]), total += in[j];
		for (int64_t j = 0; j < n; j++)
			sum += exp(in[j] - top), squares += (in[j] - total / n) * (in[j] - total / n);
		for (int64_t j = 0; j < n; j++) {
			double want = x->kind == 's' ? exp(in[j] - top) / sum
			                             : (in[j] - total / n) / sqrt(squares / n + 1e-5) * d->a[j];
			if (differs(x, d->out[r * n + j], want, x->kind == 's' ? 0.1 : 1))
				return false;
		}
	}
	return true;
}

// ---- all ----------------------------------------------------------------------------------------

static void case_data(const Case *x, Data *d)
{
	if (x->kind == 'g')
		gemm_data(x, d);
	else if (x->kind == 's' || x->kind == 'n')
		rows_data(x, d);
	else
		conv_data(x, d);
	d->out = floats(d->nout);
}

static void data_free(Data *d)
{
	free(d->a), free(d->b), free(d->t), free(d->out), free(d->pa), free(d->pb);
}

static int check(void)
{
	int bad = 0, count = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++, count++) {
		const Case *x = &cases[i];
		Data d;
		case_data(x, &d);
		// Channels that fill up the last block of an image hold anything: they must not count.
		x->run(d.out, d.a, d.b, d.t);
		bool rows = x->kind == 's' || x->kind == 'n';
		bool ok = x->kind == 'g' ? gemm_check(x, &d) : rows ? rows_check(x, &d) : conv_check(x, &d);
		bad += !ok;
		data_free(&d);
	}
	printf("%d of %d kernels wrong\n", bad, count);
	return bad != 0;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double work(const Case *x) // multiply-adds
{
	const int64_t *d = x->d;
	if (x->kind == 'g')
		return (double)d[0] * d[1] * d[2] * d[3];
	if (x->kind == 's' || x->kind == 'n')
		return (double)d[0] * d[1];
	return (double)d[0] * out_size(x, 0) * out_size(x, 1) * d[4] * (x->kind == 'd' ? 1 : d[1]) *
	       d[5] * d[6];
}

// The time of one run: the least of many.
static double time_case(const Case *x, Data *d)
{
	double best = 1e9, spent = 0;
	int64_t inner = 1 + (int64_t)(2e6 / work(x));
	while (spent < 0.15) {
		double start = now();
		for (int64_t i = 0; i < inner; i++)
			x->run(d->out, d->a, d->b, d->t);
		double took = now() - start;
		spent += took;
		best = took / inner < best ? took / inner : best;
	}
	return best;
}

#define PEAK_REGISTER(v) "+v"(v)

static double peak(void)
{
#if defined(__FMA__)
	typedef float v __attribute__((vector_size(4 * LANES)));
	double best = 0;
	for (int r = 0; r < 20; r++) {
		v s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0;
		volatile float one = (float)r;
		const v x = one - s0, y = x;
		double start = now();
		for (int i = 0; i < 200000; i++) {
			s0 += x * y, s1 += x * y, s2 += x * y, s3 += x * y, s4 += x * y;
			s5 += x * y, s6 += x * y, s7 += x * y, s8 += x * y, s9 += x * y;
			__asm__ volatile(""
			                 : PEAK_REGISTER(s0), PEAK_REGISTER(s1), PEAK_REGISTER(s2),
			                   PEAK_REGISTER(s3), PEAK_REGISTER(s4));
			__asm__ volatile(""
			                 : PEAK_REGISTER(s5), PEAK_REGISTER(s6), PEAK_REGISTER(s7),
			                   PEAK_REGISTER(s8), PEAK_REGISTER(s9));
		}
		double rate = 2.0 * 200000 * 10 * LANES / (now() - start) * 1e-9;
		best = rate > best ? rate : best;
	}
	return best;
#else
	return 1; // not known: rates are then in GFLOP/s only
#endif
}

static int time_all(void)
{
	double top = peak(), all = 0, convs = 0;
	printf("peak %.1f GFLOP/s\n", top);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const Case *x = &cases[i];
		Data d;
		case_data(x, &d);
		double t = time_case(x, &d), rate = 2 * work(x) / t * 1e-9;
		printf("%c", x->kind);
		for (int j = 0; j < (x->kind == 'g' ? 3 : x->kind == 's' || x->kind == 'n' ? 2 : 9); j++)
			printf(" %d", (int)x->d[j]);
		printf(": %.1f us, %.1f GFLOP/s, %.0f %%\n", t * 1e6, rate, 100 * rate / top);
		if (x->kind == 'c')
			all += work(x), convs += t;
		data_free(&d);
	}
	printf("convolutions together: %.1f GFLOP/s, %.0f %%\n", 2e-9 * all / convs,
	       200e-9 * all / convs / top);
	return 0;
}

int main(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], "time") ? time_all() : check();
}
