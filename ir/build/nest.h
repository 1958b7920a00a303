// Helpers for define hooks (ir/define/define_*.c): open a loop nest or a reduction, compute
// positions, load elements, close. Index arithmetic folds constants as it is built, so that
// definitions need no special cases for zero paddings or unit strides.
//
// A hook that meets a value that could not be built (NULL, after a diagnostic) may go on: every
// helper passes NULL through, and the hook ends with `return results[0] != NULL`.
#ifndef PDCC_IR_BUILD_NEST_H
#define PDCC_IR_BUILD_NEST_H

#include "ir/build/build.h"
#include "ir/core/core.h"

// An open loop.nest or loop.reduce: build the body with `b`, one position per dim in `at`.
typedef struct Nest {
	Builder b;
	Op *op;
	int rank;
	Value *at[MAX_RANK];
} Nest;

Nest nest_open(Builder *b, const Type *result);
// As nest_open for several results of the same dims.
Nest nest_open_several(Builder *b, int n, const Type *const *results);
// Yields the element (cast to the element type) and gives the tensor.
Value *nest_close(Nest *n, Value *element);
bool nest_close_several(Nest *n, Value *const *elements, Value **results);
// `kind` as in docs/internals.md, section 3; t: of the result, which is i64 for the positions of
// argmax and argmin.
Nest reduce_open(Builder *b, const char *kind, DType t, int n, const Dim *const *extents);
Value *reduce_close(Nest *n, Value *element);
// As reduce_open over the first `count` (an index) positions of an extent that it does not exceed.
Nest reduce_open_counted(Builder *b, const char *kind, DType t, const Dim *extent, Value *count);

// op(x) and op(x, y), on scalars, positions or tensors.
Value *apply1(Builder *b, enum OpCode code, Value *x);
Value *apply2(Builder *b, enum OpCode code, Value *x, Value *y);

// ---- positions ----------------------------------------------------------------------------------

Value *index_const(Builder *b, int64_t v);
Value *index_dim(Builder *b, const Dim *d);
Value *index_add(Builder *b, Value *x, Value *y);
Value *index_sub(Builder *b, Value *x, Value *y);
Value *index_mul(Builder *b, Value *x, Value *y);
Value *index_div(Builder *b, Value *x, Value *y); // neither may be negative
Value *index_mod(Builder *b, Value *x, Value *y); // likewise
Value *index_min(Builder *b, Value *x, Value *y);
Value *index_max(Builder *b, Value *x, Value *y);
// x + c, x * c.
Value *index_plus(Builder *b, Value *x, int64_t c);
Value *index_times(Builder *b, Value *x, int64_t c);
Value *index_where(Builder *b, Value *pred, Value *x, Value *y);

// ---- predicates: NULL stands for "always" in pred_and and load_or -------------------------------

Value *index_less(Builder *b, Value *x, Value *y);
Value *index_equal(Builder *b, Value *x, Value *y);
Value *pred_and(Builder *b, Value *p, Value *q);
// 0 <= x < extent.
Value *index_inside(Builder *b, Value *x, const Dim *extent);

// ---- elements -----------------------------------------------------------------------------------

Value *load(Builder *b, Value *tensor, Value *const *at);
// Element at `at` where pred holds, else other.
Value *load_or(Builder *b, Value *pred, Value *other, Value *tensor, Value *const *at);
// The element of a tensor with at most one element.
Value *load_scalar(Builder *b, Value *tensor);
Value *scalar_cast(Builder *b, Value *x, DType t);
Value *scalar_from_index(Builder *b, Value *x, DType t);
// An element of data as a position in [0, extent), checked at run time.
Value *index_from_data(Builder *b, Value *x, const Dim *extent, bool wrap);
// A number of f32, cut to a whole one, as the nearest position in [0, extent), which is constant
// and at most 2^24.
Value *index_near(Builder *b, Value *x, const Dim *extent);
// Fills from[0, count) with the positions in operand 0 that row `at` of operand 1 (its last axis)
// holds. In define_index.c.
void index_row(Builder *b, const Op *op, Value *const *at, int count, Value **from);
// The positions in [0, rows) that a vector or a column of indices names. In define_scatter.c.
Value *scatter_positions(Builder *b, Value *index, const Dim *rows, bool wrap);
// Whether `at` is 0 along an axis of that size and nobody has to look: no position from data, which
// is checked also where there is but one element.
bool position_is_first(const Value *at, const Dim *size);
// Whether a position is one from data, or computed from one, that a run checks.
bool position_is_checked(const Value *at);
// Linear position of `at` in a tensor of these dims, and back.
Value *index_linear(Builder *b, int rank, const Dim *const *dims, Value *const *at);
void index_split(Builder *b, Value *linear, int rank, const Dim *const *dims, Value **at);

// ---- whole tensors ------------------------------------------------------------------------------

Value *tensor_reshape(Builder *b, Value *x, int rank, const Dim *const *dims);
Value *tensor_flat(Builder *b, Value *x); // all elements along one axis
// The slices of axis 0 of x at the positions that `at` holds.
Value *tensor_rows(Builder *b, Value *x, Value *at);
// x broadcast to these sizes; x itself where it has them.
Value *tensor_spread(Builder *b, Value *x, int rank, const Dim *const *dims);
// The run fails where a size is not the one wanted (nor, with `one`, 1); nothing is asked of sizes
// that cannot be others. stretch.c.
bool check_sizes(Builder *b, int n, const Dim *const *have, const Dim *const *want, bool one,
                 const char *message);
// The run fails where one of these sizes is larger than what it has to lie in. stretch.c.
bool check_within(Builder *b, int n, const Dim *const *need, const Dim *const *have,
                  const char *message);
Value *tensor_transpose(Builder *b, Value *x, int rank, const int64_t *perm);
Value *tensor_cast(Builder *b, Value *x, DType t);
// Tensors one behind the other along an axis.
Value *tensor_concat(Builder *b, int n, Value *const *parts, int64_t axis);
// The positions [from, to) of an axis of x.
Value *tensor_slice(Builder *b, Value *x, int64_t axis, const Dim *from, const Dim *to);
Value *tensor_cut(Builder *b, Value *x, int64_t axis, int64_t from, int64_t to);
// Of tensors, or of scalars in a region.
Value *tensor_add(Builder *b, Value *x, Value *y);
Value *tensor_sub(Builder *b, Value *x, Value *y);
Value *tensor_mul(Builder *b, Value *x, Value *y);
Value *tensor_div(Builder *b, Value *x, Value *y);
// A tensor of rank 0 (it broadcasts with anything).
Value *tensor_number(Builder *b, DType t, double v);
// Reduces with keepdim, in the type of x; op is OP_PD_SUM, OP_PD_MAX ...
Value *tensor_reduce(Builder *b, enum OpCode code, Value *x, int n, const int64_t *axes);
// A vector along `axis` of a tensor of the given rank: shape 1 x .. x C x .. x 1.
Value *tensor_along(Builder *b, Value *vec, int rank, int axis);
// ---- choosing (select.c): the kernels of ir/ops/kernel.yaml -------------------------------------

// What was chosen of each row, and how many: tensors of i32.
typedef struct Chosen {
	Value *at, *count; // NULL after a diagnostic
} Chosen;

// Positions of the elements of each row (last axis) of x in order, at most `limit` of them;
// `above`: those over it.
Chosen select_sorted(Builder *b, Value *x, bool descending, const double *above, const Dim *limit);
// Boxes [.. x M x 4] in the order of `order`, without those that overlap too much with one before.
Chosen select_apart(Builder *b, Value *boxes, Chosen order, double threshold, double eta,
                    bool pixels);
// The linear positions of what is true.
Chosen select_true(Builder *b, Value *mask);
// A running sum, prod, max, min or logsumexp along an axis. `which` (may be NULL): of max and min,
// which element it is.
Value *scan_along(Builder *b, Value *x, const char *kind, int axis, bool exclusive, bool reverse,
                  Value **which);
// x [R x width] with the rows `at` [K] replaced by those of updates [K x width], or changed by them
// (see kernel.scatter). Positions must have been checked.
Value *scatter_rows(Builder *b, Value *x, Value *at, Value *updates, const char *how);
// Tells the run what size `count` (a tensor of one whole number) stands for.
bool bind_size(Builder *b, Value *count, const Dim *size);
// The same of one that keeps within its bound whatever the data is: nothing is left of it when
// nobody uses the size.
bool bind_certain_size(Builder *b, Value *count, const Dim *size);

// Axis in [0, rank) from one that may be negative. Inference has checked it.
static inline int axis_norm(int64_t axis, int rank)
{
	return (int)(axis < 0 ? axis + rank : axis);
}

#endif
