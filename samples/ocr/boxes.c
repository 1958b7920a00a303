/* DB's post-process: connected pixels, their score, and the way back from the core of a line to the line. */
#include "boxes.h"

#include <math.h>
#include <stdlib.h>

static const float THRESHOLD = 0.3f;  /* a pixel is in the core of a line */
static const float WANT_SCORE = 0.5f; /* the mean over the pixels of a core */
static const float SHRINK = 0.75f;   /* how much of a line its core is, as in training */
enum { SMALLEST_SIDE = 2 };

typedef struct Core {
	int left, top, right, bottom, pixels;
	double sum;
} Core;

static void core_add(Core *core, int x, int y, float probability)
{
	core->left = x < core->left ? x : core->left;
	core->right = x >= core->right ? x + 1 : core->right;
	core->top = y < core->top ? y : core->top;
	core->bottom = y >= core->bottom ? y + 1 : core->bottom;
	core->pixels++;
	core->sum += probability;
}

/* All pixels that hang together with `first`; each is put on the stack at most once. */
static Core core_fill(const float *probability, int width, int height, int *seen, int *stack, int first)
{
	Core core = {.left = width, .top = height};
	int n = 0;
	stack[n++] = first;
	seen[first] = 1;
	while (n) {
		const int at = stack[--n], x = at % width, y = at / width;
		core_add(&core, x, y, probability[at]);
		const int next[] = {x > 0 ? at - 1 : at, x + 1 < width ? at + 1 : at, y > 0 ? at - width : at,
		                    y + 1 < height ? at + width : at};
		for (int i = 0; i < 4; i++)
			if (!seen[next[i]] && probability[next[i]] > THRESHOLD) {
				seen[next[i]] = 1;
				stack[n++] = next[i];
			}
	}
	return core;
}

/* A line of W x H has a core of (W - 2d) x (H - 2d), where d = W H (1 - s^2) / (2 (W + H)). What d was is found from the
 * core in a few steps of that formula. */
static Box line_of(const Core *core)
{
	const float w = (float)(core->right - core->left), h = (float)(core->bottom - core->top);
	float d = 0;
	for (int i = 0; i < 32; i++) {
		const float whole = w + 2 * d, high = h + 2 * d;
		d = whole * high * (1 - SHRINK * SHRINK) / (2 * (whole + high));
	}
	return (Box){(float)core->left - d, (float)core->top - d, (float)core->right + d, (float)core->bottom + d};
}

/* Lines whose middle is on one level are in order from the left. */
static int reading_order(const void *a, const void *b)
{
	const Box *p = a, *q = b;
	const float middle_p = (p->top + p->bottom) / 2, middle_q = (q->top + q->bottom) / 2;
	if (middle_p < q->top || middle_p > q->bottom)
		return middle_p < middle_q ? -1 : 1;
	return p->left < q->left ? -1 : p->left > q->left;
}

int boxes_find(const float *probability, int width, int height, int *work, Box *boxes, int most)
{
	int *seen = work, *stack = work + width * height, n = 0;
	for (int i = 0; i < width * height; i++)
		seen[i] = 0;
	for (int i = 0; i < width * height && n < most; i++) {
		if (seen[i] || !(probability[i] > THRESHOLD))
			continue;
		const Core core = core_fill(probability, width, height, seen, stack, i);
		if (core.right - core.left >= SMALLEST_SIDE && core.bottom - core.top >= SMALLEST_SIDE &&
		    core.sum > (double)WANT_SCORE * core.pixels)
			boxes[n++] = line_of(&core);
	}
	qsort(boxes, (size_t)n, sizeof *boxes, reading_order);
	return n;
}
