// Indices from data that need no check: a counter that a branch has compared with the size, one
// that a checked update has written by, one that goes back from where such a counter ended, as
// gradients of loops take back what was pushed.
#include "ir/build/build.h"
#include "lower/analysis/numbers.h"
#include "lower/nests/nests.h"
#include "lower/pass/rewrite.h"

static bool position_visit(Op *op, void *arena)
{
	if (op->code != OP_LOOP_TO_INDEX || !index_is_position(arena, op))
		return true;
	Builder b = builder_before(op);
	Value *x = op_operand(op, 0),
		  *index = build1(&b, OP_LOOP_POSITION, x, "extent", op_attr(op, "extent"), NULL);
	if (index)
		op_replace(op, &index);
	return index != NULL;
}

// Needs: blocks instead of control flow; what is still a region of pd.while is not looked through.
// Keeps: everything.
// Breaks: nothing.
bool pass_positions(PassContext *p)
{
	Arena *scratch = arena_scratch(p->ctx->arena);
	uint32_t n = 0;
	for (Block *b = module_block(p->module); b; b = b->next)
		b->id = n++;
	const bool ok = op_walk(p->module, position_visit, scratch);
	arena_free(scratch);
	return ok;
}
