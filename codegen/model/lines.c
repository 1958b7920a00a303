// Lines and comments of model_run, as deep as the blocks around them. Called by whatever prints
// calls.
#include "codegen/model/model.h"
#include "ir/base/vec.h"

#include <stdarg.h>
#include <string.h>

enum { COLUMNS = 100, TAB = 4 };

void run_line(Codegen *cg, int depth, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	text_line(&cg->run, cg->depth + depth, "%s", arena_vprintf(cg->arena, fmt, ap));
	va_end(ap);
	cg->opened = false;
}

// --trace: with its comment an operator begins.
static void trace_begin(Codegen *cg)
{
	TraceState *t = &cg->trace;
	if (!t->next)
		return;
	VEC_ROOM(cg->arena, t->ops, t->n, t->cap);
	t->ops[t->n] = t->next;
	t->next = NULL;
	run_line(cg, 1, "pd_trace_step(&m->tracer, &trace_ops[%d], PD_TRACE_BEGIN);", t->n++);
}

// Broken at words where it is too long.
static void comment_print(Codegen *cg, const char *text)
{
	const size_t room = (size_t)(COLUMNS - TAB * (cg->depth + 1)) - strlen("/*  */");
	const char *begin = "/* ";
	while (strlen(text) > room) {
		size_t n = room;
		while (n && text[n] != ' ')
			n--;
		if (!n)
			n = strcspn(text, " ");
		if (!text[n])
			break;
		run_line(cg, 1, "%s%.*s", begin, (int)n, text);
		begin = " * ";
		text += n + 1;
	}
	run_line(cg, 1, "%s%s */", begin, text);
}

void run_comment(Codegen *cg, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(cg->arena, fmt, ap);
	va_end(ap);
	if (!cg->opened)
		text_char(&cg->run, '\n');
	comment_print(cg, text);
	trace_begin(cg);
}

void run_open(Codegen *cg, const char *text)
{
	run_line(cg, 1, *text ? "%s {" : "%s{", text);
	cg->depth++;
	cg->opened = true;
}

void run_close(Codegen *cg)
{
	cg->depth--;
	run_line(cg, 1, "}");
}
