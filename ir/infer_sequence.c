// Types of the operators on sequences (ir/ops/sequence.yaml).
#include "sequence.h"

#include <string.h>

const Dim *sequence_count(Context *c, const Value *lod)
{
	return dim_sub(c, lod->type->dims[0], dim_const(c, 1));
}

const Dim *sequence_found(const Op *op, const char *what)
{
	const Loc *l = op->loc;
	return dim_sym_bounded(op->ctx, arena_printf(op->ctx->arena, "n_%s_%d_%d", what, l->block < 0 ? 0 : l->block,
	                                             l->op < 0 ? 0 : l->op));
}

// Operand i holds rows; its type, or NULL after a diagnostic.
static const Type *rows_type(const Op *op, int i)
{
	const Type *t = infer_tensor(op, i);
	if (t && !t->rank) {
		infer_error(op, "operand '%s' has no rows", op->info->operands[i].name);
		return NULL;
	}
	return t;
}

// Operand i, `<x>_lod`, is a vector of offsets.
static bool check_offsets(const Op *op, int i)
{
	const Type *t = infer_rank(op, i, 1);
	if (t && dim_is(t->dims[0], 0))
		return infer_error(op, "operand '%s' must hold at least one offset", op->info->operands[i].name);
	return t != NULL;
}

bool infer_hook_sequence_pool(Op *op)
{
	static const char *const kinds[] = {"AVERAGE", "SUM", "SQRT", "MAX", "FIRST", "LAST"};
	const Type *x = rows_type(op, 0);
	const Dim *shape[MAX_RANK];
	const char *kind = op_str(op, "pooltype", "AVERAGE");
	size_t k = 0;
	if (!x || !check_offsets(op, 1))
		return false;
	while (k < COUNT_OF(kinds) && strcmp(kinds[k], kind))
		k++;
	if (k == COUNT_OF(kinds))
		return infer_error(op, "there is no pooltype '%s'", kind);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[0] = sequence_count(op->ctx, op_operand(op, 1));
	return infer_result_shape(op, 0, x->dtype, x->rank, shape) && infer_result_shape(op, 1, DT_I32, x->rank, shape);
}
