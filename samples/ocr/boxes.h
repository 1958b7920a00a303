/* From the map that detection gives to boxes about lines of text. */
#ifndef OCR_BOXES_H
#define OCR_BOXES_H

#include "image.h"

/* Finds connected pixels whose probability is over a threshold and grows the box about each to that of the line, of which
 * they are the core (the post-process of DB, for lines that are level). `probability` is [height * width], `work` holds
 * 2 * width * height numbers. Boxes come from top to bottom, those on one level from left to right; the number of
 * them, at most `most`, is returned. */
int boxes_find(const float *probability, int width, int height, int *work, Box *boxes, int most);

#endif
