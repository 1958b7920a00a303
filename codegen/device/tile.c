// Prints the kernel of a product in tiles. Called by device/matmul.c, and by whoever has a product
// whose operands are loaded in another way.
#include "codegen/device/tile.h"
#include "codegen/device/device.h"
#include "codegen/device/vector.h"
#include "codegen/model/model.h"
#include "codegen/nest/region.h"
#include "lower/target/schedule.h"

#include <string.h>

const CudaTile *cuda_tile_of(KernelFunc *k)
{
	const char *schedule = op_str(k->op, "schedule", "");
	const CudaTile *t = cuda_tile_find(schedule);
	if (!t)
		diag_error(k->ctx->diag, k->op->loc, "%s: no schedule '%s'", k->op->info->name, schedule);
	return t;
}

const char *cuda_tile_matrix(KernelFunc *k, const TileMatrix *m)
{
	const char *side = m->is_a ? "A" : "B", *first = m->is_a ? "m0" : "n0",
			   *size = m->is_a ? "M" : "N";
	const bool aligned = row_is_aligned(k->ctx, m->value->type->dtype, m->row);
	const DType dtype = m->value->type->dtype;
	kernel_moves(k, dtype, aligned ? 16 / (int)dtype_size(dtype) : 1);
	return arena_printf(
		k->arena, "const pd_matrix<Unit::%s%s, %s> %c_load = {%s + %s%s%s, %s, %s - %s, K};",
		m->along ? "Along" : "Across", side, aligned ? "true" : "false", m->is_a ? 'a' : 'b',
		m->name, m->offset, first, m->along ? " * K" : "", m->along ? "K" : size, size, first);
}

static const Dim *tiles_along(Context *c, const Dim *n, int each)
{
	return dim_div(c, dim_add(c, n, dim_const(c, each - 1)), dim_const(c, each));
}

// Terms in a part of the depth: whole slices.
static const Dim *part_depth(Context *c, const TileProduct *p)
{
	if (p->split < 2)
		return p->k;
	const int64_t each = p->tile->depth, slices = (p->k->value + each - 1) / each;
	return dim_const(c, (slices + p->split - 1) / p->split * each);
}

// The sizes as `size`: a parameter, or, where a run finds them, the statement that declares it
// (else "").
static const char *sizes_text(KernelFunc *k, const TileProduct *p)
{
	const Dim *const dims[] = {p->batches,           p->m, p->n, p->k, dim_const(k->ctx, p->split),
	                           part_depth(k->ctx, p)};
	bool found = false;
	Text t;
	text_init(&t, k->arena);
	for (size_t i = 0; i < COUNT_OF(dims); i++)
		found = found || dim_is_found(dims[i]);
	for (size_t i = 0; i < COUNT_OF(dims); i++)
		text_printf(&t, "%s%s", i ? ", " : "",
		            expression_unwrap(k->arena, found ? kernel_dim(k, dims[i])
		                                              : dim_in_locals(&k->cg->sizes, dims[i])));
	if (found)
		return arena_printf(k->arena, "const pd_product size = {%s};", t.text);
	kernel_given(k, "pd_product", "size", arena_printf(k->arena, "pd_product{%s}", t.text));
	return "";
}

static const char *unit_text(KernelFunc *k, const CudaTile *t)
{
	const DType dtype = op_operand(k->op, 0)->type->dtype;
	const char *unit = t->unit == CUDA_FMA    ? "fma<"
	                   : t->unit == CUDA_TF32 ? "mma<pd_tf32, "
	                   : dtype == DT_F16      ? "mma<pd_f16, "
	                                          : "mma<pd_bf16, ";
	return arena_printf(k->arena, "pd_%s%d, %d, %d, %d, %d, %d>", unit, t->rows, t->columns,
	                    t->depth, t->part_rows, t->part_columns, t->stages);
}

static bool helpers_print(KernelFunc *k, const CudaTile *t)
{
	return kernel_helper(k, "cuda_tile.c", 0, NULL) &&
	       (t->unit == CUDA_FMA || kernel_helper(k, "cuda_mma.c", 0, NULL));
}

// The sum `name` as the program calls it.
static const char *sum_text(KernelFunc *k, const char *name)
{
	const Region *r = &k->op->regions[0];
	return region_is_identity(r) ? name : scalar_round(k, region_entry(r)->args[0]->type, name);
}

// One column of a group after the other.
static const char *columns_epilogue(KernelFunc *k, const TileProduct *p, bool inside)
{
	const char *args[MAX_RANK + 1] = {sum_text(k, "acc")}, *value;
	const Type *t = k->op->results[0].type;
	for (int i = 0; i < t->rank; i++)
		args[1 + i] = p->at[i];
	k->place = "to + e";
	Text out;
	text_init(&out, k->arena);
	text_line(&out, 0, "PD_UNROLL for (int e = 0; e < Unit::GROUP; e++) {");
	text_line(&out, 1, "const int64_t column = first + e;");
	text_line(&out, 1, inside ? "(void)column;" : "if (column >= N)");
	if (!inside)
		text_line(&out, 2, "continue;");
	text_line(&out, 1, "const float acc = unit.sums[i][j + e];");
	if (!scalar_region_print(k, &k->op->regions[0], args, NULL, 1, &out, &value))
		return NULL;
	text_line(&out, 1, "%s;", scalar_store(k, t->dtype, "results.v", "e", value));
	text_line(&out, 0, "}");
	return out.text;
}

// All columns of a group together: what they read of a tensor lies side by side.
static const char *group_epilogue(KernelFunc *k, const TileProduct *p, int group)
{
	const Region *r = &k->op->regions[0];
	const Type *t = k->op->results[0].type;
	const char *acc[VECTOR_LANES], *values[VECTOR_LANES];
	Scalars s;
	Text out;
	text_init(&out, k->arena);
	scalars_init(&s, k);
	for (int i = 0; i < t->rank; i++)
		pointer_map_set(&s.names, region_entry(r)->args[1 + i], p->at[i]);
	for (int l = 0; l < group; l++)
		acc[l] = sum_text(k, arena_printf(k->arena, "unit.sums[i][j + %d]", l));
	k->place = "to";
	text_line(&out, 0, "const int64_t column = first;");
	text_line(&out, 0, "(void)column;");
	if (!vector_region_print(&s, r, t->rank, group, acc, &out, values))
		return NULL;
	for (int l = 0; l < group; l++)
		text_line(&out, 0, "%s;",
		          scalar_store(k, t->dtype, "results.v", tile_int(k, l), values[l]));
	return out.text;
}

// From the sums of a group of columns to `results`; inside: no group goes across the end of a row.
static const char *epilogue_text(KernelFunc *k, const TileProduct *p, bool inside)
{
	const int group = p->tile->unit == CUDA_FMA ? 4 : 2; // Unit::GROUP
	const Value *out = &k->op->results[0];
	const bool together = inside && vector_aligned(out, group) &&
	                      vector_suits(&k->op->regions[0], out->type->rank, group);
	return together ? group_epilogue(k, p, group) : columns_epilogue(k, p, inside);
}

bool cuda_tile_emit(KernelFunc *k, const TileProduct *p)
{
	const Value *out = &k->op->results[0];
	const CudaTile *t = p->tile;
	const bool aligned = row_is_aligned(k->ctx, out->type->dtype,
	                                    p->n); // then groups of columns are inside as a whole
	const char *epilogue = epilogue_text(k, p, aligned);
	if (!epilogue || !helpers_print(k, t))
		return false;
	const Dim *products = dim_mul(k->ctx, dim_const(k->ctx, p->split), p->batches);
	k->block_threads = cuda_tile_threads(t);
	k->bounds = arena_printf(k->arena, "%d, %d", k->block_threads,
	                         (int)op_int(k->op, "blocks", cuda_tile_blocks(t)));
	k->block_shared = cuda_tile_shared(t);
	k->tensor_cores = t->unit != CUDA_FMA;
	k->grid = dim_mul(
		k->ctx, products,
		dim_mul(k->ctx, tiles_along(k->ctx, p->m, t->rows), tiles_along(k->ctx, p->n, t->columns)));
	const TemplateKey keys[] = {
		{"tile_rows", tile_int(k, t->rows)},
		{"tile_columns", tile_int(k, t->columns)},
		{"unit", unit_text(k, t)},
		{"element", t->unit == CUDA_HALF ? "uint16_t" : "float"},
		{"shared", tile_int(k, k->block_shared)},
		{"size", sizes_text(k, p)},
		{"a_load", p->a_load},
		{"b_load", p->b_load},
		{"type", dtype_c_memory(out->type->dtype)},
		{"epilogue", epilogue},
		{"aligned", aligned ? "true" : "false"},
		{"row_head", p->row_head ? p->row_head : ""},
		{"place", p->place ? p->place : "(all * M + row) * N + first"},
	};
	return kernel_template(k, "cuda_tile_kernel.c", COUNT_OF(keys), keys);
}
