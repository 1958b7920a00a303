// Loops of a counter, built as pd.while: for operators that go step by step (recurrent, rnn,
// gather_tree ...). Used by definitions (ir/define/define_*.c) and by the translator. Everything
// that fails has reported a diagnostic.
#ifndef PDCC_COUNTED_H
#define PDCC_COUNTED_H

#include "ir/build/build.h"
#include "ir/core/core.h"

typedef struct CountedLoop {
	Op *op;
	Block *body;
	Builder b; // at the end of the body
	int n;
	Value **args; // [n], in the body: the carried values
	Value *at;    // the step, one i64: from 0 on, or down to 0
} CountedLoop;

// A loop of `count` steps (one i64) that carries n values; its body is to be built with l->b.
bool count_begin(CountedLoop *l, Builder *b, Value *count, bool down, int n, Value *const *inits);
// What carried value i is, for people who read the IR and the C: "hidden". The counter is "step".
void count_name(CountedLoop *l, int i, const char *name);
void count_names(CountedLoop *l, const char *const *names); // of all
// Ends the body; next[i] has the type of inits[i].
bool count_end(CountedLoop *l, Value *const *next);
Value *count_result(const CountedLoop *l, int i);

// A number in a tensor of rank 0 or 1, which shape arithmetic knows.
Value *build_number(Builder *b, DType t, int rank, int64_t v);
// A size of x as one i64.
Value *build_size(Builder *b, Value *x, int axis);
// The slice of x at a position of axis 0; x with another slice there.
Value *build_step(Builder *b, Value *x, Value *at);
Value *build_set_step(Builder *b, Value *x, Value *at, Value *step);

#endif
