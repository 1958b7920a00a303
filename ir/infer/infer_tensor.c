// Types of the operators that move the elements of one tensor (ir/ops/tensor.yaml), and shape
// arithmetic through them.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- views --------------------------------------------------------------------------------------

// The same elements in the same order: what is known stays known.
static void pass_known(Op *op)
{
	const Dim *const *known;
	int n = infer_known(op, 0, &known);
	if (n >= 0)
		infer_set_known(op, 0, n, known);
}

static bool reshape_result(Op *op, const Type *x, int n, const Dim **shape)
{
	pass_known(op);
	return infer_result(op, 0, type_tensor(op->ctx, x->dtype, n, shape, 0));
}

// The size that a shape found at run time means on an axis: 0 says that of x; -1 is left to the
// caller.
static Value *meant_size(Builder *b, const Type *x, Value *shape, Value *axis)
{
	Value *v = load(b, shape, &axis), *own = build_scalar_f(b, DT_I64, 0);
	for (int d = 0; d < x->rank; d++)
		own = index_where(b, index_equal(b, axis, index_const(b, d)),
		                  scalar_from_index(b, index_dim(b, x->dims[d]), DT_I64), own);
	v = scalar_cast(b, v, DT_I64);
	Value *zero = v ? build2(b, OP_PD_EQUAL, v, build_scalar_f(b, DT_I64, 0), NULL) : NULL;
	return index_where(b, zero, own, v);
}

// A shape that is a tensor of the data, with its 0 and -1 resolved by operations before op.
static Value *resolve_shape(Op *op, const Type *x, Value *shape)
{
	Builder b = builder_before(op);
	Context *c = op->ctx;
	const Type *type = type_like(c, shape->type, DT_I64);
	Nest n = nest_open(&b, type);
	Nest r = reduce_open(&n.b, "prod", DT_I64, 1, type->dims);
	Value *each = meant_size(&r.b, x, shape, r.at[0]), *one = build_scalar_f(&r.b, DT_I64, 1);
	Value *given = each ? build2(&r.b, OP_PD_GREATER_EQUAL, each, build_scalar_f(&r.b, DT_I64, 0),
	                             NULL)
	                    : NULL;
	Value *others = reduce_close(&r, index_where(&r.b, given, each, one));
	Value *numel = scalar_from_index(&n.b, index_dim(&n.b, type_numel(c, x)), DT_I64);
	Value *safe = others
	                  ? build2(&n.b, OP_PD_MAXIMUM, others, build_scalar_f(&n.b, DT_I64, 1), NULL)
	                  : NULL;
	Value *rest = safe && numel ? build2(&n.b, OP_PD_FLOOR_DIVIDE, numel, safe, NULL) : NULL;
	Value *mine = meant_size(&n.b, x, shape, n.at[0]);
	Value *known = mine ? build2(&n.b, OP_PD_GREATER_EQUAL, mine, build_scalar_f(&n.b, DT_I64, 0),
	                             NULL)
	                    : NULL;
	return nest_close(&n, index_where(&n.b, known, mine, rest));
}

// A shape operand of which nothing is known gives way to what it means.
static bool reshape_by_data(Op *op, const Type *x)
{
	Value *const *list;
	if (!op_operand(op, 1) || !op->block)
		return true;
	if (op_operand_list(op, 1, &list) != 1 || !list[0] || list[0]->known ||
	    !type_is_tensor(list[0]->type) || list[0]->type->rank != 1 ||
	    !dim_is_const(list[0]->type->dims[0]))
		return true;
	Value *meant = resolve_shape(op, x, list[0]);
	if (meant)
		op_set_operand(op, 1, meant);
	return meant != NULL;
}

// Of the n sizes of a shape those that are 0 are x's, and at most one is -1: its axis, or -1; -2
// after a diagnostic. `known` becomes the product of the others.
static int shape_settle(Op *op, const Type *x, int n, const Dim **shape, const Dim **known)
{
	const Dim *numel = type_numel(op->ctx, x);
	int free_axis = -1;
	for (int d = 0; d < n; d++) {
		if (dim_is(shape[d], 0) && d < x->rank && !dim_is(numel, 0))
			shape[d] = x->dims[d];
		if (!dim_is(shape[d], -1)) {
			*known = dim_mul(op->ctx, *known, shape[d]);
			continue;
		}
		if (free_axis >= 0) {
			op_error(op, "more than one -1 in the shape");
			return -2;
		}
		free_axis = d;
	}
	return free_axis;
}

bool infer_hook_reshape(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *known = dim_const(c, 1);
	if (!x || !reshape_by_data(op, x))
		return false;
	const int n = infer_sizes_bound(op, "shape", shape, MAX_RANK);
	if (n < 0)
		return diag_errors(c->diag) ? false
		                            : op_error(op, "the shape has more than %d axes", MAX_RANK);
	const Dim *numel = type_numel(c, x);
	const int free_axis = shape_settle(op, x, n, shape, &known);
	if (free_axis < -1)
		return false;
	if (free_axis >= 0) {
		if (dim_is(known, 0) ||
		    (dim_is_const(numel) && dim_is_const(known) && numel->value % known->value))
			return op_error(op, "the elements do not fill the shape evenly");
		shape[free_axis] = infer_divided(c, numel, known);
	} else if (!infer_same_dim(op, numel, known, "numbers of elements", &known)) {
		return false;
	}
	// The types of a rewritten program must stay as they are: the shape is what it was resolved to.
	op_set_attr(op, "shape", attr_dims(c, n, shape));
	if (op_operand(op, 1))
		op_set_operand(op, 1, NULL);
	return reshape_result(op, x, n, shape);
}

bool infer_hook_flatten(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int start, stop, n = 0;
	if (!x)
		return false;
	if (!x->rank) {
		shape[0] = dim_const(c, 1);
		return reshape_result(op, x, 1, shape);
	}
	if (!infer_axis(op, op_int(op, "start_axis", 1), x->rank, &start) ||
	    !infer_axis(op, op_int(op, "stop_axis", -1), x->rank, &stop))
		return false;
	if (start > stop)
		return op_error(op, "start_axis %d is after stop_axis %d", start, stop);
	for (int d = 0; d < x->rank; d++) {
		if (d > start && d <= stop)
			shape[n - 1] = dim_mul(c, shape[n - 1], x->dims[d]);
		else
			shape[n++] = x->dims[d];
	}
	return reshape_result(op, x, n, shape);
}

bool infer_hook_flatten2(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	int64_t axis = op_int(op, "axis", 1);
	axis = axis < 0 ? axis + x->rank : axis;
	if (axis < 0 || axis > x->rank)
		return op_error(op, "axis %lld of a tensor of rank %d", (long long)axis, x->rank);
	const Dim *shape[2] = {dim_const(c, 1), dim_const(c, 1)};
	for (int d = 0; d < x->rank; d++)
		shape[d >= axis] = dim_mul(c, shape[d >= axis], x->dims[d]);
	return reshape_result(op, x, x->rank ? 2 : 1, shape);
}

// Whether an axis goes when all of size 1 are to go. The number of axes is fixed here: a size that
// only a run tells must not be 1 then: (d - 1) * (d - 1) is 1 or more for all others.
static bool squeezed(const Op *op, const Dim *d)
{
	Context *c = op->ctx;
	const Dim *one = dim_const(c, 1), *past = dim_sub(c, d, one);
	if (!dim_is_const(d))
		dim_check(c, dim_min(c, dim_mul(c, past, past), one), one);
	return dim_is(d, 1);
}

bool infer_hook_squeeze(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t axes[MAX_RANK];
	bool drop[MAX_RANK] = {false};
	int count, n = 0;
	if (!x || (count = infer_resolve_ints(op, "axis", axes, MAX_RANK)) < 0)
		return false;
	for (int i = 0; i < count; i++) {
		int axis;
		if (!infer_axis(op, axes[i], x->rank, &axis))
			return false;
		// An axis of another size stays, as Paddle has it; one that may be 1 is taken to be.
		drop[axis] = !dim_is_const(x->dims[axis]) || dim_is(x->dims[axis], 1);
		if (!dim_is_const(x->dims[axis]))
			infer_equal_dims(op, x->dims[axis], dim_const(op->ctx, 1));
	}
	for (int d = 0; d < x->rank; d++)
		if (count ? !drop[d] : !squeezed(op, x->dims[d]))
			shape[n++] = x->dims[d];
	return reshape_result(op, x, n, shape);
}

bool infer_hook_unsqueeze(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t axes[MAX_RANK];
	int count;
	if (!x || (count = infer_resolve_ints(op, "axis", axes, MAX_RANK)) < 0)
		return false;
	if (x->rank + count > MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	int rank = x->rank;
	for (int i = 0; i < count; i++) {
		int axis;
		if (!infer_axis(op, axes[i], rank + 1, &axis))
			return false;
		memmove(shape + axis + 1, shape + axis, sizeof *shape * (size_t)(rank - axis));
		shape[axis] = dim_const(op->ctx, 1);
		rank++;
	}
	return reshape_result(op, x, rank, shape);
}

// ---- permutation --------------------------------------------------------------------------------

bool infer_hook_transpose(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t perm[MAX_RANK];
	bool seen[MAX_RANK];
	if (!x)
		return false;
	int n = op_ints(op, "perm", perm, MAX_RANK);
	if (n != x->rank)
		return op_error(op, "a permutation of %d axes for a tensor of rank %d", n, x->rank);
	if (!infer_axes(op, n, perm, x->rank, false, seen))
		return false;
	for (int d = 0; d < n; d++) {
		perm[d] = perm[d] < 0 ? perm[d] + n : perm[d];
		shape[d] = x->dims[perm[d]];
	}
	op_set_attr(op, "perm", attr_ints(op->ctx, n, perm));
	if (n <= 1)
		pass_known(op);
	return infer_result_shape(op, 0, x->dtype, n, shape);
}
