// Types and attributes as Paddle 3's programs say them. Used by the other pir_out files.
#include "frontend/write/pir_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- types --------------------------------------------------------------------------------------

static void dims_text(Text *t, const Type *type)
{
	text_char(t, '[');
	for (int i = 0; i < type->rank; i++)
		text_printf(t, "%s%" PRId64, i ? "," : "",
		            dim_is_const(type->dims[i]) ? type->dims[i]->value : (int64_t)-1);
	text_char(t, ']');
}

static bool vec_text(PirWriter *w, Text *t, const Type *type)
{
	text_str(t, "{\"#\":\"0.t_vec\",\"D\":[");
	for (int i = 0; i < type->nelem; i++) {
		text_str(t, i ? "," : "");
		if (!out_type(w, t, type->elems[i]))
			return false;
	}
	text_str(t, "]}");
	return true;
}

bool out_type(PirWriter *w, Text *t, const Type *type)
{
	if (type->kind == TY_VEC)
		return vec_text(w, t, type);
	if (type->kind != TY_TENSOR && type->kind != TY_ARRAY)
		return out_fail(w, "a value of type %s has no form in Paddle 3", type_text(w->c, type));
	const bool array = type->kind == TY_ARRAY;
	text_printf(t, "{\"#\":\"%s\",\"D\":[{\"#\":\"%s\"},",
	            array ? "1.t_dense_tensor_array" : "0.t_dtensor", pir_type_name(type->dtype));
	dims_text(t, type);
	text_str(t, array ? ",\"NCHW\"]}" : ",\"NCHW\",[],0]}");
	return true;
}

const Type *out_tensor(PirWriter *w, DType t, int rank, const int64_t *dims)
{
	const Dim *list[MAX_RANK];
	for (int i = 0; i < rank; i++)
		list[i] = dims[i] < 0 ? dim_sym(w->c, "any") : dim_const(w->c, dims[i]);
	return type_tensor(w->c, t, rank, list, 0);
}

// ---- attributes ---------------------------------------------------------------------------------

static void attr_begin(OutOp *o)
{
	text_str(&o->attrs, o->attrs.len ? ",{\"AT\":" : "{\"AT\":");
}

static void attr_end(OutOp *o, const char *name)
{
	text_str(&o->attrs, ",\"N\":");
	text_json(&o->attrs, name);
	text_char(&o->attrs, '}');
}

// A number that JSON does not have stands in "VD".
static void float_text(Text *t, const char *kind, double v)
{
	text_printf(t, "{\"#\":\"%s\",", kind);
	if (isnan(v))
		text_str(t, "\"VD\":\"NaN\"}");
	else if (isinf(v))
		text_printf(t, "\"VD\":\"%s\"}", v < 0 ? "-INF" : "INF");
	else {
		text_str(t, "\"D\":");
		text_float(t, v, false);
		text_char(t, '}');
	}
}

static bool int_of(const Attr *a, int64_t *v)
{
	if (a->kind == ATTR_DIM && dim_is_const(a->dim))
		*v = a->dim->value;
	else if (a->kind == ATTR_FLOAT && a->f == (double)int_from_double(a->f))
		*v = int_from_double(a->f);
	else if (a->kind == ATTR_INT || a->kind == ATTR_BOOL)
		*v = a->i;
	else
		return false;
	return true;
}

static bool float_of(const Attr *a, double *v)
{
	if (a->kind == ATTR_FLOAT)
		*v = a->f;
	else if (a->kind == ATTR_INT || a->kind == ATTR_BOOL)
		*v = (double)a->i;
	else
		return false;
	return true;
}

// One number of a kind, single or in a list.
static bool number_text(Text *t, PirKind kind, const Attr *a)
{
	int64_t i;
	double f;
	switch (kind) {
	case PIR_BOOL:
		if (!int_of(a, &i) || i < 0 || i > 1)
			return false;
		text_printf(t, "{\"#\":\"0.a_bool\",\"D\":%s}", i ? "true" : "false");
		return true;
	case PIR_I32:
		if (!int_of(a, &i) || i < INT32_MIN || i > INT32_MAX)
			return false;
		text_printf(t, "{\"#\":\"0.a_i32\",\"D\":%" PRId64 "}", i);
		return true;
	case PIR_I64:
		if (!int_of(a, &i))
			return false;
		text_printf(t, "{\"#\":\"0.a_i64\",\"D\":%" PRId64 "}", i);
		return true;
	case PIR_F32:
		if (float_of(a, &f))
			float_text(t, "0.a_f32", (double)(float)f);
		return float_of(a, &f);
	default:
		if (float_of(a, &f))
			float_text(t, "0.a_f64", f);
		return float_of(a, &f);
	}
}

// An integer that a double does not hold stands as one.
static PirKind scalar_kind(PirKind kind, const Attr *a)
{
	const bool exact = a->kind != ATTR_INT || (int64_t)(double)a->i == a->i;
	return kind == PIR_SCALAR_I64 || !exact ? PIR_I64 : PIR_F64;
}

static int list_length(const Attr *a)
{
	const bool list = a->kind == ATTR_INTS || a->kind == ATTR_FLOATS || a->kind == ATTR_STRS ||
	                  a->kind == ATTR_BOOLS || a->kind == ATTR_DIMS;
	return list ? a->n : -1;
}

static Attr list_element(const Attr *a, int i)
{
	switch (a->kind) {
	case ATTR_INTS: return (Attr){.kind = ATTR_INT, .i = a->ints[i]};
	case ATTR_BOOLS: return (Attr){.kind = ATTR_BOOL, .i = a->ints[i]};
	case ATTR_FLOATS: return (Attr){.kind = ATTR_FLOAT, .f = a->floats[i]};
	case ATTR_DIMS: return (Attr){.kind = ATTR_DIM, .dim = a->dims[i]};
	case ATTR_STRS: return (Attr){.kind = ATTR_STR, .s = a->strs[i]};
	default: return *a;
	}
}

static void str_text(Text *t, const char *s)
{
	text_str(t, "{\"#\":\"0.a_str\",\"D\":");
	text_json(t, s);
	text_char(t, '}');
}

static bool element_text(Text *t, PirKind kind, const Attr *a)
{
	int64_t i;
	switch (kind) {
	case PIR_STRS:
		if (a->kind == ATTR_STR)
			str_text(t, a->s);
		return a->kind == ATTR_STR;
	case PIR_INTARRAY:
		if (int_of(a, &i))
			text_printf(t, "%" PRId64, i);
		return int_of(a, &i);
	case PIR_I32S: return number_text(t, PIR_I32, a);
	case PIR_I64S: return number_text(t, PIR_I64, a);
	case PIR_F32S: return number_text(t, PIR_F32, a);
	default: return number_text(t, scalar_kind(PIR_SCALAR_F64, a), a);
	}
}

// A single number where Paddle has a list is a list of one.
static bool list_text(Text *t, PirKind kind, const Attr *a)
{
	const int n = list_length(a);
	text_printf(t, "{\"#\":\"%s\",\"D\":[", kind == PIR_INTARRAY ? "1.a_intarray" : "0.a_array");
	for (int i = 0; i < (n < 0 ? 1 : n); i++) {
		const Attr e = list_element(a, i);
		text_str(t, i ? "," : "");
		if (!element_text(t, kind, &e))
			return false;
	}
	text_str(t, "]}");
	return true;
}

static bool value_text(Text *t, PirKind kind, const Attr *a)
{
	if (kind >= PIR_I32S && kind <= PIR_STRS)
		return list_text(t, kind, a);
	if (kind == PIR_INTARRAY || kind == PIR_SCALARS)
		return list_text(t, kind, a);
	const Attr only = list_length(a) == 1 ? list_element(a, 0) : *a;
	if (kind != PIR_STR)
		return number_text(t,
		                   kind == PIR_SCALAR_F32 ? PIR_F32
		                   : kind >= PIR_SCALARS  ? scalar_kind(kind, &only)
		                                          : kind,
		                   &only);
	if (only.kind == ATTR_STR)
		str_text(t, only.s);
	return only.kind == ATTR_STR;
}

bool out_attr(OutOp *o, const char *name, PirKind kind, const Attr *a)
{
	if (kind == PIR_PLACE || kind == PIR_DTYPE) {
		if (kind == PIR_PLACE)
			out_attr_place(o, name);
		else
			out_attr_dtype(o, name, a);
		return true;
	}
	const size_t before = o->attrs.len;
	attr_begin(o);
	if (value_text(&o->attrs, kind, a)) {
		attr_end(o, name);
		return true;
	}
	o->attrs.len = before;
	o->attrs.text[before] = '\0';
	return false;
}

void out_attr_int(OutOp *o, const char *name, PirKind kind, int64_t v)
{
	out_attr(o, name, kind, &(Attr){.kind = ATTR_INT, .i = v});
}

void out_attr_str(OutOp *o, const char *name, const char *s)
{
	out_attr(o, name, PIR_STR, &(Attr){.kind = ATTR_STR, .s = s});
}

void out_attr_ints(OutOp *o, const char *name, PirKind kind, int n, const int64_t *v)
{
	out_attr(o, name, kind, &(Attr){.kind = ATTR_INTS, .n = n, .ints = v});
}

void out_attr_dtype(OutOp *o, const char *name, const Attr *a)
{
	attr_begin(o);
	text_printf(&o->attrs, "{\"#\":\"1.a_dtype\",\"D\":\"%s\"}",
	            a ? pir_dtype_token((DType)a->i) : "Undefined(ALL_DTYPE)");
	attr_end(o, name);
}

void out_attr_place(OutOp *o, const char *name)
{
	attr_begin(o);
	text_str(&o->attrs, "{\"#\":\"1.a_place\",\"D\":[0,0,\"\"]}");
	attr_end(o, name);
}

void out_attr_flags(Text *t, const char *name, int n, const bool *flags)
{
	text_str(t, "{\"AT\":{\"#\":\"0.a_array\",\"D\":[");
	for (int i = 0; i < n; i++)
		text_printf(t, "%s{\"#\":\"0.a_bool\",\"D\":%s}", i ? "," : "",
		            flags[i] ? "true" : "false");
	text_printf(t, "]},\"N\":\"%s\"}", name);
}
