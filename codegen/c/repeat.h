// Which calls of model_run are repeated: repeat_find.c finds them, repeat.c prints them as a loop.
// Only these two files include it.
#ifndef PDCC_CODEGEN_C_REPEAT_H
#define PDCC_CODEGEN_C_REPEAT_H

#include "codegen/c/c.h"

enum { STEP_ABSENT = -1 };

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
	int *at; // [round * nstep + step]: the operation; STEP_ABSENT: this round has no such step
} Repeat;

static inline int repeat_at(const Repeat *r, int round, int step)
{
	return r->at[round * r->nstep + step];
}

// Whether a table may say where a tensor lies.
bool place_is_listed(const Codegen *cg, const Place *p);
// Fills s->kinds from s->calls.
void steps_classify(Steps *s);
// Whether two parameters get the same argument.
bool arguments_match(const Codegen *cg, const KernelParam *a, const KernelParam *b);
// The repetition in [from, to) that saves most; rounds == 0: there is none that is worth a loop.
Repeat repeat_find(const Steps *s, int from, int to);

#endif
