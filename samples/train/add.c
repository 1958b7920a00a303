/* Trains a recurrent net from random weights to add two numbers bit by bit, and then has it add numbers of more bits than it has
 * ever seen. Its loop takes as many rounds as the largest sum of a batch has bits, forwards and backwards.
 *
 *     add adder_trainer.weights adder.weights loss.svg STEPS
 *
 * The exit status is 1 when something failed, or when fewer sums are right than the steps should give. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adder.h"
#include "adder_trainer.h"
#include "common.h"
#include "training.h"

enum { BATCH = 32, TESTS = 1000, FULL_STEPS = 1500, REPORT = 250, TRAIN_BITS = 7, TEST_BITS = 40 };

/* Two numbers of at most `bits` bits for each of n sums; small ones are as likely as large ones. */
static void draw(int64_t *pairs, int n, int bits)
{
	for (int i = 0; i < 2 * n; i++) {
		const int some = 1 + (int)(random_unit() * bits);
		pairs[i] = (int64_t)ldexp(random_unit(), some);
	}
}

static float step(adder_trainer *m)
{
	static int64_t pairs[2 * BATCH];
	float loss = 0;
	draw(pairs, BATCH, TRAIN_BITS);
	const adder_trainer_inputs in = {.dims = {.n = BATCH}, .pair = pairs};
	adder_trainer_outputs out = {.loss = &loss};
	check("train", adder_trainer_train_step(m, &in, &out), &m->failed);
	return loss;
}

/* How many of so many sums of numbers of at most `bits` bits the net gets right. */
static int count_right(adder *net, int bits)
{
	static int64_t pairs[2 * TESTS], said[TESTS];
	float loss;
	int right = 0;
	draw(pairs, TESTS, bits);
	const adder_inputs in = {.dims = {.n = TESTS}, .pair = pairs};
	adder_outputs out = {.said = said, .loss = &loss};
	check("adder", adder_run(net, &in, &out), &net->failed);
	for (int i = 0; i < TESTS; i++)
		right += said[i] == pairs[2 * i] + pairs[2 * i + 1];
	return right;
}

/* Weights even between bounds by the number of inputs, biases 0. */
static void begin(adder_trainer *m)
{
	for (int i = 0; i < adder_info()->parameters; i++) {
		const pd_parameter p = adder_trainer_parameter(m, adder_info()->parameter[i].name);
		fill_evenly(p, p.info->rank > 1 ? sqrt(3.0 / (double)p.info->dims[0]) : 0);
	}
}

/* What the trainer learned, to the net that adds. */
static void hand_over(adder_trainer *from, adder *to)
{
	for (int i = 0; i < adder_info()->parameters; i++) {
		const char *name = adder_info()->parameter[i].name;
		memcpy(adder_parameter(to, name).data, adder_trainer_parameter(from, name).data, adder_info()->parameter[i].bytes);
	}
}

int main(int argc, char **argv)
{
	const int steps = argc == 5 ? atoi(argv[4]) : 0;
	if (steps < 1 || steps > FULL_STEPS) {
		fprintf(stderr, "usage: %s adder_trainer.weights adder.weights loss.svg STEPS (1 to %d)\n", argv[0], FULL_STEPS);
		return 2;
	}
	size_t trainer_size, adder_size;
	unsigned char *trainer_weights = read_file(argv[1], &trainer_size), *adder_weights = read_file(argv[2], &adder_size);
	const size_t room = adder_trainer_workspace_size(&(adder_trainer_dims){.n = BATCH});
	const size_t adder_room = adder_workspace_size(&(adder_dims){.n = TESTS});
	void *workspace = allocate(room), *adder_workspace = allocate(adder_room);
	adder_trainer m = {0};
	adder net = {0};
	check("trainer", adder_trainer_init(&m, trainer_weights, trainer_size, workspace, room), NULL);
	check("adder", adder_init(&net, adder_weights, adder_size, adder_workspace, adder_room), NULL);
	begin(&m);

	float *losses = allocate((size_t)steps * sizeof *losses);
	double sum = 0;
	for (int i = 0; i < steps; i++) {
		sum += losses[i] = step(&m);
		if ((i + 1) % REPORT == 0 || i + 1 == steps) {
			hand_over(&m, &net);
			printf("step %d: loss %.4f, %d of %d sums of up to %d bits right\n", i + 1, sum / (i % REPORT + 1),
			       count_right(&net, TRAIN_BITS), TESTS, TRAIN_BITS);
			fflush(stdout);
			sum = 0;
		}
	}
	const int right = count_right(&net, TEST_BITS);
	plot(argv[3], losses, steps, 0.0001, 10);
	printf("%d of %d sums of up to %d bits right after %d steps (workspace %zu bytes); %s shows the loss\n", right, TESTS, TEST_BITS,
	       steps, room, argv[3]);
	const int failed = steps == FULL_STEPS ? right < TESTS * 99 / 100 : losses[steps - 1] >= losses[0];
	free(losses);
	free(adder_workspace);
	free(workspace);
	free(adder_weights);
	free(trainer_weights);
	return failed;
}
