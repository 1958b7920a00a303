// Single numbers in model_run, as C. Which are variables says lower/analysis/numbers.c. Called by
// run.c, branch.c and the backends.
#include "codegen/model/model.h"

const Value *number_local(const Codegen *cg, const Place *p)
{
	return number_variable(&cg->numbers, p);
}

const Value *variable_local(const Codegen *cg, const Place *p)
{
	const Value *number = number_local(cg, p);
	return number ? number : array_variable(&cg->numbers, p);
}

// What a constant of one element holds, as C; NULL: it is none.
static const char *constant_text(const Codegen *cg, const Value *v)
{
	const DType t = v->type->dtype;
	if (cg->backend->device || !constant_is_number(v))
		return NULL;
	const Attr *data = op_attr(v->def, "value");
	if (dtype_is_float(t))
		return scalar_float(cg->arena, t, tensor_get_f(data->tensor, 0));
	return scalar_int(cg->arena, type_scalar(cg->ctx, t == DT_BOOL ? DT_U8 : t),
	                  tensor_get_i(data->tensor, 0));
}

bool constant_is_text(const Codegen *cg, const Value *v)
{
	const Region *r = &cg->module->regions[0];
	return r->first != r->last && !cg->backend->device && constant_is_passed(v);
}

const char *tensor_element(Codegen *cg, const Value *v)
{
	const char *text = constant_text(cg, value_place(v).root);
	if (text)
		return text;
	const char *pointer = tensor_pointer(cg, v);
	return pointer ? pointer_element(cg->arena, pointer) : NULL;
}
