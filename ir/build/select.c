// Building the kernels that choose elements (nest.h): for define hooks whose results depend on an
// order or a mask.
#include "ir/build/nest.h"

static void op_place(Builder *b, Op *op)
{
	if (b->before)
		op_insert_before(b->before, op);
	else
		op_append(b->block, op);
}

static Chosen select_build(Builder *b, enum OpCode code, int n, Value *const *operands,
                           const Type *at, const Type *count)
{
	const Type *types[] = {at, count};
	for (int i = 0; i < n; i++)
		if (!operands[i])
			return (Chosen){NULL, NULL};
	Op *op = op_new(b->ctx, code, b->loc, 2, types, n, operands, 0, 0);
	op_place(b, op);
	return (Chosen){op_result(op, 0), op_result(op, 1)};
}

Chosen select_sorted(Builder *b, Value *x, bool descending, const double *above, const Dim *limit)
{
	Context *c = b->ctx;
	const Dim *dims[MAX_RANK];
	if (!x)
		return (Chosen){NULL, NULL};
	int last = x->type->rank - 1;
	for (int d = 0; d < last; d++)
		dims[d] = x->type->dims[d];
	dims[last] = limit;
	const Type *count = type_tensor(c, DT_I32, last, dims, 0);
	Chosen s = select_build(b, OP_KERNEL_SORT, 1, &x, type_tensor(c, DT_I32, last + 1, dims, 0),
	                        count);
	op_set_attr(s.at->def, "descending", attr_bool(c, descending));
	if (above)
		op_set_attr(s.at->def, "above", attr_float(c, *above));
	return s;
}

Chosen select_apart(Builder *b, Value *boxes, Chosen order, double threshold, double eta,
                    bool pixels)
{
	Context *c = b->ctx;
	Value *const operands[] = {boxes, order.at, order.count};
	if (!boxes || !order.at || !order.count)
		return (Chosen){NULL, NULL};
	Chosen s = select_build(b, OP_KERNEL_NMS, 3, operands, order.at->type, order.count->type);
	op_set_attr(s.at->def, "threshold", attr_float(c, threshold));
	op_set_attr(s.at->def, "eta", attr_float(c, eta));
	op_set_attr(s.at->def, "pixels", attr_bool(c, pixels));
	return s;
}

Chosen select_true(Builder *b, Value *mask)
{
	Context *c = b->ctx;
	if (!mask)
		return (Chosen){NULL, NULL};
	const Dim *numel = type_numel(c, mask->type);
	return select_build(b, OP_KERNEL_COMPACT, 1, &mask, type_tensor(c, DT_I32, 1, &numel, 0),
	                    type_tensor(c, DT_I32, 0, NULL, 0));
}

Value *scan_along(Builder *b, Value *x, const char *kind, int axis, bool exclusive, bool reverse,
                  Value **which)
{
	Context *c = b->ctx;
	if (!x)
		return NULL;
	const Type *types[] = {x->type, type_like(c, x->type, DT_I64)};
	Op *op = op_new(c, OP_KERNEL_SCAN, b->loc, which ? 2 : 1, types, 1, &x, 0, 0);
	op_place(b, op);
	op_set_attr(op, "kind", attr_str(c, kind));
	op_set_attr(op, "axis", attr_int(c, axis));
	op_set_attr(op, "exclusive", attr_bool(c, exclusive));
	op_set_attr(op, "reverse", attr_bool(c, reverse));
	if (which)
		*which = op_result(op, 1);
	return op_result(op, 0);
}

Value *scatter_rows(Builder *b, Value *x, Value *at, Value *updates, const char *how)
{
	Value *const operands[] = {x, at, updates};
	if (!x || !at || !updates)
		return NULL;
	Op *op = op_new(b->ctx, OP_KERNEL_SCATTER, b->loc, 1, &x->type, 3, operands, 0, 0);
	op_place(b, op);
	op_set_attr(op, "how", attr_str(b->ctx, how));
	return op_result(op, 0);
}

bool bind_size(Builder *b, Value *count, const Dim *size)
{
	const NamedAttr bind = {"dims", attr_dims(b->ctx, 1, &size)};
	return count && build_op(b, OP_LOOP_BIND, 1, &count, 1, &bind);
}

bool bind_certain_size(Builder *b, Value *count, const Dim *size)
{
	const NamedAttr bind[] = {{"certain", attr_bool(b->ctx, true)},
	                          {"dims", attr_dims(b->ctx, 1, &size)}};
	return count && build_op(b, OP_LOOP_BIND, 1, &count, COUNT_OF(bind), bind);
}
