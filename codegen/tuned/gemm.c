// Emits kernel.gemm: panels of packed columns, tiles of rows, the tile in registers. The operator
// table names it.
//
// A shared function (gemm_tile.c.in) sums one tile for any number of rows up to mr; each product
// gets thin loops around it with its sizes as constants and its epilogue over the finished tile.
#include "codegen/tuned/gemm.h"
#include "codegen/nest/ahead.h"
#include "codegen/nest/blocks.h"

#include <inttypes.h>
#include <string.h>

enum {
	INLINED_WORK = 64 * 64
}; // K * N up to which a call, and sizes that are not constants in it, would be felt

// Whether all panels are full, which one thread goes through.
static bool panels_are_full(const Gemm *g)
{
	return dim_is_const(g->n_dim) && g->n_dim->value >= g->nr && g->n_dim->value % g->nr == 0 &&
	       !g->k->units;
}

// Whether one function goes through all panels: they are full, or as many as a run finds, and one
// thread takes them.
static bool is_whole(const Gemm *g)
{
	return panels_are_full(g) || (!dim_is_const(g->n_dim) && !g->k->units);
}

// Whether there is one panel, which begins at column 0.
static bool panel_is_one(const Gemm *g)
{
	return panels_are_full(g) && dim_is(g->n_dim, g->nr);
}

// Whether some panel's columns take nv vectors. With N known there are two counts at most.
static bool vectors_needed(const Gemm *g, int nv)
{
	if (!dim_is_const(g->n_dim) || g->n_dim->value < 0)
		return true;
	const int64_t n = g->n_dim->value, left = n % g->nr;
	return (nv == g->nv && n >= g->nr) || (left > (nv - 1) * g->lanes && left <= nv * g->lanes);
}

// Calls for as many vectors as `cols` needs.
static const char *tile_calls(Gemm *g)
{
	KernelFunc *k = g->k;
	if (panels_are_full(g))
		return gemm_tile_helper(g, g->nv) ? gemm_tile_call(g, g->nv, "tile", tile_int(k, g->nr))
		                                  : NULL;
	if (!dim_is_const(g->n_dim) && g->nv > 1)
		return gemm_columns_helper(g) ? gemm_columns_call(g, "tile", tile_int(k, g->nr)) : NULL;
	Text t;
	text_init(&t, k->arena);
	bool first = true;
	for (int nv = g->nv; nv >= 1; nv--) {
		if (!vectors_needed(g, nv))
			continue;
		if (!gemm_tile_helper(g, nv))
			return NULL;
		if (nv > 1)
			text_printf(&t, "%sif (cols > %d)\n\t", first ? "" : "else ", (nv - 1) * g->lanes);
		else if (!first)
			text_str(&t, "else\n\t");
		text_printf(&t, "%s\n", gemm_tile_call(g, nv, "tile", tile_int(k, g->nr)));
		first = false;
	}
	return t.text ? t.text : "";
}

static const char *in_loop(Gemm *g, const char *head, const char *text, const char *end)
{
	Text t;
	text_init(&t, g->k->arena);
	text_printf(&t, "%s\n", head);
	tile_indent(&t, text);
	text_str(&t, end);
	return t.text;
}

// The loops over known panels in the function itself: all full ones, then what is left.
static void panel_loops(Gemm *g, const char **full, const char **last)
{
	KernelFunc *k = g->k;
	Arena *a = k->arena;
	const char *rows = g->block ? ", from, until" : "",
			   *first = arena_printf(a, "n0, %d%s", g->nr, rows);
	int64_t whole = g->n_dim->value / g->nr * g->nr, rest = g->n_dim->value - whole;
	*full = *last = "";
	if (whole == g->nr)
		*full = tile_pass_on(k, "", "_panel", arena_printf(a, "0, %d%s", g->nr, rows));
	else if (whole)
		*full = tile_pass_on(
			k, arena_printf(a, "for (int64_t n0 = 0; n0 < %" PRId64 "; n0 += %d)", whole, g->nr),
			"_panel", first);
	if (rest)
		*last = tile_pass_on(k, "", "_panel",
		                     arena_printf(a, "%" PRId64 ", %" PRId64 "%s", whole, rest, rows));
}

// The calls for the panel that the variable `panel` counts, which may be the last, of the rows, or
// products of a batch, that `part` says.
static const char *panel_calls(Gemm *g, const char *panel, const char *part)
{
	KernelFunc *k = g->k;
	Arena *a = k->arena;
	const char *n = kernel_dim(k, g->n_dim);
	const char *whole = arena_printf(a, "if (%s < %s / %d)", panel, n, g->nr);
	Text calls;
	text_init(&calls, a);
	if (dim_is_const(g->n_dim))
		whole = g->n_dim->value < g->nr ? NULL : g->n_dim->value % g->nr == 0 ? "" : whole;
	if (whole)
		text_printf(&calls, "%s\n",
		            tile_pass_on(k, whole, "_panel",
		                         arena_printf(a, "%s * %d, %d, %s", panel, g->nr, g->nr, part)));
	if (!whole || *whole)
		text_str(&calls, tile_pass_on(k, whole ? "else" : "", "_panel",
		                              arena_printf(a, "%s * %d, (int)(%s %% %d), %s", panel, g->nr,
		                                           n, g->nr, part)));
	return calls.text;
}

// The same where threads share panels, and the rows, or the products of a batch, of each; of rows
// in blocks, the blocks, and the panels of each.
static const char *panel_shares(Gemm *g, const char *inner)
{
	KernelFunc *k = g->k;
	if (!g->block)
		return tile_share(k, inner, panel_calls(g, "unit", "from, until"));
	const char *rows = block_range(k, "unit", kernel_dim(k, g->m_dim), g->block);
	return tile_share(k, inner,
	                  in_loop(g, "for (int64_t panel = from; panel < until; panel++) {",
	                          panel_calls(g, "panel", rows), "}\n"));
}

// acc, then the position in each dim: rows of one product, and the products of a batch, are counted
// through.
static const char *epilogue_text(Gemm *g, const char **value)
{
	KernelFunc *k = g->k;
	const Region *r = &k->op->regions[0];
	const char *args[MAX_RANK + 1];
	const Type *t = g->out;
	args[0] = g->sum_is_named ? "acc" : "sums[j]";
	tile_positions(k, r, "batch", 1, g->nlead, t->dims, args);
	tile_positions(k, r, "m", 1 + g->nlead, t->rank - 1 - g->nlead, t->dims + g->nlead, args);
	args[t->rank] = panel_is_one(g) ? "j" : "(n0 + j)";
	return region_text(k, r, args, value);
}

// What stands around the tiles of a panel: the loop over a batch, and which rows; of shared ones,
// how many products or tiles of rows a panel has.
typedef struct PanelLoops {
	const char *batch, *from, *until, *inner;
} PanelLoops;

static void panel_begin(Gemm *g, const Dim *rows, PanelLoops *x)
{
	KernelFunc *k = g->k;
	const bool batched = g->nlead > 0;
	const Dim *batches = dims_product(k->ctx, g->nlead, g->out->dims),
			  *inner = batched ? batches : tile_count(k, rows, g->mr);
	const Dim *panels = tile_count(k, g->n_dim, g->nr);
	*x = g->block ? (PanelLoops){"", "from", "until", NULL} : (PanelLoops){"", "0", "M", NULL};
	if (g->block) {
		if (kernel_share(k, dim_mul(k->ctx, tile_count(k, rows, (int)g->block), panels)))
			x->inner = kernel_dim(k, panels);
		return;
	}
	if (kernel_share(k, dim_mul(k->ctx, inner, panels)))
		x->inner = kernel_dim(k, inner);
	if (batched)
		x->batch = x->inner ? "for (int64_t batch = begin; batch < end; batch++)"
		                    : arena_printf(k->arena, "for (int64_t batch = 0; batch < %s; batch++)",
		                                   kernel_dim(k, batches));
	if (batched || !x->inner)
		return;
	x->from = tile_begin(k, "begin", "M", rows, g->mr);
	x->until = tile_begin(k, "end", "M", rows, g->mr);
}

// Where rows and panels begin: said in the calls where that is short, and there is one call.
static const char *operands_name(Gemm *g)
{
	Arena *a = g->k->arena;
	if (!g->nlead && panels_are_full(g)) {
		g->rows = g->turned ? "a + m0" : "a + m0 * K";
		g->panel = panel_is_one(g) ? "b" : "b + n0 * K";
		return "";
	}
	const bool whole = dim_is_const(g->n_dim) && g->n_dim->value % g->nr == 0;
	const char *columns = whole ? "N"
	                            : arena_printf(a, "((N + %d) / %d * %d)", g->nr - 1, g->nr, g->nr),
			   *row = g->turned  ? g->nlead ? "batch * K * M + m0" : "m0"
	                  : g->nlead ? "(batch * M + m0) * K"
	                             : "m0 * K",
			   *panel = panel_is_one(g) ? "batch * N * K"
	                    : g->nlead      ? arena_printf(a, "(batch * %s + n0) * K", columns)
	                                    : "n0 * K";
	g->rows = "rows";
	g->panel = "panel";
	return arena_printf(a, "const %s *rows = a + %s, *panel = b + %s;", g->type, row, panel);
}

// How much each tile fetches, where a run says so: with the sizes, or for each block of rows.
static const char *count_text(const Gemm *g, bool block)
{
	if (!*g->count || block != (g->block != 0))
		return "";
	return arena_printf(g->k->arena, block ? "const int64_t %s;\n" : ", %s", g->count);
}

// The tiles of a panel, in the loops over a batch, and over panels that are all full; NULL after a
// diagnostic.
static const char *tiles_text(Gemm *g, const PanelLoops *loops, const char *name, int n,
                              const TemplateKey *keys)
{
	Text t;
	text_init(&t, g->k->arena);
	if (!template_expand(g->k->ctx, &t, name, n, keys))
		return NULL;
	const char *text = *loops->batch ? in_loop(g, loops->batch, t.text, "") : t.text;
	Arena *a = g->k->arena;
	const char *cols = panels_are_full(g)
	                       ? ""
	                       : arena_printf(a, "const int cols = N - n0 < %d ? (int)(N - n0) : %d;\n",
	                                      g->nr, g->nr);
	if (is_whole(g) && !panel_is_one(g))
		text = in_loop(g, arena_printf(a, "for (int64_t n0 = 0; n0 < N; n0 += %d) {", g->nr),
		               arena_printf(a, "%s%s", cols, text), "}\n");
	text = arena_printf(a, "%s%s", count_text(g, true), text);
	return g->block && is_whole(g) ? block_loop(g->k, "M", g->block, text) : text;
}

// Full panels whose sums are the result.
static const char *sums_text(Gemm *g, const PanelLoops *loops, const char *end,
                             const char *operands, const char *at)
{
	const TemplateKey keys[] = {{"m_from", loops->from},
	                            {"m_until", loops->until},
	                            {"end", end},
	                            {"operands", operands},
	                            {"tile_calls", gemm_tile_call(g, g->nv, at, "N")}};
	return gemm_tile_helper(g, g->nv) ? tiles_text(g, loops, "gemm_sums.c", COUNT_OF(keys), keys)
	                                  : NULL;
}

// Sums that go through the epilogue.
static const char *epilogues_text(Gemm *g, const PanelLoops *loops, const char *end,
                                  const char *operands, const char *at)
{
	KernelFunc *k = g->k;
	const bool full = panels_are_full(g);
	const bool whole = !dim_is_const(g->n_dim) || g->n_dim->value >= g->nr;
	const char *value, *epilogue = epilogue_text(g, &value), *calls = tile_calls(g), *direct = "";
	if (!epilogue || !calls)
		return NULL;
	if (!full && whole && g->direct)
		direct = arena_printf(k->arena, "if (cols == %d) {\n\t%s\n\tcontinue;\n}", g->nr,
		                      gemm_tile_call(g, g->nv, at, "N"));
	const TemplateKey keys[] = {
		{"m_from", loops->from},
		{"m_until", loops->until},
		{"end", end},
		{"operands", operands},
		{"direct", direct},
		{"mr", tile_int(k, g->mr)},
		{"nr", tile_int(k, g->nr)},
		{"tile_calls", calls},
		{"type", dtype_c_memory(g->out->dtype)},
		{"out_row", arena_printf(k->arena, "out + %s * N%s", g->nlead ? "(batch * M + m)" : "m",
	                             panel_is_one(g) ? "" : " + n0")},
		{"cols", full ? tile_int(k, g->nr) : "cols"},
		{"sum", g->type},
		{"acc", g->sum_is_named ? arena_printf(k->arena, "const %s acc = sums[j];", g->type) : ""},
		{"epilogue", epilogue},
		{"store", scalar_store(k, g->out->dtype, "to", "j", value)},
	};
	return tiles_text(g, loops, "gemm_tiles.c", COUNT_OF(keys), keys);
}

// A function for one panel, full or not, and one that calls it for all.
static bool panels_print(Gemm *g, const PanelLoops *loops, const TemplateKey *common, int ncommon)
{
	KernelFunc *k = g->k;
	const char *full, *last = "";
	if (loops->inner)
		full = panel_shares(g, loops->inner);
	else
		panel_loops(g, &full, &last);
	if (!loops->inner && g->block) {
		const char *all = arena_printf(k->arena, "%s%s%s\n", full, *full && *last ? "\n" : "",
		                               last);
		full = block_loop(k, kernel_dim(k, g->m_dim), g->block, all);
		last = "";
	}
	if (!full)
		return false;
	const TemplateKey own[] = {
		{"full_panels", full},
		{"last_panel", last},
		{"sizes", loops->inner || g->block ? tile_sizes(k) : ""},
		{"part", g->block       ? "const int64_t from, const int64_t until, "
	             : loops->inner ? "const int64_t begin, const int64_t end, "
	                            : ""},
		{"range", kernel_range(k)},
	};
	return kernel_template_joined(k, "gemm.c", ncommon, common, COUNT_OF(own), own);
}

// How many rows of a meet all panels before the next rows do; 0: all.
static int64_t rows_of_block(const Gemm *g, const Dim *depth)
{
	enum { LEAST = 24, MOST = 192, OPEN = 2730 }; // rows; bytes
	if (g->nlead || g->inlined || !dim_is_const(depth) || depth->value < 1 ||
	    dim_is(g->n_dim, g->nr))
		return 0;
	const int64_t row = depth->value * (int64_t)dtype_size(op_operand(g->k->op, 1)->type->dtype);
	return block_size(g->m_dim, &(BlockRule){.bytes = row,
	                                         .panel = row * g->nr,
	                                         .least = LEAST,
	                                         .most = MOST,
	                                         .filled = MOST,
	                                         .open = row > OPEN});
}

// Whether tiles fetch the next panel meanwhile: weights are many, and rows are not few.
static bool reads_ahead(const Gemm *g, const Dim *depth)
{
	enum { FEW = 3 };
	const Dim *n = g->n_dim;
	if (g->nlead || g->inlined || !dim_is_const(n) || !dim_is_const(depth) || n->value <= g->nr)
		return false;
	const size_t size = dtype_size(op_operand(g->k->op, 1)->type->dtype);
	return ahead_pays(n->value * depth->value * (int64_t)size) &&
	       !(dim_is_const(g->m_dim) && g->m_dim->value <= FEW);
}

// Sets what they fetch, and what functions are called that do; false after a diagnostic.
static bool ahead_set(Gemm *g, const Dim *depth)
{
	KernelFunc *k = g->k;
	g->ahead = g->count = "";
	if (!reads_ahead(g, depth))
		return true;
	const bool open = !dim_is_const(g->m_dim);
	const int64_t rows = open ? 0 : g->block ? g->block : g->m_dim->value;
	const char *extent = !g->block ? "M" : open ? "(until - from)" : tile_int(k, rows);
	const int64_t columns = (g->n_dim->value + g->nr - 1) / g->nr * g->nr;
	const Ahead a = {
		.base = "b",
		.panel = arena_printf(k->arena, "(n0 + %d) %% %s", g->nr,
	                          columns == g->n_dim->value ? "N" : tile_int(k, columns)),
		.first = g->block ? "(m0 - from)" : "m0",
		.extent = extent,
		.depth = "K",
		.count = open ? arena_printf(k->arena, "(%s + %d) / %d", g->block ? "until - from" : "M",
	                                 g->mr - 1, g->mr)
	                  : NULL,
		.tiles = (rows + g->mr - 1) / g->mr,
		.width = g->nr,
	};
	const char *share = ahead_share(k, &a);
	if (!share)
		return false;
	g->ahead = arena_printf(k->arena, ", %s", share);
	g->count = ahead_count(k, &a);
	g->name = arena_printf(k->arena, "%s_ahead", g->name);
	return true;
}

static bool gemm_print(Gemm *g)
{
	KernelFunc *k = g->k;
	Arena *a = k->arena;
	const Type *t = g->out;
	const Dim *depth = op_attr(k->op, "k")->dim;
	const Dim *rows = dims_product(k->ctx, t->rank - 1 - g->nlead, t->dims + g->nlead);
	PanelLoops loops;
	g->m_dim = rows;
	g->block = rows_of_block(g, depth);
	if (!ahead_set(g, depth))
		return false;
	const char *m = kernel_dim(k, rows); // before calls that pass on the sizes there are
	panel_begin(g, rows, &loops);
	const bool full = panels_are_full(g);
	const char *at = arena_printf(a, "out + %s * N%s", g->nlead ? "(batch * M + m0)" : "m0",
	                              panel_is_one(g) ? "" : " + n0"),
			   *operands = operands_name(g),
			   *end = g->block ? tile_end_within(k, "m0", "until", g->mr)
	                           : tile_end(k, "m0", "M", rows, g->mr);
	const char *tiles = !end ? NULL
	                         : (full && g->direct ? sums_text : epilogues_text)(g, &loops, end,
	                                                                            operands, at);
	if (!tiles)
		return false;
	const TemplateKey keys[] = {
		{"rows", g->block && !is_whole(g) && !g->turned
	                 ? "" // a panel is told which rows it meets
	                 : arena_printf(a, "M = %s, ", expression_unwrap(a, m))},
		{"n", expression_unwrap(a, kernel_dim(k, g->n_dim))},
		{"k", expression_unwrap(a, kernel_dim(k, depth))},
		{"count", count_text(g, false)},
		{"tiles", tiles},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
	};
	return is_whole(g) ? kernel_template(k, "gemm_whole.c", COUNT_OF(keys), keys)
	                   : panels_print(g, &loops, keys, COUNT_OF(keys));
}

// Products in loops are often a row times a small matrix: less work than it is to get there.
static int rows_inlined(const Gemm *g, const Dim *depth)
{
	int64_t rows = 1;
	for (int i = g->nlead; i < g->out->rank - 1; i++) {
		if (!dim_is_const(g->out->dims[i]) || g->out->dims[i]->value > g->mr)
			return 0;
		rows *= g->out->dims[i]->value;
	}
	bool small = dim_is_const(depth) && dim_is_const(g->n_dim) && depth->value <= INLINED_WORK &&
	             g->n_dim->value <= INLINED_WORK && depth->value * g->n_dim->value <= INLINED_WORK;
	return small && rows > 0 && rows <= g->mr ? (int)rows : 0;
}

// How wide the panels of the operand are that is packed; NULL after a diagnostic.
static const Dim *panel_width(const Gemm *g, const Type *b, const Attr *depth)
{
	const Type *out = g->out;
	const Dim *nr = b->rank >= 3 ? b->dims[b->rank - 1] : NULL;
	if (nr && dim_is_const(nr) && nr->value % g->lanes == 0 && nr->value <= 8 * g->lanes &&
	    out->rank >= 2 && depth && b->rank - 3 <= out->rank - 2)
		return nr;
	diag_error(g->k->ctx->diag, g->k->op->loc,
	           "kernel.gemm: operands are not packed for this target");
	return NULL;
}

bool kernel_gemm_emit(KernelFunc *k)
{
	const Type *b = op_operand(k->op, 1)->type, *out = k->op->results[0].type;
	const Attr *depth = op_attr(k->op, "k");
	const DType t = b->dtype;
	const bool turned = op_bool(k->op, "transpose_a", false);
	if (!tile_check_elements(k, t == DT_F64 ? t : DT_F32))
		return false;
	Gemm g = {.k = k,
	          .type = dtype_c_memory(t),
	          .v = tile_vector_name(t),
	          .name = arena_printf(k->arena, "gemm%s%s", t == DT_F64 ? "_f64" : "",
	                               turned ? "_turned" : ""),
	          .turned = turned,
	          .lanes = target_lanes(k->target, t),
	          .out = out};
	const Dim *nr = panel_width(&g, b, depth);
	if (!nr)
		return false;
	g.nr = (int)nr->value;
	g.nv = g.nr / g.lanes;
	g.mr = tile_height(k->target->gemm_mr, k->target->gemm_nv, g.nv);
	g.nlead = b->rank - 3;
	g.n_dim = out->dims[out->rank - 1];
	g.direct = region_is_identity(&k->op->regions[0]) && out->dtype == t;
	const Value *sum = region_entry(&k->op->regions[0])->args[0];
	g.sum_is_named = sum->uses && sum->uses->next;
	g.inlined = rows_inlined(&g, depth->dim);
	return tile_vectors(k, t) && gemm_print(&g);
}
