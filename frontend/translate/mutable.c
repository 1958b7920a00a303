// Attributes that a program gives as variables whose contents only a run tells, where the operation
// wants to know them: axes. The axis is moved to the front, the operation works on axis 0, and what
// it gives is moved back. Called by translate.c.
#include "frontend/translate/translator.h"
#include "ir/build/build.h"

#include <string.h>

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

static Value *move(OpJob *j, Value *x, bool back)
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
		return move(j, v, false);
	}
	Value **moved = NEW_ARRAY(j->t->c->arena, (size_t)list->noperand + 1, Value *);
	for (int i = 0; i < list->noperand; i++) {
		*rank = op_operand(list, i)->type->rank;
		if (!(moved[i] = move(j, op_operand(list, i), false)))
			return NULL;
	}
	return build(&j->b, OP_BUILTIN_COMBINE, list->noperand, moved, NULL);
}

// A result with the axis back in its place, when it still has it.
static Value *move_result(OpJob *j, Value *v, int rank)
{
	if (v->type->kind != TY_VEC)
		return type_is_tensor(v->type) && v->type->rank >= rank ? move(j, v, true) : v;
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
