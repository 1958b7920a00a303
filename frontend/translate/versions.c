// Steps of the translation of operators that Paddle 2.6 and Paddle 3 compute differently: in legacy
// programs they mean what 2.6 does.
#include "frontend/translate/versions.h"
#include "frontend/job/general.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

#include <inttypes.h>
#include <math.h>

// ---- legacy: numbers as f16 and bf16 ------------------------------------------------------------

// Paddle 2.6.2's CPU build does not use conversions of the machine: its own cut the lower bits off,
// where those of GPUs and of Paddle 3 round to nearest. So do casts here, and operators that fill a
// tensor with a number.

// Whether every number of a type is one of the other.
static bool holds_all(DType to, DType from)
{
	return from == to || from == DT_BOOL || from == DT_I8 || from == DT_U8;
}

// x, of which a cast to `to` loses nothing. Every type goes through f32, as there; of complex
// numbers that is the real part.
static Value *cut(Builder *b, Value *x, DType to)
{
	const DType from = x->type->dtype;
	if (!dtype_is_half(to) || holds_all(to, from))
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

// ---- Paddle 3 -----------------------------------------------------------------------------------

// The largest number that is quantised to says how many bits there are: Paddle 3 reads neither
// bit_length nor qmin.
bool pir_quantize_create(OpJob *j)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "qmax");
	int64_t largest = 127, bits = 2;
	if (a && !attr_int_at(a, 0, &largest))
		return job_fail(j, "attribute 'qmax' is no integer");
	while (bits < 16 && (INT64_C(1) << (bits - 1)) - 1 < largest)
		bits++;
	if ((INT64_C(1) << (bits - 1)) - 1 != largest)
		return job_fail(j,
		                "attribute 'qmax' is %" PRId64
		                ": only the largest number of 2 to 16 bits is supported",
		                largest);
	job_set_attr(j, "bit_length", attr_int(j->t->c, bits));
	return general_create(j);
}

// An operation of two that complex numbers have an entry of their own for.
static bool complex_create(OpJob *j, enum OpCode code)
{
	if (!dtype_is_complex(j->operands[0]->type->dtype))
		return general_create(j);
	j->op = build_op(&j->b, code, 2, j->operands, 0, NULL);
	return j->op != NULL;
}

// Matrices are multiplied in the type of the second one; complex ones in one that holds both.
bool pir_matmul_inputs(OpJob *j)
{
	if (!general_inputs(j))
		return false;
	Value **v = j->operands;
	if (!type_is_tensor(v[0]->type) || !type_is_tensor(v[1]->type))
		return true;
	const DType x = v[0]->type->dtype, y = v[1]->type->dtype;
	const bool wide = x == DT_C128 || y == DT_C128 || x == DT_F64 || y == DT_F64;
	const bool complex = dtype_is_complex(x) || dtype_is_complex(y);
	const DType to = !complex || x == y ? y : wide ? DT_C128 : DT_C64;
	for (int i = 0; i < 2; i++)
		if (v[i]->type->dtype != to && !(v[i] = tensor_cast(&j->b, v[i], to)))
			return false;
	return true;
}

// Complex numbers are divided by Smith's method, where 2.6 has the products as they are.
bool pir_divide_create(OpJob *j)
{
	return complex_create(j, OP_PD_DIVIDE_SCALED);
}

bool pir_remainder_create(OpJob *j)
{
	return complex_create(j, OP_PD_REMAINDER_COMPLEX);
}

// Digamma has a pole at 0, where Paddle 2.6 gives NaN: -inf at 0 and inf at -0. What it gives there
// itself is not looked at, nor is its slope.
bool pir_digamma_create(OpJob *j)
{
	Builder *b = &j->b;
	Value *x = job_operand(j, "x"), *zero = build1(b, OP_PD_FULL_LIKE, x, NULL);
	Value *one = build1(b, OP_PD_FULL_LIKE, x, "value", attr_float(b->ctx, 1), NULL);
	Value *pole = zero && one ? build2(b, OP_PD_EQUAL, x, zero, NULL) : NULL;
	Value *const elsewhere[] = {pole, one, x};
	Value *safe = pole ? build(b, OP_PD_WHERE, 3, elsewhere, NULL) : NULL;
	job_set_operand(j, "x", safe);
	if (!safe || !general_create(j))
		return false;
	Value *far = apply1(b, OP_PD_NEGATIVE, apply1(b, OP_PD_RECIPROCAL, x));
	Value *const operands[] = {pole, far, op_result(j->op, 0)};
	Value *out = far ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
	j->op = out ? out->def : NULL;
	return out != NULL;
}

// A whole 0 to a negative power is 0, where 2.6 has what becomes of infinity.
bool pir_power_create(OpJob *j)
{
	if (!general_create(j) || !dtype_is_int(op_result(j->op, 0)->type->dtype))
		return j->op != NULL;
	Builder *b = &j->b;
	Value *x = op_operand(j->op, 0), *y = op_operand(j->op, 1), *out = op_result(j->op, 0);
	Value *more = apply2(b, OP_PD_NOT_EQUAL, x, tensor_number(b, x->type->dtype, 0));
	Value *up = apply2(b, OP_PD_GREATER_EQUAL, y, tensor_number(b, y->type->dtype, 0));
	Value *holds = apply2(b, OP_PD_LOGICAL_OR, more, up);
	out = apply2(b, OP_PD_MULTIPLY, out, tensor_cast(b, holds, out->type->dtype));
	j->op = out ? out->def : NULL;
	return out != NULL;
}
