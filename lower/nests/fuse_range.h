// What is known of indices (fuse_range.c). Private to lower/nests/fuse*.c.
#ifndef PDCC_FUSE_RANGE_H
#define PDCC_FUSE_RANGE_H

#include "ir/core/core.h"

// What is known about an index: lo <= v <= hi, and v < below (a size, maybe symbolic; NULL: not
// known).
typedef struct Range {
	int64_t lo, hi;
	const Dim *below;
} Range;

static inline bool value_is_index(const Value *v)
{
	return v && v->type->kind == TY_INDEX;
}

static inline bool value_is_bool(const Value *v)
{
	return v && v->type->kind == TY_SCALAR && v->type->dtype == DT_BOOL;
}

// The number that a constant of a region is: of bools, and of positions.
bool scalar_constant(const Value *v, int64_t *out);
Range range_of(const Value *v);

#endif
