// Tensor arrays. A legacy array is one variable that operators change in place; here every change
// gives a new value, of the type that array_type.c knows.
#include "frontend/translate/control.h"
#include "frontend/translate/general.h"
#include "frontend/translate/lod.h"
#include "ir/build/build.h"

#include <string.h>

bool array_assign(OpJob *j, const char *var, Value *v)
{
	if (!array_learn(j, var, v->type))
		return false;
	const Binding *b = scope_find(j->t, var);
	const Type *type = array_type(j->t, b->desc);
	// An empty array can become one of any type.
	if (v->type != type && v->def && v->def->code == OP_PD_CREATE_ARRAY)
		v = undefined_value(&j->b, type);
	write_var(j, var, v);
	return true;
}

Value *array_empty(OpJob *j, const Paddle__VarDesc *v)
{
	Loc l = {.file = j->t->c->file,
	         .block = j->t->block_index,
	         .op = -1,
	         .var = context_str(j->t->c, v->name)};
	Builder b = top_builder(j, context_loc(j->t->c, &l));
	Value *a = undefined_value(&b, array_type(j->t, v));
	a->name = l.var;
	return a;
}

// An operation on arrays whose result is the array in variable `var`.
static Value *build_array(OpJob *j, enum OpCode code, int n, Value *const *operands,
                          const char *var)
{
	const Binding *b = scope_find(j->t, var);
	const Type *type = array_type(j->t, b->desc);
	Op *op = op_new(j->t->c, code, j->b.loc, 1, &type, n, operands, 0, 0);
	op_append(j->t->block, op);
	return op_result(op, 0);
}

static bool position_is_one(OpJob *j, const Value *v, const char *slot)
{
	int64_t n;
	if (!type_is_tensor(v->type) || !dtype_is_int(v->type->dtype) ||
	    (type_const_numel(v->type, &n) && n != 1))
		return job_fail(j, "input %s must be one integer", slot);
	return true;
}

bool array_write_translate(OpJob *j)
{
	const char *x = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "X"), 0);
	const char *i = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "I"), 0);
	const char *out = slot_var(slot_find(j->desc->n_outputs, j->desc->outputs, "Out"), 0);
	if (!x || !i || !out)
		return job_fail(j, "needs variables in X, I and Out");
	Value *element = read_var(j, "X", x), *at = read_var(j, "I", i);
	if (!element || !at)
		return false;
	if (!array_takes(j, out, element->type))
		return array_refuse(j, out, element->type);
	if (!array_learn(j, out, element->type) || !position_is_one(j, at, "I"))
		return false;
	if (element->type->kind != TY_TENSOR)
		return job_fail(j, "input X is no tensor");
	Value *array = read_var(j, "Out", out);
	if (!array)
		return false;
	Value *const operands[] = {array, at, element};
	Value *after = build_array(j, OP_PD_ARRAY_WRITE, 3, operands, out);
	write_var(j, out, after);
	return lod_array_write(j, out, array, at, element, after);
}

// Whether `element` was written to an array, but never at `at`.
static bool written_elsewhere(const Value *element, const Value *at)
{
	bool written = false;
	for (const Use *u = element->uses; u; u = u->next) {
		if (u->user->code != OP_PD_ARRAY_WRITE || u->index != 2)
			continue;
		if (op_operand(u->user, 1) == at)
			return false;
		written = true;
	}
	return written;
}

// As the gradient of a write it names the tensor that was written: an element that is not there
// would be zeros like that one. Gradients of arrays have all elements. Where a loop has counted on
// since the write, Paddle reads another element's gradient: what that is depends on how it stores
// them, and is refused if anybody reads it.
bool array_read_inputs(OpJob *j)
{
	Context *c = j->t->c;
	const char *x = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "X_W"), 0);
	const char *i = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "I"), 0);
	Value *element = x ? read_var(j, "X_W", x) : NULL,
		  *at = element && i ? read_var(j, "I", i) : NULL;
	if (x && (!element || !at))
		return false;
	const char *out = slot_var(slot_find(j->desc->n_outputs, j->desc->outputs, "Out"), 0);
	if (x && out && flow_live_after(j->t, out) && written_elsewhere(element, at))
		return job_fail(j,
		                "'%s' was written where '%s' no longer points: the gradient of another "
		                "element is not supported",
		                x, i);
	Paddle__OpDesc *d = NEW(c->arena, Paddle__OpDesc);
	*d = *j->desc;
	d->inputs = NEW_ARRAY(c->arena, d->n_inputs + 1, Paddle__OpSlot *);
	d->n_inputs = 0;
	for (size_t s = 0; s < j->desc->n_inputs; s++)
		if (strcmp(j->desc->inputs[s]->parameter, "X_W") != 0)
			d->inputs[d->n_inputs++] = j->desc->inputs[s];
	j->desc = d;
	return general_inputs(j);
}

// ---- slice: of a tensor, or of an array ---------------------------------------------------------

// A bound of the slice as one integer: the operand, or the attribute.
static Value *slice_bound(OpJob *j, const char *operand, const char *attr)
{
	Value *v = job_operand(j, operand);
	if (v && v->type->kind == TY_VEC) {
		if (!v->def || v->def->noperand != 1)
			return NULL;
		v = op_operand(v->def, 0);
	}
	if (v)
		return v;
	const Attr *a = job_attr(j, attr);
	if (!a || a->n != 1 || a->kind != ATTR_DIMS || !dim_is_const(a->dims[0]))
		return NULL;
	Tensor *t = tensor_new(j->t->c->arena, DT_I64, 1, (const int64_t[]){1});
	tensor_set_i(t, 0, a->dims[0]->value);
	return build_constant(&j->b, t);
}

bool slice_create(OpJob *j)
{
	Value *array = job_operand(j, "input");
	if (array->type->kind != TY_ARRAY)
		return general_create(j);
	const Attr *drop = job_attr(j, "decrease_axis");
	const char *out = job_output(j, 0, 0);
	Value *start = slice_bound(j, "starts_tensor", "starts"),
		  *end = slice_bound(j, "ends_tensor", "ends");
	if (!start || !end || !position_is_one(j, start, "StartsTensor") ||
	    !position_is_one(j, end, "EndsTensor"))
		return job_fail(j, "a slice of a tensor array needs one start and one end");
	Value *const operands[] = {array, start, end};
	if (drop && drop->n) {
		Value *v = build2(&j->b, OP_PD_ARRAY_READ, array, start, NULL);
		j->op = v ? v->def : NULL;
		return v != NULL;
	}
	if (!out || !array_learn(j, out, array->type))
		return false;
	j->op = build_array(j, OP_PD_ARRAY_SLICE, 3, operands, out)->def;
	return true;
}
