// The functions of kernel.gemm that sum one tile, and calls of them. Called by gemm.c alone.
#include "codegen/tuned/gemm.h"

// The vectors of the panel that a step of the depth needs, as `w`, and what they add to a row: no
// loop where there is one.
static const char *row_weights(const Gemm *g, int nv)
{
	Arena *a = g->k->arena;
	return nv == 1
	           ? arena_printf(a, "const %s w = %s_load(panel + (p + s) * %d);", g->v, g->v, g->nr)
	           : arena_printf(a,
	                          "%s w[%d];\nPD_UNROLL\nfor (int v = 0; v < %d; v++)\n"
	                          "\tw[v] = %s_load(panel + (p + s) * %d + v * %d);",
	                          g->v, nv, nv, g->v, g->nr, g->lanes);
}

static const char *row_products(const Gemm *g, int nv)
{
	if (nv == 1)
		return arena_printf(g->k->arena,
		                    "sum[s * rows + i] = %s_multiply_add(sum[s * rows + i], x, w);", g->v);
	const char *sum = arena_printf(g->k->arena, "sum[(s * rows + i) * %d + v]", nv);
	return arena_printf(g->k->arena,
	                    "PD_UNROLL\nfor (int v = 0; v < %d; v++)\n"
	                    "\t%s = %s_multiply_add(%s, x, w[v]);",
	                    nv, sum, g->v, sum);
}

bool gemm_tile_helper(const Gemm *g, int nv)
{
	KernelFunc *k = g->k;
	Text cases;
	text_init(&cases, k->arena);
	int sums = 0;
	for (int rows = 1; rows <= g->mr; rows++) {
		int split = tile_split(rows, nv);
		sums = split * rows * nv > sums ? split * rows * nv : sums;
		text_printf(&cases, "%s: %s_rows_%dof%d(%d, %d, a, lda, panel, k%s, out, ldo); break;\n",
		            tile_case(k, rows, g->mr), g->name, nv, g->nr, rows, split,
		            *g->ahead ? ", ahead, step" : "");
	}
	// Where sum i goes: with one vector in a row, i is the row.
	const char *row = nv == 1 ? "i" : arena_printf(k->arena, "i / %d", nv);
	const char *column = nv == 1 ? "" : arena_printf(k->arena, " + i %% %d * %d", nv, g->lanes);
	const char *fetched = *g->ahead
	                          ? arena_printf(k->arena, " const %s *ahead, int64_t step,", g->type)
	                          : "";
	const TemplateKey rows[] = {
		{"gemm", g->name},
		{"ahead", fetched},
		{"story",
	     *g->ahead ? "// Where they are many, what lies at ahead + p * step is fetched meanwhile."
	               : ""},
		{"fetch", *g->ahead ? "if (split == 1)\n\tPD_PREFETCH(ahead + p * step);" : ""},
		{"type", g->type},
		{"v", g->v},
		{"rows", tile_int(k, g->mr)},
		{"nv", tile_int(k, nv)},
		{"nr", tile_int(k, g->nr)},
		{"sums", tile_int(k, sums)},
		{"row", row},
		{"column", column},
		{"weights", row_weights(g, nv)},
		{"products", row_products(g, nv)},
		{"turned", g->turned ? ", which are its columns," : ""},
		{"x", g->turned ? "a[(p + s) * lda + i]" : "a[i * lda + p + s]"},
		{"rest", arena_printf(k->arena, g->turned ? "a[p * lda + %s]" : "a[%s * lda + p]", row)},
	};
	if (!kernel_helper(k, "gemm_rows.c", COUNT_OF(rows), rows))
		return false;
	const TemplateKey tile[] = {{"gemm", g->name},          {"ahead", fetched},
	                            {"type", g->type},          {"nv", tile_int(k, nv)},
	                            {"nr", tile_int(k, g->nr)}, {"cases", cases.text}};
	return g->inlined || kernel_helper(k, "gemm_tile.c", COUNT_OF(tile), tile);
}

const char *gemm_tile_call(const Gemm *g, int nv, const char *out, const char *ldo)
{
	Arena *a = g->k->arena;
	const char *lda = g->turned ? "M" : "K";
	if (g->inlined)
		return arena_printf(a, "%s_rows_%dof%d(%d, %d, %s, %s, %s, K, %s, %s);", g->name, nv, g->nr,
		                    g->inlined, tile_split(g->inlined, nv), g->rows, lda, g->panel, out,
		                    ldo);
	return arena_printf(a, "%s_tile_%dof%d((int)(m1 - m0), %s, %s, %s, K%s, %s, %s);", g->name, nv,
	                    g->nr, g->rows, lda, g->panel, g->ahead, out, ldo);
}

bool gemm_columns_helper(const Gemm *g)
{
	KernelFunc *k = g->k;
	Text calls;
	text_init(&calls, k->arena);
	for (int nv = g->nv; nv >= 1; nv--) {
		if (!gemm_tile_helper(g, nv))
			return false;
		if (nv > 1)
			text_printf(&calls, "if (cols > %d)\n", (nv - 1) * g->lanes);
		text_printf(&calls, "\t%s_tile_%dof%d(rows, a, lda, panel, k, out, ldo);\n%s", g->name, nv,
		            g->nr,
		            nv > 2   ? "else "
		            : nv > 1 ? "else\n"
		                     : "");
	}
	const TemplateKey keys[] = {
		{"gemm", g->name}, {"type", g->type}, {"nr", tile_int(k, g->nr)}, {"calls", calls.text}};
	return kernel_helper(k, "gemm_columns.c", COUNT_OF(keys), keys);
}

const char *gemm_columns_call(const Gemm *g, const char *out, const char *ldo)
{
	return arena_printf(g->k->arena, "%s_tile_of%d((int)(m1 - m0), cols, %s, %s, %s, K, %s, %s);",
	                    g->name, g->nr, g->rows, g->turned ? "M" : "K", g->panel, out, ldo);
}
