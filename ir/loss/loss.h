// Losses, measures and normalisations: what they mean as compositions and nests. Leaves operations
// of pd and loop; nobody calls it but through the operator table, and ir/fusion. Uses ir/build,
// ir/infer and ir/define.
#ifndef PDCC_IR_LOSS_LOSS_H
#define PDCC_IR_LOSS_LOSS_H

#include "ir/build/nest.h"

// layer_norm from axis `first` on, without scale and bias where they are NULL. NULL after a
// diagnostic.
Value *rows_normalised(Builder *b, Value *x, Value *scale, Value *bias, double epsilon, int first);

// (x - mean) / deviation over `n` axes, where the deviation, of which the caller may ask, is
// sqrt(variance + epsilon). NULL after a diagnostic.
Value *normalized(Builder *b, Value *x, int n, const int64_t *axes, double epsilon,
                  Value **deviation);
// All axes but `channel`, and but the first unless `batch`; how many.
int other_axes(int rank, int channel, bool batch, int64_t *axes);

// x with its channels split into the groups of attribute `groups` and channels of a group, and the
// `n` axes over which a group is normalised. NULL after a diagnostic.
Value *groups_split(Builder *b, const Op *op, Value *x, int *n, int64_t *axes);

// What spectral_norm finds of its weight, with axis `dim` in front as a matrix of `flat` sizes.
typedef struct Spectral {
	int64_t perm[MAX_RANK];    // of the weight's axes
	const Dim *dims[MAX_RANK]; // sizes after that
	const Dim *flat[2];        // rows and columns
	Value *u, *v;              // columns: the estimate of the singular vectors
	Value *sigma;              // rank 0: that of the largest singular value
} Spectral;

bool spectral_estimate(Builder *b, Op *op, Spectral *s);
// A tensor shaped as the weight as that matrix.
Value *spectral_matrix(Builder *b, const Spectral *s, Value *w);

#endif
