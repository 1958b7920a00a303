// The rules of loop nests and of what stands in them (docs/internals.md, section 3).
// Verify hooks of the operator table, called by ir_verify on an operation whose operands,
// attributes and number of regions are already known to be right.
#include "ir/verify/rules.h"
#include "ir/verify/verify.h"

bool verify_hook_loop_yield(Op *op)
{
	const Op *parent = op_parent(op);
	if (parent && (parent->info->kind == KIND_LOOP || parent->info->kind == KIND_KERNEL))
		return true;
	return verify_fail(op, "only allowed in the regions of loop nests and kernels");
}

// ---- nests and reductions -----------------------------------------------------------------------

bool verify_hook_loop_nest(Op *op)
{
	const Op *yield = region_yield(op, 0);
	if (!yield)
		return false;
	if (!op->nresult)
		return verify_fail(op, "a nest must have a result");
	const Type **want = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult, const Type *);
	const Type *first = op->results[0].type;
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = op->results[i].type;
		if (t->kind != TY_TENSOR)
			return verify_fail(op, "result %d must be a tensor, not %s", i, type_text(op->ctx, t));
		if (!type_same_dims(t, first))
			return verify_fail(op, "result %d has type %s, whose dims are not those of result 0", i,
			                   type_text(op->ctx, t));
		want[i] = type_scalar(op->ctx, t->dtype);
	}
	return region_takes_positions(op, 0, 0, first->rank) &&
	       region_gives(yield, op->nresult, want) && nest_form_is_sound(op);
}

// What each kind of reduction gives.
static bool reduce_result_fits(const Op *op, ReduceKind kind)
{
	const Type *result = op->results[0].type;
	if (result->kind != TY_SCALAR)
		return verify_fail(op, "the result must be a scalar, not %s", type_text(op->ctx, result));
	if ((kind == REDUCE_ANY || kind == REDUCE_ALL) && result->dtype != DT_BOOL)
		return verify_fail(op, "the result of '%s' must be bool, not %s", op_str(op, "kind", ""),
		                   type_text(op->ctx, result));
	if (reduce_is_position(kind) && (result->dtype != DT_I64 || op_attr(op, "extents")->n != 1))
		return verify_fail(op, "'%s' gives an i64, over one extent", op_str(op, "kind", ""));
	return true;
}

bool verify_hook_loop_reduce(Op *op)
{
	const Op *yield = region_yield(op, 0);
	const ReduceKind kind = (ReduceKind)op_enum(op, "kind");
	const Attr *extents = op_attr(op, "extents");
	const Type *want = op->results[0].type;
	if (!yield || !reduce_result_fits(op, kind))
		return false;
	if (op_operand(op, 0) && (op_operand(op, 0)->type->kind != TY_INDEX || extents->n != 1))
		return verify_fail(op, "a count must be an index, over one extent");
	if (reduce_is_position(kind))
		want = NULL;
	return region_takes_positions(op, 0, 0, extents->n) && region_gives(yield, 1, &want) &&
	       reduce_form_is_sound(op);
}

// ---- single operations --------------------------------------------------------------------------

// Operand `tensor` is a tensor and the operands after it are one position per dim.
static bool load_is_right(const Op *op, int tensor)
{
	const Value *t = op_operand(op, tensor);
	int n = op->noperand - tensor - 1;
	if (t->type->kind != TY_TENSOR)
		return verify_fail(op, "operand 'tensor' must be a tensor, not %s",
		                   type_text(op->ctx, t->type));
	if (n != t->type->rank)
		return verify_fail(op, "%d positions for %s", n, type_text(op->ctx, t->type));
	for (int i = tensor + 1; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (v->type->kind != TY_INDEX)
			return verify_fail(op, "position %d must be an index, not %s", i - tensor - 1,
			                   type_text(op->ctx, v->type));
	}
	const Type *result = op->results[0].type;
	if (result != type_scalar(op->ctx, t->type->dtype))
		return verify_fail(op, "the result must be %s, not %s", dtype_name(t->type->dtype),
		                   type_text(op->ctx, result));
	return true;
}

// How many values argument `i` of a loop's block takes; NULL when that is not for the loop to say.
static const Dim *loop_extent(const Op *loop, uint32_t i)
{
	if (loop->code == OP_LOOP_NEST)
		return (int)i < loop->results[0].type->rank ? loop->results[0].type->dims[i] : NULL;
	const Attr *extents = loop->code == OP_LOOP_REDUCE ? op_attr(loop, "extents") : NULL;
	return extents && extents->kind == ATTR_DIMS && (int)i < extents->n ? extents->dims[i] : NULL;
}

// Whether a loop around op never runs.
static bool runs_never(const Op *op)
{
	for (const Op *loop = op_parent(op); loop; loop = op_parent(loop)) {
		const Dim *extent;
		for (uint32_t i = 0; (extent = loop_extent(loop, i)); i++)
			if (dim_is(extent, 0))
				return true;
	}
	return false;
}

bool load_verify_bounds(const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	for (int d = 0; d < t->rank; d++) {
		const Value *at = op_operand(op, d + 1);
		int64_t last = -1;
		if (!dim_is_const(t->dims[d]))
			continue;
		if (at->block) {
			const Dim *extent = loop_extent(at->block->region->op, at->index);
			last = extent && dim_is_const(extent) && extent->value > 0 ? extent->value - 1 : -1;
		} else if (at->def->code == OP_LOOP_CONSTANT) {
			last = op_int(at->def, "value", 0);
		}
		if (last >= t->dims[d]->value && !runs_never(op))
			return verify_fail(op, "position %lld on axis %d is outside of %s", (long long)last, d,
			                   type_text(op->ctx, t));
	}
	return true;
}

bool verify_hook_loop_load(Op *op)
{
	return load_is_right(op, 0) && load_verify_bounds(op) && load_form_is_sound(op);
}

bool verify_hook_loop_load_or(Op *op)
{
	const Type *pred = op_operand(op, 0)->type, *other = op_operand(op, 1)->type;
	if (pred != type_scalar(op->ctx, DT_BOOL))
		return verify_fail(op, "operand 'pred' must be bool, not %s", type_text(op->ctx, pred));
	if (!load_is_right(op, 2) || !load_form_is_sound(op))
		return false;
	return other == op->results[0].type ||
	       verify_fail(op, "operand 'other' must be %s, not %s",
	                   type_text(op->ctx, op->results[0].type), type_text(op->ctx, other));
}

bool verify_hook_loop_constant(Op *op)
{
	const Attr *type = op_attr(op, "type");
	const Type *result = op->results[0].type;
	if (!type_is_scalar(result))
		return verify_fail(op, "the result must be a scalar or an index, not %s",
		                   type_text(op->ctx, result));
	return !type || type->type == result ||
	       verify_fail(op, "the result has type %s, but attribute 'type' says %s",
	                   type_text(op->ctx, result), type_text(op->ctx, type->type));
}

bool verify_hook_loop_from_index(Op *op)
{
	const Type *x = op_operand(op, 0)->type;
	return x->kind == TY_INDEX ||
	       verify_fail(op, "the operand must be an index, not %s", type_text(op->ctx, x));
}

bool verify_hook_loop_to_index(Op *op)
{
	const Type *x = op_operand(op, 0)->type;
	bool fits = x->kind == TY_SCALAR && (dtype_is_int(x->dtype) || x->dtype == DT_BOOL);
	return fits || verify_fail(op, "the operand must be an integer, not %s", type_text(op->ctx, x));
}

bool verify_hook_loop_near_index(Op *op)
{
	const Type *x = op_operand(op, 0)->type;
	const Attr *a = op_attr(op, "extent");
	if (!a || a->kind != ATTR_DIM || !dim_is_const(a->dim) || a->dim->value < 1 ||
	    a->dim->value > INT64_C(1) << 24)
		return verify_fail(op, "the extent must be a constant from 1 to 2^24");
	return (x->kind == TY_SCALAR && x->dtype == DT_F32) ||
	       verify_fail(op, "the operand must be f32, not %s", type_text(op->ctx, x));
}
