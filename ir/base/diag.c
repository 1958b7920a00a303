// Diagnostics: collected in order, printed like clang's. Used by everything that can find a fault.
#include "ir/base/base.h"

#include <string.h>

typedef struct Message {
	struct Message *next;
	Severity severity;
	const char *prefix; // "file: block 1, op 7 ...: "
	const char *text;
} Message;

struct Diag {
	Arena *arena;
	Message *first, **last;
	int errors;
	bool werror;
};

Diag *diag_new(Arena *a)
{
	Diag *d = NEW(a, Diag);
	d->arena = a;
	d->last = &d->first;
	return d;
}

int diag_errors(const Diag *d)
{
	return d->errors;
}

void diag_werror(Diag *d, bool on)
{
	d->werror = on;
}

bool loc_print(Text *t, const Loc *l)
{
	if (!l->type && !l->var)
		return false;
	if (!l->type) {
		text_printf(t, "variable '%s'", l->var);
		return true;
	}
	if (l->block >= 0 && l->op >= 0)
		text_printf(t, "block %d, op %d ", l->block, l->op);
	text_printf(t, "'%s'", l->type);
	if (l->var)
		text_printf(t, " (%s '%s')", l->slot ? l->slot : "variable", l->var);
	return true;
}

static const char *loc_prefix(Arena *a, const Loc *l)
{
	Text t;
	text_init(&t, a);
	if (!l)
		return t.text;
	if (l->file) {
		text_str(&t, l->file);
		if (l->line > 0)
			text_printf(&t, ":%d:%d", l->line, l->col);
		text_str(&t, ": ");
	}
	if (loc_print(&t, l))
		text_str(&t, ": ");
	return t.text;
}

static void diag_add(Diag *d, Severity s, const Loc *loc, const char *fmt, va_list ap)
{
	Message *m = NEW(d->arena, Message);
	if (s == SEV_WARNING && d->werror)
		s = SEV_ERROR;
	m->severity = s;
	m->prefix = loc_prefix(d->arena, loc);
	m->text = arena_vprintf(d->arena, fmt, ap);
	*d->last = m;
	d->last = &m->next;
	d->errors += s == SEV_ERROR;
}

DiagMark diag_mark(const Diag *d)
{
	return (DiagMark){.end = d->last, .errors = d->errors};
}

void diag_rewind(Diag *d, DiagMark m)
{
	d->last = m.end;
	*d->last = NULL;
	d->errors = m.errors;
}

void diag_verror(Diag *d, const Loc *loc, const char *before, const char *fmt, va_list ap)
{
	const char *text = arena_vprintf(d->arena, fmt, ap);
	diag_error(d, loc, "%s%s", before ? before : "", text);
}

void diag_error(Diag *d, const Loc *loc, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_add(d, SEV_ERROR, loc, fmt, ap);
	va_end(ap);
}

void diag_warning(Diag *d, const Loc *loc, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_add(d, SEV_WARNING, loc, fmt, ap);
	va_end(ap);
}

void diag_note(Diag *d, const Loc *loc, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_add(d, SEV_NOTE, loc, fmt, ap);
	va_end(ap);
}

void diag_flush(Diag *d, FILE *to, bool colour)
{
	static const char *const words[] = {"note", "warning", "error"};
	static const char *const colours[] = {"\033[36m", "\033[35m", "\033[31m"};
	for (Message *m = d->first; m; m = m->next) {
		const char *prefix = *m->prefix ? m->prefix : "pdcc: ";
		if (colour)
			fprintf(to, "\033[1m%s%s%s:\033[0m %s\n", prefix, colours[m->severity],
			        words[m->severity], m->text);
		else
			fprintf(to, "%s%s: %s\n", prefix, words[m->severity], m->text);
	}
	d->first = NULL;
	d->last = &d->first;
}
