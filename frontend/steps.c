// Operators whose translation needs more than their table entry says: overrides of single steps, by the
// `hook:` of the entry. Used by translate.c.
#include "translate.h"

#include <string.h>

// ---- elementwise: operands aligned at `axis` -------------------------------------------------------

// Legacy operators lay the smaller operand over the larger from axis `axis` on; -1 aligns the last axes, as
// broadcasting does. Axes of size 1 behind make the two the same.
static Value *align(OpJob *j, Value *small, int rank, int64_t axis)
{
	Context *c = j->t->c;
	const Type *type = small->type;
	int keep = type->rank;
	if (axis < 0 || axis > rank) {
		job_fail(j, "attribute 'axis' is %lld; it must be -1, or from 0 to %d", (long long)axis, rank);
		return NULL;
	}
	// Old programs leave axes of size 1 behind that reach over the end.
	while (keep > 0 && axis + keep > rank && dim_is(type->dims[keep - 1], 1))
		keep--;
	if (axis + keep > rank) {
		job_fail(j, "an operand of %d axes does not fit into one of %d from axis %lld on", keep, rank, (long long)axis);
		return NULL;
	}
	const Dim *dims[MAX_RANK];
	int n = 0;
	for (; n < keep; n++)
		dims[n] = type->dims[n];
	for (; axis + n < rank; n++)
		dims[n] = dim_const(c, 1);
	if (n == type->rank)
		return small;
	return build1(&j->b, OP_PD_RESHAPE, small, "shape", attr_dims(c, n, dims), NULL);
}

static bool elementwise_inputs(OpJob *j)
{
	if (!general_inputs(j))
		return false;
	Value *x = job_operand(j, "x"), *y = job_operand(j, "y");
	const Paddle__OpAttr *a = attr_find(j->desc, "axis");
	int64_t axis = -1;
	if (a && !attr_int_at(a, 0, &axis))
		return job_fail(j, "attribute 'axis' is no integer");
	if (!type_is_tensor(x->type) || !type_is_tensor(y->type) || axis == -1 || x->type->rank == y->type->rank)
		return true;
	bool swap = x->type->rank < y->type->rank;
	Value *small = swap ? x : y, *large = swap ? y : x;
	if (small->type->rank == 0)
		return true;
	small = align(j, small, large->type->rank, axis);
	job_set_operand(j, swap ? "x" : "y", small);
	return small != NULL;
}

// ---- assign: another name for a value ----------------------------------------------------------------

static bool assign_create(OpJob *j)
{
	j->op = NULL;
	return true;
}

static bool assign_record(OpJob *j)
{
	const char *out = job_output(j, 0, 0);
	if (out && j->operands[0])
		write_var(j, out, j->operands[0]);
	return true;
}

// ---- the table ------------------------------------------------------------------------------------------

static const OpSteps steps_table[] = {
	{.hook = "elementwise", .inputs = elementwise_inputs},
	{.hook = "assign", .create = assign_create, .record = assign_record},
};

const OpSteps *steps_find(const char *hook)
{
	for (size_t i = 0; i < COUNT_OF(steps_table); i++)
		if (strcmp(steps_table[i].hook, hook) == 0)
			return &steps_table[i];
	return NULL;
}
