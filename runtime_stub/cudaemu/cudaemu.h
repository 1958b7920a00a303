// What the files of the emulator's runtime share: api.cc has the API, report.cc messages and
// counts, memory.cc allocations, queue.cc runs what is queued (objects.h), block.cc the threads of
// a block, banks.cc counts bank conflicts, races.cc compares what nodes of graphs touch, shadow.cc
// what threads do to memory of the device (order.h).
#ifndef CUDAEMU_H
#define CUDAEMU_H

#include <stdio.h>

#include "cuda_runtime.h"

namespace cudaemu
{

// report.cc. A message on stderr, and the end with status 86: for what is wrong on a GPU, too.
[[noreturn]] void die(const char *form, ...) __attribute__((format(printf, 1, 2)));

uint32_t random_next(uint32_t below); // from CUDAEMU_SEED; without it always 0
bool random_wanted();
// Counts a call of the API; whether CUDAEMU_FAIL wants it to fail, and how.
cudaError_t called(const char *name);
cudaError_t result(cudaError_t e); // which is the last error, if it is one

extern int current_device;   // api.cc
long objects_live();         // queue.cc: streams and graphs
extern long library_objects; // report.cc: those that are left of a library (cuda/library.h)

// memory.cc
cudaError_t memory_new(void **p, size_t n);
cudaError_t memory_free(void *p);
void memory_check();              // that nobody wrote beside an allocation
int memory_device(const void *p); // whose it is; -2: of none
bool memory_holds(const void *p, size_t n,
                  bool device); // whether these bytes are all of the device, or all of the host
long memory_live();

enum {
	SHARED_BYTES = 163 << 10,
	SHARED_ALWAYS = 48 << 10
}; // of a block, on sm_80; without being asked for

struct Launch {
	void *kernel;
	const Callable *how;
	dim3 grid, block;
	void **args;   // copies
	size_t shared; // bytes
};

void kernel_run(const Launch *l); // block.cc
unsigned thread_number();         // of the thread that runs, in its block
// The thread that runs, for messages; false: none does.
bool thread_describe(char *text, size_t size);

// banks.cc: the threads of a block have ended; what was counted.
void banks_block_end();
void banks_report(FILE *f);

// races.cc: where accesses come from now. A graph begins and ends; before: for each of its nodes
// the set of those that edges put before it, each of so many words. Its node of that number runs.
struct RacePlace {
	unsigned frame, event;
};

bool races_wanted(); // CUDAEMU_RACES
RacePlace races_enter(const uint64_t *before, size_t words);
void races_node(size_t number);
void races_leave(RacePlace outer);
// Memory of the device comes and goes; is touched.
void races_memory(const void *at, size_t n, bool there);
void races_touch(const void *at, size_t n, bool writes);

// shadow.cc: what is known of memory of the device.
void shadow_new(const void *base, size_t mapped, const void *data, size_t n);
void shadow_drop(const void *base);
// n bytes are copied (from NULL: set) by the host or a node.
void shadow_copied(const void *to, const void *from, size_t n);

} // namespace cudaemu

#endif
