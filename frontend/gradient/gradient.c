// Gradient operators of legacy training programs: foo_grad, foo_grad_grad. There is no list of
// them: foo_grad is the gradient (ir/gradient.h) of what foo is translated into, on the values that
// the gradient operator is given.
//
// Mostly these are the values that the forward operator had, and its own operations are
// differentiated where they stand. Otherwise (a variable has been written since, or one variable
// fills two slots) the forward operator is translated again, on copies of what the gradient
// operator is given; what it is not given is taken from the forward operator.
//
// Slots: inputs of foo_grad are foo's inputs and outputs and, for the gradient of output O, O@GRAD;
// outputs are I@GRAD. foo_grad_grad (foo_double_grad) is the gradient of that function: it is given
// what comes in for I@GRAD (DDX, grad_x@GRAD) and gives what goes to foo's inputs, to foo's outputs
// where foo_grad reads them, and to O@GRAD (DDOut, grad_out@GRAD). foo_triple_grad is the gradient
// of foo_grad_grad (gradient_match.c).
#include "frontend/gradient/backward.h"
#include "frontend/control/control.h"
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/job/trace.h"
#include "ir/gradient/gradient.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// ---- which operators have one -------------------------------------------------------------------

// What translates the gradient of an operator that has a block; NULL: it is none.
static bool (*control_gradient(const char *type))(OpJob *)
{
	static const struct {
		const char *type;
		bool (*translate)(OpJob *);
	} all[] = {{"conditional_block_grad", branch_gradient_translate},
	           {"while_grad", loop_gradient_translate},
	           {"recurrent_grad", recurrent_gradient_translate},
	           {"pylayer_grad", pylayer_gradient_translate}};
	for (size_t i = 0; i < COUNT_OF(all); i++)
		if (!strcmp(type, all[i].type))
			return all[i].translate;
	return NULL;
}

bool gradient_is_known(const Context *c, const char *type)
{
	const OpInfo *forward;
	size_t n;
	return control_gradient(type) ||
	       (gradient_forward(type, &forward, &n) && op_has_gradient(c, forward->code));
}

// ---- the forward operator -----------------------------------------------------------------------

bool forward_translate(OpJob *j, const Paddle__OpDesc *d, Scope *scope, Forward *out)
{
	Translator *t = j->t;
	Scope *outer = t->scope;
	OpJob again = {.t = t, .desc = d, .b = j->b};
	t->scope = scope;
	trace_begin(&again);
	bool ok = translate_job(&again);
	t->scope = outer;
	if (!ok)
		return false;
	OpTrace *kept = t->traces;
	trace_end(&again);
	t->traces = kept;
	*out = (Forward){d, again.trace->reads, again.trace->writes, again.trace->first,
	                 again.trace->last};
	return true;
}

// The forward operator's operations, in place or anew.
static bool find_forward(Backward *w, Forward *out)
{
	Paddle__OpDesc *d;
	Scope *scope;
	if (!backward_stays(w))
		return backward_again(w, &d, &scope) && forward_translate(w->j, d, scope, out);
	const OpTrace *t = w->trace;
	*out = (Forward){t->desc, t->reads, t->writes, t->first, t->last};
	return true;
}

// ---- first order --------------------------------------------------------------------------------

static void want_inputs(Duals *d, const Forward *f)
{
	for (size_t s = 0; s < f->desc->n_inputs; s++) {
		for (size_t i = 0; i < f->desc->inputs[s]->n_arguments; i++) {
			Value *v = traced_value(f->reads, slot_var(f->desc->inputs[s], i));
			if (v)
				duals_want(d, v);
		}
	}
}

bool gradient_write(OpJob *j, const char *var, Value *v, Value *dv)
{
	if (!v || (!type_is_tensor(v->type) && v->type->kind != TY_ARRAY))
		return job_fail(j, "the gradient '%s' belongs to no tensor", var);
	dv = dv ? dv : gradient_zeros_for(&j->b, v);
	if (!dv)
		return false;
	// Its rows are those of the variable: they belong to the same sequences.
	if (lod_of(j->t, v) && !lod_of(j->t, dv))
		lod_set(j->t, dv, lod_of(j->t, v));
	if (v->type->kind == TY_ARRAY)
		return array_assign(j, var, dv);
	write_var(j, var, dv);
	return true;
}

static bool write_gradient(Backward *w, const char *var, Value *of, Value *dv)
{
	return !var || gradient_write(w->j, var, of, dv);
}

// Adds what comes in for the forward operator's outputs, and differentiates it.
static bool backward(Backward *w, const Forward *f, Duals *d)
{
	for (size_t s = 0; s < f->desc->n_inputs; s++) {
		const Paddle__OpSlot *in = f->desc->inputs[s], *asked;
		asked = gradient_slot(w->j->desc->n_outputs, w->j->desc->outputs, in->parameter, 1, false);
		for (size_t i = 0; i < in->n_arguments; i++)
			if (slot_var(asked, i))
				duals_want(d, traced_value(f->reads, slot_var(in, i)));
	}
	for (size_t s = 0; s < f->desc->n_outputs; s++) {
		const Paddle__OpSlot *slot = f->desc->outputs[s];
		for (size_t i = 0; i < slot->n_arguments; i++) {
			Value *out = traced_value(f->writes, slot_var(slot, i));
			Value *dv = out ? backward_given(w, slot->parameter, i, out->type) : NULL;
			if (dv && !duals_add(&w->j->b, d, out, dv))
				return false;
		}
	}
	return !f->first || gradient_ops(&w->j->b, d, f->first, f->last);
}

static bool first_order(Backward *w, const Forward *f)
{
	const Paddle__OpDesc *desc = w->j->desc;
	Duals *d = duals_new(w->j->t->c, NULL);
	if (!backward(w, f, d))
		return false;
	for (size_t s = 0; s < f->desc->n_inputs; s++) {
		const Paddle__OpSlot *in = f->desc->inputs[s];
		const Paddle__OpSlot *out = gradient_slot(desc->n_outputs, desc->outputs, in->parameter, 1,
		                                          false);
		for (size_t i = 0; out && i < in->n_arguments; i++) {
			Value *v = traced_value(f->reads, slot_var(in, i));
			Value *dv = v ? duals_get(&w->j->b, d, v) : NULL;
			if (v && slot_var(out, i) &&
			    (!backward_whole(w, in->parameter, i, &v, &dv) ||
			     !write_gradient(w, slot_var(out, i), v, dv)))
				return false;
		}
	}
	return true;
}

bool gradient_of_translated(OpJob *j, const Forward *f)
{
	Backward w = {.j = j, .forward = f->desc->type, .order = 1};
	return first_order(&w, f);
}

// ---- second order -------------------------------------------------------------------------------

// What comes in for the gradients of the forward operator's inputs.
static bool add_second(Backward *w, const Forward *f, Duals *d1, Duals *d2)
{
	const Paddle__OpDesc *desc = w->j->desc;
	for (size_t s = 0; s < f->desc->n_inputs; s++) {
		const Paddle__OpSlot *in = f->desc->inputs[s];
		const Paddle__OpSlot *g = gradient_slot(desc->n_inputs, desc->inputs, in->parameter, 2,
		                                        true);
		for (size_t i = 0; g && i < in->n_arguments; i++) {
			Value *v = traced_value(f->reads, slot_var(in, i)),
				  *dv = v ? duals_get(&w->j->b, d1, v) : NULL;
			Value *ddv = dv && slot_var(g, i) ? read_var(w->j, g->parameter, slot_var(g, i)) : NULL;
			if (ddv && (!backward_suits(w, g->parameter, ddv, dv->type) ||
			            !duals_add(&w->j->b, d2, dv, ddv)))
				return false;
		}
	}
	return true;
}

// Writes the gradients of the values in `slots` to the outputs that are called after them.
static bool write_second(Backward *w, size_t n, Paddle__OpSlot *const *slots, const TracedVar *vars,
                         Duals *d)
{
	const Paddle__OpDesc *desc = w->j->desc;
	for (size_t s = 0; s < n; s++) {
		const Paddle__OpSlot *out = gradient_slot(desc->n_outputs, desc->outputs,
		                                          slots[s]->parameter, 1, true);
		for (size_t i = 0; out && i < slots[s]->n_arguments; i++) {
			Value *v = traced_value(vars, slot_var(slots[s], i));
			if (v && !write_gradient(w, slot_var(out, i), v, duals_get(&w->j->b, d, v)))
				return false;
		}
	}
	return true;
}

// Whether foo_grad reads this output of foo as a value of its own: its gradient is asked for.
static bool is_leaf(const Backward *w, const Paddle__OpSlot *slot)
{
	const Paddle__OpDesc *desc = w->j->desc;
	return gradient_slot(desc->n_outputs, desc->outputs, slot->parameter, 1, true) != NULL;
}

// What is asked for of the forward operator's outputs, and the gradients that are given of them.
static bool want_outputs(Backward *w, const Forward *f, Duals *d1, Duals *d2, Value **dout)
{
	for (size_t s = 0; s < f->desc->n_outputs; s++) {
		const Paddle__OpSlot *slot = f->desc->outputs[s];
		Value *out = traced_value(f->writes, slot_var(slot, 0));
		Value *dv = out ? backward_given(w, slot->parameter, 0, out->type) : NULL;
		if (dv && (dout[s] = build1(&w->j->b, OP_PD_ASSIGN, dv, NULL))) {
			duals_want(d2, dout[s]);
			if (!duals_add(&w->j->b, d1, out, dout[s]))
				return false;
		}
		if (out && is_leaf(w, slot))
			duals_want(d2, out);
	}
	return true;
}

// Writes the gradients of the gradients that were given.
static bool write_given(Backward *w, const Forward *f, Value *const *dout, Duals *d2)
{
	const Paddle__OpDesc *desc = w->j->desc;
	for (size_t s = 0; s < f->desc->n_outputs; s++) {
		const Paddle__OpSlot *out = gradient_slot(desc->n_outputs, desc->outputs,
		                                          f->desc->outputs[s]->parameter, 2, true);
		if (out && dout[s] &&
		    !write_gradient(w, slot_var(out, 0), dout[s], duals_get(&w->j->b, d2, dout[s])))
			return false;
	}
	return true;
}

// What comes to values between the forward operator's operations, and to those of its outputs that
// are no values of their own, goes on to its inputs.
static bool through_forward(Backward *w, const Forward *f, Duals *d2)
{
	for (size_t s = 0; s < f->desc->n_outputs; s++) {
		const Paddle__OpSlot *slot = f->desc->outputs[s];
		for (size_t i = 0; is_leaf(w, slot) && i < slot->n_arguments; i++) {
			const Value *out = traced_value(f->writes, slot_var(slot, i));
			if (out)
				duals_clear(d2, out);
		}
	}
	return !f->first || gradient_ops(&w->j->b, d2, f->first, f->last);
}

static bool second_order(Backward *w, const Forward *f)
{
	Context *c = w->j->t->c;
	Duals *d1 = duals_new(c, NULL), *d2 = duals_new(c, NULL);
	Value **dout = NEW_ARRAY(c->arena, f->desc->n_outputs + 1, Value *);
	want_inputs(d2, f);
	if (!want_outputs(w, f, d1, d2, dout))
		return false;
	want_inputs(d1, f);
	Op *before = w->j->b.block->last;
	if (f->first && !gradient_ops(&w->j->b, d1, f->first, f->last))
		return false;
	Op *first = before->next, *last = w->j->b.block->last;
	for (Op *op = f->first; op; op = op == f->last ? NULL : op->next)
		duals_reach(d2, op);
	if (!add_second(w, f, d1, d2) || (first && !gradient_ops(&w->j->b, d2, first, last)))
		return false;
	return write_given(w, f, dout, d2) &&
	       write_second(w, f->desc->n_outputs, f->desc->outputs, f->writes, d2) &&
	       through_forward(w, f, d2) &&
	       write_second(w, f->desc->n_inputs, f->desc->inputs, f->reads, d2);
}

// ---- entry --------------------------------------------------------------------------------------

// The operators that w belongs to, where there are such.
static bool find_traces(Backward *w)
{
	const char *grad = arena_printf(w->j->t->c->arena, "%s_grad", w->forward);
	if (is_pir(w->j->desc))
		return (w->order == 1 || gradient_match(w->j, grad, NULL, &w->first)) &&
		       gradient_match(w->j, w->forward, w->first, &w->trace);
	w->first = w->order > 1 ? backward_trace(w, grad, true) : NULL;
	w->trace = backward_trace(w, w->forward, w->order > 1);
	return true;
}

// Of Paddle 3's programs gradient_match looks at attributes.
static bool attributes_match(const Backward *w)
{
	return is_pir(w->j->desc) || gradient_attributes(w->j, w->trace ? w->trace->desc : NULL);
}

bool gradient_translate(OpJob *j)
{
	Backward w = {.j = j};
	Forward f;
	const OpInfo *info;
	size_t n;
	if (control_gradient(j->desc->type))
		return control_gradient(j->desc->type)(j);
	w.order = gradient_forward(j->desc->type, &info, &n);
	w.forward = context_strn(j->t->c, j->desc->type, n);
	if (w.order > 2)
		return third_translate(j, w.forward);
	if (!find_traces(&w) || !attributes_match(&w) || !backward_all_come_in(&w) ||
	    !find_forward(&w, &f))
		return false;
	bool again = !w.trace || f.desc != w.trace->desc;
	bool ok = w.order > 1 ? second_order(&w, &f) : first_order(&w, &f);
	if (ok && again)
		backward_use_results(&w, &f);
	return ok;
}

// Whether a row of the table stands for the operator: one of a gradient operator does where the
// operator has all inputs that the row names, and else it is the gradient as any other.
static bool row_stands_for(const OpJob *j, const OpInfo *info, const LegacyMap *map)
{
	bool stands = info;
	for (int i = 0; stands && i < info->noperand; i++)
		stands = info->operands[i].optional || input_var(j, map->slots[i]);
	return stands;
}

bool translate_job(OpJob *j)
{
	if (gradient_is_known(j->b.ctx, j->desc->type)) {
		const LegacyMap *map = NULL;
		const char *paddle = gradient_of_paddle(j);
		if (paddle)
			return j->t->hooks->as(j, paddle);
		const OpInfo *row = op_info_by_legacy(j->desc->type, &map);
		if (!row_stands_for(j, row, map))
			return (!row || check_attributes(j, map)) && gradient_translate(j);
	}
	return j->t->hooks->as(j, j->desc->type);
}
