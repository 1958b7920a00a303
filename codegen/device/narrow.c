// Emits kernel.conv of plain images for CUDA where a product in tiles does not suit: few channels
// of the result (in a group), of which a tile would be mostly empty, and filters too large for its
// loader. Called by device/conv.c.
#include "codegen/device/conv.h"
#include "codegen/nest/region.h"

enum { MAX_STEP = 8 }; // rows of the filter that a thread takes at once

// Statements that fill weights[OUTS] for tap ky, kx: by vectors where they are aligned. A row of
// the filter holds all channels of the result, and is a multiple of 16 bytes.
static const char *weights_text(KernelFunc *k, const char *row, int outs, bool alone)
{
	const DType t = op_operand(k->op, 1)->type->dtype;
	if (outs % 4 && !alone)
		return arena_printf(
			k->arena, "PD_UNROLL for (int m = 0; m < OUTS; m++)\n\tweights[m] = %s;",
			scalar_load(k, t, "filter",
		                arena_printf(k->arena, "((k0 + ky) * KW + kx) * %s + m", row)));
	kernel_moves(k, t, 4);
	return arena_printf(
		k->arena,
		"PD_UNROLL for (int m = 0; m < OUTS; m += 4) {\n"
		"\tconst pd_vec<%s, 4> four = pd_load<4>(filter + ((k0 + ky) * KW + kx) * %s + m);\n"
		"\tPD_UNROLL for (int l = 0; l < 4 && m + l < OUTS; l++)\n\t\tweights[m + l] = %s;\n}",
		dtype_c_memory(t), row, scalar_load(k, t, "four.v", "l"));
}

bool cuda_narrow_emit(KernelFunc *k, const ConvOp *v)
{
	Context *c = k->ctx;
	const char *value;
	if (!kernel_helper(k, "cuda_conv_shape.c", 0, NULL))
		return false;
	const int outs = (int)op_int(k->op, "outs", 1), rows = (int)op_int(k->op, "rows", 1);
	const int64_t parts = v->out[1]->value / outs, of_group = parts / v->groups;
	const char *shape = conv_shape(k, v), *row = tile_int(k, v->w->dims[4]->value),
			   *epilogue = conv_epilogue(k, &value);
	if (!epilogue)
		return false;
	const Dim *strips = dim_div(c, dim_add(c, v->out[2], dim_const(c, rows - 1)),
	                            dim_const(c, rows));
	k->work = dim_mul(c, dim_mul(c, v->out[0], dim_const(c, parts)), dim_mul(c, strips, v->out[3]));
	const TemplateKey keys[] = {
		{"each", tile_int(k, rows)},
		{"step", tile_int(k, v->kh < MAX_STEP ? v->kh : MAX_STEP)},
		{"outs", tile_int(k, outs)},
		{"parts", tile_int(k, parts)},
		{"channels", tile_int(k, v->channels)},
		{"row", row},
		{"weights", weights_text(k, row, outs, parts == 1)},
		{"group", v->groups == 1  ? "0"
	              : of_group == 1 ? "part"
	                              : arena_printf(k->arena, "part / %d", (int)of_group)},
		{"load", scalar_load(k, v->x->dtype, "from", "y * (int64_t)s.width + at")},
		{"epilogue", epilogue},
		{"store", scalar_store(k, k->op->results[0].type->dtype, "out", "to", value)},
	};
	k->bounds = "256, 2";
	return conv_template(k, v, "cuda_narrow.c", shape, COUNT_OF(keys), keys);
}
