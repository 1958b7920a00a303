// The lines of a body in C and the braces between them. Called by model/declare.c.
#include "codegen/text/braces.h"
#include "ir/base/vec.h"

#include <string.h>

static bool begins(const char *p, const char *end, const char *word)
{
	const size_t n = strlen(word);
	return (size_t)(end - p) >= n && !memcmp(p, word, n);
}

static ScopeKind scope_kind(const char *p, const char *end)
{
	if (begins(p, end, "if (") || begins(p, end, "} else if ("))
		return SCOPE_IF;
	if (begins(p, end, "} else {"))
		return SCOPE_ELSE;
	if (begins(p, end, "for (;;)"))
		return SCOPE_FOREVER;
	if (begins(p, end, "for (") || begins(p, end, "while (") || begins(p, end, "PDRT_LANES "))
		return SCOPE_LOOP;
	if (begins(p, end, "switch ("))
		return SCOPE_SWITCH;
	const bool plain = *p == '{' || begins(p, end, "case ") || begins(p, end, "default:");
	return plain ? SCOPE_BLOCK : SCOPE_LIST;
}

static Jump jump_of(const char *p, const char *end)
{
	return begins(p, end, "break;")    ? JUMP_BREAK
	       : begins(p, end, "return ") ? JUMP_RETURN
	                                   : JUMP_NONE;
}

// What asks without braces: the next line depends on it.
static bool asks_alone(const char *p, const char *end)
{
	const bool asks = begins(p, end, "if (") || begins(p, end, "else") || begins(p, end, "for (") ||
	                  begins(p, end, "while (");
	return asks && end[-1] != '{' && end[-1] != ';';
}

// The braces of a line: one that closes what was open, one that opens something.
static void braces(RunLines *l, Arena *a, RunLine *line, int number, const char *p, const char *end)
{
	int now = line->scope, head = number;
	if (*p == '}') {
		l->scopes[now].close = number;
		head = l->scopes[now].head;
		now = l->scopes[now].outer;
		line->scope = now;
	}
	if (end[-1] != '{')
		return;
	VEC_ROOM(a, l->scopes, l->nscope, l->cscope);
	l->scopes[l->nscope] = (RunScope){.kind = scope_kind(p, end),
	                                  .outer = now,
	                                  .depth = l->scopes[now].depth + 1,
	                                  .head = head,
	                                  .open = number};
	line->opens = l->nscope++;
}

// In a comment of several lines the later ones begin with ` *`.
static bool is_aside(const char *p, const char *end)
{
	return p == end || *p == '#' || begins(p, end, "/*") || begins(p, end, " *");
}

RunLines run_lines_find(Arena *a, const Text *run)
{
	RunLines l = {0};
	int now = 0;
	bool under = false;
	VEC_ROOM(a, l.scopes, l.nscope, l.cscope);
	l.scopes[l.nscope++] = (RunScope){.open = -1};
	for (size_t at = 0; at < run->len;) {
		const char *from = run->text + at, *stop = memchr(from, '\n', run->len - at);
		const char *end = stop ? stop : run->text + run->len, *p = from;
		while (p < end && *p == '\t')
			p++;
		RunLine line = {.from = at,
		                .to = (size_t)(end - run->text),
		                .tabs = (int)(p - from),
		                .scope = now,
		                .opens = -1,
		                .blank = p == end,
		                .aside = is_aside(p, end)};
		if (!line.aside) {
			braces(&l, a, &line, l.n, p, end);
			now = line.opens >= 0 ? line.opens : line.scope;
			line.under = under;
			line.jump = jump_of(p, end);
			under = asks_alone(p, end);
		}
		VEC_ROOM(a, l.items, l.n, l.cap);
		l.items[l.n++] = line;
		at = line.to + 1;
	}
	l.scopes[0].close = l.n;
	return l;
}
