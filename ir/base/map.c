// A hash map from pointers to pointers (map.h): open addressing, doubled when half full.
#include "ir/base/map.h"

void pointer_map_init(PointerMap *m, Arena *a)
{
	*m = (PointerMap){.arena = a};
}

static size_t ptr_slot(const PointerMap *m, const void *key)
{
	size_t i = ((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u >> 20 & (m->cap - 1);
	while (m->keys[i] && m->keys[i] != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

void pointer_map_set(PointerMap *m, const void *key, const void *value)
{
	if (2 * m->count >= m->cap) {
		PointerMap bigger = {.arena = m->arena, .cap = m->cap ? 2 * m->cap : 32};
		bigger.keys = NEW_ARRAY(m->arena, bigger.cap, const void *);
		bigger.values = NEW_ARRAY(m->arena, bigger.cap, const void *);
		for (size_t i = 0; i < m->cap; i++)
			if (m->keys[i])
				pointer_map_set(&bigger, m->keys[i], m->values[i]);
		*m = bigger;
	}
	size_t i = ptr_slot(m, key);
	m->count += !m->keys[i];
	m->keys[i] = key;
	m->values[i] = value;
}

const void *pointer_map_get(const PointerMap *m, const void *key)
{
	if (!m->cap)
		return NULL;
	return m->values[ptr_slot(m, key)];
}

int pointer_map_index(const PointerMap *m, const void *key)
{
	return (int)((intptr_t)pointer_map_get(m, key) - 1);
}

void pointer_map_set_index(PointerMap *m, const void *key, int index)
{
	pointer_map_set(m, key, (const void *)((intptr_t)index + 1));
}
