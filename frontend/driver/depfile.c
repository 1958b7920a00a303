// -MD: a rule for make that says which files the output was made from. Called by cmd_compile.c.
#include "frontend/driver/driver.h"

#include <string.h>

// A name as make reads it: blanks, and backslashes in front of them, are escaped with a backslash,
// other backslashes stand for themselves. `%` means something in targets only.
static void name_print(Text *out, const char *name, bool target)
{
	for (const char *p = name; *p; p++) {
		if (strchr(target ? " \t#:%" : " \t#:", *p)) {
			for (const char *q = p; q > name && q[-1] == '\\'; q--)
				text_char(out, '\\');
			text_char(out, '\\');
		}
		text_str(out, *p == '$' ? "$" : "");
		text_char(out, *p);
	}
}

static bool name_is_first(const Context *c, int at)
{
	for (int i = 0; i < at; i++)
		if (!strcmp(c->files[i], c->files[at]))
			return false;
	return true;
}

FilePiece depfile_make(Driver *d, const char *output)
{
	const Options *o = d->options;
	const Context *c = d->ctx;
	Text text;
	if (!o->depfile)
		return (FilePiece){0};
	text_init(&text, c->arena);
	if (o->depfile_target)
		text_str(&text, o->depfile_target);
	else
		name_print(&text, output, true);
	text_char(&text, ':');
	for (int i = 0; i < c->nfile; i++) {
		if (!name_is_first(c, i))
			continue;
		text_str(&text, " \\\n  ");
		name_print(&text, c->files[i], false);
	}
	text_char(&text, '\n');
	for (int i = 1; i < c->nfile && o->depfile_phony; i++) {
		if (!name_is_first(c, i))
			continue;
		text_char(&text, '\n');
		name_print(&text, c->files[i], true);
		text_str(&text, ":\n");
	}
	const char *path = o->depfile_path ? o->depfile_path : arena_printf(c->arena, "%s.d", output);
	return (FilePiece){path, text.text, text.len};
}
