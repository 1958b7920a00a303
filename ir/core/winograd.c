// The matrices of Winograd's convolutions, from the points at which polynomials are evaluated.
// Read by the interpreter and by what prints kernel.winograd.
#include "ir/core/winograd.h"

#include <string.h>

// For six inputs, what is usual is 1 and 2; these have a quarter of the error at the same cost, and
// all coefficients that come of them are exact in f32.
static const double points_of_4[] = {1.0}, points_of_6[] = {0.75, 1.5};

// The coefficients of the product of all (x - points[j]) but that of j = `without`.
static void product_without(int n, const double *points, int without, double *coefficients)
{
	int degree = 0;
	coefficients[0] = 1;
	for (int j = 0; j < n; j++) {
		if (j == without)
			continue;
		coefficients[++degree] = 0;
		for (int k = degree; k > 0; k--)
			coefficients[k] = coefficients[k - 1] - points[j] * coefficients[k];
		coefficients[0] *= -points[j];
	}
}

static void row_of_point(Winograd *w, int n, const double *points, int i)
{
	double scale = 1, power = 1;
	product_without(n, points, i, w->in[i]);
	for (int j = 0; j < n; j++)
		scale *= j == i ? 1 : points[i] - points[j];
	for (int k = 0; k < w->taps; k++, power *= points[i])
		w->filter[i][k] = power / scale;
	power = 1;
	for (int k = 0; k < w->tile; k++, power *= points[i])
		w->out[k][i] = power;
}

// False: there is no F(tile, taps).
static bool transform_init(Winograd *w, int64_t tile, int64_t taps)
{
	double points[WINOGRAD_INPUTS] = {0};
	memset(w, 0, sizeof *w);
	if (tile < 1 || tile > WINOGRAD_TILE || taps < 1 || taps > WINOGRAD_TAPS)
		return false;
	const int inputs = (int)(tile + taps - 1);
	w->tile = (int)tile;
	w->taps = (int)taps;
	w->inputs = inputs;
	if (inputs == 1) {
		w->filter[0][0] = w->in[0][0] = w->out[0][0] = 1;
		return true;
	}
	if (tile < 2 || taps < 3 || (inputs != 4 && inputs != 6))
		return false;
	w->npoint = inputs / 2 - 1;
	w->points = inputs == 4 ? points_of_4 : points_of_6;
	const int n = inputs - 1; // finite ones
	for (int i = 0; i < w->npoint; i++) {
		points[1 + 2 * i] = w->points[i];
		points[2 + 2 * i] = -w->points[i];
	}
	for (int i = 0; i < n; i++)
		row_of_point(w, n, points, i);
	product_without(n, points, n, w->in[n]);
	w->filter[n][taps - 1] = w->out[tile - 1][n] = 1;
	return true;
}

bool winograd_transforms(const Op *op, Winograd t[2])
{
	int64_t tile[2], chunk[2];
	return op_ints(op, "tile", tile, 2) == 2 && op_ints(op, "chunk", chunk, 2) == 2 &&
	       transform_init(&t[0], tile[0], chunk[0]) && transform_init(&t[1], tile[1], chunk[1]);
}
