// Scalar operations as C expressions. What primitive operations look like comes from the operator
// table (`c:`); here is only what a template cannot say: wrapping integers, conversions, loads.
// Called by scalar_print.c, nest.c, reduce.c and the kernel emitters.
#include "codegen/func/func.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- types and elements -------------------------------------------------------------------------

const char *kernel_scalar(const KernelFunc *k, const Type *t)
{
	return t->kind == TY_INDEX ? k->index : type_c_scalar(t);
}

const char *pointer_element(Arena *a, const char *pointer)
{
	size_t n = strlen(pointer);
	return n > 3 && !strncmp(pointer, "(&", 2) ? arena_strndup(a, pointer + 2, n - 3)
	                                           : arena_printf(a, "*%s", pointer);
}

// `pointer[index]`, and a variable by its name.
static const char *element_text(KernelFunc *k, const char *pointer, const char *index)
{
	if (k->inlined && !strncmp(pointer, "(&", 2) && !strcmp(index, "0"))
		return pointer_element(k->arena, pointer);
	return arena_printf(k->arena, "%s[%s]", pointer, expression_unwrap(k->arena, index));
}

const char *scalar_load(KernelFunc *k, DType t, const char *pointer, const char *index)
{
	const char *e = element_text(k, pointer, index);
	switch (t) {
	case DT_BOOL: return arena_printf(k->arena, "(%s != 0)", e);
	case DT_F16: return arena_printf(k->arena, "pd_f16_load(%s)", e);
	case DT_BF16: return arena_printf(k->arena, "pd_bf16_load(%s)", e);
	default: return e;
	}
}

// What is stored is rounded anyway: `e` for `pd_f16_round(e)`.
static const char *without_round(Arena *a, DType t, const char *e)
{
	const char *call = t == DT_F16 ? "pd_f16_round(" : t == DT_BF16 ? "pd_bf16_round(" : NULL;
	if (!call || strncmp(e, call, strlen(call)))
		return e;
	int open = 1;
	const char *at = e + strlen(call);
	for (; *at && open; at++)
		open += *at == '(' ? 1 : *at == ')' ? -1 : 0;
	return open || *at ? e : arena_strndup(a, e + strlen(call), strlen(e) - strlen(call) - 1);
}

const char *scalar_store(KernelFunc *k, DType t, const char *pointer, const char *index,
                         const char *value)
{
	value = without_round(k->arena, t, value);
	const char *form = t == DT_F16    ? "%s = pd_f16_store(%s)"
	                   : t == DT_BF16 ? "%s = pd_bf16_store(%s)"
	                                  : "%s = %s";
	return arena_printf(k->arena, form, element_text(k, pointer, index),
	                    expression_unwrap(k->arena, value));
}

const char *scalar_float(Arena *a, DType t, double v)
{
	if (isnan(v))
		return t == DT_F64 ? "(double)NAN" : "NAN";
	if (isinf(v))
		return arena_printf(a,
		                    t == DT_F64 ? "(double)%sINFINITY"
		                    : v < 0     ? "(%sINFINITY)"
		                                : "%sINFINITY",
		                    v < 0 ? "-" : "");
	Text text;
	text_init(&text, a);
	text_float(&text, v, t != DT_F64);
	if (!strpbrk(text.text, ".e"))
		text_str(&text, ".0");
	return arena_printf(a, signbit(v) ? "(%s%s)" : "%s%s", text.text, t == DT_F64 ? "" : "f");
}

const char *scalar_int(Arena *a, const Type *type, int64_t v)
{
	if (type->kind == TY_SCALAR && type->dtype == DT_BOOL)
		return v ? "true" : "false";
	if (v == INT64_MIN)
		return "INT64_MIN";
	if (v > INT32_MAX || v < -INT32_MAX)
		return arena_printf(a, "INT64_C(%" PRId64 ")", v);
	return arena_printf(a, v < 0 ? "(%" PRId64 ")" : "%" PRId64, v);
}

// ---- names --------------------------------------------------------------------------------------

void scalars_init(Scalars *s, KernelFunc *k)
{
	*s = (Scalars){.k = k};
	pointer_map_init(&s->names, k->arena);
	pointer_map_init(&s->merged, k->arena);
	pointer_map_init(&s->narrow, k->arena);
}

const char *scalars_name(Scalars *s, const Value *v)
{
	const char *name = v ? pointer_map_get(&s->names, v) : NULL;
	if (!name)
		diag_error(s->k->ctx->diag, s->k->op->loc,
		           "code generation: '%s' uses a value that was not printed", s->k->op->info->name);
	return name;
}

// ---- loads --------------------------------------------------------------------------------------

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
		if (sum && !strcmp(sum, "0"))
			sum = NULL;
		if (sum && !dim_is(extent, 1))
			sum = arena_printf(a, "%s * %s", sum, kernel_dim(s->k, extent));
		const char *name = leads && !d ? "0" : scalars_name(s, index);
		if (!name)
			return NULL;
		if (!sum)
			sum = name;
		else if (strcmp(name, "0"))
			sum = arena_printf(a, d + 1 < t->rank ? "(%s + %s)" : "%s + %s", sum, name);
	}
	if (rest)
		return sum && strcmp(sum, "0") ? arena_printf(a, "%s * %" PRId64 " + (%s)", sum, step, rest)
		                               : rest;
	return sum ? sum : "0";
}

const char *scalar_linear(KernelFunc *k, const Type *t, int n, const char *const *index)
{
	const char *sum = NULL;
	for (int d = 0; d < n && d < t->rank; d++) {
		if (sum)
			sum = arena_printf(k->arena, "(%s * %s + %s)", sum, kernel_dim(k, t->dims[d]),
			                   index[d]);
		else if (strcmp(index[d], "0"))
			sum = index[d];
	}
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

// ---- arithmetic ---------------------------------------------------------------------------------

static const char *wrap_operator(enum OpCode code)
{
	switch (code) {
	case OP_PD_ADD: return "+";
	case OP_PD_SUBTRACT: return "-";
	case OP_PD_MULTIPLY: return "*";
	default: return NULL;
	}
}

static bool type_is_int(const Type *t)
{
	return t->kind == TY_SCALAR && dtype_is_int(t->dtype);
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

// Whether op is the larger or the smaller of two whole numbers that C has a function for.
static bool limits_whole(const Scalars *s, const Op *op)
{
	const Type *t = op->results[0].type;
	return (op->code == OP_PD_MAXIMUM || op->code == OP_PD_MINIMUM) && !s->k->cg->backend->device &&
	       (t->kind == TY_INDEX || is_64_or_32(t));
}

static const char *integer_expression(Scalars *s, const Op *op, const char *x, const char *y)
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
		return NULL;
	if (integer_same(op, x, y))
		return integer_same(op, x, y);
	const char *function = integer_function(op->code, t->dtype != DT_I64);
	if (function)
		return arena_printf(a, "(%s)%s(%s, %s)", dtype_c_memory(t->dtype), function, x, y);
	if (operator&& s->k->inlined && sum_fits(s->k->arena, op))
		return arena_printf(a, "%s %s %s", x, operator, y);
	return operator? wrapping(s, t, x, operator, y) : integer_other(s, op, x, y);
}

// ---- complex numbers: structs of pdrt.h; the rest is in scalar_complex.c ------------------------

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

static const char *cast_expression(Scalars *s, const Op *op, const char *x)
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

// ---- templates of the operator table ------------------------------------------------------------

// The inline function of math.c.in that takes the place of a libm function in vector code, else the
// name itself.
static const char *math_name(const Scalars *s, const char *name, size_t n, bool single)
{
	Arena *a = s->k->arena;
	char *full = arena_printf(a, "%.*s%s", (int)n, name, single ? "f" : "");
	if (!s->k->target->vector)
		return full;
	// Without branches these take so many steps that narrow vectors lose by them.
	if (s->k->target->lanes < 8 &&
	    (!strcmp(full, "sinf") || !strcmp(full, "cosf") || !strcmp(full, "powf")))
		return full;
	const char *own = arena_printf(a, "pd_%s", full);
	return prelude_has("math.c", own) ? own : full;
}

static int hole_operand(const Op *op, const char *name, size_t n)
{
	for (int i = 0; i < op->info->noperand; i++)
		if (strlen(op->info->operands[i].name) == n && !memcmp(op->info->operands[i].name, name, n))
			return i;
	return -1;
}

// How often the template holds operand i.
static int hole_count(const Op *op, int operand)
{
	int n = 0;
	for (const char *p = op->info->c_expr; (p = strstr(p, "${")); p += 2)
		n += hole_operand(op, p + 2, strcspn(p + 2, "}")) == operand;
	return n;
}

static const char *table_expression(Scalars *s, const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	const Type *result = op->results[0].type;
	bool single = !(t->kind == TY_SCALAR && t->dtype == DT_F64);
	Text out;
	text_init(&out, s->k->arena);
	for (const char *p = op->info->c_expr; *p;) {
		size_t n = 0;
		while (char_is_word(p[n]))
			n++;
		if (p[0] == '$' && p[1] == '{') {
			n = strcspn(p + 2, "}");
			const char *name = scalars_name(s, op_operand(op, hole_operand(op, p + 2, n)));
			if (!name)
				return NULL;
			bool argument = out.len && out.text[out.len - 1] == '(' &&
			                (p[n + 3] == ')' || p[n + 3] == ',');
			text_str(&out, argument ? expression_unwrap(out.arena, name) : name);
			p += n + 3;
		} else if (n && !strncmp(p + n, "{f}", 3)) {
			text_str(&out, p[n + 3] == '('
			                   ? math_name(s, p, n, single)
			                   : arena_printf(out.arena, "%.*s%s", (int)n, p, single ? "f" : ""));
			p += n + 3;
		} else if (!strncmp(p, "{f}", 3)) {
			text_str(&out, single ? "f" : "");
			p += 3;
		} else if (!strncmp(p, "{t}", 3)) { // in a name `f32`, else the C type
			bool in_name = out.len && char_is_word(out.text[out.len - 1]);
			text_str(&out,
			         in_name ? dtype_name(single ? DT_F32 : DT_F64) : kernel_scalar(s->k, result));
			p += 3;
		} else {
			n += !n;
			text_strn(&out, p, n);
			p += n;
		}
	}
	return out.text;
}

// ---- one operation ------------------------------------------------------------------------------

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

static const char *constant_expression(Scalars *s, const Op *op)
{
	const Attr *v = op_attr(op, "value");
	const Type *t = op->results[0].type;
	if (v->kind == ATTR_FLOAT && type_is_complex(t))
		return complex_of(s->k->arena, t, scalar_float(s->k->arena, dtype_part(t->dtype), v->f));
	if (v->kind == ATTR_FLOAT && t->kind == TY_SCALAR && dtype_is_float(t->dtype))
		return scalar_float(s->k->arena, t->dtype, v->f);
	return number_literal(s, t, v->kind == ATTR_FLOAT ? int_from_double(v->f) : v->i);
}

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

// Half-precision scalars are floats that hold what the narrow type can.
const char *scalar_round(KernelFunc *k, const Type *t, const char *e)
{
	if (!e || t->kind != TY_SCALAR || (t->dtype != DT_F16 && t->dtype != DT_BF16))
		return e;
	return arena_printf(k->arena, t->dtype == DT_F16 ? "pd_f16_round(%s)" : "pd_bf16_round(%s)", e);
}

bool expression_is_word(const char *e)
{
	while (char_is_word(*e) || *e == '.')
		e++;
	return !*e;
}

static const char *from_index_expression(Scalars *s, const Op *op)
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

// The index x and a constant.
static const char *index_shifted(const Scalars *s, const char *x, int64_t by)
{
	if (!x || !by)
		return x;
	return by < 0 ? arena_printf(s->k->arena, "%s - %" PRId64, x, -by)
	              : arena_printf(s->k->arena, "%s + %" PRId64, x, by);
}

const char *scalar_expression(Scalars *s, const Op *op)
{
	int64_t at;
	if (op->code != OP_LOOP_CONSTANT && spans_exact(s, &op->results[0], &at))
		return scalar_int(s->k->arena, op->results[0].type, at);
	const Value *limit = spans_limit(s, op);
	if (limit)
		return scalars_name(s, limit);
	const Value *rest = spans_rest(s, op, &at);
	if (rest)
		return index_shifted(s, scalars_name(s, rest), at);
	const int known = op->code == OP_LOOP_LOAD_OR ? -1 : scalars_known(s, &op->results[0]);
	if (known >= 0)
		return known ? "true" : "false";
	if (scalars_rest(s, op))
		return scalars_name(s, scalars_rest(s, op));
	switch (op->code) {
	case OP_LOOP_CONSTANT: return constant_expression(s, op);
	case OP_LOOP_DIM: return kernel_dim(s->k, op_attr(op, "dim")->dim);
	case OP_LOOP_LOAD: return load_expression(s, op, 0);
	case OP_LOOP_LOAD_OR: return load_or_expression(s, op);
	case OP_PD_WHERE: return where_expression(s, op);
	case OP_LOOP_FROM_INDEX: return from_index_expression(s, op);
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
