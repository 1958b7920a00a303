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

static const char *write_map(Gen *g, FILE *f, const PirRef *ref)
{
	const Entry *e = ref->entry;
	Items l = {0}, set = {0}, slots = {0};
	const char *in[MAX_ITEMS], *out[MAX_ITEMS], *a[MAX_ITEMS], *b[MAX_ITEMS];
	if (ref->it && ref->it->node)
		read_mapping(e, ref->it->node, &l);
	const Item *is = find_item(&l, "in"), *os = find_item(&l, "out"), *hook = find_item(&l, "hook");
	const Item *place = find_item(&l, "inplace"), *sets = find_item(&l, "set");
	const Item *named = find_item(&l, "slots");
	if (named && named->node)
		read_mapping(e, named->node, &slots);
	int nin = is ? read_positions(e, is, in) : default_positions(e, &e->operands, true, in);
	int nout = os ? read_positions(e, os, out) : default_positions(e, &e->results, false, out);
	write_slots(&e->operands, nin, in, &slots, a);
	write_slots(&e->results, nout, out, &slots, b);
	const char *ins = write_strings(g, f, e->operands.n, a),
			   *outs = write_strings(g, f, e->results.n, b);
	int nattr = read_attributes(e, &l, a, b);
	const char *from = write_strings(g, f, nattr, a), *to = write_strings(g, f, nattr, b);
	if (sets && sets->node)
		read_mapping(e, sets->node, &set);
	for (int i = 0; i < set.n; i++) {
		a[i] = set.items[i].key;
		b[i] = set.items[i].text;
	}
	const char *set_names = write_strings(g, f, set.n, a),
			   *set_texts = write_strings(g, f, set.n, b);
	int nplace = place ? read_list(e, place, b, MAX_ITEMS) : 0, nignored;
	const char *ignored = write_ignored(g, f, e, find_item(&l, "ignored"), &nignored);
	return format("{{\"pd_op.%s\", %s, %s, %d, %s, %s, %s%s%s, %d, %s, %s, %s, 0, NULL, %d, %s}, "
	              "%s, %d, %s, %d, %s, %d, %s}",
	              ref->name, ins, outs, nattr, from, to, hook ? "\"" : "",
	              hook ? hook->text : "NULL", hook ? "\"" : "", set.n, set_names, set_texts,
	              word_code(g, e, NULL, "lod"), nignored, ignored, e->code, nin,
	              write_strings(g, f, nin, in), nout, write_strings(g, f, nout, out), nplace / 2,
	              write_numbers(g, f, nplace, b));
}

static int compare_refs(const void *a, const void *b)
{
	return strcmp(((const PirRef *)a)->name, ((const PirRef *)b)->name);
}

static int collect(const Gen *g, PirRef *refs)
{
	int n = 0;
	for (int i = 0; i < g->nentry; i++) {
		const Entry *e = g->entries[i];
		bool own = has_no_name(e);
		for (int k = 0; k < e->pir.n; k++) {
			refs[n++] = (PirRef){.name = e->pir.items[k].key, .entry = e, .it = &e->pir.items[k]};
			own |= !strcmp(e->pir.items[k].key, e->short_name);
		}
		if (!own)
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
