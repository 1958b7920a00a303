// A legacy while being translated: what control_while.c and control_while_*.c share.
#ifndef PDCC_FRONTEND_CONTROL_WHILE_H
#define PDCC_FRONTEND_CONTROL_WHILE_H

#include "frontend/control/control.h"
#include "frontend/control/variants.h"

// What is known of a loop variable; outlives attempts and restarts.
typedef struct LoopMemo {
	uint32_t open;         // axes whose size changes
	const Type *undefined; // of a variable without a value before the loop, or with one that nobody
	                       // looks at
	int retyped;           // how often that was learnt
	const Value *nothing;  // the body's argument, while only a mark came in and no type is known
	bool taken;            // an inner operator took it for something of another type
	bool solid;            // the type that it comes with is its own
	struct LoopMemo *next; // in Translator.nothings
	const Type *fitted;    // of one element: with the number of axes that comes around
	int levels;            // of LoD that changes from round to round
	bool bare;             // its LoD gets lost
	VariantTypes types;    // of a variable that changes its type from round to round
	bool grows;            // begins at 0 or above, and never becomes less
	const Dim *sizes[MAX_RANK]; // of open axes: another variable's, which it always equals
	uint32_t apart;             // axes of which that was not so in the end
} LoopMemo;

typedef struct LoopVar {
	const char *name;
	Binding *binding; // outside
	Value *init, *next;
	const Type *type;
	LoopMemo *memo;
	Value *replaced; // the value of another type that went in: zeros stand for it
	int of,
		level; // the offsets of a LoD level of the variable at this place; -1: an ordinary variable
	bool split; // of several types: this is which one, and those behind it (`of`) are the values
} LoopVar;

typedef struct Loop {
	OpJob *j;
	int block; // the body, in the program
	const char *condition;
	int n, cap;
	LoopVar *vars; // the condition is the last one
	Op *op;
} Loop;

// control_while_vars.c
// A variable is carried when a round needs what the one before left, or somebody does after the
// loop. False after a diagnostic.
bool loop_find_vars(Loop *l);
// A value of loop variable v with the axes that it has in all rounds.
Value *loop_with_rank(const Loop *l, const LoopVar *v, Builder *b, Value *x, const Type *want);

// control_while_types.c
// Sizes that are known to change get symbols. False after a diagnostic.
bool loop_set_types(Loop *l);
// Compares what comes around with what went in. *again: more was learnt, another attempt is needed.
bool loop_compare_types(Loop *l, bool *again);
// Variables that grow together have one size in the next attempt. What was taken for equal and is
// not, since more is known now, is not taken for that again. Whether anything changed.
bool loop_share_sizes(Loop *l);
// Who reads the condition sees all of it; then it is one element, or the run ends.
bool loop_only_decides(const Loop *l);
// False after a diagnostic: a condition without elements has no first one.
bool loop_decide_by_first(Loop *l);

#endif
