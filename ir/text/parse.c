// Reads the text form of the IR: operations, blocks and regions; recursive descent, no tokens kept.
// Called by the driver for `.pdir` files and by tests. Names are in parse_name.c, the parts of an
// operation in parse_draft.c, dims, types and attributes in parse_attr.c.
//
//   %a, %b!s = pd.op(%x, _, %y) ^1(%z), ^2 {k = v} : (T, T, T) -> (T, T) loc(0:12 "type" Slot "var") name {...}
//
// What cannot be read at all ends the reading with one diagnostic; what can be read but makes no
// sense (an unknown operation, an undefined value, a wrong type) is reported, and reading goes on
// to find the rest. Names are visible in their region and in those nested in it, which may use them
// again for others; uses may come before definitions, since blocks stand in any order: whether a
// definition reaches its uses is the verifier's business.
#include "ir/text/parser.h"
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

typedef struct Label {
	const char *name; // uniqued: a number's digits, or a word
	Block *block;
} Label;

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
