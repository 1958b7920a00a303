// Arrays of zeros and sums of arrays, made by loops over the positions (gradient.h).
#include "ir/build/counted.h"
#include "ir/gradient/gradient.h"
#include "ir/gradient/gradient_sizes.h"

static Value *build_given(Builder *b, enum OpCode code, const Type *t, int n,
                          Value *const *operands)
{
	for (int i = 0; i < n; i++)
		if (!operands[i])
			return NULL;
	Op *op = op_new(b->ctx, code, b->loc, 1, &t, n, operands, 0, 0);
	if (b->before)
		op_insert_before(b->before, op);
	else
		op_append(b->block, op);
	return op_result(op, 0);
}

Value *gradient_array_write(Builder *b, Value *array, Value *at, Value *x)
{
	Value *const operands[] = {array, at, x};
	return build_given(b, OP_PD_ARRAY_WRITE, array->type, 3, operands);
}

Value *gradient_array_read(Builder *b, Value *array, Value *at)
{
	Value *const operands[] = {array, at};
	return build_given(b, OP_PD_ARRAY_READ, type_found_anew(b->ctx, TY_TENSOR, array->type), 2,
	                   operands);
}

Value *gradient_array_length(Builder *b, Value *array)
{
	return build1(b, OP_PD_ARRAY_LENGTH, array, NULL);
}

Value *gradient_array_first(Builder *b, Value *array, Value *n)
{
	Value *const operands[] = {array, build_number(b, DT_I64, 1, 0), n};
	return array ? build_given(b, OP_PD_ARRAY_SLICE, array->type, 3, operands) : NULL;
}

Value *gradient_array_empty(Builder *b, const Type *t)
{
	return build_given(b, OP_PD_CREATE_ARRAY, t, 0, NULL);
}

Value *gradient_zeros_of(Builder *b, Value *x)
{
	return x ? build1(b, OP_PD_FULL_LIKE, x, NULL) : NULL;
}

// Ends a loop over positions that carries one array.
Value *gradient_array_end(CountedLoop *l, Value *next)
{
	return next && count_end(l, &next) ? count_result(l, 0) : NULL;
}

Value *gradient_zero_array(Builder *b, Value *array)
{
	CountedLoop l;
	Value *empty = gradient_array_empty(b, array->type);
	if (array->def && array->def->code == OP_PD_CREATE_ARRAY)
		return empty;
	if (!count_begin(&l, b, gradient_array_length(b, array), false, 1, &empty))
		return NULL;
	Value *zero = gradient_zeros_of(&l.b, gradient_array_read(&l.b, array, l.at));
	return gradient_array_end(&l, zero ? gradient_array_write(&l.b, l.args[0], l.at, zero) : NULL);
}

Value *gradient_add_arrays(Builder *b, Value *x, Value *y)
{
	CountedLoop l;
	Value *n = build2(b, OP_PD_MINIMUM, gradient_array_length(b, x), gradient_array_length(b, y),
	                  NULL),
		  *empty = gradient_array_empty(b, x->type);
	if (!n || !count_begin(&l, b, n, false, 1, &empty))
		return NULL;
	Value *p = gradient_array_read(&l.b, x, l.at),
		  *q = p ? gradient_array_read(&l.b, y, l.at) : NULL;
	q = value_as(&l.b, q, p ? p->type : NULL);
	Value *sum = q ? tensor_add(&l.b, p, q) : NULL;
	return gradient_array_end(&l, sum ? gradient_array_write(&l.b, l.args[0], l.at, sum) : NULL);
}
