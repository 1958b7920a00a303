// Lines and comments of model_run, as deep as the blocks around them. Called by whatever prints
// calls.
#include "codegen/model/model.h"

#include <stdarg.h>

void run_line(Codegen *cg, int depth, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	text_line(&cg->run, cg->depth + depth, "%s", arena_vprintf(cg->arena, fmt, ap));
	va_end(ap);
	cg->opened = false;
}

void run_comment(Codegen *cg, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(cg->arena, fmt, ap);
	va_end(ap);
	if (!cg->opened)
		text_char(&cg->run, '\n');
	run_line(cg, 1, "/* %s */", text);
}

void run_open(Codegen *cg, const char *text)
{
	run_line(cg, 1, "%s {", text);
	cg->depth++;
	cg->opened = true;
}

void run_close(Codegen *cg)
{
	cg->depth--;
	run_line(cg, 1, "}");
}
