// The gradient operators of legacy programs. Uses frontend/job, frontend/control and ir/. Private
// to frontend/.
#ifndef PDCC_FRONTEND_GRADIENT_H
#define PDCC_FRONTEND_GRADIENT_H

#include "frontend/read/gradient_names.h"
#include "frontend/job/trace.h"

// One operator, whose variables are in scope: by its entry, or as the gradient of another.
bool translate_job(OpJob *j);
// Whether a legacy type is the gradient of an operator in the table.
bool gradient_is_known(const Context *c, const char *type);
// A gradient operator: op_gradient of the operator that it belongs to.
bool gradient_translate(OpJob *j);

// The row of the table that stands for a gradient operator because Paddle computes no derivative,
// after a warning; NULL: there is none (gradient_paddle.c).
const char *gradient_of_paddle(OpJob *j);

// The variable gets the gradient dv of v (NULL: zero), a tensor or an array. False after a
// diagnostic.
bool gradient_write(OpJob *j, const char *var, Value *v, Value *dv);

// Operations to differentiate, and what the slots of the operator that became them are there.
typedef struct Forward {
	const Paddle__OpDesc *desc; // slots and their variables, which `reads` and `writes` know
	TracedVar *reads, *writes;
	Op *first, *last;
} Forward;

// An argument slot with n variables that nobody else has.
Paddle__OpSlot *slot_new(Context *c, const char *name, size_t n);
// Translates an operator whose variables are in `scope`. False after a diagnostic.
bool forward_translate(OpJob *j, const Paddle__OpDesc *d, Scope *scope, Forward *out);
// Writes the gradients that j asks for: j is the gradient operator of f, in these slots' names.
bool gradient_of_translated(OpJob *j, const Forward *f);

// foo_triple_grad of a forward operator foo (gradient_match.c).
bool third_translate(OpJob *j, const char *forward);

// conditional_block_grad (gradient_branch.c).
bool branch_gradient_translate(OpJob *j);
// while_grad, recurrent_grad (gradient_loop.c).
bool loop_gradient_translate(OpJob *j);
bool recurrent_gradient_translate(OpJob *j);
// pylayer_grad (control_recurrent.c).
bool pylayer_gradient_translate(OpJob *j);

// The operation of that type, in place or not, that a gradient operation of Paddle 3 belongs to
// (gradient_match.c); NULL: none. `by`: foo_grad, where that is known and foo is asked for. False
// after a diagnostic: nothing tells which.
bool gradient_match(OpJob *j, const char *type, const OpTrace *by, const OpTrace **found);

#endif
