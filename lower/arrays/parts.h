// Inside of the pass that lowers tensor arrays to tensors: which arrays share their memory, how
// large it is, and what became of each array. arrays.c is the pass, arrays_find.c and arrays_size.c
// look, arrays_ops.c and arrays_join.c rewrite operations; arrays_forward.c is a pass of its own.
#ifndef PDCC_LOWER_ARRAYS_PARTS_H
#define PDCC_LOWER_ARRAYS_PARTS_H

#include "ir/build/build.h"
#include "lower/pass/pass.h"

// Arrays that are values of one variable, or become each other through control flow: they lie in
// memory alike.
typedef struct ArrayClass {
	struct ArrayClass *same; // it was found to be part of that one
	struct ArrayClass *next;
	int id;           // by the order of the program
	int group;        // which classes are as long as this one; -1: nobody knows of any
	const char *name; // of the first array; gives the symbols theirs
	DType dtype;      // of the elements, with their rank and dims
	int rank;
	const Dim *dims[MAX_RANK];
	bool typed;          // some element is known
	bool open;           // elements differ in size: a slice holds up to `slice` of their elements
	bool holes;          // positions may be skipped
	const Dim *capacity; // slices
	const Dim *slice;
} ArrayClass;

// What an array is as tensors.
typedef struct ArrayGroup {
	const Value *array; // NULL: an empty place in the table
	ArrayClass *c;
	Value *data;   // [capacity x dims...], or [capacity x slice] when open
	Value *length; // i64 [1]
	Value *extra;  // open: sizes, i64 [capacity x rank], -1 where nothing was written; holes: what
	               // was, bool [capacity]
} ArrayGroup;

enum { GROUP_MAX = 3 }; // tensors of an array

typedef struct Arrays {
	PassContext *p;
	Context *ctx;
	Arena *arena;                // gone after the pass
	ArrayClass *classes, **tail; // in the order of the program
	int ngroup, cgroup;
	ArrayGroup *groups; // a table by value
	int nfeed, nfetch;  // columns; those of parts come behind all others
} Arrays;

static inline bool type_is_array(const Type *t)
{
	return t->kind == TY_ARRAY;
}

// ---- arrays_find.c ------------------------------------------------------------------------------

// Finds all arrays and their classes. False after a diagnostic.
bool arrays_find(Arrays *a);
ArrayGroup *array_group(Arrays *a, const Value *v); // NULL: not there
ArrayClass *array_class(ArrayClass *c);             // the one that it is part of

// ---- arrays_forward.c ---------------------------------------------------------------------------

// Whether a tensor of one integer is known to hold `*n`.
bool position_number(const Value *v, int64_t *n);
// v without casts, other shapes and added constants, whose sum is added to *offset.
const Value *position_base(const Value *v, int64_t *offset);
// The array whose length v is; NULL: something else.
const Value *position_length_of(const Value *v);

// ---- arrays_size.c ------------------------------------------------------------------------------

// Capacities, sizes of slices, and whether positions may be skipped. Symbols that are capacities
// are declared in front of everything.
void arrays_size(Arrays *a);
// What the caller says of an array that is fed: the "count" of its elements, the "size" of a slice.
const Dim *array_feed_symbol(Arrays *a, const Op *feed, const char *what);

// ---- arrays_ops.c -------------------------------------------------------------------------------

// Types of the tensors of a class; returns how many.
int array_part_types(Arrays *a, const ArrayClass *c, const Type **types);
// The tensors of a group, in the order of the types, and back.
int array_parts(const ArrayGroup *g, Value **parts);
void array_set_parts(ArrayGroup *g, int n, Value **parts);
// Inside of a nest: the slice at position `at` (a scalar), which must hold something.
Value *array_slice_index(Builder *b, const ArrayGroup *g, Value *at);
// The dims of a type as i64 [rank].
Value *array_sizes_of(Builder *b, const Type *t);
// loop.bind.
bool array_bind(Builder *b, Value *sizes, int n, const Dim *const *dims);
// What sym, a size that an operation on an array finds, is at most; keeps a bound that is known
// already.
void array_set_bound(Context *c, const Dim *sym, const Dim *bound);
// Replaces an operation on arrays (not control flow) by operations on tensors. False after a
// diagnostic.
bool array_op_rewrite(Arrays *a, Op *op);

// ---- arrays_join.c ------------------------------------------------------------------------------

// pd.array_to_tensor.
bool array_join_rewrite(Arrays *a, Op *op);

// ---- stacks_resolve.c ---------------------------------------------------------------------------

// What ends region r; NULL: it gives nothing.
const Op *region_end(const Op *op, int r);
// Every use of a stack sees the operation that made it. False after a diagnostic.
bool stacks_resolve(Region *r);

// ---- narrow.c -----------------------------------------------------------------------------------

// Takes values off a stack, which `create` made, that it need not hold.
void stack_narrow(Op *create, Arena *arena);

#endif
