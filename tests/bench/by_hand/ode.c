// The last component of y' = x (1, y[0], y[1] ...), by Runge and Kutta's fourth order (GradBench's
// ode).
#include <string.h>

#include "by_hand.h"

enum { N = 50, STEPS = 100 };
static const double h = 2.0 / STEPS;

static struct {
	double x[N];
} in, grad;

// Row s is the point where slope s of a step is taken: y, y + h/2 k1, y + h/2 k2, y + h k3.
static double points[STEPS][4][N];

// One step, from y = p[0] to what is behind it; p[1] to p[3] are left.
static void step(double (*p)[N], double *behind)
{
	static const double ahead[4] = {h / 2, h / 2, h, 0}, weight[4] = {h / 6, h / 3, h / 3, h / 6};
	double sum[N], slope[N];
	memcpy(sum, p[0], sizeof sum);
	for (int s = 0; s < 4; s++) {
		slope[0] = in.x[0];
		for (int j = 1; j < N; j++)
			slope[j] = in.x[j] * p[s][j - 1];
		for (int j = 0; j < N; j++)
			sum[j] += weight[s] * slope[j];
		if (s < 3)
			for (int j = 0; j < N; j++)
				p[s + 1][j] = p[0][j] + ahead[s] * slope[j];
	}
	memcpy(behind, sum, sizeof sum);
}

static double objective(void)
{
	double p[4][N] = {{0}};
	for (int t = 0; t < STEPS; t++)
		step(p, p[0]);
	return p[0][N - 1];
}

static void gradient(void)
{
	double last[N], dy[N] = {0};
	memset(&grad, 0, sizeof grad);
	memset(points[0][0], 0, sizeof points[0][0]);
	for (int t = 0; t < STEPS; t++)
		step(points[t], t + 1 < STEPS ? points[t + 1][0] : last);
	dy[N - 1] = 1;
	for (int t = STEPS; t-- > 0;) {
		static const double ahead[4] = {0, h / 2, h / 2, h},
							weight[4] = {h / 6, h / 3, h / 3, h / 6};
		double dp[N + 1] = {0}, slope[N], sum[N]; // dp: of the point of the slope behind this one
		memcpy(sum, dy, sizeof sum);
		for (int s = 4; s-- > 0;) {
			for (int j = 0; j < N; j++)
				slope[j] = weight[s] * dy[j] + (s < 3 ? ahead[s + 1] * dp[j] : 0);
			grad.x[0] += slope[0];
			for (int j = 1; j < N; j++)
				grad.x[j] += slope[j] * points[t][s][j - 1];
			for (int j = 0; j + 1 < N; j++)
				dp[j] = slope[j + 1] * in.x[j + 1];
			dp[N - 1] = 0;
			for (int j = 0; j < N; j++)
				sum[j] += dp[j];
		}
		memcpy(dy, sum, sizeof dy);
	}
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
