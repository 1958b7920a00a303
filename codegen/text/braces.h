// The lines of a body in C and the braces between them, as far as a printer of declarations must
// know them. Of text that this compiler printed: one statement a line.
#ifndef PDCC_CODEGEN_TEXT_BRACES_H
#define PDCC_CODEGEN_TEXT_BRACES_H

#include "codegen/text/text.h"

typedef enum ScopeKind {
	SCOPE_FUNCTION,
	SCOPE_IF, // also an else that asks
	SCOPE_ELSE,
	SCOPE_LOOP,
	SCOPE_FOREVER, // for (;;)
	SCOPE_SWITCH,
	SCOPE_BLOCK, // a case, or nothing but braces
	SCOPE_LIST   // an initialiser
} ScopeKind;

typedef struct RunScope {
	ScopeKind kind;
	int outer, depth;
	int head;        // the line in which its statement begins: of an else, its if
	int open, close; // the lines with its braces; of the function, -1 and the number of lines
} RunScope;

typedef enum Jump { JUMP_NONE, JUMP_BREAK, JUMP_RETURN } Jump;

typedef struct RunLine {
	size_t from, to; // without its end
	int tabs;        // that it begins with
	int scope;       // that it stands in
	int opens;       // the scope that begins at its end; -1: none
	bool blank;
	bool aside; // nothing but a comment, blank, or for the preprocessor
	bool under; // of the condition in the line above
	Jump jump;
} RunLine;

typedef struct RunLines {
	int n, cap, nscope, cscope;
	RunLine *items;
	RunScope *scopes; // the function is the first
} RunLines;

RunLines run_lines_find(Arena *a, const Text *run);

#endif
