// A growing string, exact numbers and quoted text: what every printer writes with.
#include "ir/base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void text_init(Text *t, Arena *a)
{
	*t = (Text){.arena = a, .text = arena_alloc(a, 256), .cap = 256};
}

static void text_reserve(Text *t, size_t more)
{
	if (t->len + more + 1 <= t->cap)
		return;
	size_t cap = t->cap * 2;
	while (cap < t->len + more + 1)
		cap *= 2;
	char *bigger = arena_alloc(t->arena, cap);
	memcpy(bigger, t->text, t->len + 1);
	t->text = bigger;
	t->cap = cap;
}

void text_char(Text *t, char c)
{
	text_reserve(t, 1);
	t->text[t->len++] = c;
	t->text[t->len] = 0;
}

void text_strn(Text *t, const char *s, size_t n)
{
	text_reserve(t, n);
	memcpy(t->text + t->len, s, n);
	t->len += n;
	t->text[t->len] = 0;
}

void text_str(Text *t, const char *s)
{
	text_strn(t, s, strlen(s));
}

void text_printf(Text *t, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n > 0) {
		text_reserve(t, (size_t)n);
		vsnprintf(t->text + t->len, (size_t)n + 1, fmt, again);
		t->len += (size_t)n;
	}
	va_end(again);
}

void text_float(Text *t, double v, bool single)
{
	if (isnan(v)) {
		text_str(t, "nan");
		return;
	}
	if (isinf(v)) {
		text_str(t, v < 0 ? "-inf" : "inf");
		return;
	}
	char buf[40];
	for (int digits = single ? 6 : 15; digits <= 17; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, v);
		if (single ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v)
			break;
	}
	text_str(t, buf);
	if (!strpbrk(buf, ".e"))
		text_str(t, ".0");
}

// Control characters, those of two bytes (U+0080 on) too, are escaped.
void text_json(Text *t, const char *s)
{
	text_char(t, '"');
	for (; *s; s++) {
		const unsigned char byte = (unsigned char)*s, next = (unsigned char)s[1];
		const bool two = byte == 0xC2 && next >= 0x80 && next < 0xA0;
		if (byte == '"' || byte == '\\')
			text_char(t, '\\');
		if (byte < 0x20 || byte == 0x7F || two)
			text_printf(t, "\\u%04x", two ? next : byte);
		else
			text_char(t, *s);
		s += two;
	}
	text_char(t, '"');
}

void text_quoted(Text *t, const char *s)
{
	text_char(t, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\') {
			text_char(t, '\\');
			text_char(t, (char)c);
		} else if (c == '\n') {
			text_str(t, "\\n");
		} else if (c == '\t') {
			text_str(t, "\\t");
		} else if (c < 0x20 || c == 0x7f) {
			text_printf(t, "\\x%02X", c);
		} else {
			text_char(t, (char)c);
		}
	}
	text_char(t, '"');
}

enum { NAME_MAX_LETTERS = 40 };

// Optimal string alignment distance (Damerau 1964): letters put in, left out, changed, and
// neighbours exchanged, no place more than once.
static int name_distance(const char *a, const char *b)
{
	const int n = (int)strlen(a), m = (int)strlen(b);
	int rows[3][NAME_MAX_LETTERS + 1];
	int *before = rows[0], *last = rows[1], *row = rows[2];
	if (n > NAME_MAX_LETTERS || m > NAME_MAX_LETTERS)
		return NAME_MAX_LETTERS;
	for (int k = 0; k <= m; k++)
		last[k] = before[k] = k;
	for (int i = 1; i <= n; i++) {
		row[0] = i;
		for (int k = 1; k <= m; k++) {
			int d = last[k - 1] + (a[i - 1] != b[k - 1]);
			d = last[k] + 1 < d ? last[k] + 1 : d;
			d = row[k - 1] + 1 < d ? row[k - 1] + 1 : d;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				d = before[k - 2] + 1 < d ? before[k - 2] + 1 : d;
			row[k] = d;
		}
		int *const free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	return last[m];
}

const char *name_nearest(const char *word, int n, const char *const *names)
{
	const int letters = (int)strlen(word), limit = letters / 3 < 2 ? letters / 3 : 2;
	const char *found = NULL;
	for (int i = 0, least = limit + 1; i < n; i++) {
		const int distance = name_distance(word, names[i]);
		if (distance < least) {
			least = distance;
			found = names[i];
		}
	}
	return found;
}

const char *name_meant(Arena *a, const char *word, int n, const char *const *names)
{
	const char *name = name_nearest(word, n, names);
	return name ? arena_printf(a, "; did you mean '%s'?", name) : "";
}
