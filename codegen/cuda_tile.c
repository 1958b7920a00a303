// Prints the kernel of a product in tiles. Called by cuda_matmul.c, and by whoever has a product whose operands are loaded
// in another way.
#include "cuda_tile.h"

#include <inttypes.h>
#include <string.h>

#include "codegen_impl.h"
#include "kernel_tile.h"

bool cuda_rows_are_aligned(const KernelFunc *k, const Value *v, const Dim *row)
{
	const PlaceKind place = value_place(v).kind; // callers' tensors may lie anywhere
	const int64_t each = 16 / (int64_t)dtype_size(v->type->dtype);
	return place != PLACE_INPUT && place != PLACE_OUTPUT && dim_is(dim_mod(k->ctx, row, dim_const(k->ctx, each)), 0);
}

const char *cuda_tile_matrix(KernelFunc *k, const TileMatrix *m)
{
	const char *side = m->is_a ? "A" : "B", *first = m->is_a ? "m0" : "n0", *size = m->is_a ? "M" : "N";
	return arena_printf(k->arena, "const pd_matrix<Unit::%s%s, %s> %c_load = {%s + %s%s%s, %s, %s - %s, K};",
	                    m->along ? "Along" : "Across", side, cuda_rows_are_aligned(k, m->value, m->row) ? "true" : "false",
	                    m->is_a ? 'a' : 'b', m->name, m->offset, first, m->along ? " * K" : "", m->along ? "K" : size, size, first);
}

static const Dim *tiles_along(Context *c, const Dim *n, int each)
{
	return dim_div(c, dim_add(c, n, dim_const(c, each - 1)), dim_const(c, each));
}

static const char *unit_text(KernelFunc *k, const CudaTile *t)
{
	return arena_printf(k->arena, "pd_fma<%d, %d, %d, %d, %d>", t->rows, t->columns, t->depth, t->thread_rows, t->thread_columns);
}

static const char *epilogue_text(KernelFunc *k, const TileProduct *p, const char **value)
{
	const char *args[MAX_RANK + 1] = {"acc"};
	for (int i = 0; i < k->op->results[0].type->rank; i++)
		args[1 + i] = p->at[i];
	return region_text(k, &k->op->regions[0], args, value);
}

bool cuda_tile_emit(KernelFunc *k, const TileProduct *p)
{
	const Value *out = &k->op->results[0];
	const CudaTile *t = p->tile;
	const char *value, *epilogue = epilogue_text(k, p, &value);
	if (!epilogue || !kernel_helper(k, "cuda_tile.c", 0, NULL))
		return false;
	const bool whole = dim_is(dim_mod(k->ctx, p->n, dim_const(k->ctx, t->columns)), 0);
	const Dim *products = dim_mul(k->ctx, dim_const(k->ctx, p->split), p->batches);
	const char *batches = kernel_dim(k, p->batches), *begin = "0", *end = "K", *batch = "all";
	if (p->split > 1) { // whole slices in each part
		const int64_t slices = (p->k->value + t->depth - 1) / t->depth, part = (slices + p->split - 1) / p->split * t->depth;
		begin = arena_printf(k->arena, "part * %" PRId64, part);
		end = arena_printf(k->arena, "(part + 1) * %" PRId64 " < K ? (part + 1) * %" PRId64 " : K", part, part);
		batch = strcmp(batches, "1") ? arena_printf(k->arena, "all %% %s, part = all / %s", batches, batches) : "0, part = all";
	}
	k->block_threads = cuda_tile_threads(t);
	k->grid = dim_mul(k->ctx, products, dim_mul(k->ctx, tiles_along(k->ctx, p->m, t->rows), tiles_along(k->ctx, p->n, t->columns)));
	const TemplateKey keys[] = {
		{"tile_rows", tile_int(k, t->rows)}, {"tile_columns", tile_int(k, t->columns)},
		{"threads", tile_int(k, k->block_threads)}, {"blocks", tile_int(k, t->blocks)}, {"unit", unit_text(k, t)},
		{"element", "float"}, {"m", kernel_dim(k, p->m)}, {"n", kernel_dim(k, p->n)}, {"k", kernel_dim(k, p->k)},
		{"products", kernel_dim(k, products)}, {"batch", batch}, {"begin", begin}, {"end", end}, {"a_load", p->a_load}, {"b_load", p->b_load},
		{"type", dtype_c_memory(out->type->dtype)}, {"column_inside", whole ? "true" : "column < N"}, {"epilogue", epilogue},
		{"store", scalar_store(k, out->type->dtype, "results", "e", value)},
		{"aligned", cuda_rows_are_aligned(k, out, p->n) ? "true" : "false"},
	};
	return kernel_template(k, "cuda_tile_kernel.c", COUNT_OF(keys), keys);
}
