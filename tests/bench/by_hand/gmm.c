// The log-likelihood of a mixture of Gaussians, with a Wishart prior (ADBench's gmm).
#include <math.h>
#include <string.h>

#include "by_hand.h"

enum { N = 1000, K = 10, D = 10, LOWER = D * (D - 1) / 2 };

static struct {
	double alphas[K], means[K][D], icf[K][D + LOWER], x[N][D];
} in;
static struct {
	double alphas[K], means[K][D], icf[K][D + LOWER];
} grad;

static double scale[K][D], sum_q[K];

// The diagonal of the factors is kept as logarithms.
static void prepare(void)
{
	for (int k = 0; k < K; k++) {
		sum_q[k] = 0;
		for (int j = 0; j < D; j++) {
			scale[k][j] = exp(in.icf[k][j]);
			sum_q[k] += in.icf[k][j];
		}
	}
}

// c = x - mean and y = Q c of one point and component; the sum of squares of y. The part of Q below
// its diagonal lies column by column.
static double transformed(const double *x, int k, double *c, double *y)
{
	for (int j = 0; j < D; j++) {
		c[j] = x[j] - in.means[k][j];
		y[j] = c[j] * scale[k][j];
	}
	const double *l = in.icf[k] + D;
	for (int j = 0; j < D; j++)
		for (int r = j + 1; r < D; r++)
			y[r] += *l++ * c[j];
	double sum = 0;
	for (int j = 0; j < D; j++)
		sum += y[j] * y[j];
	return sum;
}

// log(sum(exp(v))), and v becomes exp(v) / sum(exp(v)).
static double log_sum_exp(double *v)
{
	double most = v[0], sum = 0;
	for (int k = 1; k < K; k++)
		most = v[k] > most ? v[k] : most;
	for (int k = 0; k < K; k++)
		sum += v[k] = exp(v[k] - most);
	for (int k = 0; k < K; k++)
		v[k] /= sum;
	return most + log(sum);
}

static double prior(void)
{
	double sum = 0;
	for (int k = 0; k < K; k++) {
		for (int j = 0; j < D; j++)
			sum += scale[k][j] * scale[k][j];
		for (int j = D; j < D + LOWER; j++)
			sum += in.icf[k][j] * in.icf[k][j];
	}
	return sum / 2;
}

static double objective(void)
{
	double c[D], y[D], v[K], sum = 0;
	prepare();
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < K; k++)
			v[k] = in.alphas[k] + sum_q[k] - 0.5 * transformed(in.x[i], k, c, y);
		sum += log_sum_exp(v);
	}
	memcpy(v, in.alphas, sizeof v);
	return sum - N * log_sum_exp(v) + prior();
}

// What one point adds to the gradients of component k, whose share in it is p.
static void add_point(int k, double p, const double *c, const double *y)
{
	grad.alphas[k] += p;
	double dc[D];
	for (int j = 0; j < D; j++) {
		dc[j] = y[j] * scale[k][j];
		grad.icf[k][j] += p * (1 - dc[j] * c[j]);
	}
	const double *l = in.icf[k] + D;
	double *dl = grad.icf[k] + D;
	for (int j = 0; j < D; j++)
		for (int r = j + 1; r < D; r++) {
			dc[j] += *l++ * y[r];
			*dl++ -= p * y[r] * c[j];
		}
	for (int j = 0; j < D; j++)
		grad.means[k][j] += p * dc[j];
}

static void gradient(void)
{
	double c[K][D], y[K][D], v[K];
	memset(&grad, 0, sizeof grad);
	prepare();
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < K; k++)
			v[k] = in.alphas[k] + sum_q[k] - 0.5 * transformed(in.x[i], k, c[k], y[k]);
		log_sum_exp(v);
		for (int k = 0; k < K; k++)
			add_point(k, v[k], c[k], y[k]);
	}
	memcpy(v, in.alphas, sizeof v);
	log_sum_exp(v);
	for (int k = 0; k < K; k++) {
		grad.alphas[k] -= N * v[k];
		for (int j = 0; j < D; j++)
			grad.icf[k][j] += scale[k][j] * scale[k][j];
		for (int j = D; j < D + LOWER; j++)
			grad.icf[k][j] += in.icf[k][j];
	}
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
