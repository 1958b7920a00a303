// Inside of the memory plan: buffers with lifetimes go in, offsets come out. plan.c finds the buffers,
// plan_pack.c and plan_symbolic.c pack them.
#ifndef PDCC_PLAN_H
#define PDCC_PLAN_H

#include "../ir/ir.h"

enum { PLAN_ALIGN = 64 };

// ---- plan_pack.c ------------------------------------------------------------------------------------------

// Bytes that are needed from operation number `first` to operation number `last`, both included.
typedef struct PackItem {
	int64_t size;   // in: a multiple of PLAN_ALIGN
	int first, last;
	int64_t offset; // out
} PackItem;

// Gives every item an offset such that no two that live at the same time overlap. Returns the size of it all.
int64_t pack_items(Arena *scratch, int n, PackItem *items);
// The most bytes that are live at any one operation: no plan is smaller.
int64_t pack_floor(int n, const PackItem *items);

// ---- plan_symbolic.c --------------------------------------------------------------------------------------

// As PackItem for sizes that may be symbolic.
typedef struct SizedItem {
	const Dim *size; // in: bytes
	int first, last;
	const Dim *offset; // out
} SizedItem;

const Dim *pack_sized(Context *c, Arena *scratch, int n, SizedItem *items);

// ---- plan_scale.c -----------------------------------------------------------------------------------------

// Replaces sizes by sizes that are at least as large, and that have as few factors as can be.
void sizes_restate(Context *c, int n, SizedItem *items);

// ---- dim_order.c ------------------------------------------------------------------------------------------

// Whether a >= b can be proved for all symbols of at least 1.
bool dim_at_least(Context *c, const Dim *a, const Dim *b);

#endif
