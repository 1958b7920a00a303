// The pass that gives kernels the memory that they work in: a second result, which nobody reads.
// One of the last, since all other passes know kernels of one result.
#include "lower/kernels/kernels.h"
#include "lower/kernels/scratch.h"
#include "lower/pass/rewrite.h"
#include "lower/target/schedule.h"

// The same kernel with one more result.
static void scratch_add(Context *c, Op *op, const Type *scratch)
{
	const Type *types[] = {op->results[0].type, scratch};
	Op *with = op_new(c, op->code, op->loc, 2, types, 0, NULL, op->nregion, 0);
	for (int i = 0; i < op->noperand; i++)
		op_add_operand(with, op_operand(op, i));
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(with, op->attrs[i].name, op->attrs[i].attr);
	op_take_regions(with, op, op->nregion);
	op_insert_before(op, with);
	with->results[0].name = op->results[0].name;
	with->results[1].name = "scratch";
	value_replace(&op->results[0], &with->results[0]);
	op_erase(op);
}

// NULL: it needs none.
static const Type *scratch_type(Context *c, const Op *op)
{
	if (cuda_op_is_library(op))
		return library_scratch(c, op);
	return op->code == OP_KERNEL_WINOGRAD ? winograd_scratch(c, op) : NULL;
}

// Needs: control flow as blocks (flatten), all kernels in place. Keeps: values, names, locations.
// Breaks: that kernels have one result, so it is the last but the memory plan, which gives each
// call bytes of its own where calls may run side by side.
bool pass_scratch(PassContext *p)
{
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			const Type *scratch = op->nresult == 1 ? scratch_type(p->ctx, op) : NULL;
			if (scratch)
				scratch_add(p->ctx, op, scratch);
		}
	return true;
}
