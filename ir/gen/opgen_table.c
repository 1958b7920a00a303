// opgen: writes ops_enum.inc and ops_table.inc, the C form of the operator descriptions.
#include "ir/gen/opgen.h"

#include <stdlib.h>
#include <string.h>

static const char *const class_names[] = {"any", "float", "int", "bool", "number", "index"};
static const char *const class_codes[] = {"CLASS_ANY",  "CLASS_FLOAT",  "CLASS_INT",
                                          "CLASS_BOOL", "CLASS_NUMBER", "CLASS_INDEX"};
static const char *const kind_names[] = {"map",      "reduce",  "scan",      "index",
                                         "contract", "kernel",  "composite", "control",
                                         "random",   "builtin", "loop"};
static const char *const kind_codes[] = {
	"KIND_MAP",       "KIND_REDUCE",  "KIND_SCAN",   "KIND_INDEX",   "KIND_CONTRACT", "KIND_KERNEL",
	"KIND_COMPOSITE", "KIND_CONTROL", "KIND_RANDOM", "KIND_BUILTIN", "KIND_LOOP"};
static const char *const attr_names[] = {"bool",  "int",  "float",  "str",   "type",
                                         "dtype", "ints", "floats", "strs",  "bools",
                                         "dim",   "dims", "tensor", "number"};
static const char *const attr_codes[] = {
	"ATTR_BOOL",   "ATTR_INT",  "ATTR_FLOAT", "ATTR_STR", "ATTR_TYPE", "ATTR_DTYPE",  "ATTR_INTS",
	"ATTR_FLOATS", "ATTR_STRS", "ATTR_BOOLS", "ATTR_DIM", "ATTR_DIMS", "ATTR_TENSOR", "ATTR_FLOAT"};
static const char *const trait_names[] = {
	"pure",      "terminator", "commutative", "view",   "broadcast",  "primitive",
	"compare",   "constant",   "cheap",       "steps",  "apart",      "apart_c",
	"space",     "enlarges",   "repacks",     "rounds", "axis_moves", "axis_new",
	"one_block", "rows",       "retypes",     "shares", "branch",     "sizes_of"};
static const char *const trait_codes[] = {
	"TRAIT_PURE",       "TRAIT_TERMINATOR", "TRAIT_COMMUTATIVE", "TRAIT_VIEW",
	"TRAIT_BROADCAST",  "TRAIT_PRIMITIVE",  "TRAIT_COMPARE",     "TRAIT_CONSTANT",
	"TRAIT_CHEAP",      "TRAIT_STEPS",      "TRAIT_APART",       "TRAIT_APART_C",
	"TRAIT_SPACE",      "TRAIT_ENLARGES",   "TRAIT_REPACKS",     "TRAIT_ROUNDS",
	"TRAIT_AXIS_MOVES", "TRAIT_AXIS_NEW",   "TRAIT_ONE_BLOCK",   "TRAIT_ROWS",
	"TRAIT_RETYPES",    "TRAIT_SHARES",     "TRAIT_BRANCH",      "TRAIT_SIZES_OF"};

// Of an operation that nobody has given a cost: it is printed as a call.
#define COST_OF_FUNCTION "15"

void write_string(FILE *f, const char *s)
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
const char *write_strings(Gen *g, FILE *f, int n, const char *const *s)
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
	fprintf(f, "\t{%s, %s, %s, ", kinds[n->kind], number ? n->text : "0",
	        is_int ? "true" : "false");
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
	fprintf(f, "};\nstatic const ExprDef def_%d = {%d, nodes_%d, %d, %s, %s};\n", id, p->nnode, id,
	        p->nstmt, names, stmts);
	return format("&def_%d", id);
}

// What `kind?` or `kind*` or `kind...` says, and `kind@2` of two axes, `kind@2+` of two or more.
typedef struct Suffixed {
	const char *word;
	bool optional, vec, rest;
	int min_rank, max_rank;
} Suffixed;

// Takes `@2` or `@2+` from the end of the word.
static void split_rank(Suffixed *s)
{
	const char *at = strchr(s->word, '@');
	s->max_rank = -1;
	if (!at)
		return;
	s->min_rank = atoi(at + 1);
	if (s->word[strlen(s->word) - 1] != '+')
		s->max_rank = s->min_rank;
	s->word = copy_n(s->word, (size_t)(at - s->word));
}

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
	split_rank(&s);
	return s;
}

// Begins an array of that type; its name.
static const char *array_begin(Gen *g, FILE *f, const char *type, const char *stem)
{
	const char *name = format("%s_%d", stem, g->serial++);
	fprintf(f, "static const %s %s[] = {", type, name);
	return name;
}

static const char *write_operands(Gen *g, FILE *f, const Entry *e, bool *rest)
{
	if (!e->operands.n)
		return "NULL";
	const char *name = array_begin(g, f, "OperandInfo", "operands");
	for (int i = 0; i < e->operands.n; i++) {
		const Item *it = &e->operands.items[i];
		Suffixed s = split_suffix(it->text ? it->text : "");
		int k = find_word(class_names, COUNT(class_names), s.word);
		if (k < 0)
			fail(e, it->line, "unknown operand class '%s'", s.word);
		if (s.rest && i + 1 < e->operands.n)
			fail(e, it->line, "only the last operand may repeat");
		*rest |= s.rest;
		fprintf(f, "{\"%s\", %s, %s, %s, %d, %s}, ", it->key, class_codes[k],
		        s.optional || s.rest ? "true" : "false", s.vec ? "true" : "false", s.min_rank,
		        s.max_rank < 0 ? "MAX_RANK" : format("%d", s.max_rank));
	}
	fputs("};\n", f);
	return name;
}

// What an attribute holds: a kind, or `enum NAME`.
typedef struct Holds {
	int kind;
	const Enum *choices;
} Holds;

static Holds attribute_holds(const Gen *g, const Entry *e, const Item *it, const char *word)
{
	bool is_enum = !strncmp(word, "enum ", 5);
	Holds h = {.kind = find_word(attr_names, COUNT(attr_names), is_enum ? "str" : word)};
	if (is_enum)
		h.choices = find_enum(g, trim(word + 5, strlen(word + 5)));
	if (h.kind < 0 || (is_enum && !h.choices))
		fail(e, it->line, "unknown attribute kind '%s'", word);
	return h;
}

// The default of an attribute in the text form of attributes.
static const char *default_text(const Entry *e, const Item *it, Holds h, const char *text)
{
	if (!text || strcmp(attr_names[h.kind], "str"))
		return text;
	const char *quoted = text[0] == '"' ? text : format("\"%s\"", text);
	if (h.choices &&
	    find_word(h.choices->words, h.choices->n, copy_n(quoted + 1, strlen(quoted) - 2)) < 0)
		fail(e, it->line, "%s is not in '%s'", quoted, h.choices->name);
	return quoted;
}

// The operand that stands behind the arrow of an attribute's text; NULL: none.
static const char *operand_of(const Entry *e, const Item *it, const char *arrow)
{
	const char *operand = arrow ? trim(arrow + 2, strlen(arrow + 2)) : NULL;
	if (operand && !find_item(&e->operands, operand))
		fail(e, it->line, "no operand '%s'", operand);
	return operand;
}

// `kind = default <- operand`, each part after the kind optional; `kind?`: no default, not
// required.
static const char *write_attributes(Gen *g, FILE *f, const Entry *e)
{
	if (!e->attributes.n)
		return "NULL";
	const char *name = array_begin(g, f, "AttrInfo", "attrs");
	for (int i = 0; i < e->attributes.n; i++) {
		const Item *it = &e->attributes.items[i];
		const char *text = it->text ? it->text : "";
		const char *arrow = strstr(text, "<-");
		const char *operand = operand_of(e, it, arrow);
		size_t n = arrow ? (size_t)(arrow - text) : strlen(text);
		const char *eq = memchr(text, '=', n);
		const char *fallback = eq ? trim(eq + 1, n - (size_t)(eq + 1 - text)) : NULL;
		Suffixed s = split_suffix(trim(text, eq ? (size_t)(eq - text) : n));
		Holds h = attribute_holds(g, e, it, s.word);
		fallback = default_text(e, it, h, fallback);
		fprintf(f, "{\"%s\", %s, %s, ", it->key, attr_codes[h.kind],
		        fallback || operand || s.optional ? "false" : "true");
		write_string(f, fallback);
		fputs(", ", f);
		write_string(f, operand);
		fprintf(f, ", %s, ", !strcmp(s.word, "number") ? "true" : "false");
		fprintf(f, h.choices ? "&enum_%s}, " : "NULL}, ", h.choices ? h.choices->name : "");
	}
	fputs("};\n", f);
	return name;
}

// The traits as C text: those listed, and those that follow from the kind and the other keys.
static const char *traits_of(const Entry *e, const char *kind, bool rest_in, bool rest_out)
{
	static const char *const pure_kinds[] = {"map",   "reduce",   "scan",
	                                         "index", "contract", "composite"};
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

// A word of enumeration `name`, of which the first is 0, as C text.
const char *word_code(const Gen *g, const Entry *e, const Item *it, const char *name)
{
	const Enum *n = find_enum(g, name);
	if (!it)
		return "0";
	int i = n && it->text ? find_word(n->words, n->n, it->text) : -1;
	if (i < 0)
		fail(e, it->line, "'%s' must be one of enumeration '%s'", it->key, name);
	return format("%s_%s", n->prefix, upper(n->words[i]));
}

// ---- rows ---------------------------------------------------------------------------------------

static const char *hook_name(const Entry *e, const char *key)
{
	const char *hook = field_text(e, key);
	return hook ? format("%s_hook_%s", key, hook) : "NULL";
}

// A number, or what stands for one that is not given.
static const char *number_text(const Entry *e, const char *key, const char *otherwise)
{
	const char *text = field_text(e, key);
	char *end;
	if (!text)
		return otherwise;
	strtod(text, &end);
	if (*end || end == text)
		fail(e, e->line, "'%s' must be a number", key);
	return text;
}

static void write_result_names(Gen *g, FILE *f, const Entry *e, const char **names,
                               const char **types, bool *rest)
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

// `*max` is C text: where the first of two repeats, there is no number of names to tell it.
static const char *write_regions(Gen *g, FILE *f, const Entry *e, int *min, const char **max)
{
	const Item *it = find_item(&e->fields, "regions");
	const char *names[MAX_ITEMS];
	const int n = it ? read_list(e, it, names, MAX_ITEMS) : 0;
	*max = format("%d", n);
	for (int i = 0; i < n; i++) {
		Suffixed s = split_suffix(names[i]);
		names[i] = s.word;
		*min += !s.optional;
		if (s.rest && (i > 0 || n != 2))
			fail(e, it->line, "only the first of two regions may repeat");
		if (s.rest)
			*max = "MOST_REGIONS";
	}
	return write_strings(g, f, n, names);
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

// Those that an entry has an emitter in.
static const char *languages_of(const Entry *e)
{
	static const char *const keys[] = {"c", "cuda"}, *const codes[] = {"1 << LANGUAGE_C",
	                                                                   "1 << LANGUAGE_CUDA"};
	const char *text = "0";
	Items parts = {0};
	if (find_item(&e->fields, "emit"))
		read_section(e, "emit", &parts);
	for (int i = 0; i < COUNT(keys); i++)
		if (find_item(&parts, keys[i]))
			text = format("%s | %s", text, codes[i]);
	return text;
}

// The attributes that a list of an entry names, as a static array.
static int write_attribute_list(Gen *g, FILE *f, const Entry *e, const char *key, const char **out)
{
	const Item *it = find_item(&e->fields, key);
	const char *names[MAX_ITEMS];
	const int n = it ? read_list(e, it, names, MAX_ITEMS) : 0;
	for (int i = 0; i < n; i++)
		if (!find_item(&e->attributes, names[i]))
			fail(e, it->line, "no attribute '%s'", names[i]);
	*out = write_strings(g, f, n, names);
	return n;
}

static const char *entry_row(Gen *g, FILE *f, const Entry *e)
{
	bool rest_in = false, rest_out = false;
	int min_regions = 0;
	const char *max_regions;
	const char *results, *types, *grads, *grad_names, *kind = field_text(e, "kind");
	int k = kind ? find_word(kind_names, COUNT(kind_names), kind) : -1;
	if (k < 0)
		fail(e, e->line, "'%s' needs a 'kind'", e->name);
	const char *operands = write_operands(g, f, e, &rest_in), *attrs = write_attributes(g, f, e);
	write_result_names(g, f, e, &results, &types, &rest_out);
	const char *regions = write_regions(g, f, e, &min_regions, &max_regions);
	const Item *scalar = find_item(&e->fields, "scalar"),
			   *compose = find_item(&e->fields, "compose");
	const char *scalar_def = scalar ? write_expr(g, f, e, scalar, false) : "NULL";
	const char *compose_def = compose ? write_expr(g, f, e, compose, false) : "NULL";
	int ngrad = write_grads(g, f, e, &grad_names, &grads);
	const char *legacy = write_legacy(g, f, e);
	fprintf(f, "static const char doc_%s[] = ", e->code);
	write_string(f, field_text(e, "doc") ? trim(field_text(e, "doc"), strlen(field_text(e, "doc")))
	                                     : "");
	fputs(";\n", f);
	if (find_item(&e->fields, "c")) {
		fprintf(f, "static const char c_%s[] = ", e->code);
		write_string(f, field_text(e, "c"));
		fputs(";\n", f);
	}
	const char *head = format("%s, \"%s\", \"%s\", doc_%s, %s, %s, %d, %d, %d, %s, %s, %s, %s",
	                          e->code, e->name, e->short_name, e->code, kind_codes[k],
	                          traits_of(e, kind, rest_in, rest_out), e->operands.n, e->results.n,
	                          e->attributes.n, operands, results, types, attrs);
	const char *defs = format("%d, %s, %s, %s%s, %s, %s, %d, %s, %s, %d, %s", min_regions,
	                          max_regions, regions, find_item(&e->fields, "c") ? "c_" : "NULL",
	                          find_item(&e->fields, "c") ? e->code : "", scalar_def, compose_def,
	                          ngrad, grad_names, grads, e->legacy.n, legacy);
	const char *cost = number_text(e, "cost", COST_OF_FUNCTION);
	const char *drops;
	const int ndrop = write_attribute_list(g, f, e, "drops", &drops);
	const char *facts = format("%s, %s, %s, %d, %s, %s", cost, number_text(e, "index_cost", cost),
	                           word_code(g, e, find_item(&e->fields, "filter"), "filter"), ndrop,
	                           drops, languages_of(e));
	return format("\t[%s] = {%s,\n\t\t%s, %s},\n", e->code, head, defs, facts);
}

typedef struct LegacyRef {
	const char *type;
	const Entry *entry;
	int map;
} LegacyRef;

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

// ops_functions.inc: the functions of struct OpFunctions. They lie in all rooms of ir/, so the
// table of facts does not name them.
void write_functions(const Gen *g, const char *dir)
{
	static const struct {
		const char *key, *params;
	} hooks[] = {{"infer", "Op *op"},
	             {"verify", "Op *op"},
	             {"define", "Builder *b, Op *op, Value **results"},
	             {"interpret", "Interp *in, Op *op"},
	             {"gradient", "struct GradientJob *g"}};
	Output o;
	output_open(&o);
	for (int i = 0; i < g->nentry; i++)
		for (int k = 0; k < COUNT(hooks); k++)
			if (find_item(&g->entries[i]->fields, hooks[k].key))
				fprintf(o.to, "bool %s(%s);\n", hook_name(g->entries[i], hooks[k].key),
				        hooks[k].params);
	fputs("\nstatic const OpFunctions op_functions_table[OP_COUNT] = {\n", o.to);
	for (int i = 0; i < g->nentry; i++) {
		fprintf(o.to, "\t[%s] = {", g->entries[i]->code);
		for (int k = 0; k < COUNT(hooks); k++)
			fprintf(o.to, "%s%s", k ? ", " : "", hook_name(g->entries[i], hooks[k].key));
		fputs("},\n", o.to);
	}
	fputs("};\n", o.to);
	output_close(&o, dir, "ops_functions.inc");
}

void write_enum(const Gen *g, const char *dir)
{
	Output o;
	output_open(&o);
	fputs("enum OpCode {\n", o.to);
	for (int i = 0; i < g->nentry; i++)
		fprintf(o.to, "\t%s,\n", g->entries[i]->code);
	fputs("\tOP_COUNT\n};\n", o.to);
	for (int i = 0; i < g->nenum; i++) {
		const Enum *n = g->enums[i];
		fprintf(o.to, "\ntypedef enum %s {\n", n->type);
		for (int k = 0; k < n->n; k++)
			fprintf(o.to, "\t%s_%s,\n", n->prefix, *n->words[k] ? upper(n->words[k]) : "EMPTY");
		fprintf(o.to, "\t%s_COUNT // none of them\n} %s;\n", n->prefix, n->type);
		fprintf(o.to, "extern const struct EnumInfo enum_%s; // its words\n", n->name);
	}
	output_close(&o, dir, "ops_enum.inc");
}

void write_table(Gen *g, const char *dir)
{
	Output o;
	output_open(&o);
	const char **rows = allocate(sizeof *rows * (size_t)(g->nentry + 1));
	for (int i = 0; i < g->nenum; i++) {
		const Enum *n = g->enums[i];
		const char *words = write_strings(g, o.to, n->n, n->words);
		fprintf(o.to, "const EnumInfo enum_%s = {\"%s\", %d, %s};\n", n->name, n->name, n->n,
		        words);
	}
	for (int i = 0; i < g->nentry; i++)
		rows[i] = entry_row(g, o.to, g->entries[i]);
	write_ignored_everywhere(g, o.to);
	fputs("\nconst OpInfo op_table[OP_COUNT] = {\n", o.to);
	for (int i = 0; i < g->nentry; i++)
		fputs(rows[i], o.to);
	fputs("};\n", o.to);
	write_indices(g, o.to);
	write_pir(g, o.to);
	write_declared(g, o.to);
	output_close(&o, dir, "ops_table.inc");
}
