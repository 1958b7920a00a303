// A hash map from names to pointers: variables of a block, and parameters. Used by params.c and
// translate.c.
#include "frontend/read/desc.h"

#include <string.h>

typedef struct NameEntry {
	const char *name; // NULL: free
	void *value;
} NameEntry;

struct NameMap {
	Arena *arena;
	NameEntry *entries; // a power of two of them, at most half in use
	size_t size, used;
};

NameMap *name_map_new(Arena *a)
{
	NameMap *m = NEW(a, NameMap);
	m->arena = a;
	m->size = 64;
	m->entries = NEW_ARRAY(a, m->size, NameEntry);
	return m;
}

static NameEntry *find_entry(NameEntry *entries, size_t size, const char *name)
{
	uint64_t h = 14695981039346656037u;
	for (const char *p = name; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	size_t i = (size_t)(h ^ h >> 32) & (size - 1);
	while (entries[i].name && strcmp(entries[i].name, name) != 0)
		i = (i + 1) & (size - 1);
	return &entries[i];
}

void *name_map_get(const NameMap *m, const char *name)
{
	return find_entry(m->entries, m->size, name)->value;
}

static void grow(NameMap *m)
{
	size_t size = m->size * 2;
	NameEntry *entries = NEW_ARRAY(m->arena, size, NameEntry);
	for (size_t i = 0; i < m->size; i++)
		if (m->entries[i].name)
			*find_entry(entries, size, m->entries[i].name) = m->entries[i];
	m->entries = entries;
	m->size = size;
}

void name_map_set(NameMap *m, const char *name, void *value)
{
	NameEntry *e = find_entry(m->entries, m->size, name);
	if (!e->name && ++m->used * 2 > m->size) {
		grow(m);
		e = find_entry(m->entries, m->size, name);
	}
	*e = (NameEntry){name, value};
}
