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
#include "frontend/gradient/gradient.h"
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

// One gradient operator on its way.
typedef struct Backward {
	OpJob *j;
	const char *forward; // its type
	int order;
	const OpTrace *trace; // of the forward operator; NULL: not found
	const OpTrace *first; // order 2: of the gradient operator that is differentiated
} Backward;

// The latest operator of this type that fits best.
static const OpTrace *find_trace(const Backward *w, const char *type, bool second)
{
	const OpTrace *best = NULL;
	int most = -1;
	for (const OpTrace *t = w->j->t->traces; t; t = t->before) {
		if (strcmp(t->desc->type, type))
			continue;
		int like = gradient_likeness(w->j->desc, t->desc, second);
		if (like > most) {
			most = like;
			best = t;
		}
	}
	return most > 0 ? best : NULL;
}

// What the gradient operator is given in a slot of the forward operator, or else what that one had.
static Value *given_value(Backward *w, const char *slot, size_t i, bool *missing)
{
	const Paddle__OpDesc *d = w->j->desc;
	const char *var = slot_var(slot_find(d->n_inputs, d->inputs, slot), i);
	*missing = false;
	if (var)
		return read_var(w->j, slot, var);
	if (!w->trace)
		return NULL;
	const Paddle__OpDesc *f = w->trace->desc;
	var = slot_var(slot_find(f->n_inputs, f->inputs, slot), i);
	Value *v = traced_value(w->trace->reads, var);
	*missing = var && !v;
	return v;
}

static const Paddle__OpSlot *output_gradient(const Backward *w, const char *slot)
{
	const Paddle__OpDesc *d = w->j->desc;
	const Paddle__OpSlot *in = gradient_slot(d->n_inputs, d->inputs, slot, 1, w->order > 1);
	const Paddle__OpSlot *of =
		w->trace ? slot_find(w->trace->desc->n_outputs, w->trace->desc->outputs, slot) : NULL;
	// Some call the slot otherwise than the forward operator does: then variables tell.
	for (size_t i = 0; !in && of && i < d->n_inputs; i++) {
		size_t n;
		if (name_ends_with(d->inputs[i]->parameter, GRAD, &n) &&
		    gradient_named_after(d->inputs[i], of))
			in = d->inputs[i];
	}
	return in;
}

// What comes in is never left aside.
static bool all_come_in(const Backward *w)
{
	const Paddle__OpDesc *d = w->j->desc, *f = w->trace ? w->trace->desc : NULL;
	for (size_t i = 0; f && i < d->n_inputs; i++) {
		size_t n;
		const char *name = d->inputs[i]->parameter;
		bool found = (!name_ends_with(name, GRAD, &n) &&
		              (w->order == 1 || strncmp(name, "DD", 2))) ||
		             !slot_var(d->inputs[i], 0);
		for (size_t s = 0; !found && s < f->n_outputs; s++)
			found = output_gradient(w, f->outputs[s]->parameter) == d->inputs[i];
		for (size_t s = 0; !found && w->order > 1 && s < f->n_inputs; s++)
			found = gradient_second_name(name, f->inputs[s]->parameter, 2);
		if (!found)
			return job_fail(w->j, "input %s is the gradient of no output of '%s'",
			                d->inputs[i]->parameter, w->forward);
	}
	return true;
}

// What comes in for an output of the forward operator; NULL: nothing.
static Value *given_gradient(Backward *w, const char *slot, size_t i, const Type *type)
{
	const char *var = slot_var(output_gradient(w, slot), i);
	Value *v = NULL;
	if (var)
		v = read_var(w->j, slot, var);
	else if (w->first)
		v = traced_value(w->first->reads,
		                 slot_var(gradient_slot(w->first->desc->n_inputs, w->first->desc->inputs,
		                                        slot, 1, false),
		                          i));
	if (v && type_is_tensor(v->type) && type_is_tensor(type) && v->type->rank != type->rank)
		v = tensor_reshape(&w->j->b, v, type->rank, type->dims);
	return v;
}

// ---- the forward operator's operations, in place or anew ----------------------------------------

// Whether variable i of input slot s is there once: no other one had its value, and no slot up to
// this one names it again.
static bool is_single(const OpTrace *t, size_t s, size_t i)
{
	const Paddle__OpDesc *f = t->desc;
	const char *var = slot_var(f->inputs[s], i);
	for (const TracedVar *r = t->reads; r; r = r->next)
		if (strcmp(r->var, var) && r->value == traced_value(t->reads, var))
			return false;
	for (size_t q = 0; q <= s; q++)
		for (size_t k = 0; k < (q < s ? f->inputs[q]->n_arguments : i); k++)
			if (slot_var(f->inputs[q], k) && !strcmp(slot_var(f->inputs[q], k), var))
				return false;
	return true;
}

// Whether what the forward operator had is what the gradient operator is given, each variable once.
static bool can_stay(Backward *w)
{
	const OpTrace *t = w->trace;
	const Paddle__OpDesc *d = w->j->desc, *f = t ? t->desc : NULL;
	if (!t || t->block != w->j->t->block || w->order > 1)
		return false;
	for (size_t s = 0; s < f->n_inputs; s++) {
		for (size_t i = 0; i < f->inputs[s]->n_arguments; i++) {
			bool missing;
			const char *var = slot_var(f->inputs[s], i);
			if (var && (given_value(w, f->inputs[s]->parameter, i, &missing) !=
			                traced_value(t->reads, var) ||
			            !is_single(t, s, i)))
				return false;
		}
	}
	for (size_t s = 0; s < f->n_outputs; s++) {
		const char *given = slot_var(slot_find(d->n_inputs, d->inputs, f->outputs[s]->parameter),
		                             0);
		Value *had = traced_value(t->writes, slot_var(f->outputs[s], 0));
		if (given && had && read_var(w->j, f->outputs[s]->parameter, given) != had)
			return false;
	}
	return true;
}

Paddle__OpSlot *slot_new(Context *c, const char *name, size_t n)
{
	Paddle__OpSlot *s = NEW(c->arena, Paddle__OpSlot);
	paddle__op_slot__init(s);
	s->parameter = (char *)context_str(c, name);
	s->n_arguments = n;
	s->arguments = NEW_ARRAY(c->arena, n + 1, char *);
	for (size_t i = 0; i < n; i++)
		s->arguments[i] = (char *)context_str(c, arena_printf(c->arena, "%s.%zu@forward", name, i));
	return s;
}

// Input slots of the forward operator as far as anybody has them, bound to copies of their values
// in `scope`.
static bool bind_inputs(Backward *w, Paddle__OpDesc *d, Scope *scope)
{
	Translator *t = w->j->t;
	const Paddle__OpDesc *from = w->trace ? w->trace->desc : w->j->desc;
	const LegacyMap *map;
	const OpInfo *info = op_info_by_legacy(w->forward, &map);
	d->inputs = NEW_ARRAY(t->c->arena, from->n_inputs + 1, Paddle__OpSlot *);
	for (size_t s = 0; s < from->n_inputs; s++) {
		const Paddle__OpSlot *slot = from->inputs[s];
		bool theirs = w->trace != NULL;
		for (int i = 0; i < info->noperand && !theirs; i++)
			theirs = map->slots[i] && slot_in(map->slots[i], slot->parameter);
		if (!theirs || !slot->n_arguments)
			continue;
		Paddle__OpSlot *copy = slot_new(t->c, slot->parameter, slot->n_arguments);
		for (size_t i = 0; i < slot->n_arguments; i++) {
			bool missing;
			if (!slot_var(slot, i)) {
				copy->arguments[i] = (char *)EMPTY_VAR;
				continue;
			}
			Value *v = given_value(w, slot->parameter, i, &missing);
			if (!v)
				return missing && job_fail(w->j, "its forward operator's input %s is not known",
				                           slot->parameter);
			Binding *b = NEW(t->c->arena, Binding);
			b->value = type_is_tensor(v->type) ? build1(&w->j->b, OP_PD_ASSIGN, v, NULL) : v;
			name_map_set(scope->vars, copy->arguments[i], b);
		}
		d->inputs[d->n_inputs++] = copy;
	}
	return true;
}

static bool name_outputs(Backward *w, Paddle__OpDesc *d)
{
	Context *c = w->j->t->c;
	const LegacyMap *map;
	const OpInfo *info = op_info_by_legacy(w->forward, &map);
	if (w->trace) {
		const Paddle__OpDesc *f = w->trace->desc;
		d->outputs = NEW_ARRAY(c->arena, f->n_outputs + 1, Paddle__OpSlot *);
		for (size_t s = 0; s < f->n_outputs; s++)
			d->outputs[d->n_outputs++] = slot_new(c, f->outputs[s]->parameter,
			                                      f->outputs[s]->n_arguments);
		return true;
	}
	d->outputs = NEW_ARRAY(c->arena, (size_t)info->nresult + 1, Paddle__OpSlot *);
	for (int i = 0; i < info->nresult; i++) {
		if (!map->outs[i])
			continue;
		const Paddle__OpSlot *g = gradient_slot(w->j->desc->n_inputs, w->j->desc->inputs,
		                                        map->outs[i], 1, w->order > 1);
		d->outputs[d->n_outputs++] = slot_new(c, map->outs[i],
		                                      g && g->n_arguments ? g->n_arguments : 1);
	}
	return true;
}

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

// The forward operator once more, on copies of the values given.
static bool forward_again(Backward *w, Forward *out)
{
	Translator *t = w->j->t;
	const Paddle__OpDesc *attrs = w->trace ? w->trace->desc : w->j->desc;
	Paddle__OpDesc *d = NEW(t->c->arena, Paddle__OpDesc);
	Scope *scope = NEW(t->c->arena, Scope);
	paddle__op_desc__init(d);
	*scope = (Scope){t->scope, name_map_new(t->c->arena)};
	d->type = (char *)w->forward;
	d->n_attrs = attrs->n_attrs;
	d->attrs = attrs->attrs;
	if (!bind_inputs(w, d, scope) || !name_outputs(w, d))
		return false;
	for (size_t s = 0; s < d->n_outputs; s++)
		for (size_t i = 0; i < d->outputs[s]->n_arguments; i++)
			name_map_set(scope->vars, d->outputs[s]->arguments[i], NEW(t->c->arena, Binding));
	return forward_translate(w->j, d, scope, out);
}

static bool find_forward(Backward *w, Forward *out)
{
	if (!can_stay(w))
		return forward_again(w, out);
	const OpTrace *t = w->trace;
	*out = (Forward){t->desc, t->reads, t->writes, t->first, t->last};
	return true;
}

// What the gradient operator is given of the forward operator's results stands for what was
// computed again.
static void use_given_results(Backward *w, const Forward *f)
{
	const Paddle__OpDesc *d = w->j->desc;
	for (size_t s = 0; s < f->desc->n_outputs; s++) {
		const Paddle__OpSlot *slot = f->desc->outputs[s],
							 *given = slot_find(d->n_inputs, d->inputs, slot->parameter);
		for (size_t i = 0; i < slot->n_arguments; i++) {
			Value *mine = traced_value(f->writes, slot_var(slot, i));
			Value *v = mine && slot_var(given, i)
			               ? read_var(w->j, slot->parameter, slot_var(given, i))
			               : NULL;
			if (v && mine != v && mine->type == v->type)
				value_replace(mine, v);
		}
	}
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
			Value *dv = out ? given_gradient(w, slot->parameter, i, out->type) : NULL;
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
			if (v && slot_var(out, i) &&
			    !write_gradient(w, slot_var(out, i), v, duals_get(&w->j->b, d, v)))
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
			if (ddv && !duals_add(&w->j->b, d2, dv, ddv))
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

// What is asked for of the forward operator's outputs, and the gradients that are given of them.
// `leaf`: foo_grad reads foo's outputs as values of their own.
static bool want_outputs(Backward *w, const Forward *f, Duals *d1, Duals *d2, Value **dout,
                         bool *leaf)
{
	const Paddle__OpDesc *desc = w->j->desc;
	for (size_t s = 0; s < f->desc->n_outputs; s++) {
		const Paddle__OpSlot *slot = f->desc->outputs[s];
		Value *out = traced_value(f->writes, slot_var(slot, 0));
		Value *dv = out ? given_gradient(w, slot->parameter, 0, out->type) : NULL;
		if (dv && (dout[s] = build1(&w->j->b, OP_PD_ASSIGN, dv, NULL))) {
			duals_want(d2, dout[s]);
			if (!duals_add(&w->j->b, d1, out, dout[s]))
				return false;
		}
		*leaf |= gradient_slot(desc->n_outputs, desc->outputs, slot->parameter, 1, true) != NULL;
		if (*leaf && out)
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

static bool second_order(Backward *w, const Forward *f)
{
	Context *c = w->j->t->c;
	Duals *d1 = duals_new(c, NULL), *d2 = duals_new(c, NULL);
	Value **dout = NEW_ARRAY(c->arena, f->desc->n_outputs + 1, Value *);
	bool leaf = false;
	want_inputs(d2, f);
	if (!want_outputs(w, f, d1, d2, dout, &leaf))
		return false;
	want_inputs(d1, f);
	Op *before = w->j->b.block->last;
	if (f->first && !gradient_ops(&w->j->b, d1, f->first, f->last))
		return false;
	Op *first = before->next, *last = w->j->b.block->last;
	if (!leaf) // outputs depend on the inputs
		for (Op *op = f->first; op; op = op == f->last ? NULL : op->next)
			duals_reach(d2, op);
	if (!add_second(w, f, d1, d2) || (first && !gradient_ops(&w->j->b, d2, first, last)))
		return false;
	if (!leaf && f->first && !gradient_ops(&w->j->b, d2, f->first, f->last))
		return false;
	return write_given(w, f, dout, d2) &&
	       write_second(w, f->desc->n_inputs, f->desc->inputs, f->reads, d2) &&
	       write_second(w, f->desc->n_outputs, f->desc->outputs, f->writes, d2);
}

// ---- entry --------------------------------------------------------------------------------------

// The operators that w belongs to, where there are such.
static bool find_traces(Backward *w)
{
	const char *grad = arena_printf(w->j->t->c->arena, "%s_grad", w->forward);
	if (is_pir(w->j->desc))
		return (w->order == 1 || gradient_match(w->j, grad, &w->first)) &&
		       gradient_match(w->j, w->forward, &w->trace);
	w->first = w->order > 1 ? find_trace(w, grad, true) : NULL;
	w->trace = find_trace(w, w->forward, w->order > 1);
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
	if (!find_traces(&w) || !attributes_match(&w) || !all_come_in(&w) || !find_forward(&w, &f))
		return false;
	bool again = !w.trace || f.desc != w.trace->desc;
	bool ok = w.order > 1 ? second_order(&w, &f) : first_order(&w, &f);
	if (ok && again)
		use_given_results(&w, &f);
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
