/* From the probabilities that recognition gives to text, and how right a text is. */
#ifndef OCR_TEXT_H
#define OCR_TEXT_H

#include <stddef.h>

/* The characters that recognition knows, in the order of its classes from 1 on; class 0 is none. */
enum { TEXT_CLASSES = 1 + 80 };
extern const char text_characters[TEXT_CLASSES];

/* Greedy CTC: the most probable class of each column, repeats merged, none dropped. `probability` is [columns * classes].
 * Writes at most size - 1 characters and a 0. */
void text_decode(const float *probability, int columns, int classes, char *text, size_t size);

/* Characters to insert, remove or exchange to make one text of the other; of long ones the first 255 count. */
int text_distance(const char *a, const char *b);

#endif
