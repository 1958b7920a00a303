// The part of cuBLASLt that generated code calls, for the emulator: f32 products of matrices that lie column by column,
// with transposes, batches and strides, as a kernel of one thread. What the library would refuse is refused; scratch memory
// is filled, so that whoever shares it wrongly is seen. Found in place of the toolkit's header through -I.
#ifndef CUDAEMU_CUBLASLT_H
#define CUDAEMU_CUBLASLT_H

#include "cudaemu.h"

enum cublasStatus_t {
	CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7,
	CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68 };
enum cudaDataType_t { CUDA_R_32F };
enum cublasLtMatrixLayoutAttribute_t {
	CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
};
enum cublasLtMatmulDescAttributes_t { CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB };
enum cublasLtMatmulPreferenceAttributes_t {
	CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
};

struct cublasLtMatrixLayoutOpaque_t {
	uint64_t rows, columns;
	int64_t ld, stride;
	int32_t batches;
};

struct cublasLtMatmulDescOpaque_t {
	cublasOperation_t ta, tb;
};

struct cublasLtMatmulPreferenceOpaque_t {
	size_t workspace;
	uint32_t alignment[4];
};

struct cublasLtMatmulAlgo_t {
	size_t workspace;
	uint32_t alignment[3]; // of A, B, C
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
	return s == CUBLAS_STATUS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED" : s == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
	                                                                         : "CUBLAS_STATUS_INVALID_VALUE";
}

// The handle is memory of the device, so that CUDAEMU_FAIL reaches it and a lost one is counted.
static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
	void *p = nullptr;
	if (cudaMalloc(&p, sizeof **h) != cudaSuccess)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*h = static_cast<cublasLtHandle_t>(p);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
	return cudaFree(h) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t t, cudaDataType_t, uint64_t rows, uint64_t columns,
                                                      int64_t ld)
{
	*t = {rows, columns, ld, 0, 1};
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t t, cublasLtMatrixLayoutAttribute_t which,
                                                              const void *value, size_t size)
{
	const bool count = which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
	if (size != (count ? sizeof t->batches : sizeof t->stride))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(count ? (void *)&t->batches : &t->stride, value, size);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t d, cublasComputeType_t, cudaDataType_t)
{
	*d = {CUBLAS_OP_N, CUBLAS_OP_N};
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which,
                                                            const void *value, size_t size)
{
	if (size != sizeof d->ta)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(which == CUBLASLT_MATMUL_DESC_TRANSA ? &d->ta : &d->tb, value, size);
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t p)
{
	*p = {0, {256, 256, 256, 256}};
	return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which,
                                                                  const void *value, size_t size)
{
	const bool workspace = which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
	if (size != (workspace ? sizeof p->workspace : sizeof p->alignment[0]))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(workspace ? (void *)&p->workspace : &p->alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, size);
	return CUBLAS_STATUS_SUCCESS;
}

// Whether op(A) op(B) is a product that fits into C.
static inline bool cublaslt_fits(const cublasLtMatmulDescOpaque_t *d, const cublasLtMatrixLayoutOpaque_t *a,
                                 const cublasLtMatrixLayoutOpaque_t *b, const cublasLtMatrixLayoutOpaque_t *c)
{
	const bool ta = d->ta == CUBLAS_OP_T, tb = d->tb == CUBLAS_OP_T;
	return (ta ? a->columns : a->rows) == c->rows && (tb ? b->rows : b->columns) == c->columns &&
	       (ta ? a->rows : a->columns) == (tb ? b->columns : b->rows) && a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows &&
	       c->ld >= (int64_t)c->rows && a->batches == c->batches && b->batches == c->batches && a->rows && a->columns && c->rows &&
	       c->columns && c->batches > 0;
}

static inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                                            cublasLtMatmulPreference_t p, int wanted,
                                                            cublasLtMatmulHeuristicResult_t *found, int *n)
{
	*n = 0;
	if (!cublaslt_fits(d, a, b, c) || wanted < 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	found->algo = {p->workspace, {p->alignment[0], p->alignment[1], p->alignment[2]}};
	*n = 1;
	return CUBLAS_STATUS_SUCCESS;
}

struct CublasltProduct {
	cublasLtMatmulDescOpaque_t how;
	cublasLtMatrixLayoutOpaque_t a, b, c;
	float alpha, beta;
};

static void cublaslt_product(CublasltProduct p, const float *a, const float *b, float *c, unsigned char *scratch, size_t room)
{
	const bool ta = p.how.ta == CUBLAS_OP_T, tb = p.how.tb == CUBLAS_OP_T;
	const int64_t depth = (int64_t)(ta ? p.a.rows : p.a.columns);
	memset(scratch, 0x5a, room < 4096 ? room : 4096);
	for (int64_t batch = 0; batch < p.c.batches; batch++, a += p.a.stride, b += p.b.stride, c += p.c.stride)
		for (int64_t j = 0; j < (int64_t)p.c.columns; j++)
			for (int64_t i = 0; i < (int64_t)p.c.rows; i++) {
				float sum = 0.0f;
				for (int64_t k = 0; k < depth; k++)
					sum += a[ta ? i * p.a.ld + k : k * p.a.ld + i] * b[tb ? k * p.b.ld + j : j * p.b.ld + k];
				float *const to = c + j * p.c.ld + i;
				*to = p.alpha * sum + (p.beta == 0.0f ? 0.0f : p.beta * *to);
			}
	for (size_t i = 0; i < room && i < 4096; i++)
		if (scratch[i] != 0x5a)
			cudaemu::die("misuse: the scratch memory of a product changes while it runs");
}

static inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                                            cublasLtMatrixLayout_t ta, const void *b, cublasLtMatrixLayout_t tb, const void *beta,
                                            const void *, cublasLtMatrixLayout_t, void *c, cublasLtMatrixLayout_t tc,
                                            const cublasLtMatmulAlgo_t *algo, void *scratch, size_t room, cudaStream_t stream)
{
	if (!h || !cublaslt_fits(d, ta, tb, tc) || room < algo->workspace || (uintptr_t)scratch % 256 || (uintptr_t)a % algo->alignment[0] ||
	    (uintptr_t)b % algo->alignment[1] || (uintptr_t)c % algo->alignment[2])
		return CUBLAS_STATUS_INVALID_VALUE;
	CublasltProduct p = {*d, *ta, *tb, *tc, *static_cast<const float *>(alpha), *static_cast<const float *>(beta)};
	void *args[] = {&p, &a, &b, &c, &scratch, &room};
	return cudaLaunchKernel(cublaslt_product, dim3(1), dim3(1), args, 0, stream) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
	                                                                                           : CUBLAS_STATUS_ALLOC_FAILED;
}

#endif
