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

// The latest operator of this type that fits best.
const OpTrace *backward_trace(const Backward *w, const char *type, bool second);
// What comes in is never left aside. False after a diagnostic.
bool backward_all_come_in(const Backward *w);
// Whether v can be the gradient of what has this type: constant sizes agree. False after a
// diagnostic.
bool backward_suits(Backward *w, const char *slot, const Value *v, const Type *type);
// What comes in for variable i of an output of the forward operator; NULL: nothing.
Value *backward_given(Backward *w, const char *slot, size_t i, const Type *type);
// Whether what the forward operator had is what the gradient operator is given, each variable once.
bool backward_stays(Backward *w);
// Else: the forward operator once more, and the copies of the values given that it reads. False
// after a diagnostic.
bool backward_again(Backward *w, Paddle__OpDesc **out, Scope **vars);
// The operations of backward_again have whole numbers whose gradient is asked for as f64: the
// variable and its gradient instead of these. False after a diagnostic.
bool backward_whole(Backward *w, const char *slot, size_t i, Value **v, Value **dv);
// What the gradient operator is given of the forward operator's results stands for what was
// computed again.
void backward_use_results(Backward *w, const Forward *f);

#endif
