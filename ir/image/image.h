// What operators on images mean: how they are resized, and read at positions that other tensors
// give. Leaves nests; nobody calls it but through the operator table. Uses ir/define, ir/infer and
// ir/build. A function of values gives NULL where an operand is NULL.
#ifndef PDCC_IR_IMAGE_IMAGE_H
#define PDCC_IR_IMAGE_IMAGE_H

#include "ir/build/nest.h"

// ---- arithmetic of positions, in the type of x --------------------------------------------------

static inline Value *number(Builder *b, DType t, double v)
{
	return build_scalar_f(b, t, v);
}

static inline Value *plus(Builder *b, Value *x, double v)
{
	return x ? tensor_add(b, x, number(b, x->type->dtype, v)) : NULL;
}

static inline Value *minus(Builder *b, double v, Value *x)
{
	return x ? tensor_sub(b, number(b, x->type->dtype, v), x) : NULL;
}

static inline Value *times(Builder *b, Value *x, double v)
{
	return x ? tensor_mul(b, x, number(b, x->type->dtype, v)) : NULL;
}

static inline Value *floor_of(Builder *b, Value *x)
{
	return x ? build1(b, OP_PD_FLOOR, x, NULL) : NULL;
}

// high may be NULL: no limit.
Value *clamp(Builder *b, Value *x, double low, Value *high);
// The last position of an axis of `size`, as a number.
Value *last_of(Builder *b, DType t, const Dim *size);

// ---- positions ----------------------------------------------------------------------------------

// Whether `position` checks nothing: of such a size, any number is brought into it.
bool position_is_near(const Dim *size);
// A number that is a whole position, brought into [0, size).
Value *position(Builder *b, Value *x, const Dim *size);

#endif
