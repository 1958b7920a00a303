// The loss of a language model: an LSTM whose weights are diagonal (ADBench's lstm).
#include <math.h>
#include <string.h>

#include "by_hand.h"

enum { B = 14, LAYERS = 2, CHARS = 1024, ROUNDS = CHARS - 1 };

// Layer i has row 2 i of weights and row 2 i + 1 of biases, and in state its output and its cell.
static struct {
	double weights[2 * LAYERS][4][B], extra[3][B], state[2 * LAYERS][B], sequence[CHARS][B];
} in;
static struct {
	double weights[2 * LAYERS][4][B], extra[3][B];
} grad;

// What the way back reads of one layer in one round; states[0] is what the first round begins with.
typedef struct Layer {
	double forget[B], ingate[B], outgate[B], change[B], cell[B], cell_tanh[B], out[B];
} Layer;
static Layer states[ROUNDS + 1][LAYERS];

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static void layer_forward(const double (*w)[B], const double (*b)[B], const double *x,
                          const Layer *was, Layer *now)
{
	for (int j = 0; j < B; j++) {
		now->forget[j] = sigmoid(x[j] * w[0][j] + b[0][j]);
		now->ingate[j] = sigmoid(was->out[j] * w[1][j] + b[1][j]);
		now->outgate[j] = sigmoid(x[j] * w[2][j] + b[2][j]);
		now->change[j] = tanh(was->out[j] * w[3][j] + b[3][j]);
		now->cell[j] = was->cell[j] * now->forget[j] + now->ingate[j] * now->change[j];
		now->cell_tanh[j] = tanh(now->cell[j]);
		now->out[j] = now->outgate[j] * now->cell_tanh[j];
	}
}

static void begin(Layer *first)
{
	for (int i = 0; i < LAYERS; i++) {
		memcpy(first[i].out, in.state[2 * i], sizeof first[i].out);
		memcpy(first[i].cell, in.state[2 * i + 1], sizeof first[i].cell);
	}
}

// Round t from one state to the next; gives what it adds to the loss, and share = exp(y) / (sum +
// 2).
static double round_forward(int t, const Layer *was, Layer *now, double *share)
{
	double x[B], sum = 2, loss = 0;
	for (int j = 0; j < B; j++)
		x[j] = in.sequence[t][j] * in.extra[0][j];
	for (int i = 0; i < LAYERS; i++)
		layer_forward(in.weights[2 * i], in.weights[2 * i + 1], i ? now[i - 1].out : x, &was[i],
		              &now[i]);
	for (int j = 0; j < B; j++) {
		x[j] = now[LAYERS - 1].out[j] * in.extra[1][j] + in.extra[2][j];
		share[j] = exp(x[j]);
		sum += share[j];
	}
	const double log_sum = log(sum);
	for (int j = 0; j < B; j++) {
		loss += in.sequence[t + 1][j] * (x[j] - log_sum);
		share[j] /= sum;
	}
	return loss;
}

static double objective(void)
{
	Layer turns[2][LAYERS];
	double share[B], loss = 0;
	begin(turns[0]);
	for (int t = 0; t < ROUNDS; t++)
		loss += round_forward(t, turns[t % 2], turns[(t + 1) % 2], share);
	return -loss / (B * ROUNDS);
}

// dx of a layer's input from dout; dh and dc are those of its state, behind it and then in front.
static void layer_backward(int i, const double *x, const Layer *was, const Layer *now, double *dx,
                           double *dh, double *dc)
{
	const double(*w)[B] = in.weights[2 * i];
	double(*dw)[B] = grad.weights[2 * i], (*db)[B] = grad.weights[2 * i + 1];
	for (int j = 0; j < B; j++) {
		const double o = now->outgate[j], f = now->forget[j], g = now->ingate[j],
					 h = now->change[j];
		const double cell = dc[j] + dh[j] * o * (1 - now->cell_tanh[j] * now->cell_tanh[j]);
		const double d_o = dh[j] * now->cell_tanh[j] * o * (1 - o),
					 d_f = cell * was->cell[j] * f * (1 - f);
		const double d_g = cell * h * g * (1 - g), d_h = cell * g * (1 - h * h);
		dw[0][j] += d_f * x[j];
		dw[1][j] += d_g * was->out[j];
		dw[2][j] += d_o * x[j];
		dw[3][j] += d_h * was->out[j];
		db[0][j] += d_f;
		db[1][j] += d_g;
		db[2][j] += d_o;
		db[3][j] += d_h;
		dx[j] = d_f * w[0][j] + d_o * w[2][j];
		dh[j] = d_g * w[1][j] + d_h * w[3][j];
		dc[j] = cell * f;
	}
}

static void gradient(void)
{
	static double shares[ROUNDS][B];
	double dh[LAYERS][B] = {{0}}, dc[LAYERS][B] = {{0}}, x[B], dx[B];
	memset(&grad, 0, sizeof grad);
	begin(states[0]);
	for (int t = 0; t < ROUNDS; t++)
		round_forward(t, states[t], states[t + 1], shares[t]);
	for (int t = ROUNDS; t-- > 0;) {
		const Layer *now = states[t + 1];
		double gold = 0;
		for (int j = 0; j < B; j++)
			gold += in.sequence[t + 1][j];
		for (int j = 0; j < B; j++) {
			const double dy = (gold * shares[t][j] - in.sequence[t + 1][j]) / (B * ROUNDS);
			grad.extra[1][j] += dy * now[LAYERS - 1].out[j];
			grad.extra[2][j] += dy;
			dx[j] = dy * in.extra[1][j];
			x[j] = in.sequence[t][j] * in.extra[0][j];
		}
		for (int i = LAYERS; i-- > 0;) {
			for (int j = 0; j < B; j++)
				dh[i][j] += dx[j];
			layer_backward(i, i ? now[i - 1].out : x, &states[t][i], &now[i], dx, dh[i], dc[i]);
		}
		for (int j = 0; j < B; j++)
			grad.extra[0][j] += dx[j] * in.sequence[t][j];
	}
}

const Problem problem = {&in, &grad, sizeof in, sizeof grad, objective, gradient};
