// Steps of optimizers: what is refused, steps that are skipped, gradients that are SELECTED_ROWS,
// and merged_momentum, merged_adam. Used by steps.c.
#include "frontend/control/control.h"
#include "frontend/job/general.h"
#include "frontend/translate/steps.h"
#include "ir/build/nest.h"

#include <string.h>

static bool input_is_there(const OpJob *j, const char *slot)
{
	return input_var(j, slot) != NULL;
}

// What the table does not say of optimizers is refused, unless it changes nothing.
bool optimizer_inputs(OpJob *j)
{
	if (input_is_there(j, "MasterParam"))
		return job_fail(j, "input MasterParam is not supported");
	return general_inputs(j);
}

// Whether the gradient is SELECTED_ROWS.
static bool is_sparse(const OpJob *j)
{
	const char *grad = input_var(j, "Grad");
	const Binding *b = grad ? scope_find(j->t, grad) : NULL;
	return b && b->desc && b->desc->type->type == PADDLE__VAR_KIND__SELECTED_ROWS;
}

static bool is_lazy(const OpJob *j)
{
	const Paddle__OpAttr *lazy = attr_find(j->desc, "lazy_mode");
	int64_t on = 0;
	return lazy && attr_int_at(lazy, 0, &on) && on && is_sparse(j);
}

// Where `mask` says so, the results are `when`, else `other`; one that replaces nothing has no
// other.
static bool choose_results(OpJob *j, Value *mask, Value *const *when, Value *const *other)
{
	for (int i = 0; i < j->info->nresult; i++) {
		Value *const operands[] = {mask, when[i], other[i]};
		j->results[i] = when[i] == other[i] || !when[i] || !other[i]
		                    ? when[i] ? when[i] : other[i]
		                    : build(&j->b, OP_PD_WHERE, 3, operands, NULL);
		if (!j->results[i])
			return false;
	}
	return true;
}

// What the results replace.
static Value **results_before(OpJob *j)
{
	Value **old = NEW_ARRAY(j->t->c->arena, (size_t)j->info->nresult, Value *);
	for (int i = 0; i < j->info->nresult; i++) {
		size_t n = strlen(j->info->results[i]) - strlen("_out");
		old[i] = job_operand(j, context_strn(j->t->c, j->info->results[i], n));
	}
	return old;
}

static Value **results_of(OpJob *j)
{
	Value **next = NEW_ARRAY(j->t->c->arena, (size_t)j->info->nresult, Value *);
	for (int i = 0; i < j->info->nresult; i++)
		next[i] = op_result(j->op, i);
	return next;
}

// Adam with SELECTED_ROWS: its rate is that of the powers of the betas after the step. A lazy step
// is made only by rows that have a gradient.
static bool sparse_adam_create(OpJob *j)
{
	static const char *const powers[] = {"beta1_pow", "beta2_pow"};
	Value *rows = NULL;
	if (is_lazy(j) && !rows_mask(j, job_operand(j, "grad"), &rows))
		return job_fail(j, "lazy_mode: which rows input Grad has is not known: not supported");
	if ((is_lazy(j) && !rows) || !general_create(j))
		return false;
	Value **first = results_of(j);
	for (size_t i = 0; i < COUNT_OF(powers); i++)
		job_set_operand(j, powers[i], first[3 + i]);
	if (!general_create(j))
		return false;
	Value **next = results_of(j), **old = results_before(j);
	next[3] = old[3];
	next[4] = old[4];
	return rows ? choose_results(j, rows, next, old) : choose_results(j, NULL, next, next);
}

// Paddle's CPU kernel of momentum heeds rescale_grad for SELECTED_ROWS only.
static void rescale_rows(OpJob *j)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "rescale_grad");
	Value *g = job_operand(j, "grad");
	if (a && a->has_f && a->f != 1 && !strcmp(j->desc->type, "momentum") && is_sparse(j))
		job_set_operand(j, "grad",
		                tensor_mul(&j->b, g, tensor_number(&j->b, g->type->dtype, a->f)));
}

// A step that is skipped leaves everything as it was.
bool optimizer_create(OpJob *j)
{
	rescale_rows(j);
	Value *skip = job_operand(j, "skip_update");
	const bool adam = !strcmp(j->desc->type, "adam") && is_sparse(j);
	job_set_operand(j, "skip_update", NULL);
	if (is_lazy(j) && (!adam || skip))
		return job_fail(j, "lazy_mode and %s: not supported", skip ? "SkipUpdate" : j->desc->type);
	if (!adam && !skip)
		return general_create(j);
	Value **old = results_before(j);
	j->results = NEW_ARRAY(j->t->c->arena, (size_t)j->info->nresult, Value *);
	if (!(adam ? sparse_adam_create(j) : general_create(j)))
		return false;
	return !skip || choose_results(j, skip, old, adam ? j->results : results_of(j));
}

// ---- merged_momentum, merged_adam: one of the ordinary kind for each parameter ------------------

// Slots with only their k-th variable.
static Paddle__OpSlot **one_of_each(Context *c, size_t n, Paddle__OpSlot *const *slots, size_t k)
{
	Paddle__OpSlot **list = NEW_ARRAY(c->arena, n + 1, Paddle__OpSlot *);
	for (size_t i = 0; i < n; i++) {
		list[i] = NEW(c->arena, Paddle__OpSlot);
		*list[i] = *slots[i];
		if (k < slots[i]->n_arguments) {
			list[i]->arguments = slots[i]->arguments + k;
			list[i]->n_arguments = 1;
		} else {
			list[i]->n_arguments = 0;
		}
	}
	return list;
}

// The attribute for parameter k: what is a list here is one value there.
static Paddle__OpAttr *attr_of(Context *c, const Paddle__OpAttr *a, size_t k)
{
	Paddle__OpAttr *one = NEW(c->arena, Paddle__OpAttr);
	*one = *a;
	if (a->type == PADDLE__ATTR_KIND__STRINGS && !strcmp(a->name, "regularization_method")) {
		one->type = PADDLE__ATTR_KIND__STRING;
		one->s = k < a->n_strings ? a->strings[k] : "";
	} else if (a->type == PADDLE__ATTR_KIND__FLOATS && !strcmp(a->name, "regularization_coeff")) {
		one->type = PADDLE__ATTR_KIND__FLOAT;
		one->has_f = true;
		one->f = k < a->n_floats ? a->floats[k] : 0;
	}
	return one;
}

bool merged_translate(OpJob *j)
{
	Context *c = j->t->c;
	const Paddle__OpDesc *d = j->desc;
	const Paddle__OpSlot *params = slot_find(d->n_inputs, d->inputs, "Param");
	const size_t n = params ? params->n_arguments : 0;
	for (size_t i = 0; i < d->n_outputs + d->n_inputs; i++) {
		const Paddle__OpSlot *s = i < d->n_outputs ? d->outputs[i] : d->inputs[i - d->n_outputs];
		if (s->n_arguments && s->n_arguments != n)
			return job_fail(j, "%s has %zu variables, and there are %zu parameters", s->parameter,
			                s->n_arguments, n);
	}
	for (size_t k = 0; k < n; k++) {
		Paddle__OpDesc *one = NEW(c->arena, Paddle__OpDesc);
		*one = *d;
		one->inputs = one_of_each(c, d->n_inputs, d->inputs, k);
		one->outputs = one_of_each(c, d->n_outputs, d->outputs, k);
		one->attrs = NEW_ARRAY(c->arena, d->n_attrs + 1, Paddle__OpAttr *);
		for (size_t i = 0; i < d->n_attrs; i++)
			one->attrs[i] = attr_of(c, d->attrs[i], k);
		OpJob job = {.t = j->t, .desc = one, .b = j->b, .trace = j->trace};
		if (!translate_as(&job, d->type + strlen("merged_")))
			return false;
	}
	return true;
}
