/* What the samples share. All that can fail says why and ends the program. */
#ifndef COMMON_H
#define COMMON_H

#include <stddef.h>

#include "pdrt.h"

/* Aligned as generated code wants weights and workspaces. */
void *allocate(size_t size);
/* A whole file, aligned like that; to be freed. */
unsigned char *read_file(const char *path, size_t *size);
/* Ends the program unless the status is PD_OK. failed: the member of the instance that says where; NULL before there is one. */
void check(const char *what, pd_status status, const char **failed);

#endif
