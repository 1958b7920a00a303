// The Context: arena, diagnostics, uniquing of strings and locations, and the parameter table.
#include "ir/base/vec.h"
#include "ir/core/intern.h"

#include <stdlib.h>
#include <string.h>

typedef struct InternEntry {
	struct InternEntry *next;
	uint64_t hash;
	size_t len;
	const char *key;
	void *object;
} InternEntry;

typedef struct InternTable {
	InternEntry **buckets;
	size_t nbucket, count;
} InternTable;

struct Uniquer {
	InternTable tables[INTERN_COUNT];
};

typedef struct Param {
	const char *name;
	Tensor *tensor; // NULL: nobody has given it a value
	bool written;
} Param;

struct ParamTable {
	int count, cap;
	Param *items; // sorted by name
};

static Context *context_in(Arena *a, Diag *diag, const OpFunctions *functions)
{
	Context *c = NEW(a, Context);
	c->arena = a;
	c->diag = diag;
	c->functions = functions;
	c->uniquer = NEW(a, struct Uniquer);
	c->params = NEW(a, struct ParamTable);
	return c;
}

Context *context_make(const OpFunctions *functions)
{
	Arena *a = arena_new();
	return context_in(a, diag_new(a), functions);
}

Context *context_within(const Context *outer)
{
	Context *c = context_in(outer->arena, outer->diag, outer->functions);
	c->file = outer->file;
	return c;
}

Context context_of_known_sizes(const Context *c)
{
	Context view = *c;
	view.sizes_known = true;
	return view;
}

void context_free(Context *c)
{
	if (c)
		arena_free(c->arena);
}

void key_init(Key *k, Context *c)
{
	k->bytes = (Text){.arena = c->arena, .text = k->few, .cap = sizeof k->few};
}

void key_bytes(Key *k, const void *p, size_t n)
{
	text_strn(&k->bytes, p, n);
}

void key_int(Key *k, int64_t v)
{
	key_bytes(k, &v, sizeof v);
}

void key_ptr(Key *k, const void *p)
{
	key_bytes(k, &p, sizeof p);
}

static void intern_grow(Context *c, InternTable *t)
{
	size_t nbucket = t->nbucket ? t->nbucket * 2 : 64;
	InternEntry **buckets = NEW_ARRAY(c->arena, nbucket, InternEntry *);
	for (size_t i = 0; i < t->nbucket; i++) {
		for (InternEntry *e = t->buckets[i], *next; e; e = next) {
			next = e->next;
			e->next = buckets[e->hash % nbucket];
			buckets[e->hash % nbucket] = e;
		}
	}
	t->buckets = buckets;
	t->nbucket = nbucket;
}

void **intern_slot(Context *c, InternKind kind, const void *key, size_t n)
{
	InternTable *t = &c->uniquer->tables[kind];
	if (t->count * 2 >= t->nbucket)
		intern_grow(c, t);
	uint64_t h = bytes_hash(BYTES_HASH_START, key, n);
	for (InternEntry *e = t->buckets[h % t->nbucket]; e; e = e->next) {
		if (e->hash == h && e->len == n && !memcmp(e->key, key, n))
			return &e->object;
	}
	InternEntry *e = NEW(c->arena, InternEntry);
	e->hash = h;
	e->len = n;
	e->key = arena_strndup(c->arena, key, n);
	e->next = t->buckets[h % t->nbucket];
	t->buckets[h % t->nbucket] = e;
	t->count++;
	return &e->object;
}

const char *context_strn(Context *c, const char *s, size_t n)
{
	void **slot = intern_slot(c, INTERN_STR, s, n);
	if (!*slot)
		*slot = arena_strndup(c->arena, s, n);
	return *slot;
}

const char *context_str(Context *c, const char *s)
{
	return s ? context_strn(c, s, strlen(s)) : NULL;
}

const Loc loc_unknown = {.block = -1, .op = -1};

const Loc *context_loc(Context *c, const Loc *l)
{
	Loc u = *l;
	u.file = context_str(c, l->file);
	u.type = context_str(c, l->type);
	u.slot = context_str(c, l->slot);
	u.var = context_str(c, l->var);
	Key k;
	key_init(&k, c);
	key_ptr(&k, u.file);
	key_ptr(&k, u.type);
	key_ptr(&k, u.slot);
	key_ptr(&k, u.var);
	key_int(&k, u.block);
	key_int(&k, u.op);
	key_int(&k, u.line);
	key_int(&k, u.col);
	void **slot = intern_key(c, INTERN_LOC, &k);
	if (!*slot) {
		Loc *copy = NEW(c->arena, Loc);
		*copy = u;
		*slot = copy;
	}
	return *slot;
}

void **context_found(Context *c, const void *who, const void *a, const void *b)
{
	Key k;
	key_init(&k, c);
	key_ptr(&k, who);
	key_ptr(&k, a);
	key_ptr(&k, b);
	return intern_key(c, INTERN_FOUND, &k);
}

// Index of the first parameter whose name is not less than `name`.
static int param_find(const struct ParamTable *t, const char *name)
{
	int lo = 0, hi = t->count;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;
		if (strcmp(t->items[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static Param *param_lookup(const Context *c, const char *name)
{
	const struct ParamTable *t = c->params;
	int at = param_find(t, name);
	return at < t->count && !strcmp(t->items[at].name, name) ? &t->items[at] : NULL;
}

// The row of that name; a new one when there is none.
static Param *param_row(Context *c, const char *name)
{
	struct ParamTable *t = c->params;
	int at = param_find(t, name);
	if (at < t->count && !strcmp(t->items[at].name, name))
		return &t->items[at];
	VEC_ROOM(c->arena, t->items, t->count, t->cap);
	memmove(t->items + at + 1, t->items + at, (size_t)(t->count - at) * sizeof *t->items);
	t->items[at] = (Param){.name = context_str(c, name)};
	t->count++;
	return &t->items[at];
}

struct ParamTable *params_copy(const Context *c)
{
	const struct ParamTable *from = c->params;
	struct ParamTable *t = NEW(c->arena, struct ParamTable);
	t->items = NEW_ARRAY(c->arena, (size_t)from->count + 1, Param);
	t->count = from->count;
	t->cap = from->count + 1;
	for (int i = 0; i < t->count; i++)
		t->items[i] = from->items[i];
	return t;
}

void param_set(Context *c, const char *name, Tensor *tensor)
{
	param_row(c, name)->tensor = tensor;
}

Tensor *param_get(Context *c, const char *name)
{
	const Param *p = param_lookup(c, name);
	return p ? p->tensor : NULL;
}

void param_set_written(Context *c, const char *name)
{
	param_row(c, name)->written = true;
}

bool param_is_written(const Context *c, const char *name)
{
	const Param *p = param_lookup(c, name);
	return p && p->written;
}

void param_each(Context *c, void (*f)(const char *, Tensor *, void *), void *arg)
{
	for (int i = 0; i < c->params->count; i++)
		if (c->params->items[i].tensor)
			f(c->params->items[i].name, c->params->items[i].tensor, arg);
}
