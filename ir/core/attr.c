// Attributes: constant properties of operations, made once per context.
#include "ir/core/intern.h"

#include <math.h>
#include <string.h>

// Interns a scalar attribute, or a list whose elements are `data` (n items of `size` bytes).
static Attr *attr_slot(Context *c, AttrKind kind, const void *data, int n, size_t size)
{
	Key k;
	key_init(&k, c);
	key_int(&k, kind);
	key_int(&k, n);
	if (n)
		key_bytes(&k, data, (size_t)n * size);
	void **slot = intern_key(c, INTERN_ATTR, &k);
	if (!*slot) {
		Attr *a = NEW(c->arena, Attr);
		a->kind = kind;
		a->n = -1; // new: the caller fills it
		*slot = a;
	}
	return *slot;
}

static void *list_copy(Context *c, const void *v, int n, size_t size)
{
	void *copy = arena_array(c->arena, (size_t)n, size);
	if (n)
		memcpy(copy, v, (size_t)n * size);
	return copy;
}

// Fills a new attribute's list.
#define LIST_ATTR(kind, field, v, n)                 \
	Attr *a = attr_slot(c, kind, v, n, sizeof *(v)); \
	if (a->n < 0) {                                  \
		a->field = list_copy(c, v, n, sizeof *(v));  \
		a->n = n;                                    \
	}                                                \
	return a

static const Attr *attr_number(Context *c, AttrKind kind, int64_t v)
{
	Attr *a = attr_slot(c, kind, &v, 1, sizeof v);
	a->i = v;
	return a;
}

const Attr *attr_bool(Context *c, bool v)
{
	return attr_number(c, ATTR_BOOL, v);
}

const Attr *attr_int(Context *c, int64_t v)
{
	return attr_number(c, ATTR_INT, v);
}

const Attr *attr_float(Context *c, double v)
{
	Attr *a = attr_slot(c, ATTR_FLOAT, &v, 1, sizeof v);
	a->f = v;
	return a;
}

const Attr *attr_str(Context *c, const char *s)
{
	s = context_str(c, s);
	Attr *a = attr_slot(c, ATTR_STR, &s, 1, sizeof s);
	a->s = s;
	return a;
}

const Attr *attr_type(Context *c, const Type *t)
{
	Attr *a = attr_slot(c, ATTR_TYPE, &t, 1, sizeof t);
	a->type = t;
	return a;
}

const Attr *attr_dtype(Context *c, DType t)
{
	return attr_number(c, ATTR_DTYPE, t);
}

const Attr *attr_dim(Context *c, const Dim *d)
{
	Attr *a = attr_slot(c, ATTR_DIM, &d, 1, sizeof d);
	a->dim = d;
	return a;
}

const Attr *attr_ints(Context *c, int n, const int64_t *v)
{
	LIST_ATTR(ATTR_INTS, ints, v, n);
}

const Attr *attr_bools(Context *c, int n, const int64_t *v)
{
	LIST_ATTR(ATTR_BOOLS, ints, v, n);
}

const Attr *attr_floats(Context *c, int n, const double *v)
{
	LIST_ATTR(ATTR_FLOATS, floats, v, n);
}

const Attr *attr_dims(Context *c, int n, const Dim *const *v)
{
	LIST_ATTR(ATTR_DIMS, dims, v, n);
}

const Attr *attr_strs(Context *c, int n, const char *const *s)
{
	const char **v = NEW_ARRAY(c->arena, (size_t)n, const char *);
	for (int i = 0; i < n; i++)
		v[i] = context_str(c, s[i]);
	LIST_ATTR(ATTR_STRS, strs, v, n);
}

const Attr *attr_tensor(Context *c, const Tensor *t)
{
	Key k;
	key_init(&k, c);
	key_int(&k, ATTR_TENSOR);
	key_int(&k, t->dtype);
	key_int(&k, t->rank);
	key_bytes(&k, t->dims, (size_t)t->rank * sizeof *t->dims);
	if (t->data)
		key_bytes(&k, t->data, tensor_bytes(t));
	void **slot = intern_key(c, INTERN_ATTR, &k);
	if (!*slot) {
		Attr *a = NEW(c->arena, Attr);
		a->kind = ATTR_TENSOR;
		a->tensor = t;
		*slot = a;
	}
	return *slot;
}

static void print_tensor(Text *t, const Tensor *v)
{
	text_str(t, "dense<");
	for (int i = 0; i < v->rank; i++)
		text_printf(t, "%lld x ", (long long)v->dims[i]);
	text_printf(t, "%s [", dtype_name(v->dtype));
	for (int64_t i = 0; i < tensor_numel(v); i++) {
		if (i)
			text_str(t, ", ");
		if (dtype_is_float(v->dtype)) {
			text_float(t, tensor_get_f(v, i), v->dtype != DT_F64);
		} else if (dtype_is_complex(v->dtype)) {
			bool single = v->dtype == DT_C64;
			const float *f = v->data;
			const double *d = v->data;
			text_float(t, single ? f[2 * i] : d[2 * i], single);
			text_char(t, ' ');
			text_float(t, single ? f[2 * i + 1] : d[2 * i + 1], single);
		} else {
			text_printf(t, "%lld", (long long)tensor_get_i(v, i));
		}
	}
	text_str(t, "]>");
}

static void print_element(Text *t, const Attr *a, int i)
{
	switch (a->kind) {
	case ATTR_INTS: text_printf(t, "%lld", (long long)a->ints[i]); break;
	case ATTR_BOOLS: text_str(t, a->ints[i] ? "true" : "false"); break;
	case ATTR_FLOATS: text_float(t, a->floats[i], false); break;
	case ATTR_STRS: text_quoted(t, a->strs[i]); break;
	default: dim_print(t, a->dims[i]); break;
	}
}

static const char *list_word(const Attr *a)
{
	// An empty list cannot show its kind, so all but ints say it.
	switch (a->kind) {
	case ATTR_DIMS: return "dims ";
	case ATTR_FLOATS: return a->n ? "" : "floats ";
	case ATTR_STRS: return a->n ? "" : "strs ";
	case ATTR_BOOLS: return a->n ? "" : "bools ";
	default: return "";
	}
}

void attr_print(Text *t, const Attr *a)
{
	switch (a->kind) {
	case ATTR_BOOL: text_str(t, a->i ? "true" : "false"); return;
	case ATTR_INT: text_printf(t, "%lld", (long long)a->i); return;
	case ATTR_FLOAT: text_float(t, a->f, false); return;
	case ATTR_STR: text_quoted(t, a->s); return;
	case ATTR_TYPE:
		text_str(t, "type ");
		type_print(t, a->type);
		return;
	case ATTR_DTYPE: text_str(t, dtype_name((DType)a->i)); return;
	case ATTR_DIM:
		text_str(t, "dim ");
		dim_print(t, a->dim);
		return;
	case ATTR_TENSOR: print_tensor(t, a->tensor); return;
	default: break;
	}
	text_str(t, list_word(a));
	text_char(t, '[');
	for (int i = 0; i < a->n; i++) {
		if (i)
			text_str(t, ", ");
		print_element(t, a, i);
	}
	text_char(t, ']');
}

bool number_whole(double v, int64_t *whole)
{
	if (!(fabs(v) < 0x1p62) || v != trunc(v))
		return false;
	*whole = (int64_t)v;
	return true;
}
