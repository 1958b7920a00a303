// The general rule: it takes everything from the operator table, which slots are which operands,
// which attributes have which names, and their defaults. steps.c overrides single steps of it.
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/read/gradient_names.h"
#include "ir/build/build.h"
#include "ir/text/text.h"

#include <inttypes.h>
#include <string.h>

// ---- attributes that only data tell -------------------------------------------------------------
// A program may give an axis as a variable whose contents only a run tells. The axis is moved to
// the front, the operation works on axis 0, and what it gives is moved back.

// Operations with one such axis: in an attribute that is a number, or a list of one.
static bool axis_may_move(const OpJob *j)
{
	return (j->info->traits & TRAIT_AXIS_MOVES) != 0;
}

bool axis_from_data(OpJob *j, const AttrInfo *a, Value *v)
{
	int64_t n, zero = 0;
	bool list = a->kind == ATTR_INTS;
	if (!axis_may_move(j) || strcmp(a->name, "axis") != 0 || (!list && a->kind != ATTR_INT) ||
	    !type_is_tensor(v->type) || !type_const_numel(v->type, &n) || n != 1)
		return false;
	j->axis = v;
	job_set_attr(j, a->name, list ? attr_ints(j->t->c, 1, &zero) : attr_int(j->t->c, 0));
	return true;
}

bool axis_from_operand(OpJob *j)
{
	const AttrInfo *a = op_info_attr(j->info, "axis");
	Value *v = a && a->operand ? job_operand(j, a->operand) : NULL;
	NumberList list = {0};
	if (!v || !axis_may_move(j))
		return true;
	Op *combine = v->def && v->def->code == OP_BUILTIN_COMBINE ? v->def : NULL;
	Value *only = !combine ? v : combine->noperand == 1 ? op_operand(combine, 0) : NULL;
	if (only && !numbers_of_value(j->t->c, only, &list) && axis_from_data(j, a, only))
		job_set_operand(j, a->operand, NULL);
	return true;
}

static Value *axis_moved(OpJob *j, Value *x, bool back)
{
	if (!type_is_tensor(x->type)) {
		job_fail(j, "an axis that only data tell, of an operand that is no tensor");
		return NULL;
	}
	return build2(&j->b, OP_PD_MOVE_AXIS, x, j->axis, "back", attr_bool(j->t->c, back), NULL);
}

// Every tensor of operand `v` with the axis in front. *rank: of one of them.
static Value *move_operand(OpJob *j, Value *v, int *rank)
{
	Op *list = v->def && v->def->code == OP_BUILTIN_COMBINE ? v->def : NULL;
	if (!list) {
		*rank = v->type->rank;
		return axis_moved(j, v, false);
	}
	Value **moved = NEW_ARRAY(j->t->c->arena, (size_t)list->noperand + 1, Value *);
	for (int i = 0; i < list->noperand; i++) {
		*rank = op_operand(list, i)->type->rank;
		if (!(moved[i] = axis_moved(j, op_operand(list, i), false)))
			return NULL;
	}
	return build(&j->b, OP_BUILTIN_COMBINE, list->noperand, moved, NULL);
}

// A result with the axis back in its place, when it still has it.
static Value *move_result(OpJob *j, Value *v, int rank)
{
	if (v->type->kind != TY_VEC)
		return type_is_tensor(v->type) && v->type->rank >= rank ? axis_moved(j, v, true) : v;
	Value **moved = NEW_ARRAY(j->t->c->arena, (size_t)v->type->nelem + 1, Value *);
	for (int i = 0; i < v->type->nelem; i++) {
		Value *part = build1(&j->b, OP_BUILTIN_SLICE, v, "index", attr_int(j->t->c, i), NULL);
		if (!part || !(moved[i] = move_result(j, part, rank)))
			return NULL;
	}
	return build(&j->b, OP_BUILTIN_COMBINE, v->type->nelem, moved, NULL);
}

bool create_along_axis(OpJob *j)
{
	const bool inserts = (j->info->traits & TRAIT_AXIS_NEW) != 0;
	int n = j->info->noperand, rank = 0;
	while (n > 0 && !j->operands[n - 1])
		n--;
	if (!n || (!inserts && !(j->operands[0] = move_operand(j, j->operands[0], &rank))))
		return false;
	if (inserts)
		rank = j->operands[0]->type->rank + 1;
	j->op = build_op(&j->b, j->info->code, n, j->operands, j->nattr, j->attrs);
	if (!j->op)
		return false;
	j->results = NEW_ARRAY(j->t->c->arena, (size_t)j->op->nresult + 1, Value *);
	for (int i = 0; i < j->op->nresult; i++)
		if (!(j->results[i] = move_result(j, op_result(j->op, i), rank)))
			return false;
	return true;
}

// ---- operands -----------------------------------------------------------------------------------

static Value *combine(OpJob *j, int n, Value *const *values)
{
	return build(&j->b, OP_BUILTIN_COMBINE, n, values, NULL);
}

// The variables of a list as one value: a vec where the operand wants one, or when they are
// several.
static Value *read_list(OpJob *j, const char *slot, size_t n, char *const *vars, bool vec)
{
	Value **values = NEW_ARRAY(j->t->c->arena, n, Value *);
	bool ok = true;
	for (size_t i = 0; i < n; i++) {
		values[i] = read_var(j, slot, vars[i]);
		ok &= values[i] != NULL;
	}
	if (!ok)
		return NULL;
	return n > 1 || vec ? combine(j, (int)n, values) : values[0];
}

// The attribute that operand i overrides, when it is mutable; NULL otherwise.
static const AttrInfo *overridden_attr(const OpInfo *info, const char *operand)
{
	for (int i = 0; i < info->nattr; i++)
		if (info->attrs[i].operand && strcmp(info->attrs[i].operand, operand) == 0)
			return &info->attrs[i];
	return NULL;
}

// Newer programs give mutable attributes as attributes that name variables.
static bool variable_attr(OpJob *j, int i)
{
	const AttrInfo *a = overridden_attr(j->info, j->info->operands[i].name);
	const Paddle__OpAttr *legacy = a ? job_legacy_attr(j, a->name) : NULL;
	if (!legacy)
		return true;
	NumberList list = {0};
	if (legacy->type == PADDLE__ATTR_KIND__VAR && legacy->var_name)
		j->operands[i] = read_list(j, legacy->name, 1, &legacy->var_name, false);
	else if (legacy->type == PADDLE__ATTR_KIND__VARS && legacy->n_vars_name)
		j->operands[i] = read_list(j, legacy->name, legacy->n_vars_name, legacy->vars_name, false);
	else
		return true;
	if (!j->operands[i])
		return false;
	// General_attribute takes the number. Paddle 3 gives sizes as floats, too.
	bool floats = type_is_tensor(j->operands[i]->type) &&
	              dtype_is_float(j->operands[i]->type->dtype);
	if ((a->kind == ATTR_FLOAT || floats) && numbers_of_value(j->t->c, j->operands[i], &list))
		j->operands[i] = NULL;
	return true;
}

// What stands for a number is one element; a run finds that out where the sizes are open.
static bool one_number(OpJob *j, int i)
{
	const AttrInfo *a = overridden_attr(j->info, j->info->operands[i].name);
	Value *v = j->operands[i];
	int64_t n;
	const bool number = a && (a->kind == ATTR_FLOAT || a->kind == ATTR_INT || a->kind == ATTR_BOOL);
	if (!v || !number || !type_is_tensor(v->type))
		return true;
	if (type_const_numel(v->type, &n))
		return n == 1 ||
		       job_fail(j, "'%s' is a tensor of %" PRId64 " elements: one is a number", a->name, n);
	const Dim *one = dim_const(j->t->c, 1);
	j->operands[i] = build1(&j->b, OP_PD_RESHAPE, v, "shape", attr_dims(j->t->c, 1, &one), NULL);
	return j->operands[i] != NULL;
}

static bool read_operand(OpJob *j, int i)
{
	const OperandInfo *o = &j->info->operands[i];
	const char *at = j->map->slots[i];
	char slot[128];
	bool ok;
	if (lod_operand(j, i, &ok))
		return ok;
	while (next_slot(&at, slot, sizeof slot)) {
		const Paddle__OpSlot *s = slot_find(j->desc->n_inputs, j->desc->inputs, slot);
		if (!slot_var(s, 0))
			continue;
		if (s->n_arguments > 1 && !o->vec)
			return job_fail(j, "input %s holds %zu variables; one is supported", slot,
			                s->n_arguments);
		j->operands[i] = read_list(j, slot, s->n_arguments, s->arguments, o->vec && !o->optional);
		return j->operands[i] && one_number(j, i);
	}
	if (!variable_attr(j, i) || !one_number(j, i))
		return false;
	if (j->operands[i] || o->optional)
		return true;
	return job_fail(j, "input %s has no variable", j->map->slots[i] ? j->map->slots[i] : o->name);
}

static bool slot_is_mapped(int n, const char *const *slots, const char *name)
{
	for (int i = 0; i < n; i++)
		if (slot_in(slots[i], name))
			return true;
	return false;
}

// An input that the table does not know must not be dropped silently.
static bool check_slots(OpJob *j)
{
	bool ok = true;
	for (size_t i = 0; i < j->desc->n_inputs; i++) {
		const char *var = slot_var(j->desc->inputs[i], 0);
		if (var && !slot_is_mapped(j->info->noperand, j->map->slots, j->desc->inputs[i]->parameter))
			ok = job_fail(j, "input %s (variable '%s') is not supported",
			              j->desc->inputs[i]->parameter, var);
	}
	return ok;
}

// What a gradient operator is given besides, it does not need; but what comes in for a result is
// never left aside.
static bool check_gradient_slots(OpJob *j)
{
	bool ok = true;
	for (size_t i = 0; i < j->desc->n_inputs; i++) {
		const char *slot = j->desc->inputs[i]->parameter, *end = strrchr(slot, '@');
		if (end && !strcmp(end, GRAD) && slot_var(j->desc->inputs[i], 0) &&
		    !slot_is_mapped(j->info->noperand, j->map->slots, slot))
			ok = job_fail(j, "input %s is not supported", slot);
	}
	return ok;
}

static bool read_operands(OpJob *j, bool ok)
{
	for (int i = 0; i < j->info->noperand; i++)
		ok &= read_operand(j, i);
	return ok;
}

bool general_inputs(OpJob *j)
{
	return read_operands(j, check_slots(j));
}

bool gradient_inputs(OpJob *j)
{
	return read_operands(j, check_gradient_slots(j));
}

// ---- attributes ---------------------------------------------------------------------------------

// An attribute that names variables, of an operation that takes no such operand: fine where the
// program itself says what they hold.
static bool constant_attribute(OpJob *j, const AttrInfo *a, const Paddle__OpAttr *legacy)
{
	bool single = legacy->type == PADDLE__ATTR_KIND__VAR;
	size_t n = single ? (legacy->var_name ? 1 : 0) : legacy->n_vars_name;
	NumberList list = {0};
	for (size_t i = 0; i < n; i++) {
		Value *v = read_var(j, legacy->name, single ? legacy->var_name : legacy->vars_name[i]);
		if (!v)
			return false;
		bool known = numbers_of_value(j->t->c, v, &list);
		if (!known && n == 1 && axis_from_data(j, a, v))
			return true;
		if (!known)
			return job_fail(
				j,
				"attribute '%s' names a variable that is not known when the program is compiled: "
				"not supported",
				legacy->name);
	}
	const Attr *v = attr_from_numbers(j->t->c, a, &list);
	if (!v)
		return job_fail(j, "attribute '%s' names variables that do not fit pdcc's '%s'",
		                legacy->name, a->name);
	job_set_attr(j, a->name, v);
	return true;
}

bool general_attribute(OpJob *j, const AttrInfo *a, const Paddle__OpAttr *legacy)
{
	int64_t kind;
	bool variable = legacy->type == PADDLE__ATTR_KIND__VAR ||
	                legacy->type == PADDLE__ATTR_KIND__VARS;
	if (variable) // or the operand has it
		return (a->operand && job_operand(j, a->operand)) || constant_attribute(j, a, legacy);
	// A negative element type says: as the input.
	if (a->kind == ATTR_DTYPE && attr_int_at(legacy, 0, &kind) && kind < 0)
		return j->steps->missing ? j->steps->missing(j, a) : general_missing(j, a);
	const Attr *v = a->any_number ? attr_convert_number(j->t->c, legacy)
	                              : attr_convert(j->t->c, a->kind, legacy);
	if (!v)
		return job_fail(j, "attribute '%s' is %s, and its value does not fit pdcc's '%s'",
		                legacy->name, attr_kind_name(legacy->type), a->name);
	job_set_attr(j, a->name, v);
	return true;
}

bool general_missing(OpJob *j, const AttrInfo *a)
{
	if (a->fallback) {
		const Attr *v = attr_parse(j->t->c, a->kind, a->fallback);
		if (!v)
			return false;
		job_set_attr(j, a->name, v);
		return true;
	}
	if (!a->required || (a->operand && job_operand(j, a->operand)))
		return true;
	const char *legacy = a->name;
	for (int i = 0; i < j->map->nattr; i++)
		if (strcmp(j->map->attr_to[i], a->name) == 0)
			legacy = j->map->attr_from[i];
	return job_fail(j, "attribute '%s' is missing", legacy);
}

bool check_attributes(OpJob *j, const LegacyMap *map)
{
	bool ok = true;
	for (size_t i = 0; i < j->desc->n_attrs; i++) {
		const char *why = attr_objection(j->t->c, map, j->desc->attrs[i]);
		if (why)
			ok = job_fail(j, "%s", why);
	}
	return ok;
}

bool gradient_attributes(OpJob *j, const Paddle__OpDesc *of)
{
	Paddle__OpDesc *const forward = (Paddle__OpDesc *)of;
	const char *why = gradient_objection(j->t->c, j->desc, of != NULL, &forward);
	return !why || job_fail(j, "%s", why);
}

static bool translate_attributes(OpJob *j)
{
	bool ok = true;
	for (int i = 0; i < j->map->nset; i++) {
		const AttrInfo *a = op_info_attr(j->info, j->map->set_names[i]);
		const Attr *v = a ? attr_parse(j->t->c, a->kind, j->map->set_texts[i]) : NULL;
		if (!v)
			return job_fail(j, "the table sets '%s' wrongly", j->map->set_names[i]);
		job_set_attr(j, a->name, v);
	}
	for (int i = 0; i < j->info->nattr; i++) {
		const AttrInfo *a = &j->info->attrs[i];
		if (job_attr(j, a->name))
			continue;
		const Paddle__OpAttr *legacy = job_legacy_attr(j, a->name);
		if (legacy)
			ok &= (j->steps->attribute ? j->steps->attribute : general_attribute)(j, a, legacy);
		else
			ok &= (j->steps->missing ? j->steps->missing : general_missing)(j, a);
	}
	return ok;
}

// ---- results ------------------------------------------------------------------------------------

bool general_create(OpJob *j)
{
	if (!axis_from_operand(j))
		return false;
	if (j->axis)
		return create_along_axis(j);
	// Trailing operands that are left out take no slot.
	int n = j->info->noperand;
	while (n > 0 && !j->operands[n - 1])
		n--;
	j->op = build_op(&j->b, j->info->code, n, j->operands, j->nattr, j->attrs);
	return j->op != NULL;
}

// One variable for each element of a vec.
static bool record_vec(OpJob *j, int result, Value *vec, const Paddle__OpSlot *s)
{
	Context *c = j->t->c;
	if ((size_t)vec->type->nelem != s->n_arguments)
		return job_fail(j, "output %s has %zu variables, but %d results", s->parameter,
		                s->n_arguments, vec->type->nelem);
	for (size_t i = 0; i < s->n_arguments; i++) {
		const char *var = slot_var(s, i);
		if (!var)
			continue;
		Value *v = build1(&j->b, OP_BUILTIN_SLICE, vec, "index", attr_int(c, (int64_t)i), NULL);
		if (!v || !lod_record_part(j, result, (int)i, v))
			return false;
		write_var(j, var, v);
	}
	return true;
}

bool general_record(OpJob *j)
{
	for (int i = 0; j->op && i < j->info->nresult; i++) {
		const Paddle__OpSlot *s = output_slot(j, i);
		Value *v = j->results ? j->results[i] : op_result(j->op, i);
		if (!s)
			continue;
		if (v->type->kind == TY_VEC) {
			if (!record_vec(j, i, v, s))
				return false;
			continue;
		}
		if (s->n_arguments > 1)
			return job_fail(j, "output %s has %zu variables; one is supported", s->parameter,
			                s->n_arguments);
		if (slot_var(s, 0))
			write_var(j, slot_var(s, 0), v);
	}
	return true;
}

// State that the operator changes, but our operation does not: fine only where it stays the same,
// as the running averages of a batch norm do outside training.
static bool check_state(OpJob *j)
{
	if (job_number(j, "is_test", 0) || job_number(j, "use_global_stats", 0))
		return true;
	for (size_t i = 0; i < j->desc->n_outputs; i++) {
		const Paddle__OpSlot *s = j->desc->outputs[i];
		const char *var = slot_var(s, 0);
		const Binding *b = var ? scope_find(j->t, var) : NULL;
		if (b && b->desc && var_is_state(b->desc) &&
		    !slot_is_mapped(j->info->nresult, j->map->outs, s->parameter))
			return job_fail(j, "output %s changes variable '%s': training is not supported",
			                s->parameter, var);
	}
	return true;
}

bool general_translate(OpJob *j)
{
	// Both, so that everything unsupported is reported at once.
	bool inputs = (j->steps->inputs ? j->steps->inputs : general_inputs)(j);
	bool attrs = translate_attributes(j), state = j->steps->state || check_state(j);
	if (!inputs || !attrs || !state)
		return false;
	return (j->steps->create ? j->steps->create : general_create)(j) && (!j->op || lod_record(j)) &&
	       (j->steps->record ? j->steps->record : general_record)(j) && besides_record(j);
}
