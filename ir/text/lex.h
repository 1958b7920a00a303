// What the parts of the IR parser share: the place in the text, words, numbers, and the parsers of
// dims, types and attributes (lex.c, parse_type.c, parse_attr.c). Private to ir/; the outside calls
// ir_parse and attr_parse.
//
// Every function that can fail reports once, with line and column, and returns false or NULL; the
// callers stop at once, so that one fault in the text is one diagnostic.
#ifndef PDCC_LEX_H
#define PDCC_LEX_H

#include "ir/core/core.h"

typedef struct Lexer {
	Context *ctx;
	const char *file;
	const char *start, *at, *end;
	int depth;           // of nested types and regions, to bound recursion
	int dim_depth;       // of the dim being read
	int dim_ops;         // operators in the dim being read: it becomes a tree as deep
	const char *line_at; // a place already located, so that locating is linear in the whole text
	int line;
	const char *line_start;
} Lexer;

enum { LEX_MAX_DEPTH = 200, LEX_MAX_DIM_DEPTH = 1000, LEX_MAX_DIM_OPS = 5000 };

// A growing array of pointers in the context's arena.
typedef struct PtrList {
	int n, cap;
	const void **items;
} PtrList;

void ptr_list_add(Context *c, PtrList *l, const void *item);

// A word or name in the text.
typedef struct Word {
	const char *s;
	size_t n;
} Word;

void lex_init(Lexer *l, Context *c, const char *file, const char *text, size_t n);
// Line and column of a place in the text.
Loc lex_loc(Lexer *l, const char *where);
// Reports at `where`; always false.
bool lex_fail(Lexer *l, const char *where, const char *fmt, ...) PRINTF_LIKE(3, 4);

void lex_space(Lexer *l);                     // blanks and // comments
char lex_peek(Lexer *l);                      // next character after blanks; 0 at the end
bool lex_accept(Lexer *l, const char *token); // punctuation
bool lex_expect(Lexer *l, const char *token); // reports when it is not there
bool lex_is_word(char c);                     // letters, digits, _ . @ $
bool lex_word(Lexer *l, Word *out); // [A-Za-z_][A-Za-z0-9_.@$]*; false (no report) when none
bool lex_keyword(Lexer *l, const char *word); // takes exactly this word, if it is next
bool lex_int(Lexer *l, int64_t *out);         // reports
// An integer or, with a point, exponent, inf or nan, a float. Reports.
bool lex_number(Lexer *l, bool *is_int, int64_t *i, double *f);
const char *lex_string(Lexer *l); // "..."; uniqued. Reports
bool lex_enter(Lexer *l);         // one level deeper; reports when too deep
void lex_leave(Lexer *l);

bool parse_dtype_word(Lexer *l, DType *out); // false, without a report: none is next
// `3 x ?n x f32`: dims, then the element type.
bool parse_dims(Lexer *l, const Dim **dims, int *rank, DType *dtype);
const Dim *parse_dim(Lexer *l);
const Type *parse_type(Lexer *l);
// `(T, T)`
bool parse_type_list(Lexer *l, PtrList *out);
// `kind`: what the table says, or -1; decides what an empty list or an integer is.
const Attr *parse_attr(Lexer *l, int kind);

#endif
