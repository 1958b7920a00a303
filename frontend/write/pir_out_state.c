// Inputs, outputs, constants, parameters and what changes them; lists of values.
#include "frontend/write/pir_out.h"

#include <string.h>

bool out_feed(PirWriter *w, const Op *op)
{
	const Value *v = op_result((Op *)op, 0);
	if (op_attr(op, "lod_of") || op_attr(op, "part") || v->type->kind != TY_TENSOR)
		return out_fail(w, "Paddle 3 takes neither arrays nor sequences (LoD) as inputs");
	OutOp *o = out_new(w, "1.data", 0, 1);
	int64_t *dims = NEW_ARRAY(w->c->arena, (size_t)v->type->rank + 1, int64_t);
	for (int i = 0; i < v->type->rank; i++)
		dims[i] = dim_is_const(v->type->dims[i]) ? v->type->dims[i]->value : -1;
	out_attr_str(o, "name", op_str(op, "name", ""));
	out_attr_ints(o, "shape", PIR_INTARRAY, v->type->rank, dims);
	out_attr_dtype(o, "dtype", attr_dtype(w->c, v->type->dtype));
	out_attr_place(o, "place");
	o->out[0] = (OutResult){.type = v->type, .value = v};
	out_op(w, o);
	return true;
}

// Of two outputs of one name Paddle 3.2 fills one.
static bool is_named_before(const Op *fetch)
{
	for (const Op *op = fetch->prev; op; op = op->prev)
		if (op->code == OP_PD_FETCH && !strcmp(op_str(op, "name", ""), op_str(fetch, "name", "")))
			return true;
	return false;
}

bool out_fetch(PirWriter *w, const Op *op)
{
	const Value *v = op_operand(op, 0);
	if (op_attr(op, "lod_of") || op_attr(op, "part") || v->type->kind != TY_TENSOR)
		return out_fail(w, "Paddle 3 gives neither arrays nor sequences (LoD) as outputs");
	OutOp *o = out_new(w, "1.fetch", 1, 1);
	const char *name = op_str(op, "name", "");
	const long long col = (long long)op_int(op, "col", 0);
	out_attr_str(o, "name",
	             is_named_before(op) ? arena_printf(w->c->arena, "%s.%lld", name, col) : name);
	out_attr_int(o, "col", PIR_I32, col);
	o->in[0] = out_number(w, v);
	o->out[0] = (OutResult){.type = v->type, .persistable = true};
	out_op(w, o);
	return true;
}

// ---- constants ----------------------------------------------------------------------------------

static const Attr *elements(PirWriter *w, const Tensor *t)
{
	const int n = (int)tensor_numel(t);
	int64_t *ints = NEW_ARRAY(w->c->arena, (size_t)n + 1, int64_t);
	double *floats = NEW_ARRAY(w->c->arena, (size_t)n + 1, double);
	for (int i = 0; i < n; i++) {
		ints[i] = dtype_is_float(t->dtype) ? 0 : tensor_get_i(t, i);
		floats[i] = tensor_get_f(t, i);
	}
	return dtype_is_float(t->dtype) ? attr_floats(w->c, n, floats) : attr_ints(w->c, n, ints);
}

bool out_constant(PirWriter *w, const Op *op)
{
	const Tensor *t = op_attr(op, "value")->tensor;
	const Value *v = op_result((Op *)op, 0);
	if (dtype_is_complex(t->dtype))
		return out_fail(w, "complex constants have no form in Paddle 3");
	const bool ints = t->dtype == DT_I64 && t->rank == 1;
	OutOp *o = out_new(w, ints ? "1.full_int_array" : "1.assign_value", 0, 1);
	if (!ints)
		out_attr_ints(o, "shape", PIR_I32S, t->rank, t->dims);
	if (ints)
		out_attr(o, "value", PIR_I64S, elements(w, t));
	out_attr_dtype(o, "dtype", attr_dtype(w->c, t->dtype));
	if (!ints)
		out_attr(o, "values", PIR_SCALARS, elements(w, t));
	out_attr_place(o, "place");
	o->out[0] = (OutResult){.type = v->type, .value = v};
	out_op(w, o);
	return true;
}

// ---- parameters ---------------------------------------------------------------------------------

// Whether what a parameter held before is needed once it has been written, or is written into
// another one.
static bool overtaken(PirWriter *w, const char *name)
{
	const Op *set = name_map_get(&w->sets, name);
	for (Op *op = set ? module_block(w->module)->first : NULL; op; op = op->next) {
		if (op->code != OP_BUILTIN_GET_PARAMETER || strcmp(op_str(op, "name", ""), name) != 0)
			continue;
		if (out_read_later(w, op_result(op, 0), set))
			return true;
		for (const Use *u = op_result(op, 0)->uses; u; u = u->next)
			if (u->user->code == OP_BUILTIN_SET_PARAMETER)
				return true;
	}
	return false;
}

bool out_parameter(PirWriter *w, const Op *op)
{
	const Value *v = op_result((Op *)op, 0);
	const char *name = op_str(op, "name", "");
	// A later read of the same parameter has the number of the first.
	const Op *first = op_parent(op) == w->module ? name_map_get(&w->gets, name) : op;
	if (!param_get(w->c, name))
		return out_fail(w, "parameter '%s' has no value", name);
	if (op_parent(op) != w->module)
		return out_fail(w, "parameter '%s' is read inside of a region", name);
	if (first != op) {
		out_bind(w, v, out_number(w, op_result((Op *)first, 0)));
		return true;
	}
	text_printf(w->t, "%s\n{\"#\":\"p\",\"A\":[0,1,1,", w->first ? "" : ",");
	w->first = false;
	text_json(w->t, name);
	text_printf(w->t, "],\"DA\":[],\"O\":{\"%%\":%lld,\"TT\":", (long long)w->next);
	if (!out_type(w, w->t, v->type))
		return false;
	text_printf(w->t, "},\"OA\":[1,%d,%d],\"QA\":[]}", v->stop_gradient, !v->stop_gradient);
	out_bind(w, v, w->next);
	pointer_map_set_index(&w->parameters, op, (int)w->next++);
	out_size_note(w, v);
	if (overtaken(w, name)) {
		OutOp *copy = out_new(w, "1.assign", 1, 1);
		copy->in[0] = out_number(w, v);
		copy->out[0] = (OutResult){.type = v->type, .value = v};
		out_op(w, copy);
	}
	return true;
}

const Op *out_set_of(const Value *result, const Value *operand)
{
	if (!operand->def || operand->def->code != OP_BUILTIN_GET_PARAMETER)
		return NULL;
	for (const Use *u = result->uses; u; u = u->next)
		if (u->user->code == OP_BUILTIN_SET_PARAMETER &&
		    !strcmp(op_str(u->user, "name", ""), op_str(operand->def, "name", "")))
			return u->user;
	return NULL;
}

// `assign_out_` writes into the parameter; an operation in place may have done so before.
bool out_set_parameter(PirWriter *w, const Op *op)
{
	const char *name = op_str(op, "name", "");
	const Op *get = name_map_get(&w->gets, name);
	const Value *v = op_operand(op, 0);
	if (!get)
		return out_fail(w, "parameter '%s' is written, but has no value before", name);
	if (op_parent(op) != w->module)
		return out_fail(w, "parameter '%s' is written inside of a region", name);
	if (pointer_map_get(&w->placed, op))
		return true;
	OutOp *o = out_new(w, "1.assign_out_", 2, 1);
	o->in[0] = out_number(w, v);
	o->in[1] = pointer_map_index(&w->parameters, get);
	o->out[0].type = get->results[0].type;
	out_op(w, o);
	return true;
}

// ---- lists --------------------------------------------------------------------------------------

bool out_combine(PirWriter *w, const Op *op)
{
	OutOp *o = out_new(w, "0.combine", op->noperand, 1);
	for (int i = 0; i < op->noperand; i++)
		o->in[i] = out_number(w, op_operand(op, i));
	o->out[0] = (OutResult){.type = op->results[0].type, .value = &op->results[0]};
	out_op(w, o);
	return true;
}

bool out_slice(PirWriter *w, const Op *op)
{
	OutOp *o = out_new(w, "0.slice", 1, 1);
	o->in[0] = out_number(w, op_operand(op, 0));
	out_attr_int(o, "index", PIR_I32, op_int(op, "index", 0));
	o->out[0] = (OutResult){.type = op->results[0].type, .value = &op->results[0]};
	out_op(w, o);
	return true;
}
