// Compiles generated CUDA for `pdcc run`: with nvcc where there is a GPU to run it on (build_nvcc.c), else with the C and C++
// compiler and the emulator, whose sources are part of pdcc (tests/cudaemu). Called by build_model.c.
#include "driver.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 64 };

static const char *environment(const char *name, const char *otherwise)
{
	const char *v = getenv(name);
	return v && *v ? v : otherwise;
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

// ---- the emulator ------------------------------------------------------------------------------------------

static const char *const headers[] = {"cuda_runtime.h", "cuda_runtime_api.h", "cublasLt.h", "cudnn.h", "cuda_library.h",
	"cuda_fp16.h", "cuda_bf16.h", "cudaemu.h", "objects.h", "order.h"};
static const char *const sources[] = {"api.cc", "banks.cc", "block.cc", "memory.cc", "queue.cc", "races.cc", "report.cc", "shadow.cc"};

static bool emulator_write(Driver *d, const char *folder)
{
	FilePiece pieces[COUNT_OF(headers) + COUNT_OF(sources)];
	for (size_t i = 0; i < COUNT_OF(pieces); i++) {
		const char *name = i < COUNT_OF(headers) ? headers[i] : sources[i - COUNT_OF(headers)];
		const char *text = embed_text(name);
		pieces[i] = (FilePiece){arena_printf(d->ctx->arena, "%s/%s", folder, name), text, strlen(text)};
	}
	return folder_make(d->ctx, folder) && file_write_group(d->ctx, (int)COUNT_OF(pieces), pieces);
}

// Compiler, flags, and where the headers are.
static int emulator_command(Driver *d, const BuiltModel *b, const char *flags, const char **argv)
{
	const char *cc = d->options->cc ? d->options->cc : environment("CC", "cc");
	int n = words_append(d->ctx, cc, argv, 0, MAX_ARGUMENTS - 24);
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

static uint64_t text_hash(uint64_t h, const char *name)
{
	const char *text = embed_text(name);
	return bytes_hash(h, text, strlen(text) + 1);
}

// The name that an object of these texts, this compiler and its flags has in the cache.
static const char *common_name(Driver *d)
{
	static const char *const others[] = {"pdrt.h", "pdrt.c", "harness.c", "harness_npy.h"};
	const char *cc = d->options->cc ? d->options->cc : environment("CC", "cc");
	uint64_t h = bytes_hash(BYTES_HASH_START, cc, strlen(cc) + 1);
	if (d->options->cflags)
		h = bytes_hash(h, d->options->cflags, strlen(d->options->cflags));
	for (size_t i = 0; i < COUNT_OF(headers); i++)
		h = text_hash(h, headers[i]);
	for (size_t i = 0; i < COUNT_OF(sources); i++)
		h = text_hash(h, sources[i]);
	for (size_t i = 0; i < COUNT_OF(others); i++)
		h = text_hash(h, others[i]);
	return arena_printf(d->ctx->arena, "cudaemu-%016" PRIx64 ".o", h);
}

// The user's folder for what can be made again; NULL: there is none to write to.
static const char *cache_folder(Driver *d)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (!cache || *cache != '/')
		cache = home && *home == '/' ? arena_printf(d->ctx->arena, "%s/.cache", home) : NULL;
	if (!cache)
		return NULL;
	const char *own = arena_printf(d->ctx->arena, "%s/pdcc", cache);
	mkdir(cache, 0700);
	mkdir(own, 0700);
	return access(own, W_OK | X_OK) == 0 ? own : NULL;
}

// The path of that object: made in the cache by the first run, found there by all others. NULL after a diagnostic.
static const char *common_object(Driver *d, const BuiltModel *b)
{
	const char *cache = cache_folder(d);
	if (!cache) {
		const char *object = in_folder(d, b, "cudaemu/common.o");
		return common_build(d, b, object) ? object : NULL;
	}
	const char *object = arena_printf(d->ctx->arena, "%s/%s", cache, common_name(d));
	if (access(object, R_OK) == 0)
		return object;
	const char *made = arena_printf(d->ctx->arena, "%s.%ld", object, (long)getpid());
	if (!common_build(d, b, made))
		return NULL;
	return rename(made, object) == 0 ? object : made;
}

static bool accesses_seen(void)
{
	return getenv("CUDAEMU_RACES") != NULL;
}

// C++14: the headers of later standards take g++ as long as a model does. Alignment: a GPU asks for more than the CPU; the
// emulator says what is wrong, so no library is linked for that.
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
	fprintf(stderr, "pdcc: note: no GPU here (%s): the CUDA code is emulated on the CPU\n", missing);
	return emulator_build(d, b);
}
