// Emits kernel.layer_norm: each row to mean 0 and variance 1, scaled and shifted. Called by
// codegen.c.
#include "codegen/c/kernel_row.h"

bool kernel_layer_norm_emit(KernelFunc *k)
{
	RowTexts x;
	const Value *scale = op_operand(k->op, 0), *bias = op_operand(k->op, 1);
	if (!tile_check_f32(k) || !row_helper(k, "row_sum.c") || !row_helper(k, "row_spread.c") ||
	    !row_texts(k, (int)op_int(k->op, "axes", 1), &x))
		return false;
	const TemplateKey keys[] = {
		{"rows", x.rows},
		{"columns", x.columns},
		{"buffer", x.buffer},
		{"row", x.row},
		{"input", x.input},
		{"value", x.value},
		{"epilogue", x.epilogue},
		{"store", x.store},
		{"epsilon", scalar_float(k->arena, DT_F32, op_float(k->op, "epsilon", 1e-5))},
		{"scale", scale ? arena_printf(k->arena, " * %s[j]", kernel_tensor(k, scale)) : ""},
		{"bias", bias ? arena_printf(k->arena, " + %s[j]", kernel_tensor(k, bias)) : ""},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
	};
	return kernel_template(k, "layer_norm.c", COUNT_OF(keys), keys);
}
