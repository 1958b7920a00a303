/* Trains the digits classifier from random weights with the step that pdcc generated, and measures it after each epoch with the
 * classifier that pdcc generated from the same model.
 *
 *     train trainer.weights digits.weights training.bin heldout.bin loss.svg EPOCHS
 *
 * The exit status is 1 when something failed, or when fewer of the held-out images are right than the epochs should give. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "trainer.h"

enum { PIXELS = 64, RECORD = PIXELS + 1, CLASSES = 10, BATCH = 64, ALIGNMENT = 64, FULL_EPOCHS = 8 };

/* 97 of 100 after all epochs, 60 after fewer. */
enum { WANT_FULL = 97, WANT_SHORT = 60 };

static void *allocate(size_t size)
{
	void *p = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
	if (!p) {
		perror("memory");
		exit(1);
	}
	return p;
}

/* A whole file, aligned as generated code wants its weights. */
static unsigned char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	long n = -1;
	if (f && fseek(f, 0, SEEK_END) == 0)
		n = ftell(f);
	if (n <= 0 || fseek(f, 0, SEEK_SET) != 0) {
		perror(path);
		exit(1);
	}
	*size = (size_t)n;
	unsigned char *data = allocate(*size);
	if (fread(data, 1, *size, f) != *size) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return data;
}

static void check(const char *what, const char *failed, pd_status status)
{
	if (status == PD_OK)
		return;
	fprintf(stderr, "%s: %s%s%s\n", what, pd_status_text(status), failed ? " at " : "", failed ? failed : "");
	exit(1);
}

/* ---- numbers that are the same on every machine ---- */

static uint64_t random_state = 1;

static double random_unit(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(random_state >> 11) * 0x1p-53;
}

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
	const size_t n = p.info->bytes / sizeof(float);
	float *to = p.data;
	double inputs = 1;
	for (int i = p.info->rank > 2 ? 1 : 0; i < (p.info->rank > 2 ? p.info->rank : 1); i++)
		inputs *= (double)p.info->dims[i];
	const int one = ends_with(name, ".w_0") || ends_with(name, ".w_2");
	for (size_t i = 0; i < n; i++)
		to[i] = p.info->rank > 1 ? (float)((random_unit() * 2 - 1) * sqrt(6 / inputs)) : one ? 1.0f : 0.0f;
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
		check("digits", net->failed, digits_run(net, &in, &out));
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

/* ---- the picture ---- */

/* The loss of each step, on a scale of logarithms. */
static void plot(const char *path, const float *loss, int n)
{
	enum { WIDTH = 640, HEIGHT = 320, LEFT = 50, BOTTOM = 30, TOP = 15 };
	const double low = log10(0.001), high = log10(5);
	FILE *f = fopen(path, "w");
	if (!f) {
		perror(path);
		exit(1);
	}
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
	           "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", WIDTH, HEIGHT);
	for (double mark = 0.001; mark < 5; mark *= 10) {
		const double y = TOP + (high - log10(mark)) / (high - low) * (HEIGHT - BOTTOM - TOP);
		fprintf(f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT, y,
		        WIDTH - 10, LEFT - 6, y + 4, mark);
	}
	fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">loss of steps 1 to %d</text>\n<polyline fill=\"none\" "
	           "stroke=\"#06c\" points=\"", (LEFT + WIDTH) / 2, HEIGHT - 8, n);
	for (int i = 0; i < n; i++) {
		double y = log10(loss[i] > 1e-6f ? (double)loss[i] : 1e-6);
		y = y < low ? low : y > high ? high : y;
		fprintf(f, "%.1f,%.1f ", LEFT + (WIDTH - 10.0 - LEFT) * i / (n > 1 ? n - 1 : 1),
		        TOP + (high - y) / (high - low) * (HEIGHT - BOTTOM - TOP));
	}
	fprintf(f, "\"/>\n</svg>\n");
	if (fclose(f) != 0) {
		perror(path);
		exit(1);
	}
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
	check("train", m->failed, trainer_train_step(m, &in, &out));
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
	check("trainer", NULL, trainer_init(&m, trainer_weights, trainer_size, workspace, room));
	check("digits", NULL, digits_init(&net, digits_weights, digits_size, digits_workspace, digits_room));
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
	plot(argv[5], losses, epochs * steps);
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
