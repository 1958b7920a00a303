// Layout: contractions become kernels, images run in blocked layout between them, and weights are
// packed as the kernels read them. This file walks the program; the handlers are in layout_conv.c,
// layout_gemm.c and their like, and layout_form.c keeps track of what exists in which layout.
#include "lower/kernels/layout.h"
#include "lower/kernels/kernels.h"
#include "lower/pass/pass.h"

static bool layout_contraction(Layout *l, Op *op)
{
	return layout_integer(l, op) ||
	       (l->target->tiles ? layout_image_conv(l, op) : layout_conv(l, op)) ||
	       layout_conv_transpose(l, op) || layout_matmul(l, op) || layout_filter_gradient(l, op) ||
	       layout_pool_gradient(l, op) || layout_space(l, op);
}

// An operation of one tensor.
static void op_layout(Layout *l, Op *op)
{
	if (layout_volume(l, op))
		return;
	switch (op->info->kind) {
	case KIND_MAP:
		if (!last_map(l, op))
			layout_map(l, op);
		break;
	case KIND_CONTRACT: layout_contraction(l, op); break;
	case KIND_REDUCE: layout_space(l, op); break;
	case KIND_INDEX:
		if (!layout_turn(l, op) && !layout_space(l, op) && !layout_flatten(l, op))
			layout_channels(l, op);
		break;
	default: break;
	}
}

static void block_layout(Layout *l, Block *block)
{
	for (Op *op = block->first, *next; op; op = next) {
		next = op->next;
		for (int i = 0; i < op->nregion; i++)
			for (Block *b = op->regions[i].first; b && op->info->kind == KIND_CONTROL; b = b->next)
				block_layout(l, b);
		if (op->nresult == 1 && type_is_tensor(op->results[0].type))
			op_layout(l, op);
	}
}

// Needs: composites taken apart (decompose). Keeps: values, names, locations, control flow. Breaks:
// NCHW inside chains of image operations; for CUDA only of those for tensor cores.
bool pass_layout(PassContext *p)
{
	// Kernels of whole numbers read blocks of one width: as bytes, fewer lanes fill no vector.
	const bool integers = op_contains(p->module, OP_PD_INTEGER_CONV);
	Layout l = {.ctx = p->ctx,
	            .target = p->target,
	            .allow_tf32 = p->allow_tf32,
	            .cuda_libs = p->cuda_libs,
	            .few = integers ? 0 : p->target->few,
	            .blocked = value_map_new(p->ctx->arena),
	            .last = value_map_new(p->ctx->arena)};
	block_layout(&l, module_block(p->module));
	old_drop(&l);
	return diag_errors(p->ctx->diag) == 0;
}
