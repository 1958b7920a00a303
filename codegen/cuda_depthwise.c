// Emits kernel.depthwise of plain images for CUDA: memory decides, so each element of the input comes to a thread once for
// all windows of a column that it computes. Called by cuda.c.
//
// Sizes of images are arguments, those of the filter constants of the text: layers that differ in the former share a function.
#include "cuda_conv.h"
#include "kernel_tile.h"

enum {
	MANY = 1 << 18,     // results of an image from which a thread makes MAX_ROWS; fewer for fewer results
	MAX_ROWS = 4,
	UNKNOWN_SIZE = 56 // a size that only the caller knows counts as this
};

// Rows that a thread makes: as many threads as keep the device busy.
static int rows_each(const ConvOp *v)
{
	int64_t results = 1;
	int rows = MAX_ROWS;
	for (int i = 1; i < 4; i++)
		results *= dim_is_const(v->out[i]) ? v->out[i]->value : UNKNOWN_SIZE;
	for (int64_t many = MANY; rows > 1 && results < many; many /= 2)
		rows /= 2;
	while (rows > 1 && dim_is_const(v->out[2]) && v->out[2]->value < rows)
		rows /= 2;
	return v->dilation[0] > 1 ? 1 : rows; // windows apart share nothing
}

const Dim *cuda_depthwise_threads(Context *c, const Op *op)
{
	ConvOp v;
	if (!conv_op_read(op, &v))
		return dim_const(c, 0);
	const Dim *const *d = v.out, *each = dim_const(c, rows_each(&v));
	const Dim *strips = dim_div(c, dim_add(c, d[2], dim_const(c, each->value - 1)), each);
	return dim_mul(c, dim_mul(c, d[0], d[1]), dim_mul(c, strips, d[3]));
}

bool cuda_depthwise_emit(KernelFunc *k)
{
	ConvOp v;
	const char *value;
	if (!conv_op_read(k->op, &v) || !kernel_helper(k, "cuda_conv_shape.c", 0, NULL))
		return false;
	const int64_t multiple = v.out[1]->value / v.x->dims[1]->value;
	const DType t = v.x->dtype;
	const char *shape = conv_shape(k, &v), *epilogue = conv_epilogue(k, &value);
	if (!epilogue)
		return false;
	const TemplateKey keys[] = {
		{"each", tile_int(k, rows_each(&v))}, {"kh", tile_int(k, v.kh)}, {"kw", tile_int(k, v.kw)},
		{"stride_y", tile_int(k, v.stride[0])}, {"stride_x", tile_int(k, v.stride[1])},
		{"dilation_y", tile_int(k, v.dilation[0])}, {"dilation_x", tile_int(k, v.dilation[1])}, {"shape", shape},
		{"type", dtype_c_memory(t)}, {"channel", multiple > 1 ? arena_printf(k->arena, "c / %d", (int)multiple) : "c"},
		{"weight", scalar_load(k, v.w->dtype, "w", "c * (KH * KW) + i")}, {"load", scalar_load(k, t, "line", "at")},
		{"epilogue", epilogue}, {"store", scalar_store(k, k->op->results[0].type->dtype, "out", "to", value)},
	};
	return kernel_template(k, "cuda_depthwise.c", COUNT_OF(keys), keys);
}
