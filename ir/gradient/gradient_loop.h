// A loop whose gradient is being made: what gradient_loop.c and gradient_revolve.c share.
#ifndef PDCC_GRADIENT_LOOP_H
#define PDCC_GRADIENT_LOOP_H

#include "ir/gradient/gradient_control.h"
#include "ir/gradient/gradient_sizes.h"

typedef struct Loop {
	GradientJob *g;
	Op *op;      // the loop as it was; gone once `forward` stands for it
	int n;       // its variables
	Op *forward; // with a counter and a stack behind them
	Op *push;    // where it pushes; its operands are added once it is known which are read
	Op *pop;     // NULL: nothing is pushed
	Captures k;
	FoundSizes sizes; // of its rounds
	Op *back;
	const Op *border; // in the body of `back`: the first operation behind the copy of the round
	int nsaved;    // stand-ins in the body of `back` for what is popped: for the n variables, then
	Value **saved; // for values that a round computed,
	Value **kept;  // which in the body of `forward` are these; [nsaved]
	int first_saved; // among the arguments of the body
	ValueMap *map;   // values of the body of `op` to those of `forward`
	int ncarried;    // variables whose end is what the round popped before this one began with,
	int *carried;    // behind the others in `back`; [ncarried]
	Value **ends;    // and what these are in its body; [ncarried]
	int nlogged, *logged; // variables, arrays, for which the rounds forward note what they change
	int64_t slots, most;  // checkpoints, of at most so many rounds (gradient_revolve.c); 0: a stack
	int nstate;           // further variables of `back`, and what they begin with
	Value **states;
} Loop;

// gradient_round.c, what all of it needs. A number as counters of rounds have it: i64 [1].
Value *loop_number(Builder *b, int64_t v);
// Erases operations of a round, and of regions in it, that nobody reads.
void loop_drop_unread(Block *round);
// Whether what a variable has at the beginning of each round needs no memory: what a round does not
// change (*step is 0), and counters. And that value, of a round given as i64 [1]; NULL: it must be
// kept. *ok is false after a diagnostic.
bool loop_start_is_known(const Loop *l, int var, int64_t *step);
Value *loop_start(Loop *l, Builder *b, int var, Value *round, bool *ok);

// A stand-in in the body of the loop backwards for what the round forward has as `kept`.
Value *loop_save(Loop *l, Block *body, const Type *t, Value *kept);

// gradient_asked.c: branches of the round hand on what those inside of them are taken on.
void loop_hand_on_asked(Loop *l);

// gradient_log.c: whether what a round does to this variable, an array, can be undone.
// loop_take_back puts that in front of a round backwards where `saved` arrays are read; loop_note,
// once all that is pushed is, has the loop forward note what it takes. False after a diagnostic.
bool loop_logs(const Loop *l, int var);
bool loop_take_back(Loop *l);
bool loop_note(Loop *l);

// gradient_stack.c: pushes what the loop backwards reads of `saved`, and pops it there. Once both
// loops are whole, loop_settle_stack gives the stack its type; one that nobody pushes on goes, with
// the region that makes it.
bool loop_push_and_pop(Loop *l);
bool loop_settle_stack(Loop *l);

// gradient_revolve.c: checkpoints in the place of a stack, as the attribute `checkpoints` of the
// loop says. loop_find_slots finds them; loop_revolves says, once the loop backwards is built,
// whether it can be done, and loop_revolve does it: it gives the starts of rounds, and the loop
// forward its new form.
void loop_find_slots(Loop *l);
bool loop_revolves(Loop *l);
bool loop_revolve(Loop *l);

// gradient_checkpoint.c: what checkpoints hold of a variable of this type: columns, tensors with a
// row for each of `slots` checkpoints and one more; a second one where rounds change sizes, which
// must have bounds. checkpoint_put gives the columns with v in row `at`; checkpoint_get what is
// there, of a type with sizes of its own. False, NULL after a diagnostic.
bool checkpoint_takes(Context *c, const Type *t);
int checkpoint_columns(const Type *t);
void checkpoint_rooms(Builder *b, int64_t slots, const Type *t, Value **columns);
bool checkpoint_put(Builder *b, Value *const *columns, Value *at, Value *v, Value **next);
Value *checkpoint_get(Builder *b, Value *const *columns, Value *at, const Type *t);

#endif
