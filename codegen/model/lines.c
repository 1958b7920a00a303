// Lines and comments of model_run, as deep as the blocks around them. Called by whatever prints
// calls.
#include "codegen/model/model.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

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

void run_comment(Codegen *cg, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(cg->arena, fmt, ap);
	va_end(ap);
	Text line;
	text_init(&line, cg->arena);
	if (!cg->opened)
		text_char(&cg->run, '\n');
	text_line(&line, cg->depth + 1, "/* %s */", text);
	text_finish(line.text, line.len, &cg->run);
	cg->opened = false;
	trace_begin(cg);
}

void run_open(Codegen *cg, const char *text)
{
	run_line(cg, 1, *text ? "%s {" : "%s{", text);
	cg->depth++;
	cg->opened = true;
}

void local_declare(Codegen *cg, LocalKind kind, const char *type, const char *name,
                   const char *value)
{
	if (!cg->blocks && kind != LOCAL_NUMBER) {
		run_line(cg, 1, "%s%s = %s;", type, name, value);
		return;
	}
	VEC_ROOM(cg->arena, cg->locals_run, cg->nlocal_run, cg->clocal_run);
	cg->locals_run[cg->nlocal_run++] = (RunLocal){kind, type, name, value, "", false};
}

void local_declare_array(Codegen *cg, const char *type, const char *name, int64_t elements)
{
	local_declare(cg, LOCAL_KEPT, type, name, "{0}");
	cg->locals_run[cg->nlocal_run - 1].extent = arena_printf(cg->arena, "[%" PRId64 "]", elements);
}

void locals_print(const Codegen *cg, Text *out)
{
	for (int i = 0; i < cg->nlocal_run; i++) {
		const RunLocal *l = &cg->locals_run[i];
		text_line(out, 1, "%s%s%s = %s;", l->type, l->name, l->extent, l->value);
		if (l->unread)
			text_line(out, 1, "(void)%s;", l->name);
	}
}

void run_close(Codegen *cg)
{
	cg->depth--;
	run_line(cg, 1, "}");
}
