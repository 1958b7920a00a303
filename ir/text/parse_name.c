// Names of values: reading them, and what they mean in the region being read. Called by parse.c and
// parse_draft.c.
#include "ir/text/parser.h"

typedef struct Name {
	const char *key;
	Value *outer; // what the name means around the region; NULL: nothing
} Name;

Value *value_named(const Parser *p, const char *key)
{
	return (Value *)(uintptr_t)pointer_map_get(&p->named, key);
}

static bool defined_here(const Parser *p, const char *key)
{
	for (int i = p->here; i < p->names.n; i++) {
		const Name *name = p->names.items[i];
		if (name->key == key)
			return true;
	}
	return false;
}

// Whether what stands in the region so far reads v, as one that another definition would hide.
static bool read_here(const Parser *p, const Value *v)
{
	for (const Use *u = v->uses; u; u = u->next)
		for (const Op *op = u->user; op && op->block; op = op_parent(op))
			if (op->block->region == p->region)
				return true;
	return false;
}

// An inner region may use a name again, unless it has read the outer one before.
void name_define(Parser *p, const Definition *d, Value *v)
{
	Value *outer = value_named(p, d->key);
	if (outer && (defined_here(p, d->key) || read_here(p, outer))) {
		lex_fail(&p->lex, d->where, "%%%s is defined twice", d->key);
		return;
	}
	Name *name = NEW(p->ctx->arena, Name);
	*name = (Name){d->key, outer};
	ptr_list_add(p->ctx, &p->names, name);
	pointer_map_set(&p->named, d->key, v);
	v->name = d->hint;
	v->stop_gradient = d->stop_gradient;
	v->persistable = d->persistable;
}

void names_leave(Parser *p, int mark)
{
	while (p->names.n > mark) {
		const Name *name = p->names.items[--p->names.n];
		pointer_map_set(&p->named, name->key, name->outer);
	}
}

const char *parse_value_name(Parser *p, const char **hint)
{
	Lexer *l = &p->lex;
	if (!lex_expect(l, "%"))
		return NULL;
	const char *from = l->at;
	*hint = NULL;
	if (from < l->end && *from == '"') {
		if (!(*hint = lex_string(l)))
			return NULL;
	} else {
		bool number = from < l->end && *from >= '0' && *from <= '9';
		while (l->at < l->end && lex_is_word(*l->at))
			l->at++;
		if (l->at == from) {
			lex_fail(l, from, "expected the name of a value after '%%'");
			return NULL;
		}
		if (!number)
			*hint = context_strn(p->ctx, from, (size_t)(l->at - from));
	}
	if (l->at < l->end && *l->at == '#') {
		l->at++;
		int64_t serial;
		if (!lex_int(l, &serial))
			return NULL;
	}
	return context_strn(p->ctx, from, (size_t)(l->at - from));
}

Definition *parse_definition(Parser *p)
{
	Lexer *l = &p->lex;
	Definition *d = NEW(p->ctx->arena, Definition);
	lex_space(l);
	d->where = l->at;
	if (!(d->key = parse_value_name(p, &d->hint)))
		return NULL;
	if (l->at == l->end || *l->at != '!')
		return d;
	l->at++;
	const char *flags = l->at;
	for (; l->at < l->end && (*l->at == 's' || *l->at == 'p'); l->at++) {
		d->stop_gradient |= *l->at == 's';
		d->persistable |= *l->at == 'p';
	}
	if (l->at == flags || (l->at < l->end && lex_is_word(*l->at))) {
		lex_fail(l, flags, "expected 's' (stop_gradient), 'p' (persistable) or both after '!'");
		return NULL;
	}
	return d;
}
