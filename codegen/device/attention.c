// Emits kernel.attention for CUDA by the row of the schedule table that lowering chose: tiles of
// rows against tiles of keys, in f32 or on tensor cores, or single rows against keys that the warps
// of a block share. Called by run.c through cuda.c.
#include "codegen/device/vector.h"
#include "codegen/nest/region.h"
#include "ir/infer/attention.h"
#include "lower/target/schedule.h"

#include <string.h>

typedef struct Attention {
	KernelFunc *k;
	const CudaAttention *tile;
	const Type *domain[ATTENTION_REGIONS];
	int rank; // of all but the epilogue's
	int64_t depth, columns;
	int64_t split; // parts of the keys
} Attention;

static Attention attention_plan(KernelFunc *k, const Op *op)
{
	Attention a = {.k = k,
	               .tile = cuda_attention_find(op_str(op, "schedule", "")),
	               .split = op_int(op, "split", 1)};
	for (int i = 0; i < ATTENTION_REGIONS; i++)
		a.domain[i] = attention_domain(op, i);
	a.rank = a.domain[ATTENTION_QUERY]->rank;
	a.depth = a.domain[ATTENTION_QUERY]->dims[a.rank - 1]->value;
	a.columns = a.domain[ATTENTION_VALUE]->dims[a.rank - 1]->value;
	return a;
}

static const Dim *batch_count(Context *c, const Attention *a)
{
	return dims_product(c, a->rank - 2, a->domain[ATTENTION_QUERY]->dims);
}

static const Dim *rows_of(const Attention *a)
{
	return a->domain[ATTENTION_QUERY]->dims[a->rank - 2];
}

const Dim *cuda_attention_work(Context *c, const Op *op)
{
	const Attention a = attention_plan(NULL, op);
	const Dim *tiles = dim_div(c, dim_add(c, rows_of(&a), dim_const(c, a.tile->rows - 1)),
	                           dim_const(c, a.tile->rows));
	return dim_mul(c, dim_mul(c, dim_const(c, a.split), batch_count(c, &a)), tiles);
}

// ---- regions ------------------------------------------------------------------------------------

// What axis i of the region's positions is called.
static const char *axis_name(const Attention *a, int region, int i, const char *row,
                             const char *column)
{
	const int part = a->domain[region]->rank - a->rank; // in front, of a split kernel's epilogue
	const int axis = region == ATTENTION_EPILOGUE ? attention_axis(a->k->op, i - part) : i;
	if (i < part)
		return "part";
	if (dim_is(a->domain[region]->dims[i], 1))
		return "0";
	return axis == a->rank - 1   ? column
	       : axis == a->rank - 2 ? row
	                             : arena_printf(a->k->arena, "at%d", axis);
}

static void region_names(const Attention *a, Scalars *s, int region, const char *row,
                         const char *column)
{
	const Block *b = region_entry(&a->k->op->regions[region]);
	const int rank = a->domain[region]->rank, first = b->narg - rank;
	scalars_init(s, a->k);
	for (int i = 0; i < rank; i++)
		pointer_map_set(&s->names, b->args[first + i], axis_name(a, region, i, row, column));
}

// The statements of a region for one position, and what it yields; NULL after a diagnostic.
static const char *region_at(const Attention *a, int region, const char *row, const char *column,
                             const char **value)
{
	const Region *r = &a->k->op->regions[region];
	const int last = region_entry(r)->narg - 1;
	Scalars s;
	Text out;
	text_init(&out, a->k->arena);
	region_names(a, &s, region, row, column);
	if (!vector_region_print(&s, r, last, 1,
	                         last == a->domain[region]->rank ? (const char *[]){"acc"} : NULL, &out,
	                         value))
		return NULL;
	return out.text ? out.text : "";
}

static void indented_print(const char *text, Text *out)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		text_line(out, 1, "%.*s", (int)n, text);
	}
}

// A check that fails must leave out no more than this element: what is around goes on to a barrier.
static const char *guarded(const Attention *a, int region, const char *text)
{
	bool checks = false;
	for (const Op *op = region_entry(&a->k->op->regions[region])->first; op; op = op->next)
		checks |= op->code == OP_LOOP_TO_INDEX;
	if (!checks)
		return text;
	Text out;
	text_init(&out, a->k->arena);
	text_line(&out, 0, "do {");
	indented_print(text, &out);
	text_line(&out, 0, "} while (false);");
	return out.text;
}

// How an element of x is made from a number.
static const char *element_from(const Attention *a, const char *value)
{
	const DType t = op_dtype(a->k->op, "dtype", DT_F32);
	if (a->tile->unit == CUDA_TF32)
		return arena_printf(a->k->arena, "pd_round_tf32(%s)", value);
	if (a->tile->unit != CUDA_HALF)
		return expression_unwrap(a->k->arena, value);
	return arena_printf(a->k->arena, t == DT_F16 ? "pd_f16_store(%s)" : "pd_bf16_store(%s)",
	                    expression_unwrap(a->k->arena, value));
}

// The load that is all there is to a region and gives what x has, `each` elements side by side;
// NULL: it is more.
static const Op *load_alone(const Attention *a, int region, int each)
{
	const Region *r = &a->k->op->regions[region];
	const Value *v = op_operand(region_entry(r)->last, 0);
	if (v->def && v->def->code == OP_PD_CAST)
		v = op_operand(v->def, 0);
	const Op *load = v->def;
	if (a->tile->unit != CUDA_HALF || !load || load->code != OP_LOOP_LOAD ||
	    !vector_suits(r, a->rank - 1, each))
		return NULL;
	const Type *t = op_operand(load, 0)->type;
	const bool along = op_operand(load, load->noperand - 1) == region_entry(r)->args[a->rank - 1];
	return along && t->dtype == op_dtype(a->k->op, "dtype", DT_F32) ? load : NULL;
}

static const char *load_text(const Attention *a, int region, const char *row, const Op *load,
                             int each)
{
	KernelFunc *k = a->k;
	const Block *b = load->block;
	Scalars s;
	Text out;
	text_init(&out, k->arena);
	region_names(a, &s, region, row, "d");
	for (const Op *op = b->first; op != load; op = op->next)
		if (!scalar_op_print(&s, op, false, 0, &out))
			return NULL;
	const char *index = load_index(&s, load);
	if (!index)
		return NULL;
	text_line(&out, 0, "x = pd_load<%d>(%s + %s);", each, kernel_tensor(k, op_operand(load, 0)),
	          expression_unwrap(k->arena, index));
	return guarded(a, region, out.text);
}

// Fills x, of `each` elements, with those at `row` and from column d on; behind the last there are
// zeros.
static const char *vector_text(const Attention *a, int region, const char *row, int each)
{
	KernelFunc *k = a->k;
	const Region *r = &k->op->regions[region];
	const int64_t n = a->domain[region]->dims[a->rank - 1]->value;
	const Op *load = load_alone(a, region, each);
	const char *values[VECTOR_LANES];
	Text out;
	text_init(&out, k->arena);
	if (load)
		return load_text(a, region, row, load, each);
	if (n % each == 0 && vector_suits(r, a->rank - 1, each)) {
		Scalars s;
		region_names(a, &s, region, row, "d");
		if (!vector_region_print(&s, r, a->rank - 1, each, NULL, &out, values))
			return NULL;
		for (int l = 0; l < each; l++)
			text_line(&out, 0, "x.v[%d] = %s;", l, element_from(a, values[l]));
		return guarded(a, region, out.text);
	}
	const char *text = region_at(a, region, row, "(d + l)", values);
	if (!text)
		return NULL;
	text_line(&out, 0, "PD_UNROLL for (int l = 0; l < %d; l++) {", each);
	if (n % each) {
		text_line(&out, 1, "if (d + l >= %s)", tile_int(k, n));
		text_line(&out, 2, "continue;");
	}
	indented_print(text, &out);
	text_line(&out, 1, "x.v[l] = %s;", element_from(a, values[0]));
	text_line(&out, 0, "}");
	return out.text;
}

// The positions of a block's batch, its part of the keys, and its row.
static const char *positions_text(const Attention *a)
{
	KernelFunc *k = a->k;
	Text out;
	text_init(&out, k->arena);
	const Type *t = a->domain[ATTENTION_QUERY];
	const char *rows = a->tile->unit == CUDA_ROW ? "rows" : "row_tiles",
			   *t_in = a->split > 1 ? "t % tiles" : "t";
	const char *batch = arena_printf(k->arena, "(%s / %s)", t_in, rows);
	for (int i = 0; i < a->rank - 2; i++)
		if (!dim_is(t->dims[i], 1)) // the place of the result takes all others
			text_line(
				&out, 0, "const int64_t at%d = %s;", i,
				expression_unwrap(k->arena, tile_position(k, batch, a->rank - 2, t->dims, i)));
	if (a->tile->unit == CUDA_ROW && !dim_is(rows_of(a), 1))
		text_line(&out, 0, "const int64_t i = t %% rows;");
	return out.text ? out.text : "";
}

// Which keys a block takes: from `low` to `end`. Parts are whole tiles.
static const char *range_text(const Attention *a)
{
	Arena *arena = a->k->arena;
	if (a->split == 1)
		return "const int64_t low = 0, end = keys;";
	const int all = (int)a->split * a->tile->keys;
	const char *each = arena_printf(
		arena, "const int64_t part = t / tiles, each = (keys + %d) / %d * %d;\n", all - 1, all,
		a->tile->keys);
	return arena_printf(arena,
	                    "%sconst int64_t low = part * each < keys ? part * each : keys, end = low "
	                    "+ each < keys ? low + each : keys;",
	                    each);
}

// ---- the kernels --------------------------------------------------------------------------------

// Where an element of a result lies; axes of one position are left out.
static const char *result_index(const Attention *a, int result, const char *column)
{
	KernelFunc *k = a->k;
	const Type *t = k->op->results[result].type;
	const char *index[MAX_RANK];
	const Dim *dims[MAX_RANK];
	int n = 0;
	for (int i = 0; i < t->rank; i++)
		if (!dim_is(t->dims[i], 1)) {
			dims[n] = t->dims[i];
			index[n++] = axis_name(a, ATTENTION_EPILOGUE, i, "i", column);
		}
	return n ? expression_unwrap(
				   k->arena,
				   scalar_linear(k, type_shaped(k->ctx, TY_TENSOR, t->dtype, n, dims), n, index))
	         : "0";
}

// What a sum is multiplied with; a part without keys, or whose keys are all hidden, gives zeros.
static const char *scale_text(const Attention *a, const char *total)
{
	return arena_printf(
		a->k->arena, a->split > 1 ? "%s == 0.0f ? 0.0f : 1.0f / %s" : "keys > 0 ? 1.0f / %s : 0.0f",
		total, total);
}

// Where there are parts: the thread for which `mine` holds tells the logarithm of a row's sum.
static const char *sum_text(const Attention *a, const char *mine, const char *top,
                            const char *total)
{
	KernelFunc *k = a->k;
	if (a->split == 1)
		return "";
	return arena_printf(k->arena, "if (%s)\n\t%s[%s] = %s + logf(%s);\n", mine, kernel_result(k, 1),
	                    result_index(a, 1, ""), top, total);
}

// The keys that all templates have; returns how many, 0 after a diagnostic.
static int attention_keys(const Attention *a, TemplateKey *keys)
{
	KernelFunc *k = a->k;
	const char *score, *text,
		*to = a->tile->unit == CUDA_ROW   ? "s[k]"
	          : a->tile->unit == CUDA_FMA ? "s[r][c]"
	                                      : "score";
	const char *column = a->tile->unit == CUDA_ROW || a->tile->unit == CUDA_FMA ? "j"
	                                                                            : "(begin + key)";
	const int each = a->tile->unit == CUDA_HALF ? 8 : 4;
	int n = 0;
	keys[n++] = (TemplateKey){"rows", kernel_dim(k, rows_of(a))};
	keys[n++] = (TemplateKey){"keys", kernel_dim(k, a->domain[ATTENTION_VALUE]->dims[a->rank - 2])};
	keys[n++] = (TemplateKey){"batches", kernel_dim(k, batch_count(k->ctx, a))};
	keys[n++] = (TemplateKey){"columns", tile_int(k, a->columns)};
	keys[n++] = (TemplateKey){
		"parts", a->split > 1 ? arena_printf(k->arena, "%s * ", tile_int(k, a->split)) : ""};
	keys[n++] = (TemplateKey){"range", range_text(a)};
	keys[n++] = (TemplateKey){"positions", positions_text(a)};
	keys[n++] = (TemplateKey){"query", vector_text(a, ATTENTION_QUERY, "i", each)};
	keys[n++] = (TemplateKey){"key", vector_text(a, ATTENTION_KEY, "j", each)};
	if (!(text = region_at(a, ATTENTION_SCORE, "i", column, &score)) || !keys[n - 1].text ||
	    !keys[n - 2].text)
		return 0;
	text = arena_printf(k->arena, "%s%s = %s;\n", text, to, expression_unwrap(k->arena, score));
	keys[n++] = (TemplateKey){"score", guarded(a, ATTENTION_SCORE, text)};
	return n;
}

// Fills a key with the epilogue for `column`, and gives what it yields; NULL after a diagnostic.
static const char *epilogue_key(const Attention *a, const char *column, TemplateKey *key)
{
	const char *result;
	*key = (TemplateKey){"epilogue", region_at(a, ATTENTION_EPILOGUE, "i", column, &result)};
	return key->text ? result : NULL;
}

static bool fma_emit(const Attention *a, int n, TemplateKey *keys)
{
	KernelFunc *k = a->k;
	const int64_t rows = a->tile->rows, tile = a->tile->keys, depth4 = (a->depth + 3) / 4,
				  e = (a->columns + 15) / 16;
	const int64_t columns4 = 4 * e; // zeros behind the last
	const char *value = vector_text(a, ATTENTION_VALUE, "j", 4),
			   *result = epilogue_key(a, "column", &keys[n++]);
	if (!value || !result)
		return false;
	keys[n++] = (TemplateKey){"value", value};
	keys[n++] = (TemplateKey){"store",
	                          scalar_store(k, k->op->results[0].type->dtype, kernel_result(k, 0),
	                                       result_index(a, 0, "column"), result)};
	keys[n++] = (TemplateKey){"scale", scale_text(a, "total[r]")};
	keys[n++] = (TemplateKey){"sum", sum_text(a, "tx == 0 && i < rows", "most[r]", "total[r]")};
	keys[n++] = (TemplateKey){"depth4", tile_int(k, depth4)};
	keys[n++] = (TemplateKey){"r", tile_int(k, rows / 8)};
	keys[n++] = (TemplateKey){"c", tile_int(k, tile / 16)};
	keys[n++] = (TemplateKey){"e", tile_int(k, e)};
	keys[n++] = (TemplateKey){"tile_rows", tile_int(k, rows)};
	keys[n++] = (TemplateKey){"tile_keys", tile_int(k, tile)};
	keys[n++] = (TemplateKey){"stride", tile_int(k, 4 * (depth4 | 1))};
	keys[n++] = (TemplateKey){"value_stride", tile_int(k, 16 * e)};
	keys[n++] = (TemplateKey){"weight_stride", tile_int(k, tile + 4)};
	keys[n++] = (TemplateKey){"columns4", tile_int(k, columns4)};
	keys[n++] = (TemplateKey){"key_loads", tile_int(k, (tile * depth4 + 127) / 128)};
	keys[n++] = (TemplateKey){"value_loads", tile_int(k, (tile * columns4 + 127) / 128)};
	kernel_moves(k, DT_F32, 4);
	k->bounds = "128, 3";
	return kernel_template(k, "cuda_attention.c", n, keys);
}

// Two neighbours of the result at once, or, where rows begin anywhere, one after the other.
static const char *pair_text(const Attention *a)
{
	KernelFunc *k = a->k;
	const char *out = kernel_result(k, 0), *index = result_index(a, 0, "column");
	if (a->columns % 2 == 0)
		return arena_printf(k->arena, "pd_store(%s + %s, y);", out, index);
	return arena_printf(k->arena,
	                    "for (int l = 0; l < 2 && column + l < %s; l++)\n\t%s[%s + l] = y.v[l];",
	                    tile_int(k, a->columns), out, index);
}

static bool mma_emit(const Attention *a, int n, TemplateKey *keys)
{
	KernelFunc *k = a->k;
	const CudaAttention *t = a->tile;
	const DType out = k->op->results[0].type->dtype;
	const int each = t->unit == CUDA_HALF ? 8 : 4;
	const int64_t depth = (a->depth + 15) / 16 * 16, columns = (a->columns + 15) / 16 * 16;
	const int64_t key_lines = t->threads * each / depth,
				  value_lines = t->threads * each / columns; // that all threads load at once
	const int64_t key_loads = (t->keys + key_lines - 1) / key_lines,
				  value_loads = (t->keys + value_lines - 1) / value_lines;
	const int64_t query = t->rows * (depth + each), both = t->keys * (depth + columns + 2 * each);
	const char *value = vector_text(a, ATTENTION_VALUE, "j", each),
			   *result = epilogue_key(a, "(column + l)", &keys[n++]);
	if (!value || !result || !kernel_helper(k, "cuda_tile.c", 0, NULL) ||
	    !kernel_helper(k, "cuda_mma.c", 0, NULL) || !kernel_helper(k, "cuda_mma_rows.c", 0, NULL))
		return false;
	keys[n++] = (TemplateKey){"value", value};
	keys[n++] = (TemplateKey){"store", scalar_store(k, out, "y.v", "l", result)};
	keys[n++] = (TemplateKey){"store_pair", pair_text(a)};
	keys[n++] = (TemplateKey){"type", dtype_c_memory(out)};
	keys[n++] = (TemplateKey){"scale", scale_text(a, "total[r]")};
	keys[n++] = (TemplateKey){"sum",
	                          sum_text(a, "lane % 4 == 0 && i < rows", "most[r]", "total[r]")};
	keys[n++] = (TemplateKey){"unit", each == 4                                    ? "pd_tf32"
	                                  : op_dtype(k->op, "dtype", DT_F32) == DT_F16 ? "pd_f16"
	                                                                               : "pd_bf16"};
	keys[n++] = (TemplateKey){"element", each == 4 ? "uint32_t" : "uint16_t"};
	keys[n++] = (TemplateKey){"each", tile_int(k, each)};
	keys[n++] = (TemplateKey){"threads", tile_int(k, t->threads)};
	keys[n++] = (TemplateKey){"tile_rows", tile_int(k, t->rows)};
	keys[n++] = (TemplateKey){"tile_keys", tile_int(k, t->keys)};
	keys[n++] = (TemplateKey){"width", tile_int(k, a->depth)};
	keys[n++] = (TemplateKey){"depth", tile_int(k, depth)};
	keys[n++] = (TemplateKey){"columns_padded", tile_int(k, columns)};
	keys[n++] = (TemplateKey){"shared", tile_int(k, query > both ? query : both)};
	keys[n++] = (TemplateKey){"key_loads", tile_int(k, key_loads)};
	keys[n++] = (TemplateKey){"value_loads", tile_int(k, value_loads)};
	keys[n++] = (TemplateKey){"loads",
	                          tile_int(k, key_loads > value_loads ? key_loads : value_loads)};
	k->tensor_cores = true;
	kernel_moves(k, DT_F32, 4);
	k->bounds = arena_printf(k->arena, "%d, %d", t->threads, t->blocks);
	return kernel_template(k, "cuda_attention_mma.c", n, keys);
}

static bool rows_emit(const Attention *a, int n, TemplateKey *keys)
{
	KernelFunc *k = a->k;
	const char *value, *text = region_at(a, ATTENTION_VALUE, "from", "column", &value),
					   *result = epilogue_key(a, "column", &keys[n++]);
	if (!text || !result)
		return false;
	keys[n++] = (TemplateKey){"value",
	                          arena_printf(k->arena, "%ssums[e] += p * %s;\n", text, value)};
	keys[n++] = (TemplateKey){"store",
	                          scalar_store(k, k->op->results[0].type->dtype, kernel_result(k, 0),
	                                       result_index(a, 0, "column"), result)};
	keys[n++] = (TemplateKey){"scale", scale_text(a, "all")};
	keys[n++] = (TemplateKey){"sum", sum_text(a, "column == 0", "top", "all")};
	keys[n++] = (TemplateKey){"depth4", tile_int(k, (a->depth + 3) / 4)};
	keys[n++] = (TemplateKey){"e", tile_int(k, (a->columns + 31) / 32)};
	keys[n++] = (TemplateKey){"key_loads", tile_int(k, (a->depth + 31) / 32)};
	kernel_moves(k, DT_F32, 4);
	k->bounds = "256, 1";
	return kernel_template(k, "cuda_attention_row.c", n, keys);
}

bool cuda_attention_emit(KernelFunc *k)
{
	const Attention a = attention_plan(k, k->op);
	TemplateKey keys[40];
	const DType t = op_dtype(k->op, "dtype", DT_F32);
	const int64_t width = a.depth > a.columns ? a.depth : a.columns;
	if (!a.tile || width > a.tile->width || (a.tile->unit == CUDA_HALF && !dtype_is_half(t))) {
		diag_error(k->ctx->diag, k->op->loc,
		           "kernel.attention: no schedule '%s' for heads of %s, %d wide",
		           op_str(k->op, "schedule", ""), dtype_name(t), (int)width);
		return false;
	}
	k->skips = true;
	k->block_threads = a.tile->threads;
	const int n = attention_keys(&a, keys);
	if (!n)
		return false;
	return a.tile->unit == CUDA_ROW   ? rows_emit(&a, n, keys)
	       : a.tile->unit == CUDA_FMA ? fma_emit(&a, n, keys)
	                                  : mma_emit(&a, n, keys);
}
