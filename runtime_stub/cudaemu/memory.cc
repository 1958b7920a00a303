// Memory of the device: allocations between guard pages, which also say where they are when
// something is written beside them. Called by api.cc, and by queue.cc when a stream has been waited
// for.
#include "cudaemu.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cudaemu
{

struct Allocation {
	char *base, *data;
	size_t mapped, size;
	int device;
	Allocation *next;
};

enum { ALIGN = 256, SLACK_BYTE = 0xa5 };

static Allocation *allocations;
static size_t bytes_live, bytes_peak;

static size_t page_size()
{
	static const size_t n = (size_t)sysconf(_SC_PAGESIZE);
	return n;
}

static void on_fault(int, siginfo_t *info, void *)
{
	const char *at = static_cast<const char *>(info->si_addr);
	for (const Allocation *a = allocations; a; a = a->next)
		if (at >= a->base && at < a->base + a->mapped)
			die("out of bounds: byte %td of an allocation of %zu bytes", at - a->data, a->size);
	die("a fault at address %p, which is no memory of the device", (const void *)at);
}

static void faults_catch()
{
	static char stack[1 << 16];
	stack_t s = {};
	s.ss_sp = stack;
	s.ss_size = sizeof stack;
	sigaltstack(&s, nullptr);
	struct sigaction a = {};
	a.sa_sigaction = on_fault;
	a.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGSEGV, &a, nullptr);
	sigaction(SIGBUS, &a, nullptr);
}

// The end of an allocation lies at a guard page, but for what its alignment asks; those bytes are
// looked at later.
cudaError_t memory_new(void **p, size_t n)
{
	if (n > (size_t)1 << 40)
		return result(cudaErrorMemoryAllocation);
	if (!allocations)
		faults_catch();
	const size_t page = page_size(), rounded = (n + ALIGN - 1) / ALIGN * ALIGN;
	Allocation *a = static_cast<Allocation *>(calloc(1, sizeof *a));
	a->mapped = (rounded + page - 1) / page * page + 2 * page;
	void *m = mmap(nullptr, a->mapped, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED) {
		free(a);
		return result(cudaErrorMemoryAllocation);
	}
	a->base = static_cast<char *>(m);
	a->data = a->base + a->mapped - page - rounded;
	a->size = n;
	a->device = current_device;
	mprotect(a->base, page, PROT_NONE);
	mprotect(a->base + a->mapped - page, page, PROT_NONE);
	memset(a->base + page, SLACK_BYTE, (size_t)(a->data - a->base) - page);
	memset(a->data, 0xff, n);
	memset(a->data + n, SLACK_BYTE, rounded - n);
	races_memory(a->data, n, true);
	shadow_new(a->base, a->mapped, a->data, n);
	a->next = allocations;
	allocations = a;
	bytes_live += n;
	bytes_peak = bytes_live > bytes_peak ? bytes_live : bytes_peak;
	*p = a->data;
	return cudaSuccess;
}

static Allocation *allocation_find(const void *p)
{
	const char *at = static_cast<const char *>(p);
	for (Allocation *a = allocations; a; a = a->next)
		if (at >= a->base && at < a->base + a->mapped)
			return a;
	return nullptr;
}

static void slack_check(const Allocation *a)
{
	const char *begin = a->base + page_size(), *end = a->base + a->mapped - page_size();
	for (const char *p = begin; p < end; p++) {
		if (p == a->data)
			p += a->size;
		if (p < end && (unsigned char)*p != SLACK_BYTE)
			die("out of bounds: byte %td of an allocation of %zu bytes was written", p - a->data,
			    a->size);
	}
}

cudaError_t memory_free(void *p)
{
	for (Allocation **at = &allocations; p && *at; at = &(*at)->next) {
		Allocation *a = *at;
		if (a->data != p)
			continue;
		slack_check(a);
		*at = a->next;
		races_memory(a->data, a->size, false);
		shadow_drop(a->base);
		bytes_live -= a->size;
		munmap(a->base, a->mapped);
		free(a);
		return cudaSuccess;
	}
	return result(p ? cudaErrorInvalidValue : cudaSuccess);
}

void memory_check()
{
	for (const Allocation *a = allocations; a; a = a->next)
		slack_check(a);
}

int memory_device(const void *p)
{
	const Allocation *a = allocation_find(p);
	return a ? a->device : -2;
}

bool memory_holds(const void *p, size_t n, bool device)
{
	const Allocation *a = allocation_find(p);
	if (!a || !device)
		return !a && !device;
	const char *at = static_cast<const char *>(p);
	return at >= a->data && n <= a->size && at - a->data <= (ptrdiff_t)(a->size - n);
}

long memory_live()
{
	long n = 0;
	for (const Allocation *a = allocations; a; a = a->next)
		n++;
	return n;
}

} // namespace cudaemu

size_t cudaemu_peak()
{
	const size_t peak = cudaemu::bytes_peak;
	cudaemu::bytes_peak = cudaemu::bytes_live;
	return peak;
}
