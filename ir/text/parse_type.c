// Reads sizes and types in the form that dim_print and type_print write. Called by parse.c for the
// types of values, and by parse_attr.c.
#include "ir/text/lex.h"

#include <string.h>

// ---- dims ---------------------------------------------------------------------------------------

static const Dim *parse_sum(Lexer *l);
static const Dim *parse_factor(Lexer *l);

static const Dim *parse_symbol(Lexer *l)
{
	bool bounded = l->at < l->end && *l->at == '!';
	l->at += bounded;
	const char *s = l->at;
	while (l->at < l->end && lex_is_word(*l->at))
		l->at++;
	if (l->at == s) {
		lex_fail(l, s, "expected the name of a symbol after '?'");
		return NULL;
	}
	const char *name = context_strn(l->ctx, s, (size_t)(l->at - s));
	return bounded ? dim_sym_bounded(l->ctx, name) : dim_sym(l->ctx, name);
}

static const Dim *parse_call(Lexer *l, const Dim *(*make)(Context *c, const Dim *a, const Dim *b))
{
	if (!lex_expect(l, "("))
		return NULL;
	const Dim *a = parse_sum(l);
	if (!a || !lex_expect(l, ","))
		return NULL;
	const Dim *b = parse_sum(l);
	if (!b || !lex_expect(l, ")"))
		return NULL;
	return make(l->ctx, a, b);
}

static const Dim *parse_parens(Lexer *l)
{
	const Dim *d = parse_sum(l);
	return d && lex_expect(l, ")") ? d : NULL;
}

static const Dim *parse_factor_here(Lexer *l)
{
	if (lex_accept(l, "?"))
		return parse_symbol(l);
	if (lex_accept(l, "("))
		return parse_parens(l);
	if (lex_keyword(l, "max"))
		return parse_call(l, dim_max);
	if (lex_keyword(l, "min"))
		return parse_call(l, dim_min);
	if (lex_keyword(l, "broadcast"))
		return parse_call(l, dim_broadcast);
	bool digit_next = l->end - l->at > 1 && l->at[1] >= '0' && l->at[1] <= '9';
	if (lex_peek(l) == '-' && !digit_next) {
		l->at++;
		const Dim *d = parse_factor(l);
		return d ? dim_sub(l->ctx, dim_const(l->ctx, 0), d) : NULL;
	}
	int64_t v;
	return lex_int(l, &v) ? dim_const(l->ctx, v) : NULL;
}

static const Dim *parse_factor(Lexer *l)
{
	if (l->dim_depth == LEX_MAX_DIM_DEPTH) {
		lex_fail(l, l->at, "nested too deeply");
		return NULL;
	}
	l->dim_depth++;
	const Dim *d = parse_factor_here(l);
	l->dim_depth--;
	return d;
}

static bool count_operator(Lexer *l)
{
	return ++l->dim_ops <= LEX_MAX_DIM_OPS ||
	       lex_fail(l, l->at, "this size has too many operators");
}

static const Dim *parse_product(Lexer *l)
{
	Context *c = l->ctx;
	const Dim *d = parse_factor(l);
	while (d) {
		char op = lex_peek(l);
		if (op != '*' && op != '/' && op != '%')
			break;
		const char *where = l->at++;
		const Dim *e = count_operator(l) ? parse_factor(l) : NULL;
		if (!e)
			return NULL;
		if (op != '*' && dim_is(e, 0)) {
			lex_fail(l, where, "a size divided by zero");
			return NULL;
		}
		d = op == '*' ? dim_mul(c, d, e) : op == '/' ? dim_div(c, d, e) : dim_mod(c, d, e);
	}
	return d;
}

static const Dim *parse_sum(Lexer *l)
{
	const Dim *d = parse_product(l);
	while (d) {
		char op = lex_peek(l);
		if (op != '+' && op != '-')
			break;
		l->at++;
		const Dim *e = count_operator(l) ? parse_product(l) : NULL;
		if (!e)
			return NULL;
		d = op == '+' ? dim_add(l->ctx, d, e) : dim_sub(l->ctx, d, e);
	}
	return d;
}

const Dim *parse_dim(Lexer *l)
{
	l->dim_ops = 0;
	if (!lex_accept(l, "["))
		return parse_factor(l);
	const Dim *d = parse_sum(l);
	return d && lex_expect(l, "]") ? d : NULL;
}

// ---- types --------------------------------------------------------------------------------------

bool parse_dtype_word(Lexer *l, DType *out)
{
	lex_space(l);
	const char *before = l->at;
	Word w;
	if (lex_word(l, &w) && dtype_from_name(w.s, w.n, out))
		return true;
	l->at = before;
	return false;
}

static bool parse_rank_limit(Lexer *l, int rank)
{
	return rank < MAX_RANK || lex_fail(l, l->at, "more than %d dims", MAX_RANK);
}

bool parse_dims(Lexer *l, const Dim **dims, int *rank, DType *dtype)
{
	for (*rank = 0; !parse_dtype_word(l, dtype); ++*rank) {
		if (lex_is_word(lex_peek(l)) && (*l->at < '0' || *l->at > '9'))
			return lex_fail(l, l->at, "expected a size or an element type");
		if (!parse_rank_limit(l, *rank) || !(dims[*rank] = parse_dim(l)) || !lex_expect(l, "x"))
			return false;
	}
	return true;
}

static const Type *parse_unranked(Lexer *l)
{
	DType dtype;
	if (!lex_expect(l, "x"))
		return NULL;
	if (!parse_dtype_word(l, &dtype)) {
		lex_fail(l, l->at, "expected an element type");
		return NULL;
	}
	return lex_expect(l, ">") ? type_unranked(l->ctx, dtype) : NULL;
}

static const Type *parse_shaped(Lexer *l, TypeKind kind)
{
	const Dim *dims[MAX_RANK];
	int rank;
	int64_t lod = 0;
	DType dtype;
	if (!lex_expect(l, "<"))
		return NULL;
	if (kind == TY_TENSOR && lex_accept(l, "*"))
		return parse_unranked(l);
	if (!parse_dims(l, dims, &rank, &dtype))
		return NULL;
	if (kind == TY_TENSOR && lex_accept(l, ",")) {
		if (!lex_keyword(l, "lod")) {
			lex_fail(l, l->at, "expected 'lod'");
			return NULL;
		}
		if (!lex_int(l, &lod))
			return NULL;
		if (lod < 1 || lod > 16) {
			lex_fail(l, l->at, "a tensor has 1 to 16 LoD levels, or no `lod`");
			return NULL;
		}
	}
	if (!lex_expect(l, ">"))
		return NULL;
	return kind == TY_TENSOR ? type_tensor(l->ctx, dtype, rank, dims, (int)lod)
	                         : type_shaped(l->ctx, kind, dtype, rank, dims);
}

// Types up to `close`.
static bool parse_types_until(Lexer *l, const char *close, PtrList *out)
{
	if (lex_accept(l, close))
		return true;
	do {
		const Type *t = parse_type(l);
		if (!t)
			return false;
		ptr_list_add(l->ctx, out, t);
	} while (lex_accept(l, ","));
	return lex_expect(l, close);
}

// `(T, T)`; a single type may stand alone.
bool parse_type_list(Lexer *l, PtrList *out)
{
	if (lex_accept(l, "("))
		return parse_types_until(l, ")", out);
	const Type *t = parse_type(l);
	if (t)
		ptr_list_add(l->ctx, out, t);
	return t != NULL;
}

static const Type *parse_group(Lexer *l, TypeKind kind)
{
	PtrList elems = {0};
	if (!parse_types_until(l, ">", &elems))
		return NULL;
	return type_group(l->ctx, kind, elems.n, (const Type *const *)elems.items);
}

static const Type *parse_func(Lexer *l)
{
	PtrList in = {0}, out = {0};
	if (!parse_type_list(l, &in) || !lex_expect(l, "->") || !parse_type_list(l, &out))
		return NULL;
	return type_func(l->ctx, in.n, (const Type *const *)in.items, out.n,
	                 (const Type *const *)out.items);
}

static const Type *parse_type_here(Lexer *l)
{
	Context *c = l->ctx;
	DType dtype;
	if (lex_peek(l) == '(')
		return parse_func(l);
	if (parse_dtype_word(l, &dtype))
		return type_scalar(c, dtype);
	if (lex_keyword(l, "index"))
		return type_index(c);
	if (lex_keyword(l, "none"))
		return type_none(c);
	if (lex_keyword(l, "tensor"))
		return parse_shaped(l, TY_TENSOR);
	if (lex_keyword(l, "selected_rows"))
		return parse_shaped(l, TY_SELECTED_ROWS);
	if (lex_keyword(l, "array"))
		return parse_shaped(l, TY_ARRAY);
	if (lex_keyword(l, "vec"))
		return lex_expect(l, "<") ? parse_group(l, TY_VEC) : NULL;
	if (lex_keyword(l, "stack") || lex_keyword(l, "cf.stack"))
		return lex_accept(l, "<") ? parse_group(l, TY_STACK) : type_group(c, TY_STACK, 0, NULL);
	lex_fail(l, l->at, "expected a type");
	return NULL;
}

const Type *parse_type(Lexer *l)
{
	if (!lex_enter(l))
		return NULL;
	const Type *t = parse_type_here(l);
	lex_leave(l);
	return t;
}
