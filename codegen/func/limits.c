// Limits of floats: between which numbers constants keep a value, what is therefore already within
// them, and how compilers are kept from making branches of several of them. Asked through scalar.c.
#include "codegen/func/func.h"

#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 8 };

// `number`: never NaN.
typedef struct Range {
	double lo, hi;
	bool number;
} Range;

static bool float_constant(const Value *v, double *c)
{
	const Op *op = v->def;
	if (!op || op->code != OP_LOOP_CONSTANT || v->type->kind != TY_SCALAR ||
	    (v->type->dtype != DT_F32 && v->type->dtype != DT_F64))
		return false;
	*c = op_float(op, "value", NAN);
	return true;
}

static Range range_of(const Value *v, int depth);

// maximum(x, y) is y where either is NaN, as minimum is.
static Range limited_range(Range x, Range y, bool most)
{
	Range r = {.number = y.number};
	if (!y.number)
		return (Range){-HUGE_VAL, HUGE_VAL, false};
	r.lo = most ? fmin(x.lo, y.lo) : x.number ? fmax(x.lo, y.lo) : y.lo;
	r.hi = most ? (x.number ? fmin(x.hi, y.hi) : y.hi) : fmax(x.hi, y.hi);
	return r;
}

static Range scaled_range(const Value *v, Range x, double c)
{
	if (!(c > 0) || !isfinite(c))
		return (Range){-HUGE_VAL, HUGE_VAL, false};
	if (v->type->dtype == DT_F32)
		return (Range){(float)x.lo * (float)c, (float)x.hi * (float)c, x.number};
	return (Range){x.lo * c, x.hi * c, x.number};
}

static Range moved_range(const Value *v, Range x, double c)
{
	if (!isfinite(c))
		return (Range){-HUGE_VAL, HUGE_VAL, false};
	if (v->type->dtype == DT_F32)
		return (Range){(float)x.lo + (float)c, (float)x.hi + (float)c, x.number};
	return (Range){x.lo + c, x.hi + c, x.number};
}

static Range range_of(const Value *v, int depth)
{
	Range r = {-HUGE_VAL, HUGE_VAL, false};
	const Op *op = v->def;
	double c;
	if (float_constant(v, &c))
		return isnan(c) ? r : (Range){c, c, true};
	if (!op || depth > MAX_DEPTH || v->type->kind != TY_SCALAR)
		return r;
	switch (op->code) {
	case OP_PD_MAXIMUM:
	case OP_PD_MINIMUM:
		return limited_range(range_of(op_operand(op, 0), depth + 1),
		                     range_of(op_operand(op, 1), depth + 1), op->code == OP_PD_MINIMUM);
	case OP_PD_MULTIPLY:
		return float_constant(op_operand(op, 1), &c)
		           ? scaled_range(v, range_of(op_operand(op, 0), depth + 1), c)
		           : r;
	case OP_PD_ADD:
		return float_constant(op_operand(op, 1), &c)
		           ? moved_range(v, range_of(op_operand(op, 0), depth + 1), c)
		           : r;
	case OP_PD_RINT:
		r = range_of(op_operand(op, 0), depth + 1);
		return (Range){rint(r.lo), rint(r.hi), r.number};
	default: return r;
	}
}

static bool float_within(const Value *v, double lo, double hi)
{
	const Range r = range_of(v, 0);
	return r.number && r.lo >= lo && r.hi <= hi;
}

bool float_fits(const Value *v, const Type *to)
{
	if (to->kind != TY_SCALAR)
		return false;
	switch (to->dtype) {
	case DT_U8: return float_within(v, 0, UINT8_MAX);
	case DT_I8: return float_within(v, INT8_MIN, INT8_MAX);
	case DT_I16: return float_within(v, INT16_MIN, INT16_MAX);
	case DT_I32: return float_within(v, INT32_MIN, 0x7fffff80);
	default: return false;
	}
}

// Whether comparing v with a constant is decided where v is one.
static bool is_compared(const Op *op)
{
	switch (op->code) {
	case OP_PD_MAXIMUM:
	case OP_PD_MINIMUM:
	case OP_PD_LESS_THAN:
	case OP_PD_LESS_EQUAL:
	case OP_PD_GREATER_THAN:
	case OP_PD_GREATER_EQUAL: return true;
	default: return false;
	}
}

static bool is_followed(const Value *v, int depth)
{
	double c;
	for (const Use *u = v->uses; u && depth < MAX_DEPTH; u = u->next) {
		const Op *op = u->user;
		bool known = op->info->kind == KIND_MAP && op->nresult == 1;
		for (int i = 0; i < op->noperand && known; i++)
			known = op_operand(op, i) == v || float_constant(op_operand(op, i), &c);
		if (known && (is_compared(op) || is_followed(&op->results[0], depth + 1)))
			return true;
	}
	return false;
}

// What the limit `op` with the constant c, its operand `at`, leaves as it is: NaN too, where x
// stands behind c.
static bool limits_nothing(const Op *op, int at, double c)
{
	const Range r = range_of(op_operand(op, 1 - at), 0);
	return (r.number || at == 0) && (op->code == OP_PD_MINIMUM ? r.hi <= c : r.lo >= c);
}

const char *limit_expression(const Scalars *s, const Op *op, const char *x, const char *y)
{
	const Type *t = op->results[0].type;
	double c;
	if ((op->code != OP_PD_MAXIMUM && op->code != OP_PD_MINIMUM) || t->kind != TY_SCALAR)
		return NULL;
	const int at = float_constant(op_operand(op, 0), &c) ? 0 : 1;
	if (at == 1 && !float_constant(op_operand(op, 1), &c))
		return NULL;
	if (limits_nothing(op, at, c))
		return at ? x : y;
	if (!strcmp(x, y)) // what a part that is not there gives
		return y;
	if (!s->k->target->vector || !is_followed(&op->results[0], 0))
		return NULL;
	return arena_printf(s->k->arena, "pd_select%s(%s %s %s, %s, %s)",
	                    t->dtype == DT_F64 ? "_double" : "", x,
	                    op->code == OP_PD_MINIMUM ? "<" : ">", y, x, y);
}

// Whether v is read only as a term of sums with constants that are 1 or greater, or -1 or less.
static bool is_beside_one(const Value *v)
{
	double c;
	for (const Use *u = v->uses; u; u = u->next) {
		const Op *op = u->user;
		if ((op->code != OP_PD_ADD && op->code != OP_PD_SUBTRACT) ||
		    !float_constant(op_operand(op, 1 - (int)u->index), &c) || !(fabs(c) >= 1))
			return false;
	}
	return v->uses != NULL;
}

const char *beside_expression(const Scalars *s, const Op *op, const char *x)
{
	const Value *v = &op->results[0];
	if ((op->code != OP_PD_EXP && op->code != OP_PD_TANH) || v->type->kind != TY_SCALAR ||
	    v->type->dtype != DT_F32 || !s->k->target->vector || !is_beside_one(v))
		return NULL;
	return arena_printf(s->k->arena, "pd_%s_beside(%s)", op->code == OP_PD_EXP ? "exp" : "tanh",
	                    expression_unwrap(s->k->arena, x));
}
