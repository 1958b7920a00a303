/* Grey images: reading them, and cutting out what a network reads. */
#ifndef OCR_IMAGE_H
#define OCR_IMAGE_H

#include <stdbool.h>

/* Rows from the top, 0 black to 255 white; the caller frees pixels. */
typedef struct Image {
	int width, height;
	unsigned char *pixels; /* [height * width] */
} Image;

/* A rectangle in pixels of an image; right and bottom are outside of it. */
typedef struct Box {
	float left, top, right, bottom;
} Box;

/* Reads a PGM file (P5, 8 bits). False, with a message on stderr, when that fails; nothing is to be freed then. */
bool image_read(const char *path, Image *image);

/* The box, which may lie partly outside of the image, as width x height numbers from -1 (black) to 1 (white): bilinear,
 * and beyond an edge what is at the edge. */
void image_cut(const Image *image, const Box *box, float *to, int width, int height);

#endif
