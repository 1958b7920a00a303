// Loops whose body is one statement have no braces, as in what a person writes. Of text that this
// compiler printed: one statement a line. Called by func/func.c.
#include "codegen/text/text.h"

#include <string.h>

// Whether a line, behind its tabs, is an assignment or a call: what begins with two words is a
// declaration, or says what to do next.
static bool is_plain(const char *p, const char *end)
{
	while (p < end && char_is_word(*p))
		p++;
	if (p == end || end[-1] != ';')
		return false;
	return *p == '[' || *p == '(' ||
	       (*p == ' ' && !char_is_word(p[1]) && p[1] != '*' && p[1] != '(');
}

// Whether the lines from `p` up to `end` are a statement: a plain one, or a loop.
static bool is_statement(const char *p, const char *end)
{
	const size_t tabs = strspn(p, "\t");
	const char *next = strchr(p, '\n') + 1;
	if (next > end)
		return false;
	if (strncmp(p + tabs, "for (", 5) != 0)
		return next == end && is_plain(p + tabs, next - 1);
	for (p = next; p < end; p = next) {
		const size_t deep = strspn(p, "\t");
		next = strchr(p, '\n') + 1;
		if (deep < tabs || (deep == tabs && (next != end || p[deep] != '}')))
			return false;
	}
	return true;
}

// The line that closes a block opened behind `tabs` tabs, whose body begins at p; NULL: there is
// something else.
static const char *closing_line(const char *p, size_t tabs)
{
	for (const char *next; *p; p = next + 1) {
		if (!(next = strchr(p, '\n')))
			return NULL;
		const size_t deep = strspn(p, "\t");
		if (deep <= tabs)
			return deep == tabs && next - p == (ptrdiff_t)tabs + 1 && p[deep] == '}' ? p : NULL;
	}
	return NULL;
}

static void cut(Text *t, size_t from, size_t n)
{
	memmove(t->text + from, t->text + from + n, t->len - from - n + 1);
	t->len -= n;
}

// The line that begins at `at`, where it is the head of a loop.
static void loop_unbrace(Text *t, size_t at)
{
	const char *p = t->text + at, *end = strchr(p, '\n');
	const size_t tabs = strspn(p, "\t");
	if (!end || end - p < 8 || strncmp(p + tabs, "for (", 5) != 0 || memcmp(end - 2, " {", 2) != 0)
		return;
	const char *close = closing_line(end + 1, tabs);
	if (!close || close == end + 1 || !is_statement(end + 1, close))
		return;
	const size_t brace = (size_t)(end - 2 - t->text);
	cut(t, (size_t)(close - t->text), tabs + 2);
	cut(t, brace, 2);
}

void text_unbrace(Text *t)
{
	for (size_t at = t->len; at-- > 0;)
		if (t->text[at] == '\n' && t->text[at + 1])
			loop_unbrace(t, at + 1);
}
