// Positions in images, from numbers that data may give.
#include "ir/image/image.h"
#include "ir/build/build.h"

Value *clamp(Builder *b, Value *x, double low, Value *high)
{
	x = x ? build2(b, OP_PD_MAXIMUM, x, number(b, x->type->dtype, low), NULL) : NULL;
	return x && high ? build2(b, OP_PD_MINIMUM, x, high, NULL) : x;
}

Value *last_of(Builder *b, DType t, const Dim *size)
{
	Context *c = b->ctx;
	return scalar_from_index(b, index_dim(b, dim_sub(c, size, dim_const(c, 1))), t);
}

bool position_is_near(const Dim *size)
{
	return dim_is_const(size) && size->value >= 1 && size->value <= INT64_C(1) << 24;
}

Value *position(Builder *b, Value *x, const Dim *size)
{
	// Rounding to f32 leaves whole numbers on their side of such a size.
	if (!x || position_is_near(size))
		return index_near(b, scalar_cast(b, x, DT_F32), size);
	x = clamp(b, x, 0, last_of(b, x->type->dtype, size));
	return index_from_data(b, scalar_cast(b, x, DT_I64), size, false);
}
