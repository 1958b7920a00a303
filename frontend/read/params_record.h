// Records of parameter files (params_record.c). Private to frontend/read.
#ifndef PDCC_FRONTEND_READ_PARAMS_RECORD_H
#define PDCC_FRONTEND_READ_PARAMS_RECORD_H

#include "ir/core/core.h"

// A file being read, record by record.
typedef struct Loader {
	Context *c;
	const char *file;
	const uint8_t *data;
	size_t size, at;
	const char *var; // whose record is being read
} Loader;

bool loader_fail(const Loader *l, const char *fmt, ...) PRINTF_LIKE(2, 3); // false
Tensor *read_record(Loader *l); // NULL after a diagnostic

#endif
