// Gradients of a whole program (grad.h).
#include "lower/grad/grad.h"
#include "ir/gradient/gradient.h"
#include "ir/build/build.h"

#include <string.h>

static bool fail(Op *module, const char *text, const char *name)
{
	diag_error(module->ctx->diag, &(Loc){.file = module->ctx->file, .block = -1, .op = -1}, text,
	           name);
	return false;
}

// The fetch of that name; *columns is how many columns there are in all.
static Op *find_fetch(Op *module, const char *name, int64_t *columns)
{
	Op *found = NULL;
	*columns = 0;
	for (Op *op = module_block(module)->first; op; op = op->next) {
		if (op->code != OP_PD_FETCH)
			continue;
		int64_t col = op_int(op, "col", 0);
		*columns = col >= *columns ? col + 1 : *columns;
		if (!found && !strcmp(op_str(op, "name", ""), name))
			found = op;
	}
	return found;
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

static void fetch_gradient(Builder *b, const char *of, int64_t col, Value *dv)
{
	Context *c = b->ctx;
	const char *name = context_str(c, arena_printf(c->arena, "grad.%s", of));
	Op *op = op_new(c, OP_PD_FETCH, b->loc, 0, NULL, 1, &dv, 0, 0);
	op_set_attr(op, "name", attr_str(c, name));
	op_set_attr(op, "col", attr_int(c, col));
	op_append(b->block, op);
}

bool differentiate(Op *module, const char *of, int nwrt, const char *const *wrt)
{
	Context *c = module->ctx;
	Block *block = module_block(module);
	int64_t col;
	Op *fetch = find_fetch(module, of, &col), *last = block->last;
	Duals *d = duals_new(c);
	Value **values = NEW_ARRAY(c->arena, (size_t)nwrt + 1, Value *);
	if (!fetch)
		return fail(module, "--grad: nothing that is called '%s' is fetched", of);
	Value *y = op_operand(fetch, 0);
	if (!type_is_tensor(y->type) || !dtype_is_float(y->type->dtype))
		return fail(module, "--grad: '%s' is no tensor of floating numbers", of);
	for (int i = 0; i < nwrt; i++) {
		values[i] = find_value(module, wrt[i]);
		if (!values[i])
			return fail(module, "--wrt: the program has no '%s'", wrt[i]);
		if (!type_is_tensor(values[i]->type) || !dtype_is_float(values[i]->type->dtype))
			return fail(module, "--wrt: '%s' is no tensor of floating numbers", wrt[i]);
		duals_want(d, values[i]);
	}
	Builder b = builder_at_end(c, block, fetch->loc);
	if (!duals_add(&b, d, y, build_full(&b, y->type, 1)) ||
	    !gradient_ops(&b, d, block->first, last))
		return false;
	for (int i = 0; i < nwrt; i++) {
		Value *dv = duals_get(&b, d, values[i]);
		fetch_gradient(&b, wrt[i], col + i, dv ? dv : gradient_zero(&b, values[i]->type));
	}
	return true;
}
