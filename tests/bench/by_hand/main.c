// by_hand INPUTS GRADIENT: reads a problem's inputs, writes its gradient, and prints microseconds
// of objective and gradient, the least of many runs in turn.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>

#include "by_hand.h"

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
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

int main(int argc, char **argv)
{
	if (argc != 3 || !whole_file(argv[1], "rb", problem.in, problem.in_bytes))
		return 1;
	double objective = 1e30, gradient = 1e30, read = 0;
	const double end = now_us() + 5e5;
	do {
		const double begin = now_us();
		read += problem.objective();
		const double middle = now_us();
		problem.gradient();
		const double took = now_us() - middle;
		objective = middle - begin < objective ? middle - begin : objective;
		gradient = took < gradient ? took : gradient;
	} while (now_us() < end);
	printf("%.3f %.3f %.17g\n", objective, gradient, read);
	return !whole_file(argv[2], "wb", problem.grad, problem.grad_bytes);
}
