// The hash map from pointers or names to pointers (map.h): open addressing, doubled when half full.
#include "ir/base/map.h"

#include <string.h>

uint64_t bytes_hash(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

void pointer_map_init(PointerMap *m, Arena *a)
{
	*m = (PointerMap){.arena = a};
}

static size_t key_hash(const PointerMap *m, const void *key)
{
	if (!m->named)
		return ((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u >> 20;
	const uint64_t h = bytes_hash(BYTES_HASH_START, key, strlen(key));
	return (size_t)(h ^ h >> 32);
}

static bool keys_equal(const PointerMap *m, const void *a, const void *b)
{
	return a == b || (m->named && !strcmp(a, b));
}

static size_t key_slot(const PointerMap *m, const void *key)
{
	size_t i = key_hash(m, key) & (m->cap - 1);
	while (m->keys[i] && !keys_equal(m, m->keys[i], key))
		i = (i + 1) & (m->cap - 1);
	return i;
}

void pointer_map_set(PointerMap *m, const void *key, const void *value)
{
	if (2 * m->count >= m->cap) {
		PointerMap bigger = {.arena = m->arena, .cap = m->cap ? 2 * m->cap : 32, .named = m->named};
		bigger.keys = NEW_ARRAY(m->arena, bigger.cap, const void *);
		bigger.values = NEW_ARRAY(m->arena, bigger.cap, const void *);
		for (size_t i = 0; i < m->cap; i++)
			if (m->keys[i])
				pointer_map_set(&bigger, m->keys[i], m->values[i]);
		*m = bigger;
	}
	size_t i = key_slot(m, key);
	m->count += !m->keys[i];
	m->keys[i] = key;
	m->values[i] = value;
}

const void *pointer_map_get(const PointerMap *m, const void *key)
{
	if (!m->cap)
		return NULL;
	return m->values[key_slot(m, key)];
}

bool pointer_map_has(const PointerMap *m, const void *key)
{
	return m->cap && m->keys[key_slot(m, key)];
}

int pointer_map_index(const PointerMap *m, const void *key)
{
	return (int)((intptr_t)pointer_map_get(m, key) - 1);
}

void pointer_map_set_index(PointerMap *m, const void *key, int index)
{
	pointer_map_set(m, key, (const void *)((intptr_t)index + 1));
}

// ---- names --------------------------------------------------------------------------------------

void name_map_init(NameMap *m, Arena *a)
{
	*m = (NameMap){.arena = a, .named = true};
}

NameMap *name_map_new(Arena *a)
{
	NameMap *m = NEW(a, NameMap);
	name_map_init(m, a);
	return m;
}

PointerMap pointer_map_copy(const PointerMap *m)
{
	PointerMap copy = *m;
	copy.keys = NEW_ARRAY(m->arena, m->cap + 1, const void *);
	copy.values = NEW_ARRAY(m->arena, m->cap + 1, const void *);
	for (size_t i = 0; i < m->cap; i++) {
		copy.keys[i] = m->keys[i];
		copy.values[i] = m->values[i];
	}
	return copy;
}

bool name_map_has(const NameMap *m, const char *name)
{
	return pointer_map_has(m, name);
}

void *name_map_get(const NameMap *m, const char *name)
{
	return (void *)(uintptr_t)pointer_map_get(m, name);
}

void name_map_set(NameMap *m, const char *name, void *value)
{
	pointer_map_set(m, name, value);
}

// A name's index is the number of the last one that was made of it.
const char *name_map_unique(NameMap *taken, const char *stem)
{
	int last = pointer_map_index(taken, stem);
	const char *name = stem;
	for (; last >= 0 && name_map_has(taken, name); last++)
		name = arena_printf(taken->arena, "%s_%d", stem, last + 1);
	if (last >= 0)
		pointer_map_set_index(taken, stem, last);
	pointer_map_set_index(taken, name, 1);
	return name;
}
