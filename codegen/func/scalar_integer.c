// Arithmetic of whole numbers and positions as C expressions. Called by scalar.c.
#include "codegen/func/scalar.h"

#include <string.h>

const char *wrap_operator(enum OpCode code)
{
	switch (code) {
	case OP_PD_ADD: return "+";
	case OP_PD_SUBTRACT: return "-";
	case OP_PD_MULTIPLY: return "*";
	default: return NULL;
	}
}

static bool is_64_or_32(const Type *t)
{
	return t->kind == TY_SCALAR && (t->dtype == DT_I64 || t->dtype == DT_I32);
}

// Integers wrap as in Paddle; C leaves signed overflow undefined, so the sum is made on unsigned
// numbers: by functions of prelude.c.in for those that C does not widen anyway.
static const char *wrapping(Scalars *s, const Type *t, const char *x, const char *operator,
                            const char * y)
{
	Arena *a = s->k->arena;
	if (is_64_or_32(t))
		return arena_printf(a, "pd_%s_%s(%s, %s)", dtype_name(t->dtype),
		                    *operator== '+'    ? "add"
		                    : * operator== '-' ? "sub"
		                                       : "mul",
		                    expression_unwrap(a, x), expression_unwrap(a, y));
	const char *second = strspn(y, "0123456789") == strlen(y) ? arena_printf(a, "%su", y)
	                                                          : arena_printf(a, "(uint32_t)%s", y);
	return arena_printf(a, "(%s)((uint32_t)%s %s %s)", dtype_c_memory(t->dtype), x, operator,
	                    second);
}

// Shifts depend on how many bits there are.
static const char *shifted(Scalars *s, const Type *t, const char *function, const char *x,
                           const char *y)
{
	return arena_printf(s->k->arena, "(%s)%s(%s, %s, %d)", dtype_c_memory(t->dtype), function, x, y,
	                    (int)dtype_size(t->dtype) * 8);
}

// Positions are never near the end of their range, and never negative where they are divided.
static const char *index_expression(Arena *a, const Op *op, const char *x, const char *y)
{
	const char *sign = op->code == OP_PD_FLOOR_DIVIDE ? "/"
	                   : op->code == OP_PD_REMAINDER  ? "%"
	                                                  : wrap_operator(op->code);
	return sign ? arena_printf(a, "%s %s %s", x, sign, y) : NULL;
}

// The function of prelude.c.in that an operation on whole numbers calls; NULL: none.
static const char *integer_function(enum OpCode code, bool narrow)
{
	switch (code) {
	case OP_PD_FLOOR_DIVIDE: return "pd_int_floor_div";
	case OP_PD_REMAINDER: return "pd_int_remainder";
	case OP_PD_DIVIDE: return "pd_int_div";
	case OP_PD_ELEMENTWISE_POW: return narrow ? "pd_int_pow_narrow" : "pd_int_pow";
	case OP_PD_WHOLE_POW: return "pd_whole_pow";
	default: return NULL;
	}
}

// Questions about floats, of a whole number: the functions of C take none. NULL: another operation.
static const char *float_question(Arena *a, const Op *op, const char *x)
{
	const char *function = op->code == OP_PD_ISNAN      ? "isnan"
	                       : op->code == OP_PD_ISINF    ? "isinf"
	                       : op->code == OP_PD_ISFINITE ? "isfinite"
	                                                    : NULL;
	return function && type_is_int(op_operand(op, 0)->type)
	           ? arena_printf(a, "%s((double)%s) != 0", function, x)
	           : NULL;
}

// What neither one function nor one operator of C computes.
static const char *integer_other(Scalars *s, const Op *op, const char *x, const char *y)
{
	Arena *a = s->k->arena;
	const Type *t = op->results[0].type;
	switch (op->code) {
	case OP_PD_NEGATIVE: return wrapping(s, t, "0", "-", x);
	case OP_PD_FLOOR:
	case OP_PD_CEIL:
	case OP_PD_ROUND:
	case OP_PD_TRUNC: return x;
	case OP_PD_BITWISE_NOT: return arena_printf(a, "(%s)~%s", dtype_c_memory(t->dtype), x);
	case OP_PD_ABS: return arena_printf(a, "(%s)pd_int_abs(%s)", dtype_c_memory(t->dtype), x);
	case OP_PD_BITWISE_LEFT_SHIFT: return shifted(s, t, "pd_left_shift", x, y);
	case OP_PD_RIGHT_SHIFT: return shifted(s, t, "pd_right_shift", x, y);
	case OP_PD_RIGHT_SHIFT_LOGICAL: return shifted(s, t, "pd_right_shift_logical", x, y);
	default: return NULL;
	}
}

// The operand that a sum with 0 or a product with 1 is; NULL: it is no such thing.
static const char *integer_same(const Op *op, const char *x, const char *y)
{
	const char *neutral = op->code == OP_PD_MULTIPLY ? "1" : "0";
	if (!wrap_operator(op->code))
		return NULL;
	return !strcmp(y, neutral) ? x : op->code != OP_PD_SUBTRACT && !strcmp(x, neutral) ? y : NULL;
}

bool limits_whole(const Scalars *s, const Op *op)
{
	const Type *t = op->results[0].type;
	return (op->code == OP_PD_MAXIMUM || op->code == OP_PD_MINIMUM) && !s->k->cg->backend->device &&
	       (t->kind == TY_INDEX || is_64_or_32(t));
}

const char *integer_expression(Scalars *s, const Op *op, const char *x, const char *y)
{
	Arena *a = s->k->arena;
	const Type *t = op->results[0].type;
	const char *operator= wrap_operator(op->code);
	if (limits_whole(s, op))
		return arena_printf(a, "pd_%s_%s(%s, %s)",
		                    t->kind == TY_SCALAR && t->dtype == DT_I32 ? "i32" : "dim",
		                    op->code == OP_PD_MAXIMUM ? "max" : "min", expression_unwrap(a, x),
		                    expression_unwrap(a, y));
	if (t->kind == TY_INDEX)
		return index_expression(a, op, x, y);
	if (!type_is_int(t))
		return float_question(a, op, x);
	if (integer_same(op, x, y))
		return integer_same(op, x, y);
	const char *function = integer_function(op->code, t->dtype != DT_I64);
	if (function)
		return arena_printf(a, "(%s)%s(%s, %s)", dtype_c_memory(t->dtype), function, x, y);
	if (operator&& s->k->inlined && sum_fits(s->k->arena, op))
		return arena_printf(a, "%s %s %s", x, operator, y);
	return operator? wrapping(s, t, x, operator, y) : integer_other(s, op, x, y);
}
