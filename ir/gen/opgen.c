// opgen: reads the operator descriptions in ops/*.yaml and writes them as C tables.
//
//   opgen OUTDIR FILE.yaml...      writes OUTDIR/ops_enum.inc and OUTDIR/ops_table.inc
//   opgen --doc FILE.yaml...       prints docs/operators.md
//
// A build tool: the Makefile runs it before anything else is compiled (ir/core/context.h includes
// the enum, table.c the rows). The format of the descriptions is in docs/internals.md, section 1.
// It uses nothing of pdcc, and what it allocates goes back when it exits.
#include "ir/gen/opgen.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const field_names[] = {
	"op",     "kind",      "doc",       "operands", "attributes", "results", "traits",
	"scalar", "c",         "grad",      "gradient", "compose",    "infer",   "verify",
	"define", "interpret", "regions",   "legacy",   "pir",        "cost",    "index_cost",
	"filter", "simplify",  "decompose", "emit",     "share",      "drops"};

_Noreturn void fail(const Entry *e, int line, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "%s:%d: error: ", e ? e->src->path : "opgen", line);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

void *allocate(size_t n)
{
	void *p = calloc(1, n);
	if (!p)
		fail(NULL, 0, "out of memory");
	return p;
}

char *copy_n(const char *s, size_t n)
{
	char *p = allocate(n + 1);
	memcpy(p, s, n);
	return p;
}

char *format(const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	char *p = allocate((size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(ap);
	va_end(again);
	return p;
}

// `s` without the blanks around it.
char *trim(const char *s, size_t n)
{
	while (n && isspace((unsigned char)*s))
		s++, n--;
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	return copy_n(s, n);
}

int find_word(const char *const *words, int n, const char *s)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(words[i], s))
			return i;
	return -1;
}

const Item *find_item(const Items *l, const char *key)
{
	for (int i = 0; i < l->n; i++)
		if (!strcmp(l->items[i].key, key))
			return &l->items[i];
	return NULL;
}

// ---- reading YAML -------------------------------------------------------------------------------

static const char *node_text(const Entry *e, yaml_node_t *n)
{
	if (n->type != YAML_SCALAR_NODE)
		fail(e, (int)n->start_mark.line + 1, "expected text");
	return copy_n((const char *)n->data.scalar.value, n->data.scalar.length);
}

// libyaml reads more than YAML is: what other parsers refuse inside of braces and brackets, or read
// as something else (`{out: like(x, bool)}` has two keys), must stand in quotes.
static void check_plain(const Entry *e, const yaml_node_t *n)
{
	if (n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return;
	int line = (int)n->start_mark.line + 1;
	const char *text = (const char *)n->data.scalar.value;
	if (!*text)
		fail(e, line, "there is no value; a text that holds a comma needs quotes");
	if (strpbrk(text, "?"))
		fail(e, line, "'%s' needs quotes", text);
}

// The pairs of a mapping.
void read_mapping(const Entry *e, yaml_node_t *node, Items *out)
{
	bool flow = node->type == YAML_MAPPING_NODE &&
	            node->data.mapping.style == YAML_FLOW_MAPPING_STYLE;
	if (node->type != YAML_MAPPING_NODE)
		fail(e, (int)node->start_mark.line + 1, "expected a mapping");
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
	     p++) {
		yaml_node_t *k = yaml_document_get_node(&e->src->doc, p->key);
		yaml_node_t *v = yaml_document_get_node(&e->src->doc, p->value);
		if (out->n == MAX_ITEMS)
			fail(e, (int)k->start_mark.line + 1, "too many entries");
		Item *it = &out->items[out->n++];
		it->key = node_text(e, k);
		if (flow && v->type == YAML_SCALAR_NODE)
			check_plain(e, v);
		it->line = (int)k->start_mark.line + 1;
		if (v->type == YAML_SCALAR_NODE)
			it->text = node_text(e, v);
		else
			it->node = v;
	}
}

// The texts of a list, or of a single text.
int read_list(const Entry *e, const Item *it, const char **out, int max)
{
	if (it->text) {
		out[0] = it->text;
		return 1;
	}
	if (it->node->type != YAML_SEQUENCE_NODE)
		fail(e, it->line, "'%s' must be a list", it->key);
	int n = 0;
	for (yaml_node_item_t *i = it->node->data.sequence.items.start;
	     i < it->node->data.sequence.items.top; i++) {
		if (n == max)
			fail(e, it->line, "'%s' is too long", it->key);
		yaml_node_t *v = yaml_document_get_node(&e->src->doc, *i);
		out[n++] = node_text(e, v);
		if (it->node->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE)
			check_plain(e, v);
	}
	return n;
}

void read_section(const Entry *e, const char *key, Items *out)
{
	const Item *it = find_item(&e->fields, key);
	if (it && it->node)
		read_mapping(e, it->node, out);
	else if (it)
		fail(e, it->line, "'%s' must be a mapping", key);
}

char *upper(const char *s)
{
	char *u = format("%s", s);
	for (char *p = u; *p; p++)
		*p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
	return u;
}

// `- enum: NAME`, with a doc and the values.
static Enum *read_enum(const Gen *g, const Entry *e, const Item *name)
{
	Enum *n = allocate(sizeof *n);
	const Item *values = find_item(&e->fields, "values");
	n->at = *e;
	n->name = name->text;
	if (!n->name || !*n->name || !values || find_enum(g, n->name) || g->nenum == MAX_ENUMS)
		fail(e, name->line, "an enumeration needs a name of its own and 'values'");
	char *type = format("%sKind", n->name);
	char *to = type;
	for (const char *from = type; *from; from++) { // data_format: DataFormatKind
		bool first = from == type || from[-1] == '_';
		if (*from != '_')
			*to++ = first ? (char)toupper((unsigned char)*from) : *from;
	}
	*to = '\0';
	n->type = type;
	n->prefix = upper(n->name);
	n->n = read_list(e, values, n->words, MAX_ITEMS);
	for (int i = 0; i < n->n; i++)
		if (find_word(n->words, i, n->words[i]) >= 0)
			fail(e, values->line, "'%s' is there twice", n->words[i]);
	return n;
}

const Enum *find_enum(const Gen *g, const char *name)
{
	for (int i = 0; i < g->nenum; i++)
		if (!strcmp(g->enums[i]->name, name))
			return g->enums[i];
	return NULL;
}

static Entry *read_fields(Source *src, yaml_node_t *node)
{
	Entry *e = allocate(sizeof *e);
	e->src = src;
	e->line = (int)node->start_mark.line + 1;
	read_mapping(e, node, &e->fields);
	return e;
}

static void read_entry(Entry *e)
{
	for (int i = 0; i < e->fields.n; i++)
		if (find_word(field_names, COUNT(field_names), e->fields.items[i].key) < 0)
			fail(e, e->fields.items[i].line, "unknown key '%s'", e->fields.items[i].key);
	const Item *op = find_item(&e->fields, "op");
	if (!op || !op->text)
		fail(e, e->line, "an entry needs 'op'");
	e->name = strchr(op->text, '.') ? op->text : format("pd.%s", op->text);
	e->short_name = strchr(e->name, '.') + 1;
	e->code = format("OP_%s", upper(e->name));
	read_section(e, "operands", &e->operands);
	read_section(e, "attributes", &e->attributes);
	read_section(e, "results", &e->results);
	read_section(e, "legacy", &e->legacy);
	read_section(e, "pir", &e->pir);
}

const Entry *find_entry(const Gen *g, const char *name)
{
	bool full = strchr(name, '.') != NULL;
	for (int i = 0; i < g->nentry; i++) {
		const Entry *e = g->entries[i];
		if (!strcmp(full ? e->name : e->short_name, name) && (full || !strncmp(e->name, "pd.", 3)))
			return e;
	}
	return NULL;
}

static void read_file(Gen *g, const char *path)
{
	if (g->nsource == MAX_FILES)
		fail(NULL, 0, "too many files");
	Source *src = &g->sources[g->nsource++];
	src->path = path;
	FILE *f = fopen(path, "rb");
	if (!f)
		fail(NULL, 0, "%s: %s", path, strerror(errno));
	yaml_parser_t p;
	yaml_parser_initialize(&p);
	yaml_parser_set_input_file(&p, f);
	Entry at = {.src = src};
	if (!yaml_parser_load(&p, &src->doc))
		fail(&at, (int)p.problem_mark.line + 1, "%s", p.problem);
	fclose(f);
	yaml_node_t *root = yaml_document_get_root_node(&src->doc);
	if (!root)
		return; // an empty file
	if (root->type != YAML_SEQUENCE_NODE)
		fail(&at, 1, "expected a list of operators");
	for (yaml_node_item_t *i = root->data.sequence.items.start; i < root->data.sequence.items.top;
	     i++) {
		Entry *e = read_fields(src, yaml_document_get_node(&src->doc, *i));
		const Item *is_enum = find_item(&e->fields, "enum");
		if (is_enum) {
			Enum *n = read_enum(g, e, is_enum);
			g->enums[g->nenum++] = n;
			continue;
		}
		if (find_item(&e->fields, "ignored")) {
			if (g->ignored)
				fail(e, e->line, "'ignored' stands twice");
			g->ignored = e;
			continue;
		}
		if (!find_item(&e->fields, "op") && find_item(&e->fields, "pir")) {
			if (g->ndeclared == MAX_OPS)
				fail(e, e->line, "too many operations of Paddle 3");
			g->declared[g->ndeclared++] = e;
			continue;
		}
		read_entry(e);
		if (find_entry(g, e->name))
			fail(e, e->line, "'%s' is defined twice", e->name);
		if (g->nentry == MAX_OPS)
			fail(e, e->line, "too many operators");
		g->entries[g->nentry++] = e;
	}
	yaml_parser_delete(&p);
}

const char *field_text(const Entry *e, const char *key)
{
	const Item *it = find_item(&e->fields, key);
	if (it && !it->text)
		fail(e, it->line, "'%s' must be text", key);
	return it ? it->text : NULL;
}

// ---- docs/operators.md --------------------------------------------------------------------------

static void print_pairs(const char *title, const Items *l)
{
	if (!l->n)
		return;
	printf("- %s:", title);
	for (int i = 0; i < l->n; i++)
		printf("%s `%s`%s%s%s", i ? "," : "", l->items[i].key, l->items[i].text ? " (`" : "",
		       l->items[i].text ? l->items[i].text : "", l->items[i].text ? "`)" : "");
	putchar('\n');
}

static void print_ignored(const Entry *e, const Item *it)
{
	Items l = {0};
	read_mapping(e, it->node, &l);
	for (int i = 0; i < l.n; i++) {
		const char *values[MAX_ITEMS];
		const int n = read_list(e, &l.items[i], values, MAX_ITEMS);
		printf("%s `%s`", i ? "," : "", l.items[i].key);
		for (int k = 0; k < n && strcmp(values[0], "any"); k++)
			printf("%s`%s`%s", k ? " or " : " (only ", values[k], k == n - 1 ? ")" : "");
	}
}

static void print_names(const Entry *e, const Item *it)
{
	Items l = {0};
	const char *names[MAX_ITEMS];
	if (!it->text && it->node->type == YAML_MAPPING_NODE)
		read_mapping(e, it->node, &l);
	else
		l.n = read_list(e, it, names, MAX_ITEMS);
	for (int i = 0; i < l.n; i++)
		printf("%s `%s`", i ? "," : "", l.items[i].key ? l.items[i].key : names[i]);
}

// Each legacy operator, with the attributes that it reads and those without effect.
static void print_legacy(const Entry *e)
{
	for (int i = 0; i < e->legacy.n; i++) {
		Items l = {0};
		if (e->legacy.items[i].node)
			read_mapping(e, e->legacy.items[i].node, &l);
		const Item *attr = find_item(&l, "attr"), *reads = find_item(&l, "reads"),
				   *ignored = find_item(&l, "ignored");
		printf("- legacy `%s`%s", e->legacy.items[i].key, attr || reads ? ", reads" : "");
		if (attr)
			print_names(e, attr);
		if (reads) {
			fputs(attr ? "," : "", stdout);
			print_names(e, reads);
		}
		if (ignored) {
			fputs("; without effect:", stdout);
			print_ignored(e, ignored);
		}
		putchar('\n');
	}
}

static void print_enums(const Gen *g)
{
	printf("\n## Enumerations\n\n");
	for (int i = 0; i < g->nenum; i++) {
		const char *doc = field_text(&g->enums[i]->at, "doc");
		printf("- `%s`%s%s:", g->enums[i]->name, doc ? ", " : "", doc ? doc : "");
		for (int k = 0; k < g->enums[i]->n; k++)
			printf("%s `%s`", k ? "," : "", g->enums[i]->words[k]);
		putchar('\n');
	}
}

static void print_docs(const Gen *g)
{
	printf("# Operators\n\nGenerated by `opgen --doc` from `ir/ops/*.yaml`.\n");
	print_enums(g);
	if (g->ignored) {
		printf("\n## Attributes of legacy operators\n\nAn attribute is read, known to be without "
		       "effect, or refused by name. Without "
		       "effect for every operator that does not read\nthem are:");
		print_ignored(g->ignored, find_item(&g->ignored->fields, "ignored"));
		putchar('\n');
	}
	for (int i = 0; i < g->nentry; i++) {
		const Entry *e = g->entries[i];
		if (!i || e->src != g->entries[i - 1]->src) {
			const char *slash = strrchr(e->src->path, '/');
			printf("\n## %s\n", slash ? slash + 1 : e->src->path);
		}
		const char *doc = field_text(e, "doc"), *scalar = field_text(e, "scalar");
		const char *compose = field_text(e, "compose");
		printf("\n### `%s` (%s)\n\n%s%s", e->name, field_text(e, "kind"),
		       doc ? trim(doc, strlen(doc)) : "", doc ? "\n\n" : "");
		print_pairs("operands", &e->operands);
		print_pairs("attributes", &e->attributes);
		print_pairs("results", &e->results);
		print_legacy(e);
		if (scalar)
			printf("- meaning: `%s`\n", trim(scalar, strlen(scalar)));
		if (compose)
			printf("\n```\n%s\n```\n", trim(compose, strlen(compose)));
	}
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: opgen OUTDIR|--doc FILE.yaml...\n");
		return 2;
	}
	Gen *g = allocate(sizeof *g);
	for (int i = 2; i < argc; i++)
		read_file(g, argv[i]);
	if (!strcmp(argv[1], "--doc"))
		print_docs(g);
	else {
		write_enum(g, argv[1]);
		write_table(g, argv[1]);
		write_functions(g, argv[1]);
		write_hooks(g, argv[1]);
	}
	return 0;
}
