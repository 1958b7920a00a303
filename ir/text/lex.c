// The lowest part of the IR parser: blanks, words, numbers, strings, and where they are. Called by
// parse.c and parse_attr.c.
#include "ir/text/lex.h"
#include "ir/base/vec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void ptr_list_add(Context *c, PtrList *l, const void *item)
{
	VEC_ROOM(c->arena, l->items, l->n, l->cap);
	l->items[l->n++] = item;
}

void lex_init(Lexer *l, Context *c, const char *file, const char *text, size_t n)
{
	*l = (Lexer){
		.ctx = c, .file = context_str(c, file), .start = text, .at = text, .end = text + n};
	l->line = 1;
	l->line_at = l->line_start = text;
}

Loc lex_loc(Lexer *l, const char *where)
{
	if (where < l->line_at) {
		l->line = 1;
		l->line_at = l->line_start = l->start;
	}
	for (; l->line_at < where; l->line_at++) {
		if (*l->line_at == '\n') {
			l->line++;
			l->line_start = l->line_at + 1;
		}
	}
	return (Loc){.file = l->file,
	             .block = -1,
	             .op = -1,
	             .line = l->line,
	             .col = (int)(where - l->line_start) + 1};
}

bool lex_fail(Lexer *l, const char *where, const char *fmt, ...)
{
	const Loc loc = lex_loc(l, where);
	va_list ap;
	va_start(ap, fmt);
	diag_verror(l->ctx->diag, &loc, NULL, fmt, ap);
	va_end(ap);
	return false;
}

void lex_space(Lexer *l)
{
	while (l->at < l->end) {
		if (isspace((unsigned char)*l->at)) {
			l->at++;
		} else if (*l->at == '/' && l->end - l->at > 1 && l->at[1] == '/') {
			while (l->at < l->end && *l->at != '\n')
				l->at++;
		} else {
			return;
		}
	}
}

char lex_peek(Lexer *l)
{
	lex_space(l);
	return l->at < l->end ? *l->at : 0;
}

bool lex_accept(Lexer *l, const char *token)
{
	size_t n = strlen(token);
	lex_space(l);
	if ((size_t)(l->end - l->at) < n || memcmp(l->at, token, n))
		return false;
	l->at += n;
	return true;
}

bool lex_expect(Lexer *l, const char *token)
{
	if (lex_accept(l, token))
		return true;
	if (l->at == l->end)
		return lex_fail(l, l->at, "expected '%s' before the end of the text", token);
	return lex_fail(l, l->at, "expected '%s'", token);
}

bool lex_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '@' || c == '$';
}

bool lex_word(Lexer *l, Word *out)
{
	char c = lex_peek(l);
	if (!isalpha((unsigned char)c) && c != '_')
		return false;
	out->s = l->at;
	while (l->at < l->end && lex_is_word(*l->at))
		l->at++;
	out->n = (size_t)(l->at - out->s);
	return true;
}

bool lex_keyword(Lexer *l, const char *word)
{
	lex_space(l);
	const char *before = l->at;
	Word w;
	if (lex_word(l, &w) && w.n == strlen(word) && !memcmp(w.s, word, w.n))
		return true;
	l->at = before;
	return false;
}

static const char *digits_end(const char *p, const char *end)
{
	while (p < end && isdigit((unsigned char)*p))
		p++;
	return p;
}

// Behind an exponent that begins at p, or p: there is none.
static const char *exponent_end(const char *p, const char *end)
{
	if (p == end || (*p != 'e' && *p != 'E'))
		return p;
	const char *e = p + 1;
	if (e < end && (*e == '-' || *e == '+'))
		e++;
	const char *last = digits_end(e, end);
	return last == e ? p : last;
}

// The end of the number that starts at `s`: sign, digits, fraction, exponent, or inf and nan.
static const char *number_end(const char *s, const char *end, bool *is_int)
{
	const char *p = s;
	*is_int = true;
	if (p < end && *p == '-')
		p++;
	const char *digits = p;
	if (end - p >= 3 && (!memcmp(p, "inf", 3) || !memcmp(p, "nan", 3))) {
		*is_int = false;
		return p + 3;
	}
	const char *whole = p = digits_end(p, end);
	if (p == digits)
		return NULL;
	if (end - p > 1 && *p == '.' && isdigit((unsigned char)p[1]))
		p = digits_end(p + 1, end);
	p = exponent_end(p, end);
	*is_int = p == whole;
	return p;
}

static bool text_to_int(const char *s, const char *end, int64_t *out)
{
	bool negative = *s == '-';
	int64_t v = 0;
	for (s += negative; s < end; s++) {
		int digit = *s - '0';
		if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
		    __builtin_add_overflow(v, (int64_t)(negative ? -digit : digit), &v))
			return false;
	}
	*out = v;
	return true;
}

bool lex_number(Lexer *l, bool *is_int, int64_t *i, double *f)
{
	lex_space(l);
	const char *from = l->at, *to = number_end(from, l->end, is_int);
	if (!to)
		return lex_fail(l, from, "expected a number");
	if (*is_int && !text_to_int(from, to, i))
		return lex_fail(l, from, "this integer does not fit 64 bits");
	if (!*is_int)
		*f = strtod(arena_strndup(l->ctx->arena, from, (size_t)(to - from)), NULL);
	else
		*f = (double)*i;
	l->at = to;
	return true;
}

bool lex_int(Lexer *l, int64_t *out)
{
	lex_space(l);
	const char *from = l->at, *to = from;
	if (to < l->end && *to == '-')
		to++;
	const char *digits = to;
	while (to < l->end && isdigit((unsigned char)*to))
		to++;
	if (to == digits)
		return lex_fail(l, from, "expected an integer");
	if (!text_to_int(from, to, out))
		return lex_fail(l, from, "this integer does not fit 64 bits");
	l->at = to;
	return true;
}

static int hex_digit(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// What follows a backslash at l->at; -1 after a report.
static int lex_escape(Lexer *l)
{
	const char *s = l->at;
	size_t left = (size_t)(l->end - s);
	char c = left ? *s : 0;
	l->at += left != 0;
	if (c == 'n')
		return '\n';
	if (c == 't')
		return '\t';
	if (c == '"' || c == '\\')
		return c;
	if (c == 'x' && left > 2 && hex_digit(s[1]) >= 0 && hex_digit(s[2]) >= 0) {
		int v = hex_digit(s[1]) * 16 + hex_digit(s[2]);
		l->at += 2;
		if (v)
			return v;
	}
	lex_fail(l, s, "bad escape in a string");
	return -1;
}

const char *lex_string(Lexer *l)
{
	if (!lex_expect(l, "\""))
		return NULL;
	const char *open = l->at - 1;
	Text t;
	text_init(&t, l->ctx->arena);
	while (l->at < l->end && *l->at != '"' && *l->at != '\n' && *l->at) {
		int c = (unsigned char)*l->at++;
		if (c == '\\' && (c = lex_escape(l)) < 0)
			return NULL;
		text_char(&t, (char)c);
	}
	if (l->at == l->end || *l->at != '"') {
		lex_fail(l, open, "this string does not end on its line");
		return NULL;
	}
	l->at++;
	return context_strn(l->ctx, t.text, t.len);
}

bool lex_enter(Lexer *l)
{
	if (l->depth == LEX_MAX_DEPTH)
		return lex_fail(l, l->at, "nested too deeply");
	l->depth++;
	return true;
}

void lex_leave(Lexer *l)
{
	l->depth--;
}
