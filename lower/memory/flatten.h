// What flatten.c and flatten_switch.c share.
#ifndef PDCC_FLATTEN_H
#define PDCC_FLATTEN_H

#include "ir/core/core.h"

enum { MAX_CASES = 256 };

// pd.if operations, each in the else region of the one before, that compare `value` with `cases`.
// What is left over is the else region of the last.
typedef struct SwitchChain {
	Value *value;
	int n;
	int64_t cases[MAX_CASES];
	const Op *ifs[MAX_CASES];
} SwitchChain;

// Whether a chain of two or more begins at `op`.
bool switch_find(const Op *op, SwitchChain *c);

#endif
