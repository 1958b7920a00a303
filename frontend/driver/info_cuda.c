// The part of `pdcc info --target cuda` about generated kernels: what is launched, how wide memory
// is accessed, what goes through memory against the least that must; and, where there is an nvcc,
// registers, shared memory, spills and the occupancy that they allow. Needs no GPU. Called by
// cmd_info.c.
#include "frontend/driver/stats.h"
#include "frontend/read/read.h"
#include "lower/target/target.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Limits of a multiprocessor (CUDA C++ Programming Guide, "Compute Capabilities").
typedef struct Arch {
	const char *name;
	int shared; // bytes
} Arch;

static const Arch archs[] = {{"sm_90", 228 * 1024}, {"sm_80", 164 * 1024}};

enum {
	WARP = 32,
	MAX_WARPS = 64,
	MAX_BLOCKS = 32,
	REGISTERS = 65536,
	REGISTER_UNIT = 256,
	SHARED_UNIT = 128,
	PARTITIONS = 4,
	SHARED_OF_SYSTEM = 1024
};

// ---- nvcc ---------------------------------------------------------------------------------------

static bool nvcc_log(Driver *d, const Arch *arch, const char *folder, const char **log)
{
	Context *c = d->ctx;
	const char *path = arena_printf(c->arena, "%s/ptxas.log", folder);
	const char *argv[] = {cuda_compiler(),
	                      "-cubin",
	                      "-Xptxas",
	                      "-v",
	                      arena_printf(c->arena, "-arch=%s", arch->name),
	                      "-I",
	                      folder,
	                      "-o",
	                      arena_printf(c->arena, "%s/model.cubin", folder),
	                      arena_printf(c->arena, "%s/model.cu", folder),
	                      NULL};
	int status = 0;
	size_t size;
	stage_begin(d, "nvcc");
	const bool done = external_run_quiet(c, argv, path, &status);
	const uint8_t *text = status == EXTERNAL_MISSING ? NULL : file_map(c, path, &size);
	*log = text ? context_strn(c, (const char *)text, size) : NULL;
	if (done || status == EXTERNAL_MISSING)
		return true;
	diag_error(c->diag, NULL, "nvcc failed (exit status %d): %.400s", status, *log ? *log : "");
	return false;
}

// Whether a mangled name is that of the function: its length stands before it.
static bool mangled_is(const char *mangled, const char *end, const char *name)
{
	char with_length[256];
	snprintf(with_length, sizeof with_length, "%zu%s", strlen(name), name);
	const char *at = strstr(mangled, with_length);
	return at && at < end && at > mangled && !isdigit((unsigned char)at[-1]);
}

static int number_before(const char *from, const char *end, const char *what)
{
	const char *at = strstr(from, what);
	if (!at || at >= end)
		return 0;
	while (at > from && at[-1] == ' ')
		at--;
	while (at > from && isdigit((unsigned char)at[-1]))
		at--;
	return atoi(at);
}

// What ptxas says of a kernel; false: nothing.
static bool usage_find(const char *log, const char *kernel, KernelUsage *u)
{
	static const char head[] = "Compiling entry function '";
	*u = (KernelUsage){0};
	for (const char *p = log; p && (p = strstr(p, head)); p++) {
		const char *name = p + strlen(head), *end = strchr(name, '\''), *next = strstr(name, head);
		if (!end || !mangled_is(name, end, kernel))
			continue;
		if (!next)
			next = name + strlen(name);
		u->registers = number_before(end, next, " registers");
		u->shared = number_before(end, next, " bytes smem");
		u->spilled = number_before(end, next, " bytes spill stores") +
		             number_before(end, next, " bytes stack frame");
		return u->registers > 0;
	}
	return false;
}

// ---- occupancy ----------------------------------------------------------------------------------

static int round_up(int n, int unit)
{
	return (n + unit - 1) / unit * unit;
}

// Warps of a multiprocessor that may be there at once, of MAX_WARPS.
static int warps_at_once(const Arch *arch, const KernelUsage *u, int threads)
{
	const int warps = round_up(threads, WARP) / WARP;
	const int per_warp = round_up(u->registers * WARP, REGISTER_UNIT);
	const int by_registers = REGISTERS / PARTITIONS / per_warp * PARTITIONS / warps;
	const int by_shared = arch->shared / round_up(u->shared + SHARED_OF_SYSTEM, SHARED_UNIT);
	int blocks = MAX_WARPS / warps < MAX_BLOCKS ? MAX_WARPS / warps : MAX_BLOCKS;
	blocks = by_registers < blocks ? by_registers : blocks;
	blocks = by_shared < blocks ? by_shared : blocks;
	return blocks * warps;
}

// ---- collecting ---------------------------------------------------------------------------------

static void launch_add(CudaStats *s, const CudaLaunch *l)
{
	KernelStats *k = s->kernels;
	while (k < s->kernels + s->nkernel &&
	       (strcmp(k->launch.kernel, l->kernel) || k->launch.blocks != l->blocks))
		k++;
	if (k == s->kernels + s->nkernel)
		*k = (KernelStats){.launch = *l, .launches = 0}, s->nkernel++;
	if (k->launches++) {
		k->launch.read += l->read;
		k->launch.written += l->written;
	}
	s->launches++;
	s->wide += l->access == 16;
	s->tensor += l->tensor_cores;
	s->bytes += l->read + l->written;
}

static int by_bytes(const void *a, const void *b)
{
	const KernelStats *x = a, *y = b;
	const int64_t p = x->launch.read + x->launch.written, q = y->launch.read + y->launch.written;
	return p != q ? (p < q) - (p > q) : strcmp(x->launch.kernel, y->launch.kernel);
}

bool cuda_stats_collect(Driver *d, Op *module, const Target *t, CudaStats *s)
{
	Context *c = d->ctx;
	CodegenResult r;
	BuiltModel b;
	const Arch *arch = &archs[0];
	const char *log;
	if (!model_sources(d, module, t, NULL, false, &b, &r) || !nvcc_log(d, arch, b.folder, &log))
		return false;
	*s = (CudaStats){.arch = arch->name, .compiled = log != NULL, .least = r.least_bytes};
	s->kernels = NEW_ARRAY(c->arena, (size_t)r.nlaunch + 1, KernelStats);
	for (int i = 0; i < r.nlaunch; i++)
		launch_add(s, &r.launches[i]);
	qsort(s->kernels, (size_t)s->nkernel, sizeof *s->kernels, by_bytes);
	for (KernelStats *k = s->kernels; k < s->kernels + s->nkernel && log; k++) {
		if (!usage_find(log, k->launch.kernel, &k->usage))
			continue;
		k->usage.shared += k->launch.shared; // ptxas knows only what the kernel declares
		k->warps = warps_at_once(arch, &k->usage, (int)k->launch.threads);
		s->spilled += k->usage.spilled > 0;
	}
	return true;
}

// ---- printing -----------------------------------------------------------------------------------

static void row_print(Text *t, const CudaStats *s, const KernelStats *k)
{
	const CudaLaunch *l = &k->launch;
	if (l->threads)
		text_printf(t, "  %5d  %7lld  %7lld  %6d", k->launches, (long long)l->blocks,
		            (long long)l->threads, l->access);
	else // a library's call
		text_printf(t, "  %5d  %7s  %7s  %6s", k->launches, "-", "-", "-");
	if (s->compiled && k->usage.registers)
		text_printf(t, "  %4d  %6d  %6d  %8d%%", k->usage.registers, k->usage.shared,
		            k->usage.spilled, 100 * k->warps / MAX_WARPS);
	else if (s->compiled)
		text_printf(t, "  %4s  %6s  %6s  %9s", "-", "-", "-", "-");
	text_printf(t, "  %11lld  %11lld  %s%s\n", (long long)l->read, (long long)l->written, l->kernel,
	            l->tensor_cores ? "  (tensor cores)" : "");
}

void cuda_stats_print(Text *t, const CudaStats *s)
{
	text_printf(t,
	            "  launches   %d, of %d kernels (sizes that a caller sets count as 1, a loop as "
	            "one round)\n",
	            s->launches, s->nkernel);
	text_printf(t, "  wide       %d launches move 16 bytes a thread at once\n", s->wide);
	text_printf(t, "  tensor     %d launches use tensor cores\n", s->tensor);
	text_printf(t, "  traffic    %lld bytes, at least %lld: %.2f x\n", (long long)s->bytes,
	            (long long)s->least, s->least ? (double)s->bytes / (double)s->least : 1.0);
	if (s->compiled)
		text_printf(t, "  spills     %d kernels on %s\n", s->spilled, s->arch);
	else
		text_printf(t, "  (no nvcc: registers, shared memory and occupancy are not known)\n");
	text_printf(t, "  %5s  %7s  %7s  %6s", "times", "blocks", "threads", "access");
	if (s->compiled)
		text_printf(t, "  %4s  %6s  %6s  %9s", "regs", "shared", "local", "occupancy");
	text_printf(t, "  %11s  %11s  kernel\n", "read", "written");
	for (int i = 0; i < s->nkernel; i++)
		row_print(t, s, &s->kernels[i]);
}

void cuda_stats_json(Text *t, const CudaStats *s)
{
	text_printf(t,
	            "  \"cuda\": {\"launches\": %d, \"wide\": %d, \"tensor_cores\": %d, \"bytes\": "
	            "%lld, \"least_bytes\": %lld,\n",
	            s->launches, s->wide, s->tensor, (long long)s->bytes, (long long)s->least);
	if (s->compiled)
		text_printf(t, "    \"arch\": \"%s\", \"spilled\": %d,\n", s->arch, s->spilled);
	text_str(t, "    \"kernels\": [");
	for (int i = 0; i < s->nkernel; i++) {
		const KernelStats *k = &s->kernels[i];
		const CudaLaunch *l = &k->launch;
		text_printf(t,
		            "%s\n      {\"name\": \"%s\", \"launches\": %d, \"blocks\": %lld, \"threads\": "
		            "%lld, \"access\": %d, "
		            "\"tensor_cores\": %s, \"read\": %lld, \"written\": %lld",
		            i ? "," : "", l->kernel, k->launches, (long long)l->blocks,
		            (long long)l->threads, l->access, l->tensor_cores ? "true" : "false",
		            (long long)l->read, (long long)l->written);
		if (k->usage.registers)
			text_printf(t, ", \"registers\": %d, \"shared\": %d, \"local\": %d, \"warps\": %d",
			            k->usage.registers, k->usage.shared, k->usage.spilled, k->warps);
		text_char(t, '}');
	}
	text_str(t, "\n    ]},\n");
}
