// Sizes that a region finds, in its copy for the gradient. There they are other symbols: in the
// loop backwards they have other values, while those of the last round forward are still read.
#ifndef PDCC_GRADIENT_SIZES_H
#define PDCC_GRADIENT_SIZES_H

#include "ir/build/nest.h"

typedef struct FoundSize {
	const Dim *size;
	const Dim *back; // what it is called in the copy
	Op *finder;      // in the copy; NULL: none, see found_sizes_settle
} FoundSize;

typedef struct FoundSizes {
	int n, cap;
	FoundSize *list;
} FoundSizes;

// Of a region of op, in the order in which they are found. Not those that values from around op
// have; of variables of a loop those that change from round to round.
FoundSizes found_sizes_in(const Op *op, const Region *r);
// Whether one of them stands in a size of t, a tensor or an array.
bool found_sizes_stand_in(const FoundSizes *s, const Type *t);
// Looks which operations in front of `border` in the block, the copy, find the sizes. What reads a
// variable that has the size finds it nowhere: the variable must be there before.
void found_sizes_settle(FoundSizes *s, const Block *b, const Op *border);
// Whether code in the block says something of a size that nobody finds there.
bool found_size_is_missing(const FoundSize *s, const Block *b);
// Whether another operation of the block, or in it, says something of a size that op finds.
bool finds_read_size(const Op *op, const Block *b);
// Where the size is known in the block, which is that of the region: behind this operation, or from
// the beginning on (*behind is NULL). False: only further inside.
bool found_size_is_known(const FoundSize *s, const Block *b, Op **behind);
// The size as i64 [1].
Value *found_size_number(Builder *b, const FoundSize *s);
// t with a symbol of its own, and the same bound, for each size in which one of them stands;
// `plain`: but for those that are nothing but such a symbol which nobody finds.
const Type *found_sizes_open(Context *c, const FoundSizes *s, const Type *t, bool plain);
// The last operation that finds a size of t; NULL: none.
Op *found_sizes_last(const FoundSizes *s, const Type *t);
// A tensor or an array (`kind`) like t, with a symbol of its own, and the same bound, for each size
// that a run finds.
const Type *type_found_anew(Context *c, TypeKind kind, const Type *t);
// Gives the sizes their other names in a region.
void found_sizes_rename(Context *c, const FoundSizes *s, const Region *r);

#endif
