// What the threads of a kernel do to memory of the device, byte by byte: who wrote it last and who read it, for races
// between threads of one launch, reads of what nobody wrote, and accesses outside of allocations. With CUDAEMU_RACES sees
// the accesses of code that was compiled with -fsanitize=thread, whose calls end here and not in a library of the compiler;
// races.cc hears of them, too. Called by memory.cc, queue.cc and api.cc for what is not an access of a kernel.
#include "cudaemu.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cudaemu {

// An access: its thread in the launch + 1, and when. Reads of several threads are one access with a flag.
struct Access {
	uint32_t who, when;
};

struct Cell { // of a byte; zeros: allocated, and nobody wrote it
	Access write, read;
};

enum : uint32_t {
	LANES = 1u << 31,  // several threads of a warp read it
	WARPS = 1u << 30,  // of several warps of a block
	BLOCKS = 1u << 29, // of several blocks
	WHO = BLOCKS - 1,  // 0: the host, a copy, or a thread that did it in one step with others
	NOWHERE = WHO      // this byte is in no allocation
};

struct Region {
	uintptr_t begin, end;
	Cell *cells;
	Region *next;
};

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

void shadow_new(const void *base, size_t mapped, const void *data, size_t n)
{
	if (!races_wanted())
		return;
	Region *r = static_cast<Region *>(calloc(1, sizeof *r));
	void *m = mmap(nullptr, mapped * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!r || m == MAP_FAILED)
		die("no memory to watch an allocation of %zu bytes", n);
	r->begin = reinterpret_cast<uintptr_t>(base);
	r->end = r->begin + mapped;
	r->cells = static_cast<Cell *>(m);
	const size_t first = reinterpret_cast<uintptr_t>(data) - r->begin;
	for (size_t i = 0; i < mapped; i++)
		if (i < first || i >= first + n)
			r->cells[i].write.who = NOWHERE;
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
		munmap(r->cells, (r->end - r->begin) * sizeof(Cell));
		free(r);
		return;
	}
}

// ---- order ----------------------------------------------------------------------------------------------------------

// The number of the thread in its block; negative in another block.
static int thread_here(const Access *a, const Moment *m)
{
	const uint32_t thread = (a->who & WHO) - 1;
	return thread / m->threads == (m->who - 1) / m->threads ? (int)(thread % m->threads) : -1;
}

static bool same_warp(int thread, const Moment *m)
{
	return thread / 32 == (int)((m->who - 1) % m->threads) / 32;
}

// Whether an access is known to have happened before what the current thread does now.
static bool happened_before(const Access *a, const Moment *m)
{
	if (a->when < m->launch) // races.cc compares nodes
		return true;
	if (!(a->who & WHO) || a->who == m->who)
		return true;
	const int thread = thread_here(a, m);
	if ((a->who & BLOCKS) || thread < 0)
		return false;
	if (a->when < m->block)
		return true;
	return !(a->who & WARPS) && same_warp(thread, m) && a->when < m->warp;
}

// The reads that a later write must know of, as one.
static Access reads_joined(const Access *a, const Moment *m)
{
	if (happened_before(a, m))
		return {m->who, m->now};
	uint32_t who = m->who | (a->who & (BLOCKS | WARPS | LANES));
	const int thread = thread_here(a, m);
	if ((a->who & WHO) != m->who)
		who |= (uint32_t)(thread < 0 ? BLOCKS : same_warp(thread, m) ? LANES : WARPS);
	return {who, m->now};
}

// ---- accesses ----------------------------------------------------------------------------------------------------------

// Ends the program, and says where in the source, if addr2line can.
[[noreturn]] __attribute__((format(printf, 2, 3))) static void wrong(const void *pc, const char *form, ...)
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

static void access(const void *p, size_t n, bool writes, const void *pc, bool unwritten_too = false)
{
	const uintptr_t at = reinterpret_cast<uintptr_t>(p);
	Region *r = region_find(at);
	if (!r)
		return;
	races_touch(p, n, writes);
	if (!current)
		wrong(pc, "misuse: the host %s memory of the device", writes ? "writes" : "reads");
	const Moment m = moment();
	for (size_t i = 0; i < n; i++) {
		Cell *c = &r->cells[at - r->begin + i];
		if (c->write.who == NOWHERE)
			wrong(pc, "out of bounds: %s behind or in front of an allocation", writes ? "a write" : "a read");
		if (!writes && !c->write.when && !unwritten_too)
			wrong(pc, "a read of memory of the device that nobody wrote");
		if (!happened_before(&c->write, &m))
			wrong(pc, "race: threads %u and %u of a launch %s, no barrier between", (c->write.who & WHO) - 1, m.who - 1,
			      writes ? "write the same memory" : "write and read the same memory");
		if (writes && !happened_before(&c->read, &m))
			wrong(pc, "race: thread %u of a launch writes memory that thread %u or another reads, no barrier between",
			      m.who - 1, (c->read.who & WHO) - 1);
		if (writes)
			c->write = {m.who, m.now};
		else
			c->read = reads_joined(&c->read, &m);
	}
}

// Copies keep what nobody wrote as it is.
void shadow_copied(const void *to, const void *from, size_t n)
{
	const uintptr_t at = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
	const Region *r = region_find(at), *other = region_find(source);
	const uint32_t now = moment_next();
	for (size_t i = 0; r && i < n; i++) {
		const bool known = !other || other->cells[source - other->begin + i].write.when;
		r->cells[at - r->begin + i] = {{0, known ? now : 0}, {0, 0}};
	}
}

void element_copied(const void *to, const void *from, size_t n, const void *pc)
{
	access(from, n, false, pc, true);
	access(to, n, true, pc);
	const uintptr_t at = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
	const Region *r = region_find(at), *other = region_find(source);
	for (size_t i = 0; r && other && i < n; i++)
		if (!other->cells[source - other->begin + i].write.when)
			r->cells[at - r->begin + i].write = {0, 0};
}

void atomic_done(const void *p, size_t n)
{
	const uintptr_t at = reinterpret_cast<uintptr_t>(p);
	const Region *r = region_find(at);
	for (size_t i = 0; r && i < n; i++)
		r->cells[at - r->begin + i].write = {0, moment().now};
}

} // namespace cudaemu

// ---- what the compiler calls -----------------------------------------------------------------------------------------

using cudaemu::access;

#define ACCESSES(n)                                                                                                    \
	extern "C" void __tsan_read##n(void *p) { access(p, n, false, __builtin_return_address(0)); }                     \
	extern "C" void __tsan_write##n(void *p) { access(p, n, true, __builtin_return_address(0)); }                     \
	extern "C" void __tsan_unaligned_read##n(void *p) { access(p, n, false, __builtin_return_address(0)); }           \
	extern "C" void __tsan_unaligned_write##n(void *p) { access(p, n, true, __builtin_return_address(0)); }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" void __tsan_read_range(void *p, size_t n)
{
	access(p, n, false, __builtin_return_address(0));
}

extern "C" void __tsan_write_range(void *p, size_t n)
{
	access(p, n, true, __builtin_return_address(0));
}

extern "C" void *__tsan_memcpy(void *to, const void *from, size_t n)
{
	access(from, n, false, __builtin_return_address(0));
	access(to, n, true, __builtin_return_address(0));
	return memcpy(to, from, n);
}

extern "C" void *__tsan_memset(void *to, int byte, size_t n)
{
	access(to, n, true, __builtin_return_address(0));
	return memset(to, byte, n);
}

extern "C" void __tsan_vptr_update(void **, void *) {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}

extern "C" void __tsan_init() {}
