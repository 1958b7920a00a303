// The room of matrices: what factorisations and systems mean, as loops over nests, batched [batch x
// rows x cols]. It leaves behind operations of pd and loop; nobody else includes it, since the
// operator table has its hooks. It may use core, infer and define. Every function gives NULL, or
// false, after a diagnostic and where an operand is NULL.
#ifndef PDCC_IR_ALGEBRA_ALGEBRA_H
#define PDCC_IR_ALGEBRA_ALGEBRA_H

#include "ir/build/counted.h"
#include "ir/build/nest.h"
#include "ir/infer/infer.h"

// The operand as [batch x rows x cols]; what its leading axes are stays in its own type.
Value *matrices_of(Builder *b, Value *x);
// x [batch x ..] with the leading axes that `like` has before its last `inner` ones.
Value *matrices_back(Builder *b, Value *x, const Type *like, int inner);
Value *matrices_transposed(Builder *b, Value *x);
Value *matrices_product(Builder *b, Value *x, Value *y, bool transpose_x, bool transpose_y);
// The identity, once for each matrix of x, with `size` rows.
Value *matrices_identity(Builder *b, Value *x, const Dim *size);
// x with only what is on the diagonal and on one side of it; unit: ones on the diagonal.
Value *matrices_triangle(Builder *b, Value *x, bool upper, bool unit);
// Rows, or columns, from `first` on, `count` of them.
Value *matrices_part(Builder *b, Value *x, int axis, const Dim *first, const Dim *count);
Value *matrices_beside(Builder *b, Value *x, Value *y, int axis);
// The position that a tensor of one number holds.
Value *loop_position(Builder *b, Value *at, const Dim *size);

typedef struct Lu {
	Value *both;   // L without its ones below the diagonal, U on and above it
	Value *pivots; // i32 [batch x min(rows, cols)]: the row, counted from 1, that each row was
	               // swapped with
	Value *rows;   // i64 [batch x rows]: where each row came from
} Lu;

Lu matrices_lu(Builder *b, Value *x);
Value *matrices_cholesky(Builder *b, Value *x);
// Q [batch x rows x rows] and R [batch x rows x cols], with the signs that Householder reflections
// of LAPACK give.
bool matrices_qr(Builder *b, Value *x, Value **q, Value **r);
// The solution of a triangular system; `upper`: which triangle of a is read, before it is
// transposed.
Value *matrices_solve_triangle(Builder *b, Value *a, Value *y, bool upper, bool transposed,
                               bool unit);
Value *matrices_solve(Builder *b, Value *a, Value *y);

// Eigenvalues [batch x n], ascending, and the vectors as columns, of symmetric matrices.
bool matrices_eigen(Builder *b, Value *x, Value **values, Value **vectors);
// x = u diag(s) v^T with s descending; u [batch x rows x rows], v [batch x cols x min], or the
// other way round where there are more columns than rows: min x all of the larger side's vectors
// are complete.
bool matrices_svd(Builder *b, Value *x, bool full, Value **u, Value **s, Value **v);

#endif
