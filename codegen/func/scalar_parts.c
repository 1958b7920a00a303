// What scalar code is made of: types, literals, names of values, elements of tensors. Called by all
// that print expressions.
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

// ---- literals -----------------------------------------------------------------------------------

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

// Half-precision scalars are floats that hold what the narrow type can.
const char *scalar_round(KernelFunc *k, const Type *t, const char *e)
{
	if (!e || t->kind != TY_SCALAR || (t->dtype != DT_F16 && t->dtype != DT_BF16))
		return e;
	return arena_printf(k->arena, t->dtype == DT_F16 ? "pd_f16_round(%s)" : "pd_bf16_round(%s)", e);
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

bool expression_is_word(const char *e)
{
	while (char_is_word(*e) || *e == '.')
		e++;
	return !*e;
}
