// The largest value over y of f(x, y) = x.x - y.y, found by a descent that looks for its own step
// size, as a function of x (the inner problem of Siskind and Pearlmutter's saddle).
#include <math.h>

#include "by_hand.h"

enum { MOST = 100000 };

static struct {
	double x[2];
} in, grad;

static double square(const double *a)
{
	return a[0] * a[0] + a[1] * a[1];
}

// Goes to y, the place of the largest value.
static void climb(double *y)
{
	const double xx = square(in.x);
	double eta = 1e-5, g[2];
	int good = 0;
	y[0] = y[1] = 1;
	double value = square(y) - xx;
	for (int n = 0; n < MOST; n++) {
		g[0] = 2 * y[0];
		g[1] = 2 * y[1];
		if (!(sqrt(square(g)) > 1e-5))
			return;
		if (good >= 10) {
			eta *= 2;
			good = 0;
			continue;
		}
		const double next[2] = {y[0] - eta * g[0], y[1] - eta * g[1]},
					 moved[2] = {y[0] - next[0], y[1] - next[1]};
		if (!(sqrt(square(moved)) > 1e-5))
			return;
		const double got = square(next) - xx;
		good = got < value ? good + 1 : 0;
		if (got < value) {
			value = got;
			y[0] = next[0];
			y[1] = next[1];
		} else {
			eta /= 2;
		}
	}
}

static double objective(void)
{
	double y[2];
	climb(y);
	return square(in.x) - square(y);
}

double found; // the objective, which others could read: it is to be computed with the gradient

// No step reads x but to compare, so nothing goes back through them.
static void gradient(void)
{
	found = objective();
	for (int j = 0; j < 2; j++)
		grad.x[j] = 2 * in.x[j];
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
