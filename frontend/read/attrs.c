// Legacy attributes by the kinds of the operator table; what is without effect, and what is
// refused.
#include "frontend/read/attrs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *attr_kind_name(int32_t kind)
{
	static const char *const names[] = {
		"INT",      "FLOAT",    "STRING", "INTS",    "FLOATS", "STRINGS",
		"BOOLEAN",  "BOOLEANS", "BLOCK",  "LONG",    "BLOCKS", "LONGS",
		"FLOAT64S", "VAR",      "VARS",   "FLOAT64", "SCALAR", "SCALARS",
	};
	return kind >= 0 && (size_t)kind < COUNT_OF(names) ? names[kind] : "of an unknown kind";
}

int attr_count(const Paddle__OpAttr *a)
{
	size_t n = 0;
	switch (a->type) {
	case PADDLE__ATTR_KIND__INT:
	case PADDLE__ATTR_KIND__FLOAT:
	case PADDLE__ATTR_KIND__BOOLEAN:
	case PADDLE__ATTR_KIND__LONG:
	case PADDLE__ATTR_KIND__FLOAT64: return 1;
	case PADDLE__ATTR_KIND__SCALAR: return a->scalar ? 1 : -1;
	case PADDLE__ATTR_KIND__INTS: n = a->n_ints; break;
	case PADDLE__ATTR_KIND__FLOATS: n = a->n_floats; break;
	case PADDLE__ATTR_KIND__BOOLEANS: n = a->n_bools; break;
	case PADDLE__ATTR_KIND__LONGS: n = a->n_longs; break;
	case PADDLE__ATTR_KIND__FLOAT64S: n = a->n_float64s; break;
	case PADDLE__ATTR_KIND__SCALARS: n = a->n_scalars; break;
	default: return -1;
	}
	return n > INT32_MAX ? -1 : (int)n;
}

static bool scalar_is_int(const Paddle__Scalar *s, int64_t *n, double *f)
{
	switch (s->type) {
	case PADDLE__SCALAR__KIND__K_BOOLEAN: *n = s->b != 0; return true;
	case PADDLE__SCALAR__KIND__K_LONG: *n = s->i; return true;
	case PADDLE__SCALAR__KIND__K_COMPLEX128: *f = s->c ? s->c->r : 0; return false;
	default: *f = s->r; return false;
	}
}

// Element i as an integer in *n or, when the result is false, as a float in *f.
static bool element_is_int(const Paddle__OpAttr *a, int i, int64_t *n, double *f)
{
	*n = 0;
	*f = 0;
	switch (a->type) {
	case PADDLE__ATTR_KIND__INT: *n = a->i; return true;
	case PADDLE__ATTR_KIND__LONG: *n = a->l; return true;
	case PADDLE__ATTR_KIND__BOOLEAN: *n = a->b != 0; return true;
	case PADDLE__ATTR_KIND__INTS: *n = a->ints[i]; return true;
	case PADDLE__ATTR_KIND__LONGS: *n = a->longs[i]; return true;
	case PADDLE__ATTR_KIND__BOOLEANS: *n = a->bools[i] != 0; return true;
	case PADDLE__ATTR_KIND__FLOAT: *f = (double)a->f; return false;
	case PADDLE__ATTR_KIND__FLOATS: *f = (double)a->floats[i]; return false;
	case PADDLE__ATTR_KIND__FLOAT64: *f = a->float64; return false;
	case PADDLE__ATTR_KIND__FLOAT64S: *f = a->float64s[i]; return false;
	case PADDLE__ATTR_KIND__SCALAR: return scalar_is_int(a->scalar, n, f);
	default: return scalar_is_int(a->scalars[i], n, f);
	}
}

// An attribute of pdcc's holds a real number: of a complex one the imaginary part would be lost.
static bool element_is_real(const Paddle__OpAttr *a, int i)
{
	const Paddle__Scalar *s = a->type == PADDLE__ATTR_KIND__SCALAR    ? a->scalar
	                          : a->type == PADDLE__ATTR_KIND__SCALARS ? a->scalars[i]
	                                                                  : NULL;
	return !s || s->type != PADDLE__SCALAR__KIND__K_COMPLEX128 || !s->c || s->c->i == 0;
}

bool attr_int_at(const Paddle__OpAttr *a, int i, int64_t *v)
{
	double f;
	if (i < 0 || i >= attr_count(a) || !element_is_real(a, i))
		return false;
	if (element_is_int(a, i, v, &f))
		return true;
	return number_whole(f, v);
}

bool attr_float_at(const Paddle__OpAttr *a, int i, double *v)
{
	int64_t n;
	if (i < 0 || i >= attr_count(a) || !element_is_real(a, i))
		return false;
	if (element_is_int(a, i, &n, v))
		*v = (double)n;
	return true;
}

static bool same_numbers(const Paddle__OpAttr *a, const Paddle__OpAttr *b)
{
	for (int i = 0; i < attr_count(a); i++) {
		int64_t n, m;
		double x, y;
		const bool whole = element_is_int(a, i, &n, &x);
		if (whole != element_is_int(b, i, &m, &y) || element_is_real(a, i) != element_is_real(b, i))
			return false;
		if (whole ? n != m : memcmp(&x, &y, sizeof x) != 0)
			return false;
	}
	return true;
}

bool attr_same(const Paddle__OpAttr *a, const Paddle__OpAttr *b)
{
	if (attr_count(a) >= 0)
		return attr_count(a) == attr_count(b) && same_numbers(a, b);
	if (a->type != b->type)
		return false;
	if (a->type == PADDLE__ATTR_KIND__STRING)
		return strcmp(a->s ? a->s : "", b->s ? b->s : "") == 0;
	if (a->type != PADDLE__ATTR_KIND__STRINGS)
		return true; // names of variables and blocks, which are looked at where they are used
	bool same = a->n_strings == b->n_strings;
	for (size_t i = 0; i < a->n_strings && same; i++)
		same = strcmp(a->strings[i], b->strings[i]) == 0;
	return same;
}

static const Attr *convert_ints(Context *c, AttrKind kind, const Paddle__OpAttr *a, int n)
{
	int64_t *v = NEW_ARRAY(c->arena, (size_t)n, int64_t);
	const Dim **dims = NEW_ARRAY(c->arena, (size_t)n, const Dim *);
	for (int i = 0; i < n; i++) {
		if (!attr_int_at(a, i, &v[i]))
			return NULL;
		if (kind == ATTR_BOOLS)
			v[i] = v[i] != 0;
		dims[i] = dim_const(c, v[i]);
	}
	if (kind == ATTR_DIMS)
		return attr_dims(c, n, dims);
	return kind == ATTR_BOOLS ? attr_bools(c, n, v) : attr_ints(c, n, v);
}

static const Attr *convert_floats(Context *c, const Paddle__OpAttr *a, int n)
{
	double *v = NEW_ARRAY(c->arena, (size_t)n, double);
	for (int i = 0; i < n; i++)
		if (!attr_float_at(a, i, &v[i]))
			return NULL;
	return attr_floats(c, n, v);
}

static DType natural_dtype(const Paddle__OpAttr *a)
{
	switch (a->type) {
	case PADDLE__ATTR_KIND__BOOLEAN:
	case PADDLE__ATTR_KIND__BOOLEANS: return DT_BOOL;
	case PADDLE__ATTR_KIND__INT:
	case PADDLE__ATTR_KIND__INTS: return DT_I32;
	case PADDLE__ATTR_KIND__LONG:
	case PADDLE__ATTR_KIND__LONGS: return DT_I64;
	case PADDLE__ATTR_KIND__FLOAT:
	case PADDLE__ATTR_KIND__FLOATS: return DT_F32;
	default: return DT_F64;
	}
}

// A vector of the values, in the element type nearest to what was written.
static const Attr *convert_tensor(Context *c, const Paddle__OpAttr *a, int n)
{
	const int64_t dims[] = {n};
	Tensor *t = tensor_new(c->arena, natural_dtype(a), 1, dims);
	for (int i = 0; t && i < n; i++) {
		int64_t v;
		double f;
		if (!element_is_real(a, i))
			return NULL;
		if (element_is_int(a, i, &v, &f))
			tensor_set_i(t, i, v);
		else
			tensor_set_f(t, i, f);
	}
	return t ? attr_tensor(c, t) : NULL;
}

static const Attr *convert_strings(Context *c, AttrKind kind, const Paddle__OpAttr *a)
{
	bool single = a->type == PADDLE__ATTR_KIND__STRING;
	if (!single && a->type != PADDLE__ATTR_KIND__STRINGS)
		return NULL;
	const char *text = a->s ? a->s : "";
	if (kind == ATTR_STR)
		return single ? attr_str(c, text) : NULL;
	return single ? attr_strs(c, 1, &text)
	              : attr_strs(c, (int)a->n_strings, (const char *const *)a->strings);
}

// A single value; n is 1.
static const Attr *convert_number(Context *c, AttrKind kind, const Paddle__OpAttr *a)
{
	int64_t v;
	double f;
	DType dtype;
	if (kind == ATTR_FLOAT)
		return attr_float_at(a, 0, &f) ? attr_float(c, f) : NULL;
	if (!attr_int_at(a, 0, &v))
		return NULL;
	switch (kind) {
	case ATTR_BOOL: return attr_bool(c, v != 0);
	case ATTR_INT: return attr_int(c, v);
	case ATTR_DIM: return attr_dim(c, dim_const(c, v));
	case ATTR_DTYPE: return dtype_from_kind(v, &dtype) ? attr_dtype(c, dtype) : NULL;
	default: return NULL;
	}
}

const Attr *attr_convert(Context *c, AttrKind kind, const Paddle__OpAttr *a)
{
	int n = attr_count(a);
	switch (kind) {
	case ATTR_STR:
	case ATTR_STRS: return convert_strings(c, kind, a);
	case ATTR_INTS:
	case ATTR_BOOLS:
	case ATTR_DIMS: return n < 0 ? NULL : convert_ints(c, kind, a, n);
	case ATTR_FLOATS: return n < 0 ? NULL : convert_floats(c, a, n);
	case ATTR_TENSOR: return n < 0 ? NULL : convert_tensor(c, a, n);
	case ATTR_TYPE: return NULL;
	default: return n == 1 ? convert_number(c, kind, a) : NULL;
	}
}

const Attr *attr_convert_number(Context *c, const Paddle__OpAttr *a)
{
	int64_t v;
	double f;
	if (attr_count(a) != 1 || !element_is_real(a, 0))
		return NULL;
	return element_is_int(a, 0, &v, &f) ? attr_int(c, v) : attr_float(c, f);
}

// ---- constants of the program ---------------------------------------------------------------

static bool add_number(NumberList *l, bool whole, int64_t n, double f)
{
	if (l->n == (int)COUNT_OF(l->ints))
		return false;
	l->whole[l->n] = whole;
	l->ints[l->n] = n;
	if (!whole)
		(void)number_whole(f, &l->ints[l->n]);
	l->floats[l->n++] = f;
	return true;
}

static bool add_sizes(NumberList *l, int n, const Dim *const *sizes)
{
	for (int i = 0; i < n; i++)
		if (!dim_is_const(sizes[i]) ||
		    !add_number(l, true, sizes[i]->value, (double)sizes[i]->value))
			return false;
	return true;
}

static bool add_elements(NumberList *l, DType type, int64_t n, const Tensor *t)
{
	bool whole = !dtype_is_float(type);
	for (int64_t i = 0; i < n; i++)
		if (!add_number(l, whole, whole ? tensor_get_i(t, i) : 0, tensor_get_f(t, i)))
			return false;
	return true;
}

static bool add_times(NumberList *l, int64_t n, const Attr *a)
{
	bool whole = a->kind != ATTR_FLOAT;
	for (int64_t i = 0; i < n; i++)
		if (!add_number(l, whole, a->i, whole ? (double)a->i : a->f))
			return false;
	return true;
}

bool numbers_of_value(Context *c, const Value *v, NumberList *l)
{
	const Op *def = v->def;
	int64_t n;
	if (v->known)
		return add_sizes(l, v->nknown, v->known);
	if (!def || !type_is_tensor(v->type) || !type_const_numel(v->type, &n) ||
	    n > (int64_t)COUNT_OF(l->ints))
		return false;
	const Tensor *t = value_constant(v);
	if (t)
		return add_elements(l, v->type->dtype, n, t);
	const Attr *a = op_attr(def, "value");
	return a && def->code == OP_PD_FULL && !def->noperand && add_times(l, n, a);
}

static bool kind_is_single(AttrKind kind)
{
	return kind == ATTR_FLOAT || kind == ATTR_INT || kind == ATTR_BOOL || kind == ATTR_DIM;
}

// Whether all are integers; where as_written, they were written as such.
static bool numbers_are_whole(const NumberList *l, bool as_written)
{
	int64_t whole;
	for (int i = 0; i < l->n; i++)
		if (!l->whole[i] && (as_written || !number_whole(l->floats[i], &whole)))
			return false;
	return true;
}

// Of the number that is all there is; `whole`: it is an integer.
static const Attr *attr_of_number(Context *c, const AttrInfo *a, const NumberList *l, bool whole)
{
	switch (a->kind) {
	case ATTR_FLOAT:
		return a->any_number && whole ? attr_int(c, l->ints[0]) : attr_float(c, l->floats[0]);
	case ATTR_INT: return attr_int(c, l->ints[0]);
	case ATTR_BOOL: return attr_bool(c, l->ints[0] != 0);
	case ATTR_DIM: return attr_dim(c, dim_const(c, l->ints[0]));
	default: return NULL;
	}
}

const Attr *attr_from_numbers(Context *c, const AttrInfo *a, const NumberList *l)
{
	// Which of an integer and a float one number is matters.
	const bool whole = numbers_are_whole(l, a->kind == ATTR_FLOAT);
	const bool real = a->kind == ATTR_FLOAT || a->kind == ATTR_FLOATS;
	if ((kind_is_single(a->kind) && l->n != 1) || (!real && !whole))
		return NULL;
	if (kind_is_single(a->kind))
		return attr_of_number(c, a, l, whole);
	const Dim *dims[COUNT_OF(l->ints)];
	for (int i = 0; i < l->n; i++)
		dims[i] = dim_const(c, l->ints[i]);
	switch (a->kind) {
	case ATTR_INTS: return attr_ints(c, l->n, l->ints);
	case ATTR_DIMS: return attr_dims(c, l->n, dims);
	case ATTR_FLOATS: return attr_floats(c, l->n, l->floats);
	default: return NULL;
	}
}

// ---- attributes that nobody reads ---------------------------------------------------------------

// Whether the attribute is a list of just the numbers in `[1, 2]`, or an empty list.
static bool list_is(const Paddle__OpAttr *a, const char *text)
{
	int n = 0;
	double v;
	if (a->type == PADDLE__ATTR_KIND__STRINGS)
		return strcmp(text, "[]") == 0 && a->n_strings == 0;
	for (const char *at = text + 1; *at && *at != ']';) {
		char *end;
		double want = strtod(at, &end);
		if (end == at || !attr_float_at(a, n++, &v) || v != want)
			return false;
		at = end + strspn(end, ", ");
	}
	return attr_count(a) == n;
}

// Whether the attribute holds what the table writes as `false`, `1.0`, `""` or `[1, 2]`.
static bool value_is(const Paddle__OpAttr *a, const char *text)
{
	double v;
	if (text[0] == '"')
		return a->type == PADDLE__ATTR_KIND__STRING &&
		       strlen(text) == strlen(a->s ? a->s : "") + 2 &&
		       strncmp(text + 1, a->s ? a->s : "", strlen(text) - 2) == 0;
	if (text[0] == '[')
		return list_is(a, text);
	double want = strcmp(text, "true") == 0 ? 1 : strtod(text, NULL); // of `false` 0
	return attr_count(a) == 1 && attr_float_at(a, 0, &v) && v == want;
}

static bool value_in(const Paddle__OpAttr *a, const IgnoredAttr *known)
{
	for (int i = 0; i < known->n; i++)
		if (value_is(a, known->values[i]))
			return true;
	return !known->n;
}

static const char *values_text(Context *c, const IgnoredAttr *known)
{
	Text t;
	text_init(&t, c->arena);
	for (int i = 0; i < known->n; i++)
		text_printf(&t, "%s%s", i ? " or " : "", known->values[i]);
	return t.text;
}

// Whether a name ends as the pattern says, in which '#' stands for a digit.
static bool ends_like(const char *name, const char *end)
{
	size_t length = strlen(name), n = strlen(end);
	for (size_t i = 0; length >= n && i < n; i++) {
		char c = name[length - n + i];
		if (end[i] == '#' ? c < '0' || c > '9' : c != end[i])
			return false;
	}
	return length >= n;
}

static const IgnoredAttr *ignored_find(const IgnoredAttr *list, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		const char *want = list[i].name;
		if (want[0] == '*' ? ends_like(name, want + 1) : strcmp(name, want) == 0)
			return &list[i];
	}
	return NULL;
}

static bool name_in(const char *name, int n, const char *const *names)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

bool attr_is_read(const LegacyMap *map, const char *name)
{
	return name_in(name, map->nattr, map->attr_from) || name_in(name, map->nread, map->reads);
}

const char *attr_objection(Context *c, const LegacyMap *map, const Paddle__OpAttr *a)
{
	if (attr_is_read(map, a->name))
		return NULL;
	int n;
	const IgnoredAttr *everywhere = op_info_ignored(&n);
	const IgnoredAttr *known = ignored_find(map->ignored, map->nignored, a->name);
	if (!known)
		known = ignored_find(everywhere, n, a->name);
	if (!known)
		return arena_printf(c->arena,
		                    "attribute '%s' is unknown: it may change what the operator computes",
		                    a->name);
	if (value_in(a, known))
		return NULL;
	return arena_printf(c->arena, "attribute '%s' is set: only %s is supported", a->name,
	                    values_text(c, known));
}
