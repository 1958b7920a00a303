// Tensor arrays, and writing to them. A legacy array is one variable that operators change in
// place; here every change gives a new value, of the type of the variable (job/array_types.c).
#include "frontend/control/control.h"
#include "frontend/control/variants.h"
#include "frontend/job/array_types.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/gradient/gradient.h"

#include <string.h>

// ---- elements of several types ------------------------------------------------------------------
// An array for each element type and number of axes, and one of numbers that say of which an
// element is. A write puts something in each, so that all are as long. While a program is
// translated they are one mark, builtin.variant (variant.h), which loops and branches carry as they
// carry variables of several types.

// What stands for a type in the array of kinds: the same in all arrays of a program.
int64_t array_kind_code(const Type *t)
{
	return (int64_t)t->dtype * (MAX_RANK + 1) + t->rank;
}

Value *mixed_kinds_none(Builder *b)
{
	const Dim *one = dim_const(b->ctx, 1);
	return undefined_value(b, type_shaped(b->ctx, TY_ARRAY, DT_I64, 1, &one));
}

Value *array_of_none(Builder *b, const Type *t)
{
	Value *parts[MAX_VARIANTS];
	if (t->kind == TY_ARRAY)
		return undefined_value(b, t);
	Value *kinds = mixed_kinds_none(b);
	for (int k = 0; k < t->nelem; k++)
		parts[k] = undefined_value(b, t->elems[k]);
	return variant_make(b, kinds, t->nelem, parts);
}

static const char *kinds_name(Context *c, const char *var)
{
	return context_str(c, arena_printf(c->arena, "%s.kinds", var));
}

// Zeros in the place of an element of another type.
static Value *no_element(Builder *b, const Type *array)
{
	const Dim *dims[MAX_RANK];
	for (int d = 0; d < array->rank; d++)
		dims[d] = dim_is_found(array->dims[d]) ? dim_const(b->ctx, 1) : array->dims[d];
	return build_full(b, type_tensor(b->ctx, array->dtype, array->rank, dims, 0), 0);
}

// The end of the mixed array is that of each: passes know how long an array becomes by this.
static Value *position_in(Builder *b, Value *at, const Value *kinds, Value *part)
{
	const bool end = at->def && at->def->code == OP_PD_ARRAY_LENGTH &&
	                 op_operand(at->def, 0) == kinds;
	return end ? build1(b, OP_PD_ARRAY_LENGTH, part, NULL) : at;
}

static Value *write_part(OpJob *j, Value *array, Value *at, Value *element, const char *name)
{
	Value *const operands[] = {array, at, element};
	if (!at || !element)
		return NULL;
	Op *op = op_new(j->t->c, OP_PD_ARRAY_WRITE, j->b.loc, 1, &array->type, 3, operands, 0, 0);
	op_append(j->t->block, op);
	op_result(op, 0)->name = name;
	return op_result(op, 0);
}

static bool mixed_write(OpJob *j, const char *out, Value *mark, Value *at, Value *element)
{
	Context *c = j->t->c;
	Builder *b = &j->b;
	Value *kinds = op_operand(mark->def, 0), *parts[MAX_VARIANTS];
	const int n = variant_count(mark);
	if (lod_of(j->t, element))
		return job_fail(j, "array '%s' has elements of several types, and gets one with LoD", out);
	for (int k = 0; k < n; k++) {
		Value *part = variant_part(mark, k);
		const bool here = part->type->dtype == element->type->dtype &&
		                  part->type->rank == element->type->rank;
		parts[k] = write_part(j, part, position_in(b, at, kinds, part),
		                      here ? element : no_element(b, part->type), context_str(c, out));
		if (!parts[k])
			return false;
	}
	Value *number = build_number(b, DT_I64, 1, array_kind_code(element->type));
	kinds = write_part(j, kinds, at, number, kinds_name(c, out));
	if (kinds)
		write_var(j, out, variant_make(b, kinds, n, parts));
	return kinds != NULL;
}

// ---- operators ----------------------------------------------------------------------------------

bool array_assign(OpJob *j, const char *var, Value *v)
{
	if (!is_mixed(v) && !array_learn(j, var, v->type))
		return false;
	const Binding *b = scope_find(j->t, var);
	const Type *type = array_type(j->t, b->desc);
	// An empty array can become one of any type.
	if (v->type != type && v->def && v->def->code == OP_PD_CREATE_ARRAY)
		v = array_of_none(&j->b, type);
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
	Value *a = array_of_none(&b, array_type(j->t, v));
	a->name = l.var;
	return a;
}

Value *array_make(OpJob *j, enum OpCode code, int n, Value *const *operands, const char *var)
{
	const Binding *b = scope_find(j->t, var);
	const Type *type = j->t->component ? operands[0]->type : array_type(j->t, b->desc);
	Op *op = op_new(j->t->c, code, j->b.loc, 1, &type, n, operands, 0, 0);
	op_append(j->t->block, op);
	return op_result(op, 0);
}

bool array_position(OpJob *j, const Value *v, const char *slot)
{
	int64_t n;
	if (!type_is_tensor(v->type) || !dtype_is_int(v->type->dtype) ||
	    (type_const_numel(v->type, &n) && n != 1))
		return job_fail(j, "input %s must be one integer", slot);
	return true;
}

// The array that a write to `var` changes. The gradient of an array, which has nothing yet, has
// zeros for all elements of that array: writes give some, in any order, of which `sum` makes one.
static Value *array_to_write(OpJob *j, const char *var)
{
	Value *array = read_any(j, "Out", var);
	const char *end = strstr(var, "@GRAD");
	if (!array || !end || !array->def || array->def->code != OP_PD_CREATE_ARRAY)
		return array;
	Context *c = j->t->c;
	const Binding *of = scope_find(j->t, context_strn(c, var, (size_t)(end - var)));
	const bool known = of && of->value && of->value->type == array->type;
	return known ? gradient_zero_array(&j->b, of->value) : array;
}

bool array_write_translate(OpJob *j)
{
	const char *x = input_var(j, "X");
	const char *i = input_var(j, "I");
	const char *out = output_var(j, "Out");
	if (!x || !i || !out)
		return job_fail(j, "needs variables in X, I and Out");
	Value *element = read_var(j, "X", x), *at = read_var(j, "I", i);
	if (!element || !at)
		return false;
	if (!array_takes(j, out, element->type))
		return array_refuse(j, out, element->type);
	if (!array_learn(j, out, element->type) || !array_position(j, at, "I"))
		return false;
	if (element->type->kind != TY_TENSOR)
		return job_fail(j, "input X is no tensor");
	Value *array = j->t->stale ? NULL : array_to_write(j, out);
	if (!array)
		return false;
	if (is_mixed(array))
		return mixed_write(j, out, array, at, element);
	Value *const operands[] = {array, at, element};
	Value *after = array_make(j, OP_PD_ARRAY_WRITE, 3, operands, out);
	write_var(j, out, after);
	return lod_array_write(j, out, array, at, element, after);
}
