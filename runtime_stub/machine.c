/* What the machine can do: `pdcc bench --profile` compiles this as it compiles the model, and runs
 * it after the model. Prints products and sums, and bytes read from each level of memory. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	CHAINS = 12, /* products that do not wait for each other */
	ROUNDS = 20000,
	PROBES = 12,
	SMALL = 16 << 10, /* bytes: fit in the first, second, perhaps third level of caches, in none */
	MIDDLE = 512 << 10,
	LARGE = 8 << 20,
	MEMORY = 256 << 20
};

#if defined(__GNUC__) && defined(__AVX512F__)
typedef float Lanes __attribute__((vector_size(64)));
#elif defined(__GNUC__) && defined(__AVX__)
typedef float Lanes __attribute__((vector_size(32)));
#elif defined(__GNUC__)
typedef float Lanes __attribute__((vector_size(16)));
#else
typedef float Lanes;
#endif

static volatile float sink;

static double clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
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

int main(void)
{
	void *data = NULL;
	printf("flops %.3f\n", flops_probe());
	if (posix_memalign(&data, 64, MEMORY))
		return 0;
	memset(data, 0, MEMORY);
	printf("bytes %d %.3f\n", SMALL, bytes_probe(data, SMALL, 16 << 20));
	printf("bytes %d %.3f\n", MIDDLE, bytes_probe(data, MIDDLE, 32 << 20));
	printf("bytes %d %.3f\n", LARGE, bytes_probe(data, LARGE, LARGE));
	printf("bytes %d %.3f\n", MEMORY, bytes_probe(data, MEMORY, MEMORY));
	free(data);
	return 0;
}
