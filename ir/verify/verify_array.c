// The rules of tensor arrays, and of the memory that they are lowered to. Verify hooks of
// ir/ops/array.yaml and of the end of loop.yaml.
#include "ir/verify/rules.h"

// ---- rules --------------------------------------------------------------------------------------

bool verify_hook_array(Op *op)
{
	const Type *t = op->operands[0].value->type;
	int64_t n;
	if (t->kind != TY_ARRAY)
		return verify_fail(op, "operand 'array' must be a tensor array, not %s",
		                   type_text(op->ctx, t));
	if (op->nresult && op->info->results && op->code != OP_PD_ARRAY_READ &&
	    op->code != OP_PD_ARRAY_LENGTH && op->code != OP_PD_ARRAY_HAS &&
	    op->code != OP_PD_ARRAY_TO_TENSOR && op->results[0].type->kind != TY_ARRAY)
		return verify_fail(op, "the result must be a tensor array, not %s",
		                   type_text(op->ctx, op->results[0].type));
	int last = op->code == OP_PD_ARRAY_SLICE ? 2 : 1;
	for (int i = 1; i <= last && i < op->noperand; i++) {
		const Type *index = op->operands[i].value->type;
		if (index->kind != TY_TENSOR || (type_const_numel(index, &n) && n != 1))
			return verify_fail(op, "a position must be one integer, not %s",
			                   type_text(op->ctx, index));
	}
	return true;
}

// ---- rules of bounded memory --------------------------------------------------------------------

bool verify_hook_loop_capacity(Op *op)
{
	const Attr *dims = op_attr(op, "dims");
	for (int i = 0; i < dims->n; i++)
		if (dims->dims[i]->kind != DIM_SYM || !dims->dims[i]->bounded)
			return verify_fail(op, "a capacity must be a symbol found at run time");
	return true;
}

static bool is_tensor_operand(const Op *op, int i)
{
	const Type *t = op->operands[i].value->type;
	return t->kind == TY_TENSOR || verify_fail(op, "%s must be a tensor, not %s",
	                                           operand_text(op, i), type_text(op->ctx, t));
}

bool verify_hook_loop_empty(Op *op)
{
	const Type *t = op->results[0].type;
	return t->kind == TY_TENSOR ||
	       verify_fail(op, "the result must be a tensor, not %s", type_text(op->ctx, t));
}

bool verify_hook_loop_update(Op *op)
{
	int64_t n, room;
	for (int i = 0; i < 3; i++)
		if (!is_tensor_operand(op, i))
			return false;
	const Type *data = op->operands[0].value->type, *at = op->operands[1].value->type,
			   *x = op->operands[2].value->type;
	if (data->rank < 1 || op->results[0].type != data)
		return verify_fail(op, "the result must be %s, and have an axis to count along",
		                   type_text(op->ctx, data));
	if (type_const_numel(at, &n) && n != 1)
		return verify_fail(op, "a position must be one integer, not %s", type_text(op->ctx, at));
	const Type *slice = type_shaped(op->ctx, TY_TENSOR, data->dtype, data->rank - 1,
	                                data->dims + 1);
	if (x->dtype != data->dtype ||
	    (type_const_numel(x, &n) && type_const_numel(slice, &room) && n > room))
		return verify_fail(op, "%s does not fit a slice of %s", type_text(op->ctx, x),
		                   type_text(op->ctx, data));
	return true;
}

bool verify_hook_loop_append(Op *op)
{
	if (!is_tensor_operand(op, 0) || !is_tensor_operand(op, 1))
		return false;
	const Type *data = op->operands[0].value->type, *x = op->operands[1].value->type,
			   *out = op->results[0].type;
	if (out->kind != TY_TENSOR || out->dtype != data->dtype || x->dtype != data->dtype ||
	    type_numel(op->ctx, out) !=
	        dim_add(op->ctx, type_numel(op->ctx, data), type_numel(op->ctx, x)))
		return verify_fail(op, "%s is not %s and then %s", type_text(op->ctx, out),
		                   type_text(op->ctx, data), type_text(op->ctx, x));
	return true;
}

bool verify_hook_loop_prefix(Op *op)
{
	int64_t n, room;
	if (!is_tensor_operand(op, 0))
		return false;
	const Type *x = op->operands[0].value->type, *out = op->results[0].type;
	if (out->kind != TY_TENSOR || out->dtype != x->dtype ||
	    (type_const_numel(x, &room) && type_const_numel(out, &n) && n > room))
		return verify_fail(op, "%s is no part of %s", type_text(op->ctx, out),
		                   type_text(op->ctx, x));
	return true;
}
