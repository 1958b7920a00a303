// What the files of the emulator's runtime share: api.cc has the API, block.cc runs the threads of a block.
#ifndef CUDAEMU_H
#define CUDAEMU_H

#include "cuda_runtime.h"

namespace cudaemu {

// A message on stderr, and the end with status 86: for what is wrong on a GPU, too.
[[noreturn]] void die(const char *form, ...) __attribute__((format(printf, 1, 2)));

uint32_t random_next(uint32_t below); // from CUDAEMU_SEED; without it always 0
bool random_wanted();

struct Launch {
	void *kernel;
	const Callable *how;
	dim3 grid, block;
	void **args; // copies
};

void kernel_run(const Launch *l); // block.cc
// The thread that runs, for messages; false: none does.
bool thread_describe(char *text, size_t size);

} // namespace cudaemu

#endif
