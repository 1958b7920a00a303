// What the emulated libraries (cublasLt.h, cudnn.h) share: elements of the types that they take,
// scratch memory that is filled, so that whoever shares it wrongly is seen, and calls that fail
// where CUDAEMU_FAIL wants it.
#ifndef CUDAEMU_CUDA_LIBRARY_H
#define CUDAEMU_CUDA_LIBRARY_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cudaemu.h"

namespace cudaemu
{

enum LibraryType {
	LIBRARY_F32,
	LIBRARY_TF32,
	LIBRARY_F16,
	LIBRARY_BF16
}; // TF32: f32, rounded when it is multiplied

static inline float library_load(const void *from, int64_t i, LibraryType t)
{
	if (t == LIBRARY_F16)
		return __half2float(static_cast<const __half *>(from)[i]);
	if (t == LIBRARY_BF16)
		return __bfloat162float(static_cast<const __nv_bfloat16 *>(from)[i]);
	return static_cast<const float *>(from)[i];
}

// A factor of a product.
static inline float library_factor(const void *from, int64_t i, LibraryType t)
{
	float f = library_load(from, i, t);
	if (t == LIBRARY_TF32) {
		const uint32_t bits = pd_round_tf32(f);
		memcpy(&f, &bits, sizeof f);
	}
	return f;
}

static inline void library_store(void *to, int64_t i, LibraryType t, float f)
{
	if (t == LIBRARY_F16)
		static_cast<__half *>(to)[i] = __float2half_rn(f);
	else if (t == LIBRARY_BF16)
		static_cast<__nv_bfloat16 *>(to)[i] = __float2bfloat16_rn(f);
	else
		static_cast<float *>(to)[i] = f;
}

// Around what a kernel computes. Byte by byte, which CUDAEMU_RACES sees.
static inline size_t scratch_part(size_t room)
{
	return room < 4096 ? room : 4096;
}

static inline void scratch_fill(void *scratch, size_t room)
{
	for (size_t i = 0; i < scratch_part(room); i++)
		static_cast<volatile unsigned char *>(scratch)[i] = 0x5a;
}

static inline void scratch_check(const void *scratch, size_t room)
{
	for (size_t i = 0; i < scratch_part(room); i++)
		if (static_cast<const unsigned char *>(scratch)[i] != 0x5a)
			die("misuse: the scratch memory of a call changes while it runs");
}

// Handles and descriptors; lost ones are seen.
template <typename T> static void library_new(T **object)
{
	*object = new T();
	library_objects++;
}

template <typename T> static void library_delete(T *object)
{
	delete object;
	library_objects--;
}

} // namespace cudaemu

#endif
