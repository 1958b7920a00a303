// The host side of the emulator: memory of the device between guard pages, streams that do their work when they must,
// graphs with conditional nodes, and how often each function was called. Work is queued as nodes, whether in a stream or
// in a graph; what is queued runs when the host waits for it, so reading too early is seen.
#include "cudaemu.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

// ---- objects -----------------------------------------------------------------------------------------------

enum NodeKind { NODE_EMPTY, NODE_KERNEL, NODE_COPY, NODE_SET, NODE_GRAPH, NODE_CHILD, NODE_CONDITIONAL };

struct Condition {
	unsigned value, initial;
	bool assign, bound;
	cudaGraph_t root;
	Condition *next;
};

struct CUgraphNode_st {
	NodeKind kind;
	cudaemu::Launch launch;
	void *to;
	const void *from;
	size_t bytes;
	int byte;
	cudaGraphExec_t exec;
	Condition *condition;
	cudaGraphConditionalNodeType type;
	unsigned nbody;
	cudaGraph_t *bodies, child;
	size_t ndep;
	cudaGraphNode_t *deps;
	cudaGraph_t graph;
	size_t number;        // in its graph
	cudaGraphNode_t next; // in its graph or stream
	bool done;            // while its graph runs
};

struct CUgraph_st {
	cudaGraphNode_t first, last;
	cudaGraph_t root; // itself, unless it is the body of a conditional node
	Condition *conditions;
	uint64_t *before; // for each node the set of those that edges put before it; NULL: not asked so far
	int execs;       // made from it
	bool destroyed;  // once there are none
	bool running;
};

struct CUgraphExec_st {
	cudaGraph_t graph;
};

struct CUstream_st {
	int device;
	cudaGraph_t recorded; // what is queued goes there
	cudaGraphNode_t first, last;
	cudaStream_t next;
};

namespace cudaemu {

// ---- messages, chance, counters --------------------------------------------------------------------------------

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

struct Counter {
	const char *name;
	long count;
};

static Counter counters[64];

static void report()
{
	const char *path = getenv("CUDAEMU_REPORT");
	FILE *f = path ? fopen(path, "w") : nullptr;
	for (Counter *c = counters; f && c->name; c++)
		fprintf(f, "%s %ld\n", c->name, c->count);
	if (f)
		fclose(f);
	if (getenv("CUDAEMU_LEAKS") && cudaemu_live()) {
		fprintf(stderr, "error: cudaemu: %ld allocations, streams or graphs are left\n", cudaemu_live());
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

static Failure failure;
static cudaError_t last_error;

static cudaError_t result(cudaError_t e)
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

// Whether CUDAEMU_FAIL wants this call of a function to fail, and how.
static cudaError_t called(const char *name)
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

#define ENTER()                                         \
	if (const cudaError_t failed_ = called(__func__)) \
	return failed_

static int current_device;

// ---- memory ----------------------------------------------------------------------------------------------------

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

// The end of an allocation lies at a guard page, but for what its alignment asks; those bytes are looked at later.
static cudaError_t memory_new(void **p, size_t n)
{
	if (n > (size_t)1 << 40)
		return result(cudaErrorMemoryAllocation);
	if (!allocations)
		faults_catch();
	const size_t page = page_size(), rounded = (n + ALIGN - 1) / ALIGN * ALIGN;
	Allocation *a = static_cast<Allocation *>(calloc(1, sizeof *a));
	a->mapped = (rounded + page - 1) / page * page + 2 * page;
	void *m = mmap(nullptr, a->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
			die("out of bounds: byte %td of an allocation of %zu bytes was written", p - a->data, a->size);
	}
}

// Whether n bytes at p are all of the device, or all of the host.
static bool range_is(const void *p, size_t n, bool device)
{
	const Allocation *a = allocation_find(p);
	if (!a || !device)
		return !a && !device;
	const char *at = static_cast<const char *>(p);
	return at >= a->data && n <= a->size && at - a->data <= (ptrdiff_t)(a->size - n);
}

static cudaError_t copy_check(const void *to, const void *from, size_t n, cudaMemcpyKind kind)
{
	const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	if (n && kind != cudaMemcpyDefault && (!range_is(to, n, to_device) || !range_is(from, n, from_device)))
		die("misuse: a copy of %zu bytes whose ends are not where its kind says, or not inside of an allocation", n);
	return cudaSuccess;
}

// ---- what is queued ----------------------------------------------------------------------------------------------

struct Known {
	void *kernel;
	const Callable *how;
};

static Known *known;
static int nknown;

static const Callable *callable_find(void *kernel)
{
	for (int i = 0; i < nknown; i++)
		if (known[i].kernel == kernel)
			return known[i].how;
	return nullptr;
}

void callable_register(void *kernel, const Callable *c)
{
	if (callable_find(kernel))
		return;
	if (nknown % 64 == 0)
		known = static_cast<Known *>(realloc(known, (size_t)(nknown + 64) * sizeof *known));
	known[nknown++] = {kernel, c};
}

static cudaGraphNode_t node_new(NodeKind kind)
{
	cudaGraphNode_t n = static_cast<cudaGraphNode_t>(calloc(1, sizeof *n));
	n->kind = kind;
	return n;
}

static void graph_release(cudaGraph_t g)
{
	if (!--g->execs && g->destroyed)
		cudaGraphDestroy(g);
}

static void node_free(cudaGraphNode_t n)
{
	for (int i = 0; n->launch.args && i < n->launch.how->count; i++)
		free(n->launch.args[i]);
	free(n->launch.args);
	free(n->deps);
	for (unsigned i = 0; i < n->nbody; i++)
		cudaGraphDestroy(n->bodies[i]);
	free(n->bodies);
	if (n->child)
		graph_release(n->child);
	free(n);
}

static cudaError_t kernel_node(cudaGraphNode_t *out, void *kernel, dim3 grid, dim3 block, void *const *args, size_t shared)
{
	const Callable *how = callable_find(kernel);
	const uint64_t threads = (uint64_t)block.x * block.y * block.z;
	if (!how)
		return cudaErrorInvalidDeviceFunction;
	if (!threads || threads > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z || grid.x > 2147483647u ||
	    grid.y > 65535 || grid.z > 65535 || shared > 48 << 10)
		return cudaErrorInvalidConfiguration;
	cudaGraphNode_t n = node_new(NODE_KERNEL);
	n->launch.kernel = kernel;
	n->launch.how = how;
	n->launch.grid = grid;
	n->launch.block = block;
	n->launch.args = static_cast<void **>(calloc((size_t)how->count + 1, sizeof(void *)));
	for (int i = 0; i < how->count; i++) {
		n->launch.args[i] = malloc(how->sizes[i]);
		memcpy(n->launch.args[i], args[i], how->sizes[i]);
	}
	*out = n;
	return cudaSuccess;
}

static void graph_run(cudaGraph_t g);

static void conditional_run(cudaGraphNode_t n)
{
	static const char *limit = getenv("CUDAEMU_MAX_ROUNDS");
	const long most = limit ? atol(limit) : 10000000;
	const Condition *c = n->condition;
	if (n->type == cudaGraphCondTypeWhile) {
		for (long rounds = 0; c->value; rounds++) {
			if (rounds == most)
				die("a loop goes on after %ld rounds", rounds);
			graph_run(n->bodies[0]);
		}
		return;
	}
	const unsigned which = n->type == cudaGraphCondTypeIf ? (c->value ? 0 : 1) : c->value;
	if (which < n->nbody)
		graph_run(n->bodies[which]);
}

static void node_run(cudaGraphNode_t n)
{
	switch (n->kind) {
	case NODE_EMPTY:
		break;
	case NODE_KERNEL:
		kernel_run(&n->launch);
		break;
	case NODE_COPY:
		races_touch(n->from, n->bytes, false);
		races_touch(n->to, n->bytes, true);
		shadow_copied(n->to, n->from, n->bytes);
		memmove(n->to, n->from, n->bytes);
		break;
	case NODE_SET:
		races_touch(n->to, n->bytes, true);
		shadow_copied(n->to, nullptr, n->bytes);
		memset(n->to, n->byte, n->bytes);
		break;
	case NODE_GRAPH:
		for (Condition *c = n->exec->graph->conditions; c; c = c->next)
			c->value = c->assign ? c->initial : c->value;
		n->exec->graph->running = true;
		graph_run(n->exec->graph);
		n->exec->graph->running = false;
		break;
	case NODE_CHILD:
		graph_run(n->child);
		break;
	case NODE_CONDITIONAL:
		conditional_run(n);
		break;
	}
}

static bool node_is_ready(cudaGraphNode_t n)
{
	for (size_t i = 0; i < n->ndep; i++)
		if (!n->deps[i]->done)
			return false;
	return !n->done;
}

static size_t graph_words(cudaGraph_t g)
{
	return (g->last ? g->last->number : 0) / 64 + 1;
}

// Nodes depend on older ones only.
static const uint64_t *graph_before(cudaGraph_t g)
{
	const size_t words = graph_words(g);
	if (g->before)
		return g->before;
	g->before = static_cast<uint64_t *>(calloc(words * 64 * words, sizeof(uint64_t)));
	for (cudaGraphNode_t n = g->first; n; n = n->next)
		for (size_t i = 0; i < n->ndep; i++) {
			const size_t d = n->deps[i]->number;
			for (size_t w = 0; w < words; w++)
				g->before[n->number * words + w] |= g->before[d * words + w];
			g->before[n->number * words + d / 64] |= UINT64_C(1) << (d % 64);
		}
	return g->before;
}

// In some order that the dependencies allow; the seed draws one.
static void graph_run(cudaGraph_t g)
{
	int left = 0;
	const RacePlace outer = races_wanted() ? races_enter(graph_before(g), graph_words(g)) : RacePlace();
	for (cudaGraphNode_t n = g->first; n; n = n->next, left++)
		n->done = false;
	for (; left; left--) {
		cudaGraphNode_t chosen = nullptr;
		uint32_t ready = 0;
		for (cudaGraphNode_t n = g->first; n; n = n->next)
			if (node_is_ready(n) && (ready++ == 0 || random_next(ready) + 1 == ready))
				chosen = n;
		if (!chosen)
			die("misuse: nodes of a graph wait for each other");
		if (races_wanted())
			races_node(chosen->number);
		node_run(chosen);
		chosen->done = true;
	}
	if (races_wanted())
		races_leave(outer);
}

static CUstream_st null_stream; // of whatever device
static cudaStream_t streams = &null_stream;

static cudaStream_t stream_check(cudaStream_t s)
{
	for (cudaStream_t t = streams; t && s; t = t->next)
		if (t == s)
			return s;
	if (s)
		die("misuse: a stream that does not exist");
	return &null_stream;
}

static cudaError_t graph_add(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep, cudaGraphNode_t n);

static cudaError_t stream_queue(cudaStream_t s, cudaGraphNode_t n)
{
	s = stream_check(s);
	if (s != &null_stream && s->device != current_device) {
		node_free(n);
		return result(cudaErrorInvalidResourceHandle);
	}
	if (s->recorded) {
		cudaGraphNode_t before = s->recorded->last;
		return graph_add(&n, s->recorded, &before, before != nullptr, n);
	}
	*(s->last ? &s->last->next : &s->first) = n;
	s->last = n;
	return cudaSuccess;
}

static void stream_step(cudaStream_t s)
{
	cudaGraphNode_t n = s->first;
	s->first = n->next;
	if (!s->first)
		s->last = nullptr;
	node_run(n);
	node_free(n);
}

// Other streams may get ahead meanwhile.
static void stream_drain(cudaStream_t s)
{
	while (s->first) {
		for (cudaStream_t other = streams; other; other = other->next)
			if (other != s && other->first && random_next(2))
				stream_step(other);
		stream_step(s);
	}
	for (const Allocation *a = allocations; a; a = a->next)
		slack_check(a);
}

static void all_drain()
{
	for (cudaStream_t s = streams; s; s = s->next)
		stream_drain(s);
}

cudaError_t launch(void *kernel, dim3 grid, dim3 block, void *const *args, size_t shared, cudaStream_t stream)
{
	if (const cudaError_t failed = called("cudaLaunchKernel"))
		return failed;
	cudaGraphNode_t n;
	const cudaError_t e = kernel_node(&n, kernel, grid, block, args, shared);
	return result(e == cudaSuccess ? stream_queue(stream, n) : e);
}

cudaError_t attributes_get(cudaFuncAttributes *a)
{
	*a = {1024, 32, 0, 0};
	return called("cudaFuncGetAttributes");
}

// ---- graphs ----------------------------------------------------------------------------------------------------

static long graphs_live, streams_live;

static cudaError_t graph_add(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep, cudaGraphNode_t n)
{
	n->graph = g;
	n->number = g->last ? g->last->number + 1 : 0;
	n->ndep = ndep;
	n->deps = static_cast<cudaGraphNode_t *>(calloc(ndep + 1, sizeof *n->deps));
	for (size_t i = 0; i < ndep; i++) {
		if (deps[i]->graph != g)
			die("misuse: a node depends on a node of another graph");
		n->deps[i] = deps[i];
	}
	*(g->last ? &g->last->next : &g->first) = n;
	g->last = n;
	*out = n;
	return cudaSuccess;
}

static cudaGraph_t graph_new(cudaGraph_t root)
{
	cudaGraph_t g = static_cast<cudaGraph_t>(calloc(1, sizeof *g));
	g->root = root ? root : g;
	graphs_live += !root;
	return g;
}

} // namespace cudaemu

using namespace cudaemu;

// ---- the API ------------------------------------------------------------------------------------------------------

const char *cudaGetErrorName(cudaError_t e)
{
	static const struct {
		cudaError_t error;
		const char *name;
	} names[] = {
#define NAME(e) {e, #e}
		NAME(cudaSuccess), NAME(cudaErrorInvalidValue), NAME(cudaErrorMemoryAllocation), NAME(cudaErrorInvalidConfiguration),
		NAME(cudaErrorInsufficientDriver), NAME(cudaErrorInvalidDeviceFunction), NAME(cudaErrorNoDevice),
		NAME(cudaErrorCallRequiresNewerDriver), NAME(cudaErrorInvalidDevice),
		NAME(cudaErrorNoKernelImageForDevice), NAME(cudaErrorInvalidResourceHandle), NAME(cudaErrorIllegalAddress),
		NAME(cudaErrorNotSupported), NAME(cudaErrorGraphExecUpdateFailure),
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
	long n = graphs_live + streams_live;
	for (const Allocation *a = allocations; a; a = a->next)
		n++;
	return n;
}

size_t cudaemu_peak()
{
	const size_t peak = bytes_peak;
	bytes_peak = bytes_live;
	return peak;
}

enum { DEVICES = 2 };

cudaError_t cudaGetDeviceCount(int *n)
{
	ENTER();
	*n = DEVICES;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	ENTER();
	*device = current_device;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	ENTER();
	if (device < 0 || device >= DEVICES)
		return result(cudaErrorInvalidDevice);
	current_device = device;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
	ENTER();
	*value = 0;
	return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p)
{
	ENTER();
	const Allocation *a = allocation_find(p);
	*out = {};
	out->device = a ? a->device : -2;
	out->type = a ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
	ENTER();
	all_drain();
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n)
{
	ENTER();
	return memory_new(p, n);
}

cudaError_t cudaFree(void *p)
{
	ENTER();
	all_drain();
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

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t stream)
{
	ENTER();
	copy_check(to, from, n, kind);
	cudaGraphNode_t node = node_new(NODE_COPY);
	node->to = to;
	node->from = from;
	node->bytes = n;
	return stream_queue(stream, node);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind kind)
{
	ENTER();
	all_drain();
	copy_check(to, from, n, kind);
	shadow_copied(to, from, n);
	memmove(to, from, n);
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t stream)
{
	ENTER();
	if (n && !range_is(to, n, true))
		die("misuse: cudaMemsetAsync of %zu bytes that are not in one allocation", n);
	cudaGraphNode_t node = node_new(NODE_SET);
	node->to = to;
	node->byte = value;
	node->bytes = n;
	return stream_queue(stream, node);
}

cudaError_t cudaMemset(void *to, int value, size_t n)
{
	ENTER();
	cudaMemsetAsync(to, value, n, nullptr);
	all_drain();
	return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
	ENTER();
	*s = static_cast<cudaStream_t>(calloc(1, sizeof **s));
	(*s)->device = current_device;
	(*s)->next = streams;
	streams_live++;
	streams = *s;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
	return cudaStreamCreate(s);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
	ENTER();
	if (!s || stream_check(s)->recorded)
		return result(cudaErrorInvalidValue);
	s->recorded = graph_new(nullptr);
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
	*g = stream_check(s)->recorded;
	s->recorded = nullptr;
	return *g ? called(__func__) : result(cudaErrorInvalidValue);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	ENTER();
	stream_drain(stream_check(s));
	for (cudaStream_t *at = &streams; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			free(s);
			streams_live--;
			break;
		}
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	ENTER();
	stream_drain(stream_check(s));
	return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned flags)
{
	ENTER();
	*g = graph_new(nullptr);
	return flags ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
	g->destroyed = true;
	if (g->execs)
		return cudaSuccess;
	for (cudaGraphNode_t n = g->first, next; n; n = next) {
		next = n->next;
		node_free(n);
	}
	for (Condition *c = g->conditions, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	graphs_live -= g->root == g;
	free(g->before);
	free(g);
	return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep,
                                   const cudaKernelNodeParams *p)
{
	ENTER();
	cudaGraphNode_t n;
	const cudaError_t e = kernel_node(&n, p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes);
	return result(e == cudaSuccess ? graph_add(out, g, deps, ndep, n) : e);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep, void *to,
                                     const void *from, size_t bytes, cudaMemcpyKind kind)
{
	ENTER();
	copy_check(to, from, bytes, kind);
	if (g->root != g && kind != cudaMemcpyDeviceToDevice)
		return result(cudaErrorNotSupported);
	cudaGraphNode_t n = node_new(NODE_COPY);
	n->to = to;
	n->from = from;
	n->bytes = bytes;
	return graph_add(out, g, deps, ndep, n);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep,
                                       cudaGraph_t child)
{
	ENTER();
	cudaGraphNode_t n = node_new(NODE_CHILD);
	n->child = child; // nobody adds to it any more
	child->execs++;
	return graph_add(out, g, deps, ndep, n);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep)
{
	ENTER();
	return graph_add(out, g, deps, ndep, node_new(NODE_EMPTY));
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep,
                             cudaGraphNodeParams *p)
{
	ENTER();
	cudaConditionalNodeParams *c = &p->conditional;
	Condition *condition = reinterpret_cast<Condition *>(static_cast<uintptr_t>(c->handle));
	const unsigned most = c->type == cudaGraphCondTypeIf ? 2 : c->type == cudaGraphCondTypeWhile ? 1 : 1u << 16;
	if (p->type != cudaGraphNodeTypeConditional || !c->size || c->size > most)
		return result(cudaErrorInvalidValue);
	if (condition->bound || condition->root != g->root)
		die("misuse: a handle for two conditional nodes, or of another graph");
	condition->bound = true;
	cudaGraphNode_t n = node_new(NODE_CONDITIONAL);
	n->condition = condition;
	n->type = c->type;
	n->nbody = c->size;
	n->bodies = static_cast<cudaGraph_t *>(calloc(c->size, sizeof *n->bodies));
	for (unsigned i = 0; i < c->size; i++)
		n->bodies[i] = graph_new(g->root);
	c->phGraph_out = n->bodies;
	return graph_add(out, g, deps, ndep, n);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *h, cudaGraph_t g, unsigned initial, unsigned flags)
{
	ENTER();
	Condition *c = static_cast<Condition *>(calloc(1, sizeof *c));
	c->initial = initial;
	c->assign = flags & cudaGraphCondAssignDefault;
	c->root = g->root;
	c->next = g->root->conditions;
	g->root->conditions = c;
	*h = reinterpret_cast<uintptr_t>(c);
	return cudaSuccess;
}

void cudaGraphSetConditional(cudaGraphConditionalHandle h, unsigned value)
{
	Condition *c = reinterpret_cast<Condition *>(static_cast<uintptr_t>(h));
	if (!current || !c || !c->root->running)
		die("misuse: cudaGraphSetConditional outside of a kernel of that graph");
	c->value = value;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags)
{
	ENTER();
	for (const Condition *c = g->conditions; c; c = c->next)
		if (!c->bound)
			return result(cudaErrorInvalidValue);
	if (flags || g->root != g)
		return result(cudaErrorInvalidValue);
	*exec = static_cast<cudaGraphExec_t>(calloc(1, sizeof **exec));
	(*exec)->graph = g;
	g->execs++;
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	ENTER();
	all_drain();
	graph_release(exec->graph);
	free(exec);
	return cudaSuccess;
}

// Nodes may differ in arguments only, and all are compared in the order in which they were added.
static bool node_is_alike(cudaGraphNode_t x, cudaGraphNode_t y)
{
	if (x->kind != y->kind || x->kind == NODE_CONDITIONAL || x->kind == NODE_CHILD || x->ndep != y->ndep || x->launch.kernel != y->launch.kernel)
		return false;
	for (size_t i = 0; i < x->ndep; i++)
		if (x->deps[i]->number != y->deps[i]->number)
			return false;
	return true;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t g, cudaGraphExecUpdateResultInfo *info)
{
	ENTER();
	all_drain(); // what was launched before is as it was
	cudaGraphNode_t x = exec->graph->first, y = g->first;
	for (; x && y && node_is_alike(x, y); x = x->next)
		y = y->next;
	info->result = x || y ? cudaGraphExecUpdateError : cudaGraphExecUpdateSuccess;
	if (x || y)
		return result(cudaErrorGraphExecUpdateFailure);
	graph_release(exec->graph);
	exec->graph = g;
	g->execs++;
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	ENTER();
	cudaGraphNode_t n = node_new(NODE_GRAPH);
	n->exec = exec;
	return stream_queue(stream, n);
}
