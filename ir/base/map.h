// Maps from pointers, and from names. Memory failure does not return (base.h).
#ifndef PDCC_IR_BASE_MAP_H
#define PDCC_IR_BASE_MAP_H

#include "ir/base/base.h"

// A map from pointers (values, operations) to texts or other pointers, in an arena. Where a pointer
// lies decides nothing but the time that looking it up takes: nobody goes through a map in its own
// order.
typedef struct PointerMap {
	Arena *arena;
	size_t count, cap;
	const void **keys;
	const void **values;
	bool named; // keys are texts, and equal where these are
} PointerMap;

void pointer_map_init(PointerMap *m, Arena *a);
void pointer_map_set(PointerMap *m, const void *key, const void *value);
const void *pointer_map_get(const PointerMap *m, const void *key); // NULL: not there
bool pointer_map_has(const PointerMap *m, const void *key);        // also where it is NULL
PointerMap pointer_map_copy(const PointerMap *m);                  // that grows apart

// As a map to indices of at least 0; -1: not there.
int pointer_map_index(const PointerMap *m, const void *key);
void pointer_map_set_index(PointerMap *m, const void *key, int index);

// The same from names, which are not copied.
typedef PointerMap NameMap;
void name_map_init(NameMap *m, Arena *a);
NameMap *name_map_new(Arena *a);
bool name_map_has(const NameMap *m, const char *name);
void *name_map_get(const NameMap *m, const char *name); // NULL: not there
void name_map_set(NameMap *m, const char *name, void *value);
// `stem`, or else the first of stem_2, stem_3 ... that is not taken, and takes it. The values of
// the map are its own: who uses it sets no others.
const char *name_map_unique(NameMap *taken, const char *stem);

#endif
