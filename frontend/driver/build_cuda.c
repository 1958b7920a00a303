// Compiles generated CUDA for `pdcc run`: with nvcc where there is a GPU to run it on
// (build_nvcc.c), else with the C and C++ compiler and the emulator, whose sources are part of pdcc
// (runtime_stub/cudaemu). Called by build_model.c.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 64 };

static const char *in_folder(Driver *d, const BuiltModel *b, const char *name)
{
	return arena_printf(d->ctx->arena, "%s/%s", b->folder, name);
}

// ---- the emulator -------------------------------------------------------------------------------

static const char *const headers[] = {
	"cuda_runtime.h", "cuda_runtime_api.h", "cublasLt.h", "cudnn.h",   "cuda_library.h",
	"cuda_fp16.h",    "cuda_bf16.h",        "cudaemu.h",  "objects.h", "order.h"};
static const char *const sources[] = {"api.cc",   "banks.cc", "block.cc",  "memory.cc",
                                      "queue.cc", "races.cc", "report.cc", "shadow.cc"};

static bool emulator_write(Driver *d, const char *folder)
{
	FilePiece pieces[COUNT_OF(headers) + COUNT_OF(sources)];
	for (size_t i = 0; i < COUNT_OF(pieces); i++) {
		const char *name = i < COUNT_OF(headers) ? headers[i] : sources[i - COUNT_OF(headers)];
		const char *text = embed_text(name);
		pieces[i] = (FilePiece){arena_printf(d->ctx->arena, "%s/%s", folder, name), text,
		                        strlen(text)};
	}
	return folder_make(d->ctx, folder) && file_write_group(d->ctx, (int)COUNT_OF(pieces), pieces);
}

// Compiler, flags, and where the headers are.
static int emulator_command(Driver *d, const BuiltModel *b, const char *flags, const char **argv)
{
	int n = words_append(d->ctx, external_compiler(d), argv, 0, MAX_ARGUMENTS - 24);
	n = words_append(d->ctx, flags, argv, n, MAX_ARGUMENTS - 20);
	n = words_append(d->ctx, d->options->cflags, argv, n, MAX_ARGUMENTS - 16);
	argv[n++] = "-I";
	argv[n++] = in_folder(d, b, "cudaemu");
	argv[n++] = "-I";
	argv[n++] = b->folder;
	return n;
}

// What all models have in common, in one object: the emulator, the stub and the harness.
static bool common_build(Driver *d, const BuiltModel *b, const char *object)
{
	const char *argv[MAX_ARGUMENTS];
	int n = emulator_command(d, b, "-O2 -r -nostdlib", argv);
	argv[n++] = in_folder(d, b, "pdrt.c");
	argv[n++] = in_folder(d, b, "harness.c");
	for (size_t i = 0; i < COUNT_OF(sources); i++)
		argv[n++] = arena_printf(d->ctx->arena, "%s/cudaemu/%s", b->folder, sources[i]);
	argv[n++] = "-o";
	argv[n++] = object;
	return compiler_run(d, argv, n);
}

// The path of that object; NULL after a diagnostic.
static const char *common_object(Driver *d, const BuiltModel *b)
{
	static const char *const others[] = {"pdrt.h", "pdrt.c", HARNESS_TEXTS};
	const char *texts[COUNT_OF(headers) + COUNT_OF(sources) + COUNT_OF(others)];
	int n = 0;
	for (size_t i = 0; i < COUNT_OF(headers); i++)
		texts[n++] = headers[i];
	for (size_t i = 0; i < COUNT_OF(sources); i++)
		texts[n++] = sources[i];
	for (size_t i = 0; i < COUNT_OF(others); i++)
		texts[n++] = others[i];
	return object_cached(d, b, "cudaemu", n, texts, common_build);
}

static bool accesses_seen(void)
{
	return getenv("CUDAEMU_RACES") != NULL;
}

// C++14: the headers of later standards take g++ as long as a model does. Alignment: a GPU asks for
// more than the CPU; the emulator says what is wrong, so no library is linked for that.
static bool model_compile(Driver *d, const BuiltModel *b)
{
	const char *argv[MAX_ARGUMENTS];
	int n = emulator_command(d, b, "-O1 -std=gnu++14 -fsanitize=alignment -x c++ -c", argv);
	if (accesses_seen()) // a call for each; messages name the line
		n = words_append(d->ctx, "-fsanitize=thread -g1 -fno-pie", argv, n, MAX_ARGUMENTS - 8);
	argv[n++] = in_folder(d, b, "model.cu");
	argv[n++] = "-o";
	argv[n++] = in_folder(d, b, "model.o");
	return compiler_run(d, argv, n);
}

static bool model_link(Driver *d, const BuiltModel *b, const char *common)
{
	const char *argv[MAX_ARGUMENTS];
	int n = emulator_command(d, b, accesses_seen() ? "-no-pie" : NULL, argv);
	argv[n++] = in_folder(d, b, "model.o");
	argv[n++] = common;
	argv[n++] = "-o";
	argv[n++] = b->program;
	argv[n++] = "-lstdc++";
	argv[n++] = "-lm";
	return compiler_run(d, argv, n);
}

static bool emulator_build(Driver *d, const BuiltModel *b)
{
	if (!emulator_write(d, in_folder(d, b, "cudaemu")))
		return false;
	const char *common = common_object(d, b);
	return common && model_compile(d, b) && model_link(d, b, common);
}

bool cuda_build(Driver *d, const BuiltModel *b)
{
	const char *missing = cuda_missing(d->ctx);
	if (!missing)
		return nvcc_build(d, b);
	fprintf(stderr, "pdcc: note: no GPU here (%s): the CUDA code is emulated on the CPU\n",
	        missing);
	return emulator_build(d, b);
}
