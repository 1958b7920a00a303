// The names of Paddle 3: which operation of the dialect pd_op is which entry, and what its operands
// are by position. Where names and order agree with the entry's own nothing need be written; `pir:`
// says what differs. Part of opgen.
#include "opgen.h"

#include <stdlib.h>
#include <string.h>

typedef struct PirRef {
	const char *name;
	const Entry *entry;
	const Item *it; // NULL: as the entry itself
	const char *row;
} PirRef;

// Entries that no operation of Paddle's stands for.
static bool has_no_name(const Entry *e)
{
	static const char *const kinds[] = {"control", "builtin", "kernel", "loop"};
	const char *kind = field_text(e, "kind");
	return strncmp(e->name, "pd.", 3) != 0 || find_word(kinds, COUNT(kinds), kind ? kind : "") >= 0;
}

// Whether an operand holds what an attribute would say, or the LoD of another: those have no
// position of their own.
static bool has_no_position(const Entry *e, const char *operand)
{
	size_t n = strlen(operand);
	if (n > 4 && !strcmp(operand + n - 4, "_lod"))
		return true;
	for (int i = 0; i < e->attributes.n; i++) {
		const char *text = e->attributes.items[i].text, *arrow = text ? strstr(text, "<-") : NULL;
		if (arrow && !strcmp(trim(arrow + 2, strlen(arrow + 2)), operand))
			return true;
	}
	return false;
}

static int default_positions(const Entry *e, const Items *l, bool operands, const char **out)
{
	int n = 0;
	for (int i = 0; i < l->n; i++)
		if (!operands || !has_no_position(e, l->items[i].key))
			out[n++] = l->items[i].key;
	return n;
}

// `[x, ~, y]`: names by position; `~` is read by nobody.
static int read_positions(const Entry *e, const Item *it, const char **out)
{
	int n = read_list(e, it, out, MAX_ITEMS);
	for (int i = 0; i < n; i++)
		if (!strcmp(out[i], "~"))
			out[i] = NULL;
	return n;
}

static const char *own_name(const char *position, const char *name)
{
	return position && !strcmp(position, name) ? name : NULL;
}

// The slot of one of our operands: its name, where a position has it.
static void write_slots(const Items *l, int n, const char *const *at, const Items *slots,
                        const char **out)
{
	for (int i = 0; i < l->n; i++) {
		out[i] = NULL;
		for (int k = 0; k < n && !out[i]; k++)
			out[i] = own_name(at[k], l->items[i].key);
		for (int k = 0; k < slots->n && !out[i]; k++)
			if (!strcmp(slots->items[k].text ? slots->items[k].text : "", l->items[i].key))
				out[i] = slots->items[k].key;
	}
}

static int read_attributes(const Entry *e, const Items *l, const char **from, const char **to)
{
	Items renames = {0};
	const Item *it = find_item(l, "attr");
	int n = 0;
	if (it && it->node)
		read_mapping(e, it->node, &renames);
	for (int i = 0; i < renames.n; i++) {
		from[n] = renames.items[i].key;
		to[n++] = renames.items[i].text;
		if (!find_item(&e->attributes, to[n - 1] ? to[n - 1] : ""))
			fail(e, it->line, "'%s' is no attribute", to[n - 1]);
	}
	for (int i = 0; i < e->attributes.n && n < MAX_ITEMS; i++) {
		from[n] = to[n] = e->attributes.items[i].key;
		n++;
	}
	return n;
}

static const char *write_numbers(Gen *g, FILE *f, int n, const char *const *texts)
{
	if (!n)
		return "NULL";
	const char *name = format("numbers_%d", g->serial++);
	fprintf(f, "static const int %s[] = {", name);
	for (int i = 0; i < n; i++)
		fprintf(f, "%d, ", atoi(texts[i]));
	fputs("};\n", f);
	return name;
}

static Items mapping(const Entry *e, const Item *it)
{
	Items l = {0};
	if (it && it->node)
		read_mapping(e, it->node, &l);
	return l;
}

// `{name: text, ...}` as a PirPairs.
static const char *write_pairs(Gen *g, FILE *f, const Entry *e, const Item *it)
{
	const Items l = mapping(e, it);
	const char *names[MAX_ITEMS], *texts[MAX_ITEMS];
	for (int i = 0; i < l.n; i++) {
		names[i] = l.items[i].key;
		texts[i] = l.items[i].text;
	}
	const char *name_list = write_strings(g, f, l.n, names);
	return format("{%d, %s, %s}", l.n, name_list, write_strings(g, f, l.n, texts));
}

static const char *quoted(const Item *it)
{
	return it && it->text ? format("\"%s\"", it->text) : "NULL";
}

static const char *write_list(Gen *g, FILE *f, const Entry *e, const Item *it, int *n)
{
	const char *texts[MAX_ITEMS];
	*n = it ? read_list(e, it, texts, MAX_ITEMS) : 0;
	return write_strings(g, f, *n, texts);
}

// What reading and writing have in common: a LegacyMap.
static const char *write_common(Gen *g, FILE *f, const PirRef *ref, const Items *l, int nin,
                                const char *const *in, int nout, const char *const *out)
{
	const Entry *e = ref->entry;
	const Items set = mapping(e, find_item(l, "set")), slots = mapping(e, find_item(l, "slots"));
	const char *a[MAX_ITEMS], *b[MAX_ITEMS];
	int nignored, nreads;
	write_slots(&e->operands, nin, in, &slots, a);
	write_slots(&e->results, nout, out, &slots, b);
	const char *ins = write_strings(g, f, e->operands.n, a);
	const char *outs = write_strings(g, f, e->results.n, b);
	const int nattr = read_attributes(e, l, a, b);
	const char *from = write_strings(g, f, nattr, a), *to = write_strings(g, f, nattr, b);
	for (int i = 0; i < set.n; i++) {
		a[i] = set.items[i].key;
		b[i] = set.items[i].text;
	}
	const char *names = write_strings(g, f, set.n, a), *texts = write_strings(g, f, set.n, b);
	const char *ignored = write_ignored(g, f, e, find_item(l, "ignored"), &nignored);
	const char *reads = write_list(g, f, e, find_item(l, "reads"), &nreads);
	return format("{\"pd_op.%s\", %s, %s, %d, %s, %s, %s, %d, %s, %s, %s, %d, %s, %d, %s}",
	              ref->name, ins, outs, nattr, from, to, quoted(find_item(l, "hook")), set.n, names,
	              texts, word_code(g, e, NULL, "lod"), nreads, reads, nignored, ignored);
}

static const char *write_map(Gen *g, FILE *f, const PirRef *ref)
{
	const Entry *e = ref->entry;
	const Items l = mapping(e, ref->it);
	const char *in[MAX_ITEMS], *out[MAX_ITEMS], *places[MAX_ITEMS];
	const Item *is = find_item(&l, "in"), *os = find_item(&l, "out");
	const Item *place = find_item(&l, "inplace");
	int nin = is ? read_positions(e, is, in) : default_positions(e, &e->operands, true, in);
	int nout = os ? read_positions(e, os, out) : default_positions(e, &e->results, false, out);
	const bool apart = place && place->text && !strcmp(place->text, "none");
	int nplace = place && !apart ? read_list(e, place, places, MAX_ITEMS) : 0, nderived, ntold;
	const char *common = write_common(g, f, ref, &l, nin, in, nout, out);
	const char *derived = write_list(g, f, e, find_item(&l, "derived"), &nderived);
	const char *told = write_list(g, f, e, find_item(&l, "told"), &ntold);
	return format("{%s, %s, %d, %s, %d, %s, %d, %s, %s, %s, %s, %s, %d, %s, %d, %s}", common,
	              e->code, nin, write_strings(g, f, nin, in), nout, write_strings(g, f, nout, out),
	              apart ? -1 : nplace / 2, write_numbers(g, f, nplace, places),
	              quoted(find_item(&l, "rest")), write_pairs(g, f, e, find_item(&l, "give")),
	              write_pairs(g, f, e, find_item(&l, "unless")),
	              write_pairs(g, f, e, find_item(&l, "upward")), nderived, derived, ntold, told);
}

static int compare_refs(const void *a, const void *b)
{
	return strcmp(((const PirRef *)a)->name, ((const PirRef *)b)->name);
}

// Whether an entry names an operation of Paddle 3: then it is not that of the entry with this name.
static bool is_named(const Gen *g, const char *name)
{
	for (int i = 0; i < g->nentry; i++)
		for (int k = 0; k < g->entries[i]->pir.n; k++)
			if (!strcmp(g->entries[i]->pir.items[k].key, name))
				return true;
	return false;
}

static int collect(const Gen *g, PirRef *refs)
{
	int n = 0;
	for (int i = 0; i < g->nentry; i++) {
		const Entry *e = g->entries[i];
		for (int k = 0; k < e->pir.n; k++)
			refs[n++] = (PirRef){.name = e->pir.items[k].key, .entry = e, .it = &e->pir.items[k]};
		if (!has_no_name(e) && !is_named(g, e->short_name))
			refs[n++] = (PirRef){.name = e->short_name, .entry = e};
		if (n > MAX_OPS - MAX_ITEMS)
			fail(e, e->line, "too many operations of Paddle 3");
	}
	return n;
}

void write_pir(Gen *g, FILE *f)
{
	PirRef *refs = allocate(sizeof *refs * MAX_OPS);
	int n = collect(g, refs);
	qsort(refs, (size_t)n, sizeof *refs, compare_refs);
	for (int i = 0; i < n; i++) {
		if (i && !strcmp(refs[i].name, refs[i - 1].name))
			fail(refs[i].entry, refs[i].entry->line, "operation '%s' of Paddle 3 is mapped twice",
			     refs[i].name);
		refs[i].row = write_map(g, f, &refs[i]);
	}
	fputs("\nstatic const PirMap pir_by_type[] = {\n", f);
	for (int i = 0; i < n; i++)
		fprintf(f, "\t%s,\n", refs[i].row);
	fputs("};\n", f);
}

// ---- what Paddle declares -----------------------------------------------------------------------

static const char *const kinds[] = {
	"tensor", "ints",     "number",  "bool",       "i32",        "i64",       "f32",
	"f64",    "str",      "i32s",    "i64s",       "f32s",       "strs",      "dtype",
	"place",  "intarray", "scalars", "scalar f32", "scalar f64", "scalar i64"};

static const char *kind_code(const Entry *e, int line, const char *word)
{
	const int k = find_word(kinds, COUNT(kinds), word);
	if (k < 0)
		fail(e, line, "unknown kind '%s'", word);
	char *code = format("PIR_%s", upper(kinds[k]));
	for (char *p = code; *p; p++)
		*p = *p == ' ' ? '_' : *p;
	return code;
}

// `x`, `x?`, `x*`, `x: ints`.
static void write_arg(FILE *f, const Entry *e, int line, const char *text)
{
	const char *colon = strchr(text, ':'), *optional = strchr(text, '?');
	fprintf(f, "\t{\"%.*s\", %s, %s, %s, NULL},\n", (int)strcspn(text, ":?*"), text,
	        kind_code(e, line, colon ? trim(colon + 1, strlen(colon + 1)) : "tensor"),
	        optional ? "true" : "false", strchr(text, '*') ? "true" : "false");
}

// `name: kind`, `name: kind = default`.
static void write_declared_attr(FILE *f, const Entry *e, const Item *it)
{
	const char *equals = it->text ? strchr(it->text, '=') : NULL;
	if (!it->text)
		fail(e, it->line, "expected 'kind' or 'kind = default'");
	fprintf(
		f, "\t{\"%s\", %s, false, false, ", it->key,
		kind_code(e, it->line, equals ? trim(it->text, (size_t)(equals - it->text)) : it->text));
	write_string(f, equals ? trim(equals + 1, strlen(equals + 1)) : NULL);
	fputs("},\n", f);
}

// A static array of the arguments under this key; returns its name.
static const char *write_args(Gen *g, FILE *f, const Entry *e, const char *key, int *n)
{
	const Item *it = find_item(&e->fields, key);
	const char *texts[MAX_ITEMS];
	Items attrs = {0};
	*n = 0;
	if (!it)
		return "NULL";
	if (!strcmp(key, "attr"))
		read_section(e, key, &attrs);
	*n = attrs.n ? attrs.n : read_list(e, it, texts, MAX_ITEMS);
	const char *name = format("pir_args_%d", g->serial++);
	fprintf(f, "static const PirArg %s[] = {\n", name);
	for (int i = 0; i < *n; i++)
		if (attrs.n)
			write_declared_attr(f, e, &attrs.items[i]);
		else
			write_arg(f, e, it->line, texts[i]);
	fputs("};\n", f);
	return name;
}

static int compare_declared(const void *a, const void *b)
{
	return strcmp(field_text(*(Entry *const *)a, "pir"), field_text(*(Entry *const *)b, "pir"));
}

void write_declared(Gen *g, FILE *f)
{
	const char **rows = allocate(sizeof *rows * MAX_OPS);
	qsort(g->declared, (size_t)g->ndeclared, sizeof *g->declared, compare_declared);
	for (int i = 0; i < g->ndeclared; i++) {
		const Entry *e = g->declared[i];
		int nin, nattr, nout;
		const char *in = write_args(g, f, e, "in", &nin), *at = write_args(g, f, e, "attr", &nattr);
		const char *out = write_args(g, f, e, "out", &nout);
		rows[i] = format("{\"%s\", %d, %s, %d, %s, %d, %s}", field_text(e, "pir"), nin, in, nattr,
		                 at, nout, out);
	}
	fputs("\nstatic const PirDeclared pir_declared_by_name[] = {\n", f);
	for (int i = 0; i < g->ndeclared; i++)
		fprintf(f, "\t%s,\n", rows[i]);
	fputs("};\n", f);
}
