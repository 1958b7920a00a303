// The CUDA emulator: half precision, as far as generated code uses it. Conversions round to
// nearest, ties to even.
#ifndef CUDAEMU_FP16_H
#define CUDAEMU_FP16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

struct __half {
	uint16_t bits;
};

static inline __half __ushort_as_half(unsigned short bits)
{
	return {bits};
}

static inline unsigned short __half_as_ushort(__half h)
{
	return h.bits;
}

static inline float __half2float(__half h)
{
	const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
	const float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
	                                       : ldexpf((float)(exponent ? fraction + 1024 : fraction),
	                                                (exponent ? exponent : 1) - 25);
	return h.bits & 0x8000 ? -magnitude : magnitude;
}

static inline __half __float2half_rn(float f)
{
	const uint16_t sign = signbit(f) ? 0x8000 : 0;
	f = fabsf(f);
	if (f != f)
		return {0x7fff};
	if (f >= 65520.0f)
		return {(uint16_t)(sign | 0x7c00)};
	int exponent; // f < 2^exponent
	frexpf(f, &exponent);
	const int unit = f == 0.0f || exponent < -13 ? -24 : exponent - 11;
	const int steps = (int)rintf(ldexpf(f, -unit)); // of 2^unit; 2048 carries into the exponent
	return {(uint16_t)(sign | (unit == -24 ? steps : (unit + 24) * 1024 + steps))};
}

#endif
