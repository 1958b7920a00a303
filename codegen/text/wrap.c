// Lines of C that are too long, broken at commas and operators: the last thing that happens to
// generated text. Printers need not know how long their lines become. Called by both
// backends; model/declare.c walks over lines by line_scan_step.
#include "codegen/text/text.h"

#include <string.h>

enum {
	COLUMNS = 100,
	TAB = 4,
	INDENT = 2,     // tabs of what goes on, beyond those of the line
	DEPTH_COST = 20 // columns that a break outside of a pair of parentheses is worth
};

static void quote_step(LineScan *s, const char *p)
{
	if (*p == s->quote && !(p[-1] == '\\' && p[-2] != '\\'))
		s->quote = 0;
}

void line_scan_step(LineScan *s, const char *p)
{
	if (s->rest)
		return;
	if (s->comment) {
		s->comment = p[0] != '/' || p[-1] != '*';
	} else if (s->quote) {
		quote_step(s, p);
	} else if (*p == '"' || *p == '\'') {
		s->quote = *p;
	} else if (p[0] == '/' && (p[1] == '*' || p[1] == '/')) {
		s->comment = p[1] == '*';
		s->rest = p[1] == '/';
	} else {
		s->depth += strchr("({[", *p) != NULL;
		s->depth -= strchr(")}]", *p) != NULL;
	}
}

// Whether the line may go on below after the blank at p.
static bool may_break(const LineScan *s, const char *begin, const char *p)
{
	static const char *const before[] = {",",  ";",  " +",  " -",  " *",  " /",
	                                     " %", " <", " >",  " =",  " &&", " ||",
	                                     " |", " &", " >=", " <=", " ==", " !="};
	if (*p != ' ' || s->quote || p == begin || !strncmp(p, " */", 3))
		return false;
	if (s->comment || s->rest || !strncmp(p, " ? ", 3) || !strncmp(p, " : ", 3) ||
	    !strncmp(p, " /* ", 4))
		return true;
	for (size_t i = 0; i < COUNT_OF(before); i++) {
		const size_t n = strlen(before[i]);
		if ((size_t)(p - begin) > n && !memcmp(p - n, before[i], n))
			return true;
	}
	return false;
}

static int width_of(const char *p, size_t n)
{
	int width = 0;
	for (size_t i = 0; i < n; i++)
		width += p[i] == '\t' ? TAB : ((unsigned char)p[i] & 0xc0) != 0x80;
	return width;
}

// The best place for a break in n bytes from p, of which `room` columns fit; 0: there is none.
static size_t break_find(const char *p, size_t n, int room, const LineScan *from)
{
	LineScan s = *from;
	size_t best = 0;
	int best_value = 0, column = 0;
	for (size_t i = 0; i < n && column <= room; i++) {
		if (may_break(&s, p, p + i)) {
			const bool product = i && strchr("*/%", p[i - 1]) && !s.comment && !s.rest;
			const int value = column - DEPTH_COST * (s.depth - from->depth + product);
			if (!best || value >= best_value) {
				best = i;
				best_value = value;
			}
		}
		line_scan_step(&s, p + i);
		column += width_of(p + i, 1);
	}
	return best;
}

// What a line begins with that goes on in a comment which was the whole line.
static const char *go_on(const char *line)
{
	if (line[0] == ' ' && line[1] == '*') // its second line, or a later one
		return " * ";
	return line[0] != '/' ? NULL : line[1] == '*' ? " * " : line[1] == '/' ? "// " : NULL;
}

static void line_wrap(const char *line, size_t n, Text *out)
{
	const size_t tabs = strspn(line, "\t");
	const char *mark = go_on(line + tabs);
	const int indent = (int)tabs + (mark ? 0 : INDENT);
	LineScan s = {.comment = mark && line[tabs] == ' '};
	size_t at = tabs;
	int before = (int)tabs * TAB; // columns that are taken
	for (size_t i = 0; i < tabs; i++)
		text_char(out, '\t');
	while (width_of(line + at, n - at) + before > COLUMNS) {
		const size_t stop = break_find(line + at, n - at, COLUMNS - before, &s);
		if (!stop)
			break;
		text_strn(out, line + at, stop);
		text_char(out, '\n');
		for (int i = 0; i < indent; i++)
			text_char(out, '\t');
		for (size_t i = at; i < at + stop; i++)
			line_scan_step(&s, line + i);
		const char *with = mark ? mark : s.rest ? "// " : "";
		text_str(out, with);
		before = indent * TAB + (int)strlen(with);
		at += stop + 1;
	}
	text_strn(out, line + at, n - at);
	text_char(out, '\n');
}

void text_finish_line(const char *line, size_t n, LineState *state, Text *out)
{
	const bool macro = state->macro || *line == '#';
	LineScan scan = {.comment = state->comment};
	for (size_t i = 0; i < n; i++)
		line_scan_step(&scan, line + i);
	Text plain;
	text_init(&plain, out->arena);
	if (!macro && !state->comment) {
		text_plain(line, n, &plain);
		line = plain.text;
		n = plain.len;
	}
	if (macro || width_of(line, n) <= COLUMNS) {
		text_strn(out, line, n);
		text_char(out, '\n');
	} else {
		line_wrap(line, n, out);
	}
	*state = (LineState){.macro = macro && n && line[n - 1] == '\\',
	                     .comment = scan.comment && !scan.rest};
}

void text_finish(const char *text, size_t n, Text *out)
{
	LineState state = {0};
	for (const char *p = text, *end = text + n; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		const size_t len = (size_t)((stop ? stop : end) - p);
		text_finish_line(p, len, &state, out);
		p += len + 1;
	}
}
