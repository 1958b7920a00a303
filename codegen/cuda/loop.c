// Loops of CUDA that are no conditional nodes: those so small that one block of threads runs all
// their rounds. Called by cuda/graph.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/analysis.h"

#include <string.h>

// Whether what a branch moves is little, or may be.
static bool moves_fit(Codegen *cg, const Op *branch, CudaWorks *works)
{
	for (int s = 0; s < branch->nsucc; s++)
		for (int i = 0; i < (int)branch->succs[s].count; i++) {
			const Type *t = op_operand(branch, (int)branch->succs[s].first + i)->type;
			const Dim *work = t->kind == TY_TENSOR ? cuda_count_work(cg, type_numel(cg->ctx, t))
			                                       : NULL;
			if (!work)
				return false;
			cuda_works_add(cg, works, work);
		}
	return true;
}

// At most how many arguments a step has: tensors, sizes in their types, the state.
static int params_most(const Op *op)
{
	int n = 3;
	for (int i = 0; i < op->nresult; i++)
		n += 1 + op->results[i].type->rank;
	for (int i = 0; i < op->noperand; i++)
		n += op_operand(op, i) != NULL;
	for (int i = 0; i < op->nregion; i++)
		for (const Op *in = op->regions[i].first->first; in; in = in->next)
			n += in->code == OP_LOOP_LOAD || in->code == OP_LOOP_LOAD_OR || in->nregion
			         ? params_most(in)
			         : 0;
	return n;
}

static bool op_fits(Codegen *cg, const Op *op, CudaWorks *works)
{
	const Dim *work = cuda_op_work(cg, op);
	if (work)
		cuda_works_add(cg, works, work);
	return work != NULL;
}

// Whether one block may be enough for the loop: where all works are little.
static bool loop_fits(Codegen *cg, const Block *head, CudaWorks *works)
{
	const Block *last = loop_back(head)->block;
	int params = 0;
	for (const Block *b = head; b && b->prev != last; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			if (op->info->traits & TRAIT_TERMINATOR ? !moves_fit(cg, op, works)
			                                        : !op_is_silent(op) && !op_fits(cg, op, works))
				return false;
			params += params_most(op);
		}
	return params <= CUDA_MAX_LOOP_PARAMS;
}

bool cuda_loop_may_fit_block(Codegen *cg, const Block *head, CudaWorks *works)
{
	cg->looped++;
	const bool fits = loop_fits(cg, head, works);
	cg->looped--;
	return fits;
}

bool cuda_loop_fits_block(Codegen *cg, const Block *head)
{
	CudaWorks works = {0};
	return cuda_loop_may_fit_block(cg, head, &works) && !works.n;
}
