// The types of operators: what their results are, from operands and attributes, and what shape
// arithmetic knows. Leaves result types set, operators that bind sizes in front where only data
// tell them, or diagnostics. Uses ir/build and what is below.
#ifndef PDCC_IR_INFER_INFER_H
#define PDCC_IR_INFER_INFER_H

#include "ir/build/infer.h"

// A size that op finds when it runs, named after its place in the program; at most `bound` (NULL:
// not known).
const Dim *infer_found_size(const Op *op, const Dim *bound);
// The number of true elements of the mask that is index number i of an index_put.
const Dim *index_put_found(const Op *op, int i);
// How much of an axis of the value put_along_axis reads: as much as there are places, if both are
// known.
const Dim *put_along_used(const Type *index, const Type *value, int d);
// What the indices of index_put in front broadcast to (`rank`, `dims`) with index i, of type t; the
// definition sees to it that a run checks that.
bool index_put_spread(const Op *op, int i, const Type *t, int *rank, const Dim **dims);

// Says where in the program random numbers are drawn: two draws with one seed must differ.
void infer_keep_place(Op *op);
// The attribute `shape`, with a size of the first operand where the attributes
// `input_dim_idx` and `output_dim_idx` say; its rank, or -1 after a diagnostic.
int infer_batch_size_like(const Op *op, const Dim **shape);
// The number that a value of one element holds, when the program itself says it.
bool constant_number(const Value *v, double *out);
// The result of a contraction of whole numbers, if it was inferred, is exact: infer_product.c.
bool infer_exact(Op *op, bool inferred);
// Whether quantised numbers may have so many bits; an error of op otherwise.
bool infer_bits(Op *op, int64_t bits);

#endif
