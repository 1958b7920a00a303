// Emits kernel.softmax: each row through its maximum, exponentials and their sum. Called by
// codegen.c.
#include "codegen/c/kernel_row.h"

bool kernel_softmax_emit(KernelFunc *k)
{
	RowTexts x;
	if (!row_helper(k, "row_max.c") || !row_helper(k, "row_sum.c") || !row_texts(k, 1, &x))
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
		{"exp", k->target->vector ? "pd_expf" : "expf"},
		{"returns", tile_returns(k)},
		{"done", tile_done(k)},
	};
	return kernel_template(k, "softmax.c", COUNT_OF(keys), keys);
}
