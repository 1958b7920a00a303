/* What `pdcc bench --profile` links beside the harness: the generated code calls pd_mark after each
 * of its steps. When the program ends, the file that PDCC_PROFILE names gets what the machine can
 * do, measured here, and a line for each step. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void pd_mark(int step);

enum {
	WARM_UP = 3, /* runs that do not count */
	CHAINS = 12, /* products that do not wait for each other */
	ROUNDS = 20000,
	PROBES = 12,
	SMALL = 16 << 10, /* bytes: fit in the first, second, perhaps third level of caches, in none */
	MIDDLE = 512 << 10,
	LARGE = 8 << 20,
	MEMORY = 256 << 20
};

#if defined(__GNUC__) && defined(__AVX512F__)
typedef float Lanes __attribute__((vector_size(64), aligned(64)));
#elif defined(__GNUC__) && defined(__AVX__)
typedef float Lanes __attribute__((vector_size(32), aligned(64)));
#elif defined(__GNUC__)
typedef float Lanes __attribute__((vector_size(16), aligned(64)));
#else
typedef float Lanes;
#endif

typedef struct Step {
	double now, least; /* ns: of this run, of the best run */
	long calls, most;
} Step;

static Step *steps;
static int nstep, nrun;
static double last;
static volatile float sink;

static double clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_count(void)
{
	for (int i = 0; i < nstep; i++) {
		Step *s = &steps[i];
		if (nrun > WARM_UP && s->calls && (s->now < s->least || !s->most))
			s->least = s->now;
		if (nrun > WARM_UP && s->calls > s->most)
			s->most = s->calls;
		s->now = 0;
		s->calls = 0;
	}
}

static void lanes_sink(Lanes v)
{
	float first;
	memcpy(&first, &v, sizeof first);
	sink = first;
}

/* Products with sums, in 1e9 operations a second. */
static double flops_probe(void)
{
	Lanes sum[CHAINS], factor;
	float one = 1;
	double best = 0;
	for (size_t i = 0; i < sizeof factor / sizeof one; i++)
		memcpy((char *)&factor + i * sizeof one, &one, sizeof one);
	for (int i = 0; i < CHAINS; i++)
		sum[i] = factor;
	for (int p = 0; p < PROBES; p++) {
		const double begin = clock_ns();
		for (int r = 0; r < ROUNDS; r++)
			for (int i = 0; i < CHAINS; i++)
				sum[i] = sum[i] * factor + factor;
		const double ns = clock_ns() - begin;
		for (int i = 0; i < CHAINS; i++)
			lanes_sink(sum[i]);
		const double rate = 2.0 * ROUNDS * CHAINS * (sizeof factor / sizeof one) / ns;
		best = rate > best ? rate : best;
	}
	return best;
}

/* Bytes that are read again and again, in 1e9 a second. */
static double bytes_probe(const Lanes *data, size_t size, size_t least)
{
	double best = 0;
	const size_t n = size / sizeof *data / 8;
	for (int p = 0; p < PROBES; p++) {
		Lanes sum[8];
		size_t done = 0;
		memcpy(sum, data, sizeof sum);
		const double begin = clock_ns();
		do {
			for (size_t i = 0; i < n; i++)
				for (int k = 0; k < 8; k++)
					sum[k] += data[8 * i + (size_t)k];
			done += size;
		} while (done < least);
		const double rate = (double)done / (clock_ns() - begin);
		for (int k = 0; k < 8; k++)
			lanes_sink(sum[k]);
		best = rate > best ? rate : best;
	}
	return best;
}

static void machine_print(FILE *f)
{
	void *data = NULL;
	fprintf(f, "flops %.3f\n", flops_probe());
	if (posix_memalign(&data, 64, MEMORY))
		return;
	memset(data, 0, MEMORY);
	fprintf(f, "bytes %d %.3f\n", SMALL, bytes_probe(data, SMALL, 16 << 20));
	fprintf(f, "bytes %d %.3f\n", MIDDLE, bytes_probe(data, MIDDLE, 32 << 20));
	fprintf(f, "bytes %d %.3f\n", LARGE, bytes_probe(data, LARGE, LARGE));
	fprintf(f, "bytes %d %.3f\n", MEMORY, bytes_probe(data, MEMORY, MEMORY));
	free(data);
}

static void profile_write(void)
{
	const char *path = getenv("PDCC_PROFILE");
	FILE *f = path ? fopen(path, "w") : NULL;
	if (!f)
		return;
	run_count();
	machine_print(f);
	for (int i = 0; i < nstep; i++)
		if (steps[i].most)
			fprintf(f, "step %d %ld %.1f\n", i, steps[i].most, steps[i].least);
	fclose(f);
}

static void step_room(int step)
{
	if (step < nstep)
		return;
	Step *more = realloc(steps, ((size_t)step + 1) * sizeof *more);
	if (!more) {
		fprintf(stderr, "error: out of memory\n");
		exit(1);
	}
	memset(more + nstep, 0, ((size_t)step + 1 - (size_t)nstep) * sizeof *more);
	steps = more;
	nstep = step + 1;
}

/* Step `step` has ended; -1: a run begins. */
void pd_mark(int step)
{
	const double now = clock_ns();
	if (step < 0) {
		if (!nrun++)
			atexit(profile_write);
		run_count();
	} else {
		step_room(step);
		steps[step].now += now - last;
		steps[step].calls++;
	}
	last = clock_ns();
}
