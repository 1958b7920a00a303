// Types and attributes of Paddle 3's programs, as legacy ones. Numbers keep their width: versions
// of the file differ in it, and whoever reads an attribute takes any.
#include "frontend/read/pir.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- element types ----------------------------------------------------------------------------

static const struct {
	const char *type, *token; // "0.t_f32" in types, "float32" in attributes
	int32_t kind;
} elements[] = {
	{"0.t_bool", "bool", PADDLE__VAR_KIND__BOOL},
	{"0.t_ui8", "uint8", PADDLE__VAR_KIND__UINT8},
	{"0.t_i8", "int8", PADDLE__VAR_KIND__INT8},
	{"0.t_i16", "int16", PADDLE__VAR_KIND__INT16},
	{"0.t_i32", "int32", PADDLE__VAR_KIND__INT32},
	{"0.t_i64", "int64", PADDLE__VAR_KIND__INT64},
	{"0.t_f16", "float16", PADDLE__VAR_KIND__FP16},
	{"0.t_bf16", "bfloat16", PADDLE__VAR_KIND__BF16},
	{"0.t_f32", "float32", PADDLE__VAR_KIND__FP32},
	{"0.t_f64", "float64", PADDLE__VAR_KIND__FP64},
	{"0.t_c64", "complex64", PADDLE__VAR_KIND__COMPLEX64},
	{"0.t_c128", "complex128", PADDLE__VAR_KIND__COMPLEX128},
};

int32_t pir_dtype(const char *token)
{
	for (size_t i = 0; i < COUNT_OF(elements); i++)
		if (strcmp(elements[i].token, token) == 0)
			return elements[i].kind;
	return strncmp(token, "Undefined", 9) == 0 ? -1 : -2;
}

static int element_index(DType t)
{
	const int32_t kind = kind_from_dtype(t);
	int i = 0;
	while (elements[i].kind != kind)
		i++;
	return i;
}

const char *pir_type_name(DType t)
{
	return elements[element_index(t)].type;
}

const char *pir_dtype_token(DType t)
{
	return elements[element_index(t)].token;
}

static int32_t element_kind(json_object *type)
{
	json_object *name = pir_get(type, "#", json_type_string);
	for (size_t i = 0; name && i < COUNT_OF(elements); i++)
		if (strcmp(elements[i].type, json_object_get_string(name)) == 0)
			return elements[i].kind;
	return -2;
}

// ---- types ------------------------------------------------------------------------------------

static Paddle__TensorDesc *tensor_desc(PirReader *r, json_object *data)
{
	json_object *dims = json_object_array_length(data) > 1 ? json_object_array_get_idx(data, 1)
	                                                       : NULL;
	Paddle__TensorDesc *d = NEW(r->c->arena, Paddle__TensorDesc);
	paddle__tensor_desc__init(d);
	d->data_type = element_kind(json_object_array_get_idx(data, 0));
	if (d->data_type < 0 || !json_object_is_type(dims, json_type_array)) {
		pir_fail(r, "a tensor type has no element type that pdcc knows, or no sizes");
		return NULL;
	}
	d->n_dims = json_object_array_length(dims);
	d->dims = NEW_ARRAY(r->c->arena, d->n_dims, int64_t);
	for (size_t i = 0; i < d->n_dims; i++)
		d->dims[i] = json_object_get_int64(json_object_array_get_idx(dims, i));
	return d;
}

static Paddle__VarType *var_type_new(PirReader *r, json_object *tt)
{
	json_object *name = pir_get(tt, "#", json_type_string),
				*data = pir_get(tt, "D", json_type_array);
	const char *kind = name ? json_object_get_string(name) : "";
	bool array = strcmp(kind, "1.t_dense_tensor_array") == 0;
	if ((!array && strcmp(kind, "0.t_dtensor") != 0) || !data || !json_object_array_length(data)) {
		pir_fail(r, "a value of type '%s' is not supported", kind);
		return NULL;
	}
	Paddle__VarType *t = NEW(r->c->arena, Paddle__VarType);
	Paddle__LodTensorDesc *l = NEW(r->c->arena, Paddle__LodTensorDesc);
	paddle__var_type__init(t);
	paddle__lod_tensor_desc__init(l);
	t->type = array ? PADDLE__VAR_KIND__LOD_TENSOR_ARRAY : PADDLE__VAR_KIND__LOD_TENSOR;
	*(array ? &t->tensor_array : &t->lod_tensor) = l;
	// An array that nobody has written to may be of no element type yet: its sizes are learnt from
	// what is written.
	if (array && element_kind(json_object_array_get_idx(data, 0)) < 0)
		*(array ? &t->tensor_array : &t->lod_tensor) = NULL;
	else if (!(l->tensor = tensor_desc(r, data)))
		return NULL;
	return t;
}

bool pir_types(PirReader *r, json_object *tt, PirValue *out)
{
	json_object *name = pir_get(tt, "#", json_type_string), *list = NULL;
	out->vec = name && strcmp(json_object_get_string(name), "0.t_vec") == 0;
	if (out->vec && !(list = pir_get(tt, "D", json_type_array)))
		return pir_fail(r, "a vector type has no elements");
	size_t n = out->vec ? json_object_array_length(list) : 1;
	if (n > INT16_MAX)
		return pir_fail(r, "a vector of %zu elements is too long", n);
	out->n = (int)n;
	out->vars = NEW_ARRAY(r->c->arena, n, char *);
	out->types = NEW_ARRAY(r->c->arena, n, Paddle__VarType *);
	// A result without a type: unique, and what only gradients read.
	bool none = !tt || json_object_is_type(tt, json_type_null) ||
	            (json_object_is_type(tt, json_type_string) &&
	             !strcmp(json_object_get_string(tt), "NULL")) ||
	            (name && !strcmp(json_object_get_string(name), "NULL"));
	for (size_t i = 0; i < n && !none; i++)
		if (!(out->types[i] = var_type_new(r, out->vec ? json_object_array_get_idx(list, i) : tt)))
			return false;
	return true;
}

// ---- attributes -------------------------------------------------------------------------------

Paddle__OpAttr *pir_attr_new(PirReader *r, const char *name, int kind)
{
	Paddle__OpAttr *a = NEW(r->c->arena, Paddle__OpAttr);
	paddle__op_attr__init(a);
	a->name = pir_copy(r, name);
	a->type = kind;
	return a;
}

// A number that may be one of those that JSON does not have, which stand in "VD".
static bool float_of(json_object *at, double *v)
{
	json_object *d = NULL, *special = pir_get(at, "VD", json_type_string);
	if (special) {
		const char *s = json_object_get_string(special);
		*v = strstr(s, "NaN") || strstr(s, "NAN") ? (double)NAN
		     : *s == '-'                          ? (double)-INFINITY
		                                          : (double)INFINITY;
		return true;
	}
	json_object_object_get_ex(at, "D", &d);
	*v = json_object_get_double(d);
	return json_object_is_type(d, json_type_double) || json_object_is_type(d, json_type_int);
}

static bool is_kind(const char *kind, const char *want)
{
	return strcmp(kind, want) == 0;
}

// How a list of attributes of this kind is stored; -1: there is no such list.
static int list_kind(const char *kind)
{
	static const struct {
		const char *kind;
		int list;
	} kinds[] = {
		{"0.a_i32", PADDLE__ATTR_KIND__LONGS},     {"0.a_i64", PADDLE__ATTR_KIND__LONGS},
		{"0.a_f32", PADDLE__ATTR_KIND__FLOAT64S},  {"0.a_f64", PADDLE__ATTR_KIND__FLOAT64S},
		{"0.a_bool", PADDLE__ATTR_KIND__BOOLEANS}, {"0.a_str", PADDLE__ATTR_KIND__STRINGS},
	};
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (is_kind(kind, kinds[i].kind))
			return kinds[i].list;
	return -1;
}

// Element i of a list; false when it is of another kind than the first.
static bool list_element(PirReader *r, Paddle__OpAttr *a, size_t i, json_object *at)
{
	json_object *d = NULL, *name = pir_get(at, "#", json_type_string);
	json_object_object_get_ex(at, "D", &d);
	if (!name || list_kind(json_object_get_string(name)) != a->type)
		return false;
	switch (a->type) {
	case PADDLE__ATTR_KIND__LONGS:
		a->longs[i] = json_object_get_int64(d);
		return json_object_is_type(d, json_type_int);
	case PADDLE__ATTR_KIND__FLOAT64S: return float_of(at, &a->float64s[i]);
	case PADDLE__ATTR_KIND__BOOLEANS:
		a->bools[i] = json_object_get_boolean(d);
		return json_object_is_type(d, json_type_boolean);
	default: a->strings[i] = pir_text(r, d); return json_object_is_type(d, json_type_string);
	}
}

static void list_room(PirReader *r, Paddle__OpAttr *a, size_t n)
{
	a->n_longs = a->n_float64s = a->n_bools = a->n_strings = 0;
	switch (a->type) {
	case PADDLE__ATTR_KIND__LONGS:
		a->longs = NEW_ARRAY(r->c->arena, n, int64_t);
		a->n_longs = n;
		break;
	case PADDLE__ATTR_KIND__FLOAT64S:
		a->float64s = NEW_ARRAY(r->c->arena, n, double);
		a->n_float64s = n;
		break;
	case PADDLE__ATTR_KIND__BOOLEANS:
		a->bools = NEW_ARRAY(r->c->arena, n, protobuf_c_boolean);
		a->n_bools = n;
		break;
	default:
		a->strings = NEW_ARRAY(r->c->arena, n, char *);
		a->n_strings = n;
		break;
	}
}

static bool array_attr(PirReader *r, Paddle__OpAttr *a, json_object *at)
{
	json_object *d = pir_get(at, "D", json_type_array);
	size_t n = d ? json_object_array_length(d) : 0;
	json_object *first = n ? pir_get(json_object_array_get_idx(d, 0), "#", json_type_string) : NULL;
	if (!d || (n && !first))
		return false;
	a->type = first ? list_kind(json_object_get_string(first)) : PADDLE__ATTR_KIND__LONGS;
	if (a->type < 0)
		return false;
	list_room(r, a, n);
	for (size_t i = 0; i < n; i++)
		if (!list_element(r, a, i, json_object_array_get_idx(d, i)))
			return false;
	return true;
}

// `1.a_intarray`: its numbers stand in the list as they are.
static bool intarray_attr(PirReader *r, Paddle__OpAttr *a, json_object *at)
{
	json_object *d = pir_get(at, "D", json_type_array);
	size_t n = d ? json_object_array_length(d) : 0;
	if (!d)
		return false;
	a->type = PADDLE__ATTR_KIND__LONGS;
	list_room(r, a, n);
	for (size_t i = 0; i < n; i++) {
		json_object *v = json_object_array_get_idx(d, i);
		a->longs[i] = json_object_get_int64(v);
		if (!json_object_is_type(v, json_type_int))
			return false;
	}
	return true;
}

static bool single_attr(PirReader *r, Paddle__OpAttr *a, const char *kind, json_object *at)
{
	json_object *d = NULL;
	json_object_object_get_ex(at, "D", &d);
	if (is_kind(kind, "0.a_f32") || is_kind(kind, "0.a_f64")) {
		a->type = PADDLE__ATTR_KIND__FLOAT64;
		a->has_float64 = 1;
		return float_of(at, &a->float64);
	}
	if (is_kind(kind, "0.a_i32") || is_kind(kind, "0.a_i64")) {
		a->type = PADDLE__ATTR_KIND__LONG;
		a->has_l = 1;
		a->l = json_object_get_int64(d);
		return json_object_is_type(d, json_type_int);
	}
	if (is_kind(kind, "0.a_bool")) {
		a->type = PADDLE__ATTR_KIND__BOOLEAN;
		a->has_b = 1;
		a->b = json_object_get_boolean(d);
		return json_object_is_type(d, json_type_boolean);
	}
	if (!json_object_is_type(d, json_type_string))
		return false;
	a->type = PADDLE__ATTR_KIND__STRING;
	a->s = pir_text(r, d);
	if (!is_kind(kind, "1.a_dtype"))
		return is_kind(kind, "0.a_str");
	a->type = PADDLE__ATTR_KIND__INT;
	a->has_i = 1;
	a->i = pir_dtype(a->s);
	return a->i >= -1;
}

Paddle__OpAttr *pir_attr(PirReader *r, const char *name, json_object *at, bool *ok)
{
	json_object *k = pir_get(at, "#", json_type_string);
	const char *kind = k ? json_object_get_string(k) : "";
	*ok = true;
	if (is_kind(kind, "1.a_place"))
		return NULL;
	Paddle__OpAttr *a = pir_attr_new(r, name, PADDLE__ATTR_KIND__INT);
	*ok = is_kind(kind, "0.a_array")      ? array_attr(r, a, at)
	      : is_kind(kind, "1.a_intarray") ? intarray_attr(r, a, at)
	                                      : single_attr(r, a, kind, at);
	if (!*ok)
		pir_fail(r, "attribute '%s' of kind '%s' has a value that pdcc does not know", name, kind);
	return *ok ? a : NULL;
}
