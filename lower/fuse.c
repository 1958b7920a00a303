// Fusion: loop nests go into the nests and kernels that read them, and into the epilogue of the kernel
// whose result they read, so that intermediate tensors never reach memory. This file is the driver;
// fuse_inline.c and fuse_epilogue.c decide and rewrite, fuse_index.c keeps the scalar code simple.
#include "fuse.h"

// Producers come before their readers: by the time a nest is looked at, everything that goes into it has
// arrived, and it can move on as a whole.
static void block_fuse(Block *block)
{
	for (Op *op = block->first, *next; op; op = next) {
		next = op->next;
		if (op_has_region_code(op)) {
			scalar_simplify(op);
			if (op->code == OP_LOOP_NEST && !nest_merge_into_kernel(op))
				nest_inline(op);
			continue;
		}
		for (int i = 0; i < op->nregion; i++)
			for (Block *b = op->regions[i].first; b; b = b->next)
				block_fuse(b);
	}
}

// Needs: loop nests and kernels (to-loops).
// Keeps: values, names of what stays in memory, control flow.
// Breaks: nothing; results that only one reader used are gone.
bool pass_fuse(PassContext *p)
{
	block_fuse(module_block(p->module));
	return pass_dce(p);
}
