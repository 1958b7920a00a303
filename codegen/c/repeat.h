// Which calls of model_run are repeated: repeat_find.c and repeat_lay.c find them, repeat_names.c
// says what they get, repeat.c prints them as a loop. Only these files include it.
#ifndef PDCC_CODEGEN_C_REPEAT_H
#define PDCC_CODEGEN_C_REPEAT_H

#include "codegen/c/c.h"

enum {
	STEP_ABSENT = -1,
	MAX_PERIOD = 512 // steps in a round
};

// Operations in a row. `calls[i]` is NULL where something else happens than the call of a function;
// `kinds[i]` is equal for calls that a loop may print as one, and -1 where that cannot be: also for
// calls that may end the run, since which operation did it must be told.
typedef struct Steps {
	Codegen *cg;
	const Op *const *ops;
	KernelFunc **calls;
	int *kinds;
	int n;
	const Op **bound;
} Steps;

// The operations [first, end) as rounds of a loop. Some rounds may do without a step: an operator
// that one layer has and the others have not.
typedef struct Repeat {
	int first, end;
	int rounds, nstep;
	int *at;    // [round * nstep + step]: the operation; STEP_ABSENT: this round has no such step
	int *count; // by step: how many rounds have it
} Repeat;

static inline int repeat_at(const Repeat *r, int round, int step)
{
	return r->at[round * r->nstep + step];
}

// Fills s->kinds from s->calls.
void steps_classify(Steps *s);
// Whether two parameters get the same argument.
bool arguments_match(const Codegen *cg, const KernelParam *a, const KernelParam *b);
// The same, or arguments that a table may give.
bool arguments_fit(const Codegen *cg, const KernelParam *a, const KernelParam *b);
// The repetition in [from, to) that saves most; rounds == 0: there is none that is worth a loop.
Repeat repeat_find(const Steps *s, int from, int to);

// ---- repeat_lay.c -------------------------------------------------------------------------------

// All rounds in [from, to) around the pattern [first, first + period); `room`: rounds_room().
Repeat rounds_around(const Steps *s, int *room, int from, int to, int first, int period);
int *rounds_room(Arena *a); // numbers that it works with, for any number of calls
// Calls that the loop has less; less than nothing where a good part of it is in some rounds only.
int repeat_saves(const Repeat *r);

// ---- repeat_names.c -----------------------------------------------------------------------------

// What differs between rounds: where an argument lies, or a pointer to it.
typedef struct Column {
	const KernelParam **params; // by round; NULL: the round has no such argument
	const char *name;           // of the member
} Column;

typedef struct Table {
	Column *items;
	int n, cap;
	Names members;
	const char *type, *rows, *row; // C names
} Table;

// A local that a row of the table gives.
typedef struct RowLocal {
	const char *name;
	int column;
	bool declared;
} RowLocal;

// A loop being printed.
typedef struct RepeatLoop {
	Steps *s;
	const Repeat *r;
	Table table;
	RowLocal *locals;
	int nlocal, clocal;
	PointerMap *named;       // by round: tensor -> its name
	int *joint;              // by step: the first of those that take each other's place
	const char ***arguments; // by step and parameter: what the call gets; NULL: the same as always
} RepeatLoop;

// The call of a step in a round, and what it gets for a parameter; NULL: the round has no such
// step, or that is a statement.
const KernelFunc *repeat_call(const RepeatLoop *l, int round, int step);
const KernelParam *repeat_param(const RepeatLoop *l, int round, int step, int p);
int step_params(const RepeatLoop *l, int step);
int step_first(const Repeat *r, int step);   // the first round that has it
int round_begin(const Repeat *r, int round); // the operation that a round begins with
// Whether no round has both steps.
bool steps_are_apart(const Repeat *r, int a, int b);
// Steps from `step` on that the same rounds have: where they end.
int step_group_end(const Repeat *r, int step);
// Groups from `step` on of which no round has two: where they end.
int step_chain_end(const Repeat *r, int step);
const KernelParam *column_first(const Column *c);
bool column_is_weights(const Column *c);
bool column_is_pointer(const Codegen *cg, const Column *c); // not an offset
RowLocal *row_local_find(const RepeatLoop *l, const char *name);
// Fills names, locals and columns of the table, before the loop: what its rounds share may be read
// behind it. False after a diagnostic.
bool repeat_names(RepeatLoop *l);

#endif
