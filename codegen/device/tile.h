// Products in tiles of shared memory on CUDA, which matrix products and convolutions share: see
// docs/kernels.md and kernels/cuda_tile.c.in. An emitter says what sizes the product has, how a
// tile of either operand is loaded, and what its epilogue calls a position; cuda_tile_emit prints
// the kernel.
#ifndef PDCC_CODEGEN_CUDA_TILE_H
#define PDCC_CODEGEN_CUDA_TILE_H

#include "codegen/device/device.h"
#include "lower/analysis/rows.h"
#include "lower/target/schedule.h"

typedef struct TileProduct {
	const CudaTile *tile;
	const Dim *batches, *m, *n, *k; // the result lies [split][batches][m][n]
	int split;                      // parts of the depth
	// Statements that declare `a_load` and `b_load`: objects with `typedef .. Place`, one of
	// Unit::AlongA, AcrossA, AlongB, AcrossB, a constant STRAIGHT, and the function that this asks
	// for. Vector i of the slice that begins at depth k0 is elements k0 + Place::k(i), Place::x(i)
	// and on, along the depth or across it, zeros outside.
	//   STRAIGHT = 0  pd_vec16<T> load(int i, int64_t k0) const, which gives it
	//   STRAIGHT = 1  void copy(S &tile, int to, int i, int64_t k0) const, which calls pd_copy_async for all of it, also for
	//                 what is outside: `to` is where it begins in shared memory, a multiple of 16 bytes
	// They may use batch, m0, n0 (where the tile begins), M, N, K.
	const char *a_load, *b_load;
	// Where the group of columns that begins at `first` of a row lies in the result, as an
	// expression, and a statement in front of all groups of a row that it may need; NULL: the
	// result lies as said above.
	const char *place, *row_head;
	const char *at[MAX_RANK]; // the position in the result, in terms of part, batch, row, column
} TileProduct;

// The tile that the operation's attribute names; NULL after a diagnostic: there is none.
const CudaTile *cuda_tile_of(KernelFunc *k);
// Fills k->text; k->op is a kernel with an epilogue over one result. False after a diagnostic.
bool cuda_tile_emit(KernelFunc *k, const TileProduct *p);

// A matrix in memory, one for each batch.
typedef struct TileMatrix {
	const Value *value;
	const char *name;   // of its parameter
	const char *offset; // where the batch's matrix begins, "0 + "-like: `batch * 64 + `, or empty
	bool is_a;
	bool along;     // its rows lie along the depth: [m][k] of a, [n][k] of b; else [k][m], [k][n]
	const Dim *row; // how long a row is
} TileMatrix;

// The statement that declares the loader for it.
const char *cuda_tile_matrix(KernelFunc *k, const TileMatrix *m);

#endif
