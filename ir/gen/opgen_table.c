// opgen: writes ops_enum.inc and ops_table.inc, the C form of the operator descriptions.
#include "ir/gen/opgen.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"map",      "reduce",  "scan",      "index",
                                         "contract", "kernel",  "composite", "control",
                                         "random",   "builtin", "loop"};

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

const char *write_ints(Gen *g, FILE *f, int n, const int *v)
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
	if (!kind || find_word(kind_names, COUNT(kind_names), kind) < 0)
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
	const char *head = format("%s, \"%s\", \"%s\", doc_%s, KIND_%s, %s, %d, %d, %d, %s, %s, %s, %s",
	                          e->code, e->name, e->short_name, e->code, upper(kind),
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
