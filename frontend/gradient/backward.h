// A gradient operator of a legacy program on its way, and the forward operator that it belongs to
// (gradient_forward.c). Private to frontend/gradient.
#ifndef PDCC_FRONTEND_BACKWARD_H
#define PDCC_FRONTEND_BACKWARD_H

#include "frontend/gradient/gradient.h"

// One gradient operator on its way.
typedef struct Backward {
	OpJob *j;
	const char *forward; // its type
	int order;
	const OpTrace *trace; // of the forward operator; NULL: not found
	const OpTrace *first; // order 2: of the gradient operator that is differentiated
} Backward;

// The operators that w belongs to, where there are such. False after a diagnostic: nothing tells.
bool backward_traces(Backward *w);
// What comes in is never left aside. False after a diagnostic.
bool backward_all_come_in(const Backward *w);
// What comes in for variable i of an output of the forward operator; NULL: nothing.
Value *backward_given(Backward *w, const char *slot, size_t i, const Type *type);
// The forward operator's operations, in place or anew. False after a diagnostic.
bool backward_forward(Backward *w, Forward *out);
// The operations of backward_forward have whole numbers whose gradient is asked for as f64: the
// variable and its gradient instead of these. False after a diagnostic.
bool backward_whole(Backward *w, const char *slot, size_t i, Value **v, Value **dv);
// What the gradient operator is given of the forward operator's results stands for what was
// computed again.
void backward_use_results(Backward *w, const Forward *f);

#endif
