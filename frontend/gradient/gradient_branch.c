// conditional_block_grad: a branch on the same condition. Its block runs in the scope that the
// forward block has left; here the region translates the forward block again, on the values that it
// read then, and the gradient block behind it, which sees the forward block's variables. Where the
// condition does not hold, the gradients are zero.
#include "frontend/control/control.h"
#include "frontend/gradient/gradient.h"
#include "frontend/job/array_types.h"
#include "frontend/job/flow.h"
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/job/trace.h"
#include "ir/gradient/gradient.h"

#include <string.h>

typedef struct Branch {
	const OpTrace *forward;
	int block;            // what it ran
	const char **inside;  // the gradients in the region, in the order of BranchBody.names
	const Binding **were; // what held them in front of the branch; NULL: nobody
	const Value **held;   // and what that was
} Branch;

// The last conditional_block before this operator that left this scope.
static bool find_forward(OpJob *j, Branch *w)
{
	const char *scope = input_var(j, "Scope");
	for (const OpTrace *t = j->t->traces; t && scope && !w->forward; t = t->before) {
		const Paddle__OpDesc *d = t->desc;
		const char *left = slot_var(slot_find(d->n_outputs, d->outputs, "Scope"), 0);
		if (!strcmp(d->type, "conditional_block") && left && !strcmp(left, scope) &&
		    t->block == j->t->block)
			w->forward = t;
	}
	const Paddle__OpAttr *a = w->forward ? attr_find(w->forward->desc, "sub_block") : NULL;
	w->block = a && a->has_block_idx ? a->block_idx : -1;
	if (w->block <= 0)
		return job_fail(j, "no conditional_block before it left its scope");
	return gradient_attributes(j, w->forward->desc);
}

// Variables from around the forward block as it found them.
static void pin_outer(OpJob *j, const Branch *w, Scope *into)
{
	const BlockFlow *f = flow_of(j->t, w->block);
	const NameList *const lists[] = {&f->exposed, &f->writes};
	for (size_t k = 0; k < COUNT_OF(lists); k++) {
		for (int i = 0; i < lists[k]->n; i++) {
			const char *var = lists[k]->names[i];
			const Binding *b = scope_find(j->t, var);
			Binding *to = NEW(j->t->c->arena, Binding);
			*to = (Binding){.desc = b ? b->desc : NULL, .written = true};
			for (const TracedVar *r = w->forward->reads; r; r = r->next)
				if (!strcmp(r->var, var))
					to->value = r->value;
			name_map_set(into->vars, var, to);
		}
	}
}

static bool forward_again(OpJob *j, BranchBody *body)
{
	const Branch *w = body->with;
	Translator *t = j->t;
	Scope *gradient = t->scope, *outer = gradient->parent, *pinned = NEW(t->c->arena, Scope);
	const Frame frame = t->frame;
	*pinned = (Scope){outer, name_map_new(t->c->arena)};
	pin_outer(j, w, pinned);
	t->scope = scope_new(t, w->block, pinned);
	t->block_index = w->block;
	t->frame = (Frame){.block = w->block, .outer = frame.outer, .later = body->block};
	bool ok = region_translate(t);
	t->scope->parent = outer;
	gradient->parent = t->scope;
	t->scope = gradient;
	t->block_index = body->block;
	t->frame = frame;
	return ok;
}

// The gradients as the region leaves them; zero where it has not written any.
static bool read_gradients(OpJob *j, BranchBody *body)
{
	const Branch *w = body->with;
	for (int i = 0; i < body->n; i++) {
		const Binding *b = scope_find(j->t, w->inside[i]);
		bool written = b && (b != w->were[i] || b->guard || b->value != w->held[i]) &&
		               (b->value || b->guard);
		Value *v = written ? read_var(j, "Input@GRAD", w->inside[i]) : body->other[i];
		if (!v)
			return false;
		const Type *want = body->other[i]->type;
		if (type_is_tensor(v->type) && type_is_tensor(want) && v->type->rank != want->rank)
			v = tensor_reshape(&j->b, v, want->rank, want->dims);
		if (!v)
			return false;
		body->values[i] = v;
	}
	return true;
}

static bool list_gradients(OpJob *j, Branch *w, BranchBody *body)
{
	Context *c = j->t->c;
	const Paddle__OpDesc *d = j->desc;
	const Paddle__OpSlot *in = slot_find(d->n_inputs, d->inputs, "Input"),
						 *out = slot_find(d->n_outputs, d->outputs, "Input@GRAD");
	size_t n = in ? in->n_arguments : 0;
	body->names = NEW_ARRAY(c->arena, n + 1, const char *);
	body->values = NEW_ARRAY(c->arena, n + 1, Value *);
	body->other = NEW_ARRAY(c->arena, n + 1, Value *);
	w->inside = NEW_ARRAY(c->arena, n + 1, const char *);
	w->were = NEW_ARRAY(c->arena, n + 1, const Binding *);
	w->held = NEW_ARRAY(c->arena, n + 1, const Value *);
	for (size_t i = 0; i < n; i++) {
		const char *var = slot_var(in, i), *gradient = slot_var(out, i);
		Value *v = var && gradient ? read_var(j, "Input", var) : NULL;
		if (!var || !gradient)
			continue;
		if (!v)
			return false;
		if (!type_is_tensor(v->type) && v->type->kind != TY_ARRAY)
			return job_fail(j, "the gradient of '%s', which is no tensor, is not supported", var);
		Value *zero = gradient_zeros_for(&j->b, v);
		if (!zero || (v->type->kind == TY_ARRAY && !array_learn(j, gradient, v->type)))
			return false;
		lod_set(j->t, zero, lod_of(j->t, v));
		w->inside[body->n] = context_str(c, arena_printf(c->arena, "%s@GRAD", var));
		w->were[body->n] = scope_find(j->t, w->inside[body->n]);
		w->held[body->n] = w->were[body->n] ? w->were[body->n]->value : NULL;
		body->names[body->n] = gradient;
		body->other[body->n++] = zero;
	}
	return true;
}

bool branch_gradient_translate(OpJob *j)
{
	Branch w = {0};
	BranchBody body = {
		.block = sub_block_of(j), .before = forward_again, .behind = read_gradients, .with = &w};
	return body.block >= 0 && find_forward(j, &w) && list_gradients(j, &w, &body) &&
	       branch_translate(j, &body);
}
