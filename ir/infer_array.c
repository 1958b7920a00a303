// Inference and rules of tensor arrays, of the memory that they are lowered to, and of the checks beside control
// flow. Hooks of ir/ops/array.yaml and of the end of loop.yaml.
//
// The type of an array has what all its elements share. A size that differs between them is a symbol found at
// run time (`?!`): every reading operation gives such a size a symbol of its own.
#include "infer.h"
#include "verify.h"

#include "define.h"

#include <string.h>

// ---- sizes of elements ------------------------------------------------------------------------------

// A symbol that this operation finds: its name says which one and which axis.
static const Dim *found_size(const Op *op, int axis)
{
	const Loc *l = op->loc;
	// Arrays of offsets are read beside the one that they belong to.
	const char *part = l->slot && !strncmp(l->slot, "lod", 3) ? l->slot : "";
	return dim_sym_bounded(op->ctx, arena_printf(op->ctx->arena, "n_%s%s_%d_%d_%d", part, op->info->short_name,
	                                             l->block < 0 ? 0 : l->block, l->op < 0 ? 0 : l->op, axis));
}

static bool has_found_symbol(const Dim *d)
{
	if (d->kind == DIM_SYM)
		return d->bounded;
	return d->kind != DIM_CONST && (has_found_symbol(d->a) || has_found_symbol(d->b));
}

static const Type *array_operand(const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	if (t->kind == TY_ARRAY)
		return t;
	infer_error(op, "operand 'array' is no tensor array");
	return NULL;
}

bool infer_hook_array_read(Op *op)
{
	const Type *t = array_operand(op);
	const Dim *dims[MAX_RANK];
	if (!t)
		return false;
	for (int d = 0; d < t->rank; d++)
		dims[d] = has_found_symbol(t->dims[d]) ? found_size(op, d) : t->dims[d];
	return infer_result_shape(op, 0, t->dtype, t->rank, dims);
}

bool infer_hook_array_length(Op *op)
{
	const Dim *one = dim_const(op->ctx, 1);
	return array_operand(op) && infer_result_shape(op, 0, DT_I64, 1, &one);
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
		return infer_error(op, "more than %d axes", MAX_RANK);
	const Dim *along = found_size(op, axis), *count = stack ? along : found_size(op, t->rank + 1);
	for (int d = 0; d < t->rank + stack; d++) {
		if (d == axis)
			dims[d] = along;
		else
			dims[d] = has_found_symbol(t->dims[n]) ? found_size(op, d) : t->dims[n];
		n += d != axis || !stack;
	}
	return infer_result_shape(op, 0, t->dtype, t->rank + stack, dims) &&
	       infer_result_shape(op, 1, DT_I32, 1, &count);
}

bool infer_hook_tensor_is_empty(Op *op)
{
	if (op_operand(op, 0)->type->kind != TY_TENSOR)
		return infer_error(op, "the operand is no tensor");
	return infer_result_shape(op, 0, DT_BOOL, 0, NULL);
}

bool define_hook_tensor_is_empty(Builder *b, Op *op, Value **results)
{
	Value *n = build1(b, OP_PD_NUMEL, op_operand(op, 0), NULL);
	Value *zero = n ? build_full(b, n->type, 0) : NULL;
	results[0] = zero ? build2(b, OP_PD_EQUAL, n, zero, NULL) : NULL;
	return results[0] != NULL;
}

// ---- rules --------------------------------------------------------------------------------------------

bool verify_hook_array(Op *op)
{
	const Type *t = op->operands[0].value->type;
	int64_t n;
	if (t->kind != TY_ARRAY)
		return verify_fail(op, "operand 'array' must be a tensor array, not %s", type_text(op->ctx, t));
	if (op->nresult && op->info->results && op->code != OP_PD_ARRAY_READ && op->code != OP_PD_ARRAY_LENGTH &&
	    op->code != OP_PD_ARRAY_TO_TENSOR && op->results[0].type->kind != TY_ARRAY)
		return verify_fail(op, "the result must be a tensor array, not %s",
		                   type_text(op->ctx, op->results[0].type));
	int last = op->code == OP_PD_ARRAY_SLICE ? 2 : 1;
	for (int i = 1; i <= last && i < op->noperand; i++) {
		const Type *index = op->operands[i].value->type;
		if (index->kind != TY_TENSOR || (type_const_numel(index, &n) && n != 1))
			return verify_fail(op, "a position must be one integer, not %s", type_text(op->ctx, index));
	}
	return true;
}

// ---- rules of bounded memory ------------------------------------------------------------------------------

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
	return t->kind == TY_TENSOR || verify_fail(op, "%s must be a tensor, not %s", operand_text(op, i), type_text(op->ctx, t));
}

bool verify_hook_loop_empty(Op *op)
{
	const Type *t = op->results[0].type;
	return t->kind == TY_TENSOR || verify_fail(op, "the result must be a tensor, not %s", type_text(op->ctx, t));
}

bool verify_hook_loop_update(Op *op)
{
	int64_t n, room;
	for (int i = 0; i < 3; i++)
		if (!is_tensor_operand(op, i))
			return false;
	const Type *data = op->operands[0].value->type, *at = op->operands[1].value->type, *x = op->operands[2].value->type;
	if (data->rank < 1 || op->results[0].type != data)
		return verify_fail(op, "the result must be %s, and have an axis to count along", type_text(op->ctx, data));
	if (type_const_numel(at, &n) && n != 1)
		return verify_fail(op, "a position must be one integer, not %s", type_text(op->ctx, at));
	const Type *slice = type_shaped(op->ctx, TY_TENSOR, data->dtype, data->rank - 1, data->dims + 1);
	if (x->dtype != data->dtype || (type_const_numel(x, &n) && type_const_numel(slice, &room) && n > room))
		return verify_fail(op, "%s does not fit a slice of %s", type_text(op->ctx, x), type_text(op->ctx, data));
	return true;
}

bool verify_hook_loop_append(Op *op)
{
	if (!is_tensor_operand(op, 0) || !is_tensor_operand(op, 1))
		return false;
	const Type *data = op->operands[0].value->type, *x = op->operands[1].value->type, *out = op->results[0].type;
	if (out->kind != TY_TENSOR || out->dtype != data->dtype || x->dtype != data->dtype ||
	    type_numel(op->ctx, out) != dim_add(op->ctx, type_numel(op->ctx, data), type_numel(op->ctx, x)))
		return verify_fail(op, "%s is not %s and then %s", type_text(op->ctx, out), type_text(op->ctx, data),
		                   type_text(op->ctx, x));
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
		return verify_fail(op, "%s is no part of %s", type_text(op->ctx, out), type_text(op->ctx, x));
	return true;
}
