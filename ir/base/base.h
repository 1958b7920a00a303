// Memory, strings and diagnostics: everything below the IR that every folder uses. Leaves nothing
// behind but what lies in an Arena. Uses nobody, and knows no IR.
//
// Memory failure is an error path of its own: no allocator here returns NULL. When memory runs out,
// or when `limit` bytes are exceeded, the allocator jumps to the handler that the driver installed
// with `oom_guard`, which prints one diagnostic and exits with status 1. Code in between holds
// nothing but memory owned by an Arena, so nothing leaks.
#ifndef PDCC_BASE_H
#define PDCC_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define NORETURN __attribute__((noreturn))
#else
#define PRINTF_LIKE(fmt, first)
#define NORETURN
#endif

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

// ---- arena.c ----------------------------------------------------------------------------------

typedef struct Arena Arena;

// Where an allocation that fails jumps to. One per process, set by the driver.
typedef struct OomGuard {
	jmp_buf jump;
	size_t asked; // bytes that could not be had
	size_t limit; // no more than this in all arenas together; 0: whatever the system gives
	size_t used;
} OomGuard;

extern OomGuard *oom_guard; // NULL: print a message and exit with status 1

NORETURN void oom_raise(size_t asked);

Arena *arena_new(void);
// For the time of one function: freed with the parent, at the latest, when memory failure leaves
// the function.
Arena *arena_scratch(Arena *parent);
void arena_free(Arena *a); // NULL is fine
// Zeroed memory, aligned to 16 bytes, that lives as long as the arena. Never NULL.
void *arena_alloc(Arena *a, size_t size);
// As arena_alloc for `count` items of `size` bytes; a product over SIZE_MAX is an allocation
// failure.
void *arena_array(Arena *a, size_t count, size_t size);
// A large block (tensor data): aligned to 64 bytes, not zeroed, freed with the arena.
void *arena_big(Arena *a, size_t size);
// Calls `release(what)` when the arena is freed: for mappings, files, foreign memory.
void arena_on_free(Arena *a, void (*release)(void *what), void *what);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);
// Bytes handed out so far.
size_t arena_bytes(const Arena *a);
// Whether p is an item or a large block of this arena (a large block: its beginning). Slow.
bool arena_owns(const Arena *a, const void *p);

#define NEW(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define NEW_ARRAY(arena, n, T) ((T *)arena_array((arena), (n), sizeof(T)))

// ---- text.c: a growing string and exact numbers ---------------------------------------------

// A string that grows in an arena. `text` is always NUL-terminated once anything was written.
typedef struct Text {
	Arena *arena;
	char *text;
	size_t len, cap;
} Text;

void text_init(Text *t, Arena *a);
void text_char(Text *t, char c);
void text_str(Text *t, const char *s);
void text_strn(Text *t, const char *s, size_t n);
void text_printf(Text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
// The shortest decimal that reads back to the same double (or float, when `single`); always with a
// point or exponent, or `inf`, `-inf`, `nan`.
void text_float(Text *t, double v, bool single);
void text_json(Text *t, const char *s); // in quotes; control characters are escaped
// "..." with \" \\ \n \t and \xNN for what is not printable.
void text_quoted(Text *t, const char *s);
// For messages: the name that `word` is a slip of, which is at most a third of its letters (at most
// two) changed, left out, doubled or exchanged with the next; NULL: none of them. The first of
// equally near ones.
const char *name_nearest(const char *word, int n, const char *const *names);
// "; did you mean 'x'?" for the end of a message, or "" without such a name.
const char *name_meant(Arena *a, const char *word, int n, const char *const *names);
// Whether the n letters are a keyword of C or C++, or a macro of compilers (keywords.c).
bool is_reserved_word(const char *word, size_t n);

// ---- map.c --------------------------------------------------------------------------------------

// FNV-1a: goes on from h, which is at first BYTES_HASH_START.
#define BYTES_HASH_START UINT64_C(14695981039346656037)
uint64_t bytes_hash(uint64_t h, const void *bytes, size_t n);

// ---- diag.c -------------------------------------------------------------------------------------

typedef enum Severity { SEV_NOTE, SEV_WARNING, SEV_ERROR } Severity;

// Where something came from: a place in a file. All strings live in some arena. Any may be NULL.
typedef struct Loc {
	const char *file; // as the user gave it
	int block, op;    // in the ProgramDesc; -1: none
	const char *type; // the legacy operator
	const char *slot; // its output slot
	const char *var;  // the variable in that slot
	int line, col;    // in a text file; 0: none
} Loc;

// The place in the program, as diagnostics name it: "block 1, op 7 'scale' (Out 'x')". False, and
// nothing written, where there is none.
bool loc_print(Text *t, const Loc *l);

typedef struct Diag Diag; // collects diagnostics in order

Diag *diag_new(Arena *a);
void diag_error(Diag *d, const Loc *loc, const char *fmt, ...) PRINTF_LIKE(3, 4);
// For functions that report at a place of their own: as diag_error, behind `before` (NULL:
// nothing).
void diag_verror(Diag *d, const Loc *loc, const char *before, const char *fmt, va_list ap);
void diag_warning(Diag *d, const Loc *loc, const char *fmt, ...) PRINTF_LIKE(3, 4);
void diag_note(Diag *d, const Loc *loc, const char *fmt, ...) PRINTF_LIKE(3, 4);
int diag_errors(const Diag *d);
// Forgets what was reported since the mark (nothing may have been flushed): for attempts that are
// made again.
typedef struct DiagMark {
	void *end;
	int errors;
} DiagMark;
DiagMark diag_mark(const Diag *d);
void diag_rewind(Diag *d, DiagMark m);
// -Werror: warnings count, and print, as errors from here on.
void diag_werror(Diag *d, bool on);
// Prints everything collected since the last flush, like clang:
//   model.pdmodel: block 1, op 7 'lookup_table_v3' (Out 'emb_0.tmp_0'): error: text
void diag_flush(Diag *d, FILE *to, bool colour);

#endif
