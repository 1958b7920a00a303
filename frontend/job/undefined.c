// What stands where a run never comes, or where nobody should look.
#include "frontend/job/undefined.h"

bool assert_never(Builder *b, const char *message)
{
	Value *never = build_full(b, type_tensor(b->ctx, DT_BOOL, 0, NULL, 0), 0);
	return build_assert(b, never, message);
}

// The size 1 stands for one that is not known here. A program that reads the value all the same
// (its test for None was decided when it was exported) meets the mark, as in Paddle.
Value *undefined_value(Builder *b, const Type *t)
{
	Context *c = b->ctx;
	const Dim *dims[MAX_RANK];
	if (t->kind == TY_ARRAY) {
		Op *op = op_new(c, OP_PD_CREATE_ARRAY, b->loc, 1, &t, 0, NULL, 0, 0);
		if (b->before)
			op_insert_before(b->before, op);
		else
			op_append(b->block, op);
		return op_result(op, 0);
	}
	if (t->kind != TY_TENSOR)
		return NULL;
	for (int d = 0; d < t->rank; d++)
		dims[d] = dim_is_const(t->dims[d]) ? t->dims[d] : dim_const(c, 1);
	const bool holds = t->dtype == DT_F32 || t->dtype == DT_F64;
	return build_full(b, type_tensor(c, t->dtype, t->rank, dims, 0), holds ? UNDEFINED_MARK : 0);
}
