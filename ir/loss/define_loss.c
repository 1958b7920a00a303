// Losses, measures and normalisations (ir/ops/loss.yaml) as compositions.
#include "ir/loss/loss.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

#include <string.h>

static Value *sum_all(Builder *b, Value *x)
{
	return x ? build1(b, OP_PD_SUM, x, "reduce_all", attr_bool(b->ctx, true), NULL) : NULL;
}

// x reduced as the text says; NULL after a diagnostic.
static Value *reduced(Builder *b, const Op *op, Value *x)
{
	const int how = op_enum(op, "reduction");
	if (!x || how == REDUCTION_NONE)
		return x;
	if (how == REDUCTION_MEAN)
		return build1(b, OP_PD_MEAN, x, "reduce_all", attr_bool(b->ctx, true), NULL);
	if (how == REDUCTION_SUM)
		return sum_all(b, x);
	if (x->type->rank < 1) {
		op_error(op, "a scalar has no rows for the mean of a batch");
		return NULL;
	}
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 0, NULL, 0));
	Value *rows = nest_close(
		&n, scalar_from_index(&n.b, index_dim(&n.b, x->type->dims[0]), x->type->dtype));
	return tensor_div(b, sum_all(b, x), rows);
}

// Whether x is [n x classes (x rest..)], and label [n (x rest..)].
static bool nll_operands(Op *op)
{
	const Type *x = infer_tensor(op, 0), *t = x ? infer_tensor(op, 1) : NULL;
	const Dim *same;
	if (!t || (op_operand(op, 2) && !infer_rank(op, 2, 1)))
		return false;
	if (op_enum(op, "reduction") == REDUCTION_BATCHMEAN)
		return op_error(op, "unknown reduction 'batchmean'");
	if (x->rank < 2 || t->rank != x->rank - 1)
		return op_error(op, "labels of %d axes for an operand of %d", t->rank, x->rank);
	for (int d = 0; d < t->rank; d++)
		if (!infer_same_dim(op, t->dims[d], x->dims[d ? d + 1 : 0],
		                    "sizes of the operand and of the labels", &same))
			return false;
	return true;
}

// parts[0]: minus what stands in x at each label, times its class's weight; parts[1]: that weight.
// Both are 0 at labels that do not count.
static bool nll_elements(Builder *b, const Op *op, Value **parts)
{
	Value *label = op_operand(op, 1), *weight = op_operand(op, 2), *from[MAX_RANK];
	const Type *x = op_operand(op, 0)->type, *t = label->type;
	const Type *type = type_like(b->ctx, t, x->dtype), *types[] = {type, type};
	Nest n = nest_open_several(b, 2, types);
	Value *number = load(&n.b, label, n.at), *zero = build_scalar_f(&n.b, x->dtype, 0);
	Value *counts = apply2(&n.b, OP_PD_NOT_EQUAL, number,
	                       build_scalar_f(&n.b, t->dtype, op_number(op, "ignore_index")));
	Value *class = index_where(&n.b, counts, number, build_scalar_f(&n.b, t->dtype, 0));
	for (int d = 0; d < t->rank; d++)
		from[d ? d + 1 : 0] = n.at[d];
	from[1] = index_from_data(&n.b, class, x->dims[1], false);
	Value *w = weight ? load(&n.b, weight, &from[1]) : build_scalar_f(&n.b, x->dtype, 1);
	w = index_where(&n.b, counts, w, zero);
	Value *loss = apply2(&n.b, OP_PD_MULTIPLY,
	                     apply1(&n.b, OP_PD_NEGATIVE, load(&n.b, op_operand(op, 0), from)), w);
	Value *const elements[] = {index_where(&n.b, counts, loss, zero), w};
	return nest_close_several(&n, elements, parts);
}

bool define_hook_nll_loss(Builder *b, Op *op, Value **results)
{
	const int how = op_enum(op, "reduction");
	Value *parts[2];
	if (!nll_operands(op) || !nll_elements(b, op, parts))
		return false;
	const DType t = op_operand(op, 0)->type->dtype;
	const bool none = how == REDUCTION_NONE;
	Value *total = sum_all(b, parts[1]);
	results[1] = none ? tensor_number(b, t, 0) : total;
	results[0] = none ? parts[0] : sum_all(b, parts[0]);
	if (how == REDUCTION_MEAN) { // 0, not NaN, where nothing counted
		Value *nothing = build2(b, OP_PD_EQUAL, total, tensor_number(b, t, 0), NULL);
		Value *one = nothing ? tensor_cast(b, nothing, t) : NULL;
		results[0] = tensor_div(b, results[0], tensor_add(b, total, one));
	}
	return results[0] && results[1];
}

bool define_hook_kldiv_loss(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	if (!t)
		return false;
	Nest n = nest_open(b, t);
	Value *x = load(&n.b, op_operand(op, 0), n.at), *target = load(&n.b, op_operand(op, 1), n.at);
	Value *v;
	if (op_bool(op, "log_target", false)) {
		v = tensor_mul(&n.b, apply1(&n.b, OP_PD_EXP, target), tensor_sub(&n.b, target, x));
	} else {
		Value *zero = build_scalar_f(&n.b, t->dtype, 0),
			  *positive = apply1(&n.b, OP_PD_LOGICAL_NOT,
		                         apply2(&n.b, OP_PD_LESS_EQUAL, target, zero));
		// The gradient goes through both sides: neither may have a NaN.
		Value *some = index_where(&n.b, positive, target, build_scalar_f(&n.b, t->dtype, 1));
		v = tensor_mul(&n.b, target, tensor_sub(&n.b, apply1(&n.b, OP_PD_LOG, some), x));
		v = index_where(&n.b, positive, v, zero);
	}
	results[0] = reduced(b, op, nest_close(&n, v));
	return results[0] != NULL;
}

bool define_hook_label_smooth(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	Value *prior = op_operand(op, 1);
	double epsilon = op_number(op, "epsilon");
	if (!t || t->rank < 1)
		return t && op_error(op, "no axis");
	const Dim *classes = t->dims[t->rank - 1];
	if (prior && !(prior = tensor_reshape(b, prior, 1, &classes)))
		return false;
	Nest n = nest_open(b, t);
	Value *part = build_scalar_f(&n.b, t->dtype, epsilon);
	Value *v = tensor_mul(&n.b, load(&n.b, op_operand(op, 0), n.at),
	                      build_scalar_f(&n.b, t->dtype, 1 - epsilon));
	Value *other = prior ? tensor_mul(&n.b, part, load(&n.b, prior, &n.at[t->rank - 1]))
	                     : tensor_div(&n.b, part,
	                                  scalar_from_index(&n.b, index_dim(&n.b, classes), t->dtype));
	results[0] = nest_close(&n, tensor_add(&n.b, v, other));
	return results[0] != NULL;
}

bool define_hook_accuracy(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *indices = infer_rank(op, 1, 2), *label = indices ? infer_tensor(op, 2) : NULL;
	const Dim *rows;
	if (!label || label->rank < 1 ||
	    !infer_same_dim(op, indices->dims[0], label->dims[0], "rows and labels", &rows))
		return false;
	const Type *one = type_tensor(c, DT_I32, 0, NULL, 0);
	Nest n = nest_open(b, one);
	Nest r = reduce_open(&n.b, "sum", DT_I32, 1, &rows);
	Nest k = reduce_open(&r.b, "any", DT_BOOL, 1, &indices->dims[1]);
	Value *at[] = {r.at[0], k.at[0]}, *own[MAX_RANK] = {r.at[0]};
	for (int d = 1; d < label->rank; d++)
		own[d] = index_const(&k.b, 0);
	Value *hit = apply2(&k.b, OP_PD_EQUAL,
	                    scalar_cast(&k.b, load(&k.b, op_operand(op, 1), at), DT_I64),
	                    scalar_cast(&k.b, load(&k.b, op_operand(op, 2), own), DT_I64));
	results[1] = nest_close(&n, reduce_close(&r, scalar_cast(&r.b, reduce_close(&k, hit), DT_I32)));
	Nest t = nest_open(b, one);
	results[2] = nest_close(&t, scalar_from_index(&t.b, index_dim(&t.b, rows), DT_I32));
	results[0] = tensor_div(b, tensor_cast(b, results[1], DT_F32),
	                        tensor_cast(b, results[2], DT_F32));
	return results[0] && results[1] && results[2];
}

// ---- normalisations -----------------------------------------------------------------------------

bool define_hook_renorm(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	int axis, n = 0;
	int64_t axes[MAX_RANK];
	if (!t || !infer_axis(op, op_int(op, "axis", 0), t->rank, &axis))
		return false;
	for (int d = 0; d < t->rank; d++)
		if (d != axis)
			axes[n++] = d;
	Value *x = op_operand(op, 0), *p = tensor_number(b, t->dtype, op_number(op, "p"));
	Value *most = tensor_number(b, t->dtype, op_number(op, "max_norm"));
	Value *powers = apply2(b, OP_PD_ELEMENTWISE_POW, apply1(b, OP_PD_ABS, x), p);
	Value *size = apply2(b, OP_PD_ELEMENTWISE_POW,
	                     n ? tensor_reduce(b, OP_PD_SUM, powers, n, axes) : powers,
	                     tensor_number(b, t->dtype, 1 / op_number(op, "p")));
	Value *shorter = tensor_div(b, most, tensor_add(b, size, tensor_number(b, t->dtype, 1e-7)));
	Value *over = size ? build2(b, OP_PD_GREATER_THAN, size, most, NULL) : NULL;
	Value *const choice[] = {over, shorter, tensor_number(b, t->dtype, 1)};
	results[0] = over && shorter ? tensor_mul(b, x, build(b, OP_PD_WHERE, 3, choice, NULL)) : NULL;
	return results[0] != NULL;
}

bool define_hook_rms_norm(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	int first, n = 0;
	int64_t axes[MAX_RANK];
	const Dim *shape[MAX_RANK];
	if (!t || !infer_axis(op, op_int(op, "begin_norm_axis", 1), t->rank, &first))
		return false;
	if (op_number(op, "quant_scale") > 0)
		return op_error(op, "quantised results are not supported");
	Value *x = op_operand(op, 0), *scale = op_operand_named(op, "scale"),
		  *bias = op_operand_named(op, "bias");
	if (op_operand_named(op, "residual"))
		x = tensor_add(b, x, op_operand_named(op, "residual"));
	if (op_operand_named(op, "bias_in"))
		x = tensor_add(b, x, op_operand_named(op, "bias_in"));
	results[1] = x;
	for (int d = first; d < t->rank; d++) {
		shape[n] = t->dims[d];
		axes[n++] = d;
	}
	Value *wide = tensor_cast(b, x, t->dtype == DT_F64 ? DT_F64 : DT_F32);
	Value *mean = wide ? tensor_reduce(b, OP_PD_MEAN, tensor_mul(b, wide, wide), n, axes) : NULL;
	Value *root =
		mean ? apply1(b, OP_PD_RSQRT,
	                  tensor_add(b, mean,
	                             tensor_number(b, mean->type->dtype, op_number(op, "epsilon"))))
			 : NULL;
	Value *y = root ? tensor_mul(
						  b, tensor_mul(b, wide, root),
						  tensor_cast(b, tensor_reshape(b, scale, n, shape), mean->type->dtype))
	                : NULL;
	if (bias && y)
		y = tensor_add(b, y, tensor_cast(b, tensor_reshape(b, bias, n, shape), mean->type->dtype));
	results[0] = y ? tensor_cast(b, y, t->dtype) : NULL;
	return results[0] && results[1];
}

bool define_hook_data_norm(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	int64_t slot = op_int(op, "slot_dim", -1);
	Value *x = op_operand(op, 0), *size = op_operand(op, 1), *from[MAX_RANK];
	if (!t || t->rank < 1)
		return false;
	if (op_enum(op, "data_layout") != DATA_FORMAT_NCHW && t->rank > 2)
		return op_error(op, "images with the channels last are not supported");
	results[1] = tensor_div(b, op_operand(op, 2), size);
	results[2] = apply1(b, OP_PD_SQRT, tensor_div(b, size, op_operand(op, 3)));
	if (!results[1] || !results[2])
		return false;
	int last = t->rank - 1;
	Nest n = nest_open(b, t);
	memcpy(from, n.at, sizeof from);
	Value *own = load(&n.b, x, n.at);
	Value *y = tensor_mul(&n.b, tensor_sub(&n.b, own, load(&n.b, results[1], &n.at[last])),
	                      load(&n.b, results[2], &n.at[last]));
	if (op_bool(op, "enable_scale_and_shift", false)) {
		if (!op_operand_named(op, "scale_w") || !op_operand_named(op, "bias"))
			return op_error(op, "scale_w and bias are missing");
		y = tensor_add(
			&n.b, tensor_mul(&n.b, y, load(&n.b, op_operand_named(op, "scale_w"), &n.at[last])),
			load(&n.b, op_operand_named(op, "bias"), &n.at[last]));
	}
	if (slot > 0) { // a slot that begins with (next to) 0 was not there
		from[last] = index_times(&n.b, index_div(&n.b, n.at[last], index_const(&n.b, slot)), slot);
		Value *shown = apply1(&n.b, OP_PD_ABS, load(&n.b, x, from)),
			  *none = build_scalar_f(&n.b, t->dtype, 1e-7);
		y = index_where(&n.b, apply2(&n.b, OP_PD_LESS_THAN, shown, none),
		                build_scalar_f(&n.b, t->dtype, 0), y);
	}
	results[0] = nest_close(&n, y);
	return results[0] != NULL;
}

// ---- of the element that a label names ----------------------------------------------------------

// labels of rows of x: those of x without its last axis, as they are or with an axis of size 1.
static Value *row_labels(Builder *b, const Op *op)
{
	const Type *x = infer_tensor(op, 0), *l = x ? infer_tensor(op, 1) : NULL;
	const Dim *same;
	if (!l)
		return NULL;
	const bool column = x->rank > 0 && l->rank == x->rank;
	bool ok = x->rank > 0 && (column || l->rank == x->rank - 1);
	if (!ok)
		op_error(op, "labels of %d axes for an operand of %d", l->rank, x->rank);
	for (int d = 0; ok && d + 1 < x->rank; d++)
		ok = infer_same_dim(op, l->dims[d], x->dims[d], "rows of the operand and of the labels",
		                    &same);
	ok = ok && (!column || infer_same_dim(op, l->dims[l->rank - 1], dim_const(b->ctx, 1),
	                                      "labels of a row and 1", &same));
	return ok ? tensor_reshape(b, op_operand(op, 1), x->rank - 1, x->dims) : NULL;
}

// One element for each row of x.
static const Type *row_type(Context *c, const Type *x)
{
	const Dim *dims[MAX_RANK];
	memcpy(dims, x->dims, sizeof dims[0] * (size_t)x->rank);
	dims[x->rank - 1] = dim_const(c, 1);
	return type_tensor(c, x->dtype, x->rank, dims, 0);
}

bool define_hook_bpr_loss(Builder *b, Op *op, Value **results)
{
	Value *label = row_labels(b, op), *x = op_operand(op, 0), *from[MAX_RANK], *own[MAX_RANK];
	if (!label)
		return false;
	const Type *t = x->type;
	const int last = t->rank - 1;
	Nest n = nest_open(b, row_type(b->ctx, t));
	memcpy(own, n.at, sizeof own);
	own[last] = index_from_data(&n.b, load(&n.b, label, n.at), t->dims[last], false);
	Value *mine = load(&n.b, x, own), *one = build_scalar_f(&n.b, t->dtype, 1);
	Nest s = reduce_open(&n.b, "sum", t->dtype, 1, &t->dims[last]);
	memcpy(from, n.at, sizeof from);
	from[last] = s.at[0];
	Value *more = apply1(&s.b, OP_PD_EXP, tensor_sub(&s.b, load(&s.b, x, from), mine));
	more = apply1(&s.b, OP_PD_LOG, tensor_add(&s.b, one, more));
	Value *sum = reduce_close(&s, index_where(&s.b, index_equal(&s.b, s.at[0], own[last]),
	                                          build_scalar_f(&s.b, t->dtype, 0), more));
	Value *others = index_plus(&n.b, index_dim(&n.b, t->dims[last]), -1);
	results[0] = nest_close(&n, tensor_div(&n.b, sum, scalar_from_index(&n.b, others, t->dtype)));
	return results[0] != NULL;
}

bool define_hook_cross_entropy2(Builder *b, Op *op, Value **results)
{
	Value *label = row_labels(b, op), *x = op_operand(op, 0), *own[MAX_RANK];
	if (!label)
		return false;
	const Type *t = x->type;
	const int last = t->rank - 1;
	const Type *out = row_type(b->ctx, t), *types[] = {out, out};
	Nest n = nest_open_several(b, 2, types);
	Value *number = load(&n.b, label, n.at), *one = build_scalar_f(&n.b, t->dtype, 1);
	DType whole = label->type->dtype;
	Value *counts = apply2(&n.b, OP_PD_NOT_EQUAL, number,
	                       build_scalar_f(&n.b, whole, op_number(op, "ignore_index")));
	memcpy(own, n.at, sizeof own);
	own[last] = index_from_data(&n.b,
	                            index_where(&n.b, counts, number, build_scalar_f(&n.b, whole, 0)),
	                            t->dims[last], false);
	Value *match = load(&n.b, x, own), *zero = build_scalar_f(&n.b, t->dtype, 0);
	Value *safe = index_where(&n.b, counts, match, one);
	Value *const elements[] = {safe, index_where(&n.b, counts, match, zero)};
	if (!nest_close_several(&n, elements, results))
		return false;
	// A loss for each label, in the shape of the labels.
	const Type *shape = op_operand(op, 1)->type;
	Value *loss = apply1(b, OP_PD_NEGATIVE, apply1(b, OP_PD_TOLERABLE_LOG, results[0]));
	results[0] = tensor_reshape(b, loss, shape->rank, shape->dims);
	return results[0] != NULL;
}
