// What all rules of the verifier share: how they report, comparing types, and what a region that
// ends with loop.yield must be (rules.h).
#include "ir/verify/rules.h"

#include <stdarg.h>

bool verify_fail(const Op *op, const char *fmt, ...)
{
	const char *before = arena_printf(op->ctx->arena,
	                                  "%s: ", op->info ? op->info->name : "operation");
	va_list ap;
	va_start(ap, fmt);
	diag_verror(op->ctx->diag, op->loc, before, fmt, ap);
	va_end(ap);
	return false;
}

const char *operand_text(const Op *op, int i)
{
	const OpInfo *info = op->info;
	bool repeats = info->traits & TRAIT_REPEAT_OPERAND;
	if (i < info->noperand - repeats)
		return arena_printf(op->ctx->arena, "operand '%s'", info->operands[i].name);
	return arena_printf(op->ctx->arena, "operand %d", i);
}

// A size that is only found at run time: it takes whatever arrives.
static bool dim_takes_any(const Dim *d)
{
	return d->kind == DIM_SYM && d->bounded;
}

bool types_agree(const Type *a, const Type *b)
{
	if (a == b || (a->kind == TY_STACK && b->kind == TY_STACK && (!a->nelem || !b->nelem)))
		return true;
	bool shaped = a->kind == TY_TENSOR || a->kind == TY_ARRAY;
	if (!shaped || a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
	    a->lod != b->lod)
		return false;
	for (int d = 0; d < a->rank; d++)
		if (a->dims[d] != b->dims[d] && !dim_takes_any(b->dims[d]))
			return false;
	return true;
}

bool verify_operands_present(const Op *op)
{
	for (int i = 0; i < op->noperand; i++)
		if (!op->operands[i].value)
			return verify_fail(op, "operand %d is missing", i);
	return true;
}

bool verify_operand_types(const Op *op, int first, int n, Value *const *want, const char *what)
{
	Context *c = op->ctx;
	if (op->noperand - first != n)
		return verify_fail(op, "%d values, but %d %s", op->noperand - first, n, what);
	for (int i = 0; i < n; i++) {
		const Type *have = op->operands[first + i].value->type, *need = want[i]->type;
		if (!types_agree(have, need))
			return verify_fail(op, "value %d has type %s, but %s have %s", i, type_text(c, have),
			                   what, type_text(c, need));
	}
	return true;
}

const Op *region_yield(const Op *op, int region)
{
	const Region *r = &op->regions[region];
	const Block *b = r->first;
	if (!b || b != r->last) {
		verify_fail(op, "its region must be one block");
		return NULL;
	}
	if (!b->last || b->last->code != OP_LOOP_YIELD) {
		verify_fail(op, "its region must end with loop.yield");
		return NULL;
	}
	return b->last;
}

bool region_takes_positions(const Op *op, int region, int first, int n)
{
	const Block *b = op->regions[region].first;
	if (b->narg != first + n)
		return verify_fail(op, "its region has %d arguments, but should have %d", b->narg,
		                   first + n);
	for (int i = first; i < b->narg; i++) {
		if (b->args[i]->type->kind != TY_INDEX)
			return verify_fail(op, "argument %d of its region must be an index, not %s", i,
			                   type_text(op->ctx, b->args[i]->type));
	}
	return true;
}

bool region_gives(const Op *yield, int n, const Type *const *want)
{
	if (yield->noperand != n)
		return verify_fail(yield, "%d values, but the operation around it takes %d",
		                   yield->noperand, n);
	for (int i = 0; i < n; i++) {
		const Value *v = yield->operands[i].value;
		if (!v)
			return verify_fail(yield, "operand %d is missing", i);
		if (want[i] ? v->type != want[i] : v->type->kind != TY_SCALAR)
			return verify_fail(yield, "value %d has type %s, not %s", i,
			                   type_text(yield->ctx, v->type),
			                   want[i] ? type_text(yield->ctx, want[i]) : "a scalar");
	}
	return true;
}
