// Derivatives of a whole program (grad.h).
#include "lower/grad/grad.h"
#include "ir/build/build.h"
#include "ir/gradient/gradient.h"
#include "lower/grad/ports.h"

#include <string.h>

static const char *option_of(const Derivative *d)
{
	return d->forward ? "--jvp" : "--grad";
}

static bool fail(Op *module, const char *option, const char *text, const char *name)
{
	diag_error(module->ctx->diag, &(Loc){.file = module->ctx->file, .block = -1, .op = -1}, text,
	           option, name);
	return false;
}

// What the program first calls by this name: an input, a parameter, or a result.
static Value *find_value(Op *module, const char *name)
{
	for (Op *op = module_block(module)->first; op; op = op->next) {
		bool named = op->code == OP_PD_FEED || op->code == OP_BUILTIN_GET_PARAMETER;
		if (named && !strcmp(op_str(op, "name", ""), name))
			return op_result(op, 0);
		for (int i = 0; i < op->nresult; i++)
			if (op->results[i].name && !strcmp(op->results[i].name, name))
				return op_result(op, i);
	}
	return NULL;
}

const char *derivative_name(Context *c, const Derivative *d, int i)
{
	const bool twice = !strncmp(d->of, "grad.", 5) || !strncmp(d->of, "tangent.", 8);
	if (d->forward)
		return context_str(c, arena_printf(c->arena, "tangent.%s", d->of));
	return context_str(c, arena_printf(c->arena, "%s.%s", twice ? d->of : "grad", d->wrt[i]));
}

// For pass strip-backward, which takes out again what reverse mode put in: where that begins.
static void mark(Op *op)
{
	if (op)
		op_set_attr(op, "backward", attr_bool(op->ctx, true));
}

static Op *fetch(Op *module, const char *option, const char *name, Value *v)
{
	if (!module_find(module, OP_PD_FETCH, name))
		return port_fetch(module, name, v);
	fail(module, option, "%s: '%s' is fetched already", name);
	return NULL;
}

// A new input like v, in front of everything; NULL after a diagnostic.
static Value *feed_like(Op *module, const char *option, const char *name, const Value *v)
{
	const Type *t = type_tensor(module->ctx, v->type->dtype, v->type->rank, v->type->dims, 0);
	if (!type_is_found(t))
		return port_feed(module, name, t);
	fail(module, option, "%s: input '%s' would have a size that only the run finds", name);
	return NULL;
}

// What the derivative is with respect to.
static bool find_wrt(Op *module, const Derivative *d, Value **values, Duals *duals)
{
	if (!d->nwrt)
		return fail(module, option_of(d), "%s: --wrt says nothing for '%s'", d->of);
	for (int i = 0; i < d->nwrt; i++) {
		values[i] = find_value(module, d->wrt[i]);
		if (!values[i])
			return fail(module, "--wrt", "%s: the program has no '%s'", d->wrt[i]);
		if (!type_is_tensor(values[i]->type) || !dtype_is_float(values[i]->type->dtype))
			return fail(module, "--wrt", "%s: '%s' is no tensor of floating numbers", d->wrt[i]);
		duals_want(duals, values[i]);
	}
	return true;
}

static bool reverse(Op *module, const Derivative *r, Value *y, Value **values, Duals *d)
{
	Block *block = module_block(module);
	Op *last = block->last;
	if (r->cotangent && module_find(module, OP_PD_FEED, r->cotangent))
		return fail(module, "--cotangent", "%s: there is an input '%s' already", r->cotangent);
	Value *in = r->cotangent ? feed_like(module, "--cotangent", r->cotangent, y) : NULL;
	Builder b = builder_at_end(module->ctx, block, last->loc);
	if (in)
		mark(in->def);
	in = r->cotangent ? in : build_full(&b, y->type, 1);
	if (!in || !duals_add(&b, d, y, in) || !gradient_ops(&b, d, block->first, last))
		return false;
	for (int i = 0; i < r->nwrt; i++) {
		Value *dv = duals_get(&b, d, values[i]);
		if (!fetch(module, "--grad", derivative_name(b.ctx, r, i),
		           dv ? dv : gradient_zero(&b, values[i]->type)))
			return false;
	}
	mark(last->next);
	return true;
}

static bool forward(Op *module, const Derivative *r, Value *y, Value **values, Duals *d)
{
	Context *c = module->ctx;
	Block *block = module_block(module);
	for (int i = 0; i < r->nwrt; i++) {
		const char *name = arena_printf(c->arena, "tangent.%s", r->wrt[i]);
		Op *feed = module_find(module, OP_PD_FEED, name);
		Value *t = feed ? op_result(feed, 0) : feed_like(module, "--jvp", name, values[i]);
		Builder b = builder_before(block->first);
		if (!t || !duals_add(&b, d, values[i], t))
			return false;
	}
	// y may be the result of a loop, which is another then.
	Op *reads = op_new(c, OP_PD_FETCH, &loc_unknown, 0, NULL, 1, &y, 0, 0);
	op_append(block, reads);
	bool ok = tangent_ops(d, block->first, reads->prev);
	y = op_operand(reads, 0);
	op_erase(reads);
	Builder b = builder_at_end(c, block, &loc_unknown);
	Value *t = ok ? duals_get(&b, d, y) : NULL;
	return ok && fetch(module, "--jvp", derivative_name(c, r, 0),
	                   t ? t : gradient_zero(&b, y->type)) != NULL;
}

static bool derive(Op *module, const Derivative *r, bool again, const DeriveHow *how)
{
	Context *c = module->ctx;
	Op *fetched = module_find(module, OP_PD_FETCH, r->of);
	const DualsHow made = {
		.arrays = again, .marks = true, .expand = how->expand, .remat = how->remat};
	Duals *d = duals_new(c, &made);
	Value **values = NEW_ARRAY(c->arena, (size_t)r->nwrt + 1, Value *);
	if (!fetched)
		return fail(module, option_of(r), "%s: nothing that is called '%s' is fetched", r->of);
	Value *y = op_operand(fetched, 0);
	if (!type_is_tensor(y->type) || !dtype_is_float(y->type->dtype))
		return fail(module, option_of(r), "%s: '%s' is no tensor of floating numbers", r->of);
	if (!find_wrt(module, r, values, d))
		return false;
	return r->forward ? forward(module, r, y, values, d) : reverse(module, r, y, values, d);
}

bool differentiate(Op *module, int n, const Derivative *list, const DeriveHow *how)
{
	for (int i = 0; i < n; i++)
		if (!derive(module, &list[i], i + 1 < n, how))
			return false;
	return true;
}
