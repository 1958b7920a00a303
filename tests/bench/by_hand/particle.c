// Where a particle that two charges repel crosses the axis, squared, as a function of the place of
// one of them (the inner problem of Siskind and Pearlmutter's particle). The force is itself a
// gradient.
#include <math.h>

#include "by_hand.h"

enum { MOST = 1000 };
static const double dt = 0.1;

static struct {
	double w;
} in, grad;

typedef struct State {
	double x[2], v[2];
} State;

static State path[MOST + 1];

// d is from a charge to x; the gradient of 1 / |d| is -d / |d|^3.
static void offset(const double *x, int charge, double *d)
{
	d[0] = x[0] - 10;
	d[1] = x[1] - (charge ? 0 : 10 - in.w);
}

static State behind(const State *s)
{
	State next = *s;
	for (int j = 0; j < 2; j++)
		next.x[j] += dt * s->v[j];
	for (int c = 0; c < 2; c++) {
		double d[2];
		offset(s->x, c, d);
		const double rr = d[0] * d[0] + d[1] * d[1], cube = 1 / (rr * sqrt(rr));
		for (int j = 0; j < 2; j++)
			next.v[j] += dt * d[j] * cube;
	}
	return next;
}

static double crossing(const State *s)
{
	return s->x[0] - s->v[0] * s->x[1] / s->v[1];
}

static double objective(void)
{
	State s = {{0, 8}, {0.75, 0}};
	for (int i = 0; i < MOST && s.x[1] > 0; i++)
		s = behind(&s);
	return crossing(&s) * crossing(&s);
}

// The way back through one step: of d / |d|^3 it is (I - 3 d d^T / |d|^2) / |d|^3, which is
// symmetric.
static void step_back(const State *s, State *ds)
{
	double dx[2] = {ds->x[0], ds->x[1]};
	for (int c = 0; c < 2; c++) {
		double d[2];
		offset(s->x, c, d);
		const double rr = d[0] * d[0] + d[1] * d[1], cube = 1 / (rr * sqrt(rr));
		const double along = 3 * (d[0] * ds->v[0] + d[1] * ds->v[1]) / rr;
		for (int j = 0; j < 2; j++) {
			const double back = dt * cube * (ds->v[j] - along * d[j]);
			dx[j] += back;
			if (!c && j)
				grad.w += back;
		}
	}
	for (int j = 0; j < 2; j++) {
		ds->v[j] += dt * ds->x[j];
		ds->x[j] = dx[j];
	}
}

static void gradient(void)
{
	path[0] = (State){{0, 8}, {0.75, 0}};
	int n = 0;
	for (; n < MOST && path[n].x[1] > 0; n++)
		path[n + 1] = behind(&path[n]);
	const State *s = &path[n];
	const double d = 2 * crossing(s), slope = s->v[0] / s->v[1];
	State ds = {{d, -d * slope}, {-d * s->x[1] / s->v[1], d * slope * s->x[1] / s->v[1]}};
	grad.w = 0;
	while (n-- > 0)
		step_back(&path[n], &ds);
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
