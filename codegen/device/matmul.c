// Emits kernel.matmul for CUDA, by the row of the schedule table that lowering chose. Called by
// run.c through cuda.c.
#include "codegen/device/device.h"
#include "codegen/device/tile.h"
#include "codegen/model/model.h"
#include "codegen/nest/region.h"
#include "lower/target/schedule.h"

// The dims of the result in front of its batch: the parts of a split depth.
static int part_rank(const Op *op)
{
	return op_int(op, "split", 1) > 1;
}

// How many dims of the result count matrices.
static int batch_rank(const Op *op)
{
	return op->results[0].type->rank - 2 - part_rank(op);
}

// `batch * 64 + `: where the operand's matrix for this batch begins. Its batch dims broadcast.
static const char *batch_offset(KernelFunc *k, const Type *t)
{
	Context *c = k->ctx;
	const Type *out = k->op->results[0].type;
	const int lead = batch_rank(k->op), skip = part_rank(k->op);
	const Dim *stride = dim_mul(c, t->dims[t->rank - 2], t->dims[t->rank - 1]);
	bool same = t->rank == lead + 2;
	for (int i = 0; same && i < lead; i++)
		same = t->dims[i] == out->dims[skip + i];
	if (same && lead > 0)
		return arena_printf(k->arena, "batch * %s + ", kernel_dim(k, stride));
	const char *text = "";
	for (int i = t->rank - 3; i >= 0; i--) {
		const int axis = lead + 2 - t->rank + i;
		if (!dim_is(t->dims[i], 1))
			text = arena_printf(k->arena, "%s * %s + %s",
			                    tile_position(k, "batch", lead, out->dims + skip, axis),
			                    kernel_dim(k, stride), text);
		stride = dim_mul(c, stride, t->dims[i]);
	}
	return text;
}

static const char *operand_load(KernelFunc *k, int i)
{
	const Value *v = op_operand(k->op, i);
	const Type *t = v->type;
	const bool transposed = op_bool(k->op, i ? "transpose_b" : "transpose_a", false);
	const TileMatrix m = {.value = v,
	                      .name = i ? "b" : "a",
	                      .offset = batch_offset(k, t),
	                      .is_a = i == 0,
	                      .along = transposed == (i == 1),
	                      .row = t->dims[t->rank - 1]};
	return cuda_tile_matrix(k, &m);
}

// Few rows: see cuda_row_kernel.c.
static bool rows_emit(KernelFunc *k, const TileProduct *p)
{
	Context *c = k->ctx;
	const CudaTile *t = p->tile;
	const Value *a = op_operand(k->op, 0), *b = op_operand(k->op, 1);
	const char *args[MAX_RANK + 1] = {"acc"}, *value;
	for (int i = 0; i < k->op->results[0].type->rank; i++)
		args[1 + i] = p->at[i];
	k->place = arena_printf(k->arena, "(batch * %s + row) * N + column", kernel_dim(k, p->m));
	const char *epilogue = region_text(k, &k->op->regions[0], args, &value);
	if (!epilogue || !kernel_helper(k, "cuda_tile.c", 0, NULL))
		return false;
	const bool a_aligned = row_is_aligned(c, a->type->dtype, p->k),
			   b_aligned = row_is_aligned(c, b->type->dtype, p->k);
	kernel_moves(k, a->type->dtype,
	             a_aligned || b_aligned ? 16 / (int)dtype_size(a->type->dtype) : 1);
	k->block_threads = cuda_tile_threads(t);
	k->bounds = tile_int(k, k->block_threads);
	k->grid = dim_mul(
		c, p->batches,
		dim_div(c, dim_add(c, p->n, dim_const(c, t->columns - 1)), dim_const(c, t->columns)));
	const TemplateKey keys[] = {
		{"rows", kernel_dim(k, p->m)},
		{"columns", tile_int(k, t->part_columns)},
		{"block_columns", tile_int(k, t->columns)},
		{"threads", tile_int(k, k->block_threads)},
		{"n", kernel_dim(k, p->n)},
		{"k", kernel_dim(k, p->k)},
		{"batches", kernel_dim(k, p->batches)},
		{"a_offset", batch_offset(k, a->type)},
		{"b_offset", batch_offset(k, b->type)},
		{"a_aligned", a_aligned ? "true" : "false"},
		{"b_aligned", b_aligned ? "true" : "false"},
		{"epilogue", epilogue},
		{"store", scalar_store(k, k->op->results[0].type->dtype, "out", k->place, value)},
	};
	return kernel_template(k, "cuda_row_kernel.c", COUNT_OF(keys), keys);
}

bool cuda_matmul_emit(KernelFunc *k)
{
	Context *c = k->ctx;
	const Type *out = k->op->results[0].type, *a = op_operand(k->op, 0)->type;
	TileProduct p = {.tile = cuda_tile_of(k),
	                 .batches = dim_const(c, 1),
	                 .m = out->dims[out->rank - 2],
	                 .n = out->dims[out->rank - 1],
	                 .split = (int)op_int(k->op, "split", 1),
	                 .k = a->dims[a->rank - (op_bool(k->op, "transpose_a", false) ? 2 : 1)]};
	if (!p.tile)
		return false;
	const int skip = part_rank(k->op);
	p.at[0] = "part";
	for (int i = 0; i < batch_rank(k->op); i++) {
		p.batches = dim_mul(c, p.batches, out->dims[skip + i]);
		p.at[skip + i] = region_uses(&k->op->regions[0], 1 + skip + i)
		                     ? tile_position(k, "batch", batch_rank(k->op), out->dims + skip, i)
		                     : "0";
	}
	p.at[out->rank - 2] = "row";
	p.at[out->rank - 1] = "column";
	if (p.tile->unit == CUDA_ROW)
		return rows_emit(k, &p);
	p.a_load = operand_load(k, 0);
	p.b_load = operand_load(k, 1);
	return cuda_tile_emit(k, &p);
}
