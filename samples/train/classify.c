/* Trains the digits classifier from random weights with the step that pdcc generated, and measures it after each epoch with the
 * classifier that pdcc generated from the same model.
 *
 *     train trainer.weights digits.weights training.bin heldout.bin loss.svg EPOCHS
 *
 * The exit status is 1 when something failed, or when fewer of the held-out images are right than the epochs should give. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "digits.h"
#include "trainer.h"
#include "training.h"

enum { PIXELS = 64, RECORD = PIXELS + 1, CLASSES = 10, BATCH = 64, FULL_EPOCHS = 8 };

/* 97 of 100 after all epochs, 60 after fewer. */
enum { WANT_FULL = 97, WANT_SHORT = 60 };

static void shuffle(int *order, int n)
{
	for (int i = n - 1; i > 0; i--) {
		const int k = (int)(random_unit() * (i + 1)), was = order[i];
		order[i] = order[k];
		order[k] = was;
	}
}

/* ---- the model ---- */

static int ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

/* Weights even between bounds by the number of inputs (He), scales and variances 1, biases and means 0. */
static void begin(trainer *m, const char *name)
{
	const pd_parameter p = trainer_parameter(m, name);
	float one = ends_with(name, ".w_0") || ends_with(name, ".w_2") ? 1.0f : 0.0f, *to = p.data;
	double inputs = 1;
	for (int i = p.info->rank > 2 ? 1 : 0; i < (p.info->rank > 2 ? p.info->rank : 1); i++)
		inputs *= (double)p.info->dims[i];
	if (p.info->rank > 1)
		fill_evenly(p, sqrt(6 / inputs));
	else
		for (size_t i = 0; i < p.info->bytes / sizeof *to; i++)
			to[i] = one;
}

/* What the trainer learned, to the classifier: both call parameters by the names of the model. */
static void hand_over(trainer *from, digits *to)
{
	const pd_model_info *info = digits_info();
	for (int i = 0; i < info->parameters; i++) {
		const char *name = info->parameter[i].name;
		memcpy(digits_parameter(to, name).data, trainer_parameter(from, name).data, info->parameter[i].bytes);
	}
}

static void load(const unsigned char *records, const int *order, int n, float *images, int64_t *labels)
{
	for (int i = 0; i < n; i++) {
		const unsigned char *record = records + (size_t)(order ? order[i] : i) * RECORD;
		for (int k = 0; k < PIXELS; k++)
			images[i * PIXELS + k] = (float)record[k] / 16.0f;
		labels[i] = record[PIXELS];
	}
}

/* How many of the images the classifier takes for what they are. */
static int count_right(digits *net, const unsigned char *records, int n)
{
	static float images[BATCH * PIXELS], probabilities[BATCH * CLASSES];
	static int64_t labels[BATCH];
	int right = 0;
	for (int first = 0; first < n; first += BATCH) {
		const int some = n - first < BATCH ? n - first : BATCH;
		load(records + (size_t)first * RECORD, NULL, some, images, labels);
		const digits_inputs in = {.dims = {.n = some}, .image = images};
		digits_outputs out = {.save_infer_model_scale_0_tmp_0 = probabilities};
		check("digits", digits_run(net, &in, &out), &net->failed);
		for (int i = 0; i < some; i++) {
			const float *p = probabilities + i * CLASSES;
			int best = 0;
			for (int k = 1; k < CLASSES; k++)
				best = p[k] > p[best] ? k : best;
			right += best == labels[i];
		}
	}
	return right;
}

/* ---- training ---- */

static float step(trainer *m, const unsigned char *records, const int *order)
{
	static float images[BATCH * PIXELS];
	static int64_t labels[BATCH];
	float loss = 0, accuracy = 0;
	load(records, order, BATCH, images, labels);
	const trainer_inputs in = {.dims = {.n = BATCH}, .image = images, .label = labels};
	trainer_outputs out = {.loss = &loss, .accuracy = &accuracy};
	check("train", trainer_train_step(m, &in, &out), &m->failed);
	return loss;
}

int main(int argc, char **argv)
{
	const int epochs = argc == 7 ? atoi(argv[6]) : 0;
	if (epochs < 1 || epochs > FULL_EPOCHS) {
		fprintf(stderr, "usage: %s trainer.weights digits.weights training.bin heldout.bin loss.svg EPOCHS (1 to %d)\n", argv[0],
		        FULL_EPOCHS);
		return 2;
	}
	size_t trainer_size, digits_size, training_size, held_size;
	unsigned char *trainer_weights = read_file(argv[1], &trainer_size), *digits_weights = read_file(argv[2], &digits_size),
				  *training = read_file(argv[3], &training_size), *held = read_file(argv[4], &held_size);
	const int images = (int)(training_size / RECORD), steps = images / BATCH, tests = (int)(held_size / RECORD);
	if (!steps || !tests) {
		fprintf(stderr, "too few images\n");
		return 1;
	}

	const size_t room = trainer_workspace_size(&(trainer_dims){.n = BATCH});
	const size_t digits_room = digits_workspace_size(&(digits_dims){.n = BATCH});
	void *workspace = allocate(room), *digits_workspace = allocate(digits_room);
	trainer m = {0};
	digits net = {0};
	check("trainer", trainer_init(&m, trainer_weights, trainer_size, workspace, room), NULL);
	check("digits", digits_init(&net, digits_weights, digits_size, digits_workspace, digits_room), NULL);
	for (int i = 0; i < digits_info()->parameters; i++)
		begin(&m, digits_info()->parameter[i].name);

	int *order = allocate((size_t)images * sizeof *order), right = 0;
	float *losses = allocate((size_t)(epochs * steps) * sizeof *losses);
	for (int i = 0; i < images; i++)
		order[i] = i;
	for (int epoch = 0; epoch < epochs; epoch++) {
		double sum = 0;
		shuffle(order, images);
		for (int i = 0; i < steps; i++)
			sum += losses[epoch * steps + i] = step(&m, training, order + i * BATCH);
		hand_over(&m, &net);
		right = count_right(&net, held, tests);
		printf("epoch %d: loss %.4f, %d of %d held-out images right\n", epoch + 1, sum / steps, right, tests);
		fflush(stdout);
	}
	plot(argv[5], losses, epochs * steps, 0.001, 5);
	printf("accuracy %.2f %% after %d steps (workspace %zu bytes); %s shows the loss\n", 100.0 * right / tests, epochs * steps,
	       room, argv[5]);
	free(losses);
	free(order);
	free(digits_workspace);
	free(workspace);
	free(held);
	free(training);
	free(digits_weights);
	free(trainer_weights);
	return right * 100 < tests * (epochs < FULL_EPOCHS ? WANT_SHORT : WANT_FULL);
}
