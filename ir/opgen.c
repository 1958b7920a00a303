// opgen: reads the operator descriptions in ops/*.yaml and writes them as C tables.
//
//   opgen OUTDIR FILE.yaml...      writes OUTDIR/ops_enum.inc and OUTDIR/ops_table.inc
//   opgen --doc FILE.yaml...       prints docs/operators.md
//
// A build tool: the Makefile runs it before anything else is compiled (ir.h includes the enum, table.c
// the rows). The format of the descriptions is in docs/internals.md, section 1. It uses nothing of pdcc,
// and what it allocates goes back when it exits.
#include "opgen.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const field_names[] = {
	"op", "kind", "doc", "operands", "attributes", "results", "traits", "scalar", "c", "grad", "compose",
	"infer", "verify", "define", "interpret", "regions", "legacy"};

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

// ---- reading YAML ---------------------------------------------------------------------------------

static const char *node_text(const Entry *e, yaml_node_t *n)
{
	if (n->type != YAML_SCALAR_NODE)
		fail(e, (int)n->start_mark.line + 1, "expected text");
	return copy_n((const char *)n->data.scalar.value, n->data.scalar.length);
}

static bool parens_open(const char *s)
{
	int depth = 0;
	for (; *s; s++)
		depth += (*s == '(') - (*s == ')');
	return depth > 0;
}

// The pairs of a mapping. In YAML's flow style a comma ends a value, so `{out: like(x, bool)}` reads as
// two pairs, the second without a value: join them again while a parenthesis is open.
void read_mapping(const Entry *e, yaml_node_t *node, Items *out)
{
	if (node->type != YAML_MAPPING_NODE)
		fail(e, (int)node->start_mark.line + 1, "expected a mapping");
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
		yaml_node_t *k = yaml_document_get_node(&e->src->doc, p->key);
		yaml_node_t *v = yaml_document_get_node(&e->src->doc, p->value);
		const char *key = node_text(e, k);
		Item *last = out->n ? &out->items[out->n - 1] : NULL;
		if (last && last->text && parens_open(last->text)) {
			last->text = format("%s, %s", last->text, key);
			if (v->type == YAML_SCALAR_NODE && v->data.scalar.length)
				fail(e, (int)k->start_mark.line + 1, "quote this value: it has a colon");
			continue;
		}
		if (out->n == MAX_ITEMS)
			fail(e, (int)k->start_mark.line + 1, "too many entries");
		Item *it = &out->items[out->n++];
		it->key = key;
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
	for (yaml_node_item_t *i = it->node->data.sequence.items.start; i < it->node->data.sequence.items.top; i++) {
		if (n == max)
			fail(e, it->line, "'%s' is too long", it->key);
		out[n++] = node_text(e, yaml_document_get_node(&e->src->doc, *i));
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

static const char *code_of(const char *name)
{
	char *s = format("OP_%s", name);
	for (char *p = s; *p; p++)
		*p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
	return s;
}

static Entry *read_entry(Source *src, yaml_node_t *node)
{
	Entry *e = allocate(sizeof *e);
	e->src = src;
	e->line = (int)node->start_mark.line + 1;
	read_mapping(e, node, &e->fields);
	for (int i = 0; i < e->fields.n; i++)
		if (find_word(field_names, COUNT(field_names), e->fields.items[i].key) < 0)
			fail(e, e->fields.items[i].line, "unknown key '%s'", e->fields.items[i].key);
	const Item *op = find_item(&e->fields, "op");
	if (!op || !op->text)
		fail(e, e->line, "an entry needs 'op'");
	e->name = strchr(op->text, '.') ? op->text : format("pd.%s", op->text);
	e->short_name = strchr(e->name, '.') + 1;
	e->code = code_of(e->name);
	read_section(e, "operands", &e->operands);
	read_section(e, "attributes", &e->attributes);
	read_section(e, "results", &e->results);
	read_section(e, "legacy", &e->legacy);
	return e;
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
	for (yaml_node_item_t *i = root->data.sequence.items.start; i < root->data.sequence.items.top; i++) {
		Entry *e = read_entry(src, yaml_document_get_node(&src->doc, *i));
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

// ---- docs/operators.md -----------------------------------------------------------------------------

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

static void print_legacy(const Entry *e)
{
	if (!e->legacy.n)
		return;
	printf("- legacy:");
	for (int i = 0; i < e->legacy.n; i++)
		printf("%s `%s`", i ? "," : "", e->legacy.items[i].key);
	putchar('\n');
}

static void print_docs(const Gen *g)
{
	printf("# Operators\n\nGenerated by `opgen --doc` from `ir/ops/*.yaml`.\n");
	for (int i = 0; i < g->nentry; i++) {
		const Entry *e = g->entries[i];
		if (!i || e->src != g->entries[i - 1]->src) {
			const char *slash = strrchr(e->src->path, '/');
			printf("\n## %s\n", slash ? slash + 1 : e->src->path);
		}
		const char *doc = field_text(e, "doc"), *scalar = field_text(e, "scalar");
		const char *compose = field_text(e, "compose");
		printf("\n### `%s` (%s)\n\n%s%s", e->name, field_text(e, "kind"), doc ? trim(doc, strlen(doc)) : "",
		       doc ? "\n\n" : "");
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
	}
	return 0;
}
