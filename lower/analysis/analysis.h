// Questions about IR: rounds of loops, loops among blocks, what must wait for what, orders of dims.
// Leaves the IR as it was. Uses ir/ and lower/pass.
#ifndef PDCC_LOWER_ANALYSIS_ANALYSIS_H
#define PDCC_LOWER_ANALYSIS_ANALYSIS_H

#include "ir/build/build.h"

// trip_count.c

// How many rounds a pd.while takes: exactly, and at most; either is NULL when that is not known.
// Sizes may hold symbols that are bound outside of the loop only. Returns whether `at_most` is
// known. Before nests are made.
bool while_trip_count(Context *c, const Op *loop, const Dim **exact, const Dim **at_most);
// Where the counter of a loop begins and what it is compared with, when numbers in front of the
// loop decide: base + offset.
typedef struct TripEnd {
	Value *base; // an integer of one element; NULL: 0
	const Dim *offset;
} TripEnd;

typedef struct TripEnds {
	TripEnd first, end;
	int64_t step;   // less than 0: downwards
	bool inclusive; // the last round is that at `end`
} TripEnds;

bool while_trip_ends(Context *c, const Op *loop, TripEnds *out);
// Whether a symbol of d gets its value in op's regions, so that d means nothing in front of op.
bool dim_changes_in(const Dim *d, const Op *op);

// deps.c

// Which steps of a program must wait for which, by the bytes that they touch.
enum {
	ACCESS_READ = 1,
	ACCESS_WRITE = 2,
	ACCESS_UPDATE = 4 // atomically: updates may come in any order
};

// Bytes from `begin` to `end` of a memory. Two memories, which the caller numbers, share no bytes.
typedef struct Access {
	int memory;
	unsigned how; // of the above, or several
	const Dim *begin, *end;
} Access;

typedef struct Accesses {
	int n, cap;
	Access *items;
} Accesses;

void accesses_add(Arena *a, Accesses *set, Access access);
void accesses_add_all(Arena *a, Accesses *set, const Accesses *more);
// Whether what two steps touch keeps them in order.
bool accesses_meet(Context *c, const Accesses *x, const Accesses *y);

// The steps that one must wait for, the last one first; none for which another of them waits.
typedef struct Waits {
	int n;
	const int *steps;
} Waits;

// For each of n steps in the order of the program. Steps of which neither waits for the other may
// run at one time.
const Waits *deps_find(Context *c, Arena *a, int n, const Accesses *steps);

// structure.c: loops, ifs and switches among blocks

typedef enum BlockTailKind {
	TAIL_THROUGH, // goes on in the next block, or ends the program
	TAIL_TEST,    // of a loop: leaves it, or goes on in the next block
	TAIL_ROUND,   // of a loop: back to its head
	TAIL_IF,      // its first part comes next
	TAIL_SWITCH,
	TAIL_PART, // of an if or switch: part `part` of it comes next
	TAIL_JOIN  // its last part is over; part 1: it had no else
} BlockTailKind;
typedef struct BlockTail {
	BlockTailKind kind;
	const Op *owner; // the branch whose parts these are, or the test of the loop
	int part;
} BlockTail;

// (*tails)[i]: how the i-th block of the region ends. False where the blocks do not nest.
bool blocks_nest(Arena *a, const Region *r, BlockTail **tails);

// loop_blocks.c: loops among blocks

// The branch back to that block; NULL: it does not begin a loop.
const Op *loop_back(const Block *head);
// Whether a branch on a condition is that of a loop: it alone leaves the blocks between the head
// and the way back.
bool branch_is_of_loop(const Op *op);
bool branch_enters_loop(const Op *op); // from outside, or for another round
// What a branch was before it was one: "while", "switch" or "if".
const char *branch_kind(const Op *op);
bool branch_joins(const Op *op);  // to where the parts of a branch meet
bool block_joins(const Block *b); // whether they meet there
bool op_is_silent(const Op *op);  // nothing is done for it
// Loops whose rounds are known on entry: the branch at the head's end, which never looks at its
// condition; NULL: another loop.
const Op *loop_counted(const Block *head);
const Dim *loop_rounds(const Block *head); // as far as the host knows; NULL: it does not
// What only counts: an argument of a block, an operation. It has no memory, and nothing is printed
// for it.
bool argument_counts(const Value *arg);
bool op_counts(const Op *op);

// fuse_shape.c: looking through reshapes

// The indices in shape `to` of the element at `index` in shape `from` (same elements). False when
// the shapes do not go together axis by axis; with b NULL nothing is built.
bool index_reshape(Context *c, Builder *b, const Type *from, Value *const *index, const Type *to,
                   Value **out);
// How many divisions that takes; -1 when it does not work.
int index_reshape_divisions(Context *c, const Type *from, const Type *to);

// found_sizes.c

// Whether the bytes of some value hang on that size.
bool memory_mentions(const Op *module, const Dim *sym);

// dim_order.c

// Whether a >= b can be proved for all symbols of at least 1.
bool dim_at_least(Context *c, const Dim *a, const Dim *b);
// Whether d is never more than `most`, by its form alone, empty sizes included: `most` is d, or the
// larger of several of which one is.
bool dim_within(const Dim *d, const Dim *most);

#endif
