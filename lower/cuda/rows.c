// How threads of CUDA share rows of kernels. A warp takes a row of up
// to 1024 elements, a block a longer one or one of few; either keeps it in registers. Rows that are
// longer still, or of any length, are read again for each step. Sets `threads`, which share a row,
// `lanes`, the elements that a thread moves at once, and `held`, those that it holds. Called by
// forms.c.
#include "lower/analysis/rows.h"
#include "lower/cuda/forms.h"

enum {
	WARP = 32,
	MAX_HELD = 32,     // elements of a row that a thread holds
	MAX_THREADS = 512, // that share a row; more would have to spill
	FEW_ROWS = 64,     // so few leave most of the GPU idle
	MAX_ACROSS = 64    // elements that a thread holds of all its rows, where they stand across
};

// Threads that share a row: a warp, or a block so large that each has about eight elements.
static int row_threads(Context *c, const Op *op)
{
	const Dim *rows = row_count(c, op), *columns = row_length(c, op);
	const bool few = dim_is_const(rows) && rows->value <= FEW_ROWS;
	if (!dim_is_const(columns))
		return ROW_THREADS;
	if (columns->value <= 8 * WARP || (columns->value <= MAX_HELD * WARP && !few))
		return WARP;
	const int64_t threads = (columns->value / 8 + WARP - 1) / WARP * WARP;
	return threads > MAX_THREADS ? MAX_THREADS : (int)threads;
}

// How many neighbours along the last axis a thread moves at once: 16 bytes of the narrowest, if the
// others allow that.
static int neighbours(const Op *op)
{
	const Value *result = &op->results[0];
	const int rank = result->type->rank;
	const Dim *last = result->type->dims[rank - 1];
	const bool halves = dtype_size(result->type->dtype) == 2 ||
	                    vector_reads_halves(&op->regions[0], rank - 1) ||
	                    vector_reads_halves(&op->regions[1], rank);
	for (int wide = halves ? 8 : 4; wide >= 4; wide /= 2) {
		bool suits = dim_is_const(last) && last->value % wide == 0 &&
		             vector_suits(&op->regions[0], rank - 1, wide) &&
		             vector_suits(&op->regions[1], rank, wide);
		for (int i = 0; i < op->noperand; i++) // scale and bias
			suits = suits && (!op_operand(op, i) || vector_aligned(op_operand(op, i), wide));
		if (suits)
			return wide;
	}
	return 1;
}

// Rows that stand across memory: threads lie side by side behind their axis, and ROW_DEEP of them
// share a long row.
static int across_threads(const Dim *length, int lanes)
{
	return dim_is_const(length) && length->value * lanes <= MAX_HELD ? 1 : ROW_DEEP;
}

// Elements of the row that threads share, or of all rows that stand across memory side by side; 0:
// it does not fit.
static int held_by_each(const Dim *length, int threads, int lanes, bool across)
{
	if (!dim_is_const(length))
		return 0;
	const int64_t step = (int64_t)threads * (across ? 1 : lanes),
				  n = (length->value + step - 1) / step * lanes;
	return n > (across ? MAX_ACROSS : MAX_HELD) ? 0 : n ? (int)n : lanes;
}

static void set_int(Op *op, const char *name, int n, int otherwise)
{
	op_set_attr(op, name, n == otherwise ? NULL : attr_int(op->ctx, n));
}

void rows_choose(Op *op, bool simt)
{
	const Dim *length = row_length(op->ctx, op);
	const bool across = row_is_across(op);
	const int lanes = simt ? neighbours(op) : 1, threads = !simt    ? 0
	                                                       : across ? across_threads(length, lanes)
	                                                                : row_threads(op->ctx, op);
	set_int(op, "threads", threads, 0);
	set_int(op, "lanes", lanes, 1);
	set_int(op, "held", simt ? held_by_each(length, threads, lanes, across) : 0, 0);
}
