// Comparisons of whole tensors within a tolerance (isclose, allclose, equal_all of
// ir/ops/search.yaml): what they mean.
#include "ir/search/search.h"

#include <stdlib.h>

// A tolerance: a tensor of one number, or a text that holds one.
static Value *tolerance(Builder *b, const Op *op, const char *name, const char *tensor)
{
	Value *v = op_operand_named(op, tensor);
	if (v)
		return tensor_cast(b, tensor_reshape(b, v, 0, NULL), DT_F64);
	const char *text = op_str(op, name, "0");
	char *end;
	double number = strtod(text, &end);
	if (end == text || *end) {
		op_error(op, "attribute '%s' is no number: '%s'", name, text);
		return NULL;
	}
	return tensor_number(b, DT_F64, number);
}

bool define_hook_isclose(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	if (!x || !y)
		return false;
	const bool complex = dtype_is_complex(x->type->dtype) || dtype_is_complex(y->type->dtype);
	x = tensor_cast(b, x, complex ? DT_C128 : DT_F64);
	y = tensor_cast(b, y, complex ? DT_C128 : DT_F64);
	Value *rtol = tolerance(b, op, "rtol", "rtol_tensor"),
		  *atol = tolerance(b, op, "atol", "atol_tensor");
	if (!x || !y || !rtol || !atol)
		return false;
	Value *most = tensor_add(b, atol, tensor_mul(b, rtol, apply1(b, OP_PD_ABS, y)));
	Value *away = apply1(b, OP_PD_ABS, tensor_sub(b, x, y));
	Value *close = apply2(b, OP_PD_LOGICAL_OR, apply2(b, OP_PD_EQUAL, x, y),
	                      apply2(b, OP_PD_LESS_EQUAL, away, most));
	close = apply2(b, OP_PD_LOGICAL_OR, close,
	               apply2(b, OP_PD_LESS_EQUAL, apply1(b, OP_PD_ABS, tensor_sub(b, away, most)),
	                      tensor_number(b, DT_F64, 1e-15)));
	if (complex || op_bool(op, "equal_nan", false)) {
		Value *none = apply2(b, complex ? OP_PD_LOGICAL_OR : OP_PD_LOGICAL_AND,
		                     apply1(b, OP_PD_ISNAN, x), apply1(b, OP_PD_ISNAN, y));
		close = apply2(b, OP_PD_LOGICAL_OR, close, none);
	}
	results[0] = close;
	return results[0] != NULL;
}

bool define_hook_allclose(Builder *b, Op *op, Value **results)
{
	Value *close;
	if (!define_hook_isclose(b, op, &close))
		return false;
	results[0] = build1(b, OP_PD_ALL, close, "reduce_all", attr_bool(b->ctx, true), NULL);
	return results[0] != NULL;
}

static Value *same_or_near(Builder *b, Value *x, Value *y, double tolerance)
{
	Value *same = apply2(b, OP_PD_EQUAL, x, y);
	if (!same || (x->type->dtype != DT_F32 && x->type->dtype != DT_F64))
		return same;
	Value *apart = scalar_cast(b, apply1(b, OP_PD_ABS, apply2(b, OP_PD_SUBTRACT, x, y)), DT_F64),
		  *limit = build_scalar_f(b, DT_F64, tolerance);
	return apply2(b, OP_PD_LOGICAL_OR, same, apply2(b, OP_PD_LESS_THAN, apart, limit));
}

// Shapes are compared when the program runs, where they are not known before.
bool define_hook_equal_all(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_tensor(op, 0), *y = x ? infer_tensor(op, 1) : NULL,
			   *one = type_tensor(b->ctx, DT_BOOL, 0, NULL, 0);
	if (!y)
		return false;
	bool same = x->rank == y->rank;
	for (int d = 0; d < x->rank && same; d++)
		same = x->dims[d] == y->dims[d] || !dim_is_const(x->dims[d]) || !dim_is_const(y->dims[d]);
	if (!same) {
		results[0] = build_full(b, one, 0);
		return results[0] != NULL;
	}
	Nest n = nest_open(b, one), r = {.b = n.b};
	Value *shapes = NULL, *inside = NULL;
	for (int d = 0; d < x->rank; d++)
		if (x->dims[d] != y->dims[d])
			shapes = pred_and(
				&n.b, shapes,
				index_equal(&n.b, index_dim(&n.b, x->dims[d]), index_dim(&n.b, y->dims[d])));
	if (x->rank)
		r = reduce_open(&n.b, "all", DT_BOOL, x->rank, x->dims);
	for (int d = 0; d < x->rank; d++)
		if (x->dims[d] != y->dims[d])
			inside = pred_and(&r.b, inside, index_less(&r.b, r.at[d], index_dim(&r.b, y->dims[d])));
	Value *other = load_or(&r.b, inside, inside ? build_scalar_f(&r.b, y->dtype, 0) : NULL,
	                       op_operand(op, 1), r.at);
	Value *equal = same_or_near(&r.b, load(&r.b, op_operand(op, 0), r.at), other,
	                            op_float(op, "tolerance", 0));
	equal = x->rank ? reduce_close(&r, equal) : equal;
	results[0] = nest_close(&n, pred_and(&n.b, shapes, equal));
	return results[0] != NULL;
}
