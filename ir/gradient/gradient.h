// Gradients (reverse mode): operations that compute, from the gradient of each result of an
// operation, that of each operand. Leaves behind ordinary operations; uses the operator table,
// define.h and build.c only.
//
// How a pass or the frontend uses it:
//
//	Duals *d = duals_new(c, NULL);
//	duals_want(d, x);                  // whose gradients are asked for, before anything depends on them
//	duals_add(&b, d, loss, one);       // what comes in from above: d loss = 1
//	gradient_ops(&b, d, first, last);  // all operations from first to last of one block, last to first
//	Value *dx = duals_get(&b, d, x);   // NULL: x does not reach what was added (its gradient is zero)
//
// New operations go where the builder says; it must stand behind `last` (or where everything up to
// it is visible). gradient_ops is duals_reach over the operations in order (which values depend on
// what is wanted) and then op_gradient over them backwards; a pass that treats some operations
// itself (pd.if, pd.while) makes the same two loops. Parts of a vec (builtin.combine,
// builtin.slice) have gradients of their own.
//
// Where the gradient of an operation comes from, in this order: the `grad:` expressions of its
// entry, its `gradient:` hook (gradient_*.c), its trait view, or what it means (op_define): the
// gradient of that, down to loop.nest, whose gradient is made by transposing its loads
// (gradient_nest.c). The operands and results of the operation are used by name, so it must be in
// the IR; what a definition computes again, cse merges with the forward operation.
#ifndef PDCC_GRADIENT_H
#define PDCC_GRADIENT_H

#include "ir/build/nest.h"

// Gradients of values that are being summed up.
typedef struct Duals Duals;
struct GradientJob;

// How rounds of loops choose between what they keep and what is computed again.
typedef enum RematHow {
	REMAT_AUTO,   // by what costs less time
	REMAT_ALWAYS, // the fewest bytes are kept
	REMAT_NEVER,  // as little as can be is computed again
} RematHow;

// How gradients are made.
typedef struct DualsHow {
	// Elements of arrays as the gradients of legacy programs go: what comes in for a read takes the
	// place of what there was, and an element that was written keeps what came in for it.
	bool overwrite;
	// What is built is going to be differentiated again: rounds of loops keep what the gradient
	// needs in arrays, not on stacks.
	bool arrays;
	// Loops of the block at hand that come to keep something for their gradient say with their
	// attribute `kept` how many variables that takes, their last ones, so that it can be undone.
	bool marks;
	// Operators that go step by step become the loops that they mean where the gradient goes
	// through them, so that the program has their loop once, with what it keeps.
	bool expand;
	RematHow remat;
} DualsHow;

// `how` may be NULL: none of it.
Duals *duals_new(Context *c, const DualsHow *how);
const DualsHow *duals_how(const Duals *d);
// Another one for what is in regions of the block at hand, that goes about it in the same way.
Duals *duals_like(const Duals *d);
// The gradient of v is wanted. Only float and complex tensors and scalars have one; for others
// nothing happens.
void duals_want(Duals *d, Value *v);
// What a variable of a loop hands backwards from round to round.
typedef enum LoopDual {
	LOOP_FLOWS,   // what comes in for it at the end of a round gives what it has at its beginning
	LOOP_STAYS,   // what comes in comes in for the end of every round: legacy programs that do not
	              // clear it
	LOOP_ADDS,    // nothing comes in at the end of a round; what rounds give is added up
	LOOP_FORGETS, // nothing comes in at the end of a round; what the first round gives is left
} LoopDual;
// For variable i of this loop; the others flow.
void duals_loop(Duals *d, const Op *loop, int i, LoopDual how);
LoopDual duals_loop_how(const Duals *d, const Op *loop, int i);
// Whether values of this type have a gradient.
bool type_moves(const Type *t);
static inline bool value_moves(const Value *v)
{
	return type_moves(v->type);
}
// Whether v is wanted, or depends on what is, as far as duals_reach has gone.
bool duals_wanted(const Duals *d, const Value *v);
bool dual_is_wanted(const Value *v, const void *duals); // the same, for op_reads_any
// Marks the results of op when it reads a value that is wanted.
void duals_reach(Duals *d, Op *op);
// Adds dv to the gradient of v; dv is cast to v's element type. A NULL dv is zero. False after a
// diagnostic.
bool duals_add(Builder *b, Duals *d, Value *v, Value *dv);
// The same for part i of a vec; whether anything came in for v; what did for part i (NULL:
// nothing).
bool duals_add_part(Builder *b, Duals *d, Value *v, int i, Value *dv);
bool duals_come(const Duals *d, const Value *v);
Value *duals_part(const Duals *d, const Value *v, int i);
// What has been added up so far, NULL: nothing. Of a vec: a combine, with zeros for parts that got
// nothing.
Value *duals_get(Builder *b, Duals *d, Value *v);
// Forgets what v has got: where a value's gradient is used up and the value gets another one
// (loops).
void duals_clear(Duals *d, const Value *v);

// Adds what the gradients of op's results give for its operands that are wanted. False after a
// diagnostic: an operation without a gradient, and not silently zero.
bool op_gradient(Builder *b, Op *op, Duals *d);
bool gradient_ops(Builder *b, Duals *d, Op *first, Op *last);
// By what the operation means: the gradients of what its definition builds.
bool gradient_by_meaning(struct GradientJob *g);
// Whether op_gradient knows what to do with operations of this code.
bool op_has_gradient(const Context *c, enum OpCode code);

// ---- forward mode (tangent.c): how values move when what is wanted does -------------------------
//
//	duals_want(d, x);
//	duals_add(&b, d, x, dx);       // how x moves
//	tangent_ops(d, first, last);   // all operations of one block from first to last, in order
//	duals_get(&b, d, y);           // how y does; NULL: not
//
// The tangents of an operation are computed right behind it. They come from the slopes of maps,
// from what an operation means (op_define), down to loop.nest, or from its gradient transposed;
// loops and branches pass them on beside the values. False after a diagnostic.
bool tangent_ops(Duals *d, Op *first, Op *last);

// ---- for gradient hooks (ir/gradient_*.c): `bool gradient_hook_NAME(GradientJob *g)` ------------

struct GradientJob {
	Builder *b;
	Op *op;
	Duals *duals;
};

// The gradient of result i; zeros where there is none.
Value *gradient_of(GradientJob *g, int result);
// Whether anything comes in for result i.
bool gradient_comes(GradientJob *g, int result);
bool gradient_wants(const GradientJob *g, int operand);
// The first operand that is wanted and has no rule, so that its gradient is not silently zero.
const char *gradient_rule_missing(const Duals *d, const Op *op);
// Adds to the gradient of an operand, summed over the axes along which the operand was broadcast.
bool gradient_give(GradientJob *g, int operand, Value *dv);
// dv, which has the dims of what `like` was broadcast to, summed to the dims of `like`.
Value *gradient_sum_to(Builder *b, Value *dv, const Type *like);
// A tensor of zeros, or a zero in a region.
Value *gradient_zero(Builder *b, const Type *t);
// v itself where it is real: what a complex result passes on is times the conjugate of the slope
// (Paddle's convention).
Value *gradient_conjugate(Builder *b, Value *v);
// Zeros for the gradient of v: of an array, as many elements as it has. NULL after a diagnostic.
Value *gradient_zeros_for(Builder *b, Value *v);

// array_sums.c: operations on arrays, zeros for each element of one, and sums of two. NULL after a
// diagnostic.
Value *gradient_array_write(Builder *b, Value *array, Value *at, Value *x);
Value *gradient_array_read(Builder *b, Value *array, Value *at);
Value *gradient_array_length(Builder *b, Value *array);
Value *gradient_array_first(Builder *b, Value *array, Value *n); // its first n elements
Value *gradient_array_empty(Builder *b, const Type *t);
Value *gradient_zeros_of(Builder *b, Value *x); // a tensor
Value *gradient_zero_array(Builder *b, Value *array);
Value *gradient_add_arrays(Builder *b, Value *x, Value *y);
// Ends a loop over positions that carries one array.
struct CountedLoop;
Value *gradient_array_end(struct CountedLoop *l, Value *next);
// gradient_sizes.c: v where a value of type t is read: that its sizes are those of t is checked
// when the program runs. NULL after a diagnostic.
Value *value_as(Builder *b, Value *v, const Type *t);
// gradient_nest.c: for op_gradient. The gradient of a loop.nest, given for the tensors that it
// loads.
bool gradient_nest(Builder *b, Op *nest, Duals *d);
// gradient_keep.c: the loop that counts its rounds (its last but one variable) and pushes on the
// stack behind that, made to one that keeps arrays; the loop backwards pops. With NULL for both:
// one that keeps nothing. NULL after a diagnostic.
Op *gradient_keep_arrays(Op *loop, Op *push, Op *pop);
// In a nest: the gradient of a loop.reduce, for scalars of the code around it; of a loop.load_or,
// for its `other`.
bool gradient_reduce(Builder *b, Op *reduce, Duals *d);
bool gradient_load_or(Builder *b, Op *load, Duals *d);
// Of operators that read one triangle of a symmetric matrix.
bool gradient_hook_symmetric(struct GradientJob *g);

#endif
