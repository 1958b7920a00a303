// Emits kernel.filter_gradient and kernel.filter_gradient_single, what filters get in training.
// The operator table names it.
//
// A register tile (filter_gradient_tile.c.in) holds sums of some taps of the filter, which are
// channels of one block or, of an image that is not blocked, any, for some blocks of output
// channels; it goes over a rectangle of positions, of which each gives a product of one element by
// vectors.
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

enum {
	STRIP = 96 // positions that stay in the first cache, with as many of the input
};

typedef struct ConvFilter {
	KernelFunc *k;
	int lanes, ur, nv;  // of the tile: taps, blocks of output channels
	const char *vector; // what vectors of `lanes` are called
	int64_t stride[2], pad[4], dilation[2], channels, groups, kh, kw, out_blocks;
	const Type *x, *d;
} ConvFilter;

// As the target's tile for convolutions has room: fewer taps are more vectors. Tiles do not cross
// groups, and all are alike.
static void choose_tile(ConvFilter *v)
{
	const Target *t = v->k->target;
	v->ur = t->lanes >= 8 && t->conv_ur * t->conv_nv >= 16 ? 8 : 4;
	int most = t->conv_ur * t->conv_nv / v->ur;
	const int64_t blocks = v->out_blocks / v->groups;
	for (v->nv = most < 4 ? most : 4; v->nv > 1 && blocks % v->nv; v->nv--)
		;
	v->nv = v->nv < 1 ? 1 : v->nv;
}

static bool sizes_fit(const ConvFilter *v, bool plain, int rank)
{
	const Type *out = v->k->op->results[0].type;
	if (v->x->rank != (plain ? 4 : 5) || v->d->rank != 5 || out->rank != rank)
		return false;
	for (int i = 0; i < rank; i++)
		if (!dim_is_const(out->dims[i]))
			return false;
	return out->dims[rank - 1] == v->d->dims[4] && v->d->dims[1] == out->dims[0] &&
	       (plain || dim_is_const(v->x->dims[4]));
}

static bool filter_read(ConvFilter *v, bool plain, int rank)
{
	const Op *op = v->k->op;
	const Dim *const *out = op->results[0].type->dims;
	v->x = op_operand(op, 0)->type;
	v->d = op_operand(op, 1)->type;
	v->channels = op_int(op, "in_channels", 1);
	v->groups = op_int(op, "groups", 1);
	if (!tile_check_f32(v->k))
		return false;
	const bool fits = sizes_fit(v, plain, rank) && op_ints(op, "strides", v->stride, 2) == 2 &&
	                  op_ints(op, "paddings", v->pad, 4) == 4 &&
	                  op_ints(op, "dilations", v->dilation, 2) == 2;
	if (!tile_check_layout(v->k, fits))
		return false;
	v->out_blocks = out[0]->value;
	v->kh = out[rank - 3]->value;
	v->kw = out[rank - 2]->value;
	v->lanes = (int)out[rank - 1]->value;
	v->vector = tile_vectors_of(v->k, v->lanes);
	return v->vector != NULL;
}

static bool tile_helper(const ConvFilter *v)
{
	KernelFunc *k = v->k;
	Text cases;
	text_init(&cases, k->arena);
	for (int i = 1; i <= v->ur; i++)
		text_printf(&cases,
		            "%s: filter_gradient_taps_%dx%d%s(%d, rows, columns, x, at, x_row, x_step, d, "
		            "d_row, d_plane, to, next_tap, next_block); break;\n",
		            tile_case(k, i, v->ur), v->ur, v->nv, tile_few(v->k, "_of", v->lanes), i);
	const TemplateKey keys[] = {
		{"ur", tile_int(k, v->ur)},
		{"nv", tile_int(k, v->nv)},
		{"lanes", tile_int(k, v->lanes)},
		{"v", v->vector},
		{"of", tile_few(v->k, "_of", v->lanes)},
		{"sums", tile_int(k, v->ur * v->nv)},
		{"cases", cases.text},
	};
	return kernel_helper(k, "filter_gradient_tile.c", COUNT_OF(keys), keys);
}

// With what all templates ask for, and `n` keys of one's own.
static bool gradient_template(const ConvFilter *v, const char *name, int n, const TemplateKey *own)
{
	KernelFunc *k = v->k;
	const Type *out = k->op->results[0].type;
	const TemplateKey common[] = {
		{"height", kernel_dim(k, v->x->dims[2])},
		{"width", kernel_dim(k, v->x->dims[3])},
		{"rows", kernel_dim(k, v->d->dims[2])},
		{"columns", kernel_dim(k, v->d->dims[3])},
		{"batch", kernel_dim(k, v->d->dims[0])},
		{"elements", tile_product(k, out->rank, out->dims)},
		{"out_blocks", tile_int(k, v->out_blocks)},
		{"lanes", tile_int(k, v->lanes)},
		{"stride_y", tile_int(k, v->stride[0])},
		{"stride_x", tile_int(k, v->stride[1])},
		{"dilation_y", tile_int(k, v->dilation[0])},
		{"dilation_x", tile_int(k, v->dilation[1])},
	};
	return kernel_template_joined(k, name, n, own, COUNT_OF(common), common);
}

// All taps, in shares that are about alike.
static bool plain_print(const ConvFilter *v)
{
	KernelFunc *k = v->k;
	const int64_t taps = v->channels * v->kh * v->kw, tiles = (taps + v->ur - 1) / v->ur;
	const TemplateKey keys[] = {
		{"taps", tile_int(k, taps)},
		{"window", tile_int(k, v->kh * v->kw)},
		{"kw", tile_int(k, v->kw)},
		{"channels", tile_int(k, v->channels)},
		{"strip", tile_int(k, STRIP)},
		{"share", tile_int(k, (taps + tiles - 1) / tiles)},
		{"ur", tile_int(k, v->ur)},
		{"nv", tile_int(k, v->nv)},
		{"of", tile_few(v->k, "_of", v->lanes)},
	};
	return gradient_template(v, "filter_gradient_plain.c", COUNT_OF(keys), keys);
}

static bool blocked_print(const ConvFilter *v)
{
	KernelFunc *k = v->k;
	Arena *a = k->arena;
	Text at;
	text_init(&at, a);
	for (int i = 0; i < v->ur; i++)
		text_printf(&at, "%s%d", i ? ", " : "", i);
	const TemplateKey keys[] = {
		{"lanes_at", at.text},
		{"channels", tile_int(k, v->channels)},
		{"channel", v->groups > 1 ? arena_printf(a, "block / %" PRId64 " * %" PRId64 " + c",
	                                             v->out_blocks / v->groups, v->channels)
	                              : "c"},
		{"x_blocks", kernel_dim(k, v->x->dims[1])},
		{"strip", tile_int(k, STRIP)},
		{"kh", tile_int(k, v->kh)},
		{"kw", tile_int(k, v->kw)},
		{"top", tile_int(k, v->pad[0])},
		{"left", tile_int(k, v->pad[1])},
		{"ur", tile_int(k, v->ur)},
		{"nv", tile_int(k, v->nv)},
		{"of", tile_few(v->k, "_of", v->lanes)},
		{"x_lanes", kernel_dim(k, v->x->dims[4])},
	};
	return kernel_helper(k, "conv_steps.c", 0, NULL) &&
	       gradient_template(v, "filter_gradient.c", COUNT_OF(keys), keys);
}

bool kernel_filter_gradient_emit(KernelFunc *k)
{
	ConvFilter v = {.k = k};
	const bool plain = op_bool(k->op, "plain_input", false);
	if (!filter_read(&v, plain, 5))
		return false;
	choose_tile(&v);
	return tile_helper(&v) && (plain ? plain_print(&v) : blocked_print(&v));
}

bool kernel_filter_gradient_single_emit(KernelFunc *k)
{
	ConvFilter v = {.k = k};
	if (!filter_read(&v, false, 4))
		return false;
	const TemplateKey keys[] = {
		{"kh", tile_int(k, v.kh)},       {"kw", tile_int(k, v.kw)}, {"top", tile_int(k, v.pad[0])},
		{"left", tile_int(k, v.pad[1])}, {"v", v.vector},
	};
	return kernel_helper(k, "conv_steps.c", 0, NULL) &&
	       gradient_template(&v, "filter_gradient_single.c", COUNT_OF(keys), keys);
}
