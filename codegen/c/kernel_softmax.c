// Emits kernel.softmax: each row through its maximum, exponentials and their sum. Called by
// codegen.c.
#include "codegen/c/kernel_row.h"

bool kernel_softmax_emit(KernelFunc *k)
{
	RowTexts x;
	if (!row_helper(k, "row_max.c") || !row_helper(k, "row_sum.c") || !row_texts(k, 1, &x))
		return false;
	TemplateKey keys[ROW_KEYS + 1];
	int n = row_keys(k, &x, keys);
	keys[n++] = (TemplateKey){"exp", k->target->vector ? "pd_expf" : "expf"};
	return kernel_template(k, "softmax.c", n, keys);
}
