/* What the programs share that train: random numbers, the picture of the loss (training.h). */
#include "training.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t random_state = 1;

double random_unit(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(random_state >> 11) * 0x1p-53;
}

void fill_evenly(pd_parameter p, double bound)
{
	float *to = p.data;
	for (size_t i = 0; i < p.info->bytes / sizeof *to; i++)
		to[i] = (float)((random_unit() * 2 - 1) * bound);
}

void plot(const char *path, const float *loss, int n, double least, double most)
{
	enum { WIDTH = 640, HEIGHT = 320, LEFT = 50, BOTTOM = 30, TOP = 15 };
	const double low = log10(least), high = log10(most);
	FILE *f = fopen(path, "w");
	if (!f) {
		perror(path);
		exit(1);
	}
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
	           "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", WIDTH, HEIGHT);
	for (double mark = least; mark < most; mark *= 10) {
		const double y = TOP + (high - log10(mark)) / (high - low) * (HEIGHT - BOTTOM - TOP);
		fprintf(f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT, y,
		        WIDTH - 10, LEFT - 6, y + 4, mark);
	}
	fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">loss of steps 1 to %d</text>\n<polyline fill=\"none\" "
	           "stroke=\"#06c\" points=\"", (LEFT + WIDTH) / 2, HEIGHT - 8, n);
	for (int i = 0; i < n; i++) {
		double y = log10(loss[i] > 1e-6f ? (double)loss[i] : 1e-6);
		y = y < low ? low : y > high ? high : y;
		fprintf(f, "%.1f,%.1f ", LEFT + (WIDTH - 10.0 - LEFT) * i / (n > 1 ? n - 1 : 1),
		        TOP + (high - y) / (high - low) * (HEIGHT - BOTTOM - TOP));
	}
	fprintf(f, "\"/>\n</svg>\n");
	if (fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}
