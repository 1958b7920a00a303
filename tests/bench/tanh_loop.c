// h = tanh(h W), STEPS rounds of H numbers, and its gradient, as one writes it by hand: prints
// microseconds of a round, the least of many runs. For bench_loops.py.
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { RUNS = 60 };

static float states[STEPS + 1][H], w[H][H], dw[H][H], dh[H];

static void forward(void)
{
	for (int t = 0; t < STEPS; t++) {
		float sum[H] = {0};
		for (int i = 0; i < H; i++)
			for (int j = 0; j < H; j++)
				sum[j] += states[t][i] * w[i][j];
		for (int j = 0; j < H; j++)
			states[t + 1][j] = tanhf(sum[j]);
	}
}

static void backward(void)
{
	for (int i = 0; i < H; i++)
		for (int j = 0; j < H; j++)
			dw[i][j] = 0;
	for (int j = 0; j < H; j++)
		dh[j] = 1;
	for (int t = STEPS; t-- > 0;) {
		float d[H];
		for (int j = 0; j < H; j++)
			d[j] = dh[j] * (1 - states[t + 1][j] * states[t + 1][j]);
		for (int i = 0; i < H; i++) {
			float sum = 0;
			for (int j = 0; j < H; j++) {
				sum += d[j] * w[i][j];
				dw[i][j] += states[t][i] * d[j];
			}
			dh[i] = sum;
		}
	}
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int main(void)
{
	double least = 0, read = 0;
	for (int i = 0; i < H; i++) {
		states[0][i] = (float)(i % 7) * 0.1f - 0.3f;
		for (int j = 0; j < H; j++)
			w[i][j] = (float)((i * 5 + j * 3) % 11 - 5) / (3 * sqrtf(H));
	}
	for (int run = 0; run < RUNS; run++) {
		const double begin = now_us();
		forward();
		backward();
		const double took = now_us() - begin;
		least = run && least < took ? least : took;
		read += (double)dw[0][0] + (double)dh[0];
	}
	printf("%f\n", least / STEPS);
	return read == read ? 0 : 1;
}
