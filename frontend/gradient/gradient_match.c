// What gradient operators leave open that is no matter of derivatives. Called by gradient.c.
//
// Which forward operation a gradient operation of Paddle 3 belongs to (gradient.c). Values are all
// that tells: variables of gradients are not called after others. It has the operands and results
// that the gradient operation is given of it, in one place each, and says the same by its
// attributes. Where several do, what the gradient depends on is the same for all of them.
//
// foo_triple_grad, as programs have it that differentiate three times (the second derivatives of a
// physics-informed loss, and its gradient): the gradient of foo_grad_grad, which is translated anew
// on copies of what the operator is given. Paddle calls the slots of each such operator as it
// likes; no name means two things, though, so that one table serves all.
#include "frontend/gradient/gradient.h"
#include "frontend/job/trace.h"

#include <string.h>

// ---- the forward operation ----------------------------------------------------------------------

// relu is also relu_.
static bool same_type(const char *a, const char *b)
{
	size_t n = strlen(b);
	return strncmp(a, b, n) == 0 && (!a[n] || (a[n] == '_' && !a[n + 1]));
}

static bool same_longs(const Paddle__OpAttr *a, const Paddle__OpAttr *b)
{
	return a->n_longs == b->n_longs &&
	       (!a->n_longs || !memcmp(a->longs, b->longs, a->n_longs * sizeof *a->longs));
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same_texts(size_t n, char *const *a, size_t m, char *const *b)
{
	for (size_t i = 0; i < n && n == m; i++)
		if (strcmp(a[i], b[i]))
			return false;
	return n == m;
}

// Of the kinds that the reader of Paddle 3's programs makes. Lists of other numbers are the same in
// all operations of a type that has them.
static bool same_attr(const Paddle__OpAttr *a, const Paddle__OpAttr *b)
{
	return a->type == b->type && a->i == b->i && a->l == b->l && a->b == b->b &&
	       !(a->float64 < b->float64) && !(a->float64 > b->float64) && same_longs(a, b) &&
	       same_text(a->s, b->s) && same_text(a->var_name, b->var_name) &&
	       same_texts(a->n_vars_name, a->vars_name, b->n_vars_name, b->vars_name) &&
	       same_texts(a->n_strings, a->strings, b->n_strings, b->strings);
}

static bool same_attrs(const Paddle__OpDesc *d, const Paddle__OpDesc *of)
{
	for (size_t i = 0; i < d->n_attrs; i++) {
		const Paddle__OpAttr *other = attr_find(of, d->attrs[i]->name);
		// Where it was written says nothing.
		if (other && strcmp(other->name, "struct_name") && !same_attr(d->attrs[i], other))
			return false;
	}
	return true;
}

// What is given for a slot of the operation; S@GRAD of foo_grad is what foo_double_grad calls
// grad_S.
static const Paddle__OpSlot *given_slot(OpJob *j, const Paddle__OpDesc *d, const char *name)
{
	size_t stem;
	const Paddle__OpSlot *given = slot_find(d->n_inputs, d->inputs, name);
	if (given || !name_ends_with(name, GRAD, &stem))
		return given;
	return gradient_slot(d->n_inputs, d->inputs, arena_strndup(j->t->c->arena, name, stem), 1,
	                     true);
}

// How many of the operation's slots d is given; -1: one that has other variables.
static int given_slots(OpJob *j, const Paddle__OpDesc *d, size_t n, Paddle__OpSlot *const *slots)
{
	int many = 0;
	for (size_t i = 0; i < n; i++) {
		const Paddle__OpSlot *s = slots[i], *given = given_slot(j, d, s->parameter);
		if (!given || !slot_var(given, 0))
			continue;
		if (!same_texts(given->n_arguments, given->arguments, s->n_arguments, s->arguments))
			return -1;
		many++;
	}
	return many;
}

// The same of its operands and results.
static int given_all(OpJob *j, const Paddle__OpDesc *d, const Paddle__OpDesc *of)
{
	const int in = given_slots(j, d, of->n_inputs, of->inputs);
	const int out = in < 0 ? -1 : given_slots(j, d, of->n_outputs, of->outputs);
	return out < 0 ? -1 : in + out;
}

// Whether what the gradient operation is given in `in` has the types of the variables in `of`.
static bool fits(OpJob *j, const Paddle__OpSlot *in, const Paddle__OpSlot *of,
                 const TracedVar *vars)
{
	for (size_t i = 0; i < of->n_arguments; i++) {
		const char *var = slot_var(in, i);
		Value *v = var ? read_var(j, in->parameter, var) : NULL;
		Value *own = traced_value(vars, slot_var(of, i));
		if (v && own && v->type != own->type)
			return false;
	}
	return true;
}

// Whether what comes in can be the gradients of the operation's results, and, for what
// differentiates twice, of its operands' gradients, which are results of foo_grad.
static bool fitting(OpJob *j, const OpTrace *t)
{
	const Paddle__OpDesc *d = j->desc, *of = t->desc;
	Arena *a = j->t->c->arena;
	size_t stem;
	for (size_t s = 0; s < of->n_inputs; s++)
		if (!fits(j, gradient_slot(d->n_inputs, d->inputs, of->inputs[s]->parameter, 2, true),
		          of->inputs[s], t->reads))
			return false;
	for (size_t s = 0; s < of->n_outputs; s++) {
		const char *name = of->outputs[s]->parameter;
		const Paddle__OpSlot *in = slot_find(d->n_inputs, d->inputs,
		                                     arena_printf(a, "%s" GRAD, name));
		if (name_ends_with(name, GRAD, &stem))
			in = gradient_slot(d->n_inputs, d->inputs, arena_strndup(a, name, stem), 2, true);
		if (!fits(j, in, of->outputs[s], t->writes))
			return false;
	}
	return true;
}

// Whether the gradient operation reads something else of its forward operation that tells it from
// others, which pdcc has no name for.
static bool reads_more(const Paddle__OpDesc *d, const OpTrace *t)
{
	for (size_t i = 0; i < d->n_inputs; i++)
		if (!strchr(d->inputs[i]->parameter, '@') && slot_var(d->inputs[i], 0))
			return t != NULL;
	return false;
}

bool gradient_match(OpJob *j, const char *type, const OpTrace *by, const OpTrace **found)
{
	int most = -1;
	*found = NULL;
	for (const OpTrace *t = j->t->traces; t; t = t->before) {
		if (!same_type(t->desc->type, type) || !same_attrs(j->desc, t->desc))
			continue;
		int own = given_all(j, j->desc, t->desc), its = by ? given_all(j, by->desc, t->desc) : 0;
		if (own < 0 || its < 0)
			continue;
		const bool fits = fitting(j, t);
		if (own + its == 0 && !fits)
			continue;
		if (own + its == 0 && reads_more(j->desc, *found))
			return job_fail(j, "which operation '%s' it is the gradient of is not known", type);
		if (2 * (own + its) + fits > most) {
			most = 2 * (own + its) + fits;
			*found = t;
		}
	}
	return true;
}

// ---- third order --------------------------------------------------------------------------------

typedef struct Named {
	const char *slot, *as;
} Named;

// What foo_grad_grad is given. The gradient of slot S is asked for as S@GRAD or D_S.
static const Named values[] = {{"X", "X"},
                               {"Y", "Y"},
                               {"Out", "Out"},
                               {"x", "x"},
                               {"y", "y"},
                               {"out", "out"},
                               {"FactorTensor", "FactorTensor"},
                               {"grad_out", "grad_out"},
                               {"fwd_grad_out", "grad_out"},
                               {"grad_out_forward", "grad_out"},
                               {"grad_grad_x", "grad_x" GRAD},
                               {"grad_grad_y", "grad_y" GRAD},
                               {"fwd_grad_grad_x", "grad_x" GRAD},
                               {"fwd_grad_grad_y", "grad_y" GRAD},
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
