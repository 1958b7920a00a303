// Emits kernel.gemm: panels of packed columns, tiles of rows, the tile in registers. Called by
// codegen.c.
//
// A shared function (gemm_tile.c.in) sums one tile for any number of rows up to mr; each product
// gets thin loops around it with its sizes as constants and its epilogue over the finished tile.
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

typedef struct Gemm {
	KernelFunc *k;
	int lanes, mr, nv, nr;
	const Type *out;
	int nlead; // dims of the result in front of the rows that a panel of b serves
	const Dim *n_dim;
	bool direct;       // its sums are the result
	bool sum_is_named; // since the epilogue reads it more than once
	int inlined; // rows of the only tile, when the product is so small that the tile's code stands
	             // in it; 0: shared
} Gemm;

enum {
	INLINED_WORK = 64 * 64
}; // K * N up to which a call, and sizes that are not constants in it, would be felt

// The vectors of the panel that a step of the depth needs, as `w`, and what they add to a row: no
// loop where there is one.
static const char *row_weights(const Gemm *g, int nv)
{
	Arena *a = g->k->arena;
	return nv == 1 ? arena_printf(a, "const vf w = vf_load(panel + (p + s) * %d);", g->nr)
	               : arena_printf(a,
	                              "vf w[%d];\nPD_UNROLL\nfor (int v = 0; v < %d; v++)\n"
	                              "\tw[v] = vf_load(panel + (p + s) * %d + v * %d);",
	                              nv, nv, g->nr, g->lanes);
}

static const char *row_products(const Gemm *g, int nv)
{
	if (nv == 1)
		return "sum[s * rows + i] = vf_multiply_add(sum[s * rows + i], x, w);";
	const char *sum = arena_printf(g->k->arena, "sum[(s * rows + i) * %d + v]", nv);
	return arena_printf(g->k->arena,
	                    "PD_UNROLL\nfor (int v = 0; v < %d; v++)\n"
	                    "\t%s = vf_multiply_add(%s, x, w[v]);",
	                    nv, sum, sum);
}

static bool tile_helper(Gemm *g, int nv)
{
	KernelFunc *k = g->k;
	Text cases;
	text_init(&cases, k->arena);
	int sums = 0;
	for (int rows = 1; rows <= g->mr; rows++) {
		int split = tile_split(rows, nv);
		sums = split * rows * nv > sums ? split * rows * nv : sums;
		text_printf(&cases, "%s: gemm_rows_%dof%d(%d, %d, a, lda, panel, k, out, ldo); break;\n",
		            tile_case(k, rows, g->mr), nv, g->nr, rows, split);
	}
	// Where sum i goes: with one vector in a row, i is the row.
	const char *row = nv == 1 ? "i" : arena_printf(k->arena, "i / %d", nv);
	const char *column = nv == 1 ? "" : arena_printf(k->arena, " + i %% %d * %d", nv, g->lanes);
	const TemplateKey rows[] = {
		{"rows", tile_int(k, g->mr)},
		{"nv", tile_int(k, nv)},
		{"nr", tile_int(k, g->nr)},
		{"sums", tile_int(k, sums)},
		{"row", row},
		{"column", column},
		{"weights", row_weights(g, nv)},
		{"products", row_products(g, nv)},
	};
	if (!kernel_helper(k, "gemm_rows.c", COUNT_OF(rows), rows))
		return false;
	const TemplateKey tile[] = {
		{"nv", tile_int(k, nv)}, {"nr", tile_int(k, g->nr)}, {"cases", cases.text}};
	return g->inlined || kernel_helper(k, "gemm_tile.c", COUNT_OF(tile), tile);
}

// One tile of `cols` columns, `nv` vectors wide.
static const char *tile_call(const Gemm *g, int nv, const char *out, const char *ldo)
{
	Arena *a = g->k->arena;
	if (g->inlined)
		return arena_printf(a, "gemm_rows_%dof%d(%d, %d, rows, K, panel, K, %s, %s);", nv, g->nr,
		                    g->inlined, tile_split(g->inlined, nv), out, ldo);
	return arena_printf(a, "gemm_tile_%dof%d((int)(m1 - m0), rows, K, panel, K, %s, %s);", nv,
	                    g->nr, out, ldo);
}

// Whether all panels are full and there are several, which one thread goes through: one function
// has them all.
static bool panels_are_full(const Gemm *g)
{
	return dim_is_const(g->n_dim) && g->n_dim->value > g->nr && g->n_dim->value % g->nr == 0 &&
	       !g->k->units;
}

// Calls for as many vectors as `cols` needs. With N known there are two counts at most.
static const char *tile_calls(Gemm *g)
{
	KernelFunc *k = g->k;
	bool needed[9] = {false};
	if (panels_are_full(g))
		return tile_helper(g, g->nv) ? tile_call(g, g->nv, "tile", tile_int(k, g->nr)) : NULL;
	int64_t n = dim_is_const(g->n_dim) ? g->n_dim->value : -1;
	for (int nv = 1; nv <= g->nv; nv++)
		needed[nv] = n < 0 || (nv == g->nv && n >= g->nr) ||
		             (n % g->nr > (nv - 1) * g->lanes && n % g->nr <= nv * g->lanes);
	Text t;
	text_init(&t, k->arena);
	bool first = true;
	for (int nv = g->nv; nv >= 1; nv--) {
		if (!needed[nv])
			continue;
		if (!tile_helper(g, nv))
			return NULL;
		if (nv > 1)
			text_printf(&t, "%sif (cols > %d)\n\t", first ? "" : "else ", (nv - 1) * g->lanes);
		else if (!first)
			text_str(&t, "else\n\t");
		text_printf(&t, "%s\n", tile_call(g, nv, "tile", tile_int(k, g->nr)));
		first = false;
	}
	return t.text ? t.text : "";
}

// The loops over panels in the function itself: all full ones, then what is left.
static void panel_loops(Gemm *g, const char **full, const char **last)
{
	KernelFunc *k = g->k;
	Arena *a = k->arena;
	const char *n = kernel_dim(k, g->n_dim);
	const char *first = arena_printf(a, "n0, %d", g->nr);
	if (!dim_is_const(g->n_dim)) {
		*full = tile_pass_on(
			k, arena_printf(a, "for (int64_t n0 = 0; n0 + %d <= %s; n0 += %d)", g->nr, n, g->nr),
			"_panel", first);
		*last = tile_pass_on(
			k, arena_printf(a, "if (%s %% %d)", n, g->nr), "_panel",
			arena_printf(a, "%s / %d * %d, (int)(%s %% %d)", n, g->nr, g->nr, n, g->nr));
		return;
	}
	int64_t whole = g->n_dim->value / g->nr * g->nr, rest = g->n_dim->value - whole;
	*full = *last = "";
	if (whole == g->nr)
		*full = tile_pass_on(k, "", "_panel", arena_printf(a, "0, %d", g->nr));
	else if (whole)
		*full = tile_pass_on(
			k, arena_printf(a, "for (int64_t n0 = 0; n0 < %" PRId64 "; n0 += %d)", whole, g->nr),
			"_panel", first);
	if (rest)
		*last = tile_pass_on(k, "", "_panel",
		                     arena_printf(a, "%" PRId64 ", %" PRId64, whole, rest));
}

// The same where threads share panels, and the rows, or the products of a batch, of each.
static void panel_shares(Gemm *g, const char *inner, const char **full, const char **last)
{
	KernelFunc *k = g->k;
	Arena *a = k->arena;
	const char *n = kernel_dim(k, g->n_dim);
	const char *whole = arena_printf(a, "if (unit < %s / %d)", n, g->nr);
	Text calls;
	text_init(&calls, a);
	if (dim_is_const(g->n_dim))
		whole = g->n_dim->value < g->nr ? NULL : g->n_dim->value % g->nr == 0 ? "" : whole;
	if (whole)
		text_printf(&calls, "%s\n",
		            tile_pass_on(k, whole, "_panel",
		                         arena_printf(a, "unit * %d, %d, from, until", g->nr, g->nr)));
	if (!whole || *whole)
		text_str(&calls, tile_pass_on(k, whole ? "else" : "", "_panel",
		                              arena_printf(a, "unit * %d, (int)(%s %% %d), from, until",
		                                           g->nr, n, g->nr)));
	*full = tile_share(k, inner, calls.text);
	*last = "";
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
	for (int i = 0; i < t->rank; i++) {
		args[1 + i] = "0";
		if (!region_uses(r, 1 + i))
			continue;
		if (i == t->rank - 1)
			args[1 + i] = "(n0 + j)";
		else if (i < g->nlead)
			args[1 + i] = tile_position(k, "batch", g->nlead, t->dims, i);
		else
			args[1 + i] = tile_position(k, "m", t->rank - 1 - g->nlead, t->dims + g->nlead,
			                            i - g->nlead);
	}
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
	*x = (PanelLoops){"", "0", "M", NULL};
	if (kernel_share(k, dim_mul(k->ctx, inner, tile_count(k, g->n_dim, g->nr))))
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

// Full panels whose sums are the result.
static bool direct_print(Gemm *g, const char *at, const TemplateKey *common, int ncommon)
{
	const TemplateKey own[] = {{"tile_calls", tile_call(g, g->nv, at, "N")}};
	return tile_helper(g, g->nv) &&
	       kernel_template_joined(g->k, "gemm_direct.c", ncommon, common, COUNT_OF(own), own);
}

// A function for one panel, full or not, and one that calls it for all.
static bool panels_print(Gemm *g, const PanelLoops *loops, const char *at,
                         const TemplateKey *common, int ncommon)
{
	KernelFunc *k = g->k;
	const bool whole = !dim_is_const(g->n_dim) || g->n_dim->value >= g->nr;
	const char *full, *last, *direct = "";
	if (whole && g->direct)
		direct = arena_printf(k->arena, "if (cols == %d) {\n\t%s\n\tcontinue;\n}", g->nr,
		                      tile_call(g, g->nv, at, "N"));
	if (loops->inner)
		panel_shares(g, loops->inner, &full, &last);
	else
		panel_loops(g, &full, &last);
	const TemplateKey own[] = {
		{"direct", direct},
		{"full_panels", full},
		{"last_panel", last},
		{"sizes", loops->inner ? tile_sizes(k) : ""},
		{"part", loops->inner ? "const int64_t begin, const int64_t end, " : ""},
		{"m_from", loops->from},
		{"m_until", loops->until},
		{"range", kernel_range(k)},
	};
	return kernel_template_joined(k, "gemm.c", ncommon, common, COUNT_OF(own), own);
}

static bool gemm_print(Gemm *g)
{
	KernelFunc *k = g->k;
	Arena *a = k->arena;
	const Type *t = g->out;
	bool batched = g->nlead > 0;
	const Dim *rows = dims_product(k->ctx, t->rank - 1 - g->nlead, t->dims + g->nlead);
	PanelLoops loops;
	panel_begin(g, rows, &loops);
	const char *first_row = batched ? "(batch * M + m0)" : "m0";
	const char *panel = batched ? arena_printf(a, "b + (batch * ((N + %d) / %d * %d) + n0) * K",
	                                           g->nr - 1, g->nr, g->nr)
	                            : "b + n0 * K";
	const char *end = tile_end(k, "m0", "M", rows, g->mr);
	if (!end)
		return false;
	const TemplateKey keys[] = {
		{"m", expression_unwrap(a, kernel_dim(k, rows))},
		{"end", end},
		{"n", expression_unwrap(a, kernel_dim(k, g->n_dim))},
		{"k", expression_unwrap(a, kernel_dim(k, op_attr(k->op, "k")->dim))},
		{"nr", tile_int(k, g->nr)},
		{"batch_loop", loops.batch},
		{"a_rows", arena_printf(a, "a + %s * K", first_row)},
		{"panel", panel},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
	};
	const char *at = arena_printf(a, "out + %s * N + n0", first_row);
	if (panels_are_full(g) && g->direct)
		return direct_print(g, at, keys, COUNT_OF(keys));
	const char *value, *epilogue = epilogue_text(g, &value), *calls = tile_calls(g);
	if (!epilogue || !calls)
		return false;
	const TemplateKey tile[] = {
		{"mr", tile_int(k, g->mr)},
		{"tile_calls", calls},
		{"acc", g->sum_is_named ? "const float acc = sums[j];" : ""},
		{"out_row", arena_printf(a, "out + %s * N + n0", batched ? "(batch * M + m)" : "m")},
		{"type", dtype_c_memory(t->dtype)},
		{"epilogue", epilogue},
		{"store", scalar_store(k, t->dtype, "to", "j", value)},
	};
	TemplateKey both[COUNT_OF(keys) + COUNT_OF(tile)];
	memcpy(both, keys, sizeof keys);
	memcpy(both + COUNT_OF(keys), tile, sizeof tile);
	return panels_are_full(g) ? kernel_template(k, "gemm_whole.c", COUNT_OF(both), both)
	                          : panels_print(g, &loops, at, both, COUNT_OF(both));
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

bool kernel_gemm_emit(KernelFunc *k)
{
	const Type *b = op_operand(k->op, 1)->type, *out = k->op->results[0].type;
	const Attr *depth = op_attr(k->op, "k");
	Gemm g = {.k = k, .lanes = k->target->lanes, .out = out};
	if (!tile_check_f32(k))
		return false;
	const Dim *nr = b->rank >= 3 ? b->dims[b->rank - 1] : NULL;
	if (!nr || !dim_is_const(nr) || nr->value % g.lanes || nr->value > 8 * g.lanes ||
	    out->rank < 2 || !depth || b->rank - 3 > out->rank - 2) {
		diag_error(k->ctx->diag, k->op->loc,
		           "kernel.gemm: operands are not packed for this target");
		return false;
	}
	g.nr = (int)nr->value;
	g.nv = g.nr / g.lanes;
	g.mr = tile_height(k->target->gemm_mr, k->target->gemm_nv, g.nv);
	g.nlead = b->rank - 3;
	g.n_dim = out->dims[out->rank - 1];
	g.direct = region_is_identity(&k->op->regions[0]) && out->dtype == DT_F32;
	const Value *sum = region_entry(&k->op->regions[0])->args[0];
	g.sum_is_named = sum->uses && sum->uses->next;
	g.inlined = rows_inlined(&g, depth->dim);
	return tile_prelude(k) && gemm_print(&g);
}
