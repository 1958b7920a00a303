// Arena memory: chunks for small things, single blocks for tensor data, and release hooks, all
// freed together. Used by everything.
//
// Every allocation may fail, which leaves through oom_raise: whoever holds something that is not
// memory (a file, a folder) registers its release first and takes hold of it then.
#include "ir/base/base.h"

#include <stdlib.h>
#include <string.h>

#ifndef ARENA_CHUNK_BYTES // tests of memory failure make every item a chunk
#define ARENA_CHUNK_BYTES (64 * 1024)
#endif

// The first chunk comes with the arena: what a context begins with cannot fail half-way.
enum { CHUNK_BYTES = ARENA_CHUNK_BYTES, FIRST_BYTES = 4096, SMALL_ALIGN = 16, BIG_ALIGN = 64 };

typedef struct Chunk {
	struct Chunk *prev;
	size_t used, size;
} Chunk;

typedef struct Release {
	struct Release *prev;
	void (*release)(void *);
	void *what;
} Release;

struct Arena {
	Chunk *top;
	Release *releases;
	Release *in_parent; // of a scratch arena: what frees it with its parent
	size_t bytes;       // handed out
	size_t taken;       // counted against the limit
};

OomGuard *oom_guard;

void oom_raise(size_t asked)
{
	if (oom_guard) {
		oom_guard->asked = asked;
		longjmp(oom_guard->jump, 1);
	}
	fprintf(stderr, "pdcc: error: out of memory (%zu bytes asked)\n", asked);
	exit(1);
}

static size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) / align * align;
}

static size_t chunk_header(void)
{
	return round_up(sizeof(Chunk), SMALL_ALIGN);
}

// Counts memory about to be asked for. A system that promises more than it has would end the
// process later instead.
static void take(Arena *a, size_t size)
{
	if (!oom_guard)
		return;
	if (oom_guard->limit && size > oom_guard->limit - oom_guard->used)
		oom_raise(size);
	oom_guard->used += size;
	a->taken += size;
}

Arena *arena_new(void)
{
	Chunk *c = calloc(1, chunk_header() + FIRST_BYTES);
	if (!c)
		oom_raise(FIRST_BYTES);
	Arena *a = (Arena *)((char *)c + chunk_header());
	c->size = FIRST_BYTES;
	c->used = round_up(sizeof *a, SMALL_ALIGN);
	a->top = c;
	return a;
}

static void release_nothing(void *what)
{
	(void)what;
}

static void release_scratch(void *arena)
{
	arena_free(arena);
}

Arena *arena_scratch(Arena *parent)
{
	Release *r = arena_alloc(parent, sizeof *r);
	Arena *a = arena_new();
	*r = (Release){.prev = parent->releases, .release = release_scratch, .what = a};
	parent->releases = r;
	a->in_parent = r;
	return a;
}

void arena_free(Arena *a)
{
	if (!a)
		return;
	if (a->in_parent)
		a->in_parent->release = release_nothing;
	if (oom_guard)
		oom_guard->used -= a->taken;
	for (Release *r = a->releases; r; r = r->prev)
		r->release(r->what);
	for (Chunk *c = a->top, *prev; c; c = prev) {
		prev = c->prev;
		free(c); // one of them holds the arena itself
	}
}

void *arena_alloc(Arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		oom_raise(size);
	size = round_up(size ? size : 1, SMALL_ALIGN);
	if (a->top->size - a->top->used < size) {
		size_t room = size > CHUNK_BYTES / 4 ? size : CHUNK_BYTES;
		take(a, chunk_header() + room);
		Chunk *c = calloc(1, chunk_header() + room);
		if (!c)
			oom_raise(size);
		c->size = room;
		// A chunk made for one large item goes below the top, whose rest stays in use.
		if (room == size) {
			c->prev = a->top->prev;
			a->top->prev = c;
			c->used = size;
			a->bytes += size;
			return (char *)c + chunk_header();
		}
		c->prev = a->top;
		a->top = c;
	}
	void *p = (char *)a->top + chunk_header() + a->top->used;
	a->top->used += size;
	a->bytes += size;
	return p;
}

void *arena_array(Arena *a, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / 2 / size)
		oom_raise(SIZE_MAX);
	return arena_alloc(a, count * size);
}

void arena_on_free(Arena *a, void (*release)(void *), void *what)
{
	Release *r = arena_alloc(a, sizeof *r);
	r->prev = a->releases;
	r->release = release;
	r->what = what;
	a->releases = r;
}

void *arena_big(Arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		oom_raise(size);
	// The hook's record first: once the block exists nothing can fail before it is registered.
	Release *r = arena_alloc(a, sizeof *r);
	take(a, size);
	void *p = aligned_alloc(BIG_ALIGN, round_up(size ? size : 1, BIG_ALIGN));
	if (!p)
		oom_raise(size);
	r->prev = a->releases;
	r->release = free;
	r->what = p;
	a->releases = r;
	a->bytes += size;
	return p;
}

bool arena_owns(const Arena *a, const void *p)
{
	uintptr_t at = (uintptr_t)p;
	for (const Chunk *c = a->top; c; c = c->prev)
		if (at - (uintptr_t)c < chunk_header() + c->size)
			return true;
	for (const Release *r = a->releases; r; r = r->prev)
		if (r->what == p)
			return true;
	return false;
}

size_t arena_bytes(const Arena *a)
{
	return a->bytes;
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
	char *d = arena_alloc(a, n + 1);
	memcpy(d, s, n);
	return d;
}

char *arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return arena_strndup(a, "", 0);
	char *s = arena_alloc(a, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	return s;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return s;
}
