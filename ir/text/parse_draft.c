// Reads what stands of an operation before its regions. Called by parse.c.
#include "ir/text/parser.h"

#include <string.h>

static bool parse_results(Parser *p, Draft *d)
{
	if (lex_peek(&p->lex) != '%')
		return true;
	do {
		Definition *def = parse_definition(p);
		if (!def)
			return false;
		ptr_list_add(p->ctx, &d->results, def);
	} while (lex_accept(&p->lex, ","));
	return lex_expect(&p->lex, "=");
}

static bool parse_operands(Parser *p, Draft *d)
{
	Lexer *l = &p->lex;
	if (!lex_expect(l, "("))
		return false;
	if (lex_accept(l, ")"))
		return true;
	do {
		const char *key = NULL, *hint;
		bool absent = lex_peek(l) == '_';
		ptr_list_add(p->ctx, &d->places, l->at);
		if (absent)
			l->at++;
		else if (!(key = parse_value_name(p, &hint)))
			return false;
		ptr_list_add(p->ctx, &d->keys, key);
	} while (lex_accept(l, ","));
	return lex_expect(l, ")");
}

bool parse_label(Parser *p, const char **out)
{
	Lexer *l = &p->lex;
	int64_t number;
	Word w;
	if (lex_is_word(lex_peek(l)) && (*l->at < '0' || *l->at > '9')) {
		if (!lex_word(l, &w))
			return lex_fail(l, l->at, "expected a block");
		*out = context_strn(p->ctx, w.s, w.n);
		return true;
	}
	if (!lex_int(l, &number))
		return false;
	*out = context_str(p->ctx, arena_printf(p->ctx->arena, "%lld", (long long)number));
	return true;
}

static bool parse_successors(Parser *p, Draft *d)
{
	Lexer *l = &p->lex;
	if (lex_peek(l) != '^')
		return true;
	do {
		DraftSucc *s = NEW(p->ctx->arena, DraftSucc);
		lex_space(l);
		s->where = l->at;
		s->first = d->keys.n;
		if (!lex_expect(l, "^") || !parse_label(p, &s->label))
			return false;
		if (lex_peek(l) == '(' && !parse_operands(p, d))
			return false;
		s->count = d->keys.n - s->first;
		ptr_list_add(p->ctx, &d->succs, s);
	} while (lex_accept(l, ","));
	return true;
}

static bool parse_attr_name(Parser *p, const char **name)
{
	Word w;
	if (lex_peek(&p->lex) == '"')
		return (*name = lex_string(&p->lex)) != NULL;
	if (!lex_word(&p->lex, &w))
		return lex_fail(&p->lex, p->lex.at, "expected the name of an attribute");
	*name = context_strn(p->ctx, w.s, w.n);
	return true;
}

// The kind that the table gives an attribute, or -1.
static int attr_kind_wanted(const OpInfo *info, const char *name)
{
	const AttrInfo *a = info ? op_info_attr(info, name) : NULL;
	return a && !a->any_number ? (int)a->kind : -1;
}

static void draft_add_attr(Parser *p, Draft *d, const char *name, const Attr *a, const char *where)
{
	for (int i = 0; i < d->nattr; i++) {
		if (d->attrs[i].name == name) {
			lex_fail(&p->lex, where, "attribute '%s' is given twice", name);
			return;
		}
	}
	if (!(d->nattr & (d->nattr - 1))) { // full at every power of two
		NamedAttr *attrs = NEW_ARRAY(p->ctx->arena, d->nattr ? (size_t)d->nattr * 2 : 1, NamedAttr);
		if (d->nattr)
			memcpy(attrs, d->attrs, (size_t)d->nattr * sizeof *attrs);
		d->attrs = attrs;
	}
	d->attrs[d->nattr++] = (NamedAttr){name, a};
}

static bool parse_attributes(Parser *p, Draft *d)
{
	Lexer *l = &p->lex;
	if (!lex_expect(l, "{"))
		return false;
	if (lex_accept(l, "}"))
		return true;
	do {
		const char *name = NULL;
		lex_space(l);
		const char *where = l->at;
		if (!parse_attr_name(p, &name) || !lex_expect(l, "="))
			return false;
		const Attr *a = parse_attr(l, attr_kind_wanted(d->info, name));
		if (!a)
			return false;
		draft_add_attr(p, d, name, a, where);
	} while (lex_accept(l, ","));
	return lex_expect(l, "}");
}

// Whether the `{` ahead opens attributes (`name =`, or nothing and then a signature), not a region.
static bool attributes_ahead(Parser *p)
{
	Lexer ahead = p->lex;
	Word w;
	if (!lex_accept(&ahead, "{"))
		return false;
	if (lex_peek(&ahead) == '"')
		return true;
	if (lex_accept(&ahead, "}"))
		return lex_accept(&ahead, ":");
	return lex_word(&ahead, &w) && lex_accept(&ahead, "=");
}

// A word or a quoted string, or `_` for NULL. False: reported.
static bool parse_loc_word(Parser *p, const char **out)
{
	Lexer *l = &p->lex;
	Word w;
	*out = NULL;
	if (lex_peek(l) == '"')
		return (*out = lex_string(l)) != NULL;
	if (!lex_word(l, &w))
		return lex_fail(l, l->at, "expected a name, a string or '_' in a location");
	if (w.n != 1 || *w.s != '_')
		*out = context_strn(p->ctx, w.s, w.n);
	return true;
}

static bool parse_int32(Parser *p, int *out)
{
	int64_t v;
	lex_space(&p->lex);
	const char *where = p->lex.at;
	if (!lex_int(&p->lex, &v))
		return false;
	if (v < -1 || v > INT32_MAX)
		return lex_fail(&p->lex, where, "this number is out of range");
	*out = (int)v;
	return true;
}

// `(0:12 "conv2d" Output "conv2d_0.tmp_0")`; the place in the text stays beside the place in the
// model.
static bool parse_loc(Parser *p, Loc *loc)
{
	Lexer *l = &p->lex;
	if (!lex_expect(l, "("))
		return false;
	char c = lex_peek(l);
	if ((c >= '0' && c <= '9') || c == '-') {
		if (!parse_int32(p, &loc->block) || !lex_expect(l, ":") || !parse_int32(p, &loc->op))
			return false;
	}
	if (lex_peek(l) != ')' && !parse_loc_word(p, &loc->type))
		return false;
	if (lex_peek(l) != ')' && (!parse_loc_word(p, &loc->slot) || !parse_loc_word(p, &loc->var)))
		return false;
	return lex_expect(l, ")");
}

static bool parse_signature(Parser *p, Draft *d)
{
	Lexer *l = &p->lex;
	int present = 0;
	for (int i = 0; i < d->keys.n; i++)
		present += d->keys.items[i] != NULL;
	if (lex_accept(l, ":")) {
		const char *where = l->at;
		if (!parse_type_list(l, &d->in) || !lex_expect(l, "->") || !parse_type_list(l, &d->out))
			return false;
		if (d->in.n != present)
			return lex_fail(l, where, "%d operands, but %d operand types", present, d->in.n);
		if (d->out.n != d->results.n)
			return lex_fail(l, where, "%d results, but %d result types", d->results.n, d->out.n);
		return true;
	}
	if (present || d->results.n)
		return lex_fail(l, l->at, "expected ':' and the types of operands and results");
	return true;
}

bool parse_draft(Parser *p, Draft *d)
{
	Lexer *l = &p->lex;
	Word w;
	lex_space(l);
	if (!parse_results(p, d))
		return false;
	lex_space(l);
	d->where = l->at;
	if (lex_peek(l) == '"') { // quoted, as MLIR's generic form has it
		const char *name = lex_string(l);
		if (!name)
			return false;
		w = (Word){name, strlen(name)};
	} else if (!lex_word(l, &w))
		return lex_fail(l, l->at, "expected an operation");
	d->info = op_info_by_name(w.s, w.n);
	if (!d->info)
		lex_fail(l, d->where, "unknown operation '%.*s'", (int)(w.n < 200 ? w.n : 200), w.s);
	if (lex_peek(l) == '(' && !parse_operands(p, d))
		return false;
	if (!parse_successors(p, d))
		return false;
	if (attributes_ahead(p) && !parse_attributes(p, d))
		return false;
	if (!parse_signature(p, d))
		return false;
	Loc loc = lex_loc(l, d->where);
	if (lex_keyword(l, "loc") && !parse_loc(p, &loc))
		return false;
	d->loc = context_loc(p->ctx, &loc);
	return true;
}
