// Operators that go through their input step by step become the loops that they mean: first of all passes, so that
// those on control flow see them and products in their bodies become kernels with packed weights.
#include "lower.h"

static bool means_steps(const Op *op)
{
	switch (op->code) {
	case OP_PD_RNN:
	case OP_PD_LSTM_UNIT:
	case OP_PD_GRU_UNIT:
	case OP_PD_LSTM:
	case OP_PD_LSTMP:
	case OP_PD_GRU:
	case OP_PD_EDIT_DISTANCE:
		return true;
	default:
		return false;
	}
}

static bool op_expand(Op *op)
{
	Builder b = builder_before(op);
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op->info->define(&b, op, results))
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
			if (means_steps(op) && !op_expand(op))
				return false;
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
