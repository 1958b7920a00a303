// What the files of train() share (train_step.h).
#include "lower/grad/train_step.h"
#include "ir/base/vec.h"

#include <fnmatch.h>
#include <string.h>

bool train_fail(const Train *t, int line, const char *fmt, ...)
{
	const Loc l = {
		.file = t->recipe->path, .block = -1, .op = -1, .line = line, .col = line ? 1 : 0};
	va_list ap;
	va_start(ap, fmt);
	diag_verror(t->c->diag, &l, NULL, fmt, ap);
	va_end(ap);
	return false;
}

bool train_fail_at(const Op *op, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_verror(op->ctx->diag, op->loc, NULL, fmt, ap);
	va_end(ap);
	return false;
}

const char *parameter_name(const Value *v)
{
	return v && v->def && v->def->code == OP_BUILTIN_GET_PARAMETER ? op_str(v->def, "name", "")
	                                                               : NULL;
}

bool names_match(const RecipeNames *list, const char *name)
{
	for (int i = 0; i < list->n; i++)
		if (!fnmatch(list->list[i].text, name, 0))
			return true;
	return false;
}

Builder train_builder(const Train *t, const char *type, const char *what)
{
	const Loc l = {.file = t->recipe->path, .block = -1, .op = -1, .type = type, .var = what};
	return builder_at_end(t->c, module_block(t->module), context_loc(t->c, &l));
}

void train_store(Train *t, const char *name, Value *v)
{
	for (int i = 0; i < t->nstored; i++)
		if (!strcmp(t->stored[i].name, name)) {
			t->stored[i].value = v;
			return;
		}
	VEC_ROOM(t->c->arena, t->stored, t->nstored, t->cstored);
	t->stored[t->nstored++] = (Stored){name, v};
}

Value *train_stored(const Train *t, const char *name, Value *before)
{
	for (int i = 0; i < t->nstored; i++)
		if (!strcmp(t->stored[i].name, name))
			return t->stored[i].value;
	return before;
}
