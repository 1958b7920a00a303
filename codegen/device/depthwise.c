// Emits kernel.depthwise for CUDA: memory decides, so each element of the input comes to a thread
// once for all windows of a column that it computes, of blocked images for eight channels at once.
// Called by cuda.c.
//
// Sizes of images are arguments, those of the filter constants of the text: layers that differ in
// the former share a function.
#include "codegen/device/conv.h"
#include "codegen/device/vector.h"
#include "codegen/nest/region.h"

// Rows of a column that a thread makes.
static int rows_of(const Op *op)
{
	return (int)op_int(op, "rows", 1);
}

const Dim *cuda_depthwise_work(Context *c, const Op *op)
{
	ConvOp v;
	if (!conv_op_read(op, &v))
		return dim_const(c, 0);
	const Dim *const *d = v.out, *each = dim_const(c, rows_of(op));
	const Dim *strips = dim_div(c, dim_add(c, d[2], dim_const(c, each->value - 1)), each);
	return dim_mul(c, dim_mul(c, d[0], d[1]), dim_mul(c, strips, d[3]));
}

// The statements that make vector `y` of the sums of a row; NULL after a diagnostic.
static const char *block_epilogue(KernelFunc *k)
{
	static const char *const at[] = {"n", "c", "row", "column"};
	const Region *r = &k->op->regions[0];
	const Block *b = region_entry(r);
	const int rank = k->op->results[0].type->rank,
			  wide = vector_suits(r, rank, CONV_LANES) ? CONV_LANES : 1;
	const char *acc[CONV_LANES], *values[CONV_LANES];
	Scalars s;
	Text out;
	text_init(&out, k->arena);
	scalars_init(&s, k);
	for (int i = 0; i < rank; i++)
		pointer_map_set(&s.names, b->args[1 + i], i < rank - 1 ? at[i] : wide > 1 ? "0" : "l");
	k->place = wide > 1 ? "to" : "to + l";
	for (int l = 0; l < wide; l++) {
		const char *sum = arena_printf(k->arena, "sums[r][%s]", wide > 1 ? tile_int(k, l) : "l");
		acc[l] = region_is_identity(r) ? sum : scalar_round(k, b->args[0]->type, sum);
	}
	if (!vector_region_print(&s, r, rank, wide, acc, &out, values))
		return NULL;
	for (int l = 0; l < wide; l++)
		text_line(&out, 0, "%s;",
		          scalar_store(k, k->op->results[0].type->dtype, "y.v",
		                       wide > 1 ? tile_int(k, l) : "l", values[l]));
	return wide > 1 ? out.text
	                : arena_printf(k->arena, "PD_UNROLL for (int l = 0; l < LANES; l++) {\n%s}",
	                               out.text);
}

bool conv_template(KernelFunc *k, const ConvOp *v, const char *name, const char *shape, int n,
                   const TemplateKey *own)
{
	const TemplateKey common[] = {
		{"kh", tile_int(k, v->kh)},
		{"kw", tile_int(k, v->kw)},
		{"stride_y", tile_int(k, v->stride[0])},
		{"stride_x", tile_int(k, v->stride[1])},
		{"dilation_y", tile_int(k, v->dilation[0])},
		{"dilation_x", tile_int(k, v->dilation[1])},
		{"shape", shape},
		{"type", dtype_c_memory(v->x->dtype)},
	};
	return kernel_template_joined(k, name, COUNT_OF(common), common, n, own);
}

const char *conv_epilogue(KernelFunc *k, const char **value)
{
	const Region *r = &k->op->regions[0];
	const char *sum = region_is_identity(r)
	                      ? "acc"
	                      : scalar_round(k, region_entry(r)->args[0]->type, "acc");
	k->place = "to";
	return region_text(k, r, (const char *[]){sum, "n", "c", "row", "column"}, value);
}

static bool blocked_emit(KernelFunc *k, const ConvOp *v, const char *shape)
{
	const DType t = v->x->dtype;
	const char *epilogue = block_epilogue(k);
	kernel_moves(k, t, (int)v->x->dims[4]->value);
	const TemplateKey keys[] = {
		{"each", tile_int(k, rows_of(k->op))},
		{"load", scalar_load(k, t, "v.v", "l")},
		{"weight", scalar_load(k, t, "f.v", "l")},
		{"result", dtype_c_memory(k->op->results[0].type->dtype)},
		{"epilogue", epilogue},
	};
	return epilogue && conv_template(k, v, "cuda_depthwise_blocked.c", shape, COUNT_OF(keys), keys);
}

bool cuda_depthwise_emit(KernelFunc *k)
{
	ConvOp v;
	const char *value;
	if (!conv_op_read(k->op, &v) || !kernel_helper(k, "cuda_conv_shape.c", 0, NULL))
		return false;
	const DType t = v.x->dtype;
	const char *shape = conv_shape(k, &v);
	if (v.blocked)
		return blocked_emit(k, &v, shape);
	const int64_t multiple = v.out[1]->value / v.x->dims[1]->value;
	const char *epilogue = conv_epilogue(k, &value);
	if (!epilogue)
		return false;
	const TemplateKey keys[] = {
		{"each", tile_int(k, rows_of(k->op))},
		{"channel", multiple > 1 ? arena_printf(k->arena, "c / %d", (int)multiple) : "c"},
		{"weight", scalar_load(k, t, "w", "c * (KH * KW) + i")},
		{"load", scalar_load(k, t, "line", "at")},
		{"epilogue", epilogue},
		{"store", scalar_store(k, k->op->results[0].type->dtype, "out", "to", value)},
	};
	return conv_template(k, &v, "cuda_depthwise.c", shape, COUNT_OF(keys), keys);
}
