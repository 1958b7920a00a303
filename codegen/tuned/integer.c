// Emits kernel.integer_conv: sums of dots of whole numbers, a register tile of pixels x output
// channels at a time. The operator table names it.
//
// A shared function (integer_tile.c.in) sums a tile; each convolution (integer_conv.c.in) and each
// matrix product (integer_matrix.c.in) gets thin loops around it, with its sizes as constants and
// its epilogue over the finished tile.
#include "codegen/nest/groups.h"

#include <inttypes.h>

typedef struct Integers {
	KernelFunc *k;
	int lanes, ur, nv, q, d;
	int64_t stride[2], pad[4], dilation[2], channels, kh, kw, quads;
	int64_t out_blocks, blocks; // vectors of output channels; of the result, where it has blocks
	const Type *x, *out;
	bool matrix, corrected, flat; // flat: rows of pixels run into each other
} Integers;

// ---- vectors ------------------------------------------------------------------------------------

static const char *from_type(const Integers *v)
{
	return v->d == 4 ? "uint8_t" : "int16_t";
}

static const char *weight_type(const Integers *v)
{
	return v->d == 4 ? "int8_t" : "int16_t";
}

static const char *dot_text(const Integers *v)
{
	if (v->d == 4)
		return "(vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b)";
	return v->lanes == 16  ? "sum + (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b)"
	       : v->lanes == 8 ? "sum + (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b)"
	                       : "sum + (vi)_mm_madd_epi16((__m128i)a, (__m128i)b)";
}

static bool vector_helper(const Integers *v)
{
	KernelFunc *k = v->k;
	const TemplateKey keys[] = {
		{"lanes", tile_int(k, v->lanes)}, {"bytes", tile_int(k, v->lanes * 4)},
		{"d", tile_int(k, v->d)},         {"from", from_type(v)},
		{"weight", weight_type(v)},       {"dot", dot_text(v)},
	};
	return kernel_helper(k, "kernel_macros.c", 0, NULL) &&
	       kernel_helper(k, "vector_integer.c", COUNT_OF(keys), keys) &&
	       kernel_helper(k, "conv_steps.c", 0, NULL) &&
	       kernel_helper(k, "integer_shape.c", 0, NULL);
}

// ---- tiles --------------------------------------------------------------------------------------

static const char *tile_name(const Integers *v, int nv)
{
	return arena_printf(v->k->arena, "%dx%dof%d_%s%" PRId64 "%s", v->ur, nv, v->q,
	                    v->matrix ? "rows" : "s", v->stride[1], v->corrected ? "" : "_plain");
}

static bool tile_helper(const Integers *v, int nv)
{
	KernelFunc *k = v->k;
	Arena *a = k->arena;
	const char *name = tile_name(v, nv);
	Text cases;
	text_init(&cases, a);
	for (int i = 1; i <= v->ur; i++)
		text_printf(&cases,
		            "%s: integer_pixels_%s(%d, s, x, w, correction, iy, ix, tile); break;\n",
		            tile_case(k, i, v->ur), name, i);
	const char *outside = arena_printf(
		a,
		"PD_UNROLL\nfor (int i = 0; i < pixels * %d; i++)\n\tif (i / %d < lo || i / %d >= hi)\n"
		"\t\tsum[i] += vi_load(correction + (1 + ky * s->kw + kx) * %d + i %% %d * %d);",
		nv, nv, nv, v->q, nv, v->lanes);
	const TemplateKey keys[] = {
		{"name", name},
		{"from", from_type(v)},
		{"weight", weight_type(v)},
		{"per_block", v->matrix ? "s->quads" : tile_int(k, v->lanes / v->d)},
		{"row", tile_int(k, v->q * v->d)},
		{"nv", tile_int(k, nv)},
		{"step", tile_int(k, v->lanes * v->d)},
		{"pixel", v->matrix ? "s->column" : tile_int(k, v->stride[1] * v->lanes)},
		{"d", tile_int(k, v->d)},
		{"sums", tile_int(k, v->ur * nv)},
		{"begin", v->corrected ? arena_printf(a, "vi_load(correction + i %% %d * %d)", nv, v->lanes)
	                           : "vi_zero()"},
		{"stride", tile_int(k, v->stride[1])},
		{"outside", v->corrected ? outside : ""},
		{"lanes", tile_int(k, v->lanes)},
		{"cases", cases.text},
	};
	return kernel_helper(k, "integer_tile.c", COUNT_OF(keys), keys);
}

static const char *tile_call(const Integers *v, int nv)
{
	Arena *a = v->k->arena;
	const char *iy = v->matrix || v->flat
	                     ? "0"
	                     : arena_printf(a, "row * %" PRId64 " - %" PRId64, v->stride[0], v->pad[0]);
	const char *ix = v->matrix || v->flat ? "first"
	                                      : arena_printf(a, "first * %" PRId64 " - %" PRId64,
	                                                     v->stride[1], v->pad[1]);
	return arena_printf(a, "integer_tile_%s(pixels, &shape, image, filter, zeros, %s, %s, tile);\n",
	                    tile_name(v, nv), iy, ix);
}

static const char *tile_calls(const Integers *v)
{
	const int tail = (int)(v->out_blocks % v->nv);
	if (!tile_helper(v, v->nv) || (tail && !tile_helper(v, tail)))
		return NULL;
	return !tail ? tile_call(v, v->nv)
	             : arena_printf(v->k->arena, "if (blocks == %d)\n\t%selse\n\t%s", v->nv,
	                            tile_call(v, v->nv), tile_call(v, tail));
}

// ---- functions ----------------------------------------------------------------------------------

// acc, n, cb, y, x, c
static const char *epilogue_text(const Integers *v, const char **value)
{
	KernelFunc *k = v->k;
	const Region *r = &k->op->regions[0];
	const Dim *const *d = v->out->dims;
	const char *args[6] = {"acc", "n", "cb", "row", "p", "c"};
	if (v->matrix) {
		args[1] = args[2] = args[3] = "0";
		args[5] = "(from + c)";
	} else if (v->flat) {
		args[3] = region_uses(r, 3) ? tile_position(k, "p", 2, d + 2, 0) : "0";
		args[4] = region_uses(r, 4) ? tile_position(k, "p", 2, d + 2, 1) : "0";
	}
	return region_text(k, r, args, value);
}

static const char *shape_text(const Integers *v)
{
	Arena *a = v->k->arena;
	const char *ways = v->matrix ? arena_printf(a, "%" PRId64 ", 0, 0", v->quads * v->d)
	                             : arena_printf(a, "%d, width * %d, height * width * %d", v->lanes,
	                                            v->lanes, v->lanes);
	return arena_printf(
		a, "%" PRId64 ", height, width, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %s",
		v->quads, v->kh, v->kw, v->dilation[0], v->dilation[1], ways);
}

static bool integer_print(Integers *v)
{
	KernelFunc *k = v->k;
	Arena *a = k->arena;
	const Dim *const *t = v->out->dims, *const *d = v->x->dims;
	const char *value, *epilogue = epilogue_text(v, &value);
	const Dim *across = v->flat ? dim_mul(k->ctx, t[2], t[3]) : t[3]; // a matrix has one row
	const char *columns = kernel_dim(k, across), *rows = v->flat ? "1" : kernel_dim(k, t[2]);
	const char *height = v->flat ? "1" : kernel_dim(k, d[2]);
	const char *width = kernel_dim(k, v->flat ? dim_mul(k->ctx, d[2], d[3]) : d[3]);
	const char *end = tile_end(k, "first", "columns", across, v->ur), *calls = tile_calls(v);
	if (!epilogue || !end || !calls)
		return false;
	const int64_t groups = (v->out_blocks + v->nv - 1) / v->nv;
	GroupLoops loops = {
		.batch = t[0], .rows = t[2], .columns = t[3], .flat = v->flat || v->matrix, .ur = v->ur};
	group_parts(k, groups, &loops);
	const TemplateKey keys[] = {
		// of both
		{"columns", columns},
		{"from", from_type(v)},
		{"weight", weight_type(v)},
		{"filter", tile_int(k, v->kh * v->kw * v->quads * v->q * v->d)},
		{"correction",
	     v->corrected ? arena_printf(a, "const int32_t *zeros = correction + group * %" PRId64 ";",
	                                 (1 + v->kh * v->kw) * v->q)
	                  : "const int32_t *zeros = NULL;"},
		{"shape", shape_text(v)},
		{"end", end},
		{"ur", tile_int(k, v->ur)},
		{"q", tile_int(k, v->q)},
		{"tile_calls", calls},
		{"lanes", tile_int(k, v->lanes)},
		{"type", dtype_c_memory(v->out->dtype)},
		{"epilogue", epilogue},
		{"store", scalar_store(k, v->out->dtype, "to", "c", value)},
		{"sizes", tile_sizes(k)},
		{"part", loops.part},
		{"first", loops.from},
		{"until", loops.until},
		{"range", kernel_range(k)},
		{"loops", group_calls(k, &loops, v->out_blocks, v->nv)},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
		// of products, or of convolutions
		{v->matrix ? "channels" : "rows", v->matrix ? kernel_dim(k, t[4]) : rows},
		{"height", height},
		{"width", width},
		{"x_blocks", kernel_dim(k, d[1])},
		{"x_lanes", tile_int(k, v->lanes)},
		{"nv", tile_int(k, v->nv)},
		{"out_blocks", tile_int(k, v->blocks)},
		{"row_from", loops.row_from},
		{"row_until", loops.row_until},
	};
	return v->matrix ? kernel_template(k, "integer_matrix.c", COUNT_OF(keys) - 8, keys)
	                 : kernel_template(k, "integer_conv.c", COUNT_OF(keys), keys);
}

// ---- reading ------------------------------------------------------------------------------------

static bool all_known(const Type *t)
{
	for (int i = 0; i < t->rank; i++)
		if (!dim_is_const(t->dims[i]))
			return false;
	return true;
}

static bool types_fit(const Integers *v, const Type *w)
{
	const DotKind dots = v->k->target->dots;
	const bool quads = v->x->dtype == DT_U8 && w->dtype == DT_I8 && dots == DOT_QUADS;
	return v->x->rank == 5 && w->rank == 5 && v->out->rank == 5 && all_known(w) &&
	       dim_is_const(v->x->dims[4]) && dim_is_const(v->x->dims[1]) &&
	       dim_is_const(v->out->dims[4]) && dim_is_const(v->out->dims[1]) &&
	       (quads || (v->x->dtype == DT_I16 && w->dtype == DT_I16 && dots == DOT_PAIRS));
}

static bool is_point(const Integers *v)
{
	return v->kh == 1 && v->kw == 1 && !v->pad[0] && !v->pad[1] && !v->pad[2] && !v->pad[3];
}

// Rows of a matrix: one block of all channels, here and there.
static bool matrix_fits(const Integers *v)
{
	const Dim *const *x = v->x->dims, *const *out = v->out->dims;
	bool ones = is_point(v);
	for (int i = 0; i < 3; i++)
		ones = ones && dim_is(x[i], 1) && dim_is(out[i], 1);
	return ones && x[3] == out[3] && dim_is(x[4], v->quads * v->d) && v->stride[1] == 1;
}

static bool attributes_read(Integers *v)
{
	const Op *op = v->k->op;
	v->corrected = op->noperand > 2 && op_operand(op, 2);
	v->channels = op_int(op, "in_channels", 0);
	return op_ints(op, "strides", v->stride, 2) == 2 && op_ints(op, "paddings", v->pad, 4) == 4 &&
	       op_ints(op, "dilations", v->dilation, 2) == 2 && v->channels > 0 &&
	       (op_int(op, "zero_point", 0) != 0) == v->corrected;
}

static bool weights_fit(const Integers *v, const Type *w)
{
	return v->q % v->lanes == 0 && v->nv >= 1 && v->nv <= 8 &&
	       v->quads == (v->channels + v->d - 1) / v->d &&
	       w->dims[0]->value == (v->out_blocks + v->nv - 1) / v->nv;
}

// Pixels of a tile: products need a register before they are summed, but for those of VNNI.
static int tile_pixels(const Integers *v)
{
	const int registers = v->lanes == 16 ? 32 : 16;
	int ur = tile_height(v->k->target->conv_ur, v->k->target->conv_nv, v->nv);
	while (v->d == 2 && ur > 1 && (ur + 1) * v->nv + 2 > registers)
		ur--;
	return ur;
}

static bool integers_read(Integers *v)
{
	const Type *w = op_operand(v->k->op, 1)->type;
	v->x = op_operand(v->k->op, 0)->type;
	v->out = v->k->op->results[0].type;
	if (!types_fit(v, w) || !attributes_read(v))
		return false;
	v->d = v->x->dtype == DT_U8 ? 4 : 2;
	v->kh = w->dims[1]->value;
	v->kw = w->dims[2]->value;
	v->quads = w->dims[3]->value;
	v->q = (int)(w->dims[4]->value / v->d);
	v->nv = v->q / v->lanes;
	const int64_t made = v->out->dims[4]->value;
	v->blocks = v->out->dims[1]->value;
	v->matrix = !dim_is(v->x->dims[4], v->lanes) || made != v->lanes || matrix_fits(v);
	v->out_blocks = v->matrix ? (made + v->lanes - 1) / v->lanes : v->blocks;
	if (v->nv < 1 || !weights_fit(v, w) || (v->matrix && !matrix_fits(v)))
		return false;
	v->flat = !v->matrix && is_point(v) && v->stride[0] == 1 && v->stride[1] == 1;
	v->ur = tile_pixels(v);
	return true;
}

bool kernel_integer_conv_emit(KernelFunc *k)
{
	Integers v = {.k = k, .lanes = k->target->lanes};
	return tile_check_layout(k, integers_read(&v)) && vector_helper(&v) && integer_print(&v);
}
