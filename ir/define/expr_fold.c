// What calls in an expression of the operator table give without an operation: arithmetic of
// numbers alone, comparisons of attributes, and what changes nothing. expr.c asks for every call.
#include "ir/define/expr.h"

#include <math.h>

static bool fold_binary(enum OpCode code, const Term *a, const Term *b, Term *out)
{
	double x = a->number, y = b->number;
	bool ints = a->is_int && b->is_int;
	switch (code) {
	case OP_PD_ADD: *out = expr_number(x + y, ints); return true;
	case OP_PD_SUBTRACT: *out = expr_number(x - y, ints); return true;
	case OP_PD_MULTIPLY: *out = expr_number(x * y, ints); return true;
	case OP_PD_DIVIDE: *out = expr_number(x / y, false); return !ints;
	case OP_PD_LESS_THAN: *out = expr_number(x < y, true); return true;
	case OP_PD_LESS_EQUAL: *out = expr_number(x <= y, true); return true;
	case OP_PD_GREATER_THAN: *out = expr_number(x > y, true); return true;
	case OP_PD_GREATER_EQUAL: *out = expr_number(x >= y, true); return true;
	case OP_PD_EQUAL: *out = expr_number(x == y, true); return true;
	case OP_PD_NOT_EQUAL: *out = expr_number(x != y, true); return true;
	default: return false;
	}
}

static bool fold_unary(enum OpCode code, const Term *a, Term *out)
{
	switch (code) {
	case OP_PD_NEGATIVE: *out = expr_number(-a->number, a->is_int); return true;
	case OP_PD_LOGICAL_NOT: *out = expr_number(a->number == 0, true); return true;
	case OP_PD_SQRT: *out = expr_number(sqrt(a->number), false); return true;
	default: return false;
	}
}

bool expr_fold(const Expr *x, const Term *args, Term *out)
{
	bool numbers = true, attrs = true;
	for (int i = 0; i < x->nargs; i++) {
		numbers &= args[i].kind == TERM_NUMBER;
		attrs &= args[i].kind == TERM_ATTR;
	}
	if (x->code == OP_PD_CAST && x->nargs > 0 &&
	    args[0].kind == TERM_NUMBER) { // takes the type of what it meets
		*out = args[0];
		return true;
	}
	if (attrs && x->nargs == 2 && (x->code == OP_PD_EQUAL || x->code == OP_PD_NOT_EQUAL)) {
		*out = expr_number((args[0].attr == args[1].attr) == (x->code == OP_PD_EQUAL), true);
		return true;
	}
	if (!numbers)
		return false;
	return (x->nargs == 2 && fold_binary(x->code, &args[0], &args[1], out)) ||
	       (x->nargs == 1 && fold_unary(x->code, &args[0], out));
}

bool expr_drop_neutral(const Expr *x, const Term *args, Term *out)
{
	for (int i = 0; i < 2 && x->nargs == 2; i++) {
		const Term *v = &args[i], *number = &args[1 - i];
		if (v->kind != TERM_VALUE || number->kind != TERM_NUMBER)
			continue;
		const Type *t = v->value->type;
		bool whole = t->kind == TY_INDEX || dtype_is_int(t->dtype);
		if ((x->code == OP_PD_MULTIPLY && number->number == 1 &&
		     (whole || dtype_is_float(t->dtype))) ||
		    (x->code == OP_PD_ADD && number->number == 0 && whole)) {
			*out = *v;
			return true;
		}
	}
	return false;
}
