// What the emulator says and counts, and what it is made to do: messages that end the program,
// chance from CUDAEMU_SEED, how often each function of the API was called, calls that CUDAEMU_FAIL
// wants to fail, the errors of the API. Called by the other files; cudaemu_* by tests.
#include "cudaemu.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

namespace cudaemu
{

void die(const char *form, ...)
{
	char thread[128];
	fprintf(stderr, "error: cudaemu: ");
	va_list ap;
	va_start(ap, form);
	vfprintf(stderr, form, ap);
	va_end(ap);
	if (thread_describe(thread, sizeof thread))
		fprintf(stderr, " [%s]", thread);
	fprintf(stderr, "\n");
	_exit(86);
}

// ---- chance -------------------------------------------------------------------------------------

static uint64_t seed_state;

bool random_wanted()
{
	static const char *seed = getenv("CUDAEMU_SEED");
	if (seed && !seed_state)
		seed_state = strtoull(seed, nullptr, 10) * 2654435761u + 88172645463325252u;
	return seed != nullptr;
}

uint32_t random_next(uint32_t below)
{
	if (!random_wanted() || below < 2)
		return 0;
	seed_state ^= seed_state << 13;
	seed_state ^= seed_state >> 7;
	seed_state ^= seed_state << 17;
	return (uint32_t)((seed_state >> 32) % below);
}

// ---- calls that are counted, and fail -----------------------------------------------------------

struct Counter {
	const char *name;
	long count;
};

static Counter counters[128];

static void report()
{
	const char *path = getenv("CUDAEMU_REPORT");
	FILE *f = path ? fopen(path, "w") : nullptr;
	for (Counter *c = counters; f && c->name; c++)
		fprintf(f, "%s %ld\n", c->name, c->count);
	if (f && banks_counted)
		banks_report(f);
	if (f)
		fclose(f);
	if (getenv("CUDAEMU_LEAKS") && cudaemu_live()) {
		fprintf(stderr, "error: cudaemu: %ld allocations, streams or graphs are left\n",
		        cudaemu_live());
		_exit(86);
	}
}

static void count(const char *name)
{
	Counter *c = counters;
	if (!c->name)
		atexit(report);
	while (c->name && strcmp(c->name, name))
		c++;
	c->name = name;
	c->count++;
}

struct Failure {
	bool read;
	const char *what;
	long matching; // calls since then
	bool happened;
};

long library_objects;
static Failure failure;
static cudaError_t last_error;

cudaError_t result(cudaError_t e)
{
	if (e != cudaSuccess)
		last_error = e;
	return e;
}

static bool gives_back(const char *name)
{
	return strstr(name, "Destroy") || strstr(name, "Free");
}

static cudaError_t error_named(const char *name)
{
	for (int e = 1; e < 1000; e++)
		if (!strcmp(name, cudaGetErrorName((cudaError_t)e)))
			return (cudaError_t)e;
	die("CUDAEMU_FAIL: no error '%s'", name);
}

cudaError_t called(const char *name)
{
	count(name);
	if (!failure.read)
		cudaemu_fail(getenv("CUDAEMU_FAIL"));
	const char *f = failure.what;
	const size_t len = f ? strcspn(f, ":") : 0;
	if (!f || !(f[0] == '*' ? !gives_back(name) : len == strlen(name) && !strncmp(f, name, len)))
		return cudaSuccess;
	char *rest;
	if (strtol(f + len + 1, &rest, 10) != ++failure.matching)
		return cudaSuccess;
	failure.happened = true;
	return result(*rest == ':' ? error_named(rest + 1) : cudaErrorMemoryAllocation);
}

} // namespace cudaemu

using namespace cudaemu;

// ---- the API ------------------------------------------------------------------------------------

const char *cudaGetErrorName(cudaError_t e)
{
	static const struct {
		cudaError_t error;
		const char *name;
	} names[] = {
#define NAME(e) {e, #e}
		NAME(cudaSuccess),
		NAME(cudaErrorInvalidValue),
		NAME(cudaErrorMemoryAllocation),
		NAME(cudaErrorInvalidConfiguration),
		NAME(cudaErrorInsufficientDriver),
		NAME(cudaErrorInvalidDeviceFunction),
		NAME(cudaErrorNoDevice),
		NAME(cudaErrorCallRequiresNewerDriver),
		NAME(cudaErrorInvalidDevice),
		NAME(cudaErrorNoKernelImageForDevice),
		NAME(cudaErrorInvalidResourceHandle),
		NAME(cudaErrorIllegalAddress),
		NAME(cudaErrorNotSupported),
		NAME(cudaErrorGraphExecUpdateFailure),
#undef NAME
	};
	for (const auto &n : names)
		if (n.error == e)
			return n.name;
	return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t e)
{
	return cudaGetErrorName(e);
}

cudaError_t cudaGetLastError()
{
	const cudaError_t e = last_error;
	last_error = cudaSuccess;
	return e;
}

void cudaemu_fail(const char *what)
{
	failure = {true, what, 0, false};
}

int cudaemu_failed()
{
	return failure.happened;
}

long cudaemu_calls(const char *name)
{
	long n = 0;
	for (const Counter *c = counters; c->name; c++)
		n += !name || !strcmp(c->name, name) ? c->count : 0;
	return n;
}

long cudaemu_live()
{
	return memory_live() + objects_live() + library_objects;
}
