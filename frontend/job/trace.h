// What the translator remembers of operators for their gradients (job.c). Private to frontend/.
#ifndef PDCC_FRONTEND_TRACE_H
#define PDCC_FRONTEND_TRACE_H

#include "frontend/job/job.h"

// A variable and what it held when an operator read or wrote it.
typedef struct TracedVar {
	const char *var;
	Value *value;
	struct TracedVar *next;
} TracedVar;

// One operator that has been translated, the latest first.
typedef struct OpTrace {
	const Paddle__OpDesc *desc;
	TracedVar *reads, *writes;
	Block *block;
	Op *first, *last; // what it became; NULL: nothing
	struct OpTrace *before;
} OpTrace;

// What the variable held there; NULL: it is not in the list.
Value *traced_value(const TracedVar *list, const char *var);
void trace_read(OpJob *j, const char *var, Value *v);
void trace_write(OpJob *j, const char *var, Value *v);
// Around the translation of an operator.
void trace_begin(OpJob *j);
void trace_end(OpJob *j);

#endif
