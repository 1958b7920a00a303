// Arena memory: chunks for small things, single blocks for tensor data, and release hooks, all freed
// together. Used by everything.
#include "base.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, SMALL_ALIGN = 16, BIG_ALIGN = 64 };

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
	size_t bytes;
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

Arena *arena_new(void)
{
	Arena *a = calloc(1, sizeof *a);
	if (!a)
		oom_raise(sizeof *a);
	return a;
}

void arena_free(Arena *a)
{
	if (!a)
		return;
	for (Release *r = a->releases; r; r = r->prev)
		r->release(r->what);
	for (Chunk *c = a->top, *prev; c; c = prev) {
		prev = c->prev;
		free(c);
	}
	free(a);
}

static size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) / align * align;
}

static size_t chunk_header(void)
{
	return round_up(sizeof(Chunk), SMALL_ALIGN);
}

void *arena_alloc(Arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		oom_raise(size);
	size = round_up(size ? size : 1, SMALL_ALIGN);
	if (!a->top || a->top->size - a->top->used < size) {
		size_t room = size > CHUNK_BYTES / 4 ? size : CHUNK_BYTES;
		Chunk *c = calloc(1, chunk_header() + room);
		if (!c)
			oom_raise(size);
		c->size = room;
		// A chunk made for one large item goes below the top, whose rest stays in use.
		if (a->top && room == size) {
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
