// Emits kernel.depthwise: one block of channels, a register tile of pixels of a row at a time.
// Called by codegen.c.
//
// Filter size, strides and dilations are constants of the tile function (depthwise_tile.c.in),
// which convolutions of equal filters share.
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

typedef struct Depthwise {
	KernelFunc *k;
	int lanes, ur;
	int64_t stride[2], pad[4], dilation[2], kh, kw;
	const char *name; // of the tile function
} Depthwise;

static bool depthwise_read(Depthwise *v)
{
	const Op *op = v->k->op;
	const Type *x = op_operand(op, 0)->type, *w = op_operand(op, 1)->type,
			   *out = op->results[0].type;
	if (op_ints(op, "strides", v->stride, 2) != 2 || op_ints(op, "paddings", v->pad, 4) != 4 ||
	    op_ints(op, "dilations", v->dilation, 2) != 2 || out->rank != 5 || w->rank != 4 ||
	    x->rank != 5)
		return false;
	if (!dim_is_const(w->dims[1]) || !dim_is_const(w->dims[2]) || !dim_is(w->dims[3], v->lanes) ||
	    !dim_is(out->dims[4], v->lanes) || out->dims[1] != x->dims[1])
		return false;
	v->kh = w->dims[1]->value;
	v->kw = w->dims[2]->value;
	v->ur = tile_height(v->k->target->conv_ur, v->k->target->conv_nv, v->k->target->conv_nv);
	v->name = arena_printf(v->k->arena, "%" PRId64 "x%" PRId64 "_s%" PRId64, v->kh, v->kw,
	                       v->stride[1]);
	if (v->dilation[0] != 1 || v->dilation[1] != 1)
		v->name = arena_printf(v->k->arena, "%s_d%" PRId64 "x%" PRId64, v->name, v->dilation[0],
		                       v->dilation[1]);
	return true;
}

static bool tile_helper(Depthwise *v)
{
	KernelFunc *k = v->k;
	Text cases;
	text_init(&cases, k->arena);
	for (int i = 1; i <= v->ur; i++)
		text_printf(
			&cases,
			"case %d: depthwise_pixels_%s(%d, true, height, width, x, w, iy, ix, tile); break;\n"
			"case -%d: depthwise_pixels_%s(%d, false, height, width, x, w, iy, ix, tile); break;\n",
			i, v->name, i, i, v->name, i);
	const TemplateKey keys[] = {
		{"name", v->name},
		{"kh", tile_int(k, v->kh)},
		{"kw", tile_int(k, v->kw)},
		{"ur", tile_int(k, v->ur)},
		{"lanes", tile_int(k, v->lanes)},
		{"stride", tile_int(k, v->stride[1])},
		{"cases", cases.text},
		{"dilation_y", tile_int(k, v->dilation[0])},
		{"dilation_x", tile_int(k, v->dilation[1])},
	};
	return kernel_helper(k, "conv_shape.c", 0, NULL) &&
	       kernel_helper(k, "depthwise_tile.c", COUNT_OF(keys), keys);
}

static bool depthwise_print(Depthwise *v)
{
	KernelFunc *k = v->k;
	const Type *x = op_operand(k->op, 0)->type, *t = k->op->results[0].type;
	const char *value,
		*epilogue = region_text(k, &k->op->regions[0],
	                            (const char *[]){"acc", "n", "cb", "row", "p", "c"}, &value);
	const char *end = tile_end(k, "first", "columns", t->dims[3], v->ur);
	if (!epilogue || !end)
		return false;
	const TemplateKey keys[] = {
		{"name", v->name},
		{"lanes", tile_int(k, v->lanes)},
		{"ur", tile_int(k, v->ur)},
		{"end", end},
		{"batch", kernel_dim(k, t->dims[0])},
		{"blocks", kernel_dim(k, t->dims[1])},
		{"height", kernel_dim(k, x->dims[2])},
		{"width", kernel_dim(k, x->dims[3])},
		{"rows", kernel_dim(k, t->dims[2])},
		{"columns", kernel_dim(k, t->dims[3])},
		{"taps", tile_int(k, v->kh * v->kw * v->lanes)},
		{"stride_y", tile_int(k, v->stride[0])},
		{"stride_x", tile_int(k, v->stride[1])},
		{"top", tile_int(k, v->pad[0])},
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
	Depthwise v = {.k = k, .lanes = k->target->lanes};
	if (!tile_check_f32(k))
		return false;
	if (!depthwise_read(&v)) {
		diag_error(k->ctx->diag, k->op->loc,
		           "kernel.depthwise: operands are not in the layout of this target");
		return false;
	}
	return tile_prelude(k) && tile_helper(&v) && depthwise_print(&v);
}
