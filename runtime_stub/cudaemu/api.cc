// The functions of the CUDA runtime, as cuda_runtime_api.h and cuda_runtime.h declare them: each
// counts its call (report.cc), says what is wrong use, and leaves the rest to memory.cc and
// queue.cc. Called by generated CUDA and by tests.
#include "objects.h"

using namespace cudaemu;

#define ENTER()                                       \
	if (const cudaError_t failed_ = called(__func__)) \
	return failed_

// ---- kernels ------------------------------------------------------------------------------------

namespace cudaemu
{

int current_device;

cudaError_t launch(void *kernel, dim3 grid, dim3 block, void *const *args, size_t shared,
                   cudaStream_t stream)
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

cudaError_t attribute_set(void *kernel, cudaFuncAttribute which, int value)
{
	if (const cudaError_t failed = called("cudaFuncSetAttribute"))
		return failed;
	if (which != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > SHARED_BYTES)
		return result(cudaErrorInvalidValue);
	kernel_shared_most(kernel, (size_t)value);
	return cudaSuccess;
}

} // namespace cudaemu

// ---- devices ------------------------------------------------------------------------------------

enum { DEVICES = 2 };

cudaError_t cudaGetDeviceCount(int *n)
{
	ENTER();
	*n = DEVICES;
	return cudaSuccess;
}

static int driver_version()
{
	const char *version = getenv("CUDAEMU_DRIVER");
	return version ? atoi(version) : CUDART_VERSION;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	ENTER();
	*version = driver_version();
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
	*out = {};
	out->device = memory_device(p);
	out->type = out->device >= 0 ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
	ENTER();
	all_drain();
	return cudaSuccess;
}

// ---- memory -------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void **p, size_t n)
{
	ENTER();
	return memory_new(p, n);
}

cudaError_t cudaFree(void *p)
{
	ENTER();
	all_drain();
	return memory_free(p);
}

static void copy_check(const void *to, const void *from, size_t n, cudaMemcpyKind kind)
{
	const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	if (n && kind != cudaMemcpyDefault &&
	    (!memory_holds(to, n, to_device) || !memory_holds(from, n, from_device)))
		die("misuse: a copy of %zu bytes whose ends are not where its kind says, or not inside of "
		    "an allocation",
		    n);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind,
                            cudaStream_t stream)
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
	if (n && !memory_holds(to, n, true))
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

// ---- streams ------------------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
	ENTER();
	*s = stream_new();
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
	stream_free(s);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	ENTER();
	stream_drain(stream_check(s));
	return cudaSuccess;
}

// ---- graphs -------------------------------------------------------------------------------------

cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned flags)
{
	ENTER();
	*g = graph_new(nullptr);
	return flags ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
	graph_free(g);
	return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps,
                                   size_t ndep, const cudaKernelNodeParams *p)
{
	ENTER();
	cudaGraphNode_t n;
	const cudaError_t e = kernel_node(&n, p->func, p->gridDim, p->blockDim, p->kernelParams,
	                                  p->sharedMemBytes);
	return result(e == cudaSuccess ? graph_add(out, g, deps, ndep, n) : e);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *out, cudaGraph_t g,
                                     const cudaGraphNode_t *deps, size_t ndep, void *to,
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

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t g,
                                       const cudaGraphNode_t *deps, size_t ndep, cudaGraph_t child)
{
	ENTER();
	cudaGraphNode_t n = node_new(NODE_CHILD);
	n->child = child; // nobody adds to it any more
	child->execs++;
	return graph_add(out, g, deps, ndep, n);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps,
                                  size_t ndep)
{
	ENTER();
	return graph_add(out, g, deps, ndep, node_new(NODE_EMPTY));
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps,
                             size_t ndep, cudaGraphNodeParams *p)
{
	ENTER();
	cudaConditionalNodeParams *c = &p->conditional;
	Condition *condition = reinterpret_cast<Condition *>(static_cast<uintptr_t>(c->handle));
	const unsigned most = c->type == cudaGraphCondTypeIf      ? 2
	                      : c->type == cudaGraphCondTypeWhile ? 1
	                                                          : 1u << 16;
	if (p->type != cudaGraphNodeTypeConditional || !c->size || c->size > most)
		return result(cudaErrorInvalidValue);
	if (driver_version() < 12080 && c->type != cudaGraphCondTypeWhile &&
	    (c->type != cudaGraphCondTypeIf || c->size > 1))
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

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *h, cudaGraph_t g,
                                             unsigned initial, unsigned flags)
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
	if (x->kind != y->kind || x->kind == NODE_CONDITIONAL || x->kind == NODE_CHILD ||
	    x->ndep != y->ndep || x->launch.kernel != y->launch.kernel)
		return false;
	for (size_t i = 0; i < x->ndep; i++)
		if (x->deps[i].from->number != y->deps[i].from->number)
			return false;
	return true;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t g,
                                cudaGraphExecUpdateResultInfo *info)
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
