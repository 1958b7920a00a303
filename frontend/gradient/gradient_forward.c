// What a gradient operator of a legacy program belongs to (backward.h): the forward operator, what
// was given, and its operations, in place or translated again on copies.
#include "frontend/gradient/backward.h"
#include "frontend/control/control.h"
#include "frontend/job/general.h"
#include "frontend/job/trace.h"
#include "ir/gradient/gradient.h"

#include <string.h>

// ---- the forward operator -----------------------------------------------------------------------

const OpTrace *backward_trace(const Backward *w, const char *type, bool second)
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
	const char *var = slot_var(gradient_given(d, slot, w->order > 1), i);
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

bool backward_all_come_in(const Backward *w)
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

bool backward_suits(Backward *w, const char *slot, const Value *v, const Type *type)
{
	bool suits = type_is_tensor(v->type) == type_is_tensor(type) &&
	             (!type_is_tensor(type) || v->type->rank == type->rank);
	for (int d = 0; suits && type_is_tensor(type) && d < type->rank; d++)
		suits = dims_may_equal(v->type->dims[d], type->dims[d]);
	return suits ||
	       job_fail(w->j, "the gradient that is given for %s has the sizes of another tensor",
	                slot);
}

Value *backward_given(Backward *w, const char *slot, size_t i, const Type *type)
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
	return v && backward_suits(w, slot, v, type) ? v : NULL;
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

// Whether the gradient operator gives the gradient of input slot `name`, variable i, which has
// whole numbers. Paddle's rules go for them as they do for floats; ours are for floats.
static bool asks_whole(const Backward *w, const char *name, size_t i, const Value *v)
{
	const Paddle__OpDesc *d = w->j->desc;
	return v && w->order == 1 && type_is_tensor(v->type) &&
	       (dtype_is_int(v->type->dtype) || v->type->dtype == DT_BOOL) &&
	       slot_var(gradient_slot(d->n_outputs, d->outputs, name, 1, false), i);
}

bool backward_stays(Backward *w)
{
	const OpTrace *t = w->trace;
	const Paddle__OpDesc *d = w->j->desc, *f = t ? t->desc : NULL;
	if (!t || t->block != w->j->t->block || w->order > 1)
		return false;
	for (size_t s = 0; s < f->n_inputs; s++) {
		for (size_t i = 0; i < f->inputs[s]->n_arguments; i++) {
			bool missing;
			const char *var = slot_var(f->inputs[s], i);
			Value *had = traced_value(t->reads, var);
			if (var && (given_value(w, f->inputs[s]->parameter, i, &missing) != had ||
			            !is_single(t, s, i) || asks_whole(w, f->inputs[s]->parameter, i, had)))
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

static Value *copied_input(Backward *w, const char *slot, size_t i, Value *v)
{
	if (asks_whole(w, slot, i, v))
		return tensor_cast(&w->j->b, v, DT_F64);
	return type_is_tensor(v->type) ? build1(&w->j->b, OP_PD_ASSIGN, v, NULL) : v;
}

// Whole numbers that f64 does not tell from their neighbours.
static bool check_whole(Builder *b, Value *dv)
{
	Value *most = build_full(b, dv->type, 9007199254740992.0), *size = apply1(b, OP_PD_ABS, dv);
	Value *holds = most && size ? build2(b, OP_PD_LESS_EQUAL, size, most, NULL) : NULL;
	return build_assert(b, holds, "the gradient of a tensor of whole numbers is beyond 2^53");
}

bool backward_whole(Backward *w, const char *slot, size_t i, Value **v, Value **dv)
{
	bool missing;
	if (!*v || (*v)->type->dtype != DT_F64)
		return true;
	Value *given = given_value(w, slot, i, &missing);
	if (!asks_whole(w, slot, i, given))
		return true;
	*v = given;
	if (*dv && dtype_size(given->type->dtype) == 8 && !check_whole(&w->j->b, *dv))
		return false;
	*dv = *dv ? tensor_cast(&w->j->b, *dv, given->type->dtype) : NULL;
	return true;
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
			b->value = copied_input(w, slot->parameter, i, v);
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

bool backward_again(Backward *w, Paddle__OpDesc **out, Scope **vars)
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
	*out = d;
	*vars = scope;
	return true;
}

void backward_use_results(Backward *w, const Forward *f)
{
	const Paddle__OpDesc *d = w->j->desc;
	for (size_t s = 0; s < f->desc->n_outputs; s++) {
		const Paddle__OpSlot *slot = f->desc->outputs[s],
							 *given = gradient_given(d, slot->parameter, w->order > 1);
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
