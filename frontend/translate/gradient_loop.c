// while_grad: the gradient (ir/gradient) of what the forward while became, which is run once more
// with the variables that the backward rounds read on a stack. The block that the legacy operator
// holds is not read.
#include "frontend/translate/gradient.h"
#include "ir/gradient/gradient.h"

#include <string.h>

// The last while before this operator with these step scopes.
static const OpTrace *find_loop(OpJob *j)
{
	const char *scopes = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "StepScopes"), 0);
	for (const OpTrace *t = j->t->traces; t && scopes; t = t->before) {
		if (strcmp(t->desc->type, "while"))
			continue;
		const char *have = slot_var(slot_find(t->desc->n_outputs, t->desc->outputs, "StepScopes"),
		                            0);
		if (have && !strcmp(have, scopes) && t->block == j->t->block)
			return t;
	}
	return NULL;
}

static Op *loop_of(const OpTrace *t)
{
	for (Op *op = t->last; op; op = op == t->first ? NULL : op->prev)
		if (op->code == OP_PD_WHILE)
			return op;
	return NULL;
}

static Value *written(const OpTrace *t, const char *var)
{
	for (const TracedVar *w = t->writes; w; w = w->next)
		if (!strcmp(w->var, var))
			return w->value;
	return NULL;
}

// What the variable was in front of the loop: where a round changes it, the loop's initial value.
static Value *value_before(OpJob *j, const OpTrace *t, const Op *loop, const char *var)
{
	const Value *after = written(t, var);
	if (after && after->def == loop)
		return op_operand(loop, (int)after->index);
	return read_var(j, "X", var);
}

// The output that a gradient is called after: the list of gradients leaves out those that nothing
// comes in for.
static const char *output_of(const Paddle__OpSlot *out, const char *gradient)
{
	for (size_t i = 0; out && i < out->n_arguments; i++) {
		const char *var = slot_var(out, i);
		size_t n = var ? strlen(var) : 0;
		if (n && !strncmp(gradient, var, n) && !strncmp(gradient + n, "@GRAD", 5))
			return var;
	}
	return NULL;
}

static bool add_results(OpJob *j, const OpTrace *t, const Op *loop, Op *again, Duals *d)
{
	const Paddle__OpSlot *out = slot_find(j->desc->n_inputs, j->desc->inputs, "Out");
	const Paddle__OpSlot *given = slot_find(j->desc->n_inputs, j->desc->inputs, "Out@GRAD");
	for (size_t i = 0; given && i < given->n_arguments; i++) {
		const char *g = slot_var(given, i), *var = g ? output_of(out, g) : NULL;
		const Binding *b = g ? scope_find(j->t, g) : NULL;
		if (!b || (!b->value && !b->guard && !b->broken))
			continue; // nothing has come in for it
		const Value *v = var ? written(t, var) : NULL;
		if (!v || v->def != loop)
			return job_fail(j, "'%s' is the gradient of no variable of the loop", g);
		Value *dv = read_var(j, "Out@GRAD", g), *to = op_result(again, (int)v->index);
		if (dv && type_is_tensor(dv->type) && type_is_tensor(to->type) &&
		    dv->type->rank != to->type->rank)
			dv = tensor_reshape(&j->b, dv, to->type->rank, to->type->dims);
		if (!dv || !duals_add(&j->b, d, to, dv))
			return false;
	}
	return true;
}

bool loop_gradient_translate(OpJob *j)
{
	const OpTrace *t = find_loop(j);
	Op *loop = t ? loop_of(t) : NULL;
	const Paddle__OpSlot *in = slot_find(j->desc->n_inputs, j->desc->inputs, "X");
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, "X@GRAD");
	Duals *d = duals_new(j->t->c);
	size_t n = in ? in->n_arguments : 0;
	Value **values = NEW_ARRAY(j->t->c->arena, n + 1, Value *);
	duals_overwrite(d);
	if (!loop)
		return job_fail(j, "no while before it has these step scopes");
	for (size_t i = 0; i < n; i++) {
		if (!slot_var(in, i) || !slot_var(out, i))
			continue;
		values[i] = value_before(j, t, loop, slot_var(in, i));
		if (!values[i])
			return false;
		for (size_t k = 0; k < i; k++)
			if (values[k] == values[i])
				return job_fail(j, "'%s' and '%s' are one value: not supported", slot_var(in, i),
				                slot_var(in, k));
		duals_want(d, values[i]);
	}
	Op *again = op_clone(j->t->c, loop, NULL);
	op_append(j->t->block, again);
	duals_reach(d, again);
	if (!add_results(j, t, loop, again, d) || !op_gradient(&j->b, again, d))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!values[i])
			continue;
		if (!gradient_write(j, slot_var(out, i), values[i], duals_get(&j->b, d, values[i])))
			return false;
	}
	return true;
}
