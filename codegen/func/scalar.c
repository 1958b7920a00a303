// Scalar operations as C expressions. What primitive operations look like comes from the operator
// table (`c:`, scalar_table.c); here is what a template cannot say of loads and choices, in
// scalar_integer.c of whole numbers, in scalar_convert.c of constants and conversions. Called by
// scalar_print.c, nest.c, reduce.c and the kernel emitters.
#include "codegen/func/scalar.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- loads --------------------------------------------------------------------------------------

// The linear position of the axes before, times the extent of the next; NULL: it is 0.
static const char *position_times(const Scalars *s, const char *sum, const Dim *extent)
{
	if (!sum || !strcmp(sum, "0"))
		return NULL;
	return dim_is(extent, 1) ? sum
	                         : arena_printf(s->k->arena, "%s * %s", sum, kernel_dim(s->k, extent));
}

static const char *position_plus(Arena *a, const char *sum, const char *index, bool last)
{
	if (!sum)
		return index;
	return !strcmp(index, "0") ? sum : arena_printf(a, last ? "%s + %s" : "(%s + %s)", sum, index);
}

// The linear index by Horner's rule. Index arguments that a loop carries merged (nest.c) count
// once, for all the axes they stand for: only the last of them says anything.
static const char *linear_index(Scalars *s, const Op *op, int first, const Type *t)
{
	Arena *a = s->k->arena;
	int axes;
	int64_t step;
	const char *sum = NULL, *rest = narrow_index(s, op, first, t, &axes, &step);
	const bool leads = kernel_lead(s->k, op_operand(op, first - 1)) != NULL;
	const Dim *merged = dim_const(s->k->ctx, 1);
	for (int d = 0; d < axes; d++) {
		const Value *index = op_operand(op, first + d);
		// The tensor's own sizes: its first merged axis may be longer than the loop over it.
		const Dim *extent = dim_mul(s->k->ctx, merged, t->dims[d]);
		bool goes_on = pointer_map_get(&s->merged, index) != NULL;
		merged = goes_on ? extent : dim_const(s->k->ctx, 1);
		if (goes_on)
			continue;
		sum = position_times(s, sum, extent);
		const char *name = leads && !d ? "0" : scalars_name(s, index);
		if (!name)
			return NULL;
		sum = position_plus(a, sum, name, d + 1 == t->rank);
	}
	if (rest)
		return sum && strcmp(sum, "0") ? arena_printf(a, "%s * %" PRId64 " + (%s)", sum, step, rest)
		                               : rest;
	return sum ? sum : "0";
}

// Whether a load in a kernel's region reads a tensor as the result is, at the element of the
// result.
static bool load_is_in_place(const Scalars *s, const Op *op, int first, const Type *t)
{
	const Type *out = s->k->op->results[0].type;
	const Block *body = region_entry(&s->k->op->regions[0]);
	bool same = s->k->place && t->rank == out->rank;
	for (int d = 0; same && d < t->rank; d++)
		same = t->dims[d] == out->dims[d] &&
		       (op_operand(op, first + d) == body->args[1 + d] || dim_is(t->dims[d], 1));
	return same;
}

const char *load_index(Scalars *s, const Op *load)
{
	const int tensor = load->code == OP_LOOP_LOAD_OR ? 2 : 0;
	const Type *t = op_operand(load, tensor)->type;
	return load_is_in_place(s, load, tensor + 1, t) ? s->k->place
	                                                : linear_index(s, load, tensor + 1, t);
}

static const char *load_expression(Scalars *s, const Op *op, int tensor)
{
	const Value *v = op_operand(op, tensor);
	const char *index = load_index(s, op);
	return index ? scalar_load(s->k, v->type->dtype, kernel_tensor(s->k, v), index) : NULL;
}

static const char *load_or_expression(Scalars *s, const Op *op)
{
	int known = scalars_known(s, op_operand(op, 0));
	if (known == 0)
		return scalars_name(s, op_operand(op, 1));
	if (known == 1)
		return load_expression(s, op, 2);
	const char *other = scalars_name(s, op_operand(op, 1)), *load = load_expression(s, op, 2);
	return guard_choice(s, op_operand(op, 0), load, other);
}

// ---- one operation ------------------------------------------------------------------------------

// Whether choosing v may be a branch around work, which GCC does not turn into vector code.
static bool arm_is_work(const Value *v)
{
	return v->def && v->def->info->kind == KIND_MAP && v->def->code != OP_PD_CAST;
}

static const char *where_expression(Scalars *s, const Op *op)
{
	int known = scalars_known(s, op_operand(op, 0));
	if (known >= 0)
		return scalars_name(s, op_operand(op, known ? 1 : 2));
	const char *c = scalars_name(s, op_operand(op, 0));
	const char *x = scalars_name(s, op_operand(op, 1)), *y = scalars_name(s, op_operand(op, 2));
	if (!c || !x || !y)
		return NULL;
	const Type *t = op->results[0].type;
	if (s->k->target->vector && t->kind == TY_SCALAR &&
	    (t->dtype == DT_F32 || t->dtype == DT_F64) &&
	    (arm_is_work(op_operand(op, 1)) || arm_is_work(op_operand(op, 2))))
		return arena_printf(s->k->arena, "pd_select%s(%s, %s, %s)",
		                    t->dtype == DT_F64 ? "_double" : "", c, x, y);
	return guard_choice(s, op_operand(op, 0), x, y);
}

// Powers that are known when the program is compiled and have a function of their own, or one that
// compilers make a multiplication of. NULL: another.
static const char *pow_expression(const Scalars *s, const Op *op, const char *x)
{
	const bool power = op->code == OP_PD_ELEMENTWISE_POW || op->code == OP_PD_WHOLE_POW;
	const Op *y = power ? op_operand(op, 1)->def : NULL;
	const Type *t = op->results[0].type;
	if (!y || y->code != OP_LOOP_CONSTANT || t->kind != TY_SCALAR || !dtype_is_float(t->dtype))
		return NULL;
	Arena *a = s->k->arena;
	const double e = op_float(y, "value", NAN);
	if (e == 0.5)
		return arena_printf(a, "pd_pow_half_%s(%s)", t->dtype == DT_F64 ? "f64" : "f32", x);
	if (t->dtype != DT_F32 || !s->k->target->vector)
		return NULL;
	if (e == 3)
		return arena_printf(a, "pd_cubef(%s)", expression_unwrap(a, x));
	return e == 2 || e == 1 || e == -1 ? arena_printf(a, "powf(%s, %s)", expression_unwrap(a, x),
	                                                  scalar_float(a, DT_F32, e))
	                                   : NULL;
}

static const char *primitive_expression(Scalars *s, const Op *op)
{
	const char *x[2] = {"", ""};
	for (int i = 0; i < op->noperand && i < 2; i++)
		if (!(x[i] = scalars_name(s, op_operand(op, i))))
			return NULL;
	if (op->code == OP_PD_CAST)
		return cast_expression(s, op, x[0]);
	if (op->code == OP_PD_COMPLEX)
		return arena_printf(s->k->arena, "pd_%s_make(%s, %s)",
		                    dtype_name(op->results[0].type->dtype), x[0], x[1]);
	if (type_is_complex(op_operand(op, 0)->type))
		return complex_expression(s->k->arena, op, x[0], x[1]);
	if (op->code == OP_PD_BITWISE_NOT && op->results[0].type->dtype == DT_BOOL)
		return arena_printf(s->k->arena, "!%s", x[0]);
	const char *e = integer_expression(s, op, x[0], x[1]);
	if (!e)
		e = guard_at_least(s, op);
	if (!e)
		e = limit_expression(s, op, x[0], x[1]);
	if (!e)
		e = beside_expression(s, op, x[0]);
	if (!e)
		e = pow_expression(s, op, x[0]);
	if (e)
		return e;
	if (op->info->c_expr)
		return guard_logic(s, op, table_expression(s, op), x[0]);
	diag_error(s->k->ctx->diag, op->loc, "code generation: no C for '%s' on scalars",
	           op->info->name);
	return NULL;
}

// The index x and a constant.
static const char *index_shifted(const Scalars *s, const char *x, int64_t by)
{
	if (!x || !by)
		return x;
	return by < 0 ? arena_printf(s->k->arena, "%s - %" PRId64, x, -by)
	              : arena_printf(s->k->arena, "%s + %" PRId64, x, by);
}

// What op is known to be where it is printed. False: nothing is known; *e is NULL after a
// diagnostic.
static bool known_expression(Scalars *s, const Op *op, const char **e)
{
	int64_t at;
	if (op->code != OP_LOOP_CONSTANT && spans_exact(s, &op->results[0], &at)) {
		*e = scalar_int(s->k->arena, op->results[0].type, at);
		return true;
	}
	const Value *same = spans_limit(s, op);
	const Value *rest = same ? NULL : spans_rest(s, op, &at);
	if (rest) {
		*e = index_shifted(s, scalars_name(s, rest), at);
		return true;
	}
	const int known = same || op->code == OP_LOOP_LOAD_OR ? -1 : scalars_known(s, &op->results[0]);
	if (known >= 0) {
		*e = known ? "true" : "false";
		return true;
	}
	if (!same)
		same = scalars_rest(s, op);
	*e = same ? scalars_name(s, same) : NULL;
	return same != NULL;
}

const char *scalar_expression(Scalars *s, const Op *op)
{
	const char *known;
	if (known_expression(s, op, &known))
		return known;
	switch (op->code) {
	case OP_LOOP_CONSTANT: return constant_expression(s, op);
	case OP_LOOP_DIM: return kernel_dim(s->k, op_attr(op, "dim")->dim);
	case OP_LOOP_LOAD: return load_expression(s, op, 0);
	case OP_LOOP_LOAD_OR: return load_or_expression(s, op);
	case OP_PD_WHERE: return where_expression(s, op);
	case OP_LOOP_FROM_INDEX: return from_index_expression(s, op);
	case OP_LOOP_POSITION: return position_expression(s, op);
	case OP_LOOP_NEAR_INDEX: return near_index_expression(s, op);
	default: return scalar_round(s->k, op->results[0].type, primitive_expression(s, op));
	}
}

bool scalar_stands_once(const Scalars *s, const Op *reader, int operand)
{
	if (limits_whole(s, reader))
		return true;
	switch (reader->code) {
	case OP_LOOP_LOAD:
	case OP_LOOP_LOAD_OR:
	case OP_LOOP_FROM_INDEX:
	case OP_LOOP_POSITION:
	case OP_LOOP_YIELD:
	case OP_PD_WHERE:
	case OP_PD_CAST: return true;
	case OP_LOOP_TO_INDEX:
	case OP_LOOP_NEAR_INDEX:
	case OP_LOOP_REDUCE: return false;
	default:
		if (reader->results[0].type->kind == TY_INDEX || type_is_int(reader->results[0].type))
			return wrap_operator(reader->code) != NULL;
		return reader->info->c_expr && hole_count(reader, operand) == 1;
	}
}
