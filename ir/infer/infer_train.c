// Result types of the operators of ir/ops/train.yaml.
#include "ir/build/infer.h"

// A tensor of one element, of x's element type.
bool infer_hook_one_element(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *one = dim_const(op->ctx, 1);
	return x && infer_result_shape(op, 0, x->dtype, 1, &one);
}

bool infer_hook_check_finite(Op *op)
{
	const Dim *one = dim_const(op->ctx, 1);
	return infer_result(op, 0, op_operand(op, 0)->type) &&
	       infer_result_shape(op, 1, DT_BOOL, 1, &one);
}

bool infer_hook_update_loss_scaling(Op *op)
{
	for (int i = 2; i < 5; i++)
		infer_result(op, i - 1, op_operand(op, i)->type);
	return infer_result(op, 0, op_operand(op, 0)->type);
}
