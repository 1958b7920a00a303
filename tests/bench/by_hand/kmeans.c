// The sum of squared distances of points to the centroid that is nearest (GradBench's kmeans).
#include <string.h>

#include "by_hand.h"

enum { N = 10000, K = 10, D = 8 };

static struct {
	double points[N][D], centroids[K][D];
} in;
static struct {
	double centroids[K][D];
} grad;

static int nearest(const double *x, double *least)
{
	int at = 0;
	for (int k = 0; k < K; k++) {
		double sum = 0;
		for (int j = 0; j < D; j++)
			sum += (x[j] - in.centroids[k][j]) * (x[j] - in.centroids[k][j]);
		if (k == 0 || sum < *least) {
			*least = sum;
			at = k;
		}
	}
	return at;
}

static double objective(void)
{
	double sum = 0;
	for (int i = 0; i < N; i++) {
		double least = 0;
		nearest(in.points[i], &least);
		sum += least;
	}
	return sum;
}

static void gradient(void)
{
	memset(&grad, 0, sizeof grad);
	for (int i = 0; i < N; i++) {
		double least = 0;
		const int k = nearest(in.points[i], &least);
		for (int j = 0; j < D; j++)
			grad.centroids[k][j] += 2 * (in.centroids[k][j] - in.points[i][j]);
	}
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
