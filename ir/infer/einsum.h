// An einsum equation read: which letter every axis of every operand and of the result has.
#ifndef PDCC_EINSUM_H
#define PDCC_EINSUM_H

#include "ir/build/build.h"

// From EINSUM_DOTS on the labels of the axes that `...` stands for.
enum { EINSUM_OPERANDS = 8, EINSUM_DOTS = 52, EINSUM_LABELS = 64 };

typedef struct Einsum {
	int n; // operands
	bool ones;
	int rank[EINSUM_OPERANDS];
	int label[EINSUM_OPERANDS][MAX_RANK];
	int nout, out[MAX_RANK];        // labels of the result
	const Dim *size[EINSUM_LABELS]; // NULL: not used
} Einsum;

// False after a diagnostic.
bool einsum_read(Op *op, Einsum *e);
// Whether a run may find sizes of the label that are 1 beside another.
bool einsum_stretches(const Einsum *e, int label);
// Operand i with the axes of such labels as large as all operands have them together, which the run
// checks; one that surely is 1 stays. NULL after a diagnostic.
Value *einsum_spread(Builder *b, const Einsum *e, int i, Value *x);

#endif
