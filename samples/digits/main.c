/* Classifies the held-out images with the code that pdcc generated and prints the accuracy.
 *
 *     digits digits.weights heldout.bin
 *
 * The exit status is 1 when something failed or fewer than nine of ten images are right. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"
#include "digits.h"

enum { PIXELS = 64, CLASSES = 10, WANT_PERCENT = 90 };

/* The model's batch is symbolic; this program runs it one image at a time. */
static int classify(digits *net, const unsigned char *pixels)
{
	float image[PIXELS], probability[CLASSES];
	for (int i = 0; i < PIXELS; i++)
		image[i] = (float)pixels[i] / 16.0f;
	const digits_inputs in = {.dims = {.n = 1}, .image = image};
	digits_outputs out = {.save_infer_model_scale_0_tmp_0 = probability};
	check("digits", digits_run(net, &in, &out), &net->failed);
	int best = 0;
	for (int i = 1; i < CLASSES; i++)
		best = probability[i] > probability[best] ? i : best;
	return best;
}

/* One image as text, ten shades from blank to @. */
static void show(const unsigned char *pixels)
{
	for (int y = 0; y < 8; y++) {
		printf("    ");
		for (int x = 0; x < 8; x++) {
			const char shade = " .:-=+*#%@"[pixels[y * 8 + x] * 9 / 16];
			printf("%c%c", shade, shade);
		}
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s digits.weights heldout.bin\n", argv[0]);
		return 2;
	}
	size_t weights_size, held_size;
	unsigned char *weights = read_file(argv[1], &weights_size), *held = read_file(argv[2], &held_size);

	/* Generated code allocates nothing: the caller says where it works. */
	const size_t size = digits_workspace_size(&(digits_dims){.n = 1});
	void *workspace = allocate(size);
	digits net = {0};
	check("digits", digits_init(&net, weights, weights_size, workspace, size), NULL);

	/* A record is 64 pixels from 0 to 16, then the label. */
	const int images = (int)(held_size / (PIXELS + 1));
	int right = 0;
	for (int i = 0; i < images; i++) {
		const unsigned char *record = held + i * (PIXELS + 1);
		const int answer = classify(&net, record);
		right += answer == record[PIXELS];
		if (i == 0) {
			show(record);
			printf("the first image is taken for a %d; it is a %d\n", answer, record[PIXELS]);
		}
	}
	printf("%d of %d held-out images right: accuracy %.2f %% (workspace %zu bytes, weights %zu bytes)\n", right, images,
	       100.0 * right / images, size, weights_size);
	free(workspace);
	free(held);
	free(weights);
	return right * 100 < images * WANT_PERCENT;
}
