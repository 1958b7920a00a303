// The shapes of kernel.attention (attention.c).
#ifndef PDCC_IR_INFER_ATTENTION_H
#define PDCC_IR_INFER_ATTENTION_H

#include "ir/core/core.h"

// The regions of kernel.attention.
enum {
	ATTENTION_QUERY,
	ATTENTION_KEY,
	ATTENTION_VALUE,
	ATTENTION_SCORE,
	ATTENTION_EPILOGUE,
	ATTENTION_REGIONS
};
// What the positions that a region gets run over: [batch.. x rows or keys x columns, depth or
// keys], or, for the epilogue, the result.
const Type *attention_domain(const Op *op, int region);
// The axis of [batch.. x rows x columns] that axis i of the result is; of a split kernel's, axis i
// behind the parts.
int attention_axis(const Op *op, int i);
bool attention_is_split(
	const Op *op); // then the first axis of its results counts parts of the keys

#endif
