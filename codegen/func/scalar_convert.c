// Constants, and conversions between types of scalars, as C expressions. Called by scalar.c.
#include "codegen/func/scalar.h"

#include <string.h>

// ---- conversions --------------------------------------------------------------------------------

static const char *complex_of(Arena *a, const Type *t, const char *re)
{
	return arena_printf(a, "pd_%s_of(%s)", dtype_name(t->dtype), re);
}

// The number of an integer type, from a floating one: through i32 or i64, as the machine does it.
static const char *whole_of_float(Arena *a, DType from, const Type *to, const char *x)
{
	const bool wide = to->dtype == DT_I64;
	const char *whole = arena_printf(a, "pd_%s_to_%s(%s)", from == DT_F64 ? "f64" : "f32",
	                                 wide ? "i64" : "i32", expression_unwrap(a, x));
	return wide || to->dtype == DT_I32 ? whole
	                                   : arena_printf(a, "(%s)%s", type_c_scalar(to), whole);
}

// One of the types is complex. Other numbers are made of the real part; bool of both.
static const char *complex_cast(Arena *a, const Type *from, const Type *to, const char *x)
{
	const char *name = dtype_name(from->dtype);
	if (!type_is_complex(from))
		return complex_of(
			a, to,
			arena_printf(a, "(%s)%s", dtype_part(to->dtype) == DT_F32 ? "float" : "double", x));
	if (type_is_complex(to))
		return arena_printf(a, "pd_%s_from_%s(%s)", dtype_name(to->dtype), name, x);
	if (to->dtype == DT_BOOL)
		return arena_printf(a, "pd_%s_any(%s)", name, x);
	const char *re = arena_printf(a, "%s.re", x);
	if (type_is_int(to))
		return whole_of_float(a, dtype_part(from->dtype), to, re);
	return arena_printf(a, "(%s)%s", type_c_scalar(to), re);
}

// Whether the integer becomes a floating number again: then compilers make one conversion of two,
// which keeps the sign of 0.
static bool goes_back(const Op *cast)
{
	for (const Use *u = cast->results[0].uses; u; u = u->next)
		if (u->user->code == OP_PD_CAST && dtype_is_float(u->user->results[0].type->dtype))
			return true;
	return false;
}

const char *cast_expression(Scalars *s, const Op *op, const char *x)
{
	Arena *a = s->k->arena;
	const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
	if (from == to)
		return x;
	if (type_is_complex(from) || type_is_complex(to))
		return complex_cast(s->k->arena, from, to, x);
	if (to->kind == TY_SCALAR && to->dtype == DT_BOOL)
		return arena_printf(a, "%s != 0", x);
	if (type_is_int(to) && from->kind == TY_SCALAR && dtype_is_float(from->dtype))
		return float_fits(op_operand(op, 0), to) && !goes_back(op)
		           ? arena_printf(a, "(%s)%s", kernel_scalar(s->k, to), x)
		           : whole_of_float(a, from->dtype, to, x);
	return arena_printf(a, "(%s)%s", kernel_scalar(s->k, to), x);
}

// ---- constants and sizes ------------------------------------------------------------------------

static bool size_constant(const Value *v, int64_t *out)
{
	if (!v->def || v->def->code != OP_LOOP_DIM)
		return false;
	const Dim *d = op_attr(v->def, "dim")->dim;
	*out = d->value;
	return d->kind == DIM_CONST;
}

static const char *number_literal(Scalars *s, const Type *t, int64_t v)
{
	if (type_is_complex(t))
		return complex_of(s->k->arena, t,
		                  scalar_float(s->k->arena, dtype_part(t->dtype), (double)v));
	if (t->kind == TY_SCALAR && dtype_is_float(t->dtype))
		return scalar_float(s->k->arena, t->dtype, (double)v);
	return scalar_int(s->k->arena, t, v);
}

const char *constant_expression(Scalars *s, const Op *op)
{
	const Attr *v = op_attr(op, "value");
	const Type *t = op->results[0].type;
	if (v->kind == ATTR_FLOAT && type_is_complex(t))
		return complex_of(s->k->arena, t, scalar_float(s->k->arena, dtype_part(t->dtype), v->f));
	if (v->kind == ATTR_FLOAT && t->kind == TY_SCALAR && dtype_is_float(t->dtype))
		return scalar_float(s->k->arena, t->dtype, v->f);
	int64_t whole = v->kind != ATTR_FLOAT
	                    ? v->i
	                    : whole_from_double(t->kind == TY_SCALAR ? t->dtype : DT_I64, v->f);
	return number_literal(s, t, whole);
}

const char *from_index_expression(Scalars *s, const Op *op)
{
	const Type *t = op->results[0].type;
	int64_t constant;
	if (size_constant(op_operand(op, 0), &constant))
		return number_literal(s, t, constant);
	const char *x = scalars_name(s, op_operand(op, 0));
	if (x && type_is_complex(t))
		return complex_cast(s->k->arena, op_operand(op, 0)->type, t, x);
	// Of a sum with divisions in it the cast says that they are meant to be of whole numbers.
	if (!x || (t->dtype == DT_I64 && expression_is_word(x) && !strcmp(s->k->index, "int64_t")))
		return x;
	return scalar_round(s->k, t, arena_printf(s->k->arena, "(%s)%s", type_c_scalar(t), x));
}

// A number that is known to be a position, as an index.
const char *position_expression(Scalars *s, const Op *op)
{
	const char *x = scalars_name(s, op_operand(op, 0));
	const bool same = op_operand(op, 0)->type->dtype == DT_I64 && !strcmp(s->k->index, "int64_t");
	return !x || same ? x : arena_printf(s->k->arena, "(%s)%s", s->k->index, x);
}
