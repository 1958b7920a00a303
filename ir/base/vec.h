// Arrays that grow in an arena: `items` has room for `cap`, of which the first n are used. They
// double, so that n additions take time in the order of n; what they had before stays in the arena.
// Memory failure does not return (base.h).
#ifndef PDCC_IR_BASE_VEC_H
#define PDCC_IR_BASE_VEC_H

#include "ir/base/base.h"

// A copy of the first n items of `size` bytes with room for `cap`; the rest is zero.
void *vec_grow(Arena *a, const void *items, size_t n, size_t size, size_t cap);

// Makes room for item n: items is an array of any type, n and cap are integers.
#define VEC_ROOM(arena, items, n, cap)                                                         \
	do {                                                                                       \
		if ((n) == (cap)) {                                                                    \
			(cap) = (cap) ? 2 * (cap) : 8;                                                     \
			(items) = vec_grow((arena), (items), (size_t)(n), sizeof *(items), (size_t)(cap)); \
		}                                                                                      \
	} while (0)

#endif
