// Fusion: loop nests go into the nests and kernels that read them, and into the epilogue of the
// kernel whose result they read, so that intermediate tensors never reach memory. This file is the
// driver; fuse_inline.c, fuse_epilogue.c and fuse_join.c decide and rewrite, fuse_index.c keeps the
// scalar code simple.
#include "lower/nests/fuse.h"
#include "lower/clean/clean.h"
#include "lower/nests/nests.h"
#include "lower/pass/pass.h"

static void block_fuse(Block *block, const Target *t);

static void region_join(Region *r)
{
	for (Block *b = r->first; b; b = b->next) {
		for (Op *op = b->first; op; op = op->next)
			for (int i = 0; i < op->nregion && !op_has_region_code(op); i++)
				region_join(&op->regions[i]);
		block_join(b);
	}
}

static void op_fuse(Op *op, const Target *t)
{
	if (op_has_region_code(op)) {
		scalar_simplify(op);
		if (op->code == OP_LOOP_NEST && !nest_merge_into_kernel(op, t))
			nest_inline(op);
		return;
	}
	for (int i = 0; i < op->nregion; i++)
		for (Block *b = op->regions[i].first; b; b = b->next)
			block_fuse(b, t);
}

// Producers come before their readers: by the time a nest is looked at, everything that goes into
// it has arrived, and it can move on as a whole. Fusing erases operations before and after the one
// at hand, so the walk goes over a list made up front.
static void block_fuse(Block *block, const Target *t)
{
	size_t n = 0;
	for (Op *op = block->first; op; op = op->next)
		n++;
	if (!n)
		return;
	Op **ops = NEW_ARRAY(block->first->ctx->arena, n, Op *);
	n = 0;
	for (Op *op = block->first; op; op = op->next)
		ops[n++] = op;
	for (size_t i = 0; i < n; i++)
		if (ops[i]->block == block)
			op_fuse(ops[i], t);
}

// Needs: loop nests and kernels (to-loops).
// Keeps: values, names of what stays in memory, control flow.
// Breaks: nothing; results that only one reader used are gone.
bool pass_fuse(PassContext *p)
{
	block_fuse(module_block(p->module), p->target);
	region_join(&p->module->regions[0]);
	return pass_dce(p);
}
