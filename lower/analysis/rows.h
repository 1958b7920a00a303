// Rows of kernels, and neighbours that are moved at once. Leaves the
// IR as it was. Passes that choose how threads share them and printers that follow ask the same
// here.
#ifndef PDCC_LOWER_ANALYSIS_ROWS_H
#define PDCC_LOWER_ANALYSIS_ROWS_H

#include "ir/core/core.h"

// Threads that share a row of unknown length; and one that stands across memory.
enum { ROW_THREADS = 256, ROW_DEEP = 8 };

void row_axes(const Op *op, int *begin, int *end); // of the result
// Whether rows stand across memory: there are axes behind theirs.
bool row_is_across(const Op *op);
// How many rows there are, without the axes behind; and how long one is.
const Dim *row_count(Context *c, const Op *op);
const Dim *row_length(Context *c, const Op *op);

// Whether `wide` neighbours along the region's argument `axis` can be evaluated together: where it
// is read, it is the last index of a load of elements that are aligned when it is a multiple of
// `wide`.
bool vector_suits(const Region *r, int axis, int wide);
// Whether so many neighbours along the last axis of a tensor may be moved at once.
bool vector_aligned(const Value *tensor, int wide);
// Whether rows of this length, of elements of that type, all begin at multiples of 16 bytes.
bool row_is_aligned(Context *c, DType t, const Dim *row);
// Whether the region reads elements of 2 bytes along that argument: 8 of them are 16 bytes.
bool vector_reads_halves(const Region *r, int axis);

#endif
