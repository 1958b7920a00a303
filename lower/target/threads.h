// What work is worth several threads of generated C: estimates for cores that reach each other in
// about 100 ns. Read by lower/kernels/threads.c and the printers of nests.
#ifndef PDCC_LOWER_TARGET_THREADS_H
#define PDCC_LOWER_TARGET_THREADS_H

enum {
	THREADS_LEAST = 16384,    // elements that a thread takes at least: about 5 us, where to begin
	                          // and to end takes 1
	THREADS_PRODUCTS = 32,    // products and sums that a tile takes in the time of an element
	THREADS_TAPS = 4,         // times as long, where each needs a load
	THREADS_ROW_ELEMENT = 24, // an element of a softmax or a norm
	THREADS_STEP = 64         // neighbours that stay with one thread: no line of a cache is of two
};

#endif
