// What the files of opgen share: the operator descriptions as read from YAML, and helpers. Not part
// of pdcc.
#ifndef PDCC_OPGEN_H
#define PDCC_OPGEN_H

#include <stdbool.h>
#include <stdio.h>
#include <yaml.h>

enum {
	MAX_FILES = 64,
	MAX_OPS = 2048,
	MAX_ENUMS = 64,
	MAX_ITEMS = 128,
	MAX_NODES = 512,
	MAX_STMTS = 64
};

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
	Items fields, operands, attributes, results, legacy, pir;
} Entry;

typedef enum NodeKind { NODE_NUMBER, NODE_NAME, NODE_STRING, NODE_CALL, NODE_LIST } NodeKind;

// An enumeration: the words that an attribute may hold. In C: `reduce` is ReduceKind, with
// REDUCE_SUM ... REDUCE_COUNT.
typedef struct Enum {
	Entry at; // where it stands
	const char *name, *type, *prefix;
	int n;
	const char *words[MAX_ITEMS];
} Enum;

// As Expr in ir/core/opinfo.h.
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
	int nsource, nentry, nenum;
	Source sources[MAX_FILES];
	Entry *entries[MAX_OPS];
	Enum *enums[MAX_ENUMS];
	int ndeclared;
	Entry *declared[MAX_OPS]; // `- pir: NAME`, what Paddle 3 declares of an operation
	const Entry *ignored;     // `- ignored:`, attributes of any legacy operator; NULL: none
	int serial;               // numbers the static arrays of ops_table.inc
} Gen;

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

// ---- opgen.c ------------------------------------------------------------------------------------

// Prints file, line and text, and exits.
_Noreturn void fail(const Entry *e, int line, const char *fmt, ...);
// Zeroed memory; never NULL.
void *allocate(size_t n);
char *copy_n(const char *s, size_t n);
char *format(const char *fmt, ...);
// `s` without the blanks around it.
char *trim(const char *s, size_t n);
char *upper(const char *s);                                    // with `_` for `.`
int find_word(const char *const *words, int n, const char *s); // -1: none
const Item *find_item(const Items *l, const char *key);        // NULL: none
void read_mapping(const Entry *e, yaml_node_t *node, Items *out);
// The texts of a list, or of a single text; returns how many.
int read_list(const Entry *e, const Item *it, const char **out, int max);
void read_section(const Entry *e, const char *key, Items *out);
// By short name (dialect pd) or full name; NULL: none.
const Entry *find_entry(const Gen *g, const char *name);
const Enum *find_enum(const Gen *g, const char *name); // NULL: none
// The text of a key; NULL when it is not there.
const char *field_text(const Entry *e, const char *key);

// ---- opgen_expr.c -------------------------------------------------------------------------------

extern const char *const dtype_names[];
enum { NDTYPE = 12 };

// An expression of an entry as a static ExprDef; returns "&name".
const char *write_expr(Gen *g, FILE *f, const Entry *e, const Item *it, bool is_grad);

// ---- opgen_legacy.c -----------------------------------------------------------------------------

// The maps of an entry's legacy operators as an array; returns its name, "NULL" when there are
// none.
const char *write_legacy(Gen *g, FILE *f, const Entry *e);
// `ignored: {name: value}` as an array of IgnoredAttr: its name. *n: how many; it may be NULL.
const char *write_ignored(Gen *g, FILE *f, const Entry *e, const Item *it, int *n);
void write_ignored_everywhere(Gen *g, FILE *f);

// ---- opgen_signature.c --------------------------------------------------------------------------

// Static arrays of these; their names. `*rest`: whether the last one repeats.
const char *write_operands(Gen *g, FILE *f, const Entry *e, bool *rest);
// `kind = default <- operand`, each part after the kind optional; `kind?`: no default, not
// required.
const char *write_attributes(Gen *g, FILE *f, const Entry *e);
void write_result_names(Gen *g, FILE *f, const Entry *e, const char **names, const char **types,
                        bool *rest);
// `*max` is C text: where the first of two repeats, there is no number of names to tell it.
const char *write_regions(Gen *g, FILE *f, const Entry *e, int *min, const char **max);
// The traits as C text: those listed, and those that follow from the kind and the other keys.
const char *traits_of(const Entry *e, const char *kind, bool rest_in, bool rest_out);
// The C name of a word of an enumeration; of its first one where `it` is NULL.
const char *word_code(const Gen *g, const Entry *e, const Item *it, const char *name);

// ---- opgen_table.c ------------------------------------------------------------------------------

void write_string(FILE *f, const char *s); // as a string literal; NULL: "NULL"
// Static arrays of strings (NULLs allowed) and of numbers; their names, "NULL" for none.
const char *write_strings(Gen *g, FILE *f, int n, const char *const *s);
const char *write_ints(Gen *g, FILE *f, int n, const int *v);
void write_enum(const Gen *g, const char *dir);
void write_table(Gen *g, const char *dir);
void write_functions(const Gen *g, const char *dir);

// ---- opgen_pir.c --------------------------------------------------------------------------------

// The table of Paddle 3's operations: pir_by_type, sorted.
void write_pir(Gen *g, FILE *f);
// What Paddle 3 declares of them: pir_declared_by_name, sorted.
void write_declared(Gen *g, FILE *f);

// ---- opgen_hooks.c ------------------------------------------------------------------------------

// A file being written, in memory first.
typedef struct Output {
	FILE *to;
	char *text;
	size_t size;
} Output;

void output_open(Output *o);
// Leaves a file alone that holds the same already, so that nothing is compiled again for it.
void output_close(Output *o, const char *dir, const char *name);
// ops_KEY.inc: what passes and backends do with an operator, as tables of functions for the folders
// that have them.
void write_hooks(const Gen *g, const char *dir);

#endif
