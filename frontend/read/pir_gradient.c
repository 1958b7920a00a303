// Gradient operations of Paddle 3's programs: foo_grad, foo_double_grad, foo_triple_grad. They have
// no rows of their own in the operator table: Paddle declares what they are given and give in the
// names of foo's operands and results, and pdcc's names for those make the slots that gradient
// operators of legacy programs have, x@GRAD for the gradient of x (frontend/translate/gradient.c).
#include "frontend/read/pir.h"

#include <string.h>

// A gradient operation, and the forward operation whose names it uses.
typedef struct PirGradient {
	PirReader *r;
	const PirDeclared *own, *forward;
	const PirMap *map; // of the forward operation
	bool third;
} PirGradient;

static const char *strip(PirReader *r, const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n > k && !strcmp(s + n - k, end) ? arena_strndup(r->c->arena, s, n - k) : NULL;
}

static const char *grad(PirReader *r, const char *of)
{
	return of ? arena_printf(r->c->arena, "%s@GRAD", of) : NULL;
}

// What the forward operation's operand or result is here; NULL: pdcc does not read it, or it has
// none of that name.
static const char *forward_name(const PirGradient *g, const char *name, bool *found)
{
	*found = true;
	for (int i = 0; i < g->forward->nin; i++)
		if (!strcmp(g->forward->in[i].name, name))
			return i < g->map->nin ? g->map->in[i] : NULL;
	for (int i = 0; i < g->forward->nout; i++)
		if (!strcmp(g->forward->out[i].name, name))
			return i < g->map->nout ? g->map->out[i] : NULL;
	*found = false;
	return NULL;
}

// What differentiates three times calls its operands as it likes, and what comes in for a result of
// foo_double_grad, or goes to an operand of it, after those with _grad (third_translate knows
// them).
static const char *third_slot(const PirGradient *g, const char *name, const char *stem)
{
	bool found;
	const char *slot = stem ? forward_name(g, stem, &found) : NULL;
	return stem ? grad(g->r, slot ? slot : stem) : name;
}

// out_grad is out@GRAD; in what differentiates twice, grad_out is what came in for out, and
// grad_x_grad the gradient of what foo_grad gives for x.
static const char *slot_of(const PirGradient *g, const char *name)
{
	static const char grad_of[] = "grad_";
	bool found;
	const char *slot = forward_name(g, name, &found), *stem = strip(g->r, name, "_grad");
	if (found)
		return slot;
	if (g->third)
		return third_slot(g, name, stem);
	if (stem)
		return grad(g->r, slot_of(g, stem));
	if (strncmp(name, grad_of, strlen(grad_of)) != 0)
		return NULL;
	slot = forward_name(g, name + strlen(grad_of), &found);
	return slot ? arena_printf(g->r->c->arena, "grad_%s", slot) : NULL;
}

// `all`: what pdcc has no name for keeps its own, by which it is told that it is there.
static const char *const *slots_of(const PirGradient *g, int n, const PirArg *args, bool all)
{
	const char **slots = NEW_ARRAY(g->r->c->arena, n, const char *);
	for (int i = 0; i < n; i++) {
		slots[i] = slot_of(g, args[i].name);
		if (!slots[i] && all)
			slots[i] = args[i].name;
	}
	return slots;
}

// The forward operation of a gradient operation's name: one that is only declared in place, too.
static bool find_forward(PirGradient *g, const char *name, const OpInfo **info)
{
	static const char *const ends[] = {"_triple_grad", "_grad_grad", "_double_grad", "_grad"};
	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		const char *of = strip(g->r, name, ends[i]);
		g->map = of ? op_info_by_pir(of, info) : NULL;
		g->forward = of ? pir_declared(of) : NULL;
		if (of && !g->forward)
			g->forward = pir_declared(arena_printf(g->r->c->arena, "%s_", of));
		g->third = i == 0;
		if (g->map && g->forward)
			return true;
	}
	return false;
}

const PirMap *pir_gradient(PirReader *r, const char *name, const OpInfo **info)
{
	PirGradient g = {.r = r, .own = pir_declared(name)};
	if (!g.own || !find_forward(&g, name, info))
		return NULL;
	PirMap *m = NEW(r->c->arena, PirMap);
	*m = (PirMap){.code = g.map->code, .nin = g.own->nin, .nout = g.own->nout};
	m->map.type = arena_printf(r->c->arena, "pd_op.%s", name);
	m->in = slots_of(&g, g.own->nin, g.own->in, true);
	m->out = slots_of(&g, g.own->nout, g.own->out, false);
	return m;
}
