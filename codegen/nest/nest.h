// Loops and regions as C: nests, reductions in lanes, kernels that choose. Leaves functions in a
// Codegen. Uses codegen/func and codegen/text; what C and CUDA print in the same way.
#ifndef PDCC_NEST_H
#define PDCC_NEST_H

#include <math.h>

#include "codegen/func/func.h"
#include "lower/analysis/nest.h"

// One C loop: a block argument, or several merged into their last.
struct Loop {
	const Value *arg;
	const Dim *extent;
	const char *var;         // set by loop_open
	const char *first, *end; // C expressions of a part of the range; NULL: all of it
	const char *step;        // C expression; NULL: 1
	bool only;               // of the part: one round, its index is `first`, without a for
	const IndexSpan *part;   // in numbers; NULL: all of the range, or not known
	int nlocal;              // names that stood before loop_open
};

// As nest_loops; names the arguments that are 0.
int loops_merge(Scalars *s, const Block *b, const Dim *const *extents, Loop *loops);
// Prints the head of a loop (nothing when its extent is 1) and names its argument.
void loop_open(Scalars *s, Loop *loop, int *depth, Text *out);
// A reduction with a count ends its loop there. False after a diagnostic.
bool loop_count(Scalars *s, const Op *reduce, Loop *loop);
// The names in it are free again behind it.
void loop_close(Scalars *s, const Loop *loop, int *depth, Text *out);

typedef struct Accumulator {
	ReduceKind kind;
	const Type *type;    // of what is compared or added
	const char *name;    // the variable
	const char *element; // the accumulator itself: `acc0`, or `acc0[l]`
	const char *best;    // argmax, argmin: where the best value is kept …
	const char *bests;   // … in lanes: the array
	bool narrow;         // argmax, argmin in lanes: positions are of 32 bits
	bool window;         // … not in lanes: of few elements
	bool masks;          // any, all in lanes: 0 and 1 of 32 bits
	bool keeps_nan;      // max, min: once NaN, always NaN (see accumulator_keep_nan)
} Accumulator;

ReduceKind reduce_kind(const Op *op);
int reduce_lanes(const Target *target, const Op *op); // of a vector that accumulates
// Whether positions of its elements fit in 32 bits, as most types do of which the best is looked
// for.
bool reduce_positions_are_short(const Op *op);
const char *reduce_neutral(Scalars *s, const Op *op, ReduceKind kind,
                           const Type *t); // NULL after a diagnostic
// Declares it with the neutral element; lanes: how many side by side (0: a scalar).
bool accumulator_open(Scalars *s, const Op *op, int lanes, Accumulator *a, int depth, Text *out);
void accumulator_add(Scalars *s, const Accumulator *a, const char *value, const char *index,
                     int depth, Text *out);
// What is accumulated in `element`, as a value of the result's type.
const char *accumulator_value(Arena *a, const Accumulator *x);
// Another accumulator's element into that of this one, and, of positions, the best value: the first
// of equal ones, wherever it comes from. `last`: nothing comes behind it.
void accumulator_join(Scalars *s, const Accumulator *a, const char *other, const char *best,
                      bool last, int depth, Text *out);
// As Paddle 3 has it: whatever the order, NaN is what comes out.
bool accumulator_stays_nan(const Accumulator *a);
// For max and min of floats whose elements are not taken one after the other: NaN in the
// accumulator then says that there was one, and reduce_again_print prints what does it in order.
void accumulator_keep_nan(Accumulator *a);
bool reduce_again_print(Scalars *s, const Op *op, const Accumulator *a, Loop *loops, int nloop,
                        int depth, Text *out);

// What rounds of the loop around the innermost share.
typedef struct Terms {
	PointerMap moves;  // Op -> itself: what that loop changes
	PointerMap before; // Op -> itself: what is computed before its rounds
	const Value *kept[16];
	const char *array[16]; // where
	int n;
} Terms;

// A nest being printed.
typedef struct Nest {
	Scalars s;
	KernelFunc *k;
	const Op *op;
	const Block *body;
	Text *out;
	int nloop;
	Loop loops[MAX_RANK];  // outermost first
	Loop layout[MAX_RANK]; // the same in the order of the result's dims
	PointerMap levels; // Value in the body -> its level + 1, as a pointer: the innermost loop that
	                   // it depends on
	Needed needed;     // what is printed under the predicates that are known
	struct LaneTile *tile; // lanes.c, while it prints
	Terms *terms;          // what rounds share
	bool turned;           // the last two loops run in the other order
	bool square;           // they go over squares of vectors: turn.c
	bool tiny;             // results are put together in local arrays: see tiny.c
} Nest;

void nest_init(Nest *n, KernelFunc *k, Text *out);
void nest_levels_find(Nest *n);
int nest_level(const Nest *n, const Value *v); // 0: depends on no loop
bool nest_needed(const Nest *n, const Op *op);
// Finds it anew, after the known predicates have changed.
void nest_renew(Nest *n);
// A predicate of a needed load_or or where in the block that `fixed` says stays the same; NULL:
// none.
const Value *nest_predicate(Nest *n, const Op *const *ops, int nop,
                            bool (*fixed)(Nest *n, const Value *v));
// The loop at `level` as several where its body chooses by its index, each by `print`; else *done
// is false, and nothing is printed. parts.c.
typedef bool NestPrint(Nest *n, int level, int depth);
bool nest_parts_print(Nest *n, int level, int depth, NestPrint *print, bool *done);
bool nest_has_reductions(const Nest *n);
// The innermost loop as two where what it reads is there up to a size of the run; as above. cut.c.
bool nest_cut_print(Nest *n, int depth, NestPrint *print, bool *done);
// The loops of a reduction begin and end where the condition of its terms holds, if `fixed` says
// that it stays the same; it is then the last of the known predicates. False: nothing is changed.
// clip.c.
bool reduce_clip(Nest *n, const Op *reduce, Loop *loops, int nloop,
                 bool (*fixed)(Nest *n, const Value *v), int depth);
// Where the results of these rounds stand; NULL after a diagnostic.
const char *nest_result_index(Nest *n);
bool nest_stores_print(Nest *n, int depth);
// The scalars of the innermost loop, and the stores.
bool nest_element_print(Nest *n, int depth);

// terms.c: what rounds of the loop around the innermost share (NULL: too little); prints that, of a
// strip of the innermost loop; names it in it.
Terms *nest_terms_find(Nest *n);
bool nest_terms_print(Nest *n, int strip, int depth);
void nest_terms_name(Nest *n);

// device/reduce.c: a reduction that threads do together.
bool team_reduce_print(Scalars *s, const Op *op, Loop *loops, int nloop, int depth, Text *out);

// turn.c: whether the nest makes columns of rows; its loops stand in the order for that then.
// Prints the last two.
bool nest_turn_find(Nest *n);
bool nest_turn_print(Nest *n, int depth);

// lanes.c: the innermost loop in tiles, reductions outside of the tile.
bool nest_wants_lanes(Nest *n);
bool nest_lanes_print(Nest *n, int depth);

bool reduce_print(Scalars *s, const Op *op, int depth, Text *out);

bool nest_emit(KernelFunc *k); // nest.c

bool nest_statement(KernelFunc *k); // nest.c: a nest of one element as statements of model_run
// Such a nest of one result as an expression; NULL: it needs statements.
const char *nest_number(KernelFunc *k);

// tiny.c: the elements of a nest that is less work than a call is; 0: it is none. The local arrays
// of its results, and, once they hold everything, stores of these. Where result i is put together.
int64_t nest_tiny_elements(const Nest *n);
void nest_tiny_declare(Nest *n, int64_t elements);
// Whether each round of the loop at `level` of such a nest is a part. What holds loops itself is
// not written out.
bool nest_loop_is_written(const Nest *n, int level);
void nest_tiny_store(Nest *n, int64_t elements);
const char *nest_result(Nest *n, int i);

#endif
