// Half the squared errors of cameras that see points (the residuals of ADBench's ba).
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "by_hand.h"

enum { CAMERAS = 20, POINTS = 2000, SEEN = 8000 };

typedef struct Camera {
	double r[3], center[3], focal, x0[2], radial[2];
} Camera;

static struct {
	Camera cameras[CAMERAS];
	double points[POINTS][3], w[SEEN];
	int64_t seen[SEEN][2]; // camera, point
	double features[SEEN][2];
} in;
static struct {
	Camera cameras[CAMERAS];
	double points[POINTS][3], w[SEEN];
} grad;

static double dot(const double *a, const double *b)
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *c)
{
	c[0] = a[1] * b[2] - a[2] * b[1];
	c[1] = a[2] * b[0] - a[0] * b[2];
	c[2] = a[0] * b[1] - a[1] * b[0];
}

// A point as a camera sees it: v from its center, turned by angle about axis to t, u = t / t[2],
// stretched by the lens.
typedef struct View {
	double v[3], axis[3], angle, co, si, av[3], along, t[3], u[2], rr, lens, e[2];
} View;

static View view(int i)
{
	const Camera *c = &in.cameras[in.seen[i][0]];
	const double *x = in.points[in.seen[i][1]];
	View s;
	s.angle = sqrt(dot(c->r, c->r));
	s.co = cos(s.angle);
	s.si = sin(s.angle);
	for (int j = 0; j < 3; j++) {
		s.v[j] = x[j] - c->center[j];
		s.axis[j] = c->r[j] / s.angle;
	}
	cross(s.axis, s.v, s.av);
	s.along = dot(s.axis, s.v);
	for (int j = 0; j < 3; j++)
		s.t[j] = s.v[j] * s.co + s.av[j] * s.si + s.axis[j] * (s.along * (1 - s.co));
	s.u[0] = s.t[0] / s.t[2];
	s.u[1] = s.t[1] / s.t[2];
	s.rr = s.u[0] * s.u[0] + s.u[1] * s.u[1];
	s.lens = 1 + c->radial[0] * s.rr + c->radial[1] * s.rr * s.rr;
	for (int j = 0; j < 2; j++)
		s.e[j] = s.u[j] * s.lens * c->focal + c->x0[j] - in.features[i][j];
	return s;
}

static double objective(void)
{
	double sum = 0;
	for (int i = 0; i < SEEN; i++) {
		const View s = view(i);
		const double w = in.w[i], rest = 1 - w * w;
		sum += w * w * (s.e[0] * s.e[0] + s.e[1] * s.e[1]) + rest * rest;
	}
	return sum / 2;
}

// The way back from dt, through the turn, to the camera's rotation and to v.
static void turn_back(const Camera *c, const View *s, const double *dt, double *dr, double *dv)
{
	double cross_back[3], axis_back[3], daxis[3];
	const double at = dot(s->axis, dt), rest = 1 - s->co;
	cross(dt, s->axis, cross_back); // of axis x v for v, and v x dt for axis
	cross(s->v, dt, axis_back);
	const double dangle = -s->si * dot(s->v, dt) + s->co * dot(s->av, dt) + s->si * s->along * at;
	for (int j = 0; j < 3; j++) {
		dv[j] = dt[j] * s->co + cross_back[j] * s->si + s->axis[j] * at * rest;
		daxis[j] = axis_back[j] * s->si + dt[j] * s->along * rest + s->v[j] * at * rest;
	}
	const double along = dot(daxis, c->r) / (s->angle * s->angle * s->angle);
	for (int j = 0; j < 3; j++)
		dr[j] = daxis[j] / s->angle + c->r[j] * (dangle / s->angle - along);
}

static void gradient(void)
{
	memset(&grad, 0, sizeof grad);
	for (int i = 0; i < SEEN; i++) {
		const Camera *c = &in.cameras[in.seen[i][0]];
		Camera *dc = &grad.cameras[in.seen[i][0]];
		double *dx = grad.points[in.seen[i][1]];
		const View s = view(i);
		const double w = in.w[i];
		grad.w[i] = w * (s.e[0] * s.e[0] + s.e[1] * s.e[1]) - 2 * w * (1 - w * w);
		const double de[2] = {w * w * s.e[0], w * w * s.e[1]};
		const double along = de[0] * s.u[0] + de[1] * s.u[1], dlens = along * c->focal;
		dc->focal += along * s.lens;
		dc->x0[0] += de[0];
		dc->x0[1] += de[1];
		dc->radial[0] += dlens * s.rr;
		dc->radial[1] += dlens * s.rr * s.rr;
		const double drr = dlens * (c->radial[0] + 2 * c->radial[1] * s.rr);
		double du[2], dr[3], dv[3];
		for (int j = 0; j < 2; j++)
			du[j] = de[j] * s.lens * c->focal + 2 * drr * s.u[j];
		const double dt[3] = {du[0] / s.t[2], du[1] / s.t[2],
		                      -(du[0] * s.u[0] + du[1] * s.u[1]) / s.t[2]};
		turn_back(c, &s, dt, dr, dv);
		for (int j = 0; j < 3; j++) {
			dc->r[j] += dr[j];
			dc->center[j] -= dv[j];
			dx[j] += dv[j];
		}
	}
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
