// Steps of optimizers: what is refused, parameters of half types, steps that are skipped, gradients
// that are SELECTED_ROWS, and merged_momentum, merged_adam. Used by steps.c.
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

// Input MasterParam of an operator that has one.
static Value *read_master(OpJob *j)
{
	return read_var(j, "MasterParam", input_var(j, "MasterParam"));
}

// The operator without MasterParam.
static const Paddle__OpDesc *without_master(Context *c, const Paddle__OpDesc *d)
{
	Paddle__OpDesc *other = NEW(c->arena, Paddle__OpDesc);
	*other = *d;
	other->inputs = NEW_ARRAY(c->arena, d->n_inputs + 1, Paddle__OpSlot *);
	other->n_inputs = 0;
	for (size_t i = 0; i < d->n_inputs; i++)
		if (strcmp(d->inputs[i]->parameter, "MasterParam"))
			other->inputs[other->n_inputs++] = d->inputs[i];
	return other;
}

// A parameter of a half type is stepped in MasterParam, and is that rounded; the gradient comes in
// the half type. Of other types the CPU kernels leave MasterParam alone, but for merged_momentum.
bool master_inputs(OpJob *j)
{
	if (!input_is_there(j, "MasterParam"))
		return general_inputs(j);
	const Paddle__OpDesc *whole = j->desc;
	Value *master = read_master(j);
	j->desc = without_master(j->t->c, whole);
	const bool inputs = master && general_inputs(j);
	j->desc = whole;
	Value *param = inputs ? job_operand(j, "param") : NULL, *grad = job_operand(j, "grad");
	if (!param || !grad)
		return false;
	const bool half = dtype_is_half(param->type->dtype), on = job_number(j, "multi_precision", 0);
	if (half && !on)
		return job_fail(j, "MasterParam of a half type without multi_precision is not supported");
	if (!half && !(on && !strcmp(whole->type, "merged_momentum")))
		return true;
	job_set_operand(j, "param", master);
	job_set_operand(j, "grad", tensor_cast(&j->b, grad, master->type->dtype));
	return true;
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

bool master_record(OpJob *j)
{
	const char *out = output_var(j, "MasterParamOut");
	Value *master = input_is_there(j, "MasterParam") ? read_master(j) : NULL;
	if (!master || job_operand(j, "param") != master)
		return general_record(j);
	const Value *param = read_var(j, "Param", input_var(j, "Param"));
	j->results = j->results ? j->results : results_of(j);
	if (out)
		write_var(j, out, j->results[0]);
	j->results[0] = param ? tensor_cast(&j->b, j->results[0], param->type->dtype) : NULL;
	return j->results[0] && general_record(j);
}

// ---- merged_momentum, merged_adam: one of the ordinary kind for each parameter ------------------

// Whether the slot has a variable for all parameters.
static bool is_shared(const Paddle__OpDesc *d, const Paddle__OpSlot *s)
{
	return s->n_arguments == 1 && !strcmp(s->parameter, "LearningRate") &&
	       !strcmp(d->type, "merged_momentum");
}

// Slots with only their k-th variable, or the one that is for all.
static Paddle__OpSlot **one_of_each(Context *c, const Paddle__OpDesc *d, size_t n,
                                    Paddle__OpSlot *const *slots, size_t k)
{
	Paddle__OpSlot **list = NEW_ARRAY(c->arena, n + 1, Paddle__OpSlot *);
	for (size_t i = 0; i < n; i++) {
		list[i] = NEW(c->arena, Paddle__OpSlot);
		*list[i] = *slots[i];
		if (k < slots[i]->n_arguments) {
			list[i]->arguments = slots[i]->arguments + k;
			list[i]->n_arguments = 1;
		} else if (!is_shared(d, slots[i])) {
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
		if (s->n_arguments && s->n_arguments != n && !is_shared(d, s))
			return job_fail(j, "%s has %zu variables, and there are %zu parameters", s->parameter,
			                s->n_arguments, n);
	}
	for (size_t k = 0; k < n; k++) {
		Paddle__OpDesc *one = NEW(c->arena, Paddle__OpDesc);
		*one = *d;
		one->inputs = one_of_each(c, d, d->n_inputs, d->inputs, k);
		one->outputs = one_of_each(c, d, d->n_outputs, d->outputs, k);
		one->attrs = NEW_ARRAY(c->arena, d->n_attrs + 1, Paddle__OpAttr *);
		for (size_t i = 0; i < d->n_attrs; i++)
			one->attrs[i] = attr_of(c, d->attrs[i], k);
		OpJob job = {.t = j->t, .desc = one, .b = j->b, .trace = j->trace};
		if (!translate_as(&job, d->type + strlen("merged_")))
			return false;
	}
	return true;
}
