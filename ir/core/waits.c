// Lines of numbers in attributes: "5: 3 4". Called by the verifier, by the passes that make and
// check them, and by printers.
#include "ir/core/waits.h"
#include "ir/base/vec.h"

#include <stdlib.h>

// A number of a node, from 1; 0: none stands there.
static int number_read(const char **at)
{
	char *end;
	if (**at < '1' || **at > '9')
		return 0;
	const long n = strtol(*at, &end, 10);
	*at = end;
	return n <= INT32_MAX ? (int)n : 0;
}

bool waits_line_read(Arena *a, const char *text, WaitsLine *line)
{
	int *items = NULL, cap = 0;
	*line = (WaitsLine){.number = number_read(&text)};
	if (!line->number || *text++ != ':')
		return false;
	while (*text) {
		if (*text++ != ' ')
			return false;
		VEC_ROOM(a, items, line->n, cap);
		if (!(items[line->n++] = number_read(&text)))
			return false;
	}
	line->list = items;
	return true;
}

const char *waits_line_text(Context *c, const WaitsLine *line)
{
	Text t;
	text_init(&t, c->arena);
	text_printf(&t, "%d:", line->number);
	for (int i = 0; i < line->n; i++)
		text_printf(&t, " %d", line->list[i]);
	return t.text;
}

bool waits_find(Arena *a, const Op *op, const char *attr, int number, WaitsLine *line)
{
	const Attr *lines = op_attr(op, attr);
	for (int i = 0; lines && lines->kind == ATTR_STRS && i < lines->n; i++)
		if (waits_line_read(a, lines->strs[i], line) && line->number == number)
			return true;
	return false;
}
