// Kernels that definitions and derivatives are made of (sorting, choosing, running sums) as
// operations of Paddle 3. Used by pir_out_prepare.c.
#include "frontend/write/pir_out.h"
#include "ir/build/nest.h"

#include <math.h>

// The positions of the elements along the last axis in stable order.
static Value *order_of(Builder *b, Value *x, bool descending)
{
	const NamedAttr attrs[] = {{"axis", attr_int(b->ctx, -1)},
	                           {"descending", attr_bool(b->ctx, descending)}};
	Op *op = x ? build_op(b, OP_PD_ARGSORT, 1, &x, COUNT_OF(attrs), attrs) : NULL;
	return op ? op_result(op, 1) : NULL;
}

// The first `room` along the last axis.
static Value *first_ones(Builder *b, Value *v, const Dim *room)
{
	const int axis = v ? v->type->rank - 1 : 0;
	if (!v || v->type->dims[axis] == room)
		return v;
	const int64_t axes[] = {axis}, zero = 0;
	const Dim *const start[] = {dim_const(b->ctx, zero)};
	const NamedAttr attrs[] = {{"axes", attr_ints(b->ctx, 1, axes)},
	                           {"starts", attr_dims(b->ctx, 1, start)},
	                           {"ends", attr_dims(b->ctx, 1, &room)}};
	Op *op = build_op(b, OP_PD_SLICE, 1, &v, COUNT_OF(attrs), attrs);
	return op ? op_result(op, 0) : NULL;
}

// How many of a row are true.
static Value *count_true(Builder *b, Value *mask, const Type *type)
{
	const int64_t last[] = {mask->type->rank - 1};
	Value *n = tensor_reduce(b, OP_PD_SUM, tensor_cast(b, mask, DT_I64), 1, last);
	return n ? tensor_reshape(b, tensor_cast(b, n, DT_I32), type->rank, type->dims) : NULL;
}

// Positions with zeros behind the first `count` of each row.
static Value *zeros_behind(Builder *b, Value *at, Value *count)
{
	const Type *t = at->type;
	const Dim *room = t->dims[t->rank - 1], *dims[MAX_RANK];
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I32, 1, &room, 0));
	Value *place = nest_close(&n, scalar_from_index(&n.b, n.at[0], DT_I32));
	for (int i = 0; i < t->rank; i++)
		dims[i] = i + 1 < t->rank ? t->dims[i] : dim_const(b->ctx, 1);
	Value *behind = place ? tensor_reshape(b, count, t->rank, dims) : NULL,
		  *there = behind ? build2(b, OP_PD_LESS_THAN, tensor_spread(b, place, t->rank, t->dims),
	                               tensor_spread(b, behind, t->rank, t->dims), NULL)
	                      : NULL;
	Value *const ways[] = {there, at, tensor_number(b, DT_I32, 0)};
	return there && ways[2] ? build(b, OP_PD_WHERE, 3, ways, NULL) : NULL;
}

// Of `above`, those that are not over it go to the end.
static bool sorted(Op *op, Value **results)
{
	Builder b = builder_before(op);
	Value *x = op_operand(op, 0), *over = NULL;
	const Type *order = op->results[0].type, *count = op->results[1].type;
	const Attr *above = op_attr(op, "above");
	const Dim *size = x->type->dims[x->type->rank - 1];
	const bool descending = op_bool(op, "descending", false);
	if (above) {
		if (!dtype_is_float(x->type->dtype) || !descending)
			return false;
		over = build2(&b, OP_PD_GREATER_THAN, x, tensor_number(&b, x->type->dtype, above->f), NULL);
		Value *const ways[] = {over, x, tensor_number(&b, x->type->dtype, -INFINITY)};
		x = over && ways[2] ? build(&b, OP_PD_WHERE, 3, ways, NULL) : NULL;
	} else if (value_used(&op->results[1]) && !dim_is_const(size)) {
		return false;
	}
	Value *at = first_ones(&b, order_of(&b, x, descending), order->dims[order->rank - 1]);
	at = at ? tensor_cast(&b, at, DT_I32) : NULL;
	results[1] = above ? count_true(&b, over, count)
	                   : build_full(&b, count, dim_is_const(size) ? (double)size->value : 0);
	results[0] = at && above && results[1] ? zeros_behind(&b, at, results[1]) : at;
	return results[0] && results[1];
}

// What is true comes first in a stable order of what is false.
static bool compacted(Op *op, Value **results)
{
	Builder b = builder_before(op);
	Value *mask = op_operand(op, 0);
	const Dim *size = type_numel(b.ctx, mask->type);
	mask = tensor_reshape(&b, mask, 1, &size);
	Value *no = mask ? build1(&b, OP_PD_LOGICAL_NOT, mask, NULL) : NULL;
	Value *at = no ? order_of(&b, tensor_cast(&b, no, DT_I32), false) : NULL;
	at = at ? tensor_cast(&b, at, DT_I32) : NULL;
	results[1] = at ? count_true(&b, mask, op->results[1].type) : NULL;
	results[0] = results[1] ? zeros_behind(&b, at, results[1]) : NULL;
	return results[0] != NULL;
}

// A running sum or product, in any direction.
static bool scanned(Op *op, Value **results)
{
	Builder b = builder_before(op);
	Value *x = op_operand(op, 0);
	const int kind = op_enum(op, "kind");
	if (op->nresult != 1 || (kind != SCAN_SUM && kind != SCAN_PROD))
		return false;
	const NamedAttr attrs[] = {{kind == SCAN_SUM ? "axis" : "dim", op_attr(op, "axis")},
	                           {"exclusive", attr_bool(b.ctx, op_bool(op, "exclusive", false))},
	                           {"reverse", attr_bool(b.ctx, op_bool(op, "reverse", false))}};
	Op *scan = build_op(&b, kind == SCAN_SUM ? OP_PD_CUMSUM : OP_PD_CUMPROD, 1, &x, COUNT_OF(attrs),
	                    attrs);
	results[0] = scan ? op_result(scan, 0) : NULL;
	return results[0] != NULL;
}

bool out_kernel_tensors(Op *op, Value **results)
{
	switch (op->code) {
	case OP_KERNEL_SORT: return sorted(op, results);
	case OP_KERNEL_COMPACT: return compacted(op, results);
	case OP_KERNEL_SCAN: return scanned(op, results);
	case OP_KERNEL_SCATTER: return out_scatter_tensors(op, results);
	default: return false;
	}
}
