// The part of cuBLASLt that generated code calls, for the emulator: products of matrices that lie
// column by column, of f32, f16 and bf16, with transposes, batches, strides, bias and activation,
// as a kernel of one thread. What the library would refuse is refused. Found in place of the
// toolkit's header through -I.
#ifndef CUDAEMU_CUBLASLT_H
#define CUDAEMU_CUBLASLT_H

#include "cuda_library.h"

enum cublasStatus_t {
	CUBLAS_STATUS_SUCCESS,
	CUBLAS_STATUS_NOT_INITIALIZED,
	CUBLAS_STATUS_ALLOC_FAILED = 3,
	CUBLAS_STATUS_INVALID_VALUE = 7,
	CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasLtEpilogue_t {
	CUBLASLT_EPILOGUE_DEFAULT = 1,
	CUBLASLT_EPILOGUE_RELU = 2,
	CUBLASLT_EPILOGUE_BIAS = 4,
	CUBLASLT_EPILOGUE_RELU_BIAS = 6,
	CUBLASLT_EPILOGUE_GELU = 32,
	CUBLASLT_EPILOGUE_GELU_BIAS = 36
};
enum cublasLtMatrixLayoutAttribute_t {
	CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
	CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
};
enum cublasLtMatmulDescAttributes_t {
	CUBLASLT_MATMUL_DESC_TRANSA = 3,
	CUBLASLT_MATMUL_DESC_TRANSB,
	CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
	CUBLASLT_MATMUL_DESC_BIAS_POINTER
};
enum cublasLtMatmulPreferenceAttributes_t {
	CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
};

struct cublasLtMatrixLayoutOpaque_t {
	cudaDataType_t type;
	uint64_t rows, columns;
	int64_t ld, stride;
	int32_t batches;
};

struct cublasLtMatmulDescOpaque_t {
	cublasOperation_t ta, tb;
	cublasComputeType_t compute;
	cublasLtEpilogue_t epilogue;
	const void *bias;
};

struct cublasLtMatmulPreferenceOpaque_t {
	size_t workspace;
	uint32_t alignment[4];
};

struct cublasLtMatmulAlgo_t {
	size_t workspace;
	uint32_t alignment[4]; // of A, B, C, D
};

struct cublasLtMatmulHeuristicResult_t {
	cublasLtMatmulAlgo_t algo;
};

struct cublasLtContext {
	int device;
};

typedef cublasLtContext *cublasLtHandle_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;

static inline const char *cublasLtGetStatusName(cublasStatus_t s)
{
	return s == CUBLAS_STATUS_ALLOC_FAILED    ? "CUBLAS_STATUS_ALLOC_FAILED"
	       : s == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
	                                          : "CUBLAS_STATUS_INVALID_VALUE";
}

static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
	if (cudaemu::called(__func__) != cudaSuccess)
		return CUBLAS_STATUS_ALLOC_FAILED;
	cudaemu::library_new(h);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
	cudaemu::library_delete(h);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t t, cudaDataType_t type,
                                                      uint64_t rows, uint64_t columns, int64_t ld)
{
	*t = {type, rows, columns, ld, 0, 1};
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t t,
                                                              cublasLtMatrixLayoutAttribute_t which,
                                                              const void *value, size_t size)
{
	const bool count = which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
	if (size != (count ? sizeof t->batches : sizeof t->stride))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(count ? (void *)&t->batches : &t->stride, value, size);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t d,
                                                    cublasComputeType_t compute,
                                                    cudaDataType_t scale)
{
	*d = {CUBLAS_OP_N, CUBLAS_OP_N, compute, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
	return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                                            cublasLtMatmulDescAttributes_t which,
                                                            const void *value, size_t size)
{
	void *const to = which == CUBLASLT_MATMUL_DESC_TRANSA     ? (void *)&d->ta
	                 : which == CUBLASLT_MATMUL_DESC_TRANSB   ? (void *)&d->tb
	                 : which == CUBLASLT_MATMUL_DESC_EPILOGUE ? (void *)&d->epilogue
	                                                          : (void *)&d->bias;
	if (size != (which == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof d->bias : sizeof d->ta))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(to, value, size);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t p)
{
	*p = {0, {256, 256, 256, 256}};
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
	cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which, const void *value,
	size_t size)
{
	const bool workspace = which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
	if (size != (workspace ? sizeof p->workspace : sizeof p->alignment[0]))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(workspace ? (void *)&p->workspace
	                 : &p->alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
	       value, size);
	return CUBLAS_STATUS_SUCCESS;
}

static inline bool cublaslt_types_fit(const cublasLtMatmulDescOpaque_t *d,
                                      const cublasLtMatrixLayoutOpaque_t *a,
                                      const cublasLtMatrixLayoutOpaque_t *b,
                                      const cublasLtMatrixLayoutOpaque_t *c)
{
	return a->type == b->type && a->type == c->type &&
	       (d->compute == CUBLAS_COMPUTE_32F || a->type == CUDA_R_32F);
}

static inline bool cublaslt_lies(const cublasLtMatrixLayoutOpaque_t *m)
{
	return m->rows && m->columns && m->ld >= (int64_t)m->rows;
}

// Whether op(A) op(B) is a product that fits into C and D, which lie alike.
static inline bool cublaslt_fits(const cublasLtMatmulDescOpaque_t *d,
                                 const cublasLtMatrixLayoutOpaque_t *a,
                                 const cublasLtMatrixLayoutOpaque_t *b,
                                 const cublasLtMatrixLayoutOpaque_t *c)
{
	const bool ta = d->ta == CUBLAS_OP_T, tb = d->tb == CUBLAS_OP_T;
	return cublaslt_types_fit(d, a, b, c) && (ta ? a->columns : a->rows) == c->rows &&
	       (tb ? b->rows : b->columns) == c->columns &&
	       (ta ? a->rows : a->columns) == (tb ? b->columns : b->rows) && cublaslt_lies(a) &&
	       cublaslt_lies(b) && cublaslt_lies(c) && a->batches == c->batches &&
	       b->batches == c->batches && c->batches > 0 &&
	       !(d->epilogue & CUBLASLT_EPILOGUE_BIAS) == !d->bias;
}

static inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
	cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
	cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t p, int wanted,
	cublasLtMatmulHeuristicResult_t *found, int *n)
{
	*n = 0;
	if (cudaemu::called(__func__) != cudaSuccess)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!h || !cublaslt_fits(d, a, b, c) || wanted < 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	found->algo = {p->workspace,
	               {p->alignment[0], p->alignment[1], p->alignment[2], p->alignment[3]}};
	*n = 1;
	return CUBLAS_STATUS_SUCCESS;
}

struct CublasltProduct {
	cublasLtMatmulDescOpaque_t how;
	cublasLtMatrixLayoutOpaque_t a, b, c;
	cudaemu::LibraryType type;
	float alpha, beta;
};

static inline float cublaslt_activation(cublasLtEpilogue_t e, float x)
{
	if (e & CUBLASLT_EPILOGUE_RELU)
		return x > 0.0f ? x : 0.0f;
	return e & CUBLASLT_EPILOGUE_GELU
	           ? 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)))
	           : x;
}

static void cublaslt_product(CublasltProduct p, const void *a, const void *b, const void *c,
                             void *d, void *scratch, size_t room)
{
	const bool ta = p.how.ta == CUBLAS_OP_T, tb = p.how.tb == CUBLAS_OP_T;
	const int64_t depth = (int64_t)(ta ? p.a.rows : p.a.columns), columns = (int64_t)p.c.columns,
				  rows = (int64_t)p.c.rows;
	cudaemu::scratch_fill(scratch, room);
	for (int64_t at = 0; at < p.c.batches * columns * rows; at++) {
		const int64_t batch = at / rows / columns, j = at / rows % columns, i = at % rows;
		const int64_t x = batch * p.a.stride, y = batch * p.b.stride,
					  z = batch * p.c.stride + j * p.c.ld + i;
		float sum = 0.0f;
		for (int64_t k = 0; k < depth; k++)
			sum += cudaemu::library_factor(a, x + (ta ? i * p.a.ld + k : k * p.a.ld + i), p.type) *
			       cudaemu::library_factor(b, y + (tb ? k * p.b.ld + j : j * p.b.ld + k), p.type);
		sum = p.alpha * sum +
		      (p.beta == 0.0f ? 0.0f : p.beta * cudaemu::library_load(c, z, p.type)) +
		      (p.how.bias ? cudaemu::library_load(p.how.bias, i, p.type) : 0.0f);
		cudaemu::library_store(d, z, p.type, cublaslt_activation(p.how.epilogue, sum));
	}
	cudaemu::scratch_check(scratch, room);
}

static inline cublasStatus_t cublasLtMatmul(
	cublasLtHandle_t h, cublasLtMatmulDesc_t how, const void *alpha, const void *a,
	cublasLtMatrixLayout_t ta, const void *b, cublasLtMatrixLayout_t tb, const void *beta,
	const void *c, cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t td,
	const cublasLtMatmulAlgo_t *algo, void *scratch, size_t room, cudaStream_t stream)
{
	if (cudaemu::called(__func__) != cudaSuccess)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	const void *const at[] = {a, b, c, d};
	bool fits = h && cublaslt_fits(how, ta, tb, td) && room >= algo->workspace &&
	            (uintptr_t)scratch % 256 == 0;
	for (int i = 0; i < 4; i++)
		fits = fits && (uintptr_t)at[i] % algo->alignment[i] == 0;
	if (!fits)
		return CUBLAS_STATUS_INVALID_VALUE;
	const cudaemu::LibraryType type = td->type == CUDA_R_16F    ? cudaemu::LIBRARY_F16
	                                  : td->type == CUDA_R_16BF ? cudaemu::LIBRARY_BF16
	                                  : how->compute == CUBLAS_COMPUTE_32F_FAST_TF32
	                                      ? cudaemu::LIBRARY_TF32
	                                      : cudaemu::LIBRARY_F32;
	CublasltProduct p = {*how,
	                     *ta,
	                     *tb,
	                     *td,
	                     type,
	                     *static_cast<const float *>(alpha),
	                     *static_cast<const float *>(beta)};
	void *args[] = {&p, &a, &b, &c, &d, &scratch, &room};
	return cudaLaunchKernel(cublaslt_product, dim3(1), dim3(1), args, 0, stream) == cudaSuccess
	           ? CUBLAS_STATUS_SUCCESS
	           : CUBLAS_STATUS_ALLOC_FAILED;
}

#endif
