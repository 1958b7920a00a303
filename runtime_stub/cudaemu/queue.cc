// What is queued, and when it runs: nodes, in graphs or in streams. A stream does its work when the
// host waits for it, and other streams may get ahead meanwhile; a graph runs its nodes in an order
// that the dependencies allow. Called by api.cc.
#include "objects.h"

#include <utility>
#include <vector>

namespace cudaemu
{

// ---- kernels ------------------------------------------------------------------------------------

struct Known {
	void *kernel;
	const Callable *how;
	size_t shared; // bytes that launches may ask for
};

static Known *known;
static int nknown;

static Known *known_find(void *kernel)
{
	for (int i = 0; i < nknown; i++)
		if (known[i].kernel == kernel)
			return &known[i];
	return nullptr;
}

void callable_register(void *kernel, const Callable *c)
{
	if (known_find(kernel))
		return;
	if (nknown % 64 == 0)
		known = static_cast<Known *>(realloc(known, (size_t)(nknown + 64) * sizeof *known));
	known[nknown++] = {kernel, c, SHARED_ALWAYS};
}

void kernel_shared_most(void *kernel, size_t bytes)
{
	known_find(kernel)->shared = bytes;
}

cudaError_t kernel_node(cudaGraphNode_t *out, void *kernel, dim3 grid, dim3 block,
                        void *const *args, size_t shared)
{
	const Known *k = known_find(kernel);
	const uint64_t threads = (uint64_t)block.x * block.y * block.z;
	if (!k)
		return cudaErrorInvalidDeviceFunction;
	if (!threads || threads > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z ||
	    grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
		return cudaErrorInvalidConfiguration;
	if (shared > k->shared)
		return cudaErrorInvalidValue;
	const Callable *how = k->how;
	cudaGraphNode_t n = node_new(NODE_KERNEL);
	n->launch.kernel = kernel;
	n->launch.how = how;
	n->launch.grid = grid;
	n->launch.block = block;
	n->launch.shared = shared;
	n->launch.args = static_cast<void **>(calloc((size_t)how->count + 1, sizeof(void *)));
	for (int i = 0; i < how->count; i++) {
		n->launch.args[i] = malloc(how->sizes[i]);
		memcpy(n->launch.args[i], args[i], how->sizes[i]);
	}
	*out = n;
	return cudaSuccess;
}

// ---- nodes and graphs ---------------------------------------------------------------------------

static long graphs_live, streams_live;

cudaGraphNode_t node_new(NodeKind kind)
{
	cudaGraphNode_t n = static_cast<cudaGraphNode_t>(calloc(1, sizeof *n));
	n->kind = kind;
	return n;
}

static void node_free(cudaGraphNode_t n)
{
	for (int i = 0; n->launch.args && i < n->launch.how->count; i++)
		free(n->launch.args[i]);
	free(n->launch.args);
	free(n->deps);
	for (unsigned i = 0; i < n->nbody; i++)
		graph_free(n->bodies[i]);
	free(n->bodies);
	if (n->child)
		graph_release(n->child);
	free(n);
}

cudaGraph_t graph_new(cudaGraph_t root)
{
	cudaGraph_t g = static_cast<cudaGraph_t>(calloc(1, sizeof *g));
	g->root = root ? root : g;
	graphs_live += !root;
	return g;
}

void graph_free(cudaGraph_t g)
{
	g->destroyed = true;
	if (g->execs)
		return;
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
}

void graph_release(cudaGraph_t g)
{
	if (!--g->execs && g->destroyed)
		graph_free(g);
}

cudaError_t graph_add(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep,
                      cudaGraphNode_t n)
{
	n->graph = g;
	n->number = g->last ? g->last->number + 1 : 0;
	n->ndep = ndep;
	n->deps = static_cast<Edge *>(calloc(ndep + 1, sizeof *n->deps));
	for (size_t i = 0; i < ndep; i++) {
		if (deps[i]->graph != g)
			die("misuse: a node depends on a node of another graph");
		n->deps[i] = {deps[i], n, deps[i]->after};
		deps[i]->after = &n->deps[i];
	}
	*(g->last ? &g->last->next : &g->first) = n;
	g->last = n;
	*out = n;
	return cudaSuccess;
}

// ---- running ------------------------------------------------------------------------------------

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
	case NODE_EMPTY: break;
	case NODE_KERNEL: kernel_run(&n->launch); break;
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
	case NODE_CHILD: graph_run(n->child); break;
	case NODE_CONDITIONAL: conditional_run(n); break;
	}
}

static size_t graph_words(cudaGraph_t g)
{
	return (g->last ? g->last->number : 0) / 64 + 1;
}

static const uint64_t *graph_before(cudaGraph_t g)
{
	const size_t words = graph_words(g);
	if (g->before)
		return g->before;
	g->before = static_cast<uint64_t *>(calloc(words * 64 * words, sizeof(uint64_t)));
	for (cudaGraphNode_t n = g->first; n; n = n->next)
		for (size_t i = 0; i < n->ndep; i++) {
			const size_t d = n->deps[i].from->number;
			for (size_t w = 0; w < words; w++)
				g->before[n->number * words + w] |= g->before[d * words + w];
			g->before[n->number * words + d / 64] |= UINT64_C(1) << (d % 64);
		}
	return g->before;
}

static void graph_node_run(cudaGraphNode_t n)
{
	if (races_wanted())
		races_node(n->number);
	node_run(n);
}

// The seed draws each time from the nodes that wait for no other any more.
static void graph_run_drawn(cudaGraph_t g)
{
	std::vector<cudaGraphNode_t> ready;
	for (cudaGraphNode_t n = g->first; n; n = n->next)
		if ((n->waits = n->ndep) == 0)
			ready.push_back(n);
	while (!ready.empty()) {
		std::swap(ready[random_next((uint32_t)ready.size())], ready.back());
		cudaGraphNode_t n = ready.back();
		ready.pop_back();
		graph_node_run(n);
		for (const Edge *e = n->after; e; e = e->next)
			if (--e->to->waits == 0)
				ready.push_back(e->to);
	}
}

// Nodes depend on older ones only, so without a seed they run as they were added.
static void graph_run(cudaGraph_t g)
{
	const RacePlace outer = races_wanted() ? races_enter(graph_before(g), graph_words(g))
	                                       : RacePlace();
	if (random_wanted())
		graph_run_drawn(g);
	else
		for (cudaGraphNode_t n = g->first; n; n = n->next)
			graph_node_run(n);
	if (races_wanted())
		races_leave(outer);
}

// ---- streams ------------------------------------------------------------------------------------

static CUstream_st null_stream; // of whatever device
static cudaStream_t streams = &null_stream;

cudaStream_t stream_new()
{
	cudaStream_t s = static_cast<cudaStream_t>(calloc(1, sizeof *s));
	s->device = current_device;
	s->next = streams;
	streams_live++;
	streams = s;
	return s;
}

void stream_free(cudaStream_t s)
{
	for (cudaStream_t *at = &streams; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			free(s);
			streams_live--;
			break;
		}
}

cudaStream_t stream_check(cudaStream_t s)
{
	for (cudaStream_t t = streams; t && s; t = t->next)
		if (t == s)
			return s;
	if (s)
		die("misuse: a stream that does not exist");
	return &null_stream;
}

cudaError_t stream_queue(cudaStream_t s, cudaGraphNode_t n)
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
void stream_drain(cudaStream_t s)
{
	while (s->first) {
		for (cudaStream_t other = streams; other; other = other->next)
			if (other != s && other->first && random_next(2))
				stream_step(other);
		stream_step(s);
	}
	memory_check();
}

void all_drain()
{
	for (cudaStream_t s = streams; s; s = s->next)
		stream_drain(s);
}

long objects_live()
{
	return graphs_live + streams_live;
}

} // namespace cudaemu
