/* The part of the runtime stub that is not inline. Link it with every program that holds generated
 * code. */
#include "pdrt.h"

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
	case PD_WRONG_DEVICE: return "another device is current, or the memory is not of this one";
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
