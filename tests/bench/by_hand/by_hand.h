// A problem whose gradient is written by hand: what one program of bench_gradients.py is beside.
#ifndef BY_HAND_H
#define BY_HAND_H

#include <stddef.h>

// Inputs as the feeds of the program, one behind another, and gradients as it gives them: both are
// read and written as they lie, so their structs have no padding.
typedef struct Problem {
	void *in, *grad;
	size_t in_bytes, grad_bytes;
	double (*objective)(void);
	void (*gradient)(void); // of the objective, into grad
} Problem;

extern const Problem problem; // each problem's file has one

#endif
