// The part of cuDNN that generated code calls, for the emulator: convolutions of images [N x C x H
// x W] of f32, f16 and bf16 with groups, dilations, bias, addend and RELU, as a kernel of one
// thread. What the library would refuse is refused, by the conditions of its manual. Found in place
// of the library's header through -I.
#ifndef CUDAEMU_CUDNN_H
#define CUDAEMU_CUDNN_H

#include "cuda_library.h"

enum cudnnStatus_t {
	CUDNN_STATUS_SUCCESS,
	CUDNN_STATUS_BAD_PARAM = 2000,
	CUDNN_STATUS_NOT_SUPPORTED = 3000,
	CUDNN_STATUS_INTERNAL_ERROR = 4000
};
enum cudnnDataType_t { CUDNN_DATA_FLOAT, CUDNN_DATA_HALF = 2, CUDNN_DATA_BFLOAT16 = 9 };
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW };
enum cudnnMathType_t {
	CUDNN_DEFAULT_MATH,
	CUDNN_TENSOR_OP_MATH,
	CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
	CUDNN_FMA_MATH
};
enum cudnnNanPropagation_t { CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN };
enum cudnnConvolutionMode_t { CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION };
enum cudnnActivationMode_t { CUDNN_ACTIVATION_RELU = 1, CUDNN_ACTIVATION_IDENTITY = 5 };
enum cudnnConvolutionFwdAlgo_t {
	CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
	CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
	CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
	CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
	CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8
};

struct cudnnContext {
	cudaStream_t stream;
};

struct cudnnTensorStruct {
	cudnnDataType_t type;
	int dims[4]; // 0: not set yet
};

struct cudnnFilterStruct {
	cudnnDataType_t type;
	int dims[4];
};

struct cudnnConvolutionStruct {
	int padding[2], stride[2], dilation[2], groups;
	cudnnMathType_t math;
};

struct cudnnActivationStruct {
	cudnnActivationMode_t mode;
	cudnnNanPropagation_t nan;
};

struct cudnnConvolutionFwdAlgoPerf_t {
	cudnnConvolutionFwdAlgo_t algo;
	cudnnStatus_t status;
	size_t memory;
};

typedef cudnnContext *cudnnHandle_t;
typedef cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;
typedef cudnnActivationStruct *cudnnActivationDescriptor_t;

static inline const char *cudnnGetErrorString(cudnnStatus_t s)
{
	return s == CUDNN_STATUS_BAD_PARAM       ? "CUDNN_STATUS_BAD_PARAM"
	       : s == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
	                                         : "CUDNN_STATUS_INTERNAL_ERROR";
}

// ---- what describes a convolution ---------------------------------------------------------------

// Counted, and fails where CUDAEMU_FAIL wants it.
#define CUDNN_ENTER()                             \
	if (cudaemu::called(__func__) != cudaSuccess) \
	return CUDNN_STATUS_INTERNAL_ERROR

#define CUDNN_OBJECT(Create, Destroy, T)          \
	static inline cudnnStatus_t Create(T *object) \
	{                                             \
		CUDNN_ENTER();                            \
		cudaemu::library_new(object);             \
		return CUDNN_STATUS_SUCCESS;              \
	}                                             \
	static inline cudnnStatus_t Destroy(T object) \
	{                                             \
		cudaemu::library_delete(object);          \
		return CUDNN_STATUS_SUCCESS;              \
	}

CUDNN_OBJECT(cudnnCreate, cudnnDestroy, cudnnHandle_t)
CUDNN_OBJECT(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, cudnnTensorDescriptor_t)
CUDNN_OBJECT(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor, cudnnFilterDescriptor_t)
CUDNN_OBJECT(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor,
             cudnnConvolutionDescriptor_t)
CUDNN_OBJECT(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor,
             cudnnActivationDescriptor_t)

static inline cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream)
{
	h->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

template <typename T>
static cudnnStatus_t cudnn_set_dims(T *t, cudnnDataType_t type, int a, int b, int c, int d)
{
	const bool fits = t && a > 0 && b > 0 && c > 0 && d > 0;
	if (fits)
		*t = {type, {a, b, c, d}};
	return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

static inline cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t,
                                                       cudnnTensorFormat_t, cudnnDataType_t type,
                                                       int n, int c, int h, int w)
{
	CUDNN_ENTER();
	return cudnn_set_dims(t, type, n, c, h, w);
}

static inline cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t t,
                                                       cudnnDataType_t type, cudnnTensorFormat_t,
                                                       int k, int c, int h, int w)
{
	CUDNN_ENTER();
	return cudnn_set_dims(t, type, k, c, h, w);
}

static inline cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d,
                                                            int pad_h, int pad_w, int u, int v,
                                                            int dilation_h, int dilation_w,
                                                            cudnnConvolutionMode_t mode,
                                                            cudnnDataType_t compute)
{
	CUDNN_ENTER();
	const bool fits = d && pad_h >= 0 && pad_w >= 0 && u > 0 && v > 0 && dilation_h > 0 &&
	                  dilation_w > 0 && mode == CUDNN_CROSS_CORRELATION &&
	                  compute == CUDNN_DATA_FLOAT;
	if (fits)
		*d = {{pad_h, pad_w}, {u, v}, {dilation_h, dilation_w}, 1, CUDNN_DEFAULT_MATH};
	return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

static inline cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d,
                                                          int groups)
{
	CUDNN_ENTER();
	d->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}

static inline cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d,
                                                        cudnnMathType_t math)
{
	CUDNN_ENTER();
	d->math = math;
	return CUDNN_STATUS_SUCCESS;
}

static inline cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t d,
                                                         cudnnActivationMode_t mode,
                                                         cudnnNanPropagation_t nan, double)
{
	CUDNN_ENTER();
	*d = {mode, nan};
	return CUDNN_STATUS_SUCCESS;
}

// ---- which algorithm ----------------------------------------------------------------------------

// Whether the result has the size that the library would give it.
static inline bool cudnn_fits(const cudnnTensorStruct *x, const cudnnFilterStruct *w,
                              const cudnnConvolutionStruct *d, const cudnnTensorStruct *y)
{
	bool fits = d->groups > 0 && x->type == w->type && x->type == y->type &&
	            y->dims[0] == x->dims[0] && y->dims[1] == w->dims[0] &&
	            w->dims[1] * d->groups == x->dims[1] && w->dims[0] % d->groups == 0;
	for (int i = 0; i < 2 && fits; i++)
		fits = y->dims[2 + i] ==
		       (x->dims[2 + i] + 2 * d->padding[i] - d->dilation[i] * (w->dims[2 + i] - 1) - 1) /
		               d->stride[i] +
		           1;
	return fits;
}

// The best one first, which is for f32 none of those that round like plain sums.
static inline cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
	cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
	cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t y, int most, int *n,
	cudnnConvolutionFwdAlgoPerf_t *found)
{
	static const cudnnConvolutionFwdAlgo_t algos[] = {
		CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
		CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM};
	CUDNN_ENTER();
	if (!h || !cudnn_fits(x, w, d, y))
		return CUDNN_STATUS_BAD_PARAM;
	for (*n = 0; *n < most && *n < 4; ++*n)
		found[*n] = {algos[*n],
		             *n == 1 && d->groups > 1 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS,
		             0};
	return CUDNN_STATUS_SUCCESS;
}

static inline size_t cudnn_bytes(cudnnDataType_t type, const int *dims)
{
	return (size_t)dims[0] * dims[1] * dims[2] * dims[3] * (type == CUDNN_DATA_FLOAT ? 4 : 2);
}

static inline cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
	cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
	cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
	size_t *bytes)
{
	const size_t images = cudnn_bytes(x->type, x->dims) + cudnn_bytes(y->type, y->dims);
	*bytes = algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
	             ? images + cudnn_bytes(w->type, w->dims)
	         : algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ? images * w->dims[2] * w->dims[3]
	                                                   : 0;
	return CUDNN_STATUS_SUCCESS;
}

// ---- convolutions -------------------------------------------------------------------------------

struct CudnnConvolution {
	cudnnTensorStruct x, y;
	cudnnFilterStruct w;
	cudnnConvolutionStruct how;
	cudaemu::LibraryType type;
	bool relu;
	float alpha, beta;
};

static float cudnn_sum(const CudnnConvolution &p, const void *x, const void *w, int n, int k,
                       const int *at)
{
	const int *const d = p.w.dims, first = k / (p.w.dims[0] / p.how.groups) * d[1];
	float sum = 0.0f;
	for (int i = 0; i < d[1] * d[2] * d[3]; i++) {
		const int c = i / (d[2] * d[3]), taps[2] = {i / d[3] % d[2], i % d[3]};
		int from[2];
		for (int s = 0; s < 2; s++)
			from[s] = at[s] * p.how.stride[s] - p.how.padding[s] + taps[s] * p.how.dilation[s];
		if (from[0] < 0 || from[0] >= p.x.dims[2] || from[1] < 0 || from[1] >= p.x.dims[3])
			continue;
		const int64_t pixel = (((int64_t)n * p.x.dims[1] + first + c) * p.x.dims[2] + from[0]) *
		                          p.x.dims[3] +
		                      from[1];
		sum += cudaemu::library_factor(x, pixel, p.type) *
		       cudaemu::library_factor(w, (int64_t)k * d[1] * d[2] * d[3] + i, p.type);
	}
	return sum;
}

static void cudnn_convolution(CudnnConvolution p, const void *x, const void *w, const void *z,
                              const void *bias, void *y, void *scratch, size_t room)
{
	const int *const d = p.y.dims;
	cudaemu::scratch_fill(scratch, room);
	for (int64_t i = 0; i < (int64_t)d[0] * d[1] * d[2] * d[3]; i++) {
		const int k = (int)(i / d[3] / d[2] % d[1]),
				  at[2] = {(int)(i / d[3] % d[2]), (int)(i % d[3])};
		float v = p.alpha * cudnn_sum(p, x, w, (int)(i / d[3] / d[2] / d[1]), k, at);
		v += (p.beta == 0.0f ? 0.0f : p.beta * cudaemu::library_load(z, i, p.type)) +
		     (bias ? cudaemu::library_load(bias, k, p.type) : 0.0f);
		cudaemu::library_store(y, i, p.type, p.relu && !(v > 0.0f) ? 0.0f : v);
	}
	cudaemu::scratch_check(scratch, room);
}

static inline cudaemu::LibraryType cudnn_type(const CudnnConvolution &p)
{
	return p.x.type == CUDNN_DATA_HALF       ? cudaemu::LIBRARY_F16
	       : p.x.type == CUDNN_DATA_BFLOAT16 ? cudaemu::LIBRARY_BF16
	       : p.how.math == CUDNN_FMA_MATH    ? cudaemu::LIBRARY_F32
	                                         : cudaemu::LIBRARY_TF32;
}

static inline cudnnStatus_t cudnn_launch(cudnnHandle_t h, CudnnConvolution p, const void *x,
                                         const void *w, cudnnConvolutionFwdAlgo_t algo,
                                         void *scratch, size_t room, const void *z,
                                         const void *bias, void *y)
{
	size_t need = 0;
	cudnnGetConvolutionForwardWorkspaceSize(h, &p.x, &p.w, &p.how, &p.y, algo, &need);
	if (!h || !x || !w || !y || !cudnn_fits(&p.x, &p.w, &p.how, &p.y) || room < need ||
	    (need && !scratch))
		return CUDNN_STATUS_BAD_PARAM;
	if (algo > CUDNN_CONVOLUTION_FWD_ALGO_GEMM ||
	    (algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM && p.how.groups > 1))
		return CUDNN_STATUS_NOT_SUPPORTED;
	p.type = cudnn_type(p);
	void *args[] = {&p, &x, &w, &z, &bias, &y, &scratch, &room};
	return cudaLaunchKernel(cudnn_convolution, dim3(1), dim3(1), args, 0, h->stream) == cudaSuccess
	           ? CUDNN_STATUS_SUCCESS
	           : CUDNN_STATUS_INTERNAL_ERROR;
}

static inline cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha,
                                                    cudnnTensorDescriptor_t tx, const void *x,
                                                    cudnnFilterDescriptor_t tw, const void *w,
                                                    cudnnConvolutionDescriptor_t d,
                                                    cudnnConvolutionFwdAlgo_t algo, void *scratch,
                                                    size_t room, const void *beta,
                                                    cudnnTensorDescriptor_t ty, void *y)
{
	CUDNN_ENTER();
	return cudnn_launch(h,
	                    {*tx, *ty, *tw, *d, cudaemu::LIBRARY_F32, false,
	                     *static_cast<const float *>(alpha), *static_cast<const float *>(beta)},
	                    x, w, algo, scratch, room, y, nullptr, y);
}

static inline cudnnStatus_t cudnnConvolutionBiasActivationForward(
	cudnnHandle_t h, const void *alpha, cudnnTensorDescriptor_t tx, const void *x,
	cudnnFilterDescriptor_t tw, const void *w, cudnnConvolutionDescriptor_t d,
	cudnnConvolutionFwdAlgo_t algo, void *scratch, size_t room, const void *beta,
	cudnnTensorDescriptor_t tz, const void *z, cudnnTensorDescriptor_t tbias, const void *bias,
	cudnnActivationDescriptor_t act, cudnnTensorDescriptor_t ty, void *y)
{
	CUDNN_ENTER();
	const bool relu = act->mode == CUDNN_ACTIVATION_RELU;
	if (!bias || !z || memcmp(tz->dims, ty->dims, sizeof ty->dims) ||
	    tbias->dims[1] != ty->dims[1] || tbias->type != ty->type)
		return CUDNN_STATUS_BAD_PARAM;
	if (act->nan != CUDNN_NOT_PROPAGATE_NAN ||
	    (!relu && algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM))
		return CUDNN_STATUS_NOT_SUPPORTED;
	return cudnn_launch(h,
	                    {*tx, *ty, *tw, *d, cudaemu::LIBRARY_F32, relu,
	                     *static_cast<const float *>(alpha), *static_cast<const float *>(beta)},
	                    x, w, algo, scratch, room, z, bias, y);
}

#endif
