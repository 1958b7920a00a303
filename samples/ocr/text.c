/* CTC decoding and the distance of Levenshtein. */
#include "text.h"

#include <string.h>

const char text_characters[TEXT_CLASSES] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               ".,:;-+/()%$#&!?'\" ";

void text_decode(const float *probability, int columns, int classes, char *text, size_t size)
{
	size_t n = 0;
	int before = 0;
	for (int column = 0; column < columns; column++) {
		const float *p = probability + (size_t)column * (size_t)classes;
		int best = 0;
		for (int i = 1; i < classes; i++)
			best = p[i] > p[best] ? i : best;
		if (best && best != before && n + 1 < size)
			text[n++] = text_characters[best - 1];
		before = best;
	}
	text[n] = 0;
}

static int least(int a, int b, int c)
{
	const int least_ab = a < b ? a : b;
	return least_ab < c ? least_ab : c;
}

int text_distance(const char *a, const char *b)
{
	enum { MOST = 255 };
	int row[MOST + 1];
	const int na = (int)(strlen(a) < MOST ? strlen(a) : MOST), nb = (int)(strlen(b) < MOST ? strlen(b) : MOST);
	for (int j = 0; j <= nb; j++)
		row[j] = j;
	for (int i = 1; i <= na; i++) {
		int diagonal = row[0];
		row[0] = i;
		for (int j = 1; j <= nb; j++) {
			const int above = row[j];
			row[j] = least(diagonal + (a[i - 1] != b[j - 1]), above + 1, row[j - 1] + 1);
			diagonal = above;
		}
	}
	return row[nb];
}
