// opgen: writes ops_enum.inc and ops_table.inc, the C form of the operator descriptions.
#include "opgen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[] = {"any", "float", "int", "bool", "number", "index"};
static const char *const class_codes[] = {
	"CLASS_ANY", "CLASS_FLOAT", "CLASS_INT", "CLASS_BOOL", "CLASS_NUMBER", "CLASS_INDEX"};
static const char *const kind_names[] = {
	"map", "reduce", "scan", "index", "contract", "kernel", "composite", "control", "random", "builtin", "loop"};
static const char *const kind_codes[] = {
	"KIND_MAP", "KIND_REDUCE", "KIND_SCAN", "KIND_INDEX", "KIND_CONTRACT", "KIND_KERNEL",
	"KIND_COMPOSITE", "KIND_CONTROL", "KIND_RANDOM", "KIND_BUILTIN", "KIND_LOOP"};
static const char *const attr_names[] = {
	"bool", "int", "float", "str", "type", "dtype", "ints", "floats", "strs", "bools", "dim", "dims",
	"tensor", "number"};
static const char *const attr_codes[] = {
	"ATTR_BOOL", "ATTR_INT", "ATTR_FLOAT", "ATTR_STR", "ATTR_TYPE", "ATTR_DTYPE", "ATTR_INTS",
	"ATTR_FLOATS", "ATTR_STRS", "ATTR_BOOLS", "ATTR_DIM", "ATTR_DIMS", "ATTR_TENSOR", "ATTR_FLOAT"};
static const char *const trait_names[] = {
	"pure", "terminator", "commutative", "view", "broadcast", "primitive", "compare", "constant"};
static const char *const trait_codes[] = {
	"TRAIT_PURE", "TRAIT_TERMINATOR", "TRAIT_COMMUTATIVE", "TRAIT_VIEW", "TRAIT_BROADCAST",
	"TRAIT_PRIMITIVE", "TRAIT_COMPARE", "TRAIT_CONSTANT"};

static void write_string(FILE *f, const char *s)
{
	if (!s) {
		fputs("NULL", f);
		return;
	}
	fputc('"', f);
	for (; *s; s++)
		if (*s == '\n')
			fputs("\\n", f);
		else
			fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	fputc('"', f);
}

// A static array of strings; returns its name, "NULL" when empty.
static const char *write_strings(Gen *g, FILE *f, int n, const char *const *s)
{
	if (!n)
		return "NULL";
	const char *name = format("strings_%d", g->serial++);
	fprintf(f, "static const char *const %s[] = {", name);
	for (int i = 0; i < n; i++) {
		fputs(i ? ", " : "", f);
		write_string(f, s[i]);
	}
	fputs("};\n", f);
	return name;
}

static const char *write_ints(Gen *g, FILE *f, int n, const int *v)
{
	if (!n)
		return "NULL";
	const char *name = format("ints_%d", g->serial++);
	fprintf(f, "static const int %s[] = {", name);
	for (int i = 0; i < n; i++)
		fprintf(f, "%s%d", i ? ", " : "", v[i]);
	fputs("};\n", f);
	return name;
}

static void write_node(FILE *f, const Node *n, const char *args, const char *keys)
{
	static const char *const kinds[] = {"EX_NUMBER", "EX_NAME", "EX_STRING", "EX_CALL", "EX_LIST"};
	bool number = n->kind == NODE_NUMBER;
	bool is_int = number && !strpbrk(n->text, ".eE");
	fprintf(f, "\t{%s, %s, %s, ", kinds[n->kind], number ? n->text : "0", is_int ? "true" : "false");
	write_string(f, number ? NULL : n->text);
	fprintf(f, ", %s, %d, %s, %s},\n", n->op ? n->op->code : "OP_COUNT", n->nargs, args, keys);
}

// A static ExprDef; returns "&name".
static const char *write_expr(Gen *g, FILE *f, const Entry *e, const Item *it, bool is_grad)
{
	if (!it->text)
		fail(e, it->line, "'%s' must be an expression", it->key);
	Parser *p = allocate(sizeof *p);
	p->entry = e;
	p->line = it->line;
	p->is_grad = is_grad;
	parse_statements(g, p, it->text);
	const char *args[MAX_NODES], *keys[MAX_NODES];
	for (int i = 0; i < p->nnode; i++) {
		const Node *n = &p->nodes[i];
		bool named = false;
		for (int k = 0; k < n->nargs; k++)
			named |= n->keys[k] != NULL;
		args[i] = write_ints(g, f, n->nargs, n->args);
		keys[i] = named ? write_strings(g, f, n->nargs, n->keys) : "NULL";
	}
	const char *names = write_strings(g, f, p->nstmt, p->stmt_names);
	const char *stmts = write_ints(g, f, p->nstmt, p->stmt_nodes);
	int id = g->serial++;
	fprintf(f, "static const Expr nodes_%d[] = {\n", id);
	for (int i = 0; i < p->nnode; i++)
		write_node(f, &p->nodes[i], args[i], keys[i]);
	fprintf(f, "};\nstatic const ExprDef def_%d = {%d, nodes_%d, %d, %s, %s};\n", id, p->nnode, id, p->nstmt,
	        names, stmts);
	return format("&def_%d", id);
}

// What `kind?` or `kind*` or `kind...` says.
typedef struct Suffixed {
	const char *word;
	bool optional, vec, rest;
} Suffixed;

static Suffixed split_suffix(const char *text)
{
	Suffixed s = {.word = text};
	size_t n = strlen(text);
	if (n > 3 && !strcmp(text + n - 3, "...")) {
		s.rest = true;
		n -= 3;
	}
	for (; n && strchr("?*", text[n - 1]); n--) {
		s.optional |= text[n - 1] == '?';
		s.vec |= text[n - 1] == '*';
	}
	s.word = copy_n(text, n);
	return s;
}

static const char *write_operands(Gen *g, FILE *f, const Entry *e, bool *rest)
{
	if (!e->operands.n)
		return "NULL";
	const char *name = format("operands_%d", g->serial++);
	fprintf(f, "static const OperandInfo %s[] = {", name);
	for (int i = 0; i < e->operands.n; i++) {
		const Item *it = &e->operands.items[i];
		Suffixed s = split_suffix(it->text ? it->text : "");
		int k = find_word(class_names, COUNT(class_names), s.word);
		if (k < 0)
			fail(e, it->line, "unknown operand class '%s'", s.word);
		if (s.rest && i + 1 < e->operands.n)
			fail(e, it->line, "only the last operand may repeat");
		*rest |= s.rest;
		fprintf(f, "{\"%s\", %s, %s, %s}, ", it->key, class_codes[k],
		        s.optional || s.rest ? "true" : "false", s.vec ? "true" : "false");
	}
	fputs("};\n", f);
	return name;
}

// `kind = default <- operand`, each part after the kind optional; `kind?`: no default, not required.
static const char *write_attributes(Gen *g, FILE *f, const Entry *e)
{
	if (!e->attributes.n)
		return "NULL";
	const char *name = format("attrs_%d", g->serial++);
	fprintf(f, "static const AttrInfo %s[] = {", name);
	for (int i = 0; i < e->attributes.n; i++) {
		const Item *it = &e->attributes.items[i];
		const char *text = it->text ? it->text : "";
		const char *arrow = strstr(text, "<-");
		const char *operand = arrow ? trim(arrow + 2, strlen(arrow + 2)) : NULL;
		size_t n = arrow ? (size_t)(arrow - text) : strlen(text);
		const char *eq = memchr(text, '=', n);
		const char *fallback = eq ? trim(eq + 1, n - (size_t)(eq + 1 - text)) : NULL;
		Suffixed s = split_suffix(trim(text, eq ? (size_t)(eq - text) : n));
		int k = find_word(attr_names, COUNT(attr_names), s.word);
		if (k < 0)
			fail(e, it->line, "unknown attribute kind '%s'", s.word);
		if (operand && !find_item(&e->operands, operand))
			fail(e, it->line, "no operand '%s'", operand);
		if (fallback && !strcmp(s.word, "str") && fallback[0] != '"')
			fallback = format("\"%s\"", fallback);
		fprintf(f, "{\"%s\", %s, %s, ", it->key, attr_codes[k],
		        fallback || operand || s.optional ? "false" : "true");
		write_string(f, fallback);
		fputs(", ", f);
		write_string(f, operand);
		fprintf(f, ", %s}, ", !strcmp(s.word, "number") ? "true" : "false");
	}
	fputs("};\n", f);
	return name;
}

// The traits as C text: those listed, and those that follow from the kind and the other keys.
static const char *traits_of(const Entry *e, const char *kind, bool rest_in, bool rest_out)
{
	static const char *const pure_kinds[] = {"map", "reduce", "scan", "index", "contract", "composite"};
	const char *text = "0", *list[MAX_ITEMS];
	const Item *it = find_item(&e->fields, "traits");
	int n = it ? read_list(e, it, list, MAX_ITEMS) : 0;
	for (int i = 0; i < n; i++) {
		int k = find_word(trait_names, COUNT(trait_names), list[i]);
		if (k < 0)
			fail(e, it->line, "unknown trait '%s'", list[i]);
		text = format("%s | %s", text, trait_codes[k]);
	}
	if (find_word(pure_kinds, COUNT(pure_kinds), kind) >= 0)
		text = format("%s | TRAIT_PURE", text);
	if (find_item(&e->fields, "c"))
		text = format("%s | TRAIT_PRIMITIVE", text);
	if (!strcmp(kind, "map") && e->operands.n > 1)
		text = format("%s | TRAIT_BROADCAST", text);
	if (rest_in)
		text = format("%s | TRAIT_REPEAT_OPERAND", text);
	if (rest_out)
		text = format("%s | TRAIT_REPEAT_RESULT", text);
	return text;
}

// ---- legacy operators -----------------------------------------------------------------------------

typedef struct LegacyRef {
	const char *type;
	const Entry *entry;
	int map;
} LegacyRef;

// The legacy slots that feed `name`: `A|B`; NULL when none does.
static const char *slots_of(const Entry *e, const Items *l, const char *name)
{
	const char *slots = NULL;
	for (int i = 0; i < l->n; i++) {
		const Item *it = &l->items[i];
		const char *names[MAX_ITEMS];
		if (!strcmp(it->key, "attr") || !strcmp(it->key, "set") || !strcmp(it->key, "hook"))
			continue;
		int n = read_list(e, it, names, MAX_ITEMS);
		for (int k = 0; k < n; k++) {
			if (!find_item(&e->operands, names[k]) && !find_item(&e->results, names[k]))
				fail(e, it->line, "'%s' is no operand or result", names[k]);
			if (!strcmp(names[k], name))
				slots = slots ? format("%s|%s", slots, it->key) : it->key;
		}
	}
	return slots;
}

static void check_attribute(const Entry *e, const Item *it, const char *name)
{
	if (!find_item(&e->attributes, name))
		fail(e, it->line, "'%s' is no attribute", name);
}

// `attr: {legacy: ours}`, or `attr: [a, b]` when the names are the same.
static int read_renames(const Entry *e, const Item *it, const char **from, const char **to)
{
	if (!it)
		return 0;
	if (it->text || it->node->type == YAML_SEQUENCE_NODE) {
		int n = read_list(e, it, from, MAX_ITEMS);
		for (int i = 0; i < n; i++)
			check_attribute(e, it, to[i] = from[i]);
		return n;
	}
	Items l = {0};
	read_mapping(e, it->node, &l);
	for (int i = 0; i < l.n; i++) {
		from[i] = l.items[i].key;
		to[i] = l.items[i].text ? l.items[i].text : "";
		check_attribute(e, it, to[i]);
	}
	return l.n;
}

static const char *write_legacy_map(Gen *g, FILE *f, const Entry *e, const Item *it)
{
	Items l = {0}, set = {0};
	const char *slots[MAX_ITEMS], *from[MAX_ITEMS], *to[MAX_ITEMS], *names[MAX_ITEMS], *texts[MAX_ITEMS];
	if (!it->node)
		fail(e, it->line, "'%s' must be a mapping", it->key);
	read_mapping(e, it->node, &l);
	for (int i = 0; i < e->operands.n; i++)
		slots[i] = slots_of(e, &l, e->operands.items[i].key);
	const char *ins = write_strings(g, f, e->operands.n, slots);
	for (int i = 0; i < e->results.n; i++)
		slots[i] = slots_of(e, &l, e->results.items[i].key);
	const char *outs = write_strings(g, f, e->results.n, slots);
	int nattr = read_renames(e, find_item(&l, "attr"), from, to);
	const char *attr_from = write_strings(g, f, nattr, from), *attr_to = write_strings(g, f, nattr, to);
	const Item *set_item = find_item(&l, "set"), *hook = find_item(&l, "hook");
	if (set_item && set_item->node)
		read_mapping(e, set_item->node, &set);
	for (int i = 0; i < set.n; i++) {
		names[i] = set.items[i].key;
		texts[i] = set.items[i].text;
		check_attribute(e, set_item, names[i]);
	}
	const char *set_names = write_strings(g, f, set.n, names), *set_texts = write_strings(g, f, set.n, texts);
	return format("{\"%s\", %s, %s, %d, %s, %s, %s%s%s, %d, %s, %s}", it->key, ins, outs, nattr, attr_from,
	              attr_to, hook ? "\"" : "", hook ? hook->text : "NULL", hook ? "\"" : "", set.n, set_names,
	              set_texts);
}

static const char *write_legacy(Gen *g, FILE *f, const Entry *e)
{
	const char *rows[MAX_ITEMS];
	if (!e->legacy.n)
		return "NULL";
	for (int i = 0; i < e->legacy.n; i++)
		rows[i] = write_legacy_map(g, f, e, &e->legacy.items[i]);
	const char *name = format("legacy_%d", g->serial++);
	fprintf(f, "static const LegacyMap %s[] = {\n", name);
	for (int i = 0; i < e->legacy.n; i++)
		fprintf(f, "\t%s,\n", rows[i]);
	fputs("};\n", f);
	return name;
}

// ---- rows ---------------------------------------------------------------------------------------------

static const char *hook_name(const Entry *e, const char *key)
{
	const char *hook = field_text(e, key);
	return hook ? format("%s_hook_%s", key, hook) : "NULL";
}

static void write_result_names(Gen *g, FILE *f, const Entry *e, const char **names, const char **types, bool *rest)
{
	const char *n[MAX_ITEMS] = {0}, *t[MAX_ITEMS];
	bool any = false;
	for (int i = 0; i < e->results.n; i++) {
		Suffixed s = split_suffix(e->results.items[i].text ? e->results.items[i].text : "");
		n[i] = e->results.items[i].key;
		t[i] = strcmp(s.word, "infer") ? s.word : NULL;
		*rest |= s.rest;
		any |= t[i] != NULL;
	}
	*names = write_strings(g, f, e->results.n, n);
	*types = any ? write_strings(g, f, e->results.n, t) : "NULL";
	bool infer = find_item(&e->fields, "infer") != NULL;
	for (int i = 0; i < e->results.n; i++)
		if (!t[i] && !infer)
			fail(e, e->line, "result '%s' says infer, but there is no infer hook", n[i]);
}

static const char *write_regions(Gen *g, FILE *f, const Entry *e, int *min, int *max)
{
	const Item *it = find_item(&e->fields, "regions");
	const char *names[MAX_ITEMS];
	*max = it ? read_list(e, it, names, MAX_ITEMS) : 0;
	for (int i = 0; i < *max; i++) {
		Suffixed s = split_suffix(names[i]);
		names[i] = s.word;
		*min += !s.optional;
	}
	return write_strings(g, f, *max, names);
}

// The gradients of an entry, as a static array of ExprDef pointers and the names beside it.
static int write_grads(Gen *g, FILE *f, const Entry *e, const char **names, const char **defs)
{
	Items l = {0};
	const char *n[MAX_ITEMS] = {0}, *d[MAX_ITEMS];
	read_section(e, "grad", &l);
	for (int i = 0; i < l.n; i++) {
		n[i] = l.items[i].key;
		if (!find_item(&e->operands, n[i]))
			fail(e, l.items[i].line, "'%s' is no operand", n[i]);
		d[i] = write_expr(g, f, e, &l.items[i], true);
	}
	*names = write_strings(g, f, l.n, n);
	*defs = "NULL";
	if (!l.n)
		return 0;
	*defs = format("grads_%d", g->serial++);
	fprintf(f, "static const ExprDef *const %s[] = {", *defs);
	for (int i = 0; i < l.n; i++)
		fprintf(f, "%s, ", d[i]);
	fputs("};\n", f);
	return l.n;
}

static const char *entry_row(Gen *g, FILE *f, const Entry *e)
{
	bool rest_in = false, rest_out = false;
	int min_regions = 0, max_regions;
	const char *results, *types, *grads, *grad_names, *kind = field_text(e, "kind");
	int k = kind ? find_word(kind_names, COUNT(kind_names), kind) : -1;
	if (k < 0)
		fail(e, e->line, "'%s' needs a 'kind'", e->name);
	const char *operands = write_operands(g, f, e, &rest_in), *attrs = write_attributes(g, f, e);
	write_result_names(g, f, e, &results, &types, &rest_out);
	const char *regions = write_regions(g, f, e, &min_regions, &max_regions);
	const Item *scalar = find_item(&e->fields, "scalar"), *compose = find_item(&e->fields, "compose");
	const char *scalar_def = scalar ? write_expr(g, f, e, scalar, false) : "NULL";
	const char *compose_def = compose ? write_expr(g, f, e, compose, false) : "NULL";
	int ngrad = write_grads(g, f, e, &grad_names, &grads);
	const char *legacy = write_legacy(g, f, e);
	fprintf(f, "static const char doc_%s[] = ", e->code);
	write_string(f, field_text(e, "doc") ? trim(field_text(e, "doc"), strlen(field_text(e, "doc"))) : "");
	fputs(";\n", f);
	if (find_item(&e->fields, "c")) {
		fprintf(f, "static const char c_%s[] = ", e->code);
		write_string(f, field_text(e, "c"));
		fputs(";\n", f);
	}
	const char *head = format("%s, \"%s\", \"%s\", doc_%s, %s, %s, %d, %d, %d, %s, %s, %s, %s", e->code, e->name,
	                          e->short_name, e->code, kind_codes[k], traits_of(e, kind, rest_in, rest_out),
	                          e->operands.n, e->results.n, e->attributes.n, operands, results, types, attrs);
	const char *defs = format("%d, %d, %s, %s%s, %s, %s, %d, %s, %s, %d, %s", min_regions, max_regions, regions,
	                          find_item(&e->fields, "c") ? "c_" : "NULL", find_item(&e->fields, "c") ? e->code : "",
	                          scalar_def, compose_def, ngrad, grad_names, grads, e->legacy.n, legacy);
	return format("\t[%s] = {%s,\n\t\t%s, %s, %s, %s, %s},\n", e->code, head, defs, hook_name(e, "infer"),
	              hook_name(e, "verify"), hook_name(e, "define"), hook_name(e, "interpret"));
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp((*(Entry *const *)a)->name, (*(Entry *const *)b)->name);
}

static int compare_legacy(const void *a, const void *b)
{
	return strcmp(((const LegacyRef *)a)->type, ((const LegacyRef *)b)->type);
}

// The indices that table.c searches: op codes by name, and legacy maps by type.
static void write_indices(const Gen *g, FILE *f)
{
	Entry **sorted = allocate(sizeof *sorted * (size_t)(g->nentry + 1));
	LegacyRef *refs = allocate(sizeof *refs * MAX_OPS);
	int nref = 0;
	memcpy(sorted, g->entries, sizeof *sorted * (size_t)g->nentry);
	qsort(sorted, (size_t)g->nentry, sizeof *sorted, compare_entries);
	fputs("\nstatic const enum OpCode ops_by_name[] = {\n", f);
	for (int i = 0; i < g->nentry; i++)
		fprintf(f, "\t%s,\n", sorted[i]->code);
	for (int i = 0; i < g->nentry; i++)
		for (int k = 0; k < g->entries[i]->legacy.n; k++) {
			if (nref == MAX_OPS)
				fail(g->entries[i], g->entries[i]->line, "too many legacy operators");
			refs[nref++] = (LegacyRef){g->entries[i]->legacy.items[k].key, g->entries[i], k};
		}
	qsort(refs, (size_t)nref, sizeof *refs, compare_legacy);
	fputs("};\n\nstatic const struct LegacyRef legacy_by_type[] = {\n", f);
	for (int i = 0; i < nref; i++) {
		if (i && !strcmp(refs[i].type, refs[i - 1].type))
			fail(refs[i].entry, refs[i].entry->legacy.items[refs[i].map].line,
			     "legacy operator '%s' is mapped twice", refs[i].type);
		fprintf(f, "\t{\"%s\", %s, %d},\n", refs[i].type, refs[i].entry->code, refs[i].map);
	}
	fputs("};\n", f);
}

static void write_hook_declarations(const Gen *g, FILE *f)
{
	static const struct {
		const char *key, *params;
	} hooks[] = {{"infer", "Op *op"}, {"verify", "Op *op"}, {"define", "Builder *b, Op *op, Value **results"},
	             {"interpret", "Interp *in, Op *op"}};
	for (int i = 0; i < g->nentry; i++)
		for (int k = 0; k < COUNT(hooks); k++)
			if (find_item(&g->entries[i]->fields, hooks[k].key))
				fprintf(f, "bool %s(%s);\n", hook_name(g->entries[i], hooks[k].key), hooks[k].params);
	fputc('\n', f);
}

// A file being written, in memory first.
typedef struct Output {
	FILE *to;
	char *text;
	size_t size;
} Output;

static void output_open(Output *o)
{
	o->to = open_memstream(&o->text, &o->size);
	if (!o->to)
		fail(NULL, 0, "out of memory");
	fputs("// Generated by opgen from ir/ops/*.yaml.\n\n", o->to);
}

static bool file_holds(const char *path, const Output *o)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return false;
	char *old = allocate(o->size + 1);
	size_t n = fread(old, 1, o->size + 1, f);
	fclose(f);
	return n == o->size && !memcmp(old, o->text, n);
}

// Leaves a file alone that holds the same already, so that nothing is compiled again for it.
static void output_close(Output *o, const char *dir, const char *name)
{
	const char *path = format("%s/%s", dir, name);
	if (fclose(o->to))
		fail(NULL, 0, "out of memory");
	if (file_holds(path, o))
		return;
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(o->text, 1, o->size, f) != o->size || fclose(f))
		fail(NULL, 0, "%s: %s", path, strerror(errno));
}

void write_enum(const Gen *g, const char *dir)
{
	Output o;
	output_open(&o);
	fputs("enum OpCode {\n", o.to);
	for (int i = 0; i < g->nentry; i++)
		fprintf(o.to, "\t%s,\n", g->entries[i]->code);
	fputs("\tOP_COUNT\n};\n", o.to);
	output_close(&o, dir, "ops_enum.inc");
}

void write_table(Gen *g, const char *dir)
{
	Output o;
	output_open(&o);
	const char **rows = allocate(sizeof *rows * (size_t)(g->nentry + 1));
	write_hook_declarations(g, o.to);
	for (int i = 0; i < g->nentry; i++)
		rows[i] = entry_row(g, o.to, g->entries[i]);
	fputs("\nconst OpInfo op_table[OP_COUNT] = {\n", o.to);
	for (int i = 0; i < g->nentry; i++)
		fputs(rows[i], o.to);
	fputs("};\n", o.to);
	write_indices(g, o.to);
	output_close(&o, dir, "ops_table.inc");
}
