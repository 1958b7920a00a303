// Emits kernel.conv: direct convolution of blocked images, a register tile of pixels x output
// channels at a time. The operator table names it.
//
// Three shared functions sum a tile: conv_point.c.in (1x1 filter without padding: images are just
// pixels), conv_plain.c.in (input not blocked: a network's first convolution) and conv_tile.c.in
// (everything else). Each convolution gets thin loops around one of them, with its sizes as
// constants and its epilogue over the finished tile.
#include "codegen/nest/ahead.h"
#include "codegen/nest/blocks.h"
#include "codegen/nest/groups.h"
#include "codegen/tuned/point.h"

#include <inttypes.h>
#include <string.h>

typedef struct Conv {
	KernelFunc *k;
	int lanes, x_lanes; // of a block of the result; of the input
	int ur, nv, q;      // q: output channels in a group of packed weights
	const char *vector; // what vectors of `lanes` are called
	int64_t stride[2], pad[2], dilation[2], channels, kh, kw, out_blocks;
	int64_t groups, share; // share: output channels of a group
	const Type *x, *out;
	bool plain, point, flat; // flat: rows of pixels run into each other
	const char *ahead; // arguments in calls of tiles: what those fetch of the next group's weights;
	                   // "": nothing
} Conv;

static const char *tile_name(const Conv *v)
{
	return v->plain ? "conv_plain" : v->point ? "conv_point" : "conv_tile";
}

// What stands behind the names of functions that read images of few channels.
static const char *input_name(const Conv *v)
{
	return v->plain ? "" : tile_few(v->k, "_by", v->x_lanes);
}

// What stands behind the names of functions that fetch what comes next.
static const char *far_name(const Conv *v)
{
	return *v->ahead ? "_ahead" : "";
}

// What functions of a tile are called by besides: its size, and what they read.
static const char *tile_kind(const Conv *v, int nv)
{
	const KernelFunc *k = v->k;
	return arena_printf(k->arena, "%dx%dof%d_s%" PRId64 "%s", v->ur, nv, v->q, v->stride[1],
	                    input_name(v));
}

// The calls for a tile of any number of pixels up to `ur`; how many sums the largest has.
static const char *tile_cases(const Conv *v, int nv, int *sums)
{
	KernelFunc *k = v->k;
	const char *args = *v->ahead ? "ahead, step, " : "";
	Text cases;
	text_init(&cases, k->arena);
	*sums = v->ur * nv;
	for (int i = 1; i <= v->ur; i++) {
		int split = v->point ? tile_split(i, nv) : 1;
		*sums = split * i * nv > *sums ? split * i * nv : *sums;
		const char *of = arena_printf(k->arena, "%s_%s", far_name(v), tile_kind(v, nv));
		if (v->point)
			text_printf(&cases,
			            "%s: conv_points%s(%d, %d, x, plane, channels, w, %stile); break;\n",
			            tile_case(k, i, v->ur), of, i, split, args);
		else if (v->plain)
			text_printf(&cases,
			            "case %d: conv_plain_pixels%s(%d, true, s, x, w, iy, ix, tile); break;\n"
			            "%s: conv_plain_pixels%s(%d, false, s, x, w, iy, ix, tile); break;\n",
			            i, of, i, tile_case(k, -i, -v->ur), of, i);
		else
			text_printf(&cases, "%s: conv_pixels%s(%d, s, x, w, iy, ix, %stile); break;\n",
			            tile_case(k, i, v->ur), of, i, args);
	}
	return cases.text;
}

// What stands in the functions of a tile that fetches what comes next: 6 keys of both templates,
// the last two of which are those of conv_tile.c.in alone.
static void ahead_keys(const Conv *v, TemplateKey *keys)
{
	static const TemplateKey none[] = {{"far", ""},   {"ahead", ""},     {"fetch", ""},
	                                   {"story", ""}, {"tap_ahead", ""}, {"tap_place", ""}};
	static const TemplateKey point[] = {
		{"far", "_ahead"},
		{"ahead", " const float *ahead, int64_t step,"},
		{"fetch", "if (split == 1)\n\tPD_PREFETCH(ahead + (block + c) * step);"},
		{"story", "// Where they are many, what lies at ahead + c * step is fetched meanwhile."},
	};
	static const TemplateKey tile[] = {
		{"far", "_ahead"},
		{"ahead", " const float *ahead, int64_t step,"},
		{"fetch", "PD_PREFETCH(ahead + c * next_ahead);"},
		{"story", "// What lies at ahead + c * next_ahead is fetched meanwhile."},
		{"tap_ahead", ", const float *ahead, int64_t next_ahead"},
		{"tap_place", ", ahead + (c * s->kh * s->kw + ky * s->kw + kx) * step, "
	                  "s->kh * s->kw * step"},
	};
	const TemplateKey *from = !*v->ahead ? none : v->point ? point : tile;
	memcpy(keys, from, (v->point ? 4 : 6) * sizeof *keys);
}

static bool tile_helper(Conv *v, int nv)
{
	KernelFunc *k = v->k;
	int sums;
	const char *cases = tile_cases(v, nv, &sums);
	TemplateKey keys[17] = {
		{"nv", tile_int(k, nv)},
		{"q", tile_int(k, v->q)},
		{"lanes", tile_int(k, v->lanes)},
		{"ur", tile_int(k, v->ur)},
		{"stride", tile_int(k, v->stride[1])},
		{"cases", cases},
		{"sums", tile_int(k, sums)},
		{"v", v->vector},
		{"in", input_name(v)},
		{"x_lanes", tile_int(k, v->x_lanes)},
		{"step", tile_int(k, v->stride[1] * v->x_lanes)},
	};
	ahead_keys(v, keys + 11);
	if (v->point) {
		keys[15] = (TemplateKey){"pixel", nv > 1 ? arena_printf(k->arena, "i / %d", nv) : "i"};
		keys[16] = (TemplateKey){
			"vector", nv > 1 ? arena_printf(k->arena, "i %% %d * %d", nv, v->lanes) : "0"};
	}
	if ((v->point || *v->ahead) && !kernel_helper(k, "prefetch.c", 0, NULL))
		return false;
	if (v->plain && !kernel_helper(k, "unknown.c", 0, NULL))
		return false;
	return kernel_helper(k, arena_printf(k->arena, "%s.c", tile_name(v)),
	                     v->plain ? 8 : COUNT_OF(keys), keys);
}

const char *conv_point_function(KernelFunc *k, int height, int nv, int q)
{
	Conv v = {.k = k,
	          .lanes = k->target->lanes,
	          .x_lanes = k->target->lanes,
	          .vector = "vf",
	          .ur = height,
	          .q = q,
	          .point = true,
	          .ahead = "ahead, step"};
	v.stride[1] = 1;
	return tile_helper(&v, nv)
	           ? arena_printf(k->arena, "%s%s_%s", tile_name(&v), far_name(&v), tile_kind(&v, nv))
	           : NULL;
}

// `name * scale - less`, without what says nothing.
static const char *scaled(Conv *v, const char *name, int64_t scale, int64_t less)
{
	Text t;
	text_init(&t, v->k->arena);
	text_str(&t, name);
	if (scale != 1)
		text_printf(&t, " * %" PRId64, scale);
	if (less)
		text_printf(&t, " - %" PRId64, less);
	return t.text;
}

static const char *tile_call(Conv *v, int nv)
{
	Arena *a = v->k->arena;
	const char *head = arena_printf(a, "%s%s_%s(pixels, ", tile_name(v), far_name(v),
	                                tile_kind(v, nv));
	const char *column = scaled(v, "first", v->stride[1], v->pad[1]);
	if (v->flat)
		return arena_printf(
			a, "%simage + first * %d, height * width * %d, %" PRId64 ", filter%s, tile);\n", head,
			v->x_lanes, v->x_lanes, v->channels, v->ahead);
	if (v->point)
		return arena_printf(a,
		                    "%simage + (%s * width + %s) * %d, height * width * %d, %" PRId64
		                    ", filter%s, tile);\n",
		                    head, scaled(v, "row", v->stride[0], 0), column, v->x_lanes, v->x_lanes,
		                    v->channels, v->ahead);
	return arena_printf(a, "%s&shape, image, filter, %s, %s%s, tile);\n", head,
	                    scaled(v, "row", v->stride[0], v->pad[0]), column, v->ahead);
}

static const char *tile_calls(Conv *v)
{
	KernelFunc *k = v->k;
	int tail = (int)(v->out_blocks % v->nv);
	if (!tile_helper(v, v->nv) || (tail && v->out_blocks > v->nv && !tile_helper(v, tail)))
		return NULL;
	if (!tail || v->out_blocks < v->nv)
		return tile_call(v, v->nv);
	return arena_printf(k->arena, "if (blocks == %d)\n\t%selse\n\t%s", v->nv, tile_call(v, v->nv),
	                    tile_call(v, tail));
}

// Without designators: C++17 has none.
static const char *shape_text(Conv *v)
{
	if (v->point)
		return "";
	const char *by = v->plain ? "" : arena_printf(v->k->arena, " * %d", v->x_lanes);
	return arena_printf(
		v->k->arena,
		"const conv_shape shape = {%" PRId64 ", height, width, %" PRId64 ", %" PRId64 ", %" PRId64
		", %" PRId64 ", width%s, height * width%s, %s}; // channels, height, width, kh, kw, "
		"dilation_y, dilation_x, row, plane, lane",
		v->channels, v->kh, v->kw, v->dilation[0], v->dilation[1], by, by,
		v->groups > 1 ? arena_printf(v->k->arena, "channels %% %d", v->x_lanes) : "0");
}

// acc, n, cb, y, x, c
static const char *epilogue_text(Conv *v, const char **value)
{
	const Region *r = &v->k->op->regions[0];
	const Dim *const *d = v->out->dims;
	const char *args[6] = {"acc", "n", "cb", "row", "p", "c"};
	if (v->flat) {
		args[3] = region_uses(r, 3) ? tile_position(v->k, "p", 2, d + 2, 0) : "0";
		args[4] = region_uses(r, 4) ? tile_position(v->k, "p", 2, d + 2, 1) : "0";
	}
	return region_text(v->k, r, args, value);
}

// The epilogue and sizes as C; asked for before what lists the function's parameters.
typedef struct ConvSizes {
	const char *x_blocks, *height, *width, *rows, *columns, *end;
	const char *epilogue, *value; // statements, and what they yield
	GroupLoops loops;
} ConvSizes;

// How many bytes a pixel of the result reads of the image, or a row of them; 0: it is open.
static int64_t bytes_read(const Conv *v)
{
	const int64_t pixel = v->channels * (int64_t)sizeof(float);
	const Dim *wide = v->x->dims[3];
	if (v->flat)
		return pixel;
	return dim_is_const(wide) ? pixel * wide->value * v->stride[0] : 0;
}

// How many pixels, or rows of them, meet all groups of weights before the next do; 0: all.
static int64_t block_of(const Conv *v, int64_t groups, const Dim *extent)
{
	enum { FILLED = 1 << 20, OPEN = 256 }; // bytes
	const int64_t bytes = bytes_read(v);
	if (v->groups > 1 || groups < 2 || bytes < 1)
		return 0;
	return block_size(
		extent, &(BlockRule){.bytes = bytes,
	                         .panel = v->channels * v->kh * v->kw * v->q * (int64_t)sizeof(float),
	                         .least = v->flat ? v->ur : 1,
	                         .most = INT64_MAX,
	                         .filled = FILLED / bytes,
	                         .open = v->flat && bytes >= OPEN});
}

// The tiles of all rows: which one is at hand, and of how many; in blocks of `rows`, 0: as a whole.
static void tiles_of_rows(const Conv *v, const char *columns, int64_t rows, Ahead *a)
{
	KernelFunc *k = v->k;
	const Dim *down = v->out->dims[2], *across = v->out->dims[3];
	const char *row = rows ? "(row - from)" : "row";
	rows = rows || !dim_is_const(down) ? rows : down->value;
	a->tiles *= rows;
	a->first = arena_printf(k->arena, "(%s * %s + first)", row, columns);
	a->extent = a->tiles ? tile_int(k, rows * across->value)
	                     : arena_printf(k->arena, "(%s * %s)", rows ? tile_int(k, rows) : "rows",
	                                    columns);
}

// Whether tiles fetch the next of `groups` groups of weights.
static bool reads_ahead(const Conv *v, int64_t groups)
{
	const int64_t group = v->channels * v->kh * v->kw * v->q * (int64_t)sizeof(float);
	return !v->plain && v->groups == 1 && groups > 1 && ahead_pays(groups * group);
}

// What they fetch of it, as arguments; "": nothing; NULL after a diagnostic.
static const char *ahead_of(const Conv *v, int64_t groups, const Dim *across, int64_t block)
{
	if (!reads_ahead(v, groups))
		return "";
	KernelFunc *k = v->k;
	const int64_t pixels = block && v->flat ? block : dim_is_const(across) ? across->value : 0;
	const char *columns = pixels ? tile_int(k, pixels) : "columns";
	Ahead a = {.base = "w",
	           .panel = arena_printf(k->arena, "(group + 1) %% %" PRId64 " * %d", groups, v->q),
	           .first = block ? "(first - from)" : "first",
	           .extent = columns,
	           .depth = tile_int(k, v->channels * v->kh * v->kw),
	           .tiles = (pixels + v->ur - 1) / v->ur,
	           .width = v->q};
	if (!v->flat)
		tiles_of_rows(v, columns, block, &a);
	const char *share = ahead_share(k, &a);
	return share ? arena_printf(k->arena, ", %s", share) : NULL;
}

// `groups`: rows of packed weights.
static bool conv_sizes(Conv *v, int64_t groups, ConvSizes *s)
{
	KernelFunc *k = v->k;
	const Dim *const *t = v->out->dims, *const *d = v->x->dims;
	const Dim *across = v->flat ? dim_mul(k->ctx, t[2], t[3]) : t[3];
	const char *value, *epilogue = epilogue_text(v, &value);
	if (!epilogue)
		return false;
	v->ur = tile_height(k->target->conv_ur, k->target->conv_nv, v->nv);
	const int64_t block = block_of(v, groups, v->flat ? across : t[2]);
	v->ahead = ahead_of(v, groups, across, block);
	if (!v->ahead)
		return false;
	*s = (ConvSizes){
		.epilogue = epilogue,
		.value = value,
		.rows = v->flat ? "1" : kernel_dim(k, t[2]),
		.columns = kernel_dim(k, across),
		.end = block && v->flat ? tile_end_within(k, "first", "until", v->ur)
	                            : tile_end(k, "first", "columns", across, v->ur),
		.height = kernel_dim(k, d[2]),
		.width = kernel_dim(k, d[3]),
		.x_blocks = kernel_dim(k, d[1]),
		.loops = {.batch = t[0],
	              .rows = t[2],
	              .columns = t[3],
	              .flat = v->flat,
	              .ur = v->ur,
	              .block = block},
	};
	group_parts(k, groups, &s->loops);
	return s->end != NULL;
}

// All rows of packed weights, of each image.
static const char *row_loops(Conv *v, int64_t n, const ConvSizes *s)
{
	KernelFunc *k = v->k;
	Arena *a = k->arena;
	if (!k->units)
		return group_images(
			k, &s->loops,
			tile_pass_on(k, arena_printf(a, "for (int64_t at = 0; at < %" PRId64 "; at++)", n),
		                 "_row", "n, at"));
	return tile_share(
		k, s->loops.inner,
		tile_pass_on(
			k, "", "_row",
			arena_printf(a, "unit / %" PRId64 ", unit %% %" PRId64 ", from, until", n, n)));
}

// Both templates: with what they have in common, calls of tiles among it, and `n` keys of their
// own.
static bool conv_template(Conv *v, const char *name, const ConvSizes *s, const char *calls, int n,
                          const TemplateKey *own)
{
	KernelFunc *k = v->k;
	const TemplateKey common[] = {
		{"height", s->height},
		{"width", s->width},
		{"x_blocks", s->x_blocks},
		{"x_lanes", tile_int(k, v->x_lanes)},
		{"filter", tile_int(k, v->channels * v->kh * v->kw * v->q)},
		{"q", tile_int(k, v->q)},
		{"rows", s->rows},
		{"columns", s->columns},
		{"end", s->end},
		{"ur", tile_int(k, v->ur)},
		{"shape", shape_text(v)},
		{"tile_calls", calls},
		{"lanes", tile_int(k, v->lanes)},
		{"out_blocks", tile_int(k, v->out_blocks)},
		{"type", dtype_c_memory(v->out->dtype)},
		{"epilogue", s->epilogue},
		{"store", scalar_store(k, v->out->dtype, "to", "c", s->value)},
		{"part", s->loops.part},
		{"row_from", s->loops.row_from},
		{"row_until", s->loops.row_until},
		{"from", s->loops.from},
		{"until", s->loops.until},
		{"sizes", tile_sizes(k)},
		{"range", kernel_range(k)},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
	};
	return kernel_template_joined(k, name, COUNT_OF(common), common, n, own);
}

// Which channels a row of weights reads and makes: a group has one row, or several.
static const char *groups_place(const Conv *v, int64_t parts)
{
	Arena *a = v->k->arena;
	const char *channels = tile_int(v->k, v->channels), *share = tile_int(v->k, v->share),
			   *q = tile_int(v->k, v->q);
	if (parts == 1)
		return arena_printf(a, "const int64_t channels = at * %s, from = at * %s, made = %s;",
		                    channels, share, share);
	return arena_printf(a,
	                    "const int64_t group = at / %s, part = at %% %s, channels = group * %s;\n"
	                    "const int64_t from = group * %s + part * %s;\n"
	                    "const int64_t made = %s - part * %s < %s ? %s - part * %s : %s;",
	                    tile_int(v->k, parts), tile_int(v->k, parts), channels, share, q, share, q,
	                    q, share, q, q);
}

// Several groups: each begins with a row of packed weights, and has `parts` of them.
static bool groups_print(Conv *v)
{
	KernelFunc *k = v->k;
	Arena *a = k->arena;
	const int64_t parts = (v->share + v->q - 1) / v->q;
	const bool whole = v->share % v->lanes == 0; // groups begin with a block
	ConvSizes s;
	if (!conv_sizes(v, v->groups * parts, &s) || !tile_helper(v, v->nv))
		return false;
	const char *next = arena_printf(a, "done + %d", v->lanes);
	const TemplateKey keys[] = {
		{"place", groups_place(v, parts)},
		{"lane", whole ? "0" : arena_printf(a, "(from + done) %% %d", v->lanes)},
		{"next", whole ? next : arena_printf(a, "%s - lane < made ? %s - lane : made", next, next)},
		{"loops", row_loops(v, v->groups * parts, &s)},
	};
	return conv_template(v, "conv_groups.c", &s, tile_call(v, v->nv), COUNT_OF(keys), keys);
}

static bool conv_print(Conv *v)
{
	KernelFunc *k = v->k;
	ConvSizes s;
	if (v->out_blocks < v->nv)
		v->nv = (int)v->out_blocks; // the group is not full: no tile is wider than that
	if (!conv_sizes(v, (v->out_blocks + v->nv - 1) / v->nv, &s))
		return false;
	const char *calls = tile_calls(v), *loops = group_calls(k, &s.loops, v->out_blocks, v->nv);
	const TemplateKey keys[] = {
		{"nv", tile_int(k, v->nv)},
		{"loops", loops},
	};
	return calls && loops && conv_template(v, "conv.c", &s, calls, COUNT_OF(keys), keys);
}

// Whether a block of an image may have so many channels.
static bool is_block(const Target *t, const Dim *lanes)
{
	return dim_is(lanes, t->lanes) || (t->few && dim_is(lanes, t->few));
}

// Whether operands and result lie as the templates have it.
static bool conv_fits(const Conv *v, const Type *x, const Type *w, const Type *out)
{
	if (out->rank != 5 || w->rank != 5 || x->rank != (v->plain ? 4 : 5))
		return false;
	for (int i = 2; i < 5; i++)
		if (!dim_is_const(w->dims[i]))
			return false;
	const Target *t = v->k->target;
	return dim_is_const(out->dims[1]) && is_block(t, out->dims[4]) &&
	       (v->plain || is_block(t, x->dims[4])) && w->dims[4]->value % out->dims[4]->value == 0;
}

static bool is_padded(const int64_t *pad)
{
	return pad[0] || pad[1] || pad[2] || pad[3];
}

// Whether a kernel of one point reads whole blocks.
static bool conv_is_point(const Conv *v, const int64_t *pad)
{
	return !v->plain && v->kh == 1 && v->kw == 1 && !is_padded(pad) &&
	       (v->groups == 1 || v->channels % v->x_lanes == 0);
}

static bool conv_read(Conv *v)
{
	const Op *op = v->k->op;
	const Type *x = op_operand(op, 0)->type, *w = op_operand(op, 1)->type,
			   *out = op->results[0].type;
	int64_t pad[4];
	v->x = x;
	v->out = out;
	v->plain = op_bool(op, "plain_input", false);
	v->channels = op_int(op, "in_channels", 0);
	if (op_ints(op, "strides", v->stride, 2) != 2 || op_ints(op, "paddings", pad, 4) != 4 ||
	    op_ints(op, "dilations", v->dilation, 2) != 2 || !conv_fits(v, x, w, out))
		return false;
	v->pad[0] = pad[0];
	v->pad[1] = pad[1];
	v->lanes = (int)out->dims[4]->value;
	v->x_lanes = v->plain ? 1 : (int)x->dims[4]->value;
	v->out_blocks = out->dims[1]->value;
	v->kh = w->dims[2]->value;
	v->kw = w->dims[3]->value;
	v->q = (int)w->dims[4]->value;
	v->nv = v->q / v->lanes;
	v->groups = op_int(op, "groups", 1);
	v->share = op_int(op, "out_channels", 0);
	v->point = conv_is_point(v, pad);
	v->flat = v->point && v->stride[0] == 1 && v->stride[1] == 1;
	return v->nv >= 1 && v->nv <= 8 && v->channels > 0 &&
	       (v->groups == 1 || (v->groups > 1 && v->share > 0 && !v->plain));
}

bool kernel_conv_emit(KernelFunc *k)
{
	Conv v = {.k = k, .ahead = ""};
	if (!tile_check_f32(k) || !tile_check_layout(k, conv_read(&v)))
		return false;
	v.vector = tile_vectors_of(k, v.lanes);
	return v.vector &&
	       (v.point || (kernel_helper(k, "conv_shape.c", 0, NULL) &&
	                    kernel_helper(k, "conv_steps.c", 0, NULL))) &&
	       (v.groups > 1 ? groups_print(&v) : conv_print(&v));
}
