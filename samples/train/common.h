/* What the programs share that train. All that can fail says why and ends the program. */
#ifndef COMMON_H
#define COMMON_H

#include <stddef.h>

#include "pdrt.h"

/* Aligned as generated code wants weights and workspaces. */
void *allocate(size_t size);
/* A whole file, aligned like that; to be freed. */
unsigned char *read_file(const char *path, size_t *size);
/* Ends the program unless the status is PD_OK. failed: the member of the instance, or NULL. */
void check(const char *what, const char *failed, pd_status status);
/* In [0, 1), the same numbers on every machine. */
double random_unit(void);
/* Random numbers between -bound and bound for a parameter of floats. */
void fill_evenly(pd_parameter p, double bound);
/* Writes an SVG of the loss of each step, on a scale of logarithms from least, a power of ten, to most. */
void plot(const char *path, const float *loss, int n, double least, double most);

#endif
