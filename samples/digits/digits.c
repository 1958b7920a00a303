/* Written by pdcc 0.1.0 from digits.pdmodel (e100618da3645c9f) for generic. Do not edit.
 * Options: --weights=file */
#include "digits.h"

#include <math.h>
#include <string.h>

// What model_run calls stays apart from it: in loops constants of all of them would compete for
// registers, and where two are inlined side by side, GCC 12 takes the `restrict` of one for that of
// the other (SLP, -O3).
#if defined(__GNUC__)
#define PD_APART static __attribute__((noinline))
#else
#define PD_APART static
#endif

/* What digits.weights begins with. */
static const pd_weights_header weights_header = {
	PD_WEIGHTS_MAGIC, 7, 64, "generic", 120064,
	UINT64_C(0xe100618da3645c9f), UINT64_C(0x16eb69bbcb974d90), UINT64_C(0x2a717ff04e808038),
};

// PD_UNROLL: unroll the next loop completely, so that its array of accumulators lives in registers.
// PD_LANES: iterations of the next loop touch different elements, even where the result shares
// bytes with an operand.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" // PD_LANES allows, it does not demand
#define PD_UNROLL _Pragma("clang loop unroll(full)")
#define PD_LANES _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#elif defined(__GNUC__)
#define PD_UNROLL _Pragma("GCC unroll 64")
#define PD_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define PD_UNROLL
#define PD_LANES
#endif
// PD_INLINE: its constant arguments shape the code. PD_SHARED: one copy serves all callers.
#if defined(__GNUC__)
#define PD_INLINE static inline __attribute__((always_inline))
#define PD_SHARED static __attribute__((noinline))
#define PD_ALIGNED __attribute__((aligned(64)))
#else
#define PD_INLINE static inline
#define PD_SHARED static
#define PD_ALIGNED
#endif

// Groups of 4 floats: vectors where the compiler knows such (-DPD_PLAIN: not even there),
// else arrays.
#if defined(__GNUC__) && !defined(PD_PLAIN)
typedef float vf __attribute__((vector_size(16)));
typedef float vf_memory __attribute__((vector_size(16), aligned(4), may_alias));

PDRT_MAYBE_UNUSED static inline vf vf_load(const float *p)
{
	return *(const vf_memory *)p;
}

PDRT_MAYBE_UNUSED static inline void vf_store(float *p, vf v)
{
	*(vf_memory *)p = v;
}

PDRT_MAYBE_UNUSED static inline vf vf_splat(float x)
{
	const vf zero = {0.0f};
	return x - zero;
}

PDRT_MAYBE_UNUSED static inline vf vf_add(vf a, vf b)
{
	return a + b;
}

PDRT_MAYBE_UNUSED static inline vf vf_multiply_add(vf sum, vf a, vf b)
{
	return sum + a * b;
}
#else
typedef struct vf {
	float lane[4];
} vf;

PDRT_MAYBE_UNUSED static inline vf vf_load(const float *p)
{
	vf v;
	for (int i = 0; i < 4; i++)
		v.lane[i] = p[i];
	return v;
}

PDRT_MAYBE_UNUSED static inline void vf_store(float *p, vf v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v.lane[i];
}

PDRT_MAYBE_UNUSED static inline vf vf_splat(float x)
{
	vf v;
	for (int i = 0; i < 4; i++)
		v.lane[i] = x;
	return v;
}

PDRT_MAYBE_UNUSED static inline vf vf_add(vf a, vf b)
{
	for (int i = 0; i < 4; i++)
		a.lane[i] += b.lane[i];
	return a;
}

PDRT_MAYBE_UNUSED static inline vf vf_multiply_add(vf sum, vf a, vf b)
{
	for (int i = 0; i < 4; i++)
		sum.lane[i] += a.lane[i] * b.lane[i];
	return sum;
}
#endif

// Sizes of a convolution as the tile functions need them. Offsets count floats.
typedef struct conv_shape {
	int64_t channels, height, width; // of the input
	int64_t kh, kw;                  // filter
	int64_t dilation_y, dilation_x;
	int64_t row, plane;              // offset of the next input row, of the next block of channels
	int64_t lane;                    // of the first channel in its block
} conv_shape;

// How many steps of `step` from `from` stay below `end`; at most `max`.
static inline int conv_steps(int64_t from, int64_t end, int64_t step, int max)
{
	const int64_t n = from >= end ? 0 : (end - from + step - 1) / step;
	return n < max ? (int)n : max;
}

// PD_UNKNOWN(p): compilers do not know any more where p points, so that they do not carry elements
// that several rounds of a loop read from one to the next, in registers that sums need.
#if defined(__GNUC__)
#define PD_UNKNOWN(p) __asm__("" : "+r"(p))
#else
#define PD_UNKNOWN(p) (void)(p)
#endif

// As conv_tile, for an input that is not blocked (the first convolution of a network): s->plane
// leads to the next channel. `inside`: no column of the filter leaves the input.
PD_INLINE void conv_plain_pixels_6x2of8_s1(const int pixels, const bool inside, const conv_shape *s,
                                                        const float *x, const float *w, int64_t iy,
		int64_t ix,
                                                        float *tile)
{
	vf sum[12];
	PD_UNROLL
	for (int i = 0; i < pixels * 2; i++)
		sum[i] = vf_splat(0);
	for (int64_t c = 0; c < s->channels; c++)
		for (int64_t ky = 0; ky < s->kh; ky++) {
			const int64_t y = iy + ky * s->dilation_y;
			if (y < 0 || y >= s->height)
				continue;
			const float *filter = w + (c * s->kh + ky) * s->kw * 8;
			for (int64_t kx = 0; kx < s->kw; kx++) {
				const int64_t column = ix + kx * s->dilation_x;
				const float *from = x + (c * s->plane + y * s->row + column);
				PD_UNKNOWN(from);
				vf f[2];
				PD_UNROLL
				for (int v = 0; v < 2; v++)
					f[v] = vf_load(filter + kx * 8 + v * 4);
				const int lo = inside ? 0 : conv_steps(column, 0, 1, pixels);
				const int hi = inside ? pixels : conv_steps(column, s->width, 1, pixels);
				PD_UNROLL
				for (int i = 0; i < pixels; i++)
					if (inside || (i >= lo && i < hi)) {
						const vf p = vf_splat(from[i]);
						PD_UNROLL
						for (int v = 0; v < 2; v++)
							sum[i * 2 + v] = vf_multiply_add(sum[i * 2 + v], p, f[v]);
					}
			}
		}
	PD_UNROLL
	for (int i = 0; i < pixels * 2; i++)
		vf_store(tile + i * 4, sum[i]);
}

PD_SHARED void conv_plain_6x2of8_s1(int pixels, const conv_shape *s, const float *x, const float *w,
                                                 int64_t iy, int64_t ix, float *tile)
{
	const bool inside = ix >= 0 && ix + (pixels - 1) + (s->kw - 1) * s->dilation_x < s->width;
	switch (inside ? pixels : -pixels) {
	case 1: conv_plain_pixels_6x2of8_s1(1, true, s, x, w, iy, ix, tile); break;
	case -1: conv_plain_pixels_6x2of8_s1(1, false, s, x, w, iy, ix, tile); break;
	case 2: conv_plain_pixels_6x2of8_s1(2, true, s, x, w, iy, ix, tile); break;
	case -2: conv_plain_pixels_6x2of8_s1(2, false, s, x, w, iy, ix, tile); break;
	case 3: conv_plain_pixels_6x2of8_s1(3, true, s, x, w, iy, ix, tile); break;
	case -3: conv_plain_pixels_6x2of8_s1(3, false, s, x, w, iy, ix, tile); break;
	case 4: conv_plain_pixels_6x2of8_s1(4, true, s, x, w, iy, ix, tile); break;
	case -4: conv_plain_pixels_6x2of8_s1(4, false, s, x, w, iy, ix, tile); break;
	case 5: conv_plain_pixels_6x2of8_s1(5, true, s, x, w, iy, ix, tile); break;
	case -5: conv_plain_pixels_6x2of8_s1(5, false, s, x, w, iy, ix, tile); break;
	case 6: conv_plain_pixels_6x2of8_s1(6, true, s, x, w, iy, ix, tile); break;
	default: conv_plain_pixels_6x2of8_s1(6, false, s, x, w, iy, ix, tile); break;
	}
}

/* conv2d + batch_norm + relu */
// Output channels of one group of packed weights: 8, or what is left of them.
PD_INLINE void compute_conv2d_0_tmp_0_group(const int64_t n, const int64_t group, const int blocks,
		float *PDRT_RESTRICT out, const float *PDRT_RESTRICT x, const float *PDRT_RESTRICT w,
		const float *PDRT_RESTRICT t0, int64_t dim_n)
{
	(void)dim_n;
	const int64_t rows = 8, columns = 8;
	const int64_t height = 8, width = 8;
	const float *image = x + n * height * width, *filter = w + group * 72;
	const conv_shape shape = {1, height, width, 3, 3, 1, 1, width, height * width, 0}; // channels,
			// height, width, kh, kw, dilation_y, dilation_x, row, plane, lane
	for (int64_t row = 0; row < rows; row++)
		for (int64_t first = 0, last; first < columns; first = last) {
			last = first + 4;
			const int pixels = (int)(last - first);
			float tile[6 * 8] PD_ALIGNED;
			conv_plain_6x2of8_s1(pixels, &shape, image, filter, row - 1, first - 1, tile);
			for (int v = 0; v < blocks; v++)
				for (int64_t p = first; p < first + pixels; p++) {
					const int64_t cb = group * 2 + v;
					const float *sums = tile + ((p - first) * blocks + v) * 4;
					float *to = out + ((n * 4 + cb) * rows * columns + row * columns + p) * 4;
					PD_LANES
					for (int64_t c = 0; c < 4; c++) {
						const float acc = sums[c];
						const float v0 = acc + t0[cb * 4 + c];
						to[c] = v0 > 0.0f ? v0 : 0.0f;
					}
				}
		}
}

PD_APART void compute_conv2d_0_tmp_0(float *PDRT_RESTRICT out, const float *PDRT_RESTRICT x,
		const float *PDRT_RESTRICT w, const float *PDRT_RESTRICT t0, int64_t dim_n)
{
	for (int64_t n = 0; n < dim_n; n++)
		for (int64_t group = 0; group < 2; group++)
			compute_conv2d_0_tmp_0_group(n, group, 2, out, x, w, t0, dim_n);
}

// Adds one tap of the filter, for `channels` channels, of which there are some, to the pixels [lo,
// hi) that it falls inside
// the input for. `at` is where pixel 0 would read.
PD_INLINE void conv_tap_6x2of8_s1(const int pixels, vf *sum, const float *x, int64_t at, int lo,
		int hi,
                                               const float *w, int64_t next_w, int64_t channels)
{
	if (lo == 0 && hi == pixels) {
		int64_t c = 0;
		do {
			vf f[2];
			PD_UNROLL
			for (int v = 0; v < 2; v++)
				f[v] = vf_load(w + c * next_w + v * 4);
			PD_UNROLL
			for (int i = 0; i < pixels; i++) {
				const vf s = vf_splat(x[at + i * 4 + c]);
				PD_UNROLL
				for (int v = 0; v < 2; v++)
					sum[i * 2 + v] = vf_multiply_add(sum[i * 2 + v], s, f[v]);
			}
		} while (++c < channels);
		return;
	}
	for (int64_t c = 0; c < channels; c++) {
		vf f[2];
		PD_UNROLL
		for (int v = 0; v < 2; v++)
			f[v] = vf_load(w + c * next_w + v * 4);
		PD_UNROLL
		for (int i = 0; i < pixels; i++)
			if (i >= lo && i < hi) {
				const vf s = vf_splat(x[at + i * 4 + c]);
				PD_UNROLL
				for (int v = 0; v < 2; v++)
					sum[i * 2 + v] = vf_multiply_add(sum[i * 2 + v], s, f[v]);
			}
	}
}

// `pixels` pixels of one output row, 2 blocks of channels; the first pixel's filter begins at
// (iy, ix) of the input.
PD_INLINE void conv_pixels_6x2of8_s1(const int pixels, const conv_shape *s, const float *x,
		const float *w,
                                                  int64_t iy, int64_t ix, float *tile)
{
	vf sum[12];
	PD_UNROLL
	for (int i = 0; i < pixels * 2; i++)
		sum[i] = vf_splat(0);
	const int64_t next_w = s->kh * s->kw * 8;
	for (int64_t c = 0, channels; c < s->channels; c += channels) {
		const int64_t lane = (s->lane + c) % 4, left = s->channels - c;
		const float *block = x + (s->lane + c) / 4 * s->plane + lane;
		channels = left < 4 - lane ? left : 4 - lane;
		for (int64_t ky = 0; ky < s->kh; ky++) {
			const int64_t y = iy + ky * s->dilation_y;
			if (y < 0 || y >= s->height)
				continue;
			for (int64_t kx = 0; kx < s->kw; kx++) {
				const int64_t column = ix + kx * s->dilation_x;
				conv_tap_6x2of8_s1(pixels, sum, block, y * s->row + column * 4,
				                                conv_steps(column, 0, 1, pixels),
				                                conv_steps(column, s->width, 1, pixels),
				                                w + (c * s->kh * s->kw + ky * s->kw + kx) * 8,
						next_w, channels);
			}
		}
	}
	PD_UNROLL
	for (int i = 0; i < pixels * 2; i++)
		vf_store(tile + i * 4, sum[i]);
}

PD_SHARED void conv_tile_6x2of8_s1(int pixels, const conv_shape *s, const float *x, const float *w,
                                                int64_t iy, int64_t ix, float *tile)
{
	switch (pixels) {
	case 1: conv_pixels_6x2of8_s1(1, s, x, w, iy, ix, tile); break;
	case 2: conv_pixels_6x2of8_s1(2, s, x, w, iy, ix, tile); break;
	case 3: conv_pixels_6x2of8_s1(3, s, x, w, iy, ix, tile); break;
	case 4: conv_pixels_6x2of8_s1(4, s, x, w, iy, ix, tile); break;
	case 5: conv_pixels_6x2of8_s1(5, s, x, w, iy, ix, tile); break;
	default: conv_pixels_6x2of8_s1(6, s, x, w, iy, ix, tile); break;
	}
}

/* conv2d + elementwise_add + relu */
// Output channels of one group of packed weights: 8, or what is left of them.
PD_INLINE void compute_conv2d_1_tmp_0_group(const int64_t n, const int64_t group, const int blocks,
		float *PDRT_RESTRICT out, const float *PDRT_RESTRICT x, const float *PDRT_RESTRICT w,
		const float *PDRT_RESTRICT t0, int64_t dim_n)
{
	(void)dim_n;
	const int64_t rows = 8, columns = 8;
	const int64_t height = 8, width = 8;
	const float *image = x + n * 4 * height * width * 4, *filter = w + group * 1152;
	const conv_shape shape = {16, height, width, 3, 3, 1, 1, width * 4, height * width * 4, 0}; //
			// channels, height, width, kh, kw, dilation_y, dilation_x, row, plane, lane
	for (int64_t row = 0; row < rows; row++)
		for (int64_t first = 0, last; first < columns; first = last) {
			last = first + 4;
			const int pixels = (int)(last - first);
			float tile[6 * 8] PD_ALIGNED;
			conv_tile_6x2of8_s1(pixels, &shape, image, filter, row - 1, first - 1, tile);
			for (int v = 0; v < blocks; v++)
				for (int64_t p = first; p < first + pixels; p++) {
					const int64_t cb = group * 2 + v;
					const float *sums = tile + ((p - first) * blocks + v) * 4;
					float *to = out + ((n * 8 + cb) * rows * columns + row * columns + p) * 4;
					PD_LANES
					for (int64_t c = 0; c < 4; c++) {
						const float acc = sums[c];
						const float v0 = acc + t0[cb * 4 + c];
						to[c] = v0 > 0.0f ? v0 : 0.0f;
					}
				}
		}
}

PD_APART void compute_conv2d_1_tmp_0(float *PDRT_RESTRICT out, const float *PDRT_RESTRICT x,
		const float *PDRT_RESTRICT w, const float *PDRT_RESTRICT t0, int64_t dim_n)
{
	for (int64_t n = 0; n < dim_n; n++)
		for (int64_t group = 0; group < 4; group++)
			compute_conv2d_1_tmp_0_group(n, group, 2, out, x, w, t0, dim_n);
}

/* pool2d */
PD_APART void compute_pool2d_0_tmp_0(float *PDRT_RESTRICT out, const float *PDRT_RESTRICT t0,
		int64_t dim_n)
{
	for (int64_t i0 = 0; i0 < 8 * dim_n; i0++)
		for (int64_t i1 = 0; i1 < 4; i1++) {
			const int64_t v2 = i1 * 2;
			for (int64_t i3 = 0; i3 < 4; i3++) {
				const int64_t v4 = i3 * 2;
				float acc5[4];
				for (int l = 0; l < 4; l++)
					acc5[l] = -INFINITY;
				for (int64_t i6 = 0; i6 < 2; i6++)
					for (int64_t i7 = 0; i7 < 2; i7++) {
						PDRT_LANES for (int l = 0; l < 4; l++) {
							const float v8 = t0[((i0 * 8 + (v2 + i6)) * 8 + (v4 + i7)) * 4 + l];
							acc5[l] = acc5[l] > v8 ? acc5[l] : v8;
						}
					}
				PDRT_LANES for (int l = 0; l < 4; l++) {
					out[((i0 * 4 + i1) * 4 + i3) * 4 + l] = -3.4028235e+38f > acc5[l]
							? -3.4028235e+38f : acc5[l];
				}
			}
		}
}

/* pool2d */
// The opposite of interleaving: channels of a blocked tensor as rows again.
PD_APART void compute_pool2d_0_tmp_0_2(float *PDRT_RESTRICT out, const float *PDRT_RESTRICT x,
		int64_t dim_n)
{
	const int64_t channels = 32, inner = 16, groups = (channels + 4 - 1) / 4;
	for (int64_t i = 0; i < dim_n * groups; i++) {
		const int64_t first = i % groups * 4;
		const int64_t have = 4;
		const float *from = x + i * inner * 4;
		float *to = out + (i / groups * channels + first) * inner;
		for (int64_t p0 = 0; p0 < inner; p0 += 16) {
			const int64_t end = inner - p0 < 16 ? inner : p0 + 16;
			for (int64_t c = 0; c < have; c++)
				for (int64_t p = p0; p < end; p++)
					to[c * inner + p] = from[p * 4 + c];
		}
	}
}

// Where the tile that begins at `first` ends: tiles are `height` high, but the last two share what
// is left.
PDRT_MAYBE_UNUSED static inline int64_t pd_tile_end(int64_t first, int64_t end, int64_t height)
{
	const int64_t left = end - first;
	if (left >= 2 * height)
		return first + height;
	return left > height ? first + (left + 1) / 2 : end;
}

// 6 rows of `a` or fewer times 2 vectors of a packed panel (k rows of 8). `split`
// sums run side by side where the rows are too few to hide the latency of an addition.
PD_INLINE void gemm_rows_2of8(const int rows, const int split, const float *a, int64_t lda,
		const float *panel, int64_t k, float *out, int64_t ldo)
{
	vf sum[12];
	PD_UNROLL
	for (int i = 0; i < split * rows * 2; i++)
		sum[i] = vf_splat(0);
	const int64_t whole = k - k % split;
	for (int64_t p = 0; p < whole; p += split) {
		PD_UNROLL
		for (int s = 0; s < split; s++) {
			vf w[2];
			PD_UNROLL
			for (int v = 0; v < 2; v++)
				w[v] = vf_load(panel + (p + s) * 8 + v * 4);
			PD_UNROLL
			for (int i = 0; i < rows; i++) {
				const vf x = vf_splat(a[i * lda + p + s]);
				PD_UNROLL
				for (int v = 0; v < 2; v++)
					sum[(s * rows + i) * 2 + v] = vf_multiply_add(sum[(s * rows + i) * 2 + v], x,
							w[v]);
			}
		}
	}
	for (int64_t p = whole; p < k; p++) {
		PD_UNROLL
		for (int i = 0; i < rows * 2; i++)
			sum[i] = vf_multiply_add(sum[i], vf_splat(a[i / 2 * lda + p]),
			                         vf_load(panel + p * 8 + i % 2 * 4));
	}
	PD_UNROLL
	for (int i = 0; i < rows * 2; i++) {
		PD_UNROLL
		for (int s = 1; s < split; s++)
			sum[i] = vf_add(sum[i], sum[s * rows * 2 + i]);
		vf_store(out + i / 2 * ldo + i % 2 * 4, sum[i]);
	}
}

PD_SHARED void gemm_tile_2of8(int rows, const float *a, int64_t lda, const float *panel, int64_t k,
		float *out, int64_t ldo)
{
	switch (rows) {
	case 1: gemm_rows_2of8(1, 4, a, lda, panel, k, out, ldo); break;
	case 2: gemm_rows_2of8(2, 2, a, lda, panel, k, out, ldo); break;
	case 3: gemm_rows_2of8(3, 2, a, lda, panel, k, out, ldo); break;
	case 4: gemm_rows_2of8(4, 1, a, lda, panel, k, out, ldo); break;
	case 5: gemm_rows_2of8(5, 1, a, lda, panel, k, out, ldo); break;
	default: gemm_rows_2of8(6, 1, a, lda, panel, k, out, ldo); break;
	}
}

/* matmul_v2 + elementwise_add + relu */
PD_APART void compute_linear_0_tmp_0(float *PDRT_RESTRICT out, const float *PDRT_RESTRICT a,
		const float *PDRT_RESTRICT b, const float *PDRT_RESTRICT t0, int64_t dim_n)
{
	const int64_t M = dim_n, N = 48, K = 512;
	for (int64_t n0 = 0; n0 < N; n0 += 8)
		for (int64_t m0 = 0, m1; m0 < M; m0 = m1) {
			m1 = pd_tile_end(m0, M, 6);
			float tile[6 * 8] PD_ALIGNED;
			gemm_tile_2of8((int)(m1 - m0), a + m0 * K, K, b + n0 * K, K, tile, 8);
			for (int64_t m = m0; m < m1; m++) {
				const float *sums = tile + (m - m0) * 8;
				float *to = out + m * N + n0;
				PD_LANES
				for (int j = 0; j < 8; j++) {
					const float v0 = sums[j] + t0[n0 + j];
					to[j] = v0 > 0.0f ? v0 : 0.0f;
				}
			}
		}
}

// 4 rows of `a` or fewer times 3 vectors of a packed panel (k rows of 12). `split`
// sums run side by side where the rows are too few to hide the latency of an addition.
PD_INLINE void gemm_rows_3of12(const int rows, const int split, const float *a, int64_t lda,
		const float *panel, int64_t k, float *out, int64_t ldo)
{
	vf sum[12];
	PD_UNROLL
	for (int i = 0; i < split * rows * 3; i++)
		sum[i] = vf_splat(0);
	const int64_t whole = k - k % split;
	for (int64_t p = 0; p < whole; p += split) {
		PD_UNROLL
		for (int s = 0; s < split; s++) {
			vf w[3];
			PD_UNROLL
			for (int v = 0; v < 3; v++)
				w[v] = vf_load(panel + (p + s) * 12 + v * 4);
			PD_UNROLL
			for (int i = 0; i < rows; i++) {
				const vf x = vf_splat(a[i * lda + p + s]);
				PD_UNROLL
				for (int v = 0; v < 3; v++)
					sum[(s * rows + i) * 3 + v] = vf_multiply_add(sum[(s * rows + i) * 3 + v], x,
							w[v]);
			}
		}
	}
	for (int64_t p = whole; p < k; p++) {
		PD_UNROLL
		for (int i = 0; i < rows * 3; i++)
			sum[i] = vf_multiply_add(sum[i], vf_splat(a[i / 3 * lda + p]),
			                         vf_load(panel + p * 12 + i % 3 * 4));
	}
	PD_UNROLL
	for (int i = 0; i < rows * 3; i++) {
		PD_UNROLL
		for (int s = 1; s < split; s++)
			sum[i] = vf_add(sum[i], sum[s * rows * 3 + i]);
		vf_store(out + i / 3 * ldo + i % 3 * 4, sum[i]);
	}
}

PD_SHARED void gemm_tile_3of12(int rows, const float *a, int64_t lda, const float *panel, int64_t k,
		float *out, int64_t ldo)
{
	switch (rows) {
	case 1: gemm_rows_3of12(1, 4, a, lda, panel, k, out, ldo); break;
	case 2: gemm_rows_3of12(2, 2, a, lda, panel, k, out, ldo); break;
	case 3: gemm_rows_3of12(3, 1, a, lda, panel, k, out, ldo); break;
	default: gemm_rows_3of12(4, 1, a, lda, panel, k, out, ldo); break;
	}
}

/* matmul_v2 + elementwise_add */
// Columns [n0, n0 + cols): one panel of b.
PD_INLINE void compute_linear_1_tmp_0_panel(const int64_t n0, const int cols,
		float *PDRT_RESTRICT out, const float *PDRT_RESTRICT a, const float *PDRT_RESTRICT b,
		const float *PDRT_RESTRICT t0, int64_t dim_n)
{
	const int64_t M = dim_n, N = 10, K = 48;
	for (int64_t m0 = 0, m1; m0 < M; m0 = m1) {
		m1 = pd_tile_end(m0, M, 4);
		const float *rows = a + m0 * K, *panel = b + n0 * K;
		float tile[4 * 12] PD_ALIGNED;
		if (cols > 8)
			gemm_tile_3of12((int)(m1 - m0), rows, K, panel, K, tile, 12);
		for (int64_t m = m0; m < m1; m++) {
			const float *sums = tile + (m - m0) * 12;
			float *to = out + m * N + n0;
			PD_LANES
			for (int j = 0; j < cols; j++)
				to[j] = sums[j] + t0[n0 + j];
		}
	}
}

PD_APART void compute_linear_1_tmp_0(float *PDRT_RESTRICT out, const float *PDRT_RESTRICT a,
		const float *PDRT_RESTRICT b, const float *PDRT_RESTRICT t0, int64_t dim_n)
{
	compute_linear_1_tmp_0_panel(0, 10, out, a, b, t0, dim_n);
}

// The maximum of a row, in 8 running lanes; a NaN in front stays.
PD_SHARED float row_max(const float *x, int64_t n)
{
	float lane[8], top = x[0];
	const int64_t whole = n / 8 * 8, half = n / 4 * 4;
	for (int l = 0; l < 8; l++)
		lane[l] = top;
	for (int64_t i = 0; i < whole; i += 8)
		for (int l = 0; l < 8; l++)
			lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
	for (int64_t i = whole; i < half; i += 4)
		for (int l = 0; l < 4; l++)
			lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
	for (int64_t i = half; i < n; i++)
		top = x[i] > top ? x[i] : top;
	for (int l = 0; l < 4; l++)
		lane[l] = lane[l + 4] > lane[l] ? lane[l + 4] : lane[l];
	for (int l = 0; l < 2; l++)
		lane[l] = lane[l + 2] > lane[l] ? lane[l + 2] : lane[l];
	lane[0] = lane[1] > lane[0] ? lane[1] : lane[0];
	return lane[0] > top ? lane[0] : top;
}

// The sum of a row, in 8 running lanes.
PD_SHARED float row_sum(const float *x, int64_t n)
{
	float lane[8] = {0}, sum = 0;
	const int64_t whole = n / 8 * 8, half = n / 4 * 4;
	for (int64_t i = 0; i < whole; i += 8)
		for (int l = 0; l < 8; l++)
			lane[l] += x[i + l];
	for (int64_t i = whole; i < half; i += 4)
		for (int l = 0; l < 4; l++)
			lane[l] += x[i + l];
	for (int64_t i = half; i < n; i++)
		sum += x[i];
	for (int l = 0; l < 4; l++)
		lane[l] += lane[l + 4];
	for (int l = 0; l < 2; l++)
		lane[l] += lane[l + 2];
	lane[0] += lane[1];
	return sum + lane[0];
}

/* softmax */
PD_APART void compute_softmax_0_tmp_0(float *PDRT_RESTRICT out, const float *PDRT_RESTRICT t0,
		int64_t dim_n)
{
	const int64_t rows = dim_n, columns = 10;
	for (int64_t r = 0; r < rows; r++) {
		float buffer[12] PD_ALIGNED;
		float *row = buffer;
		const float *from = &t0[r * 10];
		for (int64_t j = 0; j < columns / 4 * 4; j += 4)
			vf_store(row + j, vf_load(from + j));
		for (int64_t j = columns / 4 * 4; j < columns; j++)
			row[j] = from[j];
		for (int64_t j = columns; j < 12; j++)
			row[j] = -INFINITY;
		const float top = row_max(row, 12);
		PD_LANES
		for (int64_t j = 0; j < 12; j++)
			row[j] = expf(-64.0f > row[j] - top ? -64.0f : row[j] - top); // Paddle's limit
		const float scale = 1.0f / row_sum(row, 12);
		PD_LANES
		for (int64_t j = 0; j < columns; j++) {
			const float acc = row[j] * scale;
			out[r * columns + j] = acc;
		}
	}
}

/* Where buffers begin in the workspace. */
struct digits_places {
	int64_t linear_0_tmp_0;
	int64_t conv2d_0_tmp_0;
	int64_t end;
};

/* false: such sizes cannot be */
static bool digits_plan(const digits_dims *dims, struct digits_places *at)
{
	const int64_t n = dims->n;
	if (n < 0 || n > INT32_MAX)
		return false;
	const int64_t room_n = n ? n : 1;
	/* at most, where nothing overflows */
	const double most = 12288.0 * (double)room_n;
	if (most > 4e18)
		return false;
	at->linear_0_tmp_0 = 2048 * room_n;
	at->conv2d_0_tmp_0 = 8192 * room_n;
	at->end = at->conv2d_0_tmp_0 + 4096 * room_n;
	return (double)at->end <= (double)SIZE_MAX;
}

size_t digits_workspace_size(const digits_dims *dims)
{
	struct digits_places at;
	return digits_plan(dims, &at) ? (size_t)at.end : SIZE_MAX;
}

pd_status digits_init(digits *m, const void *weights, size_t n, void *workspace, size_t size)
{
	if (!m)
		return PD_NULL;
	m->ready = false;
	m->failed = NULL;
	if (!weights)
		return PD_NULL;
	if (n != 120128u || memcmp(weights, &weights_header, 64) != 0)
		return PD_WEIGHTS;
	if ((uintptr_t)weights % 64)
		return PD_ALIGNMENT;
	m->weights = (const unsigned char *)weights + 64;
	if (!workspace && size)
		return PD_NULL;
	if ((uintptr_t)workspace % 64)
		return PD_ALIGNMENT;
	m->workspace = (unsigned char *)workspace;
	m->workspace_size = size;
	m->ready = true;
	return PD_OK;
}

/* What lies where in the workspace, until what reads it last:
 * at 0:
 *     relu_1_tmp_0, 8192 * n bytes, until pool2d_0_tmp_0
 *     pool2d_0_tmp_0_2, 2048 * n bytes, until relu_2_tmp_0
 *     linear_1_tmp_1, 40 * n bytes, until softmax_0_tmp_0
 * at.linear_0_tmp_0:
 *     relu_2_tmp_0, 192 * n bytes, until linear_1_tmp_1
 * at.conv2d_0_tmp_0:
 *     relu_0_tmp_0, 4096 * n bytes, until relu_1_tmp_0
 *     pool2d_0_tmp_0, 2048 * n bytes, until pool2d_0_tmp_0
 */
pd_status digits_run(digits *m, const digits_inputs *in, digits_outputs *out)
{
	if (!m || !in || !out || !m->ready)
		return PD_NULL;
	if (!in->image)
		return PD_NULL;
	if ((uintptr_t)in->image % sizeof *in->image)
		return PD_ALIGNMENT;
	if (!out->save_infer_model_scale_0_tmp_0)
		return PD_NULL;
	if ((uintptr_t)out->save_infer_model_scale_0_tmp_0 %
			sizeof *out->save_infer_model_scale_0_tmp_0)
		return PD_ALIGNMENT;
	struct digits_places at;
	if (!digits_plan(&in->dims, &at))
		return PD_DIMS;
	if ((size_t)at.end > m->workspace_size)
		return PD_WORKSPACE;
	m->failed = NULL;
	const int64_t n = in->dims.n;
	unsigned char *const workspace = m->workspace;
	const unsigned char *const weights = m->weights;

	/* conv2d 'conv2d_0.tmp_0' + batch_norm 'batch_norm_0.tmp_2' + relu 'relu_0.tmp_0': [n x 4 x 8 x
	 * 8 x 4] f32 */
	float *const relu_0_tmp_0 = (float *)(workspace + at.conv2d_0_tmp_0);
	const float *const conv2d_0_w_0_bn_packed = (const float *)weights;
	const float *const batch_norm_0_tmp_2 = (const float *)(weights + 576);
	compute_conv2d_0_tmp_0(relu_0_tmp_0, in->image, conv2d_0_w_0_bn_packed, batch_norm_0_tmp_2, n);

	/* conv2d 'conv2d_1.tmp_0' + elementwise_add 'conv2d_1.tmp_1' + relu 'relu_1.tmp_0': [n x 8 x 8
	 * x 8 x 4] f32 */
	float *const relu_1_tmp_0 = (float *)workspace;
	const float *const conv2d_1_w_0_packed = (const float *)(weights + 640);
	const float *const reshape2_1_tmp_0 = (const float *)(weights + 19072);
	compute_conv2d_1_tmp_0(relu_1_tmp_0, relu_0_tmp_0, conv2d_1_w_0_packed, reshape2_1_tmp_0, n);

	/* pool2d 'pool2d_0.tmp_0': [n x 8 x 4 x 4 x 4] f32 */
	float *const pool2d_0_tmp_0 = (float *)(workspace + at.conv2d_0_tmp_0);
	compute_pool2d_0_tmp_0(pool2d_0_tmp_0, relu_1_tmp_0, n);

	/* pool2d 'pool2d_0.tmp_0': [n x 32 x 4 x 4] f32 */
	float *const pool2d_0_tmp_0_2 = (float *)workspace;
	compute_pool2d_0_tmp_0_2(pool2d_0_tmp_0_2, pool2d_0_tmp_0, n);

	/* matmul_v2 'linear_0.tmp_0' + elementwise_add 'linear_0.tmp_1' + relu 'relu_2.tmp_0': [n x 48]
	 * f32 */
	float *const relu_2_tmp_0 = (float *)(workspace + at.linear_0_tmp_0);
	const float *const linear_0_w_0_packed = (const float *)(weights + 19200);
	const float *const linear_0_b_0 = (const float *)(weights + 117504);
	compute_linear_0_tmp_0(relu_2_tmp_0, pool2d_0_tmp_0_2, linear_0_w_0_packed, linear_0_b_0, n);

	/* matmul_v2 'linear_1.tmp_0' + elementwise_add 'linear_1.tmp_1': [n x 10] f32 */
	float *const linear_1_tmp_1 = (float *)workspace;
	const float *const linear_1_w_0_packed = (const float *)(weights + 117696);
	const float *const linear_1_b_0 = (const float *)(weights + 120000);
	compute_linear_1_tmp_0(linear_1_tmp_1, relu_2_tmp_0, linear_1_w_0_packed, linear_1_b_0, n);

	/* softmax 'softmax_0.tmp_0': [n x 10] f32 */
	compute_softmax_0_tmp_0(out->save_infer_model_scale_0_tmp_0, linear_1_tmp_1, n);

	out->save_infer_model_scale_0_tmp_0_dims[0] = n;
	out->save_infer_model_scale_0_tmp_0_dims[1] = 10;
	return PD_OK;
}

static const pd_dim input_dims_0[] = {{0, 0}, {1, -1}, {8, -1}, {8, -1}};
static const pd_tensor_info input_tensors[] = {
	{"image", PD_F32, 4, input_dims_0, -1, 0, 0, PD_WHOLE, -1},
};

static const pd_dim output_dims_0[] = {{0, 0}, {10, -1}};
static const pd_tensor_info output_tensors[] = {
	{"save_infer_model/scale_0.tmp_0", PD_F32, 2, output_dims_0, -1, 0, 0, PD_WHOLE, -1},
};

static const pd_symbol_info symbol_infos[] = {{"n", false, false}};

static size_t digits_info_workspace_size(const int64_t *symbols)
{
	digits_dims dims;
	dims.n = symbols[0];
	return digits_workspace_size(&dims);
}

static void digits_info_shapes(const int64_t *symbols, int64_t *dims)
{
	dims[0] = symbols[0];
	dims[1] = 1;
	dims[2] = 8;
	dims[3] = 8;
	dims[4] = symbols[0];
	dims[5] = 10;
}

static void digits_info_room(const int64_t *symbols, int64_t *elements)
{
	elements[0] = 10 * symbols[0];
}

static pd_status digits_info_run(void *instance, const void *const *inputs, void *const *outputs,
		int64_t *symbols)
{
	digits_inputs in;
	digits_outputs out;
	in.dims.n = symbols[0];
	in.image = (const float *)inputs[0];
	out.save_infer_model_scale_0_tmp_0 = (float *)outputs[0];
	(void)symbols;
	const pd_status status = digits_run((struct digits *)instance, &in, &out);
	return status;
}

static pd_status digits_info_init(void *instance, const void *weights, size_t n, void *workspace,
		size_t size)
{
	return digits_init((struct digits *)instance, weights, n, workspace, size);
}

static const char *digits_info_failed(const void *instance)
{
	return ((const struct digits *)instance)->failed;
}

const pd_model_info *digits_info(void)
{
	static const pd_model_info info = {
		7, "digits", 1, 1, 1,
		input_tensors, output_tensors, symbol_infos,
		UINT64_C(0x16eb69bbcb974d90), 120128, sizeof(struct digits),
		digits_info_workspace_size,
		digits_info_shapes,
		digits_info_room,
		digits_info_init,
		digits_info_run,
		digits_info_failed,
		NULL,
		0, NULL, NULL, NULL,
		NULL, NULL,
	};
	return &info;
}
