/* The part of pdrt_cuda.h that kernels use: shared memory, how a run went, sizes that it finds,
 * what conditions hang on, and the small steps around them. The kernels here are launched by name
 * only: a program that takes the place of <cuda_runtime.h> needs no special syntax. */
#ifndef PDRT_CUDA_DEVICE_H
#define PDRT_CUDA_DEVICE_H

#include <cuda_runtime.h>

#include "pdrt.h"

#ifndef PD_SHARED
/* An array that the threads of a block share. */
#define PD_SHARED(type, name, n) __shared__ __align__(16) type name[n]

/* One whose bytes the launch gives, which may be more than 48 KiB; a kernel has at most one. */
#define PD_DYNAMIC(type, name, n)                               \
	extern __shared__ __align__(16) unsigned char pd_dynamic[]; \
	type *const name = reinterpret_cast<type *>(pd_dynamic)

/* Several elements at once; V is as large as they are, and i a multiple of their number. */
template <typename V, typename T> static __device__ inline V pd_shared_load(const T *s, int i)
{
	return *reinterpret_cast<const V *>(s + i);
}

template <typename V, typename T> static __device__ inline void pd_shared_store(T *s, int i, V v)
{
	*reinterpret_cast<V *>(s + i) = v;
}
#endif

#ifndef PD_COPY
/* From what may be behind the end of a value, as far as its bound goes. */
#define PD_COPY(to, from) ((to) = (from))
#endif

#ifdef __CUDACC__
#define PD_UNROLL _Pragma("unroll")
#define PD_ROLLED _Pragma("unroll 1")
#else
#define PD_UNROLL
#define PD_ROLLED
#endif

/* Where the memory of an instance begins: how its runs went. */
typedef struct pd_state {
	int status; /* a pd_status: what failed first */
	int op;     /* the number of the operator that failed */
} pd_state;

static __device__ inline void pd_fail(pd_state *state, int status, int op)
{
	if (atomicCAS(&state->status, (int)PD_OK, status) == PD_OK)
		state->op = op;
}

/* Sizes that a run finds; `found` elements further is what they should be. A size is never over its
 * bound, so that what goes on after a failure stays inside of memory. */
static __device__ inline void pd_set_size(int64_t *size, int found, int64_t n, int64_t bound,
                                          pd_state *state, int op)
{
	if (n < 0 || n > bound)
		pd_fail(state, n < 0 ? PD_DIMS : PD_CAPACITY, op);
	if (state->status == PD_OK || n > size[found])
		size[found] = n;
	*size = n < 0 ? 0 : n > bound ? bound : n;
}

/* There is room for *size, but not for n. */
static __device__ inline void pd_need_size(int64_t *size, int found, int64_t n, pd_state *state,
                                           int op)
{
	pd_fail(state, PD_CAPACITY, op);
	atomicMax((long long *)size + found, (long long)n);
}

/* Conditional nodes of graphs: before CUDA 12.4 there are none. Where a driver has none either,
 * kernels of a part of the program that may not run are told where to look whether it does, and the
 * host queues rounds of loops until it is told that they are over. */
#ifndef PD_CONDITIONS
#define PD_CONDITIONS (CUDART_VERSION >= 12040)
#endif

/* Such a part; its kernels end at once when *on is 0. */
typedef struct pd_guard {
	const int *on; /* NULL: it runs */
} pd_guard;

static __device__ inline bool pd_is_off(pd_guard part)
{
	return part.on && !*part.on;
}

/* The oldest driver whose conditional nodes are those of this toolkit; older ones may run the
 * program all the same. */
#define PD_CONDITIONS_DRIVER (CUDART_VERSION >= 12080 ? 12080 : 12040)

/* What a conditional node hangs on; `otherwise` is for toolkits whose conditions have no else.
 * Without nodes, a word for each part that says whether it runs. */
typedef struct pd_condition {
	unsigned long long handle, otherwise;
	int *on;
} pd_condition;

#if CUDART_VERSION >= 12080
#define PD_GRAPH_ELSE 1
#else
#define PD_GRAPH_ELSE 0
#endif
#define PD_GRAPH_SWITCH PD_GRAPH_ELSE

/* What a switch of so many parts hangs on: one handle, or, for toolkits without switches, one for
 * each part. */
template <int N> struct pd_choice {
	unsigned long long handle[N];
	int *on;
};

template <int N> static __device__ inline void pd_choose(const pd_choice<N> &c, unsigned which)
{
	PD_UNROLL
	for (unsigned i = 0; i < N && c.on; i++)
		c.on[i] = i == which;
	if (c.on)
		return;
#if PD_GRAPH_SWITCH
	cudaGraphSetConditional(c.handle[0], which);
#elif PD_CONDITIONS
	PD_UNROLL
	for (unsigned i = 0; i < N; i++)
		cudaGraphSetConditional(c.handle[i], i == which);
#endif
}

/* Steps that kernels of one block call; below are the kernels that do one of them alone. */

/* The two tensors of n elements take each other's place. */
template <typename T> static __device__ void pd_block_swap(T *a, T *b, int64_t n)
{
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (int64_t)gridDim.x * blockDim.x) {
		T x;
		PD_COPY(x, a[i]);
		PD_COPY(a[i], b[i]);
		b[i] = x;
	}
}

template <typename T> static __device__ void pd_block_move(T *to, const T *from, int64_t n)
{
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (int64_t)gridDim.x * blockDim.x)
		PD_COPY(to[i], from[i]);
}

/* How many elements there are by sizes on the device, which may be NULL; no more than `most`. */
static __device__ inline int64_t pd_elements(int64_t most, int64_t count, const int64_t *size,
                                             const int64_t *other)
{
	const int64_t n = count * (size ? *size : 1) * (other ? *other : 1);
	return n < most ? n : most;
}

template <typename T>
static __device__ void pd_block_move_sized(T *to, const T *from, int64_t most, int64_t count,
                                           const int64_t *size, const int64_t *other)
{
	pd_block_move(to, from, pd_elements(most, count, size, other));
}

/* As many elements as the larger of both has. */
template <typename T>
static __device__ void pd_block_swap_sized(T *a, T *b, int64_t most, int64_t count,
                                           const int64_t *size, const int64_t *other,
                                           int64_t count_2, const int64_t *size_2,
                                           const int64_t *other_2)
{
	const int64_t n = pd_elements(most, count, size, other),
				  n_2 = pd_elements(most, count_2, size_2, other_2);
	pd_block_swap(a, b, n > n_2 ? n : n_2);
}

/* Takes a condition to its node. */
static __device__ inline void pd_set_condition(pd_condition c, unsigned yes)
{
	if (c.on) {
		c.on[0] = yes;
		c.on[1] = !yes;
		return;
	}
#if PD_CONDITIONS
	cudaGraphSetConditional(c.handle, yes);
	if (!PD_GRAPH_ELSE && c.otherwise)
		cudaGraphSetConditional(c.otherwise, !yes);
#endif
}

/* After a failure no loop goes on. */
template <typename T>
static __device__ void pd_block_decide(const T *holds, const pd_state *state, pd_condition c)
{
	pd_set_condition(c, *holds && state->status == PD_OK);
}

/* The rounds of a loop that is counted: how many there will be, and one less. After a failure no
 * such loop begins. */
template <typename T>
static __device__ void pd_block_count(T *left, const T *rounds, const pd_state *state,
                                      pd_condition c)
{
	*left = state->status == PD_OK ? *rounds : 0;
	pd_set_condition(c, *left > 0);
}

template <typename T> static __device__ void pd_block_count_down(T *left, pd_condition c)
{
	pd_set_condition(c, --*left > 0);
}

/* A part whose rounds a kernel counts beside what it does; left: NULL where another one counts. */
typedef struct pd_turn {
	pd_guard part;
	int64_t *left;
	pd_condition goes_on;
} pd_turn;

static __device__ inline bool pd_is_off(pd_turn turn)
{
	if (turn.left && blockIdx.x == 0 && threadIdx.x == 0)
		pd_block_count_down(turn.left, turn.goes_on);
	return pd_is_off(turn.part);
}

/* Another round; more than `limit` are a failure. */
template <typename T>
static __device__ void pd_block_count_trip(T *trips, T limit, pd_state *state, int op)
{
	if (++*trips > limit)
		pd_fail(state, PD_TRIPS, op);
}

template <typename T> static __device__ void pd_block_set(T *x, T v)
{
	*x = v;
}

template <typename T> static __device__ void pd_block_zero(T *x, int n)
{
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
		x[i] = 0;
}

/* The same for all threads, behind a barrier; nobody reads *holds after it. After a failure nothing
 * holds. */
template <typename T> static __device__ bool pd_block_holds(const T *holds, const pd_state *state)
{
	const bool yes = *holds && state->status == PD_OK;
	__syncthreads();
	return yes;
}

/* Likewise how many rounds there will be. */
template <typename T> static __device__ T pd_block_rounds(const T *rounds, const pd_state *state)
{
	const T n = state->status == PD_OK ? *rounds : 0;
	__syncthreads();
	return n;
}

/* Likewise, whether *x is that number. */
template <typename T> static __device__ bool pd_block_is(const T *x, int64_t number)
{
	const bool yes = *x == number;
	__syncthreads();
	return yes;
}

#define PD_KERNEL(name, params, args)                      \
	template <typename T> __global__ void pd_##name params \
	{                                                      \
		if (!pd_is_off(part))                              \
			pd_block_##name args;                          \
	}

PD_KERNEL(swap, (pd_guard part, T *a, T *b, int64_t n), (a, b, n))
PD_KERNEL(move, (pd_guard part, T *to, const T *from, int64_t n), (to, from, n))
PD_KERNEL(move_sized,
          (pd_guard part, T *to, const T *from, int64_t most, int64_t count, const int64_t *size,
           const int64_t *other),
          (to, from, most, count, size, other))
PD_KERNEL(swap_sized,
          (pd_guard part, T *a, T *b, int64_t most, int64_t count, const int64_t *size,
           const int64_t *other, int64_t count_2, const int64_t *size_2, const int64_t *other_2),
          (a, b, most, count, size, other, count_2, size_2, other_2))
PD_KERNEL(decide, (pd_guard part, const T *holds, const pd_state *state, pd_condition c),
          (holds, state, c))
PD_KERNEL(count, (pd_guard part, T *left, const T *rounds, const pd_state *state, pd_condition c),
          (left, rounds, state, c))
PD_KERNEL(count_down, (pd_guard part, T *left, pd_condition c), (left, c))
PD_KERNEL(count_trip, (pd_guard part, T *trips, T limit, pd_state *state, int op),
          (trips, limit, state, op))
PD_KERNEL(set, (pd_guard part, T *x, T v), (x, v))
PD_KERNEL(zero, (pd_guard part, T *x, int n), (x, n))

#endif
