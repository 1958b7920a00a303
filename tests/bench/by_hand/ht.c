// Half the squared distances of points from a hand's skin, for 26 angles and offsets (ADBench's ht,
// without barycentric coordinates).
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "by_hand.h"

enum { BONES = 22, FINGERS = 5, SKIN = 544, N = 1000 };

static struct {
	double theta[26], relatives[BONES][4][4], inverses[BONES][4][4], base[SKIN][4];
	double weights[SKIN][BONES], points[N][3];
	int64_t corr[N];
} in;
static struct {
	double theta[26];
} grad;

typedef double Affine[3][4]; // without the last row, which is 0 0 0 1

static Affine turn[BONES], local[BONES], whole[BONES], skin[BONES];
static double angles[BONES][3], global[3][3], before[SKIN][3], after[SKIN][3];

static int parent(int bone)
{
	return bone < 2 ? bone - 1 : (bone - 2) % 4 ? bone - 1 : 1;
}

// The angle of a bone is number `at` of theta; -1: it is 0.
static int angle_at(int bone, int axis)
{
	const int finger = (bone - 2) / 4, joint = (bone - 2) % 4;
	if (bone < 2 || joint == 3 || axis > (joint == 0))
		return -1;
	return 6 + 4 * finger + (joint ? joint + 1 : axis);
}

// out = a b; b's last row is 0 0 0 1.
static void product(Affine a, double (*b)[4], Affine out)
{
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 4; j++) {
			double sum = j == 3 ? a[i][3] : 0;
			for (int k = 0; k < 3; k++)
				sum += a[i][k] * b[k][j];
			out[i][j] = sum;
		}
}

static void bones(void)
{
	memset(turn, 0, sizeof turn);
	for (int b = 0; b < BONES; b++) {
		double s[3], c[3];
		for (int j = 0; j < 3; j++) {
			angles[b][j] = angle_at(b, j) < 0 ? 0 : in.theta[angle_at(b, j)];
			s[j] = sin(angles[b][j]);
			c[j] = cos(angles[b][j]);
		}
		turn[b][0][0] = c[1] * c[2];
		turn[b][0][1] = s[0] * s[1] * c[2] - c[0] * s[2];
		turn[b][0][2] = c[0] * s[1] * c[2] + s[0] * s[2];
		turn[b][1][0] = c[1] * s[2];
		turn[b][1][1] = s[0] * s[1] * s[2] + c[0] * c[2];
		turn[b][1][2] = c[0] * s[1] * s[2] - s[0] * c[2];
		turn[b][2][0] = -s[1];
		turn[b][2][1] = s[0] * c[1];
		turn[b][2][2] = c[0] * c[1];
		product(in.relatives[b], turn[b], local[b]);
		if (b)
			product(whole[parent(b)], local[b], whole[b]);
		else
			memcpy(whole[b], local[b], sizeof local[b]);
		product(whole[b], in.inverses[b], skin[b]);
	}
}

// The turn about theta[0..2]: the axis, and its matrix.
static double rotation(double *axis, double k[3][3])
{
	const double *r = in.theta, angle = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
	for (int j = 0; j < 3; j++)
		axis[j] = r[j] / angle;
	memset(k, 0, 9 * sizeof(double));
	for (int j = 0; j < 3; j++) {
		k[(j + 2) % 3][(j + 1) % 3] = axis[j];
		k[(j + 1) % 3][(j + 2) % 3] = -axis[j];
	}
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			global[i][j] = (i == j) * cos(angle) + (1 - cos(angle)) * axis[i] * axis[j] +
			               sin(angle) * k[i][j];
	return angle;
}

static void add_scaled(Affine sum, double factor, Affine a)
{
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 4; j++)
			sum[i][j] += factor * a[i][j];
}

static void place_skin(void)
{
	for (int v = 0; v < SKIN; v++) {
		Affine m = {{0}};
		for (int b = 0; b < BONES; b++)
			add_scaled(m, in.weights[v][b], skin[b]);
		for (int i = 0; i < 3; i++) {
			before[v][i] = 0;
			for (int j = 0; j < 4; j++)
				before[v][i] += m[i][j] * in.base[v][j];
		}
		for (int i = 0; i < 3; i++) {
			after[v][i] = in.theta[3 + i];
			for (int j = 0; j < 3; j++)
				after[v][i] += global[i][j] * before[v][j];
		}
	}
}

static double objective(void)
{
	double axis[3], k[3][3], sum = 0;
	bones();
	rotation(axis, k);
	place_skin();
	for (int i = 0; i < N; i++)
		for (int j = 0; j < 3; j++) {
			const double e = in.points[i][j] - after[in.corr[i]][j];
			sum += e * e;
		}
	return sum / 2;
}

static void rotation_back(double angle, const double *axis, double k[3][3], double d[3][3])
{
	double dc = 0, ds = 0, da[3];
	const double c = cos(angle), s = sin(angle);
	for (int i = 0; i < 3; i++) {
		dc += d[i][i];
		da[i] = s * (d[(i + 2) % 3][(i + 1) % 3] - d[(i + 1) % 3][(i + 2) % 3]);
		for (int j = 0; j < 3; j++) {
			dc -= d[i][j] * axis[i] * axis[j];
			ds += d[i][j] * k[i][j];
			da[i] += (1 - c) * (d[i][j] + d[j][i]) * axis[j];
		}
	}
	const double along = da[0] * axis[0] + da[1] * axis[1] + da[2] * axis[2];
	for (int i = 0; i < 3; i++)
		grad.theta[i] = axis[i] * (c * ds - s * dc) + (da[i] - axis[i] * along) / angle;
}

static void angles_back(int b, double d[3][3])
{
	double s[3], c[3], da[3];
	for (int j = 0; j < 3; j++) {
		s[j] = sin(angles[b][j]);
		c[j] = cos(angles[b][j]);
	}
	da[0] = d[0][1] * turn[b][0][2] - d[0][2] * turn[b][0][1] + d[1][1] * turn[b][1][2] -
	        d[1][2] * turn[b][1][1] + d[2][1] * turn[b][2][2] - d[2][2] * turn[b][2][1];
	da[1] = c[2] * (-s[1] * d[0][0] + c[1] * (s[0] * d[0][1] + c[0] * d[0][2])) +
	        s[2] * (-s[1] * d[1][0] + c[1] * (s[0] * d[1][1] + c[0] * d[1][2])) - c[1] * d[2][0] -
	        s[1] * (s[0] * d[2][1] + c[0] * d[2][2]);
	da[2] = 0;
	for (int j = 0; j < 3; j++)
		da[2] += d[1][j] * turn[b][0][j] - d[0][j] * turn[b][1][j];
	for (int j = 0; j < 3; j++)
		if (angle_at(b, j) >= 0)
			grad.theta[angle_at(b, j)] = da[j];
}

static void bones_back(Affine *dskin)
{
	static Affine dwhole[BONES];
	memset(dwhole, 0, sizeof dwhole);
	for (int b = BONES; b-- > 0;) {
		double dlocal[3][3] = {{0}}, dturn[3][3] = {{0}};
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 4; j++)
				for (int k = 0; k < 4; k++)
					dwhole[b][i][j] += dskin[b][i][k] * (j < 3 ? in.inverses[b][j][k] : (k == 3));
		for (int i = 0; b && i < 3; i++)
			for (int j = 0; j < 4; j++)
				for (int k = 0; k < 4; k++)
					dwhole[parent(b)][i][j] += dwhole[b][i][k] *
					                           (j < 3 ? local[b][j][k] : (k == 3));
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 3; j++)
				for (int k = 0; k < 3; k++)
					dlocal[i][j] += (b ? whole[parent(b)][k][i] : (k == i)) * dwhole[b][k][j];
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 3; j++)
				for (int k = 0; k < 3; k++)
					dturn[i][j] += in.relatives[b][k][i] * dlocal[k][j];
		angles_back(b, dturn);
	}
}

static void gradient(void)
{
	static double dafter[SKIN][3];
	static Affine dskin[BONES];
	double axis[3], k[3][3], dglobal[3][3] = {{0}};
	memset(dafter, 0, sizeof dafter);
	memset(dskin, 0, sizeof dskin);
	memset(&grad, 0, sizeof grad);
	bones();
	const double angle = rotation(axis, k);
	place_skin();
	for (int i = 0; i < N; i++)
		for (int j = 0; j < 3; j++)
			dafter[in.corr[i]][j] += after[in.corr[i]][j] - in.points[i][j];
	for (int v = 0; v < SKIN; v++) {
		Affine dm;
		for (int i = 0; i < 3; i++) {
			double d = 0;
			grad.theta[3 + i] += dafter[v][i];
			for (int j = 0; j < 3; j++) {
				dglobal[i][j] += dafter[v][i] * before[v][j];
				d += global[j][i] * dafter[v][j];
			}
			for (int j = 0; j < 4; j++)
				dm[i][j] = d * in.base[v][j];
		}
		for (int b = 0; b < BONES; b++)
			add_scaled(dskin[b], in.weights[v][b], dm);
	}
	bones_back(dskin);
	rotation_back(angle, axis, k, dglobal);
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
