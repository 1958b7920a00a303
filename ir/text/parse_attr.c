// Reads attributes in the form that attr_print writes. Called by parse.c, and through attr_parse by
// whoever has an attribute as text (defaults in the operator table).
#include "ir/base/vec.h"
#include "ir/text/lex.h"
#include "ir/text/text.h"

#include <string.h>

// Elements of a list, all of one kind but for integers among floats.
typedef struct Elements {
	int n, cap;
	int kind; // ATTR_INT, ATTR_FLOAT, ATTR_STR, ATTR_BOOL, ATTR_DIM
	int64_t *ints;
	double *floats;
	const void **objects; // strings, dims
} Elements;

static void elements_grow(Context *c, Elements *e)
{
	int nfloat = e->cap, nobject = e->cap;
	VEC_ROOM(c->arena, e->floats, e->n, nfloat);
	VEC_ROOM(c->arena, e->objects, e->n, nobject);
	VEC_ROOM(c->arena, e->ints, e->n, e->cap);
}

static bool parse_bool(Lexer *l, int64_t *out)
{
	*out = lex_keyword(l, "true");
	return *out || lex_keyword(l, "false");
}

// One element into e->...[e->n]; its kind.
static int parse_element(Lexer *l, Elements *e, bool dims)
{
	char c = lex_peek(l);
	bool is_int;
	if (dims)
		return (e->objects[e->n] = parse_dim(l)) ? ATTR_DIM : -1;
	if (c == '"')
		return (e->objects[e->n] = lex_string(l)) ? ATTR_STR : -1;
	if (parse_bool(l, &e->ints[e->n]))
		return ATTR_BOOL;
	if (!lex_number(l, &is_int, &e->ints[e->n], &e->floats[e->n]))
		return -1;
	return is_int ? ATTR_INT : ATTR_FLOAT;
}

static bool parse_elements(Lexer *l, bool dims, Elements *e)
{
	*e = (Elements){.kind = -1};
	if (!lex_expect(l, "["))
		return false;
	if (lex_accept(l, "]"))
		return true;
	do {
		elements_grow(l->ctx, e);
		lex_space(l);
		const char *where = l->at;
		int kind = parse_element(l, e, dims);
		if (kind < 0)
			return false;
		bool numbers = (kind == ATTR_INT || kind == ATTR_FLOAT) &&
		               (e->kind == ATTR_INT || e->kind == ATTR_FLOAT);
		if (e->kind >= 0 && kind != e->kind && !numbers)
			return lex_fail(l, where, "elements of different kinds in one list");
		if (e->kind < 0 || kind == ATTR_FLOAT)
			e->kind = kind;
		e->n++;
	} while (lex_accept(l, ","));
	return lex_expect(l, "]");
}

static const Attr *list_attr(Context *c, int kind, const Elements *e)
{
	switch (kind) {
	case ATTR_FLOATS: return attr_floats(c, e->n, e->floats);
	case ATTR_STRS: return attr_strs(c, e->n, (const char *const *)e->objects);
	case ATTR_BOOLS: return attr_bools(c, e->n, e->ints);
	case ATTR_DIMS: return attr_dims(c, e->n, (const Dim *const *)e->objects);
	default: return attr_ints(c, e->n, e->ints);
	}
}

// A list without a word before it: what its elements say, or the table when it has none. Integers
// become floats or dims where the table wants those.
static const Attr *parse_list(Lexer *l, int want)
{
	Elements e;
	if (!parse_elements(l, false, &e))
		return NULL;
	int kind = want;
	if (e.kind == ATTR_INT && want == ATTR_DIMS) {
		for (int i = 0; i < e.n; i++)
			e.objects[i] = dim_const(l->ctx, e.ints[i]);
	} else if (e.kind == ATTR_FLOAT || (e.kind == ATTR_INT && want == ATTR_FLOATS)) {
		kind = ATTR_FLOATS;
	} else if (e.kind >= 0) {
		kind = e.kind == ATTR_STR ? ATTR_STRS : e.kind == ATTR_BOOL ? ATTR_BOOLS : ATTR_INTS;
	}
	return list_attr(l->ctx, kind, &e);
}

static bool parse_tensor_element(Lexer *l, Tensor *t, int64_t i)
{
	bool is_int;
	int64_t v;
	double f[2];
	if (parse_bool(l, &v)) {
		tensor_set_i(t, i, v);
		return true;
	}
	if (!lex_number(l, &is_int, &v, &f[0]))
		return false;
	if (dtype_is_complex(t->dtype)) {
		if (!lex_number(l, &is_int, &v, &f[1]))
			return false;
		for (int k = 0; k < 2; k++) {
			if (t->dtype == DT_C64)
				((float *)t->data)[2 * i + k] = (float)f[k];
			else
				((double *)t->data)[2 * i + k] = f[k];
		}
	} else if (is_int && !dtype_is_float(t->dtype)) {
		tensor_set_i(t, i, v);
	} else {
		tensor_set_f(t, i, f[0]);
	}
	return true;
}

// How many elements a list that starts here can have at most: no element is shorter than two
// characters.
static bool list_fits(const Lexer *l, int64_t n)
{
	return n <= (l->end - l->at) / 2 + 1;
}

// `dense<2 x 2 x f32 [1.0, 2.0, 3.0, 4.0]>`, after the word.
static const Attr *parse_dense(Lexer *l)
{
	const Dim *dims[MAX_RANK];
	int64_t sizes[MAX_RANK], n;
	int rank;
	DType dtype;
	if (!lex_expect(l, "<"))
		return NULL;
	const char *where = l->at;
	if (!parse_dims(l, dims, &rank, &dtype))
		return NULL;
	const Type *type = type_tensor(l->ctx, dtype, rank, dims, 0);
	if (!type_const_numel(type, &n) || !list_fits(l, n)) {
		lex_fail(l, where, "the sizes do not agree with the data");
		return NULL;
	}
	for (int i = 0; i < rank; i++)
		sizes[i] = dims[i]->value;
	Tensor *t = tensor_new(l->ctx->arena, dtype, rank, sizes);
	if (!t || !lex_expect(l, "["))
		return NULL;
	for (int64_t i = 0; i < n; i++) {
		if ((i && !lex_expect(l, ",")) || !parse_tensor_element(l, t, i))
			return NULL;
	}
	return lex_expect(l, "]") && lex_expect(l, ">") ? attr_tensor(l->ctx, t) : NULL;
}

static const Attr *parse_worded_list(Lexer *l, int kind)
{
	Elements e;
	lex_space(l);
	const char *where = l->at;
	if (!parse_elements(l, kind == ATTR_DIMS, &e))
		return NULL;
	bool fits = e.n == 0 || (kind == ATTR_DIMS && e.kind == ATTR_DIM) ||
	            (kind == ATTR_STRS && e.kind == ATTR_STR) ||
	            (kind == ATTR_BOOLS && e.kind == ATTR_BOOL) ||
	            (kind == ATTR_INTS && e.kind == ATTR_INT) ||
	            (kind == ATTR_FLOATS && (e.kind == ATTR_FLOAT || e.kind == ATTR_INT));
	if (!fits) {
		lex_fail(l, where, "the elements are not what the word before the list says");
		return NULL;
	}
	return list_attr(l->ctx, kind, &e);
}

static const Attr *parse_number_attr(Lexer *l, int want)
{
	bool is_int;
	int64_t i;
	double f;
	if (!lex_number(l, &is_int, &i, &f))
		return NULL;
	if (!is_int || want == ATTR_FLOAT)
		return attr_float(l->ctx, f);
	return want == ATTR_DIM ? attr_dim(l->ctx, dim_const(l->ctx, i)) : attr_int(l->ctx, i);
}

const Attr *parse_attr(Lexer *l, int want)
{
	Context *c = l->ctx;
	int64_t truth;
	DType dtype;
	char first = lex_peek(l);
	if (first == '"') {
		const char *s = lex_string(l);
		return s ? attr_str(c, s) : NULL;
	}
	if (first == '[')
		return parse_list(l, want);
	if (parse_bool(l, &truth))
		return attr_bool(c, truth);
	if (parse_dtype_word(l, &dtype))
		return attr_dtype(c, dtype);
	if (lex_keyword(l, "type")) {
		const Type *t = parse_type(l);
		return t ? attr_type(c, t) : NULL;
	}
	if (lex_keyword(l, "dim")) {
		const Dim *d = parse_dim(l);
		return d ? attr_dim(c, d) : NULL;
	}
	static const struct {
		const char *word;
		AttrKind kind;
	} lists[] = {{"dims", ATTR_DIMS},
	             {"floats", ATTR_FLOATS},
	             {"strs", ATTR_STRS},
	             {"bools", ATTR_BOOLS},
	             {"ints", ATTR_INTS}};
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		if (lex_keyword(l, lists[i].word))
			return parse_worded_list(l, lists[i].kind);
	}
	if (lex_keyword(l, "dense"))
		return parse_dense(l);
	return parse_number_attr(l, want);
}

const Attr *attr_parse(Context *c, AttrKind kind, const char *text)
{
	Lexer l;
	lex_init(&l, c, "attribute", text, strlen(text));
	const Attr *a = parse_attr(&l, (int)kind);
	if (a && lex_peek(&l)) {
		lex_fail(&l, l.at, "unexpected text after an attribute");
		return NULL;
	}
	return a;
}
