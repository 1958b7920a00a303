/* What the programs share that train. */
#ifndef TRAINING_H
#define TRAINING_H

#include "pdrt.h"

/* In [0, 1), the same numbers on every machine. */
double random_unit(void);
/* Random numbers between -bound and bound for a parameter of floats. */
void fill_evenly(pd_parameter p, double bound);
/* Writes an SVG of the loss of each step, on a scale of logarithms from least, a power of ten, to most. */
void plot(const char *path, const float *loss, int n, double least, double most);

#endif
