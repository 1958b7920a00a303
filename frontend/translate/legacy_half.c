// Numbers of legacy programs as f16 and bf16. Paddle 2.6.2's CPU build does not use conversions of
// the machine: its own cut the lower bits off, where those of GPUs and of Paddle 3 round to
// nearest. So do casts here, and operators that fill a tensor with a number.
#include "frontend/translate/general.h"
#include "frontend/translate/legacy_half.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

#include <math.h>

// Whether every number of a type is one of the other.
static bool holds_all(DType to, DType from)
{
	return from == to || from == DT_BOOL || from == DT_I8 || from == DT_U8;
}

// x, of which a cast to `to` loses nothing. Every type goes through f32, as there.
static Value *cut(Builder *b, Value *x, DType to)
{
	const DType from = x->type->dtype;
	if (!dtype_is_half(to) || holds_all(to, from) || dtype_is_complex(from))
		return x;
	const enum OpCode code = to == DT_F16 ? OP_PD_CUT_F16 : OP_PD_CUT_BF16;
	return build1(b, code, tensor_cast(b, x, DT_F32), NULL);
}

bool legacy_cast_create(OpJob *j)
{
	const Attr *to = job_attr(j, "dtype");
	Value *x = job_operand(j, "x");
	if (to && type_is_tensor(x->type))
		job_set_operand(j, "x", x = cut(&j->b, x, (DType)to->i));
	return x && general_create(j);
}

// The number of that type that is nearest to v and not further from 0.
static double cut_number(Context *c, double v, DType t)
{
	Tensor *number = tensor_new(c->arena, t, 0, NULL);
	const double x = (float)v;
	if (t == DT_F16 && fabs(x) > 65504)
		return copysign(INFINITY, x);
	tensor_set_f(number, 0, x);
	if (fabs(tensor_get_f(number, 0)) > fabs(x))
		--*(uint16_t *)number->data; // the bits of sizes follow each other
	return tensor_get_f(number, 0);
}

bool legacy_full_create(OpJob *j)
{
	Value *given = job_operand(j, "value_tensor");
	const Attr *to = job_attr(j, "dtype");
	if (given && to && type_is_tensor(given->type)) {
		given = cut(&j->b, given, (DType)to->i);
		if (!given)
			return false;
		job_set_operand(j, "value_tensor", given);
	}
	if (!general_create(j))
		return false;
	const Type *t = op_result(j->op, 0)->type;
	const Attr *value = op_attr(j->op, "value");
	if (!dtype_is_half(t->dtype) || !value)
		return true;
	const double v = value->kind == ATTR_FLOAT ? value->f : (double)value->i,
				 now = cut_number(j->t->c, v, t->dtype);
	if (now != v && now == now)
		op_set_attr(j->op, "value", attr_float(j->t->c, now));
	return true;
}
