/* What generated CUDA code needs besides pdrt.h: launches, into a stream or into a graph, that stop
 * at the first error; conditional nodes; and staging for programs that hold their tensors on the
 * host. What kernels use is in pdrt_cuda_device.h. C++11 and up. */
#ifndef PDRT_CUDA_H
#define PDRT_CUDA_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pdrt.h"
#include "pdrt_cuda_device.h"

/* ---- on the host ----------------------------------------------------------------------------- */

/* The first error of CUDA, and the kernel or the call that it comes from. */
typedef struct pd_error {
	cudaError_t code;
	const char *at;
	const char *name; /* of a library's error; NULL: of the code */
} pd_error;

enum { PD_MOST_AFTER = 32 };

/* Where work goes: into a stream, or into a graph, there behind the last node, or the nodes that
 * pd_after names. After an error nothing more goes in. */
typedef struct pd_queue {
	cudaStream_t stream;
	cudaGraph_t root, graph;              /* graph: root, or the body of a conditional node in it */
	cudaGraphNode_t after[PD_MOST_AFTER]; /* what the next node waits for */
	size_t nafter;
	bool conditions; /* the graph has conditional nodes */
	pd_turn turn;    /* of the program: what goes in belongs to its part; the next kernel that can
	                    counts */
	int64_t rounds;  /* of a loop, queued so far */
	int64_t count;   /* of rounds, when that is known; else less than 0 */
	pd_error *error;
} pd_queue;

static inline bool pd_ok(const pd_queue *q)
{
	return q->error->code == cudaSuccess;
}

static inline void pd_check_at(pd_queue *q, cudaError_t code, const char *at)
{
	if (!pd_ok(q) || code == cudaSuccess)
		return;
	q->error->code = code;
	q->error->at = at;
}

/* Keeps the first error; after it there are no more calls. */
#define pd_check(q, call) (pd_ok(q) ? pd_check_at(q, call, #call) : (void)0)

/* What an instance says of an error. CUDA keeps the last one for whoever asks next; that need not
 * be the caller's. */
static inline pd_status pd_failure(const pd_error *e, const char **failed, const char **name)
{
	*failed = e->at;
	*name = e->name ? e->name : cudaGetErrorName(e->code);
	(void)cudaGetLastError();
	return PD_DEVICE;
}

static inline unsigned pd_blocks(int64_t threads, unsigned per_block)
{
	const int64_t blocks = (threads + per_block - 1) / per_block;
	return blocks < 1 ? 1 : blocks > 65535 ? 65535 : (unsigned)blocks;
}

/* For kernels that need all their blocks; there is at least one. */
static inline unsigned pd_grid(int64_t blocks)
{
	return blocks < 1 ? 1 : blocks > INT32_MAX ? (unsigned)INT32_MAX : (unsigned)blocks;
}

/* The node that was added last. */
static inline cudaGraphNode_t pd_last(const pd_queue *q)
{
	return q->nafter ? q->after[0] : NULL;
}

static inline void pd_added(pd_queue *q, cudaGraphNode_t node)
{
	q->after[0] = node;
	q->nafter = 1;
}

/* A node that does nothing. */
static inline void pd_meet(pd_queue *q)
{
	cudaGraphNode_t node = NULL;
	if (q->graph)
		pd_check(q, cudaGraphAddEmptyNode(&node, q->graph, q->after, q->nafter));
	pd_added(q, node);
}

/* The next node waits for none. */
static inline void pd_after_nothing(pd_queue *q)
{
	q->nafter = 0;
}

static inline void pd_after_too(pd_queue *q, cudaGraphNode_t node)
{
	if (q->nafter == PD_MOST_AFTER)
		pd_meet(q);
	q->after[q->nafter++] = node;
}

/* The next node waits for these. */
template <typename... N> void pd_after(pd_queue *q, N... nodes)
{
	q->nafter = 0;
	const int all[] = {(pd_after_too(q, nodes), 0)...};
	(void)all;
}

template <typename T> struct pd_same {
	typedef T type;
};

/* A block: its threads, and bytes of shared memory for PD_DYNAMIC. */
struct pd_block {
	unsigned threads;
	unsigned shared;
	pd_block(unsigned threads_, unsigned shared_ = 0) : threads(threads_), shared(shared_)
	{
	}
};

enum { PD_SHARED_ALWAYS = 48 << 10 }; /* more must be asked for, and not every device has it */

template <typename K>
void pd_launch_list(pd_queue *q, const char *at, K kernel, unsigned blocks, pd_block block,
                    void **list)
{
	if (pd_ok(q) && block.shared > PD_SHARED_ALWAYS)
		pd_check_at(q,
		            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
		                                 (int)block.shared),
		            at);
	if (!pd_ok(q))
		return;
	if (!q->graph) {
		pd_check_at(q,
		            cudaLaunchKernel(kernel, dim3(blocks), dim3(block.threads), list, block.shared,
		                             q->stream),
		            at);
		return;
	}
	cudaFuncAttributes attributes; /* says whether this device can run it */
	pd_check_at(q, cudaFuncGetAttributes(&attributes, kernel), at);
	if (!pd_ok(q))
		return;
	cudaKernelNodeParams params = {};
	params.func = reinterpret_cast<void *>(kernel);
	params.gridDim = dim3(blocks);
	params.blockDim = dim3(block.threads);
	params.sharedMemBytes = block.shared;
	params.kernelParams = list;
	cudaGraphNode_t node = NULL;
	pd_check_at(q, cudaGraphAddKernelNode(&node, q->graph, q->after, q->nafter, &params), at);
	pd_added(q, node);
}

template <typename... P>
void pd_launch_at(pd_queue *q, const char *at, void (*kernel)(P...), unsigned blocks,
                  pd_block block, typename pd_same<P>::type... args)
{
	void *list[] = {(void *)&args..., NULL};
	pd_launch_list(q, at, kernel, blocks, block, list);
}

/* The same for a kernel that must know whether its part of the program runs. */
template <typename... P>
void pd_launch_at(pd_queue *q, const char *at, void (*kernel)(pd_guard, P...), unsigned blocks,
                  pd_block block, typename pd_same<P>::type... args)
{
	void *list[] = {&q->turn.part, (void *)&args..., NULL};
	pd_launch_list(q, at, kernel, blocks, block, list);
}

/* And for one that may have to count the rounds. */
template <typename... P>
void pd_launch_at(pd_queue *q, const char *at, void (*kernel)(pd_turn, P...), unsigned blocks,
                  pd_block block, typename pd_same<P>::type... args)
{
	void *list[] = {&q->turn, (void *)&args..., NULL};
	pd_launch_list(q, at, kernel, blocks, block, list);
	q->turn.left = NULL;
}

/* kernel<<<blocks, threads>>>(args...), or, with a block {threads, shared}, <<<blocks, threads,
 * shared>>> */
#define pd_launch(q, kernel, ...) pd_launch_at(q, #kernel, kernel, __VA_ARGS__)

static inline void pd_clear(pd_queue *q, void *at, size_t n)
{
	if (n)
		pd_check(q, cudaMemsetAsync(at, 0, n, q->stream));
}

/* Waits for the stream, also after an error: what is queued may read and write memory of the host.
 */
static inline void pd_synchronize(pd_queue *q)
{
	const cudaError_t error = cudaStreamSynchronize(q->stream);
	pd_check_at(q, error, "cudaStreamSynchronize(stream)");
}

static inline void pd_copy_in(pd_queue *q, void *to, const void *from, size_t n)
{
	if (n)
		pd_check(q, cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, q->stream));
}

static inline void pd_copy_out(pd_queue *q, void *to, const void *from, size_t n)
{
	if (n)
		pd_check(q, cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, q->stream));
}

/* On the device, in no part that may not run. */
static inline void pd_copy(pd_queue *q, void *to, const void *from, size_t n)
{
	cudaGraphNode_t node = NULL;
	if (!n) {
		pd_meet(q);
		return;
	}
	if (!q->graph) {
		pd_check(q, cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, q->stream));
		return;
	}
	pd_check(q, cudaGraphAddMemcpyNode1D(&node, q->graph, q->after, q->nafter, to, from, n,
	                                     cudaMemcpyDeviceToDevice));
	pd_added(q, node);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Whether what failed is that there are no conditional nodes; then it is forgotten. */
static inline bool pd_lacks_conditions(pd_error *error)
{
	if (error->code != cudaErrorNotSupported && error->code != cudaErrorCallRequiresNewerDriver)
		return false;
	*error = pd_error();
	(void)cudaGetLastError();
	return true;
}

static inline unsigned long long pd_handle(pd_queue *q)
{
	unsigned long long handle = 0;
	int driver = 0;
	q->conditions = true;
	pd_check(q, cudaDriverGetVersion(&driver));
	if (!PD_CONDITIONS || driver < PD_CONDITIONS_DRIVER)
		pd_check_at(q, cudaErrorCallRequiresNewerDriver, "conditional nodes");
#if PD_CONDITIONS
	pd_check(q, cudaGraphConditionalHandleCreate(&handle, q->root, 0, cudaGraphCondAssignDefault));
#endif
	return handle;
}

/* A condition of two parts or one; on: a word for each. */
static inline pd_condition pd_condition_new(pd_queue *q, int *on, bool has_else)
{
	pd_condition c = {0, 0, NULL};
	if (!q->graph) { /* nothing runs until it is decided: those who decide may be in a part that
		                does not run */
		c.on = on;
		pd_check(q, cudaMemsetAsync(on, 0, 2 * sizeof *on, q->stream));
		return c;
	}
	c.handle = pd_handle(q);
	if (has_else && !PD_GRAPH_ELSE)
		c.otherwise = pd_handle(q);
	return c;
}

enum { PD_IF, PD_WHILE, PD_SWITCH };

/* Adds a conditional node; parts[] are queues for what it may run. */
static inline void pd_node(pd_queue *q, unsigned long long handle, int type, unsigned n,
                           pd_queue *parts)
{
	if (!pd_ok(q))
		return;
#if PD_CONDITIONS
	cudaGraphNodeParams params = {};
	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = handle;
	params.conditional.type = type == PD_WHILE ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
#if PD_GRAPH_SWITCH
	if (type == PD_SWITCH)
		params.conditional.type = cudaGraphCondTypeSwitch;
#endif
	params.conditional.size = n;
	cudaGraphNode_t node = NULL;
#if CUDART_VERSION >= 13000
	pd_check(q, cudaGraphAddNode(&node, q->graph, q->after, NULL, q->nafter, &params));
#else
	pd_check(q, cudaGraphAddNode(&node, q->graph, q->after, q->nafter, &params));
#endif
	pd_added(q, node);
	for (unsigned i = 0; i < n && pd_ok(q); i++) {
		parts[i].graph = params.conditional.phGraph_out[i];
		parts[i].nafter = 0;
	}
#else
	(void)handle, (void)type, (void)n, (void)parts;
#endif
}

static inline void pd_parts(const pd_queue *q, int *on, int n, pd_queue *parts)
{
	for (int i = 0; i < n; i++) {
		parts[i] = *q;
		parts[i].rounds = 0;
		parts[i].count = -1;
		if (on)
			parts[i].turn.part.on = on + i;
	}
}

static inline pd_queue pd_while(pd_queue *q, pd_condition c)
{
	pd_queue body;
	pd_parts(q, c.on, 1, &body);
	if (q->graph)
		pd_node(q, c.handle, PD_WHILE, 1, &body);
	return body;
}

/* Where the rounds that are left are counted: none before somebody says how many. */
static inline pd_condition pd_counter_new(pd_queue *q, int *on, int64_t *left)
{
	if (!q->graph)
		pd_clear(q, left, sizeof *left);
	return pd_condition_new(q, on, false);
}

/* Such a loop: `rounds` of them, or, when that is less than 0, as many as are left. The host asks
 * at most once. */
static inline pd_queue pd_counted(pd_queue *q, pd_condition c, const int64_t *left, int64_t rounds)
{
	if (q->graph)
		return pd_while(q, c);
	pd_queue body;
	pd_parts(q, NULL, 1, &body);
	body.count = rounds;
	if (rounds < 0) {
		body.count = 0;
		pd_copy_out(q, &body.count, left, sizeof *left);
		pd_synchronize(q);
	}
	return body;
}

/* The next kernel counts the rounds. The host does where it goes round itself. */
static inline void pd_count_with_next(pd_queue *body, int64_t *left, pd_condition c)
{
	body->turn.left = body->graph ? left : NULL;
	body->turn.goes_on = c;
}

/* The host reads whether a loop goes on before every so many rounds; those in between find that out
 * themselves. */
#ifndef PD_ROUNDS_PER_READ
#define PD_ROUNDS_PER_READ 8
#endif

/* Whether another round goes in: of a node it is the only one. */
static inline bool pd_round(pd_queue *body)
{
	int on = 1;
	if (body->graph)
		return pd_ok(body) && !body->rounds++;
	if (body->count >= 0)
		return pd_ok(body) && body->rounds++ < body->count;
	if (body->rounds++ % PD_ROUNDS_PER_READ == 0) {
		pd_copy_out(body, &on, body->turn.part.on, sizeof on);
		pd_synchronize(body);
	}
	return pd_ok(body) && on;
}

/* parts: then, else. */
static inline void pd_if(pd_queue *q, pd_condition c, pd_queue parts[2])
{
	pd_parts(q, c.on, 2, parts);
	if (!q->graph)
		return;
	pd_node(q, c.handle, PD_IF, PD_GRAPH_ELSE ? 2 : 1, parts);
	if (!PD_GRAPH_ELSE)
		pd_node(q, c.otherwise, PD_IF, 1, parts + 1);
}

/* on: a word for each part. */
template <int N> pd_choice<N> pd_choice_new(pd_queue *q, int *on)
{
	pd_choice<N> c = {};
	if (!q->graph) { /* as above */
		c.on = on;
		pd_check(q, cudaMemsetAsync(on, 0, N * sizeof *on, q->stream));
		return c;
	}
	for (int i = 0; i < (PD_GRAPH_SWITCH ? 1 : N); i++)
		c.handle[i] = pd_handle(q);
	return c;
}

template <int N> void pd_switch(pd_queue *q, const pd_choice<N> &c, pd_queue (&parts)[N])
{
	pd_parts(q, c.on, N, parts);
	if (!q->graph)
		return;
	if (PD_GRAPH_SWITCH)
		pd_node(q, c.handle[0], PD_SWITCH, N, parts);
	for (int i = 0; i < N && !PD_GRAPH_SWITCH; i++)
		pd_node(q, c.handle[i], PD_IF, 1, parts + i);
}

static inline pd_queue pd_queue_of(cudaStream_t stream, pd_error *error)
{
	pd_queue q = {};
	q.stream = stream;
	q.error = error;
	*error = pd_error();
	return q;
}

/* A queue that fills a new graph. */
static inline pd_queue pd_graph_begin(cudaStream_t stream, pd_error *error)
{
	pd_queue q = pd_queue_of(stream, error);
	pd_check(&q, cudaGraphCreate(&q.root, 0));
	q.graph = q.root;
	return q;
}

/* Whether what was made of an older graph became the new one: where only arguments differ.
 * Conditions would remain the old ones. */
static inline bool pd_graph_update(pd_queue *q, cudaGraphExec_t exec)
{
	cudaGraphExecUpdateResultInfo info;
	if (!exec || !pd_ok(q) || q->conditions)
		return false;
	if (cudaGraphExecUpdate(exec, q->root, &info) == cudaSuccess)
		return true;
	(void)cudaGetLastError(); /* no failure: it is made anew */
	return false;
}

/* Makes the graph ready to be launched, in place of what *exec is; NULL after an error. */
static inline void pd_graph_end(pd_queue *q, cudaGraphExec_t *exec)
{
	if (!pd_graph_update(q, *exec)) {
		if (*exec)
			cudaGraphExecDestroy(*exec);
		*exec = NULL;
		pd_check(q, cudaGraphInstantiate(exec, q->root, 0));
		if (!pd_ok(q))
			*exec = NULL;
	}
	if (q->root)
		cudaGraphDestroy(q->root);
}

/* ---- instances ------------------------------------------------------------------------------- */

/* What kernels told of a run, as it was copied to the host. */
static inline pd_state pd_state_of(const int64_t *told)
{
	pd_state state;
	memcpy(&state, told, sizeof state);
	return state;
}

/* Whether `device` is the current one. Other devices know neither the memory of an instance nor its
 * graph. */
static inline bool pd_device_is(pd_queue *q, int device)
{
	int current = device;
	pd_check(q, cudaGetDevice(&current));
	return current == device;
}

/* Whether kernels of the device may touch what is there: its own memory, managed, or pinned memory
 * of the host; any where it can read all of the host. */
static inline bool pd_is_reachable(pd_queue *q, int device, const void *p)
{
	cudaPointerAttributes a = {};
	int all = 0;
	pd_check(q, cudaPointerGetAttributes(&a, p));
	if (pd_ok(q) && a.type == cudaMemoryTypeUnregistered)
		pd_check(q, cudaDeviceGetAttribute(&all, cudaDevAttrPageableMemoryAccess, device));
	return !pd_ok(q) ||
	       (a.type == cudaMemoryTypeDevice ? a.device == device
	                                       : a.type != cudaMemoryTypeUnregistered || all);
}

static inline bool pd_tensors_are_of(pd_queue *q, int device, int n, const void *const *tensors)
{
	for (int i = 0; i < n; i++)
		if (!pd_is_reachable(q, device, tensors[i]))
			return false;
	return true;
}

/* The caller's memory, or, without any, `size` bytes that *owned keeps. NULL after an error, and
 * for what the device does not reach. */
static inline unsigned char *pd_memory_take(pd_queue *q, void *memory, size_t size, int device,
                                            void **owned)
{
	if (!memory) {
		unsigned char *p = NULL;
		pd_check(q, cudaMalloc(&p, size));
		return (unsigned char *)(*owned = pd_ok(q) ? p : NULL);
	}
	return pd_is_reachable(q, device, memory) ? (unsigned char *)memory : NULL;
}

/* ---- for programs that hold their tensors on the host: model_info ---------------------------- */

/* Memory of the device that is kept from run to run, and what failed last. Starts as zeros. */
typedef struct pd_stage {
	cudaStream_t stream;
	void **tensors; /* inputs, then outputs */
	size_t *sizes;
	char failed[256];
} pd_stage;

/* A status with its message: the operator; or CUDA's name of the error, what that means, and where
 * it was. */
static inline pd_status pd_stage_status(pd_stage *s, pd_status status, const char *failed,
                                        const char *name)
{
	s->failed[0] = '\0';
	if (status != PD_OK && failed)
		snprintf(s->failed, sizeof s->failed, name ? "%s in %s" : "%.0s%s", name ? name : "",
		         failed);
	return status;
}

static inline pd_status pd_stage_error(pd_stage *s, const pd_error *e)
{
	const char *failed, *name;
	const pd_status status = pd_failure(e, &failed, &name);
	return pd_stage_status(s, status, failed, name);
}

/* n bytes, those of the run before when there were as many. */
static inline void *pd_stage_memory(pd_queue *q, void **at, size_t *size, size_t n)
{
	if (*at && *size == n)
		return *at;
	if (*at)
		pd_check(q, cudaFree(*at));
	*at = NULL;
	unsigned char *p = NULL;
	pd_check(q, cudaMalloc(&p, n ? n : 1));
	*size = n;
	return *at = pd_ok(q) ? p : NULL;
}

static inline size_t pd_stage_bytes(const pd_tensor_info *t, const int64_t *dims)
{
	size_t n = pd_dtype_size(t->dtype);
	for (int d = 0; d < t->rank; d++)
		n *= (size_t)dims[d];
	return n;
}

/* Memory for all tensors of a run, inputs copied to it. */
static inline void pd_stage_in(pd_stage *s, pd_queue *q, const pd_model_info *info,
                               const int64_t *symbols, const void *const *inputs, int64_t *dims)
{
	const size_t all = (size_t)info->inputs + (size_t)info->outputs + 1;
	int64_t *const room = static_cast<int64_t *>(malloc(all * sizeof(int64_t)));
	info->shapes(symbols, dims);
	if (!s->tensors)
		s->tensors = static_cast<void **>(calloc(all, sizeof *s->tensors));
	if (!s->sizes)
		s->sizes = static_cast<size_t *>(calloc(all, sizeof *s->sizes));
	if (!s->tensors || !s->sizes || !room)
		pd_check(q, cudaErrorMemoryAllocation);
	else
		info->room(symbols, room);
	for (int i = 0; pd_ok(q) && i < info->inputs + info->outputs; i++) {
		const pd_tensor_info *t = i < info->inputs ? &info->input[i]
		                                           : &info->output[i - info->inputs];
		const size_t n = i < info->inputs
		                     ? pd_stage_bytes(t, dims)
		                     : pd_dtype_size(t->dtype) * (size_t)room[i - info->inputs];
		void *p = pd_stage_memory(q, &s->tensors[i], &s->sizes[i], n);
		if (i < info->inputs)
			pd_copy_in(q, p, inputs[i], n);
		dims += t->rank;
	}
	free(room);
}

static inline void pd_stage_free(pd_stage *s, const pd_model_info *info)
{
	for (int i = 0; s->tensors && s->sizes && i < info->inputs + info->outputs; i++)
		cudaFree(s->tensors[i]);
	free(s->tensors);
	free(s->sizes);
	if (s->stream)
		cudaStreamDestroy(s->stream);
	*s = pd_stage();
}

/* And the outputs back, with all the room in them. */
static inline void pd_stage_out(pd_stage *s, pd_queue *q, const pd_model_info *info,
                                void *const *outputs)
{
	for (int i = 0; i < info->outputs; i++)
		pd_copy_out(q, outputs[i], s->tensors[info->inputs + i], s->sizes[info->inputs + i]);
	pd_synchronize(q);
}

#endif
