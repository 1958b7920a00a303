// Emits kernel.softmax and kernel.layer_norm for CUDA, as lower/cuda/rows.c has it: a warp or a
// block takes a row and keeps it in registers, or reads it again for each step. Called by run.c and
// cuda.c.
#include "codegen/device/vector.h"
#include "codegen/nest/nest.h"
#include "codegen/nest/region.h"
#include "lower/analysis/rows.h"

#include <string.h>

enum {
	WARP = 32,
	WARP_BLOCK = 256,  // threads of a block whose warps have rows of their own
	ACROSS_BLOCK = 256 // and for rows that stand across memory, as pd_columns_reduce has it
};

// Axes [begin, end) of the result; where an element is along them, as C.
typedef struct Span {
	int begin, end;
	const char *position;
} Span;

typedef struct Rows {
	KernelFunc *k;
	int begin,
		end; // axes of a row; behind the last axis of the tensor, or the row stands across memory
	int threads; // that share a row
	int wide;    // elements that a thread moves at once
	int count;   // elements of a row in a thread's registers; 0: it does not fit
	Span spans[3];
	const char *at; // the element in the result, as C
} Rows;

// ---- who does what ------------------------------------------------------------------------------

// How threads share rows says the IR (lower/cuda/rows.c); without that rows are read again for each
// step, an element at a time.
static Rows rows_plan(KernelFunc *k)
{
	const Op *op = k->op;
	const bool across = row_is_across(op);
	Rows w = {.k = k,
	          .threads = (int)op_int(op, "threads", across ? ROW_DEEP : ROW_THREADS),
	          .wide = (int)op_int(op, "lanes", 1),
	          .count = (int)op_int(op, "held", 0)};
	row_axes(op, &w.begin, &w.end);
	w.at = across ? "(o * length + k) * inner + j" : "r * columns + j";
	w.spans[0] = (Span){0, w.begin, across ? "o" : "r"};
	w.spans[1] = (Span){w.begin, w.end, across ? "k" : "j"};
	if (across)
		w.spans[2] = (Span){w.end, op->results[0].type->rank, "j"};
	return w;
}

const Dim *cuda_rows_work(Context *c, const Op *op)
{
	const Dim *rows = row_count(c, op);
	return op_int(op, "threads", ROW_THREADS) == WARP ? dim_mul(c, rows, dim_const(c, WARP)) : rows;
}

// ---- what stands in the templates ---------------------------------------------------------------

// Element l of those that a thread has at hand.
static const char *element_name(const Rows *w, int l)
{
	if (!w->count)
		return arena_printf(w->k->arena, "x[%d]", l);
	return l ? arena_printf(w->k->arena, "row[i + %d]", l) : "row[i]";
}

// Where an element is along the axes [begin, end) of a span, taken as one.
static const char *span_position(const Rows *w, const Span *span, int begin, int end)
{
	const Dim *const *dims = w->k->op->results[0].type->dims;
	const char *behind = tile_product(w->k, span->end - end, dims + end);
	const Dim *front = dims_product(w->k->ctx, begin - span->begin, dims + span->begin),
			  *all = dims_product(w->k->ctx, end - begin, dims + begin);
	const char *q = strcmp(behind, "1")
	                    ? arena_printf(w->k->arena, "(%s / %s)", span->position, behind)
	                    : span->position;
	if (dim_is(all, 1))
		return "0";
	return dim_is(front, 1) ? q : arena_printf(w->k->arena, "(%s %% %s)", q, kernel_dim(w->k, all));
}

// Where it is along the axes [begin, end), which may belong to several spans.
static const char *axes_position(const Rows *w, int begin, int end)
{
	const Dim *const *dims = w->k->op->results[0].type->dims;
	const char *position = "0";
	for (const Span *span = w->spans; span < w->spans + COUNT_OF(w->spans); span++) {
		const int from = begin > span->begin ? begin : span->begin,
				  to = end < span->end ? end : span->end;
		if (from >= to)
			continue;
		const char *more = span_position(w, span, from, to);
		position = strcmp(position, "0")
		               ? arena_printf(w->k->arena, "(%s * %s + %s)", position,
		                              tile_product(w->k, to - from, dims + from), more)
		               : more;
	}
	return position;
}

// Names the position of the element, whose axes begin at argument `first`. Axes that are only read
// side by side count as one, so that a position seldom takes a division.
static void row_position(const Rows *w, Scalars *s, const Region *r, int first)
{
	const Type *t = w->k->op->results[0].type;
	const Block *b = region_entry(r);
	const Dim *extents[MAX_RANK + 1] = {dim_const(w->k->ctx, 1)};
	Loop loops[MAX_RANK + 1];
	memcpy(extents + first, t->dims, sizeof *extents * (size_t)t->rank);
	const int n = loops_merge(s, b, extents, loops);
	for (int l = 0, from = 0, to; l < n; l++, from = to) {
		for (to = from + 1; b->args[to - 1] != loops[l].arg; to++)
			;
		if (to > first)
			pointer_map_set(&s->names, loops[l].arg,
			                axes_position(w, from < first ? 0 : from - first, to - first));
	}
}

// Statements that evaluate what the row consists of; NULL after a diagnostic.
static const char *input_text(const Rows *w)
{
	const Region *r = &w->k->op->regions[0];
	const char *values[VECTOR_LANES];
	Scalars s;
	Text out;
	text_init(&out, w->k->arena);
	scalars_init(&s, w->k);
	row_position(w, &s, r, 0);
	if (!vector_region_print(&s, r, w->k->op->results[0].type->rank - 1, w->wide, NULL, &out,
	                         values))
		return NULL;
	for (int l = 0; l < w->wide; l++)
		text_line(&out, 0, "%s = %s;", element_name(w, l),
		          expression_unwrap(w->k->arena, values[l]));
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
	kernel_moves(w->k, DT_F32, w->wide);
	if (l == 0)
		text_line(out, 0, "const pd_vec<float, %d> %s = pd_load<%d>(%s + j);", w->wide,
		          operand ? "shifts" : "scales", w->wide, name);
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
	const char *lane = row_is_across(op) ? arena_printf(a, "[%d]", l) : "";
	if (op_bool(op, "log", false))
		return w->count ? arena_printf(a, "%s - shift%s", x, lane)
		                : arena_printf(a, "pd_softmax_shift(%s - top%s) - shift%s", x, lane, lane);
	return w->count
	           ? arena_printf(a, "%s * scale%s", x, lane)
	           : arena_printf(a, "expf(pd_softmax_shift(%s - top%s)) * scale%s", x, lane, lane);
}

static void store_print(const Rows *w, const char *const *values, Text *out)
{
	KernelFunc *k = w->k;
	const Value *result = &k->op->results[0];
	const DType t = result->type->dtype;
	const bool vector = w->wide > 1 && vector_aligned(result, w->wide);
	if (vector) {
		kernel_moves(k, t, w->wide);
		text_line(out, 0, "pd_vec<%s, %d> y;", dtype_c_memory(t), w->wide);
	}
	for (int l = 0; l < w->wide; l++) {
		const char *index = l ? arena_printf(k->arena, "%s + %d", w->at, l) : w->at;
		text_line(out, 0, "%s;",
		          vector ? scalar_store(k, t, "y.v", tile_int(k, l), values[l])
		                 : scalar_store(k, t, "out", index, values[l]));
	}
	if (vector)
		text_line(out, 0, "pd_store(out + %s, y);", w->at);
}

// Statements from what the kernel computed to the stored elements; NULL after a diagnostic.
static const char *output_text(const Rows *w)
{
	KernelFunc *k = w->k;
	const Region *r = &k->op->regions[1];
	const char *acc[VECTOR_LANES], *values[VECTOR_LANES];
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

// ---- the kernels --------------------------------------------------------------------------------

// The keys that all four templates have, and those of the ones that hold a row in registers; sets
// the bounds of a launch.
// Returns how many there are.
static int row_keys(const Rows *w, TemplateKey *keys)
{
	KernelFunc *k = w->k;
	const bool warp = w->threads == WARP && w->count;
	int n = 0;
	keys[n++] = (TemplateKey){"rows", kernel_dim(k, row_count(k->ctx, k->op))};
	keys[n++] = (TemplateKey){"columns", kernel_dim(k, row_length(k->ctx, k->op))};
	keys[n++] = (TemplateKey){"wide", tile_int(k, w->wide)};
	keys[n++] = (TemplateKey){"width", tile_int(k, w->count ? w->threads : w->threads * w->wide)};
	k->bounds = arena_printf(k->arena, "%d, 1", warp ? WARP_BLOCK : w->threads);
	if (!w->count)
		return n;
	keys[n++] = (TemplateKey){"count", tile_int(k, w->count)};
	keys[n++] = (TemplateKey){"group", warp ? "a warp" : "a block"};
	keys[n++] = (TemplateKey){"lane", warp ? "(int)threadIdx.x % 32" : "(int)threadIdx.x"};
	keys[n++] = (TemplateKey){
		"first", warp ? "((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32" : "blockIdx.x"};
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

// Rows that stand across memory.
static bool softmax_across_emit(Rows *w, bool log)
{
	KernelFunc *k = w->k;
	const Type *t = k->op->results[0].type;
	const Dim *inner = dims_product(k->ctx, t->rank - w->end, t->dims + w->end);
	k->skips = true;
	const char *input = input_text(w), *output = input ? output_text(w) : NULL;
	if (!output)
		return false;
	k->block_threads = ACROSS_BLOCK;
	k->bounds = arena_printf(k->arena, "%d, 1", ACROSS_BLOCK);
	k->per_block = ACROSS_BLOCK / w->threads;
	k->work = dim_mul(k->ctx, row_count(k->ctx, k->op),
	                  dim_div(k->ctx, inner, dim_const(k->ctx, w->wide)));
	const bool shared = w->threads > 1;
	TemplateKey keys[24];
	int n = 0;
	keys[n++] = (TemplateKey){"name", log ? "The logarithm of softmax" : "Softmax"};
	keys[n++] = (TemplateKey){"columns", kernel_dim(k, row_length(k->ctx, k->op))};
	keys[n++] = (TemplateKey){"inner", kernel_dim(k, inner)};
	keys[n++] = (TemplateKey){"rows", kernel_dim(k, row_count(k->ctx, k->op))};
	keys[n++] = (TemplateKey){"wide", tile_int(k, w->wide)};
	keys[n++] = (TemplateKey){"deep", tile_int(k, w->threads)};
	keys[n++] = (TemplateKey){"side", tile_int(k, k->per_block)};
	keys[n++] = (TemplateKey){"factor", log ? "shift" : "scale"};
	keys[n++] = (TemplateKey){"factor_of", log ? "logf(sum[l])" : "1.0f / sum[l]"};
	keys[n++] = (TemplateKey){"share_top",
	                          shared ? "top[l] = pd_columns_reduce(top[l], pd_max());" : ""};
	keys[n++] = (TemplateKey){"share_sum",
	                          shared ? "sum[l] = pd_columns_reduce(sum[l], pd_sum());" : ""};
	keys[n++] = (TemplateKey){"input", input};
	keys[n++] = (TemplateKey){"output", output};
	if (w->count) {
		keys[n++] = (TemplateKey){"count", tile_int(k, w->count)};
		keys[n++] = (TemplateKey){
			"term", log ? "row[i] = pd_softmax_shift(row[i] - top[l]);\nsum[l] += expf(row[i]);"
						: "row[i] = expf(pd_softmax_shift(row[i] - top[l]));\nsum[l] += row[i];"};
	}
	return kernel_template(k, w->count ? "cuda_softmax_across.c" : "cuda_softmax_across_long.c", n,
	                       keys);
}

bool cuda_softmax_emit(KernelFunc *k)
{
	Rows w = rows_plan(k);
	const bool log = op_bool(k->op, "log", false);
	if (row_is_across(k->op))
		return softmax_across_emit(&w, log);
	TemplateKey keys[24];
	int n = 0;
	keys[n++] = (TemplateKey){"name", log ? "The logarithm of softmax" : "Softmax"};
	keys[n++] = (TemplateKey){"factor", log ? "shift = logf(sum)" : "scale = 1.0f / sum"};
	if (!w.count)
		return rows_emit(&w, "cuda_softmax_long.c", n, keys);
	keys[n++] = (TemplateKey){
		"term", log ? "row[i] = pd_softmax_shift(row[i] - top);\nsum += expf(row[i]);"
					: "row[i] = expf(pd_softmax_shift(row[i] - top));\nsum += row[i];"};
	keys[n++] = (TemplateKey){"lowest", w.threads == WARP ? "" : ", -INFINITY"};
	return rows_emit(&w, "cuda_softmax.c", n, keys);
}

bool cuda_layer_norm_emit(KernelFunc *k)
{
	Rows w = rows_plan(k);
	TemplateKey keys[24];
	keys[0] = (TemplateKey){"epsilon",
	                        scalar_float(k->arena, DT_F32, op_float(k->op, "epsilon", 1e-5))};
	return tile_check_f32(k) &&
	       rows_emit(&w, w.count ? "cuda_layer_norm.c" : "cuda_layer_norm_long.c", 1, keys);
}
