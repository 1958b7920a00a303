// Emits kernel.layer_norm: each row to mean 0 and variance 1, scaled and shifted. The operator
// table names it.
#include "codegen/tuned/row.h"

bool kernel_layer_norm_emit(KernelFunc *k)
{
	RowTexts x;
	const Value *scale = op_operand(k->op, 0), *bias = op_operand(k->op, 1);
	if (!tile_check_f32(k) || !row_helper(k, ROW_SUM) || !row_helper(k, ROW_SPREAD) ||
	    !row_texts(k, (int)op_int(k->op, "axes", 1), true, &x))
		return false;
	TemplateKey keys[ROW_KEYS + 6];
	int n = row_keys(k, &x, keys);
	keys[n++] = (TemplateKey){"fill", row_fill(k, &x, false)};
	keys[n++] = (TemplateKey){"from", row_source(&x)};
	keys[n++] = (TemplateKey){"each_out", x.each_out};
	keys[n++] = (TemplateKey){"epsilon",
	                          scalar_float(k->arena, DT_F32, op_float(k->op, "epsilon", 1e-5))};
	keys[n++] = (TemplateKey){
		"scale", scale ? arena_printf(k->arena, " * %s[j]", kernel_tensor(k, scale)) : ""};
	keys[n++] = (TemplateKey){
		"bias", bias ? arena_printf(k->arena, " + %s[j]", kernel_tensor(k, bias)) : ""};
	return kernel_template(k, "layer_norm.c", n, keys);
}
