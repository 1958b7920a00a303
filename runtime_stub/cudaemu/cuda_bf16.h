// The CUDA emulator: bfloat16, as far as generated code uses it. Conversions round to nearest, ties
// to even.
#ifndef CUDAEMU_BF16_H
#define CUDAEMU_BF16_H

#include <stdint.h>
#include <string.h>

struct __nv_bfloat16 {
	uint16_t bits;
};

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
	return {bits};
}

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h)
{
	return h.bits;
}

static inline float __bfloat162float(__nv_bfloat16 h)
{
	const uint32_t bits = (uint32_t)h.bits << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static inline __nv_bfloat16 __float2bfloat16_rn(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if (f != f)
		return {0x7fff};
	return {(uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

#endif
