// Emits kernel.depthwise: one block of channels, a register tile of pixels of a row at a time.
// The operator table names it.
//
// Filter size, strides and dilations are constants of the tile function (depthwise_tile.c.in, or
// depthwise_taps.c.in), which convolutions of equal filters share. Groups narrower than a block
// spread each of their channels over their lanes (spread_gnu.c.in, spread_plain.c.in).
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_COLUMNS = 8 }; // of a filter whose weights for a row stay in registers

typedef struct Depthwise {
	KernelFunc *k;
	int lanes, ur;
	const char *vector; // what vectors of `lanes` are called
	int64_t stride[2], pad[4], dilation[2], kh, kw;
	int64_t group;    // channels of a group, 1 when depthwise
	const char *name; // of the tile function
	bool last;        // channels behind the pixels
	bool deep;        // x is a volume
	// Its slices, those of the result and of the filter, stride, padding in front, dilation.
	int64_t volume[6];
} Depthwise;

// Blocks of the result are as many as the weights' rows, and those of x, or, of single channels, a
// multiple.
static bool blocks_fit(const Depthwise *v, const Type *x, const Type *w, const Type *out)
{
	if (!dim_is(out->dims[4], v->lanes) || out->dims[4] != x->dims[4] ||
	    !dim_is_const(out->dims[1]) || !dim_is_const(x->dims[1]) || out->dims[1] != w->dims[0])
		return false;
	return out->dims[1] == x->dims[1] ||
	       (w->rank == 4 && out->dims[1]->value % x->dims[1]->value == 0);
}

// Whether operands and result lie as the templates have it.
static bool depthwise_fits(const Depthwise *v, const Type *x, const Type *w, const Type *out)
{
	if (out->rank != (v->last ? 4 : 5) || x->rank != out->rank ||
	    (w->rank != 4 && (v->last || w->rank != 5)))
		return false;
	for (const Dim *const *d = w->dims; d < w->dims + w->rank; d++)
		if (!dim_is_const(*d))
			return false;
	return v->last
	           ? out->dims[3] == x->dims[3] && dim_is(out->dims[3], w->dims[0]->value * v->lanes)
	           : blocks_fit(v, x, w, out);
}

// A name for the function: by all that its text depends on.
static const char *depthwise_name(const Depthwise *v)
{
	Arena *a = v->k->arena;
	const char *name = arena_printf(a, "%" PRId64 "x%" PRId64 "_s%" PRId64 "%s", v->kh, v->kw,
	                                v->stride[1], tile_few(v->k, "_by", v->lanes));
	if (v->last)
		name = arena_printf(a, "%s_last", name);
	if (v->group > 1)
		name = arena_printf(a, "%s_g%" PRId64, name, v->group);
	if (v->deep)
		name = arena_printf(a, "%s_deep%" PRId64 "_d%" PRId64, name, v->volume[2], v->volume[5]);
	if (v->dilation[0] != 1 || v->dilation[1] != 1)
		name = arena_printf(a, "%s_d%" PRId64 "x%" PRId64, name, v->dilation[0], v->dilation[1]);
	return name;
}

static bool depthwise_read(Depthwise *v)
{
	const Op *op = v->k->op;
	const Type *x = op_operand(op, 0)->type, *w = op_operand(op, 1)->type,
			   *out = op->results[0].type;
	const Dim *lanes = w->dims[w->rank - 1];
	v->lanes = dim_is_const(lanes) ? (int)lanes->value : 0;
	if (op_ints(op, "strides", v->stride, 2) != 2 || op_ints(op, "paddings", v->pad, 4) != 4 ||
	    op_ints(op, "dilations", v->dilation, 2) != 2 || !depthwise_fits(v, x, w, out))
		return false;
	const Dim *const *window = w->dims + w->rank - 3;
	v->group = w->rank == 5 ? w->dims[1]->value : 1;
	v->deep = op_attr(op, "volume") != NULL;
	if (v->lanes < 1 || v->lanes % v->group ||
	    (v->deep && (v->last || v->group > 1 || op_ints(op, "volume", v->volume, 6) != 6 ||
	                 v->volume[2] < 1 || window[0]->value % v->volume[2])))
		return false;
	v->kh = window[0]->value;
	v->kw = window[1]->value;
	v->ur = tile_height(v->k->target->conv_ur, v->k->target->conv_nv, v->k->target->conv_nv);
	v->name = depthwise_name(v);
	return true;
}

// The function that gives all lanes of a group its element j.
static bool spread_helper(const Depthwise *v)
{
	KernelFunc *k = v->k;
	Text cases;
	text_init(&cases, k->arena);
	for (int64_t j = 0; j < v->group; j++) {
		text_printf(&cases, "case %" PRId64 ": VF_SPREAD(", j);
		for (int64_t i = 0; i < v->lanes; i++)
			text_printf(&cases, "%s%" PRId64, i ? ", " : "", i / v->group * v->group + j);
		text_str(&cases, ");\n");
	}
	const TemplateKey keys[] = {
		{"v", v->vector},
		{"group", tile_int(k, v->group)},
		{"lanes", tile_int(k, v->lanes)},
		{"bytes", tile_int(k, v->lanes * 4)},
		{"cases", cases.text},
	};
	if (!k->target->vector)
		return kernel_helper(k, "spread_plain.c", 3, keys);
	const TemplateKey gnu[] = {keys[0], keys[1], keys[3], keys[4]};
	return kernel_helper(k, "spread_gnu.c", COUNT_OF(gnu), gnu);
}

// What the tile's function has besides.
static const char *more_arguments(const Depthwise *v)
{
	return v->last ? ", step" : v->deep ? ", depth, iz" : "";
}

static const char *more_parameters(const Depthwise *v)
{
	return v->last ? ", int64_t step" : v->deep ? ", int64_t depth, int64_t iz" : "";
}

static const char *tile_cases(const Depthwise *v)
{
	const char *more = more_arguments(v);
	Text cases;
	text_init(&cases, v->k->arena);
	for (int i = 1; i <= v->ur; i++)
		text_printf(
			&cases,
			"case %d: depthwise_pixels_%s(%d, true, height, width%s, x, w, iy, ix, tile); break;\n"
			"%s: depthwise_pixels_%s(%d, false, height, width%s, x, w, iy, ix, tile); "
			"break;\n",
			i, v->name, i, more, tile_case(v->k, -i, -v->ur), v->name, i, more);
	return cases.text;
}

// The row of the input under row ky of the filter, unless it is outside.
static const char *row_text(const Depthwise *v)
{
	Arena *a = v->k->arena;
	if (!v->deep)
		return arena_printf(a,
		                    "const int64_t y = iy + ky * %" PRId64 ";\n"
		                    "if (y < 0 || y >= height)\n\tcontinue;",
		                    v->dilation[0]);
	const int64_t rows = v->kh / v->volume[2];
	return arena_printf(a,
	                    "const int64_t z = iz + ky / %" PRId64 " * %" PRId64
	                    ", h = iy + ky %% %" PRId64 " * %" PRId64 ", y = z * height + h;\n"
	                    "if (z < 0 || z >= depth || h < 0 || h >= height)\n\tcontinue;",
	                    rows, v->volume[5], rows, v->dilation[0]);
}

static bool tile_helper(Depthwise *v)
{
	KernelFunc *k = v->k;
	const bool by_taps = v->dilation[1] != 1 || v->kw > MAX_COLUMNS, spreads = v->group > 1;
	const TemplateKey keys[] = {
		{"v", v->vector},
		{"name", v->name},
		{"kh", tile_int(k, v->kh)},
		{"kw", tile_int(k, v->kw)},
		{"ur", tile_int(k, v->ur)},
		{"lanes", tile_int(k, v->lanes)},
		{"stride", tile_int(k, v->stride[1])},
		{"group", tile_int(k, v->group)},
		{"spread",
	     spreads ? arena_printf(k->arena, "%s_spread_%" PRId64 "(", v->vector, v->group) : ""},
		{"by", spreads ? ", j)" : ""},
		{"step", v->last ? "step" : tile_int(k, v->lanes)},
		{"step_parameter", more_parameters(v)},
		{"row", row_text(v)},
		{"dilation_x", tile_int(k, v->dilation[1])},
	};
	const int by_columns = (int)COUNT_OF(keys) - 1; // without dilation_x
	const TemplateKey call[] = {
		keys[1],
		{"step_parameter", more_parameters(v)},
		{"kw", tile_int(k, v->kw)},
		{"stride", tile_int(k, v->stride[1])},
		{"dilation_x", tile_int(k, v->dilation[1])},
		{"cases", tile_cases(v)},
	};
	return (!spreads || spread_helper(v)) &&
	       (by_taps ? kernel_helper(k, "conv_steps.c", 0, NULL) &&
	                      kernel_helper(k, "depthwise_taps.c", COUNT_OF(keys), keys)
	                : kernel_helper(k, "depthwise_tile.c", by_columns, keys)) &&
	       kernel_helper(k, "depthwise_call.c", COUNT_OF(call), call);
}

// Where the tile's image begins.
static const char *image_text(const Depthwise *v)
{
	Arena *a = v->k->arena;
	if (v->last)
		return arena_printf(a, "x + (n * height * width * blocks + cb) * %d", v->lanes);
	const Type *x = op_operand(v->k->op, 0)->type, *t = v->k->op->results[0].type;
	const int64_t have = x->dims[1]->value;
	const char *block = have == t->dims[1]->value ? "n * blocks + cb"
	                    : have == 1
	                        ? "n"
	                        : arena_printf(a, "n * %" PRId64 " + cb %% %" PRId64, have, have);
	const char *depth = v->deep ? arena_printf(a, "%" PRId64 " * ", v->volume[0]) : "";
	return arena_printf(a, "x + (%s) * %sheight * width * %d", block, depth, v->lanes);
}

// The row of the input, of a slice of it, at which a row's windows begin, and the tile's further
// arguments.
static void begin_texts(const Depthwise *v, const char **row, const char **more)
{
	KernelFunc *k = v->k;
	const char *step = tile_int(k, v->stride[0]), *top = tile_int(k, v->pad[0]);
	if (!v->deep) {
		*row = arena_printf(k->arena, "row * %s - %s", step, top);
		*more = v->last ? arena_printf(k->arena, ", blocks * %d", v->lanes) : "";
		return;
	}
	const int64_t rows = k->op->results[0].type->dims[2]->value / v->volume[1];
	*row = arena_printf(k->arena, "row %% %" PRId64 " * %s - %s", rows, step, top);
	*more = arena_printf(k->arena, ", %" PRId64 ", row / %" PRId64 " * %" PRId64 " - %" PRId64,
	                     v->volume[0], rows, v->volume[3], v->volume[4]);
}

// Over images, blocks of channels and rows, or, where channels are behind the pixels, over rows
// and blocks. Threads share all three.
typedef struct DepthwiseLoops {
	const char *head, *outer, *inner;
} DepthwiseLoops;

static void depthwise_loops(const Depthwise *v, DepthwiseLoops *loops)
{
	KernelFunc *k = v->k;
	Arena *a = k->arena;
	const Type *t = k->op->results[0].type;
	const Dim *blocks = v->last ? op_operand(k->op, 1)->type->dims[0] : t->dims[1],
			  *rows = t->dims[v->last ? 1 : 2];
	const char *outer = v->last ? "rows" : "blocks", *at = v->last ? "row" : "cb",
			   *inner = v->last ? "blocks" : "rows", *in = v->last ? "cb" : "row";
	if (kernel_share(k, dim_mul(k->ctx, t->dims[0], dim_mul(k->ctx, blocks, rows)))) {
		loops->head = arena_printf(a,
		                           "for (int64_t at = begin, next; at < end; at = next) {\n"
		                           "\tnext = pd_range_end(at, %s, end);",
		                           inner);
		loops->outer = arena_printf(a,
		                            "const int64_t n = at / %s / %s, %s = at / %s %% %s, from = at "
		                            "%% %s, until = from + next - at;",
		                            inner, outer, at, inner, outer, inner);
		loops->inner = arena_printf(a, "int64_t %s = from; %s < until; %s++", in, in, in);
		return;
	}
	loops->head = arena_printf(a, "for (int64_t n = 0; n < %s; n++)", kernel_dim(k, t->dims[0]));
	loops->outer = arena_printf(a, "for (int64_t %s = 0; %s < %s; %s++)", at, at, outer, at);
	loops->inner = arena_printf(a, "int64_t %s = 0; %s < %s; %s++", in, in, inner, in);
}

static bool depthwise_print(Depthwise *v)
{
	static const char *const blocked[] = {"acc", "n", "cb", "row", "p", "c"};
	KernelFunc *k = v->k;
	Arena *a = k->arena;
	const Type *x = op_operand(k->op, 0)->type, *t = k->op->results[0].type;
	const char *const behind[] = {"acc", "n", "row", "p",
	                              arena_printf(a, "(cb * %d + c)", v->lanes)};
	const int space = v->last ? 1 : 2; // axis of the rows
	const char *value,
		*epilogue = region_text(k, &k->op->regions[0], v->last ? behind : blocked, &value);
	const char *end = tile_end(k, "first", "columns", t->dims[space + 1], v->ur);
	if (!epilogue || !end)
		return false;
	DepthwiseLoops loops;
	depthwise_loops(v, &loops);
	const char *begin, *more;
	begin_texts(v, &begin, &more);
	const Dim *height = v->deep ? dim_div(k->ctx, x->dims[2], dim_const(k->ctx, v->volume[0]))
	                            : x->dims[space];
	const TemplateKey keys[] = {
		{"name", v->name},
		{"lanes", tile_int(k, v->lanes)},
		{"ur", tile_int(k, v->ur)},
		{"end", end},
		{"over_images", loops.head},
		{"over_outer", loops.outer},
		{"close", k->units ? "}" : ""},
		{"range", kernel_range(k)},
		{"blocks", kernel_dim(k, v->last ? op_operand(k->op, 1)->type->dims[0] : t->dims[1])},
		{"height", kernel_dim(k, height)},
		{"width", kernel_dim(k, x->dims[space + 1])},
		{"rows", kernel_dim(k, t->dims[space])},
		{"columns", kernel_dim(k, t->dims[space + 1])},
		{"inner", loops.inner},
		{"more", more},
		{"image", image_text(v)},
		{"to", v->last
	               ? arena_printf(a, "out + (((n * rows + row) * columns + p) * blocks + cb) * %d",
	                              v->lanes)
	               : arena_printf(a, "out + (((n * blocks + cb) * rows + row) * columns + p) * %d",
	                              v->lanes)},
		{"taps", tile_int(k, v->group * v->kh * v->kw * v->lanes)},
		{"begin", begin},
		{"stride_x", tile_int(k, v->stride[1])},
		{"left", tile_int(k, v->pad[1])},
		{"type", dtype_c_memory(t->dtype)},
		{"epilogue", epilogue},
		{"store", scalar_store(k, t->dtype, "to", "c", value)},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
	};
	return kernel_template(k, "depthwise.c", COUNT_OF(keys), keys);
}

bool kernel_depthwise_emit(KernelFunc *k)
{
	Depthwise v = {.k = k, .last = op_bool(k->op, "channels_last", false)};
	if (!tile_check_f32(k) || !tile_check_layout(k, depthwise_read(&v)))
		return false;
	v.vector = tile_vectors_of(k, v.lanes);
	return v.vector && tile_helper(&v) && depthwise_print(&v);
}
