// Emits kernel.attention for CUDA: tiles of rows against tiles of keys, or single rows against keys that the warps of a block
// share. Called by run.c through cuda.c.
#include "cuda_rows.h"

#include "cuda_vector.h"
#include "kernel_tile.h"

#include <string.h>

enum {
	SMALL = 64,      // columns up to which a thread has 8 rows
	FEW_ROWS = 4,    // so few are taken one by one
	LOW_ROWS = 32    // so few do not fill a high tile
};

typedef struct Attention {
	KernelFunc *k;
	const Type *domain[ATTENTION_REGIONS];
	int rank;
	int64_t depth, columns;
	bool single;   // a block for each row
	int r, c;      // rows of a thread, keys that it has scores for
} Attention;

static Attention attention_plan(Context *c, KernelFunc *k, const Op *op)
{
	Attention a = {.k = k};
	for (int i = 0; i < ATTENTION_REGIONS; i++)
		a.domain[i] = attention_domain(op, i);
	const Type *query = a.domain[ATTENTION_QUERY];
	a.rank = query->rank;
	a.depth = query->dims[a.rank - 1]->value;
	a.columns = a.domain[ATTENTION_VALUE]->dims[a.rank - 1]->value;
	const Dim *rows = query->dims[a.rank - 2];
	const bool wide = a.depth > SMALL || a.columns > SMALL, low = dim_is_const(rows) && rows->value <= LOW_ROWS;
	a.single = dim_is_const(rows) && rows->value <= FEW_ROWS;
	a.r = wide || low ? 4 : 8;
	a.c = wide ? 1 : 2;
	return a;
}

static const Dim *batch_count(Context *c, const Attention *a)
{
	const Dim *n = dim_const(c, 1);
	for (int i = 0; i < a->rank - 2; i++)
		n = dim_mul(c, n, a->domain[ATTENTION_QUERY]->dims[i]);
	return n;
}

const Dim *cuda_attention_blocks(Context *c, const Op *op)
{
	const Attention a = attention_plan(c, NULL, op);
	const Dim *rows = a.domain[ATTENTION_QUERY]->dims[a.rank - 2];
	const int high = a.single ? 1 : 8 * a.r;
	return dim_mul(c, batch_count(c, &a), dim_div(c, dim_add(c, rows, dim_const(c, high - 1)), dim_const(c, high)));
}

// ---- regions -----------------------------------------------------------------------------------------------

// What axis i of the region's positions is called.
static const char *axis_name(const Attention *a, int region, int i, const char *row, const char *column)
{
	const int axis = region == ATTENTION_EPILOGUE ? attention_axis(a->k->op, i) : i;
	if (dim_is(a->domain[region]->dims[i], 1))
		return "0";
	return axis == a->rank - 1 ? column : axis == a->rank - 2 ? row : arena_printf(a->k->arena, "at%d", axis);
}

static void region_names(const Attention *a, Scalars *s, int region, const char *row, const char *column)
{
	const Block *b = region_entry(&a->k->op->regions[region]);
	const int first = b->narg - a->rank;
	scalars_init(s, a->k);
	for (int i = 0; i < a->rank; i++)
		pointer_map_set(&s->names, b->args[first + i], axis_name(a, region, i, row, column));
}

// The statements of a region for one position, and what it yields; NULL after a diagnostic.
static const char *region_at(const Attention *a, int region, const char *row, const char *column, const char **value)
{
	const Region *r = &a->k->op->regions[region];
	const int last = region_entry(r)->narg - 1;
	Scalars s;
	Text out;
	text_init(&out, a->k->arena);
	region_names(a, &s, region, row, column);
	if (!vector_region_print(&s, r, last, 1, last == a->rank ? (const char *[]){"acc"} : NULL, &out, value))
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

// Fills x[4] with the elements at `row` and four columns from d on; behind the last there are zeros.
static const char *four_text(const Attention *a, int region, const char *row)
{
	KernelFunc *k = a->k;
	const Region *r = &k->op->regions[region];
	const int64_t n = a->domain[region]->dims[a->rank - 1]->value;
	const char *values[4];
	Text out;
	text_init(&out, k->arena);
	if (n % 4 == 0 && vector_suits(r, a->rank - 1, 4)) {
		Scalars s;
		region_names(a, &s, region, row, "d");
		if (!vector_region_print(&s, r, a->rank - 1, 4, NULL, &out, values))
			return NULL;
		for (int l = 0; l < 4; l++)
			text_line(&out, 0, "x[%d] = %s;", l, expression_unwrap(k->arena, values[l]));
		return guarded(a, region, out.text);
	}
	const char *text = region_at(a, region, row, "(d + l)", values);
	if (!text)
		return NULL;
	text_line(&out, 0, "PD_UNROLL for (int l = 0; l < 4; l++) {");
	if (n % 4) {
		text_line(&out, 1, "if (d + l >= %s)", tile_int(k, n));
		text_line(&out, 2, "continue;");
	}
	indented_print(text, &out);
	text_line(&out, 1, "x[l] = %s;", expression_unwrap(k->arena, values[0]));
	text_line(&out, 0, "}");
	return out.text;
}

// The positions of a block's batch, and its row.
static const char *positions_text(const Attention *a, const char *batch)
{
	KernelFunc *k = a->k;
	Text out;
	text_init(&out, k->arena);
	const Type *t = a->domain[ATTENTION_QUERY];
	for (int i = 0; i < a->rank - 2; i++)
		if (!dim_is(t->dims[i], 1)) // the place of the result takes all others
			text_line(&out, 0, "const int64_t at%d = %s;", i,
			          expression_unwrap(k->arena, tile_position(k, batch, a->rank - 2, t->dims, i)));
	if (a->single && !dim_is(t->dims[a->rank - 2], 1))
		text_line(&out, 0, "const int64_t i = t %% rows;");
	return out.text ? out.text : "";
}

// ---- the kernels -----------------------------------------------------------------------------------------------

static const char *store_text(const Attention *a, const char *value)
{
	const Type *t = a->k->op->results[0].type;
	const char *index[MAX_RANK];
	for (int i = 0; i < a->rank; i++)
		index[i] = axis_name(a, ATTENTION_EPILOGUE, i, "i", "column");
	return scalar_store(a->k, t->dtype, "out", expression_unwrap(a->k->arena, scalar_linear(a->k, t, a->rank, index)), value);
}

// The keys that both templates have; returns how many, 0 after a diagnostic.
static int attention_keys(const Attention *a, TemplateKey *keys)
{
	KernelFunc *k = a->k;
	const char *score, *result, *text;
	int n = 0;
	keys[n++] = (TemplateKey){"rows", kernel_dim(k, a->domain[ATTENTION_QUERY]->dims[a->rank - 2])};
	keys[n++] = (TemplateKey){"keys", kernel_dim(k, a->domain[ATTENTION_VALUE]->dims[a->rank - 2])};
	keys[n++] = (TemplateKey){"batches", kernel_dim(k, batch_count(k->ctx, a))};
	keys[n++] = (TemplateKey){"depth4", tile_int(k, (a->depth + 3) / 4)};
	keys[n++] = (TemplateKey){"columns", tile_int(k, a->columns)};
	keys[n++] = (TemplateKey){"positions", positions_text(a, a->single ? "(t / rows)" : "(t / row_tiles)")};
	keys[n++] = (TemplateKey){"query", four_text(a, ATTENTION_QUERY, "i")};
	keys[n++] = (TemplateKey){"key", four_text(a, ATTENTION_KEY, "j")};
	if (!(text = region_at(a, ATTENTION_SCORE, "i", "j", &score)))
		return 0;
	text = arena_printf(k->arena, "%s%s = %s;\n", text, a->single ? "s" : "s[r][c]", expression_unwrap(k->arena, score));
	keys[n++] = (TemplateKey){"score", guarded(a, ATTENTION_SCORE, text)};
	keys[n] = (TemplateKey){"epilogue", region_at(a, ATTENTION_EPILOGUE, "i", "column", &result)};
	if (!keys[n++].text || !keys[n - 2].text || !keys[n - 3].text || !keys[n - 4].text)
		return 0;
	keys[n++] = (TemplateKey){"store", store_text(a, result)};
	return n;
}

static bool tiles_emit(const Attention *a, int n, TemplateKey *keys)
{
	KernelFunc *k = a->k;
	const int64_t rows = 8 * a->r, tile = 16 * a->c, depth4 = (a->depth + 3) / 4, e = (a->columns + 15) / 16;
	const int64_t columns4 = 4 * e; // zeros behind the last
	keys[n++] = (TemplateKey){"value", four_text(a, ATTENTION_VALUE, "j")};
	if (!keys[n - 1].text)
		return false;
	k->block_threads = 128;
	keys[n++] = (TemplateKey){"r", tile_int(k, a->r)};
	keys[n++] = (TemplateKey){"c", tile_int(k, a->c)};
	keys[n++] = (TemplateKey){"e", tile_int(k, e)};
	keys[n++] = (TemplateKey){"tile_rows", tile_int(k, rows)};
	keys[n++] = (TemplateKey){"tile_keys", tile_int(k, tile)};
	keys[n++] = (TemplateKey){"stride", tile_int(k, 4 * (depth4 | 1))};
	keys[n++] = (TemplateKey){"value_stride", tile_int(k, 16 * e)};
	keys[n++] = (TemplateKey){"weight_stride", tile_int(k, tile + 4)};
	keys[n++] = (TemplateKey){"columns4", tile_int(k, columns4)};
	keys[n++] = (TemplateKey){"key_loads", tile_int(k, (tile * depth4 + 127) / 128)};
	keys[n++] = (TemplateKey){"value_loads", tile_int(k, (tile * columns4 + 127) / 128)};
	return kernel_template(k, "cuda_attention.c", n, keys);
}

static bool rows_emit(const Attention *a, int n, TemplateKey *keys)
{
	KernelFunc *k = a->k;
	const char *value, *text = region_at(a, ATTENTION_VALUE, "from", "column", &value);
	if (!text)
		return false;
	k->block_threads = 256;
	keys[n++] = (TemplateKey){"value", arena_printf(k->arena, "%ssums[e] += p * %s;\n", text, value)};
	keys[n++] = (TemplateKey){"e", tile_int(k, (a->columns + 31) / 32)};
	keys[n++] = (TemplateKey){"key_loads", tile_int(k, (a->depth + 31) / 32)};
	return kernel_template(k, "cuda_attention_row.c", n, keys);
}

bool cuda_attention_emit(KernelFunc *k)
{
	const Attention a = attention_plan(k->ctx, k, k->op);
	TemplateKey keys[32];
	k->skips = true;
	const int n = attention_keys(&a, keys);
	return n && (a.single ? rows_emit(&a, n, keys) : tiles_emit(&a, n, keys));
}
