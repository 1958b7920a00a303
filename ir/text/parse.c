// Reads the text form of the IR: operations, blocks and regions; recursive descent, no tokens kept.
// Called by the driver for `.pdir` files and by tests. Dims, types and attributes are in
// parse_attr.c.
//
//   %a, %b!s = pd.op(%x, _, %y) ^1(%z), ^2 {k = v} : (T, T, T) -> (T, T) loc(0:12 "type" Slot "var") name {...}
//
// What cannot be read at all ends the reading with one diagnostic; what can be read but makes no
// sense (an unknown operation, an undefined value, a wrong type) is reported, and reading goes on
// to find the rest. Names are visible in their region and in those nested in it, which may use them
// again for others; uses may come before definitions, since blocks stand in any order: whether a
// definition reaches its uses is the verifier's business.
#include "ir/base/map.h"
#include "ir/text/lex.h"
#include "ir/text/text.h"

#include <string.h>

enum { MAX_REGIONS = 8 };

// An operand read before its definition.
typedef struct Pending {
	const char *key, *where;
	Op *op;
	int index;
	const Type *type;
} Pending;

// A successor, until the region ends and all its labels are known.
typedef struct Jump {
	Op *op;
	int succ;
	const char *label;
	const char *where;
} Jump;

typedef struct Name {
	const char *key;
	Value *outer; // what the name means around the region; NULL: nothing
} Name;

typedef struct Label {
	const char *name; // uniqued: a number's digits, or a word
	Block *block;
} Label;

typedef struct Parser {
	Lexer lex;
	Context *ctx;
	PtrList names;    // Name, in order of definition
	int here;         // how many of them came before the region being read
	Region *region;   // that one
	PointerMap named; // uniqued key -> Value
	PtrList pending;  // Pending
	PtrList labels;   // Label, of the region being read
	PtrList jumps;    // Jump, of the region being read
} Parser;

// An operation while it is read.
typedef struct Draft {
	const char *where;
	const OpInfo *info; // NULL: unknown
	PtrList results;    // Definition
	PtrList keys;       // operand names, NULL for `_`
	PtrList places;     // where each operand stands
	PtrList succs;      // DraftSucc
	PtrList in, out;    // types
	NamedAttr *attrs;
	int nattr;
	const Loc *loc;
} Draft;

typedef struct Definition {
	const char *where, *key, *hint; // hint: the legacy variable, or NULL
	bool stop_gradient, persistable;
} Definition;

typedef struct DraftSucc {
	const char *where;
	const char *label;
	int first, count;
} DraftSucc;

// ---- names --------------------------------------------------------------------------------------

// NULL: no value of that name is in sight.
static Value *value_named(const Parser *p, const char *key)
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
static void name_define(Parser *p, const Definition *d, Value *v)
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

// Forgets the names defined since there were `mark` of them.
static void names_leave(Parser *p, int mark)
{
	while (p->names.n > mark) {
		const Name *name = p->names.items[--p->names.n];
		pointer_map_set(&p->named, name->key, name->outer);
	}
}

// `%name`, `%"any name"`, `%name#2` or `%7`: the key, and the hint when it names a variable. NULL:
// reported.
static const char *parse_value_name(Parser *p, const char **hint)
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

// A value's name where it is defined, with its flags.
static Definition *parse_definition(Parser *p)
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

// ---- the parts of an operation ------------------------------------------------------------------

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

// The number of a block, which is what is printed, or a word for it.
static bool parse_label(Parser *p, const char **out)
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

// Everything before the regions.
static bool parse_draft(Parser *p, Draft *d)
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

// ---- from a draft to an operation ---------------------------------------------------------------

static void check_operand_type(Parser *p, const char *where, const char *key, const Value *v,
                               const Type *said)
{
	if (v->type == said)
		return;
	Text t;
	text_init(&t, p->ctx->arena);
	text_printf(&t, "%%%s has type ", key);
	type_print(&t, v->type);
	text_str(&t, ", not ");
	type_print(&t, said);
	lex_fail(&p->lex, where, "%s", t.text);
}

static void add_pending(Parser *p, Op *op, int index, const char *key, const char *where,
                        const Type *type)
{
	Pending *u = NEW(p->ctx->arena, Pending);
	*u = (Pending){.key = key, .where = where, .op = op, .index = index, .type = type};
	ptr_list_add(p->ctx, &p->pending, u);
}

static void fill_operands(Parser *p, const Draft *d, Op *op)
{
	int type = 0;
	for (int i = 0; i < d->keys.n; i++) {
		const char *key = d->keys.items[i], *where = d->places.items[i];
		if (!key)
			continue;
		const Type *said = d->in.items[type++];
		Value *v = value_named(p, key);
		if (!v) {
			add_pending(p, op, i, key, where, said);
			continue;
		}
		check_operand_type(p, where, key, v, said);
		op_set_operand(op, i, v);
	}
}

static void fill_successors(Parser *p, const Draft *d, Op *op)
{
	for (int i = 0; i < d->succs.n; i++) {
		const DraftSucc *s = d->succs.items[i];
		op->succs[i].first = (uint32_t)s->first;
		op->succs[i].count = (uint32_t)s->count;
		Jump *j = NEW(p->ctx->arena, Jump);
		*j = (Jump){.op = op, .succ = i, .label = s->label, .where = s->where};
		ptr_list_add(p->ctx, &p->jumps, j);
	}
}

static Op *draft_make(Parser *p, const Draft *d, int nregion)
{
	// An unknown operation was reported; any code will do for what never leaves the parser.
	enum OpCode code = d->info ? d->info->code : OP_BUILTIN_MODULE;
	Value **operands = NEW_ARRAY(p->ctx->arena, (size_t)d->keys.n, Value *);
	Op *op = op_new(p->ctx, code, d->loc, d->results.n, (const Type *const *)d->out.items,
	                d->keys.n, operands, nregion, d->succs.n);
	for (int i = 0; i < d->nattr; i++)
		op_set_attr(op, d->attrs[i].name, d->attrs[i].attr);
	if (code == OP_BUILTIN_SET_PARAMETER)
		param_set_written(p->ctx, op_str(op, "name", ""));
	fill_operands(p, d, op);
	fill_successors(p, d, op);
	for (int i = 0; i < d->results.n; i++)
		name_define(p, d->results.items[i], op_result(op, i));
	return op;
}

// ---- blocks and regions -------------------------------------------------------------------------

static Op *parse_op(Parser *p, Block *into);

static bool parse_block_args(Parser *p, Block *b)
{
	Lexer *l = &p->lex;
	if (!lex_accept(l, "(") || lex_accept(l, ")"))
		return true;
	do {
		Definition *d = parse_definition(p);
		if (!d || !lex_expect(l, ":"))
			return false;
		const Type *t = parse_type(l);
		if (!t)
			return false;
		name_define(p, d, block_add_arg(p->ctx, b, t));
	} while (lex_accept(l, ","));
	return lex_expect(l, ")");
}

static const Block *label_find(const Parser *p, const char *name)
{
	for (int i = 0; i < p->labels.n; i++) {
		const Label *label = p->labels.items[i];
		if (label->name == name)
			return label->block;
	}
	return NULL;
}

static Block *start_block(Parser *p, Region *r, const char *name)
{
	Label *label = NEW(p->ctx->arena, Label);
	*label = (Label){name, block_new(p->ctx, r)};
	ptr_list_add(p->ctx, &p->labels, label);
	return label->block;
}

// `^1(%a: T):`, after the hat.
static bool parse_block_head(Parser *p, Region *r)
{
	const char *where = p->lex.at, *name;
	if (!parse_label(p, &name))
		return false;
	if (label_find(p, name))
		return lex_fail(&p->lex, where, "block ^%s is there twice", name);
	Block *b = start_block(p, r, name);
	return parse_block_args(p, b) && lex_expect(&p->lex, ":");
}

static bool parse_blocks(Parser *p, Region *r)
{
	Lexer *l = &p->lex;
	while (!lex_accept(l, "}")) {
		if (lex_accept(l, "^")) {
			if (!parse_block_head(p, r))
				return false;
			continue;
		}
		if (l->at == l->end)
			return lex_fail(l, l->at, "expected '}' before the end of the text");
		// An entry block without a label is ^0.
		Block *b = r->last ? r->last : start_block(p, r, context_str(p->ctx, "0"));
		if (!parse_op(p, b))
			return false;
	}
	return true;
}

static void resolve_jumps(Parser *p)
{
	for (int i = 0; i < p->jumps.n; i++) {
		const Jump *j = p->jumps.items[i];
		const Block *b = label_find(p, j->label);
		if (!b)
			lex_fail(&p->lex, j->where, "there is no block ^%s in this region", j->label);
		j->op->succs[j->succ].block = (Block *)b;
	}
}

// Fills the operands, read since `mark`, whose definitions have come since.
static void resolve_pending(Parser *p, int mark)
{
	int kept = mark;
	for (int i = mark; i < p->pending.n; i++) {
		const Pending *u = p->pending.items[i];
		Value *v = value_named(p, u->key);
		if (!v) {
			p->pending.items[kept++] = u;
			continue;
		}
		check_operand_type(p, u->where, u->key, v, u->type);
		op_set_operand(u->op, u->index, v);
	}
	p->pending.n = kept;
}

// `{ ... }`; its labels and names are its own.
static bool parse_region(Parser *p, Region *r)
{
	PtrList labels = p->labels, jumps = p->jumps;
	int names = p->names.n, pending = p->pending.n, here = p->here;
	Region *around = p->region;
	p->here = names;
	p->region = r;
	p->labels = (PtrList){0};
	p->jumps = (PtrList){0};
	bool ok = lex_enter(&p->lex) && lex_expect(&p->lex, "{") && parse_blocks(p, r);
	if (ok) {
		lex_leave(&p->lex);
		resolve_jumps(p);
		resolve_pending(p, pending);
		names_leave(p, names);
	}
	p->labels = labels;
	p->jumps = jumps;
	p->here = here;
	p->region = around;
	return ok;
}

// Whether a region comes next: `{`, or a name and `{`. The names of operations have a point in
// them.
static bool region_ahead(Parser *p, Word *name)
{
	Lexer ahead = p->lex;
	*name = (Word){0};
	if (lex_peek(&ahead) == '{')
		return true;
	return lex_word(&ahead, name) && !memchr(name->s, '.', name->n) && lex_peek(&ahead) == '{';
}

// The first region that is free.
static int region_next(const bool *taken)
{
	int i = 0;
	while (i < MAX_REGIONS && taken[i])
		i++;
	return i;
}

// The region of that name; -1 after a report.
static int region_named(Parser *p, const OpInfo *info, const Word *name)
{
	for (int i = 0; i < info->max_regions; i++) {
		const char *is = info->region_names[i];
		if (strlen(is) == name->n && !memcmp(is, name->s, name->n))
			return i;
	}
	lex_fail(&p->lex, name->s, "%s has no region '%.*s'", info->name,
	         (int)(name->n < 200 ? name->n : 200), name->s);
	return -1;
}

// Which of the operation's regions `name` is; -1 after a report. Without a name, the first that is
// free.
static int region_index(Parser *p, const Draft *d, const Word *name, const bool *taken)
{
	const bool next = name->n == 2 && !memcmp(name->s, "do", 2); // the next one, says scf.while
	const int i = !name->n || !d->info || next ? region_next(taken)
	                                           : region_named(p, d->info, name);
	if (i < 0)
		return -1;
	if (i == MAX_REGIONS || taken[i]) {
		lex_fail(&p->lex, p->lex.at,
		         i == MAX_REGIONS ? "too many regions" : "this region is there twice");
		return -1;
	}
	return i;
}

// Regions of which the first may repeat, and the last has the other name.
static bool parse_repeated(Parser *p, const Draft *d, Op *op)
{
	const char *const *names = d->info->region_names;
	bool last = false;
	int n = 0;
	for (Word name; region_ahead(p, &name); n++) {
		last = name.n == strlen(names[1]) && !memcmp(name.s, names[1], name.n);
		if (!last && (name.n != strlen(names[0]) || memcmp(name.s, names[0], name.n)))
			return lex_fail(&p->lex, p->lex.at, "regions of %s are named '%s', the last '%s'",
			                d->info->name, names[0], names[1]);
		if (n == MOST_REGIONS)
			return lex_fail(&p->lex, name.s, "too many regions");
		p->lex.at = name.s + name.n;
		if (!parse_region(p, &op->regions[n]))
			return false;
		if (last && region_ahead(p, &name))
			return lex_fail(&p->lex, p->lex.at, "region '%s' must be the last", names[1]);
	}
	op->nregion = n;
	return last || lex_fail(&p->lex, d->where, "%s lacks its region '%s'", d->info->name, names[1]);
}

static bool parse_regions(Parser *p, const Draft *d, Op *op)
{
	bool taken[MAX_REGIONS] = {false};
	int n = 0;
	for (Word name; region_ahead(p, &name); n++) {
		int i = region_index(p, d, &name, taken);
		if (i < 0)
			return false;
		if (name.n)
			p->lex.at = name.s + name.n;
		taken[i] = true;
		if (!parse_region(p, &op->regions[i]))
			return false;
	}
	for (int i = 0; i < n; i++) {
		if (!taken[i])
			return lex_fail(&p->lex, d->where, "%s lacks its region '%s'", d->info->name,
			                d->info->region_names[i]);
	}
	op->nregion = n;
	return true;
}

// Reads one operation to the end of `into` (NULL: detached).
static Op *parse_op(Parser *p, Block *into)
{
	Draft d = {0};
	Word name;
	if (!parse_draft(p, &d))
		return NULL;
	const bool repeat = d.info && regions_repeat(d.info);
	const int room = repeat ? MOST_REGIONS : region_ahead(p, &name) ? MAX_REGIONS : 0;
	Op *op = draft_make(p, &d, room);
	if (into)
		op_append(into, op);
	return (repeat ? parse_repeated(p, &d, op) : parse_regions(p, &d, op)) ? op : NULL;
}

Op *ir_parse(Context *c, const char *file, const char *text, size_t n)
{
	int errors = diag_errors(c->diag);
	Parser p = {.ctx = c};
	lex_init(&p.lex, c, file, text, n);
	pointer_map_init(&p.named, c->arena);
	lex_space(&p.lex);
	const char *top = p.lex.at;
	Op *op = parse_op(&p, NULL);
	if (!op)
		return NULL;
	if (op->code != OP_BUILTIN_MODULE)
		lex_fail(&p.lex, top, "the outermost operation must be builtin.module");
	else if (!op->nregion || !op->regions[0].first)
		lex_fail(&p.lex, top, "a module without operations");
	if (lex_peek(&p.lex))
		lex_fail(&p.lex, p.lex.at, "unexpected text after the operation");
	for (int i = 0; i < p.pending.n; i++) {
		const Pending *u = p.pending.items[i];
		lex_fail(&p.lex, u->where, "%%%s is not defined here", u->key);
	}
	for (int i = 0; i < p.jumps.n; i++)
		lex_fail(&p.lex, ((const Jump *)p.jumps.items[i])->where,
		         "a successor outside of any region");
	if (diag_errors(c->diag) != errors)
		return NULL;
	size_facts_from_module(op);
	return op;
}
