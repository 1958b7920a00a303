// Uniquing: one table per context from a byte key to the one object made for it. Private to ir/.
#ifndef PDCC_INTERN_H
#define PDCC_INTERN_H

#include "ir/core/core.h"

typedef enum InternKind {
	INTERN_STR,
	INTERN_LOC,
	INTERN_DIM,
	INTERN_TYPE,
	INTERN_ATTR,
	INTERN_FOUND,
	INTERN_COUNT
} InternKind;

// A key under construction: words and bytes, in order. It stays where key_init found it: short ones
// are in `few`, so that looking up what exists takes no memory.
typedef struct Key {
	Text bytes;
	char few[128];
} Key;

void key_init(Key *k, Context *c);
void key_int(Key *k, int64_t v);
void key_ptr(Key *k, const void *p);
void key_bytes(Key *k, const void *p, size_t n);

// The slot for a key: *slot is NULL when it is new, and the caller fills it.
void **intern_slot(Context *c, InternKind kind, const void *key, size_t n);
static inline void **intern_key(Context *c, InternKind kind, const Key *k)
{
	return intern_slot(c, kind, k->bytes.text, k->bytes.len);
}

#endif
