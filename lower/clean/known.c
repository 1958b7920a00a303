// What inference knows of values, said with constants: shape arithmetic that came out constant, and
// operands that only carried shapes as attributes. Called by canonicalize for every operation.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "lower/clean/clean.h"

enum { MAX_CONSTANT_SHAPE = 64 };

static bool all_const(int n, const Dim *const *dims)
{
	for (int i = 0; i < n; i++)
		if (!dims[i] || !dim_is_const(dims[i]))
			return false;
	return true;
}

Value *known_constant(Builder *b, Op *op)
{
	const Value *v = &op->results[0];
	const Type *t = v->type;
	int64_t n;
	if (op->nresult != 1 || !v->known || !(op->info->traits & TRAIT_PURE) ||
	    (op->info->traits & TRAIT_CONSTANT) || !type_is_tensor(t) || !type_const_numel(t, &n) ||
	    n != v->nknown || !all_const(v->nknown, v->known) || t->dtype == DT_BOOL ||
	    !dtype_is_int(t->dtype))
		return NULL;
	int64_t dims[MAX_RANK];
	for (int i = 0; i < t->rank; i++)
		dims[i] = t->dims[i]->value;
	Tensor *data = tensor_new(b->ctx->arena, t->dtype, t->rank, dims);
	if (!data)
		return NULL;
	for (int64_t i = 0; i < n; i++)
		tensor_set_i(data, i, v->known[i]->value);
	return build_constant(b, data);
}

// What inference knows of an operand that may be a list of single numbers. Returns how many, -1:
// not all.
static int operand_known(const Op *op, int i, const Dim **out, int max)
{
	Value *const *list;
	int n = op_operand_list(op, i, &list), count = 0;
	for (int k = 0; k < n; k++) {
		const Dim *const *known;
		int m = value_known(list[k], &known);
		if (m < 0 || count + m > max)
			return -1;
		for (int e = 0; e < m; e++)
			out[count++] = known[e];
	}
	return count;
}

// The attribute that says what operand `i` says, given that result types are inferred; NULL: it
// cannot.
static const Attr *operand_as_attr(const Op *op, int i, const AttrInfo *a)
{
	const Dim *known[MAX_CONSTANT_SHAPE];
	int64_t ints[MAX_CONSTANT_SHAPE];
	int n = operand_known(op, i, known, MAX_CONSTANT_SHAPE);
	if (n < 0)
		return NULL;
	const Type *type = op->results[0].type;
	bool exact = op->code == OP_PD_RESHAPE || op->code == OP_PD_EXPAND || op->code == OP_PD_FULL;
	if (a->kind == ATTR_DIMS && exact && type_is_tensor(type)) // no -1 or 0 left to work out
		return attr_dims(op->ctx, type->rank, type->dims);
	if (a->kind == ATTR_DIMS)
		return attr_dims(op->ctx, n, known);
	if (!all_const(n, known))
		return NULL;
	for (int k = 0; k < n; k++)
		ints[k] = known[k]->value;
	if (a->kind == ATTR_INTS)
		return attr_ints(op->ctx, n, ints);
	return a->kind == ATTR_INT && n == 1 ? attr_int(op->ctx, ints[0]) : NULL;
}

void refresh_known(Op *op)
{
	const Type *type = op->nresult == 1 ? op->results[0].type : NULL;
	int64_t n;
	if (!type || op->results[0].known || !(op->info->traits & TRAIT_PURE) ||
	    !type_is_tensor(type) || !dtype_is_int(type->dtype) || !type_const_numel(type, &n) ||
	    n > MAX_KNOWN)
		return;
	op_infer(op);
	op->results[0].type = type;
}

bool drop_shape_operands(Op *op)
{
	bool changed = false;
	for (int k = 0; k < op->info->nattr; k++) {
		const AttrInfo *a = &op->info->attrs[k];
		int i = a->operand ? op_info_operand(op->info, a->operand) : -1;
		const Attr *attr = i >= 0 && op_operand(op, i) ? operand_as_attr(op, i, a) : NULL;
		if (!attr)
			continue;
		op_set_attr(op, a->name, attr);
		op_set_operand(op, i, NULL);
		changed = true;
	}
	return changed;
}
