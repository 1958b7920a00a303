// opgen: reads the operator descriptions in ops/*.yaml and writes them as C tables.
//
//   opgen OUTDIR FILE.yaml...      writes OUTDIR/ops_enum.inc and OUTDIR/ops_table.inc
//   opgen --doc FILE.yaml...       prints docs/operators.md
//
// A build tool: the Makefile runs it before anything else is compiled (ir.h includes the enum, table.c
// the rows). The format of the descriptions is in docs/internals.md, section 1. It uses nothing of pdcc,
// and what it allocates goes back when it exits.
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { MAX_FILES = 64, MAX_OPS = 2048, MAX_ITEMS = 64, MAX_NODES = 512, MAX_STMTS = 64 };

// A `key: value` pair of a mapping; value is text, or a node when it is a mapping or a list.
typedef struct Item {
	const char *key, *text;
	yaml_node_t *node;
	int line;
} Item;

typedef struct Items {
	int n;
	Item items[MAX_ITEMS];
} Items;

// One file, and one entry of it.
typedef struct Source {
	const char *path;
	yaml_document_t doc;
} Source;

typedef struct Entry {
	Source *src;
	int line;
	const char *name;       // "pd.add"
	const char *short_name; // "add"
	const char *code;       // "OP_PD_ADD"
	Items fields, operands, attributes, results, legacy;
} Entry;

typedef enum NodeKind { NODE_NUMBER, NODE_NAME, NODE_STRING, NODE_CALL, NODE_LIST } NodeKind;

// As Expr in ir.h.
typedef struct Node {
	NodeKind kind;
	const char *text;
	const Entry *op;
	int nargs, args[MAX_ITEMS];
	const char *keys[MAX_ITEMS];
} Node;

typedef struct Parser {
	const Entry *entry;
	bool is_grad;
	int line;
	const char *at;
	int nnode, nstmt;
	Node nodes[MAX_NODES];
	const char *stmt_names[MAX_STMTS];
	int stmt_nodes[MAX_STMTS];
} Parser;

typedef struct Gen {
	int nsource, nentry;
	Source sources[MAX_FILES];
	Entry *entries[MAX_OPS];
	int serial; // numbers the static arrays of ops_table.inc
} Gen;

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
static const char *const dtype_names[] = {
	"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"};
static const char *const field_names[] = {
	"op", "kind", "doc", "operands", "attributes", "results", "traits", "scalar", "c", "grad", "compose",
	"infer", "verify", "define", "interpret", "regions", "legacy"};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void fail(const Entry *e, int line, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "%s:%d: error: ", e ? e->src->path : "opgen", line);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void *allocate(size_t n)
{
	void *p = calloc(1, n);
	if (!p)
		fail(NULL, 0, "out of memory");
	return p;
}

static char *copy_n(const char *s, size_t n)
{
	char *p = allocate(n + 1);
	memcpy(p, s, n);
	return p;
}

static char *format(const char *fmt, ...)
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
static char *trim(const char *s, size_t n)
{
	while (n && isspace((unsigned char)*s))
		s++, n--;
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	return copy_n(s, n);
}

static int find_word(const char *const *words, int n, const char *s)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(words[i], s))
			return i;
	return -1;
}

static const Item *find_item(const Items *l, const char *key)
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
static void read_mapping(const Entry *e, yaml_node_t *node, Items *out)
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
static int read_list(const Entry *e, const Item *it, const char **out, int max)
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

static void read_section(const Entry *e, const char *key, Items *out)
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

static const Entry *find_entry(const Gen *g, const char *name)
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

// ---- expressions --------------------------------------------------------------------------------

static int parse_expr(const Gen *g, Parser *p);

static void skip_blanks(Parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool accept(Parser *p, const char *token)
{
	skip_blanks(p);
	size_t n = strlen(token);
	if (strncmp(p->at, token, n))
		return false;
	bool longer = strchr("<>!=", token[0]) && n == 1 && p->at[1] == '=';
	if (longer)
		return false;
	p->at += n;
	return true;
}

static void expect(Parser *p, const char *token)
{
	if (!accept(p, token))
		fail(p->entry, p->line, "expected '%s' before '%s'", token, p->at);
}

static int add_node(Parser *p, NodeKind kind, const char *text)
{
	if (p->nnode == MAX_NODES)
		fail(p->entry, p->line, "expression too long");
	Node *n = &p->nodes[p->nnode];
	n->kind = kind;
	n->text = text;
	return p->nnode++;
}

static int add_call(const Gen *g, Parser *p, const char *name, int n, const int *args, const char *const *keys)
{
	const Entry *op = find_entry(g, name);
	if (!op)
		fail(p->entry, p->line, "no operator '%s'", name);
	int at = add_node(p, NODE_CALL, name);
	p->nodes[at].op = op;
	p->nodes[at].nargs = n;
	for (int i = 0; i < n; i++) {
		p->nodes[at].args[i] = args[i];
		p->nodes[at].keys[i] = keys ? keys[i] : NULL;
		if (keys && keys[i] && !find_item(&op->attributes, keys[i]) && !find_item(&op->operands, keys[i]))
			fail(p->entry, p->line, "'%s' has no attribute or operand '%s'", name, keys[i]);
	}
	return at;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static const char *parse_word(Parser *p)
{
	const char *start = p->at;
	while (is_name_char(*p->at))
		p->at++;
	return copy_n(start, (size_t)(p->at - start));
}

// `name = ` of a named argument; NULL when a plain expression follows.
static const char *parse_key(Parser *p)
{
	skip_blanks(p);
	const char *start = p->at;
	if (isalpha((unsigned char)*p->at) || *p->at == '_') {
		const char *word = parse_word(p);
		skip_blanks(p);
		if (p->at[0] == '=' && p->at[1] != '=') {
			p->at++;
			return word;
		}
	}
	p->at = start;
	return NULL;
}

static int parse_args(const Gen *g, Parser *p, const char *close, int *args, const char **keys)
{
	int n = 0;
	if (accept(p, close))
		return 0;
	do {
		if (n == MAX_ITEMS)
			fail(p->entry, p->line, "too many arguments");
		const char *key = parse_key(p);
		if (n && keys[n - 1] && !key)
			fail(p->entry, p->line, "a positional argument after a named one");
		args[n] = parse_expr(g, p);
		keys[n++] = key;
	} while (accept(p, ","));
	expect(p, close);
	return n;
}

// Whether `name` means something in an expression of this entry.
static bool name_is_known(const Parser *p, const char *name)
{
	const Entry *e = p->entry;
	const char *dot = strchr(name, '.');
	if (dot) // `x.dtype`
		return !strcmp(dot, ".dtype") && name_is_known(p, copy_n(name, (size_t)(dot - name)));
	for (int i = 0; i < p->nstmt; i++)
		if (!strcmp(p->stmt_names[i], name))
			return true;
	if (!strcmp(name, "true") || !strcmp(name, "false") || find_item(&e->operands, name))
		return true;
	if (find_item(&e->attributes, name) || find_word(dtype_names, COUNT(dtype_names), name) >= 0)
		return true;
	if (!p->is_grad)
		return false;
	return find_item(&e->results, strncmp(name, "d_", 2) ? name : name + 2) != NULL;
}

static int parse_primary(const Gen *g, Parser *p)
{
	int args[MAX_ITEMS];
	const char *keys[MAX_ITEMS];
	skip_blanks(p);
	char c = *p->at;
	if (accept(p, "(")) {
		int n = parse_expr(g, p);
		expect(p, ")");
		return n;
	}
	if (accept(p, "[")) {
		int n = parse_args(g, p, "]", args, keys), at = add_node(p, NODE_LIST, NULL);
		p->nodes[at].nargs = n;
		memcpy(p->nodes[at].args, args, sizeof args);
		return at;
	}
	if (c == '"') {
		const char *end = strchr(p->at + 1, '"');
		if (!end)
			fail(p->entry, p->line, "a string without an end");
		const char *text = copy_n(p->at + 1, (size_t)(end - p->at - 1));
		p->at = end + 1;
		return add_node(p, NODE_STRING, text);
	}
	if (isdigit((unsigned char)c)) {
		char *end;
		strtod(p->at, &end);
		const char *text = copy_n(p->at, (size_t)(end - p->at));
		p->at = end;
		return add_node(p, NODE_NUMBER, text);
	}
	if (!isalpha((unsigned char)c) && c != '_')
		fail(p->entry, p->line, "expected an expression before '%s'", p->at);
	const char *word = parse_word(p);
	if (*p->at == '(') {
		p->at++;
		int n = parse_args(g, p, ")", args, keys);
		return add_call(g, p, word, n, args, keys);
	}
	if (!name_is_known(p, word))
		fail(p->entry, p->line, "'%s' is no operand, attribute or earlier statement", word);
	return add_node(p, NODE_NAME, word);
}

static int parse_unary(const Gen *g, Parser *p)
{
	if (accept(p, "-")) {
		int x = parse_unary(g, p);
		if (p->nodes[x].kind == NODE_NUMBER && p->nodes[x].text[0] != '-') {
			p->nodes[x].text = format("-%s", p->nodes[x].text);
			return x;
		}
		return add_call(g, p, "negative", 1, &x, NULL);
	}
	if (accept(p, "!")) {
		int x = parse_unary(g, p);
		return add_call(g, p, "logical_not", 1, &x, NULL);
	}
	return parse_primary(g, p);
}

static int parse_binary(const Gen *g, Parser *p, int level)
{
	static const struct {
		int level;
		const char *token, *op;
	} table[] = {
		{0, "||", "logical_or"}, {1, "&&", "logical_and"}, {2, "==", "equal"}, {2, "!=", "not_equal"},
		{3, "<=", "less_equal"}, {3, ">=", "greater_equal"}, {3, "<", "less_than"}, {3, ">", "greater_than"},
		{4, "+", "add"}, {4, "-", "subtract"}, {5, "*", "multiply"}, {5, "/", "divide"}, {5, "%", "remainder"},
	};
	if (level == 6)
		return parse_unary(g, p);
	int args[2] = {parse_binary(g, p, level + 1), 0};
	for (;;) {
		const char *op = NULL;
		for (int i = 0; i < COUNT(table) && !op; i++)
			if (table[i].level == level && accept(p, table[i].token))
				op = table[i].op;
		if (!op)
			return args[0];
		args[1] = parse_binary(g, p, level + 1);
		args[0] = add_call(g, p, op, 2, args, NULL);
	}
}

static int parse_expr(const Gen *g, Parser *p)
{
	int args[3] = {parse_binary(g, p, 0), 0, 0};
	if (!accept(p, "?"))
		return args[0];
	args[1] = parse_expr(g, p);
	expect(p, ":");
	args[2] = parse_expr(g, p);
	return add_call(g, p, "where", 3, args, NULL);
}

// Statements, one per line; all but the last are `name = expression`.
static void parse_statements(const Gen *g, Parser *p, const char *text)
{
	for (p->at = text, skip_blanks(p); *p->at; skip_blanks(p)) {
		if (p->nstmt == MAX_STMTS)
			fail(p->entry, p->line, "too many statements");
		const char *name = parse_key(p);
		int node = parse_expr(g, p);
		p->stmt_nodes[p->nstmt] = node;
		p->stmt_names[p->nstmt++] = name ? name : "";
	}
	if (!p->nstmt)
		fail(p->entry, p->line, "no expression");
}

// ---- writing the table -----------------------------------------------------------------------------

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

static const char *field_text(const Entry *e, const char *key)
{
	const Item *it = find_item(&e->fields, key);
	if (it && !it->text)
		fail(e, it->line, "'%s' must be text", key);
	return it ? it->text : NULL;
}

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

static void write_enum(const Gen *g, const char *dir)
{
	Output o;
	output_open(&o);
	fputs("enum OpCode {\n", o.to);
	for (int i = 0; i < g->nentry; i++)
		fprintf(o.to, "\t%s,\n", g->entries[i]->code);
	fputs("\tOP_COUNT\n};\n", o.to);
	output_close(&o, dir, "ops_enum.inc");
}

static void write_table(Gen *g, const char *dir)
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
