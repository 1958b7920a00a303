// The CUDA emulator for tests: lets g++ compile a .cu whose launches go through functions, and run
// it on the CPU. Threads of a block are fibers that run in an order drawn from a seed; the runtime
// (cudaemu.h) finds races and reads of nothing in shared memory, barriers that not all threads
// reach, and accesses outside of memory, and ends the program.
//
//   CUDAEMU_SEED=N       another order of threads, of blocks, and of graph nodes that do not depend on each other
//   CUDAEMU_REPORT=FILE  at exit, how often each function of the API was called
//   CUDAEMU_RACES=1      when pdcc builds and when the program runs: nodes of a graph that touch the same bytes though no edge
//                        orders them (races.cc), threads of a launch that do so though no barrier does, reads of what nobody
//                        wrote, and any byte outside of an allocation (shadow.cc) end the program
//   CUDAEMU_BANKS=1      the report says, too, how often warps accessed shared memory, and how many turns conflicts of banks took
//   CUDAEMU_FAIL=F:N[:E] the N-th call of the API function F (from 1) fails with E or cudaErrorMemoryAllocation; F may be *,
//                        then what gives something back does not count
//   CUDAEMU_LEAKS=1      allocations, streams and graphs that are left at exit are an error
//
// One host thread. Not modelled: memory orders, races and overlap of streams, textures.
#ifndef CUDAEMU_RUNTIME_H
#define CUDAEMU_RUNTIME_H

#ifndef __cplusplus
#error "the device side of the emulator is C++"
#endif

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime_api.h"

// What is not seen as a read and a write: atomic operations race with nothing of their kind.
#define CUDAEMU_UNSEEN __attribute__((noinline, no_sanitize_thread))

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint3 {
	unsigned x, y, z;
};

struct dim3 {
	unsigned x, y, z;
	dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

struct alignas(8) float2 {
	float x, y;
};

struct alignas(16) float4 {
	float x, y, z, w;
};

static inline float4 make_float4(float x, float y, float z, float w)
{
	return {x, y, z, w};
}

// ---- threads ------------------------------------------------------------------------------------

namespace cudaemu
{

struct Fiber {
	uint3 index;     // threadIdx
	unsigned number; // of the thread in its block
	struct Private *p;
};

extern Fiber *current; // NULL: the host

void barrier(int line);
void warp_barrier(unsigned mask, int line);
// What every lane of the mask gives; [32], to be read before the next call.
const uint64_t *warp_exchange(unsigned mask, uint64_t value, int line);
unsigned warp_lane();
[[noreturn]] void lane_outside(int lane, int line);

// A declaration of shared memory: a slot for the block that runs.
struct Site {
	const char *name;
	unsigned long serial; // of the block that the slot is for
	char *data;
	struct SharedCell *cells; // one for each element
};

void site_enter(Site *s, size_t count, size_t size, bool dynamic);
void shared_read(const Site *s, size_t i, size_t count, int line);
void shared_write(const Site *s, size_t i, size_t count, int line);
void atomic_done(const void *p, size_t n, const void *pc);
void element_copied(const void *to, const void *from, size_t n, const void *pc);

template <typename T> CUDAEMU_UNSEEN void element_copy(T *to, const T *from)
{
	element_copied(to, from, sizeof *to, __builtin_return_address(0));
	*to = *from;
}
void shared_aligned(const Site *s, size_t i, size_t n,
                    int line); // element i of vectors of n elements
// Copies to shared memory of n elements, `size` bytes each, that the thread begins; what it waits
// for.
void copy_begin(const Site *s, size_t i, size_t count, size_t n, size_t size, const void *bytes,
                int line);
void copy_aligned(const void *from, size_t bytes, int line);
void copies_commit();
void copies_wait(unsigned groups_left);
// Accesses of shared memory, where bank conflicts are counted.
extern bool banks_counted;
void banks_access(const void *at, size_t bytes, int line);
void banks_matrices(const void *base, const uint64_t *rows, size_t bytes, int line);

template <typename T> struct Element {
	T *at;
	const Site *site;
	size_t i, count;
	int line;
	operator T() const
	{
		shared_read(site, i, count, line);
		if (banks_counted)
			banks_access(at, sizeof *at, line);
		return *at;
	}
	T operator=(T v) const
	{
		shared_write(site, i, count, line);
		if (banks_counted)
			banks_access(at, sizeof *at, line);
		return *at = v;
	}
	T operator=(const Element &other) const
	{
		return *this = (T)other;
	}
	T operator+=(T v) const
	{
		return *this = (T)(*this) + v;
	}
};

struct Index { // an index, and the line that it stands in
	size_t i;
	int line;
	template <typename I> Index(I i_, int line_ = __builtin_LINE()) : i((size_t)i_), line(line_)
	{
	}
};

template <typename T> struct Shared {
	Site *site;
	size_t count;
	Shared(Site *s, size_t n, bool dynamic = false) : site(s), count(n)
	{
		site_enter(s, n, sizeof(T), dynamic);
	}
	Element<T> operator[](Index at) const
	{
		return {reinterpret_cast<T *>(site->data) + at.i, site, at.i, count, at.line};
	}
	// n elements at once, which must lie at a multiple of their size.
	const T *read(size_t i, size_t n, int line) const
	{
		shared_aligned(site, i, n, line);
		for (size_t e = 0; e < n; e++)
			shared_read(site, i + e, count, line);
		return reinterpret_cast<T *>(site->data) + i;
	}
	T *written(size_t i, size_t n, int line) const
	{
		shared_aligned(site, i, n, line);
		for (size_t e = 0; e < n; e++)
			shared_write(site, i + e, count, line);
		return reinterpret_cast<T *>(site->data) + i;
	}
};

template <typename T> T shuffle(unsigned mask, T v, int from, int line)
{
	static_assert(sizeof(T) <= 8, "at most 64 bits");
	uint64_t bits = 0;
	memcpy(&bits, &v, sizeof v);
	const uint64_t *all = warp_exchange(mask, bits, line);
	if (!(mask >> from & 1))
		lane_outside(from, line);
	memcpy(&v, &all[from], sizeof v);
	return v;
}

// Products of a warp on tensor cores. a, b and c are the registers of the lane that calls, as PTX
// lays them out.
enum MmaKind { MMA_TF32, MMA_F16, MMA_BF16 };
void warp_mma(MmaKind kind, float *const (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              int line);

} // namespace cudaemu

#define threadIdx (cudaemu::current->index)
extern uint3 blockIdx;
extern dim3 blockDim, gridDim;

// What pdrt_cuda.h makes of `__shared__` under nvcc.
#define PD_SHARED(type, name, n)                         \
	static cudaemu::Site name##_site = {#name, 0, 0, 0}; \
	const cudaemu::Shared<type> name(&name##_site, n)

#define PD_DYNAMIC(type, name, n)                        \
	static cudaemu::Site name##_site = {#name, 0, 0, 0}; \
	const cudaemu::Shared<type> name(&name##_site, n, true)

// What nobody wrote stays so, and may be copied.
#define PD_COPY(to, from) cudaemu::element_copy(&(to), &(from))

template <typename V, typename T>
V pd_shared_load(const cudaemu::Shared<T> &s, size_t i, int line = __builtin_LINE())
{
	V v;
	const T *at = s.read(i, sizeof v / sizeof(T), line);
	if (cudaemu::banks_counted)
		cudaemu::banks_access(at, sizeof v, line);
	memcpy(&v, at, sizeof v);
	return v;
}

template <typename V, typename T>
void pd_shared_store(const cudaemu::Shared<T> &s, size_t i, V v, int line = __builtin_LINE())
{
	T *at = s.written(i, sizeof v / sizeof(T), line);
	if (cudaemu::banks_counted)
		cudaemu::banks_access(at, sizeof v, line);
	memcpy(at, &v, sizeof v);
}

// ---- PTX: what cuda_ptx.c has under nvcc --------------------------------------------------------

#define PD_MMA(name, kind)                                                                     \
	static inline void name(float &c0, float &c1, float &c2, float &c3, const uint32_t(&a)[4], \
	                        const uint32_t(&b)[2], int line = __builtin_LINE())                \
	{                                                                                          \
		cudaemu::warp_mma(kind, {&c0, &c1, &c2, &c3}, a, b, line);                             \
	}
PD_MMA(pd_mma_tf32, cudaemu::MMA_TF32)
PD_MMA(pd_mma_f16, cudaemu::MMA_F16)
PD_MMA(pd_mma_bf16, cudaemu::MMA_BF16)

// Ties go away from zero; what is no number stays.
static inline uint32_t pd_round_tf32(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return x != x ? bits : (bits + 0x1000) & 0xffffe000;
}

static inline uint32_t pd_pack_f16(float low, float high)
{
	return (uint32_t)__float2half_rn(high).bits << 16 | __float2half_rn(low).bits;
}

static inline uint32_t pd_pack_bf16(float low, float high)
{
	return (uint32_t)__float2bfloat16_rn(high).bits << 16 | __float2bfloat16_rn(low).bits;
}

static inline float pd_fast_exp(float x)
{
	const float y = exp2f(x * 0x1.715476p+0f);
	return y < 0x1p-126f ? 0.0f : y;
}

template <bool TRANSPOSED, typename T>
void pd_load_matrices(uint32_t (&r)[4], const cudaemu::Shared<T> &tile, size_t at,
                      int line = __builtin_LINE())
{
	enum { EACH = 4 / sizeof(T) }; // elements in a register
	cudaemu::shared_aligned(tile.site, at, 16 / sizeof(T), line);
	const uint64_t *all = cudaemu::warp_exchange(0xffffffffu, at, line);
	const unsigned lane = cudaemu::warp_lane();
	if (cudaemu::banks_counted && lane == 0)
		cudaemu::banks_matrices(tile.site->data, all, sizeof(T), line);
	for (int i = 0; i < 4; i++)
		for (unsigned e = 0; e < EACH; e++) {
			const size_t from = TRANSPOSED ? (size_t)all[i * 8 + lane % 4 * EACH + e] + lane / 4
			                               : (size_t)all[i * 8 + lane / 4] + lane % 4 * EACH + e;
			memcpy((char *)&r[i] + e * sizeof(T), tile.read(from, 1, line), sizeof(T));
		}
}

template <int BYTES, typename T>
void pd_copy_async(const cudaemu::Shared<T> &tile, size_t at, const T *from, bool inside,
                   int line = __builtin_LINE())
{
	static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "what cp.async copies");
	struct alignas(BYTES) Bytes {
		unsigned char v[BYTES];
	} x = {};
	cudaemu::copy_aligned(from, BYTES, line);
	if (inside)
		x = *reinterpret_cast<const Bytes *>(from);
	cudaemu::copy_begin(tile.site, at, tile.count, BYTES / sizeof(T), sizeof(T), &x, line);
	if (cudaemu::banks_counted)
		cudaemu::banks_access(tile.site->data + at * sizeof(T), BYTES, line);
}

static inline void pd_copies_commit()
{
	cudaemu::copies_commit();
}

template <int N> void pd_copies_wait()
{
	cudaemu::copies_wait(N);
}

static inline void __syncthreads(int line = __builtin_LINE())
{
	cudaemu::barrier(line);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE())
{
	cudaemu::warp_barrier(mask, line);
}

template <typename T>
T __shfl_sync(unsigned mask, T v, int lane, int width = 32, int line = __builtin_LINE())
{
	const int base = (int)cudaemu::warp_lane() / width * width;
	return cudaemu::shuffle(mask, v, base + (lane & (width - 1)), line);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32, int line = __builtin_LINE())
{
	const int self = (int)cudaemu::warp_lane(), from = self ^ lanes;
	return cudaemu::shuffle(mask, v, from / width == self / width ? from : self, line);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T v, int lanes, int width = 32, int line = __builtin_LINE())
{
	const int self = (int)cudaemu::warp_lane(), from = self + lanes;
	return cudaemu::shuffle(mask, v, from / width == self / width ? from : self, line);
}

template <typename T>
T __shfl_up_sync(unsigned mask, T v, int lanes, int width = 32, int line = __builtin_LINE())
{
	const int self = (int)cudaemu::warp_lane(), from = self - lanes;
	return cudaemu::shuffle(mask, v, from >= self / width * width ? from : self, line);
}

static inline unsigned __ballot_sync(unsigned mask, int pred, int line = __builtin_LINE())
{
	const uint64_t *all = cudaemu::warp_exchange(mask, pred != 0, line);
	unsigned bits = 0;
	for (int i = 0; i < 32; i++)
		bits |= (mask >> i & 1) ? (unsigned)all[i] << i : 0;
	return bits;
}

static inline int __any_sync(unsigned mask, int pred, int line = __builtin_LINE())
{
	return __ballot_sync(mask, pred, line) != 0;
}

static inline int __all_sync(unsigned mask, int pred, int line = __builtin_LINE())
{
	return __ballot_sync(mask, pred, line) == mask;
}

// ---- functions of the device --------------------------------------------------------------------

// What stands at p becomes `next`, of what stood there, which is returned.
#define CUDAEMU_ATOMIC(p, old, next)                                 \
	cudaemu::atomic_done(p, sizeof *p, __builtin_return_address(0)); \
	const T old = *p;                                                \
	*p = next;                                                       \
	return old

template <typename T> CUDAEMU_UNSEEN T atomicAdd(T *p, T v)
{
	CUDAEMU_ATOMIC(p, old, old + v);
}

template <typename T> CUDAEMU_UNSEEN T atomicExch(T *p, T v)
{
	CUDAEMU_ATOMIC(p, old, v);
}

template <typename T> CUDAEMU_UNSEEN T atomicCAS(T *p, T expected, T v)
{
	CUDAEMU_ATOMIC(p, old, old == expected ? v : old);
}

template <typename T> CUDAEMU_UNSEEN T atomicMax(T *p, T v)
{
	CUDAEMU_ATOMIC(p, old, old < v ? v : old);
}

static inline float rsqrtf(float x)
{
	return 1.0f / sqrtf(x);
}

static inline double rsqrt(double x)
{
	return 1.0 / sqrt(x);
}

template <typename T> T __ldg(const T *p)
{
	return *p;
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value);

// ---- the API in C++ -----------------------------------------------------------------------------

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct cudaFuncAttributes {
	int maxThreadsPerBlock, numRegs;
	size_t sharedSizeBytes, localSizeBytes;
};

namespace cudaemu
{

// How to call a kernel whose arguments are a list of pointers.
struct Callable {
	void (*call)(void *kernel, void *const *args);
	int count;
	const size_t *sizes;
};

void callable_register(void *kernel, const Callable *c);

template <size_t... I> struct Numbers {
};
template <size_t N, size_t... I> struct NumbersTo : NumbersTo<N - 1, N - 1, I...> {
};
template <size_t... I> struct NumbersTo<0, I...> {
	typedef Numbers<I...> Type;
};

template <typename... P, size_t... I>
void call_unpacked(void (*kernel)(P...), void *const *args, Numbers<I...>)
{
	(void)args;
	kernel(*static_cast<P *>(args[I])...);
}

template <typename... P> void call_kernel(void *kernel, void *const *args)
{
	call_unpacked(reinterpret_cast<void (*)(P...)>(kernel), args,
	              typename NumbersTo<sizeof...(P)>::Type());
}

template <typename... P> void *kernel_known(void (*kernel)(P...))
{
	static const size_t sizes[] = {sizeof(P)..., 0};
	static const Callable c = {call_kernel<P...>, (int)sizeof...(P), sizes};
	void *key = reinterpret_cast<void *>(kernel);
	callable_register(key, &c);
	return key;
}

cudaError_t attributes_get(cudaFuncAttributes *a);
cudaError_t attribute_set(void *kernel, cudaFuncAttribute which, int value);
cudaError_t launch(void *kernel, dim3 grid, dim3 block, void *const *args, size_t shared,
                   cudaStream_t stream);

} // namespace cudaemu

template <typename... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, void (*kernel)(P...))
{
	cudaemu::kernel_known(kernel);
	return cudaemu::attributes_get(a);
}

template <typename... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute which, int value)
{
	return cudaemu::attribute_set(cudaemu::kernel_known(kernel), which, value);
}

template <typename... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **args,
                             size_t shared = 0, cudaStream_t stream = 0)
{
	return cudaemu::launch(cudaemu::kernel_known(kernel), grid, block, args, shared, stream);
}

template <typename T> cudaError_t cudaMalloc(T **p, size_t n)
{
	return cudaMalloc(reinterpret_cast<void **>(p), n);
}

struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim, blockDim;
	unsigned sharedMemBytes;
	void **kernelParams, **extra;
};

enum cudaGraphNodeType { cudaGraphNodeTypeKernel, cudaGraphNodeTypeConditional = 13 };
enum cudaGraphConditionalNodeType {
	cudaGraphCondTypeIf,
	cudaGraphCondTypeWhile,
	cudaGraphCondTypeSwitch
};
enum { cudaGraphCondAssignDefault = 1 };

struct cudaConditionalNodeParams {
	cudaGraphConditionalHandle handle;
	cudaGraphConditionalNodeType type;
	unsigned size;
	cudaGraph_t *phGraph_out;
};

struct cudaGraphNodeParams {
	cudaGraphNodeType type;
	cudaConditionalNodeParams conditional;
};

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *deps, size_t n,
                                   const cudaKernelNodeParams *params);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *deps, size_t n, void *to,
                                     const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *deps, size_t n, cudaGraph_t child);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *deps, size_t n);
// CUDA 12, and 13 with data for the edges.
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
                             size_t n, cudaGraphNodeParams *params);
static inline cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *deps, const void *, size_t n,
                                           cudaGraphNodeParams *params)
{
	return cudaGraphAddNode(node, graph, deps, n, params);
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned initial, unsigned flags);
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess, cudaGraphExecUpdateError };

struct cudaGraphExecUpdateResultInfo {
	cudaGraphExecUpdateResult result;
};

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);

#endif
