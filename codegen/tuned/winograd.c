// Emits kernel.winograd: groups of tiles are transformed, multiplied for one group of output
// channels after the other, and transformed back into the epilogue. The operator table names it.
//
// Everything but the last step is in shared functions: winograd_in_6.c.in, winograd_out_6.c.in and
// their like (a row of a tile), winograd_tile.c.in (a tile of it), winograd_input.c.in (tiles of
// images), and the products of conv_point.c.in.
#include "codegen/tuned/point.h"
#include "codegen/nest/ahead.h"
#include "codegen/nest/region.h"
#include "ir/core/winograd.h"
#include "lower/target/winograd.h"

#include <inttypes.h>

typedef struct Conv {
	KernelFunc *k;
	Winograd t[2];                               // along rows, along columns
	int numbers;                                 // of a tile
	const char *in, *shape;                      // how functions of such tiles are called
	int lanes, q, nv, height;                    // height: of the register tile
	int64_t chunks[2];                           // of taps
	int64_t depth;                               // channels, for each chunk
	int64_t pad[4], apart[2], group, out_blocks; // apart: rows, columns of a tile
	const Type *x, *w, *out;
} Conv;

// The transforms and chunks along both axes.
static bool tiles_read(Conv *v)
{
	const Op *op = v->k->op;
	int64_t taps[2];
	if (!winograd_transforms(op, v->t) || op_ints(op, "taps", taps, 2) != 2)
		return false;
	for (int i = 0; i < 2; i++)
		v->chunks[i] = winograd_chunks(taps[i], v->t[i].taps);
	v->numbers = v->t[0].inputs * v->t[1].inputs;
	v->in = arena_printf(v->k->arena, "%dx%d", v->t[0].inputs, v->t[1].inputs);
	v->shape = arena_printf(v->k->arena, "%dx%dof%s", v->t[0].tile, v->t[1].tile, v->in);
	return true;
}

static bool conv_read(Conv *v)
{
	const Op *op = v->k->op;
	v->x = op_operand(op, 0)->type;
	v->w = op_operand(op, 1)->type;
	v->out = op->results[0].type;
	if (op->nresult != 2 || op_ints(op, "paddings", v->pad, 4) != 4 ||
	    op_ints(op, "dilations", v->apart, 2) != 2 || !dim_is(v->x->dims[4], v->lanes) ||
	    !tiles_read(v))
		return false;
	v->depth = v->w->dims[2]->value;
	v->group = op_int(op, "group", 1);
	v->out_blocks = v->out->dims[1]->value;
	v->q = (int)v->w->dims[3]->value;
	v->nv = v->q / v->lanes;
	v->height = tile_height(v->k->target->conv_ur, v->k->target->conv_nv, v->nv);
	return v->nv <= 8;
}

// ---- shared functions ---------------------------------------------------------------------------

static const char *number(KernelFunc *k, double v)
{
	return scalar_float(k->arena, DT_F32, v);
}

// All results of six products but the first: at power k of the points, even or odd in them; the
// last one also has what infinity gives.
static const char *results_of_six(KernelFunc *k, const Winograd *t)
{
	Text s;
	text_init(&s, k->arena);
	double p = 1, q = 1;
	for (int i = 1; i < t->tile; i++) {
		const char *parity = i % 2 ? "odd" : "even";
		p *= t->points[0];
		q *= t->points[1];
		text_printf(&s,
		            "to[%d] = vf_multiply_add(vf_multiply_add(%s, vf_splat(%s), %s_p), "
		            "vf_splat(%s), %s_q);\n",
		            i, i + 1 < t->tile ? "vf_splat(0)" : "d[5]", number(k, p), parity, number(k, q),
		            parity);
	}
	return s.text;
}

// The functions for a row of a tile: what products read, and results.
static bool row_helpers(KernelFunc *k, const Winograd *t)
{
	if (!t->npoint)
		return kernel_helper(k, "winograd_1.c", 0, NULL);
	const double p = t->points[0], q = t->npoint > 1 ? t->points[1] : 0;
	const TemplateKey keys[] = {
		{"p", number(k, p)},
		{"less_p", number(k, -p)},
		{"less_pp", number(k, -p * p)},
		{"q", number(k, q)},
		{"less_q", number(k, -q)},
		{"less_qq", number(k, -q * q)},
		{"less_sum", number(k, -p * p - q * q)},
		{"product", number(k, p * p * q * q)},
	};
	if (t->npoint == 1)
		return kernel_helper(k, "winograd_4.c", 3, keys);
	const TemplateKey out[] = {{"m", tile_int(k, t->tile)},
	                           {"taps", tile_int(k, t->taps)},
	                           {"results", results_of_six(k, t)}};
	return kernel_helper(k, "winograd_in_6.c", COUNT_OF(keys), keys) &&
	       kernel_helper(k, "winograd_out_6.c", COUNT_OF(out), out);
}

// Functions that know where tiles begin, whether their rows and columns lie apart, and how many
// chunks of taps there are.
static const char *input_name(const Conv *v)
{
	Text name;
	text_init(&name, v->k->arena);
	text_str(&name, v->shape);
	if (v->apart[0] > 1 || v->apart[1] > 1)
		text_printf(&name, "_by_%" PRId64 "x%" PRId64, v->apart[0], v->apart[1]);
	if (v->chunks[0] > 1 || v->chunks[1] > 1)
		text_printf(&name, "_in_%" PRId64 "x%" PRId64, v->chunks[0], v->chunks[1]);
	return name.text;
}

// `what * by`, or just `what`.
static const char *times(const Conv *v, const char *what, int64_t by)
{
	return by == 1 ? what : arena_printf(v->k->arena, "%s * %" PRId64, what, by);
}

// Where tile `number` along an axis begins. Tiles of rows that lie apart are side by side.
static const char *tile_place(const Conv *v, const char *number, int axis)
{
	const int64_t apart = v->apart[axis];
	return apart == 1 ? times(v, number, v->t[axis].tile)
	                  : arena_printf(v->k->arena, "%s / %" PRId64 " * %" PRId64 " + %s %% %" PRId64,
	                                 number, apart, apart * v->t[axis].tile, number, apart);
}

// ` + ` how many rows, or columns, behind the first one the taps of a chunk begin; "" where there
// is one.
static const char *chunk_place(const Conv *v, int axis)
{
	const int64_t by = v->t[axis].taps * v->apart[axis], across = v->chunks[1];
	if (v->chunks[axis] == 1)
		return "";
	return v->chunks[!axis] == 1
	           ? arena_printf(v->k->arena, " + block / s->blocks * %" PRId64, by)
	           : arena_printf(v->k->arena, " + block / s->blocks %s %" PRId64 " * %" PRId64,
	                          axis ? "%" : "/", across, by);
}

static bool input_helper(Conv *v)
{
	KernelFunc *k = v->k;
	const int64_t chunks = v->chunks[0] * v->chunks[1];
	const TemplateKey keys[] = {
		{"in", v->in},
		{"shape", input_name(v)},
		{"rows", tile_int(k, v->t[0].inputs)},
		{"columns", tile_int(k, v->t[1].inputs)},
		{"numbers", tile_int(k, v->numbers)},
		{"lanes", tile_int(k, v->lanes)},
		{"blocks", times(v, "s->blocks", chunks)},
		{"block", chunks > 1 ? "block % s->blocks" : "block"},
		{"i", times(v, "i", v->apart[0])},
		{"j", times(v, "j", v->apart[1])},
		{"top", tile_place(v, "down", 0)},
		{"left", tile_place(v, "across", 1)},
		{"lower", chunk_place(v, 0)},
		{"further", chunk_place(v, 1)},
		{"high", tile_int(k, (v->t[0].inputs - 1) * v->apart[0] + 1)},
		{"wide", tile_int(k, (v->t[1].inputs - 1) * v->apart[1] + 1)},
		{"row", tile_int(k, v->lanes * v->apart[0])},
		{"pixel", tile_int(k, v->lanes * v->apart[1])},
	};
	return kernel_helper(k, "winograd_input.c", COUNT_OF(keys), keys);
}

static bool tile_helpers(Conv *v, const char *point)
{
	KernelFunc *k = v->k;
	const TemplateKey keys[] = {
		{"in", v->in},
		{"rows", tile_int(k, v->t[0].inputs)},
		{"columns", tile_int(k, v->t[1].inputs)},
		{"numbers", tile_int(k, v->numbers)},
		{"shape", v->shape},
		{"down", tile_int(k, v->t[0].tile)},
		{"across", tile_int(k, v->t[1].tile)},
		{"lanes", tile_int(k, v->lanes)},
	};
	const TemplateKey products[] = {
		{"point", point},         {"ur", tile_int(k, v->height)},   {"nv", tile_int(k, v->nv)},
		{"q", tile_int(k, v->q)}, {"lanes", tile_int(k, v->lanes)},
	};
	return row_helpers(k, &v->t[0]) && row_helpers(k, &v->t[1]) &&
	       kernel_helper(k, "winograd_shape.c", 0, NULL) &&
	       kernel_helper(k, "winograd_tile.c", 4, keys) &&
	       kernel_helper(k, "winograd_output.c", COUNT_OF(keys) - 1, keys + 1) && input_helper(v) &&
	       kernel_helper(k, "tile_end.c", 0, NULL) &&
	       kernel_helper(k, "winograd_products.c", COUNT_OF(products), products);
}

// ---- the function of one convolution ------------------------------------------------------------

static const char *tiles_along(Conv *v, const Dim *size, int axis)
{
	return kernel_dim(v->k, winograd_tiles_along(v->k->ctx, size, v->apart[axis], v->t[axis].tile));
}

// Which of a tile's results lies at (row, p).
static const char *spot(const Conv *v)
{
	Arena *a = v->k->arena;
	const char *down = v->apart[0] == 1 ? "(row - y)"
	                                    : arena_printf(a, "(row - y) / %" PRId64, v->apart[0]);
	const char *across = v->apart[1] == 1 ? "p - x0"
	                                      : arena_printf(a, "(p - x0) / %" PRId64, v->apart[1]);
	return arena_printf(a, "%s * %d + %s", down, v->t[1].tile, across);
}

static const char *step(const Conv *v, const char *name, int64_t by)
{
	return by == 1 ? arena_printf(v->k->arena, "%s++", name)
	               : arena_printf(v->k->arena, "%s += %" PRId64, name, by);
}

// The calls of the last step: for whole groups of output channels, and the rest.
static const char *results(Conv *v, const char *suffix)
{
	Arena *a = v->k->arena;
	const int64_t rest = v->out_blocks % v->nv;
	const char *blocks = tile_int(v->k, v->nv);
	if (rest)
		blocks = v->out_blocks < v->nv ? tile_int(v->k, rest)
		                               : arena_printf(a, "group < %" PRId64 " ? %d : %" PRId64,
		                                              v->out_blocks / v->nv, v->nv, rest);
	return tile_pass_on(v->k, "", suffix,
	                    arena_printf(a, "group, %s, first, last - first, sums", blocks));
}

// Where sums lie, behind the numbers of a group of tiles; there are fewer than a whole group where
// a run finds few.
static const char *sums_place(const Conv *v, int64_t blocks)
{
	Arena *a = v->k->arena;
	if (dim_is_const(v->k->op->results[1].type->dims[0]))
		return arena_printf(a, "%" PRId64,
		                    v->numbers * winograd_stride(v->group, blocks, v->lanes));
	return arena_printf(a, "((tiles < %" PRId64 " ? tiles : %" PRId64 ") * %" PRId64 " + 1) * %d",
	                    v->group, v->group, blocks, v->numbers * v->lanes);
}

// All groups of tiles, and for each those of output channels; the same where threads share them.
// NULL after a diagnostic.
static const char *loops(Conv *v)
{
	KernelFunc *k = v->k;
	const int64_t blocks = v->x->dims[1]->value * v->chunks[0] * v->chunks[1], numbers = v->numbers;
	const int64_t parts = op_int(k->op, "parts", 1);
	const int64_t groups = v->w->dims[0]->value;
	const bool shared = kernel_share(k, dim_const(k->ctx, parts)), wide = groups > 1;
	const TemplateKey keys[] = {
		{"input", arena_printf(k->arena, "winograd_input_%s", input_name(v))},
		{"aa", tile_int(k, numbers)},
		{"lanes", tile_int(k, v->lanes)},
		{"blocks", tile_int(k, blocks)},
		{"channels", tile_int(k, v->depth)},
		{"group", tile_int(k, v->group)},
		{"filter", tile_int(k, numbers * v->depth * v->q)},
		{"step", tile_int(k, ahead_step((v->group + v->height - 1) / v->height, v->q))},
		{"behind", sums_place(v, blocks)},
		{"nv", tile_int(k, v->nv)},
		{"products", arena_printf(k->arena, "winograd_products_%dx%dof%d", v->height, v->nv, v->q)},
		{"scratch", kernel_result(k, 1)},
		{"results", results(v, "_results")}, // after all sizes: they are parameters
		{"groups", tile_int(k, groups)},
		{"at", wide ? arena_printf(k->arena, "unit / %" PRId64, groups) : "unit"},
		{"of", wide ? arena_printf(k->arena, "unit %% %" PRId64, groups) : "0"},
		{"parts", tile_int(k, parts)},
		{"each", tile_int(k, shared ? k->op->results[1].type->dims[0]->value / parts : 0)},
	};
	Text t;
	text_init(&t, k->arena);
	const char *name = shared ? "winograd_parts.c" : "winograd_all.c";
	const bool done = template_expand(k->ctx, &t, name, COUNT_OF(keys) - (shared ? 0 : 4), keys);
	return done ? t.text : NULL;
}

static bool conv_print(Conv *v, const char *point)
{
	KernelFunc *k = v->k;
	const Dim *const *out = v->out->dims, *const *x = v->x->dims;
	const char *args[6] = {"acc", "n", "cb", "row", "p", "c"}, *value;
	const char *epilogue = region_text(k, &k->op->regions[0], args, &value);
	if (!epilogue || !tile_helpers(v, point))
		return false;
	const TemplateKey sizes[] = {
		{"batch", kernel_dim(k, out[0])},      {"rows", kernel_dim(k, out[2])},
		{"columns", kernel_dim(k, out[3])},    {"down", tiles_along(v, out[2], 0)},
		{"across", tiles_along(v, out[3], 1)}, {"height", kernel_dim(k, x[2])},
		{"width", kernel_dim(k, x[3])},
	};
	const char *all = loops(v);
	if (!all)
		return false;
	const TemplateKey rest[] = {
		{"shape", v->shape},
		{"size", tile_int(k, v->t[0].tile * v->t[1].tile * v->lanes)},
		{"lanes", tile_int(k, v->lanes)},
		{"top", tile_int(k, v->pad[0])},
		{"left", tile_int(k, v->pad[1])},
		{"blocks", tile_int(k, x[1]->value)},
		{"out_blocks", tile_int(k, v->out_blocks)},
		{"nv", tile_int(k, v->nv)},
		{"type", dtype_c_memory(v->out->dtype)},
		{"y", tile_place(v, "(first + t) / across % down", 0)},
		{"x0", tile_place(v, "(first + t) % across", 1)},
		{"high", tile_int(k, v->t[0].tile * v->apart[0])},
		{"wide", tile_int(k, v->t[1].tile * v->apart[1])},
		{"next_row", step(v, "row", v->apart[0])},
		{"next_column", step(v, "p", v->apart[1])},
		{"spot", spot(v)},
		{"epilogue", epilogue},
		{"store", scalar_store(k, v->out->dtype, "to", "c", value)},
		{"out", kernel_result(k, 0)},
		{"scratch", kernel_result(k, 1)},
		{"sizes", tile_sizes(k)},
		{"loops", all},
		{"range", kernel_range(k)},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
	};
	return kernel_template_joined(k, "winograd.c", COUNT_OF(sizes), sizes, COUNT_OF(rest), rest);
}

bool kernel_winograd_emit(KernelFunc *k)
{
	Conv v = {.k = k, .lanes = k->target->lanes};
	if (!tile_check_f32(k) || !tile_check_layout(k, conv_read(&v)) || !tile_prelude(k))
		return false;
	const char *point = conv_point_function(k, v.height, v.nv, v.q);
	return point && conv_print(&v, point);
}
