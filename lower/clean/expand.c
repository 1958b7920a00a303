// Operators that go through their input step by step become the loops that they mean: first of all
// passes, so that those on control flow see them and products in their bodies become kernels with
// packed weights.
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

static bool region_expand(Region *r)
{
	for (Block *block = r->first; block; block = block->next)
		for (Op *op = block->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				if (!region_expand(&op->regions[i]))
					return false;
			if (!(op->info->traits & TRAIT_STEPS))
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
