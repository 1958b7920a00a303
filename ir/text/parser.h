// What the files that read operations share: parse.c, parse_draft.c and parse_name.c. Who returns
// false or NULL has reported why.
#ifndef PDCC_IR_TEXT_PARSER_H
#define PDCC_IR_TEXT_PARSER_H

#include "ir/base/map.h"
#include "ir/text/lex.h"

typedef struct Parser {
	Lexer lex;
	Context *ctx;
	PtrList names;    // Name, in order of definition
	int here;         // how many of them came before the region being read
	Region *region;   // that one
	PointerMap named; // uniqued key -> Value
	PtrList pending;  // Pending
	PtrList labels;   // Label, of the region being read
	PtrList jumps;    // Jump, of the region being read
} Parser;

// An operation while it is read.
typedef struct Draft {
	const char *where;
	const OpInfo *info; // NULL: unknown
	PtrList results;    // Definition
	PtrList keys;       // operand names, NULL for `_`
	PtrList places;     // where each operand stands
	PtrList succs;      // DraftSucc
	PtrList in, out;    // types
	NamedAttr *attrs;
	int nattr;
	const Loc *loc;
} Draft;

typedef struct Definition {
	const char *where, *key, *hint; // hint: the legacy variable, or NULL
	bool stop_gradient, persistable;
} Definition;

typedef struct DraftSucc {
	const char *where;
	const char *label;
	int first, count;
} DraftSucc;

// parse_name.c
Value *value_named(const Parser *p, const char *key); // NULL: none of that name is in sight
void name_define(Parser *p, const Definition *d, Value *v);
// Forgets the names defined since there were `mark` of them.
void names_leave(Parser *p, int mark);
// `%name`, `%"any name"`, `%name#2` or `%7`: the key, and the hint when it names a variable.
const char *parse_value_name(Parser *p, const char **hint);
// A value's name where it is defined, with its flags.
Definition *parse_definition(Parser *p);

// parse_draft.c
// The number of a block, which is what is printed, or a word for it.
bool parse_label(Parser *p, const char **out);
// Everything before the regions.
bool parse_draft(Parser *p, Draft *d);

#endif
