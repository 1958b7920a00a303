// Values of several types: what a variable holds that branches, or rounds of a loop, leave as
// others (frontend/control makes them). Private to frontend/.
#ifndef PDCC_FRONTEND_VARIANT_H
#define PDCC_FRONTEND_VARIANT_H

#include "frontend/job/job.h"

enum { MAX_VARIANTS = 6 };

// Whether v is the mark of several alternatives, which no operation takes.
static inline bool is_variant(const Value *v)
{
	return v && v->def && v->def->code == OP_BUILTIN_VARIANT;
}
// Whether v is the mark of an array with elements of several types (frontend/control): an array for
// each, and in the place of the number an array that says for every position of which type it is.
static inline bool is_mixed(const Value *v)
{
	return is_variant(v) && v->type->elems[0]->kind == TY_ARRAY;
}
static inline int variant_count(const Value *v)
{
	return is_variant(v) ? v->def->noperand - 1 : 1;
}
// Alternative k; a plain value is its only one.
static inline Value *variant_part(const Value *v, int k)
{
	return is_variant(v) ? op_operand(v->def, k + 1) : (Value *)v;
}
#endif
