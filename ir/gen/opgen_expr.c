// opgen: the expression language of the operator descriptions (scalar, compose, grad). A parser by
// recursive descent that leaves nodes in post-order, and writes them as an ExprDef
// (ir/core/opinfo.h); opgen_table.c asks for each expression of an entry.
#include "ir/gen/opgen.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const dtype_names[NDTYPE] = {"bool", "u8",   "i8",  "i16", "i32", "i64",
                                         "f16",  "bf16", "f32", "f64", "c64", "c128"};
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

static int add_call(const Gen *g, Parser *p, const char *name, int n, const int *args,
                    const char *const *keys)
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
		if (keys && keys[i] && !find_item(&op->attributes, keys[i]) &&
		    !find_item(&op->operands, keys[i]))
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
	if (find_item(&e->attributes, name) || find_word(dtype_names, NDTYPE, name) >= 0)
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
		{0, "||", "logical_or"}, {1, "&&", "logical_and"}, {2, "==", "equal"},
		{2, "!=", "not_equal"},  {3, "<=", "less_equal"},  {3, ">=", "greater_equal"},
		{3, "<", "less_than"},   {3, ">", "greater_than"}, {4, "+", "add"},
		{4, "-", "subtract"},    {5, "*", "multiply"},     {5, "/", "divide"},
		{5, "%", "remainder"},
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

// ---- as C ---------------------------------------------------------------------------------------

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

const char *write_expr(Gen *g, FILE *f, const Entry *e, const Item *it, bool is_grad)
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
