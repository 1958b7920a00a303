// Scalar code of complex numbers: structs of pdrt.h with functions of prelude.c.in and
// complex.c.in. Called by scalar.c.
#include "codegen/func/func.h"

// What a helper for complex numbers is called after its type; NULL: there is none.
static const char *complex_helper(const Op *op)
{
	static const struct {
		enum OpCode code;
		const char *name;
	} helpers[] = {
		{OP_PD_ADD, "add"},
		{OP_PD_SUBTRACT, "sub"},
		{OP_PD_MULTIPLY, "mul"},
		{OP_PD_DIVIDE, "div"},
		{OP_PD_NEGATIVE, "neg"},
		{OP_PD_EQUAL, "equal"},
		{OP_PD_ABS, "abs"},
		{OP_PD_EXP, "exp"},
		{OP_PD_EXPM1, "expm1"},
		{OP_PD_SIN, "sin"},
		{OP_PD_COS, "cos"},
		{OP_PD_TAN, "tan"},
		{OP_PD_SINH, "sinh"},
		{OP_PD_COSH, "cosh"},
		{OP_PD_TANH, "tanh"},
		{OP_PD_ASIN, "asin"},
		{OP_PD_ACOS, "acos"},
		{OP_PD_ATAN, "atan"},
		{OP_PD_ASINH, "asinh"},
		{OP_PD_ACOSH, "acosh"},
		{OP_PD_ATANH, "atanh"},
		{OP_PD_SQRT, "sqrt"},
		{OP_PD_LOG, "log"},
		{OP_PD_LOG1P, "log1p"},
		{OP_PD_LOG2, "log2"},
		{OP_PD_LOG10, "log10"},
		{OP_PD_ROUND, "rint"},
		{OP_PD_RINT, "rint"},
		{OP_PD_WHOLE_POW, "pow"},
		{OP_PD_ELEMENTWISE_POW, "pow"},
		{OP_PD_LESS_THAN, "less"},
		{OP_PD_LESS_EQUAL, "less_equal"},
		{OP_PD_DIVIDE_SCALED, "div_scaled"},
	};
	for (size_t i = 0; i < COUNT_OF(helpers); i++)
		if (helpers[i].code == op->code)
			return helpers[i].name;
	return NULL;
}

// Questions about complex numbers that are no call of a helper; NULL: none.
static const char *complex_truth(Arena *a, const Op *op, const char *name, const char *x,
                                 const char *y)
{
	switch (op->code) {
	case OP_PD_NOT_EQUAL: return arena_printf(a, "!pd_%s_equal(%s, %s)", name, x, y);
	case OP_PD_GREATER_THAN: return arena_printf(a, "pd_%s_less(%s, %s)", name, y, x);
	case OP_PD_GREATER_EQUAL: return arena_printf(a, "pd_%s_less_equal(%s, %s)", name, y, x);
	case OP_PD_ISNAN: return arena_printf(a, "isnan(%s.re) || isnan(%s.im)", x, x);
	case OP_PD_ISINF: return arena_printf(a, "isinf(%s.re) || isinf(%s.im)", x, x);
	case OP_PD_ISFINITE: return arena_printf(a, "isfinite(%s.re) && isfinite(%s.im)", x, x);
	case OP_PD_LOGICAL_NOT: return arena_printf(a, "!pd_%s_any(%s)", name, x);
	case OP_PD_LOGICAL_AND:
		return arena_printf(a, "pd_%s_any(%s) && pd_%s_any(%s)", name, x, name, y);
	case OP_PD_LOGICAL_OR:
		return arena_printf(a, "pd_%s_any(%s) || pd_%s_any(%s)", name, x, name, y);
	case OP_PD_LOGICAL_XOR:
		return arena_printf(a, "pd_%s_any(%s) != pd_%s_any(%s)", name, x, name, y);
	default: return NULL;
	}
}

const char *complex_expression(Arena *a, const Op *op, const char *x, const char *y)
{
	const char *name = dtype_name(op_operand(op, 0)->type->dtype);
	const char *helper = complex_helper(op);
	if (helper && op->noperand > 1)
		return arena_printf(a, "pd_%s_%s(%s, %s)", name, helper, x, y);
	if (helper)
		return arena_printf(a, "pd_%s_%s(%s)", name, helper, x);
	if (op->code == OP_PD_REAL || op->code == OP_PD_IMAG)
		return arena_printf(a, "%s.%s", x, op->code == OP_PD_REAL ? "re" : "im");
	const char *truth = complex_truth(a, op, name, x, y);
	if (!truth)
		diag_error(op->ctx->diag, op->loc, "code generation: no C for '%s' on complex numbers",
		           op->info->name);
	return truth;
}
