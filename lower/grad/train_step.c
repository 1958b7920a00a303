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

Value *train_state(const Train *t, const char *name, const Type *type, double begin)
{
	int64_t dims[MAX_RANK];
	for (int i = 0; i < type->rank; i++)
		dims[i] = type->dims[i]->value;
	name = context_str(t->c, name);
	if (param_get(t->c, name)) {
		train_fail(t, 0, "the program has a parameter '%s': the optimizer's state needs the name",
		           name);
		return NULL;
	}
	Tensor *tensor = tensor_new(t->c->arena, type->dtype, type->rank, dims);
	for (int64_t i = 0; begin != 0 && i < tensor_numel(tensor); i++)
		tensor_set_f(tensor, i, begin);
	param_set(t->c, name, tensor);
	const Loc l = {.file = t->c->file, .block = -1, .op = -1, .var = name};
	Op *op = op_new(t->c, OP_BUILTIN_GET_PARAMETER, context_loc(t->c, &l), 1, &type, 0, NULL, 0, 0);
	op_set_attr(op, "name", attr_str(t->c, name));
	op_result(op, 0)->name = name;
	op_result(op, 0)->persistable = op_result(op, 0)->stop_gradient = true;
	op_insert_before(module_block(t->module)->first, op);
	return op_result(op, 0);
}

Value *train_number(const Train *t, const char *name, DType dtype, double begin)
{
	return train_state(t, name, type_tensor(t->c, dtype, 0, NULL, 0), begin);
}

Value *train_steps(Train *t)
{
	if (!t->step)
		t->step = train_number(t, "train.step", DT_I64, 0);
	return t->step;
}
