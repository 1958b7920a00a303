// opgen: how legacy operators map to operations (the `legacy:` of entries), and which of their
// attributes may be passed over.
#include "ir/gen/opgen.h"

#include <string.h>

static const char *const no_slots[] = {"attr", "set",   "hook",
                                       "lod",  "reads", "ignored"}; // keys beside slots

// The legacy slots that feed `name`: `A|B`; NULL when none does.
static const char *slots_of(const Entry *e, const Items *l, const char *name)
{
	const char *slots = NULL;
	for (int i = 0; i < l->n; i++) {
		const Item *it = &l->items[i];
		const char *names[MAX_ITEMS];
		if (find_word(no_slots, COUNT(no_slots), it->key) >= 0)
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

// `ignored: {name: value}`: attributes without effect, whatever they hold (`any`), or as long as
// they hold the value, or one of a list, in the text form of attributes.
const char *write_ignored(Gen *g, FILE *f, const Entry *e, const Item *it, int *n)
{
	Items l = {0};
	*n = 0;
	if (!it)
		return "NULL";
	if (!it->node)
		fail(e, it->line, "'%s' must be a mapping", it->key);
	read_mapping(e, it->node, &l);
	const char *values[MAX_ITEMS], *rows[MAX_ITEMS];
	for (int i = 0; i < l.n; i++) {
		const Item *one = &l.items[i];
		const bool any = one->text && !strcmp(one->text, "any");
		const int count = any ? 0 : read_list(e, one, values, MAX_ITEMS);
		rows[i] = format("{\"%s\", %d, %s}, ", one->key, count, write_strings(g, f, count, values));
	}
	const char *name = format("ignored_%d", g->serial++);
	fprintf(f, "static const IgnoredAttr %s[] = {", name);
	for (int i = 0; i < l.n; i++)
		fputs(rows[i], f);
	fputs("};\n", f);
	*n = l.n;
	return name;
}

void write_ignored_everywhere(Gen *g, FILE *f)
{
	int n = 0;
	const char *name = g->ignored ? write_ignored(g, f, g->ignored,
	                                              find_item(&g->ignored->fields, "ignored"), &n)
	                              : "NULL";
	fprintf(f,
	        "static const IgnoredAttr *const ignored_everywhere = %s;\nenum { IGNORED_EVERYWHERE = "
	        "%d };\n",
	        name, n);
}

static const char *write_legacy_map(Gen *g, FILE *f, const Entry *e, const Item *it)
{
	Items l = {0}, set = {0};
	const char *slots[MAX_ITEMS], *from[MAX_ITEMS], *to[MAX_ITEMS], *names[MAX_ITEMS],
		*texts[MAX_ITEMS];
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
	const char *attr_from = write_strings(g, f, nattr, from),
			   *attr_to = write_strings(g, f, nattr, to);
	const Item *set_item = find_item(&l, "set"), *hook = find_item(&l, "hook");
	if (set_item && set_item->node)
		read_mapping(e, set_item->node, &set);
	for (int i = 0; i < set.n; i++) {
		names[i] = set.items[i].key;
		texts[i] = set.items[i].text;
		check_attribute(e, set_item, names[i]);
	}
	const char *set_names = write_strings(g, f, set.n, names),
			   *set_texts = write_strings(g, f, set.n, texts);
	const Item *reads_item = find_item(&l, "reads");
	int nreads = reads_item ? read_list(e, reads_item, names, MAX_ITEMS) : 0, nignored;
	const char *reads = write_strings(g, f, nreads, names);
	const char *ignored = write_ignored(g, f, e, find_item(&l, "ignored"), &nignored);
	return format("{\"%s\", %s, %s, %d, %s, %s, %s%s%s, %d, %s, %s, %s, %d, %s, %d, %s}", it->key,
	              ins, outs, nattr, attr_from, attr_to, hook ? "\"" : "",
	              hook ? hook->text : "NULL", hook ? "\"" : "", set.n, set_names, set_texts,
	              word_code(g, e, find_item(&l, "lod"), "lod"), nreads, reads, nignored, ignored);
}

const char *write_legacy(Gen *g, FILE *f, const Entry *e)
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
