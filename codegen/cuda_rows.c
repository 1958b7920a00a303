// Emits kernel.softmax and kernel.layer_norm for CUDA. A warp takes a row of up to 1024 elements, a block a longer one or one
// of few; either keeps it in registers. Rows that are longer still, or of any length, are read again for each step. Called by
// run.c and cuda.c.
#include "cuda_rows.h"

#include "cuda_vector.h"
#include "kernel_tile.h"
#include "nest.h"

#include <string.h>

enum {
	WARP = 32,
	WARP_BLOCK = 256,      // threads of a block whose warps have rows of their own
	MAX_COUNT = 32,        // elements of a row that a thread holds
	MAX_THREADS = 512,     // that share a row; more would have to spill
	FEW_ROWS = 64,         // so few leave most of the GPU idle
	LONG_THREADS = 256,    // that share a row of unknown length
};

typedef struct Rows {
	KernelFunc *k;
	int axes;
	int threads; // that share a row
	int wide;    // elements that a thread moves at once
	int count;   // elements of a row in a thread's registers; 0: it does not fit
} Rows;

// ---- who does what ---------------------------------------------------------------------------------------------

static const Dim *dims_product(Context *c, int n, const Dim *const *dims)
{
	const Dim *all = dim_const(c, 1);
	for (int i = 0; i < n; i++)
		all = dim_mul(c, all, dims[i]);
	return all;
}

static int row_axes(const Op *op)
{
	return op->code == OP_KERNEL_LAYER_NORM ? (int)op_int(op, "axes", 1) : 1;
}

static const Dim *row_count(Context *c, const Op *op)
{
	const Type *t = op->results[0].type;
	return dims_product(c, t->rank - row_axes(op), t->dims);
}

static const Dim *row_length(Context *c, const Op *op)
{
	const Type *t = op->results[0].type;
	return dims_product(c, row_axes(op), t->dims + t->rank - row_axes(op));
}

// Threads that share a row: a warp, or a block so large that each has about eight elements.
static int row_threads(Context *c, const Op *op)
{
	const Dim *rows = row_count(c, op), *columns = row_length(c, op);
	const bool few = dim_is_const(rows) && rows->value <= FEW_ROWS;
	if (!dim_is_const(columns))
		return LONG_THREADS;
	if (columns->value <= 8 * WARP || (columns->value <= MAX_COUNT * WARP && !few))
		return WARP;
	const int64_t threads = (columns->value / 8 + WARP - 1) / WARP * WARP;
	return threads > MAX_THREADS ? MAX_THREADS : (int)threads;
}

const Dim *cuda_rows_total(Context *c, const Op *op)
{
	const Dim *rows = row_count(c, op);
	return row_threads(c, op) == WARP ? dim_mul(c, rows, dim_const(c, WARP)) : rows;
}

static Rows rows_plan(KernelFunc *k)
{
	const Op *op = k->op;
	const int rank = op->results[0].type->rank;
	const Dim *columns = row_length(k->ctx, op), *last = op->results[0].type->dims[rank - 1];
	Rows w = {.k = k, .axes = row_axes(op), .threads = row_threads(k->ctx, op), .wide = 1};
	if (dim_is_const(last) && last->value % 4 == 0 && vector_suits(&op->regions[0], rank - 1) &&
	    vector_suits(&op->regions[1], rank))
		w.wide = 4;
	for (int i = 0; i < op->noperand; i++) // scale and bias
		if (op_operand(op, i) && !vector_aligned(op_operand(op, i)))
			w.wide = 1;
	if (!dim_is_const(columns))
		return w;
	const int64_t step = (int64_t)w.threads * w.wide, count = (columns->value + step - 1) / step * w.wide;
	w.count = count > MAX_COUNT ? 0 : count ? (int)count : w.wide;
	return w;
}

// ---- what stands in the templates -----------------------------------------------------------------------------------

// Element l of those that a thread has at hand.
static const char *element_name(const Rows *w, int l)
{
	if (!w->count)
		return arena_printf(w->k->arena, "x[%d]", l);
	return l ? arena_printf(w->k->arena, "row[i + %d]", l) : "row[i]";
}

// Where `linear` lies along the axes [from, to) of dims[0..n), taken as one.
static const char *span_position(const Rows *w, const char *linear, int n, const Dim *const *dims, int from, int to)
{
	const char *behind = tile_product(w->k, n - to, dims + to);
	const Dim *front = dims_product(w->k->ctx, from, dims), *all = dims_product(w->k->ctx, to - from, dims + from);
	const char *q = strcmp(behind, "1") ? arena_printf(w->k->arena, "(%s / %s)", linear, behind) : linear;
	if (dim_is(all, 1))
		return "0";
	return dim_is(front, 1) ? q : arena_printf(w->k->arena, "(%s %% %s)", q, kernel_dim(w->k, all));
}

// Names the position of element j of row r, whose axes begin at argument `first`. Axes that are only read side by side count
// as one, so that a position seldom takes a division.
static void row_position(const Rows *w, Scalars *s, const Region *r, int first)
{
	const Type *t = w->k->op->results[0].type;
	const Block *b = region_entry(r);
	const Dim *extents[MAX_RANK + 1] = {dim_const(w->k->ctx, 1)};
	const int lead = t->rank - w->axes;
	Loop loops[MAX_RANK + 1];
	memcpy(extents + first, t->dims, sizeof *extents * (size_t)t->rank);
	const int n = loops_merge(s, b, extents, loops);
	for (int l = 0, from = 0, to; l < n; l++, from = to) {
		for (to = from + 1; b->args[to - 1] != loops[l].arg; to++)
			;
		const int begin = from < first ? 0 : from - first, end = to - first;
		if (end <= begin)
			continue;
		const char *outer = begin < lead ? span_position(w, "r", lead, t->dims, begin, end < lead ? end : lead) : "0";
		const char *inner = end <= lead ? "0" : span_position(w, "j", w->axes, t->dims + lead, begin < lead ? 0 : begin - lead,
		                                                      end - lead);
		const char *name = end <= lead ? outer : inner;
		if (end > lead && strcmp(outer, "0"))
			name = arena_printf(w->k->arena, "(%s * %s + %s)", outer, tile_product(w->k, end - lead, t->dims + lead), inner);
		pointer_map_set(&s->names, loops[l].arg, name);
	}
}

// Statements that evaluate what the row consists of; NULL after a diagnostic.
static const char *input_text(const Rows *w)
{
	const Region *r = &w->k->op->regions[0];
	const char *values[4];
	Scalars s;
	Text out;
	text_init(&out, w->k->arena);
	scalars_init(&s, w->k);
	row_position(w, &s, r, 0);
	if (!vector_region_print(&s, r, w->k->op->results[0].type->rank - 1, w->wide, NULL, &out, values))
		return NULL;
	for (int l = 0; l < w->wide; l++)
		text_line(&out, 0, "%s = %s;", element_name(w, l), expression_unwrap(w->k->arena, values[l]));
	return out.text;
}

// An operand of layer_norm at lane l: declared once, in front of the first use.
static const char *affine_text(const Rows *w, int operand, const char *sign, int l, Text *out)
{
	const Value *v = op_operand(w->k->op, operand);
	if (!v)
		return "";
	const char *name = kernel_tensor(w->k, v);
	if (w->wide == 1)
		return arena_printf(w->k->arena, " %s %s[j]", sign, name);
	if (l == 0)
		text_line(out, 0, "const pd_vec<float, 4> %s = pd_load<4>(%s + j);", operand ? "shifts" : "scales", name);
	return arena_printf(w->k->arena, " %s %s.v[%d]", sign, operand ? "shifts" : "scales", l);
}

// What the kernel makes of element l, before its epilogue.
static const char *made_text(const Rows *w, int l, Text *out)
{
	Arena *a = w->k->arena;
	const Op *op = w->k->op;
	const char *x = element_name(w, l);
	if (op->code == OP_KERNEL_LAYER_NORM) {
		const char *scale = affine_text(w, 0, "*", l, out);
		return arena_printf(a, "(%s - mean) * rate%s%s", x, scale, affine_text(w, 1, "+", l, out));
	}
	if (op_bool(op, "log", false))
		return arena_printf(a, w->count ? "%s - shift" : "%s - top - shift", x);
	return arena_printf(a, w->count ? "%s * scale" : "expf(%s - top) * scale", x);
}

static void store_print(const Rows *w, const char *const values[4], Text *out)
{
	KernelFunc *k = w->k;
	const Value *result = &k->op->results[0];
	const DType t = result->type->dtype;
	const bool vector = w->wide == 4 && vector_aligned(result);
	if (vector)
		text_line(out, 0, "pd_vec<%s, 4> y;", dtype_c_memory(t));
	for (int l = 0; l < w->wide; l++) {
		const char *index = l ? arena_printf(k->arena, "r * columns + j + %d", l) : "r * columns + j";
		text_line(out, 0, "%s;", vector ? scalar_store(k, t, "y.v", tile_int(k, l), values[l])
		                                : scalar_store(k, t, "out", index, values[l]));
	}
	if (vector)
		text_line(out, 0, "pd_store(out + r * columns + j, y);");
}

// Statements from what the kernel computed to the stored elements; NULL after a diagnostic.
static const char *output_text(const Rows *w)
{
	KernelFunc *k = w->k;
	const Region *r = &k->op->regions[1];
	const char *acc[4], *values[4];
	Scalars s;
	Text out;
	text_init(&out, k->arena);
	scalars_init(&s, k);
	row_position(w, &s, r, 1);
	for (int l = 0; l < w->wide; l++) {
		const char *made = made_text(w, l, &out);
		acc[l] = w->wide == 1 ? "acc" : kernel_local(k, "acc");
		text_line(&out, 0, "const float %s = %s;", acc[l], made);
	}
	if (!vector_region_print(&s, r, k->op->results[0].type->rank, w->wide, acc, &out, values))
		return NULL;
	store_print(w, values, &out);
	return out.text;
}

// ---- the kernels -----------------------------------------------------------------------------------------------

// The keys that all four templates have, and those of the ones that hold a row in registers. Returns how many there are.
static int row_keys(const Rows *w, TemplateKey *keys)
{
	KernelFunc *k = w->k;
	const bool warp = w->threads == WARP && w->count;
	int n = 0;
	keys[n++] = (TemplateKey){"rows", kernel_dim(k, row_count(k->ctx, k->op))};
	keys[n++] = (TemplateKey){"columns", kernel_dim(k, row_length(k->ctx, k->op))};
	keys[n++] = (TemplateKey){"wide", tile_int(k, w->wide)};
	keys[n++] = (TemplateKey){"width", tile_int(k, w->count ? w->threads : w->threads * w->wide)};
	keys[n++] = (TemplateKey){"bounds", tile_int(k, warp ? WARP_BLOCK : w->threads)};
	if (!w->count)
		return n;
	keys[n++] = (TemplateKey){"count", tile_int(k, w->count)};
	keys[n++] = (TemplateKey){"group", warp ? "a warp" : "a block"};
	keys[n++] = (TemplateKey){"lane", warp ? "(int)threadIdx.x % 32" : "(int)threadIdx.x"};
	keys[n++] = (TemplateKey){"first", warp ? "((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32" : "blockIdx.x"};
	keys[n++] = (TemplateKey){"step", warp ? "(int64_t)gridDim.x * blockDim.x / 32" : "gridDim.x"};
	keys[n++] = (TemplateKey){"reduce", warp ? "pd_warp_reduce" : "pd_block_reduce"};
	keys[n++] = (TemplateKey){"zero", warp ? "" : ", 0.0f"};
	return n;
}

static bool rows_emit(Rows *w, const char *name, int n, TemplateKey *keys)
{
	w->k->skips = true;
	const char *input = input_text(w), *output = input ? output_text(w) : NULL;
	if (!output)
		return false;
	n += row_keys(w, keys + n);
	keys[n++] = (TemplateKey){"input", input};
	keys[n++] = (TemplateKey){"output", output};
	w->k->block_threads = w->threads == WARP ? 0 : w->threads;
	return kernel_template(w->k, name, n, keys);
}

bool cuda_softmax_emit(KernelFunc *k)
{
	Rows w = rows_plan(k);
	const bool log = op_bool(k->op, "log", false);
	TemplateKey keys[24];
	int n = 0;
	keys[n++] = (TemplateKey){"name", log ? "The logarithm of softmax" : "Softmax"};
	keys[n++] = (TemplateKey){"factor", log ? "shift = logf(sum)" : "scale = 1.0f / sum"};
	if (!w.count)
		return rows_emit(&w, "cuda_softmax_long.c", n, keys);
	keys[n++] = (TemplateKey){"term", log ? "row[i] -= top;\nsum += expf(row[i]);" : "row[i] = expf(row[i] - top);\nsum += row[i];"};
	keys[n++] = (TemplateKey){"lowest", w.threads == WARP ? "" : ", -INFINITY"};
	return rows_emit(&w, "cuda_softmax.c", n, keys);
}

bool cuda_layer_norm_emit(KernelFunc *k)
{
	Rows w = rows_plan(k);
	TemplateKey keys[24];
	keys[0] = (TemplateKey){"epsilon", scalar_float(k->arena, DT_F32, op_float(k->op, "epsilon", 1e-5))};
	return tile_check_f32(k) && rows_emit(&w, w.count ? "cuda_layer_norm.c" : "cuda_layer_norm_long.c", 1, keys);
}
