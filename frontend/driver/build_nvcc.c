// CUDA for real: whether there is a GPU, nvcc and its flags for --arch, and compiling what
// model_build wrote. Called by build_cuda.c, which emulates otherwise, and by the commands.
#include "frontend/driver/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 128 };

// ---- the GPU ------------------------------------------------------------------------------------

// What the driver's library says, which is what programs will be told.
static const char *driver_missing(Context *c)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!lib)
		return "no driver: there is no libcuda.so.1";
	int (*start)(unsigned flags), (*count)(int *n), n = 0;
	*(void **)&start = dlsym(lib, "cuInit");
	*(void **)&count = dlsym(lib, "cuDeviceGetCount");
	const char *why = NULL;
	int error = start && count ? start(0) : -1;
	if (!error)
		error = count(&n);
	if (error)
		why = arena_printf(c->arena, "the driver says error %d", error);
	else if (!n)
		why = "the driver knows of none";
	dlclose(lib);
	return why;
}

const char *cuda_missing(Context *c)
{
	const char *emulate = getenv("PDCC_EMULATE");
	return emulate && *emulate ? "PDCC_EMULATE is set" : driver_missing(c);
}

// ---- nvcc ---------------------------------------------------------------------------------------

const char *cuda_compiler(void)
{
	static const char usual[] = "/usr/local/cuda/bin/nvcc";
	const char *own = getenv("NVCC"), *path = getenv("PATH");
	if (own && *own)
		return own;
	char name[4096];
	for (const char *p = path ? path : ""; *p; p += strcspn(p, ":"), p += *p == ':')
		if (snprintf(name, sizeof name, "%.*s/nvcc", (int)strcspn(p, ":"), p) < (int)sizeof name &&
		    !access(name, X_OK))
			return "nvcc";
	return access(usual, X_OK) ? "nvcc" : usual;
}

const char *cuda_arch_flags(Context *c, const char *archs)
{
	if (!archs)
		return "-arch=native";
	Text t;
	text_init(&t, c->arena);
	for (const char *p = archs; *p; p += strcspn(p, ","), p += *p == ',') {
		const int n = (int)strcspn(p, ",") - 3; // behind "sm_"
		text_printf(&t, "%s-gencode=arch=compute_%.*s,code=sm_%.*s", p == archs ? "" : " ", n,
		            p + 3, n, p + 3);
		if (!p[3 + n]) // later GPUs translate the last one for themselves
			text_printf(&t, " -gencode=arch=compute_%.*s,code=compute_%.*s", n, p + 3, n, p + 3);
	}
	return t.text;
}

bool nvcc_build(Driver *d, const BuiltModel *b)
{
	static const char *const sources[] = {"model.cu", "pdrt.c", "harness.c"};
	Context *c = d->ctx;
	const char *argv[MAX_ARGUMENTS];
	int n = words_append(c, cuda_compiler(), argv, 0, MAX_ARGUMENTS), status = 0;
	n = words_append(c, "-O3", argv, n, MAX_ARGUMENTS);
	n = words_append(c, cuda_arch_flags(c, d->options->arch), argv, n, MAX_ARGUMENTS);
	n = words_append(c, d->options->cc ? arena_printf(c->arena, "-ccbin %s", d->options->cc) : NULL,
	                 argv, n, MAX_ARGUMENTS);
	n = words_append(c, d->options->cflags, argv, n, MAX_ARGUMENTS);
	if (n + 12 > MAX_ARGUMENTS) {
		diag_error(c->diag, NULL, "too many compiler flags");
		return false;
	}
	argv[n++] = "-I";
	argv[n++] = b->folder;
	for (size_t i = 0; i < COUNT_OF(sources); i++)
		argv[n++] = arena_printf(c->arena, "%s/%s", b->folder, sources[i]);
	argv[n++] = "-o";
	argv[n++] = b->program;
	n = words_append(c, b->libraries, argv, n, MAX_ARGUMENTS - 1);
	argv[n] = NULL;
	if (external_run(c, argv, &status))
		return true;
	if (status == 127)
		diag_error(
			c->diag, NULL,
			"a GPU is here, but not '%s'; $NVCC may say where it is, PDCC_EMULATE=1 runs without",
			argv[0]);
	else if (status)
		diag_error(c->diag, NULL, "the compiler '%s' failed (exit status %d)", argv[0], status);
	return false;
}
