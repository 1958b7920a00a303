// Operators that go through their input step by step become the loops that they mean, and pd.case a
// chain of pd.if: first of all passes, so that those on control flow see them and products in their
// bodies become kernels with packed weights.
#include "ir/build/build.h"
#include "ir/define/define.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

static bool op_expand(Op *op)
{
	Builder b = builder_before(op);
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(&b, op, results))
		return false;
	op_replace(op, results);
	return true;
}

// pd.if_grad and pd.while_grad are pd.if and pd.while; what comes in for a branch is in sight there
// anyway.
static void rename_gradient(Op *op)
{
	const bool loop = op->code == OP_PD_WHILE_GRAD;
	const Type **types = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, const Type *);
	Value **operands = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->nresult; i++)
		types[i] = op->results[i].type;
	for (int i = 0; i < op->noperand; i++)
		operands[i] = op_operand(op, i);
	Op *plain = op_new(op->ctx, loop ? OP_PD_WHILE : OP_PD_IF, op->loc, op->nresult, types,
	                   loop ? op->noperand : 1, operands, 2, 0);
	op_insert_before(op, plain);
	op_take_regions(plain, op, 2);
	Block *body = plain->regions[1].first;
	if (loop && (!body->last || !(body->last->info->traits & TRAIT_TERMINATOR)))
		op_append(body, op_new(op->ctx, OP_CF_YIELD, op->loc, 0, NULL, 0, NULL, 0, 0));
	for (int i = 0; i < op->nresult; i++)
		value_take(op_result(op, i), op_result(plain, i));
	op_erase(op);
}

static bool region_expand(Region *r)
{
	for (Block *block = r->first; block; block = block->next)
		for (Op *op = block->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				if (!region_expand(&op->regions[i]))
					return false;
			const bool backward = op->code == OP_PD_IF_GRAD || op->code == OP_PD_WHILE_GRAD;
			if (backward)
				rename_gradient(op);
			if (backward || (op->code != OP_PD_CASE && !(op->info->traits & TRAIT_STEPS)))
				continue;
			// What the definition is made of may have such a definition itself.
			Op *before = op->prev;
			if (!op_expand(op))
				return false;
			next = before ? before->next : block->first;
		}
	return true;
}

// Needs: inferred types.
// Keeps: values, names, locations.
// Breaks: nothing.
bool pass_expand(PassContext *p)
{
	return region_expand(&p->module->regions[0]);
}
