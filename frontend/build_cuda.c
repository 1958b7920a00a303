// Compiles generated CUDA for `pdcc run`: with nvcc where there is a GPU to run it on, else with the C and C++ compiler and the
// emulator, whose sources are part of pdcc (tests/cudaemu). Called by build_model.c.
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 64 };

static const char *environment(const char *name, const char *otherwise)
{
	const char *v = getenv(name);
	return v && *v ? v : otherwise;
}

static bool gpu_present(void)
{
	return access("/dev/nvidiactl", R_OK) == 0 && !getenv("PDCC_EMULATE");
}

// False after a diagnostic.
static bool compiler_run(Driver *d, const char **argv, int n)
{
	int status = 0;
	argv[n] = NULL;
	if (external_run(d->ctx, argv, &status))
		return true;
	if (status)
		diag_error(d->ctx->diag, NULL, "the compiler '%s' failed (exit status %d)", argv[0], status);
	return false;
}

static const char *in_folder(Driver *d, const BuiltModel *b, const char *name)
{
	return arena_printf(d->ctx->arena, "%s/%s", b->folder, name);
}

const char *cuda_compiler(void)
{
	return environment("NVCC", "nvcc");
}

static bool nvcc_build(Driver *d, const BuiltModel *b)
{
	const char *argv[MAX_ARGUMENTS];
	int n = words_append(d->ctx, cuda_compiler(), argv, 0, MAX_ARGUMENTS - 16);
	n = words_append(d->ctx, "-arch=native -O3 -I", argv, n, MAX_ARGUMENTS - 12);
	argv[n++] = b->folder;
	argv[n++] = in_folder(d, b, "model.cu");
	argv[n++] = in_folder(d, b, "pdrt.c");
	argv[n++] = in_folder(d, b, "harness.c");
	argv[n++] = "-o";
	argv[n++] = b->program;
	return compiler_run(d, argv, n);
}

static bool emulator_write(Driver *d, const char *folder)
{
	static const char *const names[] = {"cuda_runtime.h", "cuda_runtime_api.h", "cudaemu.h", "api.cc", "block.cc"};
	FilePiece pieces[COUNT_OF(names)];
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const char *text = embed_text(names[i]);
		pieces[i] = (FilePiece){arena_printf(d->ctx->arena, "%s/%s", folder, names[i]), text, strlen(text)};
	}
	return folder_make(d->ctx, folder) && file_write_group(d->ctx, (int)COUNT_OF(names), pieces);
}

static bool emulator_build(Driver *d, const BuiltModel *b)
{
	const char *argv[MAX_ARGUMENTS], *emulator = in_folder(d, b, "cudaemu");
	fprintf(stderr, "pdcc: note: no GPU here: the CUDA code is emulated on the CPU\n");
	if (!emulator_write(d, emulator))
		return false;
	const char *cc = d->options->cc ? d->options->cc : environment("CC", "cc");
	int n = words_append(d->ctx, cc, argv, 0, MAX_ARGUMENTS - 24);
	n = words_append(d->ctx, "-O1", argv, n, MAX_ARGUMENTS - 20);
	n = words_append(d->ctx, d->options->cflags, argv, n, MAX_ARGUMENTS - 18);
	argv[n++] = "-I";
	argv[n++] = emulator;
	argv[n++] = "-I";
	argv[n++] = b->folder;
	argv[n++] = "-x";
	argv[n++] = "c";
	argv[n++] = in_folder(d, b, "pdrt.c");
	argv[n++] = in_folder(d, b, "harness.c");
	argv[n++] = "-x";
	argv[n++] = "c++";
	argv[n++] = in_folder(d, b, "model.cu");
	argv[n++] = in_folder(d, b, "cudaemu/api.cc");
	argv[n++] = in_folder(d, b, "cudaemu/block.cc");
	argv[n++] = "-o";
	argv[n++] = b->program;
	argv[n++] = "-lstdc++";
	argv[n++] = "-lm";
	return compiler_run(d, argv, n);
}

bool cuda_build(Driver *d, const BuiltModel *b)
{
	return gpu_present() ? nvcc_build(d, b) : emulator_build(d, b);
}
