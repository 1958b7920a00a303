/* Grey images: PGM files and bilinear sampling. */
#include "image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST_SIDE = 1 << 14 };

/* A number of the header; comments run from # to the end of the line. */
static int header_number(FILE *f)
{
	int c = fgetc(f), n = 0;
	while (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '#') {
		if (c == '#')
			while (c != '\n' && c != EOF)
				c = fgetc(f);
		c = fgetc(f);
	}
	if (c < '0' || c > '9')
		return -1;
	for (; c >= '0' && c <= '9' && n <= LARGEST_SIDE; c = fgetc(f))
		n = 10 * n + c - '0';
	return n; /* one blank after the number is read, as the format has it */
}

static bool read_pgm(FILE *f, Image *image)
{
	if (fgetc(f) != 'P' || fgetc(f) != '5')
		return false;
	image->width = header_number(f);
	image->height = header_number(f);
	if (header_number(f) != 255 || image->width < 1 || image->height < 1 || image->width > LARGEST_SIDE ||
	    image->height > LARGEST_SIDE)
		return false;
	const size_t size = (size_t)image->width * (size_t)image->height;
	image->pixels = malloc(size);
	if (image->pixels && fread(image->pixels, 1, size, f) == size)
		return true;
	free(image->pixels);
	return false;
}

bool image_read(const char *path, Image *image)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return false;
	}
	const bool read = read_pgm(f, image);
	if (!read)
		fprintf(stderr, "%s: no PGM image (P5, 255 shades)\n", path);
	fclose(f);
	return read;
}

static float shade(const Image *image, int x, int y)
{
	x = x < 0 ? 0 : x >= image->width ? image->width - 1 : x;
	y = y < 0 ? 0 : y >= image->height ? image->height - 1 : y;
	return (float)image->pixels[y * image->width + x] / 127.5f - 1;
}

void image_cut(const Image *image, const Box *box, float *to, int width, int height)
{
	const float across = (box->right - box->left) / (float)width;
	const float down = (box->bottom - box->top) / (float)height;
	for (int row = 0; row < height; row++) {
		const float y = box->top + ((float)row + 0.5f) * down - 0.5f, y0 = floorf(y), b = y - y0;
		for (int column = 0; column < width; column++) {
			const float x = box->left + ((float)column + 0.5f) * across - 0.5f, x0 = floorf(x), a = x - x0;
			const int l = (int)x0, t = (int)y0;
			const float top = (1 - a) * shade(image, l, t) + a * shade(image, l + 1, t);
			const float low = (1 - a) * shade(image, l, t + 1) + a * shade(image, l + 1, t + 1);
			to[row * width + column] = (1 - b) * top + b * low;
		}
	}
}
