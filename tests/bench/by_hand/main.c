// by_hand INPUTS GRADIENT: reads a problem's inputs, writes its gradient, and prints microseconds
// of objective and gradient, the least of many turns. A turn of a short one is many runs: the clock
// of some machines stands still for longer than one takes.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>

#include "by_hand.h"

enum { TURN_US = 100 };

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int whole_file(const char *path, const char *mode, void *data, size_t bytes)
{
	FILE *f = fopen(path, mode);
	if (!f)
		return 0;
	const size_t done = *mode == 'r' ? fread(data, 1, bytes, f) : fwrite(data, 1, bytes, f);
	return fclose(f) == 0 && done == bytes;
}

// Microseconds of one run of either, in a turn of `runs`.
static double objectives_us(int runs, double *read)
{
	const double begin = now_us();
	for (int i = 0; i < runs; i++)
		*read += problem.objective();
	return (now_us() - begin) / runs;
}

static double gradients_us(int runs)
{
	const double begin = now_us();
	for (int i = 0; i < runs; i++)
		problem.gradient();
	return (now_us() - begin) / runs;
}

int main(int argc, char **argv)
{
	if (argc != 3 || !whole_file(argv[1], "rb", problem.in, problem.in_bytes))
		return 1;
	double objective = 1e30, gradient = 1e30, read = 0;
	int runs = 1;
	while (runs < 1 << 20 && objectives_us(runs, &read) * runs < TURN_US)
		runs *= 2;
	const double end = now_us() + 5e5;
	do {
		const double o = objectives_us(runs, &read), g = gradients_us(runs);
		objective = o < objective ? o : objective;
		gradient = g < gradient ? g : gradient;
	} while (now_us() < end);
	printf("%.3f %.3f %.17g\n", objective, gradient, read);
	return !whole_file(argv[2], "wb", problem.grad, problem.grad_bytes);
}
