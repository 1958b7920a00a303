// Chains of pd.if that compare one number with constants, which is what switch_case becomes:
// flatten makes one cf.switch of them. The conditions are loop nests by now, so it is the nests
// that are looked at.
#include "lower/memory/flatten.h"

// Whether v is the one element of a tensor of whole numbers.
static bool is_whole_number(const Value *v)
{
	const Type *t = v->def && v->def->code == OP_LOOP_LOAD ? op_operand(v->def, 0)->type : NULL;
	int64_t n;
	return t && type_const_numel(t, &n) && n == 1 && (t->dtype == DT_I32 || t->dtype == DT_I64);
}

static bool scalar_is_constant(const Value *v, int64_t *constant)
{
	const Attr *a = v->def && v->def->code == OP_LOOP_CONSTANT ? op_attr(v->def, "value") : NULL;
	if (!a || a->kind != ATTR_INT)
		return false;
	*constant = a->i;
	return true;
}

// The constant of `load(t) == constant`, when that is all that `cond` is and t is one whole number;
// NULL: it is not.
static Value *compared_with(const Value *cond, int64_t *constant)
{
	const Op *nest = cond->def, *end, *equal;
	if (!nest || nest->code != OP_LOOP_NEST || nest->nresult != 1 ||
	    !(end = nest->regions[0].first->last) || end->noperand != 1 ||
	    !(equal = op_operand(end, 0)->def) || equal->code != OP_PD_EQUAL)
		return NULL;
	for (int i = 0; i < 2; i++) {
		const Value *x = op_operand(equal, i), *y = op_operand(equal, 1 - i);
		if (is_whole_number(x) && scalar_is_constant(y, constant))
			return op_operand(x->def, 0);
	}
	return NULL;
}

// Whether `op` gives what `inner` gives, result for result, and does nothing else in its else
// region but find out the condition of `inner`.
static bool else_is_only(const Op *op, const Op *inner)
{
	const Block *b = op->regions[1].first;
	const Op *end = b->last;
	if (end->code != OP_CF_YIELD || end->noperand != inner->nresult ||
	    op->nresult != inner->nresult)
		return false;
	for (int i = 0; i < inner->nresult; i++)
		if (op_operand(end, i) != &inner->results[i] ||
		    inner->results[i].type != op->results[i].type ||
		    value_use_count(&inner->results[i]) != 1)
			return false;
	for (const Op *o = b->first; o != end; o = o->next)
		if (o != inner &&
		    !(o->code == OP_LOOP_NEST && o->nresult == 1 && value_use_count(&o->results[0]) == 1 &&
		      &o->results[0] == op_operand(inner, 0)) &&
		    !(o->info->traits & TRAIT_CONSTANT))
			return false;
	return true;
}

static const Op *next_in_chain(const Op *op)
{
	const Block *b = op->regions[1].first;
	if (!b || b != op->regions[1].last || !b->last)
		return NULL;
	for (const Op *o = b->first; o; o = o->next)
		if (o->code == OP_PD_IF && o->nregion == 2 && else_is_only(op, o))
			return o;
	return NULL;
}

static bool case_is_there(const SwitchChain *c, int64_t v)
{
	for (int i = 0; i < c->n; i++)
		if (c->cases[i] == v)
			return true;
	return false;
}

bool switch_find(const Op *op, SwitchChain *c)
{
	int64_t constant;
	c->n = 0;
	c->value = compared_with(op_operand(op, 0), &constant);
	while (op && c->n < MAX_CASES && c->value &&
	       compared_with(op_operand(op, 0), &constant) == c->value && !case_is_there(c, constant)) {
		c->cases[c->n] = constant;
		c->ifs[c->n++] = op;
		op = next_in_chain(op);
	}
	return c->n > 1;
}
