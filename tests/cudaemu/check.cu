// Kernels for tests of the emulator: what is right gives its result under every order, and each seeded bug is found. Also
// compiles with nvcc. `check NAME` runs one; suite_cudaemu.py knows what each must print.
#include <stdio.h>
#include <string.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "pdrt_cuda.h"
#include "cuda_prelude.c.in"
#include "cuda_ptx.c.in"
#include "cuda_tile.c.in"
#include "cuda_mma.c.in"

enum { N = 256 };

static pd_error error;
static pd_queue queue = pd_queue_of(NULL, &error);

// ---- what is right ------------------------------------------------------------------------------------------

static __device__ float warp_sum(float v)
{
	for (int lanes = 16; lanes; lanes /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, lanes);
	return v;
}

static __global__ void block_sum(float *out, const float *x, int n)
{
	PD_SHARED(float, parts, 32);
	float v = 0.0f;
	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
		v += x[i];
	v = warp_sum(v);
	if (threadIdx.x % 32 == 0)
		parts[threadIdx.x / 32] = v;
	__syncthreads();
	if (threadIdx.x < 32) {
		v = warp_sum(threadIdx.x < blockDim.x / 32 ? (float)parts[threadIdx.x] : 0.0f);
		if (threadIdx.x == 0)
			*out = v;
	}
}

// Each thread reads what another wrote, round after round.
static __global__ void rotate(float *x, int rounds)
{
	PD_SHARED(float, s, N);
	for (int r = 0; r < rounds; r++) {
		s[threadIdx.x] = x[threadIdx.x];
		__syncthreads();
		x[threadIdx.x] = s[(threadIdx.x + 1) % N];
		__syncthreads();
	}
}

// Sums of four neighbours in memory of the device: barriers order what the threads of a block do.
static __global__ void by_turns(float *x)
{
	for (unsigned step = 1; step < 4; step *= 2) {
		const float other = x[threadIdx.x ^ step];
		__syncthreads();
		x[threadIdx.x] += other;
		__syncthreads();
	}
}

// What lanes of a warp read, one of them writes once they have met; halves of a warp meet on their own. Many threads count.
static __global__ void by_lanes(float *x, int *count)
{
	PD_SHARED(float, s, N);
	const unsigned first = threadIdx.x / 32 * 32, half = threadIdx.x / 16 * 16, mask = half % 32 ? 0xffff0000u : 0xffffu;
	s[threadIdx.x] = x[threadIdx.x];
	__syncwarp();
	float sum = (float)s[first] + (float)s[first + 1] + (float)s[half + 2];
	__syncwarp();
	if (threadIdx.x == first + 5)
		s[first + 1] = sum + (float)s[first + 1];
	sum += (float)s[half + 2];
	__syncwarp(mask);
	if (threadIdx.x == half + 15)
		s[half + 2] = sum;
	__syncwarp(mask);
	x[threadIdx.x] = s[half + 2];
	atomicAdd(count, 1);
	__syncthreads();
	if (threadIdx.x == 0)
		x[0] = (float)*count;
}

static __global__ void count_up(int *i)
{
	*i += 1;
}

static __global__ void decide_less(const int *i, int limit, pd_condition c)
{
	cudaGraphSetConditional(c.handle, *i < limit);
}

static __global__ void decide_odd(const int *i, pd_condition c)
{
	cudaGraphSetConditional(c.handle, *i % 2);
	if (c.otherwise)
		cudaGraphSetConditional(c.otherwise, *i % 2 == 0);
}

// The bits of numbers as f16 and bf16, and what they are then.
static __global__ void narrow(const float *x, unsigned short *half, unsigned short *bfloat, float *back)
{
	const __half h = __float2half_rn(x[threadIdx.x]);
	const __nv_bfloat16 b = __float2bfloat16_rn(x[threadIdx.x]);
	half[threadIdx.x] = __half_as_ushort(h);
	bfloat[threadIdx.x] = __bfloat16_as_ushort(b);
	back[threadIdx.x] = __half2float(__ushort_as_half(half[threadIdx.x])) + __bfloat162float(__ushort_as_bfloat16(bfloat[threadIdx.x]));
}

// Conflicts: 1, as two lanes share a bank each time; 31; 4 x 7, as the eight rows of a matrix do; none; none.
static __global__ void bank_conflicts(float *x)
{
	PD_SHARED(float, s, 32 * 32);
	uint32_t r[4];
	const int t = (int)threadIdx.x;
	for (int i = 0; i < 8; i++)
		pd_shared_store(s, (i * 32 + t) * 4, make_float4(1.0f, 2.0f, 3.0f, 4.0f));
	__syncwarp();
	x[t] = s[t * 2];
	x[t] += s[t * 32];
	x[t] += s[5];
	pd_load_matrices<false>(r, s, t * 32);
}

// ---- bugs ----------------------------------------------------------------------------------------------------

static __global__ void missing_barrier(float *x)
{
	PD_SHARED(float, s, N);
	s[threadIdx.x] = x[threadIdx.x];
	x[threadIdx.x] = s[(threadIdx.x + 1) % N];
}

static __global__ void missing_second_barrier(float *x)
{
	PD_SHARED(float, s, N);
	for (int r = 0; r < 2; r++) {
		s[threadIdx.x] = x[threadIdx.x];
		__syncthreads();
		x[threadIdx.x] = s[(threadIdx.x + 1) % N];
	}
}

// Two warps read; only lanes of the second, which meet, come before its write.
static __global__ void read_by_two_warps(float *x)
{
	PD_SHARED(float, s, 1);
	if (threadIdx.x == 0)
		s[0] = x[0];
	__syncthreads();
	x[threadIdx.x] = s[0];
	__syncwarp();
	if (threadIdx.x == 40)
		s[0] = 1.0f;
}

// Halves of a warp meet, each on its own.
static __global__ void wrong_half(float *x)
{
	if (threadIdx.x < 16) {
		x[threadIdx.x] = 1.0f;
		__syncwarp(0xffffu);
	} else {
		__syncwarp(0xffff0000u);
		x[threadIdx.x] = x[threadIdx.x - 16];
	}
}

// Shuffles exchange registers, and order nothing in memory.
static __global__ void shuffle_for_barrier(float *x)
{
	PD_SHARED(float, s, N);
	s[threadIdx.x] = x[threadIdx.x];
	const float sum = warp_sum(x[threadIdx.x]);
	x[threadIdx.x] = sum + (float)s[threadIdx.x ^ 1];
}

// All but one thread count at once.
static __global__ void count_not_at_once(int *count)
{
	if (threadIdx.x == N / 2)
		*count = 1;
	else
		atomicAdd(count, 1);
}

static __global__ void barrier_in_branch(float *x)
{
	if (threadIdx.x < 16)
		__syncthreads();
	x[threadIdx.x] = 0.0f;
}

static __global__ void two_barriers(float *x)
{
	if (threadIdx.x < 16) {
		x[threadIdx.x] = 1.0f;
		__syncthreads();
	} else {
		x[threadIdx.x] = 2.0f;
		__syncthreads();
	}
}

static __global__ void out_of_bounds(float *x, int n)
{
	x[threadIdx.x + n] = 1.0f;
}

static __global__ void shared_out_of_bounds(float *x)
{
	PD_SHARED(float, s, N);
	s[threadIdx.x + 1] = x[threadIdx.x];
	__syncthreads();
	x[threadIdx.x] = s[threadIdx.x];
}

static __global__ void read_of_nothing(float *x)
{
	PD_SHARED(float, s, N);
	if (threadIdx.x)
		s[threadIdx.x] = 1.0f;
	__syncthreads();
	x[threadIdx.x] = s[threadIdx.x];
}

static __global__ void lane_outside(float *x)
{
	if (threadIdx.x < 16)
		x[threadIdx.x] = __shfl_sync(0xffffu, x[threadIdx.x], 20);
}

static __global__ void half_a_warp(float *x)
{
	if (threadIdx.x < 16)
		x[threadIdx.x] = __shfl_sync(0xffffffffu, x[threadIdx.x], 0);
}

// Vectors lie at multiples of their size.
static __global__ void misaligned(float *x)
{
	const float4 v = *reinterpret_cast<const float4 *>(x + threadIdx.x);
	x[threadIdx.x] = v.w;
}

static __global__ void misaligned_shared(float *x)
{
	PD_SHARED(float, s, N);
	s[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	x[threadIdx.x] = pd_shared_load<float4>(s, (int)threadIdx.x / 2).w;
}

static __global__ void race_of_warps(float *x)
{
	x[threadIdx.x / 64] = x[N / 2 + threadIdx.x / 2];
}

// By one block: right.
static __global__ void race_of_blocks(float *x)
{
	x[threadIdx.x] = (float)blockIdx.x;
}

static __global__ void read_behind(float *x)
{
	x[0] = x[3];
}

// ---- tensor cores ----------------------------------------------------------------------------------------------

// Elements of the test matrices: small whole numbers, which all formats hold.
static __device__ __host__ int mma_a(int row, int k)
{
	return (row * 3 + k * 5) % 8;
}

static __device__ __host__ int mma_b(int k, int column)
{
	return (k * 7 + column * 3 + 1) % 8;
}

// 0 to 7 in 16 bits: where 1 and 2 are, and how much 4 is further than 2.
static __device__ uint32_t mma_half(int v, int one, int two, int step)
{
	return (uint32_t)(v < 2 ? v * one : v < 4 ? two + (v - 2) * (step / 2) : two + step + (v - 4) * (step / 4));
}

static __device__ uint32_t mma_bits(int kind, int low, int high)
{
	if (kind == 0)
		return pd_round_tf32((float)low);
	return kind == 1 ? mma_half(high, 0x3c00, 0x4000, 0x400) << 16 | mma_half(low, 0x3c00, 0x4000, 0x400)
	                 : mma_half(high, 0x3f80, 0x4000, 0x80) << 16 | mma_half(low, 0x3f80, 0x4000, 0x80);
}

// A product of one instruction, by the tables of PTX. Kinds: tf32, f16, bf16. `turned`: lanes take b for rows where columns go.
static __global__ void mma_product(float *out, int kind, bool turned)
{
	const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4, each = kind ? 2 : 1;
	uint32_t a[4], b[2];
	float c[4] = {};
	for (int i = 0; i < 4; i++) {
		const int row = g + i % 2 * 8, k = t * each + i / 2 * 4 * each;
		a[i] = mma_bits(kind, mma_a(row, k), mma_a(row, k + 1));
	}
	for (int i = 0; i < 2; i++) {
		const int k = (turned ? g % 4 : t) * each + i * 4 * each, column = turned ? lane % 8 : g;
		b[i] = mma_bits(kind, mma_b(k, column), mma_b(k + 1, column));
	}
	if (kind == 0)
		pd_mma_tf32(c[0], c[1], c[2], c[3], a, b);
	if (kind == 1)
		pd_mma_f16(c[0], c[1], c[2], c[3], a, b);
	if (kind == 2)
		pd_mma_bf16(c[0], c[1], c[2], c[3], a, b);
	for (int i = 0; i < 4; i++)
		out[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = c[i];
}

// Matrices of 8 rows x 16 bytes as they lie, and turned: each lane's first register tells which elements it got.
static __global__ void load_matrices(float *out)
{
	PD_SHARED(uint16_t, s, 32 * 8);
	for (int i = 0; i < 8; i++)
		s[threadIdx.x * 8 + i] = (uint16_t)(threadIdx.x * 8 + i);
	__syncthreads();
	uint32_t plain[4], turned[4];
	pd_load_matrices<false>(plain, s, (int)threadIdx.x * 8);
	pd_load_matrices<true>(turned, s, (int)threadIdx.x * 8);
	out[threadIdx.x] = (float)(plain[1] & 0xffff);
	out[32 + threadIdx.x] = (float)(turned[2] >> 16);
}

// ---- copies to shared memory -----------------------------------------------------------------------------------

enum CopyBug { COPY_RIGHT, COPY_NO_WAIT, COPY_WAITS_FOR_FEW, COPY_NO_BARRIER, COPY_NO_SECOND_BARRIER, COPY_NO_COMMIT };

// Sums of what neighbours have, slice by slice: three slices of 4 elements a thread are on their way through four places.
// The last slice has zeros in place of elements from the middle on.
template <int BUG>
static __global__ void copy_slices(float *x, const float *from)
{
	enum { STAGES = 4, SLICES = 7 };
	PD_DYNAMIC(float, s, STAGES * N);
	const int at = (int)threadIdx.x * 4, other = (at + 4) % N;
	float sum = 0.0f;
	for (int i = 0; i < SLICES + STAGES - 1; i++) {
		if (i >= STAGES - 1) {
			if (BUG != COPY_NO_WAIT)
				pd_copies_wait<STAGES - 2 + (BUG == COPY_WAITS_FOR_FEW)>();
			if (BUG != COPY_NO_BARRIER)
				__syncthreads();
		}
		if (BUG == COPY_NO_SECOND_BARRIER && i >= STAGES - 1)
			sum += pd_shared_load<float4>(s, (i - STAGES + 1) % STAGES * N + other).x;
		const int place = (i + (BUG == COPY_NO_SECOND_BARRIER && i >= STAGES - 1)) % STAGES;
		if (i < SLICES)
			pd_copy_async<16>(s, place * N + at, from + at, i + 1 < SLICES || at < N / 2);
		if (BUG != COPY_NO_COMMIT)
			pd_copies_commit();
		if (BUG != COPY_NO_SECOND_BARRIER && i >= STAGES - 1)
			sum += pd_shared_load<float4>(s, (i - STAGES + 1) % STAGES * N + other).x;
	}
	x[threadIdx.x] = sum;
}

// Four bytes each, in an order that turns them.
static __global__ void copy_turned(float *x)
{
	PD_SHARED(float, s, N);
	pd_copy_async<4>(s, (int)(N - 1 - threadIdx.x), x + threadIdx.x, threadIdx.x % 2 == 0);
	pd_copies_commit();
	pd_copies_wait<0>();
	__syncthreads();
	x[threadIdx.x] = s[threadIdx.x];
}

static __global__ void copy_misaligned(float *x)
{
	PD_SHARED(float, s, N + 4);
	pd_copy_async<16>(s, (int)threadIdx.x * 4 % N, x + threadIdx.x, true);
	pd_copies_commit();
	pd_copies_wait<0>();
}

static __global__ void copy_to_misaligned(float *x)
{
	PD_SHARED(float, s, N + 4);
	pd_copy_async<16>(s, (int)threadIdx.x, x, true);
	pd_copies_commit();
	pd_copies_wait<0>();
}

static __global__ void copy_left_behind(float *x)
{
	PD_SHARED(float, s, N);
	pd_copy_async<4>(s, (int)threadIdx.x, x + threadIdx.x, true);
	pd_copies_commit();
}

static __global__ void matrices_misaligned(float *x)
{
	PD_SHARED(uint16_t, s, 32 * 8 + 8);
	uint32_t r[4];
	pd_load_matrices<false>(r, s, (int)threadIdx.x * 8 + 4);
	x[threadIdx.x] = (float)r[0];
}

static __global__ void half_a_product(float *x)
{
	const uint32_t a[4] = {}, b[2] = {};
	float c[4] = {};
	if (threadIdx.x < 16)
		pd_mma_f16(c[0], c[1], c[2], c[3], a, b);
	x[threadIdx.x] = c[0];
}

// ---- the host ------------------------------------------------------------------------------------------------

static float *numbers(int n)
{
	float *x = NULL, host[N];
	pd_check(&queue, cudaMalloc(&x, (size_t)n * sizeof *x));
	for (int i = 0; i < n; i++)
		host[i] = (float)(i % 7);
	pd_check(&queue, cudaMemcpy(x, host, (size_t)n * sizeof *x, cudaMemcpyHostToDevice));
	return x;
}

static void sum_check()
{
	float *x = numbers(N), *out = numbers(1), sum = 0.0f;
	pd_launch(&queue, block_sum, 1, 128, out, x, N);
	pd_check(&queue, cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
	printf("sum %g\n", (double)sum);
	pd_launch(&queue, rotate, 1, N, x, 3);
	pd_check(&queue, cudaMemcpy(&sum, x, sizeof sum, cudaMemcpyDeviceToHost));
	printf("first %g\n", (double)sum);
	x = numbers(N);
	pd_launch(&queue, by_turns, 1, N, x);
	pd_check(&queue, cudaMemcpy(&sum, x, sizeof sum, cudaMemcpyDeviceToHost));
	printf("turns %g\n", (double)sum);
}

static int *counter()
{
	int *count = NULL;
	pd_check(&queue, cudaMalloc(&count, sizeof *count));
	pd_check(&queue, cudaMemset(count, 0, sizeof *count));
	return count;
}

static void lanes_check()
{
	float *x = numbers(N), host[N];
	pd_launch(&queue, by_lanes, 1, N, x, counter());
	pd_check(&queue, cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
	printf("lanes %g %g %g\n", (double)host[0], (double)host[1], (double)host[255]);
}

// while (i < 7) { i++; if (i % 2) odd++; else even++; }
static void graph_check()
{
	int *counts = NULL, host[3] = {0};
	pd_check(&queue, cudaMalloc(&counts, sizeof host));
	pd_check(&queue, cudaMemset(counts, 0, sizeof host));
	pd_queue graph = pd_graph_begin(NULL, &error);
	const pd_condition again = pd_condition_new(&graph, NULL, false), odd = pd_condition_new(&graph, NULL, true);
	pd_launch(&graph, decide_less, 1, 1, counts, 7, again);
	pd_queue body = pd_while(&graph, again), parts[2];
	pd_launch(&body, count_up, 1, 1, counts);
	pd_launch(&body, decide_odd, 1, 1, counts, odd);
	pd_if(&body, odd, parts);
	pd_launch(&parts[0], count_up, 1, 1, counts + 1);
	pd_launch(&parts[1], count_up, 1, 1, counts + 2);
	pd_launch(&body, decide_less, 1, 1, counts, 7, again);
	cudaGraphExec_t exec = NULL;
	pd_graph_end(&graph, &exec);
	for (int run = 0; run < 2; run++)
		pd_check(&queue, cudaGraphLaunch(exec, NULL));
	pd_check(&queue, cudaMemcpy(host, counts, sizeof host, cudaMemcpyDeviceToHost));
	printf("rounds %d, odd %d, even %d\n", host[0], host[1], host[2]);
	cudaGraphExecDestroy(exec);
}

static __global__ void add_to(float *out, const float *x, const float *y)
{
	out[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];
}

// Two branches side by side from x; what joins them waits for both, unless one is `forgotten`. Taking over the bytes of x waits
// for all who read it.
static void branches_check(bool forgotten)
{
	float *x = numbers(N), *y = numbers(N), *z = numbers(N), host[N];
	pd_queue graph = pd_graph_begin(NULL, &error);
	pd_launch(&graph, add_to, 1, N, x, x, x);
	const cudaGraphNode_t x_done = pd_last(&graph);
	pd_launch(&graph, add_to, 1, N, y, x, x);
	const cudaGraphNode_t y_done = pd_last(&graph);
	pd_after(&graph, x_done);
	pd_launch(&graph, add_to, 1, N, z, x, x);
	if (!forgotten)
		pd_after(&graph, y_done, pd_last(&graph));
	pd_launch(&graph, add_to, 1, N, x, y, z);
	cudaGraphExec_t exec = NULL;
	pd_graph_end(&graph, &exec);
	for (int run = 0; run < 2; run++)
		pd_check(&queue, cudaGraphLaunch(exec, NULL));
	pd_check(&queue, cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
	printf("branches %g\n", (double)host[1]);
	cudaGraphExecDestroy(exec);
}

// Rounds of a loop are ordered; inside of a round two nodes are when one waits for the other.
static void rounds_check(bool forgotten)
{
	int *counts = NULL, host[2];
	pd_check(&queue, cudaMalloc(&counts, sizeof host));
	pd_check(&queue, cudaMemset(counts, 0, sizeof host));
	pd_queue graph = pd_graph_begin(NULL, &error);
	const pd_condition again = pd_condition_new(&graph, NULL, false);
	pd_launch(&graph, decide_less, 1, 1, counts, 7, again);
	pd_queue body = pd_while(&graph, again);
	pd_launch(&body, count_up, 1, 1, counts);
	const cudaGraphNode_t counted = pd_last(&body);
	pd_after_nothing(&body);
	pd_launch(&body, count_up, 1, 1, counts + 1);
	if (!forgotten)
		pd_after(&body, counted);
	pd_launch(&body, decide_less, 1, 1, counts, 7, again);
	cudaGraphExec_t exec = NULL;
	pd_graph_end(&graph, &exec);
	pd_check(&queue, cudaGraphLaunch(exec, NULL));
	pd_check(&queue, cudaMemcpy(host, counts, sizeof host, cudaMemcpyDeviceToHost));
	printf("rounds %d %d\n", host[0], host[1]);
	cudaGraphExecDestroy(exec);
}

// The same graph for other memory: what was made of it becomes that of the other.
static void update_check()
{
	float *x = numbers(N), *y = numbers(N), host[2];
	cudaGraphExec_t exec = NULL;
	for (int run = 0; run < 2; run++) {
		pd_queue graph = pd_graph_begin(NULL, &error);
		pd_launch(&graph, add_to, 1, N, run ? y : x, x, x);
		pd_graph_end(&graph, &exec);
		pd_check(&queue, cudaGraphLaunch(exec, NULL));
	}
	pd_check(&queue, cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
	printf("updated %g\n", (double)host[1]);
	cudaGraphExecDestroy(exec);
}

// Ties to even, in both directions; the largest number, and what is too large; subnormal numbers; NaN.
static void narrow_check()
{
	const float numbers[] = {1.00048828125f, 1.00146484375f, -65519.0f, 65520.0f, 0x1.0p-25f, 0x1.8p-24f, -0.0f, NAN, 1.00390625f};
	enum { COUNT = sizeof numbers / sizeof *numbers };
	float *x = NULL, *back = NULL;
	unsigned short *bits = NULL, host[2 * COUNT] = {0};
	pd_check(&queue, cudaMalloc(&x, sizeof numbers));
	pd_check(&queue, cudaMalloc(&back, sizeof numbers));
	pd_check(&queue, cudaMalloc(&bits, sizeof host));
	pd_check(&queue, cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice));
	pd_launch(&queue, narrow, 1, COUNT, x, bits, bits + COUNT, back);
	pd_check(&queue, cudaMemcpy(host, bits, sizeof host, cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		printf("%04x %04x%s", host[i], host[COUNT + i], i + 1 < COUNT ? ", " : "\n");
}

// Reads before it waits: what was queued has not happened.
static void early_read_check()
{
	float *x = numbers(N), host[2] = {-1.0f, -1.0f};
	pd_copy_out(&queue, host, x, sizeof host);
	printf("early %g\n", (double)host[1]);
	pd_check(&queue, cudaDeviceSynchronize());
	printf("late %g\n", (double)host[1]);
}

static void banks_check()
{
	pd_launch(&queue, bank_conflicts, 1, 32, numbers(32));
	pd_check(&queue, cudaDeviceSynchronize());
}

// How many elements are as a plain loop has them.
static bool mma_check(bool turned)
{
	float *x = numbers(N), host[N];
	bool all = true;
	for (int kind = 0; kind < 3; kind++) {
		int right = 0;
		pd_launch(&queue, mma_product, 1, 32, x, kind, turned);
		pd_check(&queue, cudaMemcpy(host, x, 16 * 8 * sizeof *host, cudaMemcpyDeviceToHost));
		for (int i = 0; i < 16 * 8; i++) {
			int sum = 0;
			for (int k = 0; k < (kind ? 16 : 8); k++)
				sum += mma_a(i / 8, k) * mma_b(k, i % 8);
			right += host[i] == (float)sum;
		}
		printf("%d ", right);
		all = all && right == 128;
	}
	pd_launch(&queue, load_matrices, 1, 32, x);
	pd_check(&queue, cudaMemcpy(host, x, 64 * sizeof *host, cudaMemcpyDeviceToHost));
	int right = 0;
	for (int lane = 0; lane < 32; lane++) // row, then two columns; turned: two rows of a column
		right += host[lane] == (float)(64 + lane / 4 * 8 + lane % 4 * 2) && host[32 + lane] == (float)(128 + (lane % 4 * 2 + 1) * 8 + lane / 4);
	printf("%d\n", right);
	return all;
}

// Whoever launches: a kernel by its bug, and bytes of shared memory.
static bool copies_run(const char *name, float *x, float *from)
{
	enum { BYTES = 4 * N * sizeof(float) };
	const struct {
		const char *name;
		void (*kernel)(float *, const float *);
		unsigned shared;
	} all[] = {
		{"copies", copy_slices<COPY_RIGHT>, BYTES}, {"copy-no-wait", copy_slices<COPY_NO_WAIT>, BYTES},
		{"copy-waits-for-few", copy_slices<COPY_WAITS_FOR_FEW>, BYTES}, {"copy-no-barrier", copy_slices<COPY_NO_BARRIER>, BYTES},
		{"copy-no-second-barrier", copy_slices<COPY_NO_SECOND_BARRIER>, BYTES},
		{"copy-no-commit", copy_slices<COPY_NO_COMMIT>, BYTES}, {"dynamic-too-small", copy_slices<COPY_RIGHT>, BYTES - 16},
		{"dynamic-large", copy_slices<COPY_RIGHT>, 160 << 10}, {"dynamic-too-large", copy_slices<COPY_RIGHT>, 164 << 10},
	};
	bool found = false;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (strcmp(all[i].name, name))
			continue;
		pd_launch(&queue, all[i].kernel, 1, {N / 4, all[i].shared}, x, from);
		found = true;
	}
	return found;
}

static void copies_check(const char *name)
{
	float *x = numbers(N), *from = numbers(N), host[N] = {};
	copies_run(name, x, from);
	pd_check(&queue, cudaMemcpy(host, x, 64 * sizeof *host, cudaMemcpyDeviceToHost));
	if (pd_ok(&queue))
		printf("copies %g %g", (double)host[0], (double)host[40]);
	pd_launch(&queue, copy_turned, 1, N, from);
	pd_check(&queue, cudaMemcpy(host, from, sizeof host, cudaMemcpyDeviceToHost));
	if (pd_ok(&queue))
		printf(", turned %g %g\n", (double)host[0], (double)host[N - 3]);
}

static void bug_run(const char *name)
{
	const struct {
		const char *name;
		void (*kernel)(float *);
	} bugs[] = {
		{"missing-barrier", missing_barrier}, {"missing-second-barrier", missing_second_barrier},
		{"barrier-in-branch", barrier_in_branch}, {"two-barriers", two_barriers},
		{"shared-out-of-bounds", shared_out_of_bounds}, {"read-of-nothing", read_of_nothing},
		{"lane-outside", lane_outside}, {"half-a-warp", half_a_warp},
		{"half-a-product", half_a_product}, {"misaligned", misaligned}, {"misaligned-shared", misaligned_shared},
		{"race-of-warps", race_of_warps}, {"copy-misaligned", copy_misaligned}, {"copy-to-misaligned", copy_to_misaligned},
		{"copy-left-behind", copy_left_behind}, {"matrices-misaligned", matrices_misaligned},
		{"read-by-two-warps", read_by_two_warps},
		{"shuffle-for-barrier", shuffle_for_barrier},
	};
	float *x = numbers(N);
	copies_run(name, x, numbers(N));
	for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++)
		if (!strcmp(bugs[i].name, name))
			pd_launch(&queue, bugs[i].kernel, 1, N, x);
	if (!strcmp(name, "out-of-bounds"))
		pd_launch(&queue, out_of_bounds, 1, N, x, N);
	if (!strcmp(name, "a-little-out-of-bounds"))
		pd_launch(&queue, out_of_bounds, 1, 1, numbers(3), 3);
	if (!strcmp(name, "race-of-blocks"))
		pd_launch(&queue, race_of_blocks, 2, N, x);
	if (!strcmp(name, "wrong-half"))
		pd_launch(&queue, wrong_half, 1, 32, x);
	if (!strcmp(name, "count-not-at-once"))
		pd_launch(&queue, count_not_at_once, 1, N, counter());
	if (!strcmp(name, "read-behind"))
		pd_launch(&queue, read_behind, 1, 1, numbers(3));
	if (!strcmp(name, "unwritten") && pd_ok(&queue)) {
		pd_check(&queue, cudaMalloc(&x, 16));
		pd_launch(&queue, read_behind, 1, 1, x);
	}
	if (!strcmp(name, "too-many-threads"))
		pd_launch(&queue, missing_barrier, 1, 2048, x);
	if (!strcmp(name, "wrong-side"))
		pd_copy_out(&queue, x, x, 4);
	pd_check(&queue, cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "sum"))
		sum_check();
	else if (!strcmp(name, "lanes"))
		lanes_check();
	else if (!strcmp(name, "graph"))
		graph_check();
	else if (!strcmp(name, "branches") || !strcmp(name, "forgotten-edge"))
		branches_check(!strcmp(name, "forgotten-edge"));
	else if (!strcmp(name, "rounds") || !strcmp(name, "forgotten-edge-in-loop"))
		rounds_check(!strcmp(name, "forgotten-edge-in-loop"));
	else if (!strcmp(name, "mma") || !strcmp(name, "mma-wrong-lane"))
		return !mma_check(!strcmp(name, "mma-wrong-lane"));
	else if (!strcmp(name, "update"))
		update_check();
	else if (!strcmp(name, "copies") || !strcmp(name, "dynamic-large"))
		copies_check(name);
	else if (!strcmp(name, "banks"))
		banks_check();
	else if (!strcmp(name, "narrow"))
		narrow_check();
	else if (!strcmp(name, "early-read"))
		early_read_check();
	else
		bug_run(name);
	if (error.code != cudaSuccess)
		printf("%s\n", cudaGetErrorName(error.code));
	return error.code != cudaSuccess;
}
