// conditional_block_grad: a pd.if on the same condition, whose region computes what the forward
// block computed again and then its gradient; where the condition does not hold, the gradients are
// zero. The block that the legacy operator holds says the same operator by operator, on variables
// that the forward block left in its scope; it is not read.
#include "frontend/translate/control.h"
#include "frontend/translate/gradient.h"
#include "ir/gradient/gradient.h"

#include <string.h>

typedef struct Branch {
	OpJob *j;
	const Paddle__OpDesc *forward;
	int block; // what the forward operator runs
	const Paddle__OpSlot *in, *out, *d_in, *d_out;
	int n;          // gradients asked for
	size_t *which;  // of which inputs
	Value **inputs; // their values out here
	Value **copies; // in the region
	Value **d_outs;
} Branch;

static bool same_outputs(const Paddle__OpSlot *a, const Paddle__OpSlot *b)
{
	if (!a || !b || a->n_arguments != b->n_arguments)
		return false;
	for (size_t i = 0; i < a->n_arguments; i++)
		if (strcmp(a->arguments[i], b->arguments[i]))
			return false;
	return true;
}

// The last conditional_block before this operator with these outputs.
static bool find_forward(Branch *w)
{
	Translator *t = w->j->t;
	const Paddle__BlockDesc *b = t->p->blocks[t->block_index];
	for (int i = t->frame.op - 1; i >= 0 && !w->forward; i--) {
		const Paddle__OpDesc *d = b->ops[i];
		if (!strcmp(d->type, "conditional_block") &&
		    same_outputs(slot_find(d->n_outputs, d->outputs, "Out"), w->out))
			w->forward = d;
	}
	const Paddle__OpAttr *a = w->forward ? attr_find(w->forward, "sub_block") : NULL;
	w->block = a && a->has_block_idx ? a->block_idx : -1;
	return w->block > 0 || job_fail(w->j, "no conditional_block before it has these outputs");
}

static bool read_all(Branch *w)
{
	OpJob *j = w->j;
	size_t n = w->in ? w->in->n_arguments : 0, m = w->out->n_arguments;
	w->which = NEW_ARRAY(j->t->c->arena, n + 1, size_t);
	w->inputs = NEW_ARRAY(j->t->c->arena, n + 1, Value *);
	w->copies = NEW_ARRAY(j->t->c->arena, n + 1, Value *);
	w->d_outs = NEW_ARRAY(j->t->c->arena, m + 1, Value *);
	for (size_t i = 0; i < n; i++) {
		if (!slot_var(w->in, i) || !slot_var(w->d_in, i))
			continue;
		Value *v = read_var(j, "Input", slot_var(w->in, i));
		if (!v)
			return false;
		if (!type_is_tensor(v->type))
			return job_fail(j, "the gradient of '%s', which is no tensor, is not supported",
			                slot_var(w->in, i));
		w->inputs[w->n] = v;
		w->which[w->n++] = i;
	}
	for (size_t i = 0; i < m; i++) {
		const char *var = slot_var(w->d_out, i);
		const Binding *b = var ? scope_find(j->t, var) : NULL;
		if (!b || (!b->value && !b->guard && !b->broken))
			continue; // nothing has come in for it
		if (!(w->d_outs[i] = read_var(j, "Out@GRAD", var)))
			return false;
	}
	return true;
}

// In the region: variables whose gradients are asked for hold copies, each a value of its own.
static void bind_copies(Branch *w, Builder *b, Duals *d)
{
	Translator *t = w->j->t;
	for (int i = 0; i < w->n; i++) {
		Binding *to = NEW(t->c->arena, Binding);
		*to = *scope_find(t, slot_var(w->in, w->which[i]));
		w->copies[i] = to->value = build1(b, OP_PD_ASSIGN, w->inputs[i], NULL);
		to->written = true; // what the block does to it stays here
		to->guard = NULL;
		name_map_set(t->scope->vars, slot_var(w->in, w->which[i]), to);
		duals_want(d, w->copies[i]);
	}
}

static bool add_outputs(Branch *w, OpJob *inner, Duals *d)
{
	for (size_t i = 0; i < w->out->n_arguments; i++) {
		if (!w->d_outs[i])
			continue;
		Value *out = read_var(inner, "Out", slot_var(w->out, i)), *dv = w->d_outs[i];
		if (!out)
			return false;
		if (type_is_tensor(out->type) && type_is_tensor(dv->type) &&
		    out->type->rank != dv->type->rank)
			dv = build1(&inner->b, OP_PD_RESHAPE, dv, "shape",
			            attr_dims(inner->t->c, out->type->rank, out->type->dims), NULL);
		if (!dv || !duals_add(&inner->b, d, out, dv))
			return false;
	}
	return true;
}

static bool taken_side(Branch *w, Op *branch)
{
	Translator *t = w->j->t;
	Context *c = t->c;
	Outside o;
	Block *into = block_new(c, &branch->regions[0]);
	Duals *d = duals_new(c);
	Value **yields = NEW_ARRAY(c->arena, (size_t)w->n + 1, Value *);
	region_enter(t, &o, into, w->block);
	OpJob inner = {.t = t, .desc = w->j->desc, .b = builder_at_end(c, into, w->j->b.loc)};
	bind_copies(w, &inner.b, d);
	bool ok = region_translate(t);
	Op *last = into->last;
	ok = ok && add_outputs(w, &inner, d);
	// Reading an output may have closed a branch inside.
	last = ok && into->last ? into->last : last;
	ok = ok && (!last || gradient_ops(&inner.b, d, into->first, last));
	for (int i = 0; i < w->n && ok; i++) {
		yields[i] = duals_get(&inner.b, d, w->copies[i]);
		yields[i] = yields[i] ? yields[i] : gradient_zero(&inner.b, w->inputs[i]->type);
		ok = yields[i] != NULL;
	}
	region_leave(t, &o);
	if (ok)
		op_append(into, op_new(c, OP_CF_YIELD, w->j->b.loc, 0, NULL, w->n, yields, 0, 0));
	return ok;
}

static void other_side(Branch *w, Op *branch)
{
	Context *c = w->j->t->c;
	Block *into = block_new(c, &branch->regions[1]);
	Builder b = builder_at_end(c, into, w->j->b.loc);
	Value **yields = NEW_ARRAY(c->arena, (size_t)w->n + 1, Value *);
	for (int i = 0; i < w->n; i++)
		yields[i] = gradient_zero(&b, w->inputs[i]->type);
	op_append(into, op_new(c, OP_CF_YIELD, w->j->b.loc, 0, NULL, w->n, yields, 0, 0));
}

bool branch_gradient_translate(OpJob *j)
{
	Context *c = j->t->c;
	const Paddle__OpDesc *d = j->desc;
	Branch w = {.j = j,
	            .in = slot_find(d->n_inputs, d->inputs, "Input"),
	            .out = slot_find(d->n_inputs, d->inputs, "Out"),
	            .d_in = slot_find(d->n_outputs, d->outputs, "Input@GRAD"),
	            .d_out = slot_find(d->n_inputs, d->inputs, "Out@GRAD")};
	const char *var = slot_var(slot_find(d->n_inputs, d->inputs, "Cond"), 0);
	Value *cond = var ? read_var(j, "Cond", var) : NULL;
	if (!cond || !w.out)
		return var ? false : job_fail(j, "has no condition, or no outputs");
	if (!find_forward(&w) || !read_all(&w))
		return false;
	if (!w.n)
		return true;
	const Type **types = NEW_ARRAY(c->arena, (size_t)w.n, const Type *);
	for (int i = 0; i < w.n; i++)
		types[i] = w.inputs[i]->type;
	Op *branch = op_new(c, OP_PD_IF, j->b.loc, w.n, types, 1, &cond, 2, 0);
	op_append(j->t->block, branch);
	if (!taken_side(&w, branch))
		return false;
	other_side(&w, branch);
	for (int i = 0; i < w.n; i++)
		write_var(j, slot_var(w.d_in, w.which[i]), op_result(branch, i));
	return true;
}
