// An einsum equation read: which letter every axis of every operand and of the result has.
#ifndef PDCC_EINSUM_H
#define PDCC_EINSUM_H

#include "ir/core/core.h"

enum { EINSUM_OPERANDS = 8, EINSUM_LABELS = 64 };

typedef struct Einsum {
	int n; // operands
	int rank[EINSUM_OPERANDS];
	int label[EINSUM_OPERANDS][MAX_RANK];
	int nout, out[MAX_RANK];        // labels of the result
	const Dim *size[EINSUM_LABELS]; // NULL: not used
} Einsum;

// False after a diagnostic.
bool einsum_read(Op *op, Einsum *e);

#endif
