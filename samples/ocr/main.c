/* Reads the lines of text in an image, with the code that pdcc generated for two networks.
 *
 *     ocr detect.weights recognize.weights page.pgm [page.txt]
 *
 * With a text to compare, its lines in the order of reading, the last line says how much of it was read; the exit
 * status is 1 when something failed or less than 90 % of the characters are right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "common.h"
#include "detect.h"
#include "image.h"
#include "recognize.h"
#include "text.h"

enum {
	STEP = 8,          /* detection reads sizes that are multiples of it */
	LINE_HEIGHT = 24,  /* of what recognition reads */
	COLUMN = 4,        /* pixels of a line for each column that recognition gives */
	MOST_LINES = 256,
	MOST_COLUMNS = 512,
	MOST_TEXT = 256,
	WANT_PERCENT = 90,
};

static int up_to(int n, int step)
{
	return (n + step - 1) / step * step;
}

/* The boxes about lines; the whole image is read at once, in its own size. */
static int find_lines(const char *weights_path, const Image *image, Box *boxes)
{
	const int width = up_to(image->width, STEP), height = up_to(image->height, STEP);
	const size_t pixels = (size_t)width * (size_t)height;
	const detect_dims dims = {.h = height, .w = width};
	size_t weights_size;
	void *weights = read_file(weights_path, &weights_size);
	const size_t size = detect_workspace_size(&dims);
	void *workspace = allocate(size);
	float *shades = allocate(pixels * sizeof *shades), *probability = allocate(pixels * sizeof *probability);
	int *work = allocate(2 * pixels * sizeof *work);

	detect net = {0};
	check("detect", detect_init(&net, weights, weights_size, workspace, size), NULL);
	image_cut(image, &(Box){0, 0, (float)width, (float)height}, shades, width, height);
	const detect_inputs in = {.dims = dims, .image = shades};
	detect_outputs out = {.fetch_name_0 = probability};
	check("detect", detect_run(&net, &in, &out), &net.failed);
	const int n = boxes_find(probability, width, height, work, boxes, MOST_LINES);

	free(work);
	free(probability);
	free(shades);
	free(workspace);
	free(weights);
	return n;
}

/* One line as text: cut out and scaled to the height that recognition reads. */
static void read_line(recognize *net, const Image *image, const Box *box, char *text)
{
	const float scale = LINE_HEIGHT / (box->bottom - box->top);
	const int wanted = up_to((int)ceilf((box->right - box->left) * scale), COLUMN), most = COLUMN * MOST_COLUMNS;
	const int width = wanted < most ? wanted : most, columns = width / COLUMN;
	static float shades[LINE_HEIGHT * COLUMN * MOST_COLUMNS];
	static float probability[MOST_COLUMNS * TEXT_CLASSES];
	image_cut(image, box, shades, width, LINE_HEIGHT);
	const recognize_inputs in = {.dims = {.w = width}, .image = shades};
	recognize_outputs out = {.fetch_name_0 = probability};
	check("recognize", recognize_run(net, &in, &out), &net->failed);
	text_decode(probability, columns, TEXT_CLASSES, text, MOST_TEXT);
}

/* The next line of the text to compare with, without its end; empty behind the last. */
static void expected_line(FILE *f, char *line)
{
	line[0] = 0;
	if (f && fgets(line, MOST_TEXT, f))
		line[strcspn(line, "\r\n")] = 0;
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: %s detect.weights recognize.weights page.pgm [page.txt]\n", argv[0]);
		return 2;
	}
	Image image;
	Box boxes[MOST_LINES];
	FILE *truth = argc == 5 ? fopen(argv[4], "r") : NULL;
	if (argc == 5 && !truth) {
		perror(argv[4]);
		return 1;
	}
	if (!image_read(argv[3], &image))
		return 1;
	const int lines = find_lines(argv[1], &image, boxes);

	/* One workspace of the widest line serves all. */
	const recognize_dims widest = {.w = COLUMN * MOST_COLUMNS};
	const size_t size = recognize_workspace_size(&widest);
	size_t weights_size;
	void *weights = read_file(argv[2], &weights_size), *workspace = allocate(size);
	recognize net = {0};
	check("recognize", recognize_init(&net, weights, weights_size, workspace, size), NULL);

	int characters = 0, wrong = 0;
	char text[MOST_TEXT], want[MOST_TEXT];
	for (int i = 0; i < lines; i++) {
		read_line(&net, &image, &boxes[i], text);
		printf("%4.0f %4.0f  %s\n", (double)boxes[i].left, (double)boxes[i].top, text);
		expected_line(truth, want);
		characters += (int)strlen(want);
		wrong += text_distance(text, want);
	}
	free(workspace);
	free(weights);
	free(image.pixels);
	if (!truth)
		return 0;
	for (expected_line(truth, want); want[0]; expected_line(truth, want)) { /* lines that were not found */
		characters += (int)strlen(want);
		wrong += (int)strlen(want);
	}
	fclose(truth);
	const double right = characters ? 100.0 * (characters - wrong) / characters : 0;
	printf("%d lines, %d of %d characters right: accuracy %.2f %%\n", lines, characters - wrong, characters, right);
	return right < WANT_PERCENT;
}
