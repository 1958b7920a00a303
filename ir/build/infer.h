// Helpers for inference and definition hooks (infer.c; ir/infer, ir/define and their like):
// operands, axes, shapes, and shape arithmetic. Everything that fails has reported a diagnostic.
#ifndef PDCC_INFER_H
#define PDCC_INFER_H

#include "ir/core/core.h"

// ---- operands and attributes ------------------------------------------------------------------
// Operand i must be there and be a tensor of known rank; its type, or NULL.
const Type *infer_tensor(const Op *op, int i);
// As infer_tensor, with this rank.
const Type *infer_rank(const Op *op, int i, int rank);
// What the table says of operand i; the last one listed may repeat.
const OperandInfo *op_operand_info(const OpInfo *info, int i);
// The operand named so in the table; NULL when left out.
Value *op_operand_named(const Op *op, const char *name);
// The attribute, or its default from the table; NULL when neither is there.
const Attr *op_attr_or_default(const Op *op, const char *name);
// A number (int, float or bool attribute, or its default).
double op_number(const Op *op, const char *name);

// `axis` as 0 <= axis < rank; counts from the end when negative.
bool infer_axis(const Op *op, int64_t axis, int rank, int *out);
// All of them, each once, as flags per dim; an empty list means all dims when `none_is_all`.
bool infer_axes(const Op *op, int n, const int64_t *axes, int rank, bool none_is_all, bool *flags);

// ---- shapes -------------------------------------------------------------------------------------
// Sets result i's type. False is never returned: for `return infer_result(...)`.
bool infer_result(Op *op, int i, const Type *t);
bool infer_result_shape(Op *op, int i, DType t, int rank, const Dim *const *dims);
// Whether op stands in a branch, a loop or a function, or in what flattening made of one, so that a
// run may do without it.
bool op_may_not_run(const Op *op);
// Two sizes that a run needs equal: declared so, but checked in branches and loops, which may not
// run.
void infer_equal_dims(const Op *op, const Dim *a, const Dim *b);
// size / by, of a size that is a multiple of by: where that is not known, a run checks it.
const Dim *infer_divided(Context *c, const Dim *size, const Dim *by);
// A size that a run must find to be `least` or more; false after a diagnostic.
bool infer_at_least(const Op *op, const Dim *d, const Dim *least, const char *what);
// Two sizes that must be equal: learns when they differ symbolically, an error when both are
// constants. *out is the better known one. `what` names them in the error.
bool infer_same_dim(const Op *op, const Dim *a, const Dim *b, const char *what, const Dim **out);
// The same of all axes from `axis` on, of two types of one rank.
bool infer_same_dims(const Op *op, int axis, const Type *a, const Type *b, const char *what);
// Shape of a broadcast of two shapes, aligned at the last axis; 1 stretches. Sizes that may be 1 or
// not have been stretched by broadcast_operands.
// infer_broadcast_open: where the operands will be expanded, they stay open.
bool infer_broadcast(const Op *op, int ra, const Dim *const *a, int rb, const Dim *const *b,
                     int *rank, const Dim **dims);
bool infer_broadcast_open(const Op *op, int ra, const Dim *const *a, int rb, const Dim *const *b,
                          int *rank, const Dim **dims);
// What operands 0 and 1 broadcast to, with the first one's elements; NULL after a diagnostic.
const Type *infer_broadcast_pair(const Op *op);

// Before inference of an operation that broadcasts its operands: where only a run tells whether a
// size is 1, a pd.expand in front of op brings it to the size that it meets. False after a
// diagnostic.
bool broadcast_operands(Op *op);
// In front of op: what inference found that must be equal, and that only a run can tell, is
// checked. `mark`: how many such pairs there were before.
bool check_equal_sizes(Op *op, int mark);

// The size that op finds, called `what` (of its kind: "n_", "start_"), number k (-1: the only one)
// of them: named after the variable that op computes.
const Dim *infer_found(const Op *op, const char *kind, const char *what, int k);
// Whether the types of the results of op (an Op) have a size: for dim_sym_found.
bool infer_mentions(const Dim *sym, const void *op);
// `x.y` as part of a symbol.
const char *symbol_part(Context *c, const char *name);

// ---- shape arithmetic ---------------------------------------------------------------------------
enum { MAX_KNOWN = 64 };
// What operand i (an integer tensor) holds, as sizes; the number of elements, or -1 when not known.
// Looks through builtin.constant.
int infer_known(const Op *op, int i, const Dim *const **out);
int value_known(const Value *v, const Dim *const **out);
// Says what result i holds (copied). Does nothing when n is over MAX_KNOWN.
void infer_set_known(Op *op, int i, int n, const Dim *const *known);
// An `ints` or `dims` attribute, or the operand that overrides it (a tensor, or a list of tensors
// of one element each), as sizes; -1 stays -1. Returns how many, or -1 when there is neither, they
// are more than max, or the operand's contents are not known (no diagnostic: the caller knows what
// to say or do).
int infer_sizes(const Op *op, const char *attr, const Dim **out, int max);
// Shape arithmetic of a map (infer_math.c), once its types are set.
void infer_map_known(Op *op);

#endif
