/* The part of the runtime stub that is not inline. Link it with every program that holds generated
 * code. */
#include "pdrt.h"

#include <string.h>

const char *pd_status_text(pd_status status)
{
	switch (status) {
	case PD_OK: return "done";
	case PD_NULL: return "a required pointer is null";
	case PD_ALIGNMENT: return "a pointer is not aligned";
	case PD_DIMS: return "a size is not positive, too large, or contradicts another";
	case PD_WORKSPACE: return "the workspace is too small";
	case PD_WEIGHTS: return "these are not the weights of this model";
	case PD_INDEX: return "an index from data is out of range";
	case PD_CAPACITY: return "a size found at run time exceeds its bound";
	case PD_DEVICE: return "the accelerator reported a failure";
	case PD_TRIPS: return "a loop takes more rounds than allowed";
	case PD_ASSERT: return "an assertion of the model does not hold";
	case PD_NOT_FINITE: return "a value is not finite";
	case PD_WRONG_DEVICE: return "another device is current, or the memory is not of this one";
	case PD_THREADS: return "the system gives no more threads";
	}
	return "unknown status";
}

size_t pd_dtype_size(pd_dtype dtype)
{
	switch (dtype) {
	case PD_BOOL:
	case PD_U8:
	case PD_I8: return 1;
	case PD_I16:
	case PD_F16:
	case PD_BF16: return 2;
	case PD_I32:
	case PD_F32: return 4;
	case PD_I64:
	case PD_F64:
	case PD_C64: return 8;
	case PD_C128: return 16;
	}
	return 0;
}

uint64_t pd_hash(const void *data, size_t size)
{
	const unsigned char *p = (const unsigned char *)data;
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

void pd_trace_step(const pd_tracer *t, const pd_trace_op *op, pd_trace_what what)
{
	pd_trace_event e;
	if (!t->callback)
		return;
	memset(&e, 0, sizeof e);
	e.what = what;
	e.op = op;
	t->callback(t->arg, &e);
}

void pd_trace_value(const pd_tracer *t, const pd_trace_op *op, int result, pd_dtype dtype, int rank,
                    const int64_t *dims, const void *data)
{
	pd_trace_event e;
	if (!t->callback)
		return;
	e.what = PD_TRACE_VALUE;
	e.op = op;
	e.result = result;
	e.dtype = dtype;
	e.rank = rank;
	e.dims = dims;
	e.data = data;
	t->callback(t->arg, &e);
}

/* An exponent of ones; `size` bytes each. */
static bool all_finite(const unsigned char *p, size_t n, size_t size, uint64_t exponent)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t wide = 0;
		uint32_t word = 0;
		uint16_t half = 0;
		if (size == 8)
			memcpy(&wide, p + i * 8, 8);
		else if (size == 4)
			memcpy(&word, p + i * 4, 4);
		else
			memcpy(&half, p + i * 2, 2);
		if (((wide | word | half) & exponent) == exponent)
			return false;
	}
	return true;
}

bool pd_all_finite(pd_dtype dtype, const void *data, int64_t n)
{
	const unsigned char *p = (const unsigned char *)data;
	const size_t count = n > 0 ? (size_t)n : 0;
	switch (dtype) {
	case PD_F16: return all_finite(p, count, 2, 0x7c00);
	case PD_BF16: return all_finite(p, count, 2, 0x7f80);
	case PD_F32: return all_finite(p, count, 4, 0x7f800000);
	case PD_C64: return all_finite(p, 2 * count, 4, 0x7f800000);
	case PD_F64: return all_finite(p, count, 8, UINT64_C(0x7ff0000000000000));
	case PD_C128: return all_finite(p, 2 * count, 8, UINT64_C(0x7ff0000000000000));
	default: return true;
	}
}
