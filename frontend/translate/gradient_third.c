// foo_triple_grad, as programs have it that differentiate three times (the second derivatives of a
// physics-informed loss, and its gradient): the gradient of foo_grad_grad, which is translated anew
// on copies of what the operator is given. Paddle calls the slots of each such operator as it
// likes; no name means two things, though, so that one table serves all. Called by gradient.c.
#include "frontend/translate/gradient.h"

#include <string.h>

#define GRAD "@GRAD"

typedef struct Named {
	const char *slot, *as;
} Named;

// What foo_grad_grad is given. The gradient of slot S is asked for as S@GRAD or D_S.
static const Named values[] = {{"X", "X"},
                               {"Y", "Y"},
                               {"Out", "Out"},
                               {"FactorTensor", "FactorTensor"},
                               {"grad_out", "grad_out"},
                               {"fwd_grad_out", "grad_out"},
                               {"grad_out_forward", "grad_out"},
                               {"grad_grad_x", "grad_x" GRAD},
                               {"grad_grad_y", "grad_y" GRAD},
                               {"grad_x_grad_forward", "grad_x" GRAD},
                               {"DOut", "DOut"},
                               {"DDX", "DDX"},
                               {"DDY", "DDY"}};

// What comes in for the results of foo_grad_grad.
static const Named gradients[] = {{"grad_x" GRAD, "X" GRAD},
                                  {"grad_y" GRAD, "Y" GRAD},
                                  {"D_DX", "X" GRAD},
                                  {"D_DY", "Y" GRAD},
                                  {"grad_out" GRAD, "Out" GRAD},
                                  {"grad_out_new" GRAD, "Out" GRAD},
                                  {"grad_grad_out" GRAD, "grad_out" GRAD},
                                  {"grad_out_grad" GRAD, "grad_out" GRAD},
                                  {"D_DDOut", "DDOut"}};

static const char *named(const Named *list, size_t n, const char *slot)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].slot, slot))
			return list[i].as;
	return NULL;
}

// The slot under another name.
static Paddle__OpSlot *slot_as(Context *c, const Paddle__OpSlot *from, const char *name)
{
	Paddle__OpSlot *s = NEW(c->arena, Paddle__OpSlot);
	*s = *from;
	s->parameter = (char *)context_str(c, name);
	return s;
}

// `again` is foo_grad_grad, `back` the operator itself with the slots of its gradient. Operands of
// foo_grad_grad keep their names, by which its own forward operators are found, but for one that
// has the variable of another.
typedef struct Third {
	OpJob *j;
	Scope *scope;
	Paddle__OpDesc again, back;
} Third;

static bool is_bound(const Third *x, const char *var)
{
	return name_map_get(x->scope->vars, var) != NULL;
}

static bool give_value(Third *x, const Paddle__OpSlot *in, const char *as)
{
	Context *c = x->j->t->c;
	const char *var = slot_var(in, 0);
	Value *v = read_var(x->j, in->parameter, var);
	Binding *b = NEW(c->arena, Binding);
	if (!v)
		return false;
	b->value = build1(&x->j->b, OP_PD_ASSIGN, v, NULL);
	Paddle__OpSlot *slot = slot_new(c, as, 1);
	if (!is_bound(x, var))
		slot->arguments[0] = (char *)var;
	name_map_set(x->scope->vars, slot->arguments[0], b);
	x->again.inputs[x->again.n_inputs++] = slot;
	return b->value != NULL;
}

static void give_gradient(Third *x, const Paddle__OpSlot *in, const char *of)
{
	Context *c = x->j->t->c;
	Paddle__OpSlot *out = slot_new(c, of, 1);
	name_map_set(x->scope->vars, out->arguments[0], NEW(c->arena, Binding));
	x->again.outputs[x->again.n_outputs++] = out;
	x->back.inputs[x->back.n_inputs++] = slot_as(c, in, arena_printf(c->arena, "%s" GRAD, of));
}

static bool name_inputs(Third *x)
{
	const Paddle__OpDesc *d = x->j->desc;
	for (size_t i = 0; i < d->n_inputs; i++) {
		const Paddle__OpSlot *in = d->inputs[i];
		const char *value = named(values, COUNT_OF(values), in->parameter);
		const char *of = named(gradients, COUNT_OF(gradients), in->parameter);
		if (!slot_var(in, 0))
			continue;
		if (!value && !of)
			return job_fail(x->j, "input %s is not known", in->parameter);
		if (value && !give_value(x, in, value))
			return false;
		if (!value)
			give_gradient(x, in, of);
	}
	return true;
}

static bool name_outputs(Third *x)
{
	const Paddle__OpDesc *d = x->j->desc;
	Context *c = x->j->t->c;
	for (size_t i = 0; i < d->n_outputs; i++) {
		const Paddle__OpSlot *out = d->outputs[i];
		const char *name = out->parameter, *end = strstr(name, GRAD);
		const char *slot = end ? arena_strndup(c->arena, name, (size_t)(end - name))
		                       : name + (strncmp(name, "D_", 2) ? 0 : 2);
		const char *value = named(values, COUNT_OF(values), slot);
		if (!value)
			return job_fail(x->j, "output %s is the gradient of no input", name);
		x->back.outputs[x->back.n_outputs++] = slot_as(c, out,
		                                               arena_printf(c->arena, "%s" GRAD, value));
	}
	return true;
}

bool third_translate(OpJob *j, const char *forward)
{
	const Paddle__OpDesc *d = j->desc;
	Arena *a = j->t->c->arena;
	Third x = {.j = j, .scope = NEW(a, Scope)};
	Forward f;
	*x.scope = (Scope){j->t->scope, name_map_new(a)};
	paddle__op_desc__init(&x.again);
	x.back = x.again;
	x.again.type = arena_printf(a, "%s_grad_grad", forward);
	x.back.type = d->type;
	x.again.n_attrs = x.back.n_attrs = d->n_attrs;
	x.again.attrs = x.back.attrs = d->attrs;
	x.again.inputs = NEW_ARRAY(a, d->n_inputs + 1, Paddle__OpSlot *);
	x.again.outputs = NEW_ARRAY(a, d->n_inputs + 1, Paddle__OpSlot *);
	x.back.inputs = NEW_ARRAY(a, d->n_inputs + 1, Paddle__OpSlot *);
	x.back.outputs = NEW_ARRAY(a, d->n_outputs + 1, Paddle__OpSlot *);
	Paddle__OpDesc *again = NEW(a, Paddle__OpDesc); // traces outlive this function
	if (!name_inputs(&x) || !name_outputs(&x))
		return false;
	*again = x.again;
	if (!forward_translate(j, again, x.scope, &f))
		return false;
	OpJob back = *j;
	back.desc = &x.back;
	return gradient_of_translated(&back, &f);
}
