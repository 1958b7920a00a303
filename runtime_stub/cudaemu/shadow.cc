// What the threads of a kernel do to memory of the device, byte by byte (order.h): races between
// threads of one launch, reads of what nobody wrote, and accesses outside of allocations. With
// CUDAEMU_RACES sees the accesses of code that was compiled with -fsanitize=thread, whose calls end
// here and not in a library of the compiler; races.cc hears of them, too. Called by memory.cc,
// queue.cc and api.cc for what is not an access of a kernel.
#include "cudaemu.h"
#include "order.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cudaemu
{

namespace
{

enum : uintptr_t { WORD = 4 };

// In place of a cell's changes.who.
enum : uint32_t {
	NOWHERE = UINT32_MAX, // in no allocation
	SPLIT = NOWHERE - 1   // the bytes of this word have cells of their own
};

// Cells of zeros: allocated, and nobody wrote it.
struct Region {
	uintptr_t begin, end;
	Cell *words, *bytes;
	Region *next;
};

} // namespace

static Region *regions;
static struct {
	uintptr_t page;
	Region *region; // NULL: none
} recent[1024];     // what was asked for, by the page

static Region *region_find(uintptr_t at)
{
	auto *slot = &recent[at / 4096 % 1024];
	if (slot->page == at / 4096)
		return slot->region;
	*slot = {at / 4096, nullptr};
	for (Region *r = regions; r; r = r->next)
		if (at >= r->begin && at < r->end)
			slot->region = r;
	return slot->region;
}

static Cell *cells_new(size_t n)
{
	void *m = mmap(nullptr, n * sizeof(Cell), PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		die("no memory to watch an allocation of %zu bytes", n);
	return static_cast<Cell *>(m);
}

// The cell for what begins at a place in a region and is n bytes long; *size: how many of these it
// is for, a word or a byte.
static Cell *cell_at(const Region *r, uintptr_t at, size_t n, size_t *size)
{
	const uintptr_t i = at - r->begin;
	Cell *word = &r->words[i / WORD];
	*size = WORD;
	if (word->changes.who != SPLIT) {
		if (at % WORD == 0 && n >= WORD)
			return word;
		for (uintptr_t b = 0; b < WORD; b++)
			r->bytes[i / WORD * WORD + b] = *word;
		word->changes.who = SPLIT;
	}
	*size = 1;
	return &r->bytes[i];
}

static void nowhere(const Region *r, uintptr_t from, uintptr_t to)
{
	for (size_t size; from < to; from += size)
		cell_at(r, from, to - from, &size)->changes.who = NOWHERE;
}

void shadow_new(const void *base, size_t mapped, const void *data, size_t n)
{
	if (!races_wanted())
		return;
	Region *r = static_cast<Region *>(calloc(1, sizeof *r));
	r->begin = reinterpret_cast<uintptr_t>(base);
	r->end = r->begin + mapped;
	r->words = cells_new(mapped / WORD);
	r->bytes = cells_new(mapped);
	const uintptr_t first = reinterpret_cast<uintptr_t>(data);
	nowhere(r, r->begin, first);
	nowhere(r, first + n, r->end);
	memset(recent, 0, sizeof recent);
	r->next = regions;
	regions = r;
}

void shadow_drop(const void *base)
{
	memset(recent, 0, sizeof recent);
	for (Region **at = &regions; *at; at = &(*at)->next) {
		Region *r = *at;
		if (r->begin != reinterpret_cast<uintptr_t>(base))
			continue;
		*at = r->next;
		munmap(r->words, (r->end - r->begin) / WORD * sizeof(Cell));
		munmap(r->bytes, (r->end - r->begin) * sizeof(Cell));
		free(r);
		return;
	}
}

// ---- accesses -----------------------------------------------------------------------------------

// Ends the program, and says where in the source, if addr2line can.
[[noreturn]] __attribute__((format(printf, 2, 3))) static void wrong(const void *pc,
                                                                     const char *form, ...)
{
	char text[512], command[128], line[256] = "";
	va_list ap;
	va_start(ap, form);
	vsnprintf(text, sizeof text, form, ap);
	va_end(ap);
	snprintf(command, sizeof command, "addr2line -se /proc/%d/exe %p 2>/dev/null", (int)getpid(),
	         static_cast<const void *>(static_cast<const char *>(pc) - 1));
	FILE *f = popen(command, "r");
	if (f && fgets(line, sizeof line, f))
		line[strcspn(line, "\n ")] = 0;
	die("%s%s%s", line, *line ? ": " : "", text);
}

static void access(const void *p, size_t n, AccessKind kind, const void *pc,
                   bool unwritten_too = false)
{
	static const char *const does[] = {"reads", "writes", "changes"};
	const uintptr_t begin = reinterpret_cast<uintptr_t>(p);
	const Region *r = region_find(begin);
	if (!r)
		return;
	if (kind != ACCESS_ATOMIC)
		races_touch(p, n, kind == ACCESS_WRITE);
	if (!current)
		wrong(pc, "misuse: the host %s memory of the device", does[kind]);
	size_t size;
	for (uintptr_t at = begin; at < begin + n; at += size) {
		Cell *c = cell_at(r, at, begin + n - at, &size);
		if (c->changes.who == NOWHERE)
			wrong(pc, "out of bounds: %s behind or in front of an allocation",
			      kind == ACCESS_READ ? "a read" : "a write");
		if (kind != ACCESS_WRITE && !c->written && !unwritten_too)
			wrong(pc, "a read of memory of the device that nobody wrote");
		if (const Accesses *other = cell_access(c, kind))
			wrong(pc, "race: a thread %s what %s %s, no barrier between", does[kind],
			      accesses_describe(other),
			      other == &c->reads ? "read"
			      : c->atomic        ? "changed at once"
			                         : "wrote");
	}
}

// Whether somebody has written what begins there; *size: how many of the n bytes that is said of.
static bool written(const Region *r, uintptr_t at, size_t n, size_t *size)
{
	*size = n;
	return !r || cell_at(r, at, n, size)->written;
}

// Copies keep what nobody wrote as it is. Other copies and kernels come before or after.
void shadow_copied(const void *to, const void *from, size_t n)
{
	const uintptr_t at = reinterpret_cast<uintptr_t>(to),
					source = reinterpret_cast<uintptr_t>(from);
	const Region *r = region_find(at), *other = region_find(source);
	for (size_t i = 0, size, step; r && i < n; i += size) {
		const bool known = written(other, source + i, n - i, &size);
		for (size_t k = 0; k < size; k += step)
			*cell_at(r, at + i + k, size - k, &step) = {{0, 0, 0}, {0, 0, 0}, false, known};
	}
}

void element_copied(const void *to, const void *from, size_t n, const void *pc)
{
	access(from, n, ACCESS_READ, pc, true);
	access(to, n, ACCESS_WRITE, pc);
	const uintptr_t at = reinterpret_cast<uintptr_t>(to),
					source = reinterpret_cast<uintptr_t>(from);
	const Region *r = region_find(at), *other = region_find(source);
	for (size_t i = 0, size, step; r && other && i < n; i += size) {
		const bool known = written(other, source + i, n - i, &size);
		for (size_t k = 0; k < size; k += step)
			cell_at(r, at + i + k, size - k, &step)->written = known;
	}
}

void atomic_done(const void *p, size_t n, const void *pc)
{
	access(p, n, ACCESS_ATOMIC, pc);
}

} // namespace cudaemu

// ---- what the compiler calls --------------------------------------------------------------------

using cudaemu::access;

#define ACCESS(name, n, how)                                     \
	extern "C" void __tsan_##name##n(void *p)                    \
	{                                                            \
		access(p, n, cudaemu::how, __builtin_return_address(0)); \
	}
#define ACCESSES(n)                        \
	ACCESS(read, n, ACCESS_READ)           \
	ACCESS(write, n, ACCESS_WRITE)         \
	ACCESS(unaligned_read, n, ACCESS_READ) \
	ACCESS(unaligned_write, n, ACCESS_WRITE)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" void __tsan_read_range(void *p, size_t n)
{
	access(p, n, cudaemu::ACCESS_READ, __builtin_return_address(0));
}

extern "C" void __tsan_write_range(void *p, size_t n)
{
	access(p, n, cudaemu::ACCESS_WRITE, __builtin_return_address(0));
}

extern "C" void *__tsan_memcpy(void *to, const void *from, size_t n)
{
	access(from, n, cudaemu::ACCESS_READ, __builtin_return_address(0));
	access(to, n, cudaemu::ACCESS_WRITE, __builtin_return_address(0));
	return memcpy(to, from, n);
}

extern "C" void *__tsan_memset(void *to, int byte, size_t n)
{
	access(to, n, cudaemu::ACCESS_WRITE, __builtin_return_address(0));
	return memset(to, byte, n);
}

extern "C" void __tsan_vptr_update(void **, void *)
{
}
extern "C" void __tsan_func_entry(void *)
{
}
extern "C" void __tsan_func_exit()
{
}

extern "C" void __tsan_init()
{
}
