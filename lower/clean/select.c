// Small branches that only choose between single numbers, computed cheaply if at all, become
// pd.where: a choice costs less than a jump that is not foreseen, and what it gives is fused with
// what reads it. Run when the program is clean, after `sink`.
#include "ir/build/build.h"
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

// Elements of a result, and operations in both sides, up to which computing both is cheaper than to
// jump. For more elements the branch that is not taken would be felt, and a program that was
// written with branches should stay readable.
enum { MAX_ELEMENTS = 1, MAX_OPS = 4 };

static bool op_is_cheap(const Op *op)
{
	return (op->info->traits & (TRAIT_CONSTANT | TRAIT_COMPARE | TRAIT_CHEAP)) != 0;
}

static bool type_is_small(const Type *t)
{
	int64_t n;
	return type_is_tensor(t) && !t->lod && type_const_numel(t, &n) && n > 0 && n <= MAX_ELEMENTS;
}

// The type that pd.where gives is that of the results: the condition must not add axes.
static bool where_keeps(const Op *op, int i)
{
	const Type *t = op->results[i].type;
	if (!type_is_small(t) || op_operand(op, 0)->type->rank > t->rank)
		return false;
	for (int side = 0; side < 2; side++)
		if (op_operand(op->regions[side].first->last, i)->type != t)
			return false;
	return true;
}

static bool side_is_cheap(const Region *r)
{
	for (const Op *op = r->first->first; op; op = op->next) {
		if (op->info->traits & TRAIT_TERMINATOR)
			continue;
		if (!op_is_cheap(op) || op->nregion)
			return false;
		for (int i = 0; i < op->nresult; i++)
			if (!type_is_small(op->results[i].type))
				return false;
	}
	return true;
}

static bool branch_is_small(const Op *op)
{
	int64_t n;
	if (!control_is_plain(op) || op->nresult == 0 ||
	    !type_const_numel(op_operand(op, 0)->type, &n) || n != 1 ||
	    op_operand(op, 0)->type->dtype != DT_BOOL)
		return false;
	for (int i = 0; i < op->nresult; i++)
		if (!where_keeps(op, i))
			return false;
	return region_size(&op->regions[0]) + region_size(&op->regions[1]) + op->nresult <= MAX_OPS &&
	       side_is_cheap(&op->regions[0]) && side_is_cheap(&op->regions[1]);
}

static bool branch_select(PassContext *p, Op *op)
{
	if (!branch_is_small(op))
		return true;
	Arena *a = p->ctx->arena;
	Value **yes = NEW_ARRAY(a, (size_t)op->nresult, Value *),
		  **no = NEW_ARRAY(a, (size_t)op->nresult, Value *);
	region_inline(&op->regions[0], op, 0, yes);
	region_inline(&op->regions[1], op, 0, no);
	Builder b = builder_before(op);
	for (int i = 0; i < op->nresult; i++) {
		yes[i] = build(&b, OP_PD_WHERE, 3, (Value *[]){op_operand(op, 0), yes[i], no[i]}, NULL);
		if (!yes[i])
			return false;
	}
	op_replace(op, yes);
	return true;
}

// Needs: branches with the results that are read, and no others.
// Keeps: values; both sides are evaluated, so neither may fail.
// Breaks: nothing.
bool pass_select(PassContext *p)
{
	return control_visit(p, &p->module->regions[0], OP_PD_IF, branch_select);
}
