// Emits kernel.gemm for CUDA: tiles in shared memory, sums in registers, the epilogue over them. Called by run.c through
// cuda.c.
#include "kernel_tile.h"

#include <string.h>

#include "codegen_impl.h"

enum { GEMM_THREADS = 256, TILE_ROWS = 64, TILE_COLUMNS = 16 };

// How many dims of the result stand in front of the rows that a panel of b serves.
static int lead_count(const Op *op)
{
	return op_operand(op, 1)->type->rank - 3;
}

static const Dim *dims_product(Context *c, int n, const Dim *const *dims)
{
	const Dim *product = dim_const(c, 1);
	for (int i = 0; i < n; i++)
		product = dim_mul(c, product, dims[i]);
	return product;
}

static const Dim *row_count(Context *c, const Op *op)
{
	const Type *t = op->results[0].type;
	return dims_product(c, t->rank - 1 - lead_count(op), t->dims + lead_count(op));
}

const Dim *cuda_gemm_tiles(Context *c, const Op *op)
{
	const Type *b = op_operand(op, 1)->type;
	const Dim *panels = dims_product(c, b->rank - 2, b->dims);
	return dim_mul(c, panels, dim_div(c, dim_add(c, row_count(c, op), dim_const(c, TILE_ROWS - 1)), dim_const(c, TILE_ROWS)));
}

static const char *epilogue_text(KernelFunc *k, const char **value)
{
	const Type *t = k->op->results[0].type;
	const char *args[MAX_RANK + 1] = {"acc"};
	const int lead = lead_count(k->op);
	for (int i = 0; i < t->rank; i++) {
		args[1 + i] = "0";
		if (!region_uses(&k->op->regions[0], 1 + i))
			continue;
		args[1 + i] = i == t->rank - 1 ? "column" : i < lead ? tile_position(k, "batch", lead, t->dims, i)
		                                                     : tile_position(k, "row", t->rank - 1 - lead, t->dims + lead, i - lead);
	}
	return region_text(k, &k->op->regions[0], args, value);
}

// Whether four elements of a row of `a` may be read at once.
static bool rows_are_aligned(const KernelFunc *k)
{
	const Dim *depth = op_attr(k->op, "k")->dim;
	return dim_is_const(depth) && depth->value % 4 == 0 && value_place(op_operand(k->op, 0)).kind != PLACE_INPUT;
}

bool cuda_gemm_emit(KernelFunc *k)
{
	const Type *b = op_operand(k->op, 1)->type, *t = k->op->results[0].type;
	const int64_t nr = b->dims[b->rank - 1]->value;
	const char *value, *epilogue = epilogue_text(k, &value);
	if (!tile_check_f32(k) || !epilogue)
		return false;
	k->block_threads = GEMM_THREADS;
	const TemplateKey keys[] = {
		{"m", kernel_dim(k, row_count(k->ctx, k->op))}, {"n", kernel_dim(k, op_attr(k->op, "n")->dim)},
		{"k", kernel_dim(k, op_attr(k->op, "k")->dim)}, {"batches", tile_product(k, lead_count(k->op), t->dims)},
		{"nr", tile_int(k, nr)}, {"tn", tile_int(k, nr / TILE_COLUMNS)}, {"tn_loads", tile_int(k, (nr * 4 + 255) / 256)},
		{"aligned", rows_are_aligned(k) ? "true" : "false"}, {"epilogue", epilogue},
		{"store", scalar_store(k, t->dtype, "out", "(batch * M + row) * N + column", value)},
	};
	return kernel_template(k, "cuda_gemm.c", COUNT_OF(keys), keys);
}
