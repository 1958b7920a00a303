// What operators of training mean that a composition cannot say: those of lists
// (ir/ops/train.yaml).
#include "ir/build/nest.h"

// Element i of a vec.
static Value *part(Builder *b, Value *vec, int i)
{
	return build1(b, OP_BUILTIN_SLICE, vec, "index", attr_int(b->ctx, i), NULL);
}

static Value *all_axes(Builder *b, enum OpCode code, Value *x)
{
	return x ? build1(b, code, x, "reduce_all", attr_bool(b->ctx, true), NULL) : NULL;
}

static Value *one_element(Builder *b, Value *x)
{
	const Dim *one = dim_const(b->ctx, 1);
	return x ? tensor_reshape(b, x, 1, &one) : NULL;
}

bool define_hook_check_finite(Builder *b, Op *op, Value **results)
{
	Value *list = op_operand(op, 0), *scale = op_operand(op, 1), *finite = NULL;
	int n = list->type->nelem;
	Value **out = NEW_ARRAY(b->ctx->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		Value *x = part(b, list, i);
		Value *good = all_axes(b, OP_PD_ALL, apply1(b, OP_PD_ISFINITE, x));
		finite = finite ? apply2(b, OP_PD_LOGICAL_AND, finite, good) : good;
		Value *inverse = scale ? build1(b, OP_PD_RECIPROCAL, tensor_cast(b, scale, DT_F32), NULL)
		                       : NULL;
		Value *wide = x ? tensor_cast(b, x, x->type->dtype == DT_F64 ? DT_F64 : DT_F32) : NULL;
		Value *scaled = tensor_mul(
			b, wide, wide && inverse ? tensor_cast(b, inverse, wide->type->dtype) : NULL);
		out[i] = scaled ? tensor_cast(b, scaled, x->type->dtype) : NULL;
		if (!out[i] || !finite)
			return false;
	}
	results[0] = build(b, OP_BUILTIN_COMBINE, n, out, NULL);
	results[1] = one_element(b, apply1(b, OP_PD_LOGICAL_NOT, finite));
	return results[0] && results[1];
}

static Value *choose(Builder *b, Value *condition, Value *x, Value *y)
{
	Value *const operands[] = {condition, x, y};
	return condition && x && y ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
}

// After a bad step: the number of them, and a smaller scale (at least 1) once there were enough.
static void after_bad(Builder *b, const Op *op, Value *scale, Value *bad, Value **next_scale,
                      Value **next_bad)
{
	DType steps = bad->type->dtype, t = scale->type->dtype;
	Value *more = tensor_add(b, bad, tensor_number(b, steps, 1));
	Value *enough = apply2(
		b, OP_PD_EQUAL, more,
		tensor_number(b, steps, (double)op_int(op, "decr_every_n_nan_or_inf", 1)));
	Value *less = tensor_mul(b, scale, tensor_number(b, t, op_float(op, "decr_ratio", 1)));
	*next_scale = choose(b, enough, apply2(b, OP_PD_MAXIMUM, less, tensor_number(b, t, 1)), scale);
	*next_bad = choose(b, enough, tensor_number(b, steps, 0), more);
}

// After a good step: the number of them, and a larger scale, as far as it is finite, once there
// were enough.
static void after_good(Builder *b, const Op *op, Value *scale, Value *good, Value **next_scale,
                       Value **next_good)
{
	DType steps = good->type->dtype, t = scale->type->dtype;
	Value *more = tensor_add(b, good, tensor_number(b, steps, 1));
	Value *enough = apply2(b, OP_PD_EQUAL, more,
	                       tensor_number(b, steps, (double)op_int(op, "incr_every_n_steps", 1)));
	Value *larger = tensor_mul(b, scale, tensor_number(b, t, op_float(op, "incr_ratio", 1)));
	Value *grown = larger ? choose(b, apply1(b, OP_PD_ISFINITE, larger), larger, scale) : NULL;
	*next_scale = choose(b, enough, grown, scale);
	*next_good = choose(b, enough, tensor_number(b, steps, 0), more);
}

bool define_hook_update_loss_scaling(Builder *b, Op *op, Value **results)
{
	Value *list = op_operand(op, 0), *found = op_operand(op, 1), *scale = op_operand(op, 2);
	Value *good = op_operand(op, 3), *bad = op_operand(op, 4), *less, *worse, *more, *better;
	int n = list->type->nelem;
	Value **out = NEW_ARRAY(b->ctx->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		Value *x = part(b, list, i);
		out[i] = x ? choose(b, found, tensor_number(b, x->type->dtype, 0), x) : NULL;
		if (!out[i])
			return false;
		if (out[i]->type->rank != x->type->rank) // found is a tensor of one axis
			out[i] = tensor_reshape(b, out[i], x->type->rank, x->type->dims);
	}
	results[0] = build(b, OP_BUILTIN_COMBINE, n, out, NULL);
	results[1] = scale;
	results[2] = good;
	results[3] = bad;
	if (op_bool(op, "stop_update", false))
		return results[0] != NULL;
	after_bad(b, op, scale, bad, &less, &worse);
	after_good(b, op, scale, good, &more, &better);
	results[1] = choose(b, found, less, more);
	results[2] = choose(b, found, tensor_number(b, good->type->dtype, 0), better);
	results[3] = choose(b, found, worse, tensor_number(b, bad->type->dtype, 0));
	Value *stop = op_operand(op, 5);
	for (int i = 1; stop && i < 4; i++)
		results[i] = choose(b, stop, op_operand(op, i + 1), results[i]);
	return results[0] && results[1] && results[2] && results[3];
}
