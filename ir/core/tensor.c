// Concrete tensors: parameters, constants, and what the interpreter computes with.
#include "ir/core/core.h"

#include <math.h>
#include <string.h>

Tensor *tensor_new(Arena *a, DType dtype, int rank, const int64_t *dims)
{
	if (rank < 0 || rank > MAX_RANK)
		return NULL;
	uint64_t bytes = dtype_size(dtype);
	bool zero = false;
	for (int i = 0; i < rank; i++) {
		if (dims[i] < 0)
			return NULL;
		zero |= dims[i] == 0;
	}
	for (int i = 0; i < rank && !zero; i++) {
		if (bytes > (uint64_t)INT64_MAX / (uint64_t)dims[i])
			return NULL;
		bytes *= (uint64_t)dims[i];
	}
	Tensor *t = NEW(a, Tensor);
	t->dtype = dtype;
	t->rank = rank;
	if (rank)
		memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
	if (!zero) {
		t->data = bytes <= 4096 ? arena_alloc(a, (size_t)bytes) : arena_big(a, (size_t)bytes);
		memset(t->data, 0, (size_t)bytes);
	}
	return t;
}

int64_t tensor_numel(const Tensor *t)
{
	int64_t n = 1;
	for (int i = 0; i < t->rank; i++)
		n *= t->dims[i];
	return n;
}

size_t tensor_bytes(const Tensor *t)
{
	return (size_t)tensor_numel(t) * dtype_size(t->dtype);
}

bool tensor_is_uniform(const Tensor *t)
{
	const char *data = t->data;
	const size_t size = dtype_size(t->dtype);
	const int64_t n = tensor_numel(t);
	for (int64_t i = 1; i < n; i++)
		if (memcmp(data, data + (size_t)i * size, size))
			return false;
	return n > 0;
}

static float float_of_bits(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static uint32_t bits_of_float(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}

float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = h >> 10 & 31, frac = h & 0x3ffu, bits;
	if (exp == 31) {
		bits = sign | 0x7f800000u | frac << 13;
	} else if (exp) {
		bits = sign | (exp + 112) << 23 | frac << 13;
	} else {
		float f = ldexpf((float)frac, -24);
		return sign ? -f : f;
	}
	return float_of_bits(bits);
}

uint16_t float_to_half(float f)
{
	uint32_t bits = bits_of_float(f);
	uint32_t sign = bits >> 16 & 0x8000u, mag = bits & 0x7fffffffu;
	if (mag > 0x7f800000u) // NaN stays one
		return (uint16_t)(sign | 0x7c00u | 0x200u | (mag >> 13 & 0x3ffu));
	if (mag >= 0x477ff000u) // rounds to 65536 or more
		return (uint16_t)(sign | 0x7c00u);
	if (mag < 0x38800000u) // subnormal half: units of 2^-24, rounded by the addition
		return (uint16_t)(sign | (bits_of_float(fabsf(f) + 0.5f) - 0x3f000000u));
	uint32_t odd = mag >> 13 & 1;
	return (uint16_t)(sign | (mag - 0x38000000u + 0xfffu + odd) >> 13);
}

float bf16_to_float(uint16_t h)
{
	return float_of_bits((uint32_t)h << 16);
}

uint16_t float_to_bf16(float f)
{
	uint32_t bits = bits_of_float(f);
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

double tensor_get_f(const Tensor *t, int64_t i)
{
	switch (t->dtype) {
	case DT_F16: return half_to_float(((const uint16_t *)t->data)[i]);
	case DT_BF16: return bf16_to_float(((const uint16_t *)t->data)[i]);
	case DT_F32: return ((const float *)t->data)[i];
	case DT_F64: return ((const double *)t->data)[i];
	case DT_C64: return ((const float *)t->data)[2 * i];
	case DT_C128: return ((const double *)t->data)[2 * i];
	default: return (double)tensor_get_i(t, i);
	}
}

// What the hardware and Paddle do with a double outside the range of int64.
int64_t int_from_double(double v)
{
	return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN;
}

int64_t whole_from_double(DType t, double v)
{
	if (t == DT_I64)
		return int_from_double(v);
	return v > -0x1p31 - 1 && v < 0x1p31 ? (int64_t)v : INT32_MIN;
}

int64_t tensor_get_i(const Tensor *t, int64_t i)
{
	switch (t->dtype) {
	case DT_BOOL: return ((const uint8_t *)t->data)[i] != 0;
	case DT_U8: return ((const uint8_t *)t->data)[i];
	case DT_I8: return ((const int8_t *)t->data)[i];
	case DT_I16: return ((const int16_t *)t->data)[i];
	case DT_I32: return ((const int32_t *)t->data)[i];
	case DT_I64: return ((const int64_t *)t->data)[i];
	default: return int_from_double(tensor_get_f(t, i));
	}
}

void tensor_set_f(Tensor *t, int64_t i, double v)
{
	switch (t->dtype) {
	case DT_F16: ((uint16_t *)t->data)[i] = float_to_half((float)v); break;
	case DT_BF16: ((uint16_t *)t->data)[i] = float_to_bf16((float)v); break;
	case DT_F32: ((float *)t->data)[i] = (float)v; break;
	case DT_F64: ((double *)t->data)[i] = v; break;
	case DT_C64: ((float *)t->data)[2 * i] = (float)v; break;
	case DT_C128: ((double *)t->data)[2 * i] = v; break;
	case DT_BOOL: ((uint8_t *)t->data)[i] = v != 0; break;
	default: tensor_set_i(t, i, whole_from_double(t->dtype, v)); break;
	}
}

void tensor_set_i(Tensor *t, int64_t i, int64_t v)
{
	switch (t->dtype) {
	case DT_BOOL: ((uint8_t *)t->data)[i] = v != 0; break;
	case DT_U8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
	case DT_I8: ((int8_t *)t->data)[i] = (int8_t)v; break;
	case DT_I16: ((int16_t *)t->data)[i] = (int16_t)v; break;
	case DT_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
	case DT_I64: ((int64_t *)t->data)[i] = v; break;
	default: tensor_set_f(t, i, (double)v); break;
	}
}
