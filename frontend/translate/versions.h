// What versions of Paddle compute differently. Private to frontend/.
#ifndef PDCC_FRONTEND_VERSIONS_H
#define PDCC_FRONTEND_VERSIONS_H

#include "frontend/job/job.h"

OpStep legacy_cast_create, legacy_full_create;
OpStep pir_quantize_create, pir_digamma_create, pir_power_create, pir_divide_create,
	pir_remainder_create, pir_matmul_inputs;

#endif
