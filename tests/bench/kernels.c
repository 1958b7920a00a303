// Writes C with instances of the kernel templates, for kernels_run.c to check against plain loops
// or to time. Usage: kernels ISA check|time > instances.c. Built and run by kernels.sh.
#include "codegen/codegen.h"
#include "codegen/model/model.h"
#include "codegen/nest/nest.h"
#include "ir/build/build.h"
#include "ir/ir.h"
#include "lower/target/target.h"
#include "ops_emit_c.inc"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Instance {
	char kind; // g: gemm, c: conv, p: conv of plain input, d: depthwise, s: softmax, n: layer_norm
	int64_t d[16]; // see the tables below
	bool epilogue; // max(acc + bias, 0), else acc as it is
	bool symbolic; // sizes are parameters
} Instance;

typedef struct Gen {
	Codegen cg;
	Context *c;
	Text table, wrappers;
	int count;
} Gen;

static const Dim *dim_of(Gen *g, const Instance *x, const char *name, int64_t v)
{
	return x->symbolic && name ? dim_sym(g->c, name) : dim_const(g->c, v);
}

static Value *tensor(Gen *g, int rank, const Dim *const *dims)
{
	const Type *t = type_tensor(g->c, DT_F32, rank, dims, 0);
	Op *op = op_new(g->c, OP_PD_FULL, &loc_unknown, 1, &t, 0, NULL, 0, 0);
	return &op->results[0];
}

// A region: max(acc + bias[last], 0) when there is a bias, with the bias at the given arguments.
static void region_fill(Gen *g, Op *op, int which, int rank, Value *from, int nindex,
                        const int *index)
{
	Block *b = block_new(g->c, &op->regions[which]);
	Builder at = builder_at_end(g->c, b, op->loc);
	Value *acc = NULL;
	if (which == op->nregion - 1)
		acc = block_add_arg(g->c, b, type_scalar(g->c, DT_F32));
	for (int i = 0; i < rank; i++)
		block_add_arg(g->c, b, type_index(g->c));
	if (from) {
		Value *v[8] = {from};
		for (int i = 0; i < nindex; i++)
			v[1 + i] = b->args[index[i] + (acc != NULL)];
		Value *x = build(&at, OP_LOOP_LOAD, 1 + nindex, v, NULL);
		if (acc) {
			x = build2(&at, OP_PD_ADD, acc, x, NULL);
			x = build2(&at, OP_PD_MAXIMUM, x, build_scalar_f(&at, DT_F32, 0), NULL);
		}
		acc = x;
	}
	build_op(&at, OP_LOOP_YIELD, 1, &acc, 0, NULL);
}

static Op *kernel(Gen *g, enum OpCode code, int noperand, Value *const *operands, int rank,
                  const Dim *const *dims, int nregion)
{
	const Type *t = type_tensor(g->c, DT_F32, rank, dims, 0);
	Loc loc = {.var = arena_printf(g->c->arena, "case_%d", g->count)};
	return op_new(g->c, code, context_loc(g->c, &loc), 1, &t, noperand, operands, nregion, 0);
}

static bool instance_emit(Gen *g, Op *op, const Instance *x)
{
	KernelFunc *k = kernel_new(&g->cg, op);
	if (!emitters[op->code](k))
		return false;
	const char *name = kernel_finish(k);
	text_printf(
		&g->wrappers,
		"static void run_%d(float *out, const float *a, const float *b, const float *t)\n{\n"
		"\t(void)a, (void)b, (void)t;\n\t%s(out",
		g->count, name);
	const char *from[] = {"a", "b", "t"};
	int next = 0;
	for (int i = 1; i < k->nparam; i++) {
		if (!k->params[i].sym) {
			bool captured = i > op->noperand; // after the operands: the bias
			text_printf(&g->wrappers, ", %s", op->noperand && captured ? "t" : from[next++]);
			continue;
		}
		const char *sym = k->params[i].sym->name;
		text_printf(&g->wrappers, ", %" PRId64,
		            x->d[*sym == 'k'   ? 2
		                 : *sym == 'n' ? 1
		                 : *sym == 'h' ? 2
		                 : *sym == 'w' ? 3
		                               : 0]);
	}
	text_str(&g->wrappers, ");\n}\n\n");
	text_printf(&g->table, "\t{'%c', {", x->kind);
	for (int i = 0; i < 16; i++)
		text_printf(&g->table, "%s%" PRId64, i ? ", " : "", x->d[i]);
	text_printf(&g->table, "}, %d, run_%d},\n", x->epilogue, g->count++);
	return true;
}

// d: M, N, K, batch, batched b
static bool gemm(Gen *g, const Instance *x)
{
	Context *c = g->c;
	int64_t nr = g->cg.target->gemm_nv * g->cg.target->lanes;
	const Dim *m = dim_of(g, x, "m", x->d[0]), *n = dim_of(g, x, "n", x->d[1]),
			  *k = dim_of(g, x, "k", x->d[2]);
	const Dim *batch = dim_const(c, x->d[3]);
	const Dim *panels = dim_div(c, dim_add(c, n, dim_const(c, nr - 1)), dim_const(c, nr));
	Value *a = tensor(g, 3, (const Dim *[]){batch, m, k});
	Value *b = x->d[4] ? tensor(g, 4, (const Dim *[]){batch, panels, k, dim_const(c, nr)})
	                   : tensor(g, 3, (const Dim *[]){panels, k, dim_const(c, nr)});
	Op *op = kernel(g, OP_KERNEL_GEMM, 2, (Value *[]){a, b}, 3, (const Dim *[]){batch, m, n}, 1);
	op_set_attr(op, "k", attr_dim(c, k));
	op_set_attr(op, "n", attr_dim(c, n));
	region_fill(g, op, 0, 3, x->epilogue ? tensor(g, 1, &n) : NULL, 1, (int[]){2});
	return instance_emit(g, op, x);
}

// d: N, C, H, W, OC, KH, KW, stride y, x, top, left, bottom, right, dilation y, x, q
static bool conv(Gen *g, const Instance *x)
{
	Context *c = g->c;
	const int64_t *d = x->d;
	int64_t lanes = g->cg.target->lanes, q = d[15] * lanes;
	int64_t oh = (d[2] + d[9] + d[11] - d[13] * (d[5] - 1) - 1) / d[7] + 1;
	int64_t ow = (d[3] + d[10] + d[12] - d[14] * (d[6] - 1) - 1) / d[8] + 1;
	const Dim *n = dim_of(g, x, NULL, d[0]), *h = dim_of(g, x, NULL, d[2]),
			  *w = dim_of(g, x, NULL, d[3]);
	const Dim *b = dim_const(c, lanes), *blocks = dim_const(c, (d[1] + lanes - 1) / lanes);
	const Dim *out_blocks = dim_const(c, (d[4] + lanes - 1) / lanes);
	bool plain = x->kind == 'p', deep = x->kind == 'd';
	Value *image = plain ? tensor(g, 4, (const Dim *[]){n, dim_const(c, d[1]), h, w})
	                     : tensor(g, 5, (const Dim *[]){n, blocks, h, w, b});
	const Dim *kh = dim_const(c, d[5]), *kw = dim_const(c, d[6]);
	Value *filter = deep ? tensor(g, 4, (const Dim *[]){blocks, kh, kw, b})
	                     : tensor(g, 5,
	                              (const Dim *[]){dim_const(c, (d[4] + q - 1) / q),
	                                              dim_const(c, d[1]), kh, kw, dim_const(c, q)});
	Op *op = kernel(
		g, deep ? OP_KERNEL_DEPTHWISE : OP_KERNEL_CONV, 2, (Value *[]){image, filter}, 5,
		(const Dim *[]){n, deep ? blocks : out_blocks, dim_const(c, oh), dim_const(c, ow), b}, 1);
	op_set_attr(op, "strides", attr_ints(c, 2, d + 7));
	op_set_attr(op, "paddings", attr_ints(c, 4, d + 9));
	op_set_attr(op, "dilations", attr_ints(c, 2, d + 13));
	if (!deep) {
		op_set_attr(op, "groups", attr_int(c, 1));
		op_set_attr(op, "in_channels", attr_int(c, d[1]));
		op_set_attr(op, "plain_input", attr_bool(c, plain));
	}
	Value *bias = x->epilogue ? tensor(g, 2, (const Dim *[]){out_blocks, b}) : NULL;
	region_fill(g, op, 0, 5, bias, 2, (int[]){1, 4});
	return instance_emit(g, op, x);
}

// d: rows, columns
static bool rows(Gen *g, const Instance *x)
{
	Context *c = g->c;
	const Dim *m = dim_of(g, x, "m", x->d[0]), *n = dim_of(g, x, "n", x->d[1]);
	const Dim *dims[] = {m, n};
	bool norm = x->kind == 'n';
	Value *in = tensor(g, 2, dims), *scale = tensor(g, 1, &n);
	Op *op = kernel(g, norm ? OP_KERNEL_LAYER_NORM : OP_KERNEL_SOFTMAX, norm ? 2 : 0,
	                (Value *[]){scale, NULL}, 2, dims, 2);
	if (norm)
		op_set_attr(op, "axes", attr_int(c, 1));
	region_fill(g, op, 0, 2, in, 2, (int[]){0, 1});
	region_fill(g, op, 1, 2, NULL, 0, NULL);
	return instance_emit(g, op, x);
}

static bool instance(Gen *g, char kind, bool epilogue, bool symbolic, int n, const int64_t *d)
{
	Instance x = {.kind = kind, .epilogue = epilogue, .symbolic = symbolic};
	memcpy(x.d, d, (size_t)n * sizeof *d);
	if (kind == 'g')
		return gemm(g, &x);
	return kind == 's' || kind == 'n' ? rows(g, &x) : conv(g, &x);
}

#define ADD(kind, epilogue, symbolic, ...)                                                  \
	instance(g, kind, epilogue, symbolic, sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t), \
	         (int64_t[]){__VA_ARGS__})

// Sizes around every tile boundary, borders of every kind.
static bool check_cases(Gen *g)
{
	const int64_t ms[] = {1, 2, 3, 5, 7, 8, 9, 13, 17},
				  ns[] = {1, 5, 16, 17, 31, 33, 47, 48, 50, 97}, ks[] = {1, 2, 7, 64};
	bool ok = true;
	for (size_t i = 0; i < COUNT_OF(ms); i++)
		for (size_t j = 0; j < COUNT_OF(ns); j++)
			ok = ok && ADD('g', (i + j) % 2, (i + 2 * j) % 7 == 0, ms[i], ns[j], ks[(i + j) % 4],
			               1 + (int64_t)(j % 2), (int64_t)(i % 2));
	const int64_t ocs[] = {1, 16, 17, 40, 70}, cs[] = {1, 3, 16, 17, 33},
				  sizes[] = {1, 5, 7, 14, 29};
	for (int i = 0; i < 5 && ok; i++)
		for (int j = 0; j < 5; j++) {
			int64_t oc = ocs[i], c = cs[j], h = sizes[(i + j) % 5], w = sizes[(2 * i + j) % 5],
					q = 1 + (i + j) % 2 * 2;
			ok = ok && ADD('c', true, false, 2, c, h, w, oc, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, q) &&
			     ADD('c', false, false, 1, c, h, w, oc, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1, q) &&
			     ADD('c', true, false, 1, c, h, w, oc, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, q) &&
			     ADD('c', false, false, 2, c, h, w, oc, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, q) &&
			     ADD('c', true, false, 1, c, h, w, oc, 3, 2, 1, 3, 2, 0, 1, 2, 1, 1, q) &&
			     ADD('c', true, false, 1, c, h, w, oc, 3, 3, 1, 1, 4, 4, 4, 4, 4, 4, q) &&
			     ADD('p', true, false, 2, c, h, w, oc, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, q) &&
			     ADD('p', false, false, 1, c, h, w, oc, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, q) &&
			     ADD('p', true, false, 1, c, h, w, oc, 7, 7, 2, 2, 3, 3, 3, 3, 1, 1, q) &&
			     ADD('d', true, false, 1, c, h, w, c, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1) &&
			     ADD('d', false, false, 2, c, h, w, c, 5, 5, 2, 2, 2, 2, 2, 2, 1, 1, 1) &&
			     ADD('d', true, false, 1, c, h, w, c, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 1);
		}
	for (int i = 0; i < 9 && ok; i++)
		ok = ok && ADD('s', false, i % 2, ms[i], ns[i]) &&
		     ADD('n', false, i % 3 == 0, ms[i], ns[i]);
	return ok;
}

static bool time_gemms(Gen *g)
{
	static const int64_t s[][3] = {
		{1024, 1024, 1024}, {512, 512, 512}, {128, 312, 312},  {128, 1200, 312},
		{128, 312, 1200},   {128, 128, 26},  {128, 26, 128},   {3136, 64, 256},
		{49, 512, 2048},    {196, 512, 512}, {49, 1024, 1024}, {100, 1024, 128},
		{16, 16, 16},       {1, 1024, 256},  {1, 128, 784},    {1, 1000, 2048},
	};
	for (size_t i = 0; i < COUNT_OF(s); i++)
		if (!ADD('g', true, false, s[i][0], s[i][1], s[i][2], 1, 0))
			return false;
	return true;
}

static bool time_convs(Gen *g)
{
	static const int64_t s[][6] = {
		// C, H, OC, K, stride, pad
		{64, 56, 256, 1, 1, 0},   {64, 56, 64, 1, 1, 0},     {256, 56, 64, 1, 1, 0},
		{64, 56, 64, 3, 1, 1},    {256, 56, 128, 1, 1, 0},   {128, 56, 128, 3, 2, 1},
		{256, 56, 512, 1, 2, 0},  {128, 28, 512, 1, 1, 0},   {512, 28, 128, 1, 1, 0},
		{128, 28, 128, 3, 1, 1},  {256, 28, 256, 3, 2, 1},   {512, 28, 1024, 1, 2, 0},
		{256, 14, 1024, 1, 1, 0}, {1024, 14, 256, 1, 1, 0},  {256, 14, 256, 3, 1, 1},
		{512, 14, 512, 3, 2, 1},  {1024, 14, 2048, 1, 2, 0}, {512, 7, 2048, 1, 1, 0},
		{2048, 7, 512, 1, 1, 0},  {512, 7, 512, 3, 1, 1},    {24, 28, 88, 1, 1, 0},
		{40, 14, 120, 1, 1, 0},
	};
	const Target *t = g->cg.target;
	for (size_t i = 0; i < COUNT_OF(s); i++) {
		int64_t blocks = (s[i][2] + t->lanes - 1) / t->lanes,
				groups = (blocks + t->conv_nv - 1) / t->conv_nv;
		if (!ADD('c', true, false, 1, s[i][0], s[i][1], s[i][1], s[i][2], s[i][3], s[i][3], s[i][4],
		         s[i][4], s[i][5], s[i][5], s[i][5], s[i][5], 1, 1, (blocks + groups - 1) / groups))
			return false;
	}
	int64_t wide = t->conv_nv * t->lanes <= 64 ? t->conv_nv : 64 / t->lanes;
	return ADD('p', true, false, 1, 3, 224, 224, 64, 7, 7, 2, 2, 3, 3, 3, 3, 1, 1, wide) &&
	       ADD('p', true, false, 1, 3, 224, 224, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1,
	           wide > 2 ? 2 : wide) &&
	       ADD('p', true, false, 1, 1, 28, 28, 6, 5, 5, 1, 1, 0, 0, 0, 0, 1, 1, 1) &&
	       ADD('d', true, false, 1, 32, 112, 112, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1) &&
	       ADD('d', true, false, 1, 128, 56, 56, 128, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1) &&
	       ADD('d', true, false, 1, 512, 14, 14, 512, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1) &&
	       ADD('d', true, false, 1, 1024, 7, 7, 1024, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1) &&
	       ADD('d', true, false, 1, 240, 14, 14, 240, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, 1) &&
	       ADD('s', false, false, 1536, 128) && ADD('n', false, false, 128, 312);
}

int main(int argc, char **argv)
{
	Context *c = context_new();
	Gen g = {.c = c, .cg = {.ctx = c, .arena = c->arena}};
	CodegenOptions options = {.prefix = "test"};
	if (argc != 3 || !(g.cg.target = target_find(argv[1])))
		return fprintf(stderr, "usage: %s ISA check|time\n", argv[0]), 2;
	g.cg.options = &options;
	g.cg.prefix = "test";
	names_init(&g.cg.globals, c->arena);
	text_init(&g.cg.functions, c->arena);
	text_init(&g.table, c->arena);
	text_init(&g.wrappers, c->arena);
	bool ok = strcmp(argv[2], "check") ? time_gemms(&g) && time_convs(&g) : check_cases(&g);
	diag_flush(c->diag, stderr, false);
	printf("enum { LANES = %d, PANEL = %d };\n%s\n%s%sstatic const Case cases[] = {\n%s};\n",
	       g.cg.target->lanes, g.cg.target->lanes * g.cg.target->gemm_nv, embed_text("math.c"),
	       g.cg.functions.text, g.wrappers.text, g.table.text);
	context_free(c);
	return !ok;
}
