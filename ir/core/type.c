// Types: made once per context, so that equality is pointer equality.
#include "ir/core/intern.h"

#include <string.h>

static const struct {
	const char *name;
	size_t size;
} dtypes[DT_COUNT] = {
	[DT_BOOL] = {"bool", 1}, [DT_U8] = {"u8", 1},   [DT_I8] = {"i8", 1},   [DT_I16] = {"i16", 2},
	[DT_I32] = {"i32", 4},   [DT_I64] = {"i64", 8}, [DT_F16] = {"f16", 2}, [DT_BF16] = {"bf16", 2},
	[DT_F32] = {"f32", 4},   [DT_F64] = {"f64", 8}, [DT_C64] = {"c64", 8}, [DT_C128] = {"c128", 16},
};

const char *dtype_name(DType t)
{
	return dtypes[t].name;
}

size_t dtype_size(DType t)
{
	return dtypes[t].size;
}

bool dtype_from_name(const char *s, size_t n, DType *out)
{
	for (int i = 0; i < DT_COUNT; i++) {
		if (strlen(dtypes[i].name) == n && !memcmp(dtypes[i].name, s, n)) {
			*out = (DType)i;
			return true;
		}
	}
	return false;
}

static const Type *type_intern(Context *c, const Type *t)
{
	Key k;
	key_init(&k, c);
	key_int(&k, (int64_t)t->kind << 32 | (int64_t)t->dtype);
	key_int(&k, t->rank);
	key_int(&k, t->lod);
	for (int i = 0; i < t->rank; i++)
		key_ptr(&k, t->dims[i]);
	key_int(&k, t->nelem);
	key_int(&k, t->ninput);
	for (int i = 0; i < t->nelem; i++)
		key_ptr(&k, t->elems[i]);
	void **slot = intern_key(c, INTERN_TYPE, &k);
	if (!*slot) {
		Type *copy = NEW(c->arena, Type);
		*copy = *t;
		const Dim **dims = NEW_ARRAY(c->arena, (size_t)t->rank, const Dim *);
		const Type **elems = NEW_ARRAY(c->arena, (size_t)t->nelem, const Type *);
		if (t->rank)
			memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
		if (t->nelem)
			memcpy(elems, t->elems, (size_t)t->nelem * sizeof *elems);
		copy->dims = dims;
		copy->elems = elems;
		*slot = copy;
	}
	return *slot;
}

const Type *type_scalar(Context *c, DType t)
{
	return type_intern(c, &(Type){.kind = TY_SCALAR, .dtype = t});
}

const Type *type_index(Context *c)
{
	return type_intern(c, &(Type){.kind = TY_INDEX, .dtype = DT_I64});
}

const Type *type_tensor(Context *c, DType t, int rank, const Dim *const *dims, int lod)
{
	return type_intern(
		c, &(Type){.kind = TY_TENSOR, .dtype = t, .rank = rank, .dims = dims, .lod = lod});
}

const Type *type_unranked(Context *c, DType t)
{
	return type_intern(c, &(Type){.kind = TY_UNRANKED, .dtype = t});
}

const Type *type_like(Context *c, const Type *tensor, DType t)
{
	Type copy = *tensor;
	copy.dtype = t;
	return type_intern(c, &copy);
}

const Type *type_shaped(Context *c, TypeKind k, DType t, int rank, const Dim *const *dims)
{
	return type_intern(c, &(Type){.kind = k, .dtype = t, .rank = rank, .dims = dims});
}

const Type *type_group(Context *c, TypeKind k, int n, const Type *const *elems)
{
	return type_intern(c, &(Type){.kind = k, .nelem = n, .elems = elems});
}

const Type *type_func(Context *c, int nin, const Type *const *in, int nout, const Type *const *out)
{
	const Type **all = NEW_ARRAY(c->arena, (size_t)nin + (size_t)nout, const Type *);
	for (int i = 0; i < nin; i++)
		all[i] = in[i];
	for (int i = 0; i < nout; i++)
		all[nin + i] = out[i];
	return type_intern(c,
	                   &(Type){.kind = TY_FUNC, .nelem = nin + nout, .ninput = nin, .elems = all});
}

const Type *type_none(Context *c)
{
	return type_intern(c, &(Type){.kind = TY_NONE});
}

const Dim *type_numel(Context *c, const Type *t)
{
	return dims_product(c, t->rank, t->dims);
}

bool type_same_dims(const Type *a, const Type *b)
{
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dims[i] != b->dims[i])
			return false;
	return true;
}

bool type_const_numel(const Type *t, int64_t *n)
{
	*n = 1;
	bool zero = false;
	for (int i = 0; i < t->rank; i++) {
		if (!dim_is_const(t->dims[i]) || t->dims[i]->value < 0)
			return false;
		zero |= t->dims[i]->value == 0;
	}
	if (zero) {
		*n = 0;
		return true;
	}
	for (int i = 0; i < t->rank; i++) {
		if (*n > INT64_MAX / t->dims[i]->value)
			return false;
		*n *= t->dims[i]->value;
	}
	return true;
}

static void print_shape(Text *out, const Type *t)
{
	for (int i = 0; i < t->rank; i++) {
		dim_print(out, t->dims[i]);
		text_str(out, " x ");
	}
	text_str(out, dtype_name(t->dtype));
}

static void print_list(Text *out, const Type *const *types, int n)
{
	for (int i = 0; i < n; i++) {
		if (i)
			text_str(out, ", ");
		type_print(out, types[i]);
	}
}

static void print_sized(Text *out, const char *head, const Type *t)
{
	text_str(out, head);
	print_shape(out, t);
	if (t->lod)
		text_printf(out, ", lod %d", t->lod);
	text_char(out, '>');
}

void type_print(Text *out, const Type *t)
{
	switch (t->kind) {
	case TY_SCALAR: text_str(out, dtype_name(t->dtype)); break;
	case TY_INDEX: text_str(out, "index"); break;
	case TY_NONE: text_str(out, "none"); break;
	case TY_UNRANKED: text_printf(out, "tensor<* x %s>", dtype_name(t->dtype)); break;
	case TY_TENSOR: print_sized(out, "tensor<", t); break;
	case TY_SELECTED_ROWS: print_sized(out, "selected_rows<", t); break;
	case TY_ARRAY: print_sized(out, "array<", t); break;
	case TY_VEC:
	case TY_STACK:
		text_str(out, t->kind == TY_VEC ? "vec<" : t->nelem ? "stack<" : "stack");
		print_list(out, t->elems, t->nelem);
		if (t->kind == TY_VEC || t->nelem)
			text_char(out, '>');
		break;
	case TY_FUNC:
		text_char(out, '(');
		print_list(out, t->elems, t->ninput);
		text_str(out, ") -> (");
		print_list(out, t->elems + t->ninput, t->nelem - t->ninput);
		text_char(out, ')');
		break;
	}
}

const char *type_text(Context *c, const Type *t)
{
	Text text;
	text_init(&text, c->arena);
	type_print(&text, t);
	return text.text;
}
