/* Classifies the held-out images with the code that pdcc generated and prints the accuracy. */
#include <stdio.h>
#include <stdlib.h>

#include "digits.h"

enum { PIXELS = 64, CLASSES = 10 };

/* The model's batch is symbolic; this program runs it one image at a time. */
static int classify(digits *net, const unsigned char *pixels)
{
	float image[PIXELS], probability[CLASSES];
	for (int i = 0; i < PIXELS; i++)
		image[i] = (float)pixels[i] / 16.0f;
	digits_inputs in = {.image = image, .dims = {.n = 1}};
	digits_outputs out = {.softmax_0_tmp_0 = probability};
	pd_status status = digits_run(net, &in, &out);
	if (status != PD_OK) {
		fprintf(stderr, "digits: %s\n", pd_status_text(status));
		exit(1);
	}
	int best = 0;
	for (int i = 1; i < CLASSES; i++)
		best = probability[i] > probability[best] ? i : best;
	return best;
}
