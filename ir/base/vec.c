// Arrays that grow (vec.h). Used wherever it is not known beforehand how many there will be.
#include "ir/base/vec.h"

#include <string.h>

void *vec_grow(Arena *a, const void *items, size_t n, size_t size, size_t cap)
{
	void *more = arena_array(a, cap, size);
	if (n)
		memcpy(more, items, n * size);
	return more;
}
