// Rows of kernels (TRAIT_ROWS); and regions in which neighbours along an axis can
// be read with one access. Called by lower/cuda/rows.c and the printers of kernels.
#include "lower/analysis/rows.h"

// ---- rows ---------------------------------------------------------------------------------------

void row_axes(const Op *op, int *begin, int *end)
{
	const int axis = (int)op_int(op, "axis", -1);
	*end = axis < 0 ? op->results[0].type->rank : axis + 1;
	*begin = *end - (int)op_int(op, "axes", 1);
}

bool row_is_across(const Op *op)
{
	int begin, end;
	row_axes(op, &begin, &end);
	return end < op->results[0].type->rank;
}

const Dim *row_count(Context *c, const Op *op)
{
	int begin, end;
	row_axes(op, &begin, &end);
	return dims_product(c, begin, op->results[0].type->dims);
}

const Dim *row_length(Context *c, const Op *op)
{
	int begin, end;
	row_axes(op, &begin, &end);
	return dims_product(c, end - begin, op->results[0].type->dims + begin);
}

// ---- neighbours ---------------------------------------------------------------------------------

bool vector_aligned(const Value *tensor, int wide)
{
	const Type *t = tensor->type; // begins at a multiple of 16 bytes, wherever it lies
	const Dim *last = t->rank > 0 ? t->dims[t->rank - 1] : NULL;
	return dtype_is_f32_or_half(t->dtype) && last && dim_is_const(last) && last->value % wide == 0;
}

bool row_is_aligned(Context *c, DType t, const Dim *row)
{
	const int64_t each = 16 / (int64_t)dtype_size(t); // a tensor begins there, wherever it lies
	return dim_is(dim_mod(c, row, dim_const(c, each)), 0);
}

// Whether a load's last index, and no other, is v.
static bool load_is_wide(const Op *op, const Value *v, int wide)
{
	if (op->code != OP_LOOP_LOAD || op->noperand < 2 || op_operand(op, op->noperand - 1) != v)
		return false;
	for (int i = 1; i < op->noperand - 1; i++)
		if (op_operand(op, i) == v)
			return false;
	return vector_aligned(op_operand(op, 0), wide);
}

bool vector_suits(const Region *r, int axis, int wide)
{
	const Block *b = region_entry(r);
	for (const Op *op = b->first; op; op = op->next)
		if (op->nregion)
			return false;
	for (const Use *u = b->args[axis]->uses; u; u = u->next)
		if (!load_is_wide(u->user, b->args[axis], wide))
			return false;
	return true;
}

bool vector_reads_halves(const Region *r, int axis)
{
	const Value *along = region_entry(r)->args[axis];
	for (const Use *u = along->uses; u; u = u->next)
		if (load_is_wide(u->user, along, 1) && dtype_size(op_operand(u->user, 0)->type->dtype) == 2)
			return true;
	return false;
}
