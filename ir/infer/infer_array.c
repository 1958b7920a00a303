// Types of tensor arrays, and of the checks beside control flow. Hooks of ir/ops/array.yaml and of
// the end of loop.yaml (their rules: verify_array.c).
//
// The type of an array has what all its elements share. A size that differs between them is a
// symbol found at run time (`?!`): every reading operation gives such a size a symbol of its own.
#include "ir/build/build.h"
#include "ir/build/infer.h"

#include <string.h>

// ---- sizes of elements --------------------------------------------------------------------------

// A symbol that this operation finds: its name says which one and which axis.
static const Dim *found_size(const Op *op, int axis)
{
	const Loc *l = op->loc;
	// Arrays of offsets are read beside the one that they belong to, those of several types
	// together.
	const bool more = l->slot && (!strncmp(l->slot, "lod", 3) || !strncmp(l->slot, "type", 4));
	const char *part = more ? l->slot : "";
	return infer_found(op, "n_", arena_printf(op->ctx->arena, "%s%s", part, op->info->short_name),
	                   axis);
}

static const Type *array_operand(const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	if (t->kind == TY_ARRAY)
		return t;
	op_error(op, "operand 'array' is no tensor array");
	return NULL;
}

bool infer_hook_array_read(Op *op)
{
	const Type *t = array_operand(op);
	const Dim *dims[MAX_RANK];
	if (!t)
		return false;
	for (int d = 0; d < t->rank; d++)
		dims[d] = dim_is_found(t->dims[d]) ? found_size(op, d) : t->dims[d];
	return infer_result_shape(op, 0, t->dtype, t->rank, dims);
}

bool infer_hook_array_length(Op *op)
{
	const Dim *one = dim_const(op->ctx, 1);
	return array_operand(op) && infer_result_shape(op, 0, DT_I64, 1, &one);
}

bool infer_hook_array_has(Op *op)
{
	const Dim *one = dim_const(op->ctx, 1);
	return array_operand(op) && infer_result_shape(op, 0, DT_BOOL, 1, &one);
}

bool infer_hook_array_to_tensor(Op *op)
{
	const Type *t = array_operand(op);
	bool stack = op_bool(op, "use_stack", false);
	const Dim *dims[MAX_RANK];
	int axis, n = 0;
	if (!t || !infer_axis(op, op_int(op, "axis", 0), t->rank + stack, &axis))
		return false;
	if (t->rank + stack > MAX_RANK)
		return op_error(op, "more than %d axes", MAX_RANK);
	const Dim *along = found_size(op, axis), *count = stack ? along : found_size(op, t->rank + 1);
	for (int d = 0; d < t->rank + stack; d++) {
		if (d == axis)
			dims[d] = along;
		else
			dims[d] = dim_is_found(t->dims[n]) ? found_size(op, d) : t->dims[n];
		n += d != axis || !stack;
	}
	return infer_result_shape(op, 0, t->dtype, t->rank + stack, dims) &&
	       infer_result_shape(op, 1, DT_I32, 1, &count);
}

bool infer_hook_tensor_is_empty(Op *op)
{
	if (op_operand(op, 0)->type->kind != TY_TENSOR)
		return op_error(op, "the operand is no tensor");
	return infer_result_shape(op, 0, DT_BOOL, 0, NULL);
}

bool define_hook_tensor_is_empty(Builder *b, Op *op, Value **results)
{
	Value *n = build1(b, OP_PD_NUMEL, op_operand(op, 0), NULL);
	Value *zero = n ? build_full(b, n->type, 0) : NULL;
	results[0] = zero ? build2(b, OP_PD_EQUAL, n, zero, NULL) : NULL;
	return results[0] != NULL;
}
