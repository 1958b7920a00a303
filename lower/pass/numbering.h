// Value numbering: the operations that are visible at some place, found by what they say
// (numbering.c). A region sees what encloses it, and nobody sees what a region found once it ended.
#ifndef PDCC_LOWER_PASS_NUMBERING_H
#define PDCC_LOWER_PASS_NUMBERING_H

#include "ir/base/map.h"
#include "ir/core/op.h"

typedef struct Numbered Numbered;

typedef struct Numbering {
	Arena *arena;       // outlives the numbering
	PointerMap entries; // hash -> the newest Numbered that has it
	Numbered *newest;
} Numbering;

void numbering_init(Numbering *n, Arena *a);
// A visible operation without regions that is equal to `op`: its results are op's. Without one
// NULL, and `op` is visible from now on.
Op *numbering_meet(Numbering *n, Op *op);
// What has become visible since `mark`, the newest then, is forgotten.
void numbering_leave(Numbering *n, Numbered *mark);

// Whether two operations are equal but for what they take.
bool op_alike(const Op *a, const Op *b);

#endif
