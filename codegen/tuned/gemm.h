// A product being printed: what gemm.c knows of it, for the functions of its tiles (gemm_tile.c).
#ifndef PDCC_CODEGEN_TUNED_GEMM_H
#define PDCC_CODEGEN_TUNED_GEMM_H

#include "codegen/nest/region.h"

typedef struct Gemm {
	KernelFunc *k;
	const char *type; // of operands and sums
	const char *v;    // vectors of it
	const char *name; // what functions for it begin with
	int lanes, mr, nv, nr;
	const Type *out;
	int nlead;                // dims of the result in front of the rows that a panel of b serves
	const Dim *m_dim, *n_dim; // rows of a product, columns
	int64_t block;            // rows that meet all panels before the next rows do; 0: all
	bool direct;              // its sums are the result
	bool sum_is_named;        // since the epilogue reads it more than once
	bool turned;              // a has its last two axes the other way round
	const char *rows, *panel; // where a tile of a, and a panel of b begin, in the calls for a tile
	const char *ahead; // arguments in those: what a tile fetches of the next panel; "": nothing
	const char *count; // what sets how much, where a run finds that; "": it is known
	int inlined; // rows of the only tile, when the product is so small that the tile's code stands
	             // in it; 0: shared
} Gemm;

// Emits the functions that sum a tile of up to g->mr rows and nv vectors. false after a diagnostic.
bool gemm_tile_helper(const Gemm *g, int nv);

// Emits the function that sums a tile of as many columns as a run finds. false after a diagnostic.
bool gemm_columns_helper(const Gemm *g);
// The call for it, of `cols` columns, whose sums go to `out`, rows `ldo` apart.
const char *gemm_columns_call(const Gemm *g, const char *out, const char *ldo);

// The call for a tile nv vectors wide, whose sums go to `out`, rows `ldo` apart.
const char *gemm_tile_call(const Gemm *g, int nv, const char *out, const char *ldo);

#endif
