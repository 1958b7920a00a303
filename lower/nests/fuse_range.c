// What is known of indices in the code of nests and kernels: constants, sizes, and ranges that the
// loops give. Called by fuse_index.c.
#include "ir/infer/attention.h"
#include "lower/nests/fuse.h"
#include "lower/nests/fuse_range.h"

enum { MAX_DEPTH = 24 }; // of an index expression that is looked into

static const Range range_any = {INT64_MIN, INT64_MAX, NULL};

// ---- reading values -----------------------------------------------------------------------------

bool scalar_constant(const Value *v, int64_t *out)
{
	if (value_is_bool(v) && v->def && v->def->code == OP_LOOP_CONSTANT) {
		*out = op_bool(v->def, "value", false);
		return true;
	}
	const Dim *d = index_size(v);
	if (d && dim_is_const(d))
		*out = d->value;
	return d && dim_is_const(d);
}

const Dim *index_size(const Value *v)
{
	if (!value_is_index(v) || !v->def)
		return NULL;
	int64_t at;
	if (index_constant(v, &at))
		return dim_const(v->def->ctx, at);
	if (v->def->code == OP_LOOP_DIM) {
		const Attr *a = op_attr(v->def, "dim");
		return a ? a->dim : NULL;
	}
	return NULL;
}

const Dim *index_extent(const Value *arg)
{
	if (!arg->block || !value_is_index(arg))
		return NULL;
	const Op *op = arg->block->region->op;
	if (op->code == OP_LOOP_REDUCE) {
		const Attr *extents = op_attr(op, "extents");
		return extents && (int)arg->index < extents->n ? extents->dims[arg->index] : NULL;
	}
	// An epilogue has the accumulator before the indices.
	int first = arg->block->narg && !value_is_index(arg->block->args[0]);
	const Type *t = op->nresult ? op->results[0].type : NULL;
	if (op->code == OP_KERNEL_ATTENTION)
		t = attention_domain(op, (int)(arg->block->region - op->regions));
	int d = (int)arg->index - first;
	return t && d >= 0 && d < t->rank ? t->dims[d] : NULL;
}

// ---- ranges -------------------------------------------------------------------------------------

static int64_t add_sat(int64_t a, int64_t b)
{
	if (a == INT64_MAX || b == INT64_MAX)
		return INT64_MAX;
	if (a == INT64_MIN || b == INT64_MIN)
		return INT64_MIN;
	if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
		return b > 0 ? INT64_MAX : INT64_MIN;
	return a + b;
}

static int64_t mul_sat(int64_t a, int64_t b) // of two that are not negative
{
	if (a == 0 || b == 0)
		return 0;
	return a > INT64_MAX / b ? INT64_MAX : a * b;
}

static int64_t neg_sat(int64_t a)
{
	return a == INT64_MIN ? INT64_MAX : a == INT64_MAX ? INT64_MIN : -a;
}

static Range range_within(const Value *v, int depth);

static Range range_below(const Dim *extent)
{
	Range r = {0, INT64_MAX, extent};
	int64_t lo, hi;
	dim_range(extent, &lo, &hi);
	if (hi != INT64_MAX)
		r.hi = hi - 1;
	return r;
}

static Range range_sum(const Op *op, Range a, Range b, int depth)
{
	Range r = {add_sat(a.lo, b.lo), add_sat(a.hi, b.hi), NULL};
	// outer * D + inner with inner < D: below outer's size * D.
	const Op *mul = op_operand(op, 0)->def;
	if (mul && mul->code == OP_PD_MULTIPLY && b.lo >= 0 && b.below) {
		Range outer = range_within(op_operand(mul, 0), depth + 1);
		if (outer.below && index_size(op_operand(mul, 1)) == b.below)
			r.below = dim_mul(op->ctx, outer.below, b.below);
	}
	return r;
}

static Range range_divided(const Op *op, Range a)
{
	const Dim *by = index_size(op_operand(op, 1));
	if (a.lo < 0 || !by || dim_is(by, 0))
		return range_any;
	Range r = {0, a.hi, NULL};
	if (dim_is_const(by) && by->value > 0) {
		r.lo = a.lo / by->value;
		r.hi = a.hi == INT64_MAX ? a.hi : a.hi / by->value;
	}
	// Below E * D before the division: below E after it.
	if (a.below) {
		const Dim *e = dim_div(op->ctx, a.below, by);
		if (dim_mul(op->ctx, e, by) == a.below)
			r.below = e;
	}
	return r;
}

static Range range_extreme(const Op *op, Range a, Range b)
{
	if (op->code == OP_PD_MINIMUM)
		return (Range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi,
		               a.below ? a.below : b.below};
	return (Range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, NULL};
}

static Range range_binary(const Op *op, int depth)
{
	Range a = range_within(op_operand(op, 0), depth + 1),
		  b = range_within(op_operand(op, 1), depth + 1);
	switch (op->code) {
	case OP_PD_ADD: return range_sum(op, a, b, depth);
	case OP_PD_SUBTRACT:
		return (Range){add_sat(a.lo, neg_sat(b.hi)), add_sat(a.hi, neg_sat(b.lo)),
		               b.lo >= 0 ? a.below : NULL};
	case OP_PD_MULTIPLY:
		if (a.lo < 0 || b.lo < 0)
			return range_any;
		return (Range){mul_sat(a.lo, b.lo), mul_sat(a.hi, b.hi), NULL};
	case OP_PD_FLOOR_DIVIDE: return range_divided(op, a);
	case OP_PD_REMAINDER: {
		const Dim *by = index_size(op_operand(op, 1));
		return a.lo >= 0 && by ? range_below(by) : range_any;
	}
	case OP_PD_MINIMUM:
	case OP_PD_MAXIMUM: return range_extreme(op, a, b);
	default: return range_any;
	}
}

static Range range_within(const Value *v, int depth)
{
	if (depth > MAX_DEPTH || !value_is_index(v))
		return range_any;
	if (v->block) {
		const Dim *extent = index_extent(v);
		return extent ? range_below(extent) : range_any;
	}
	const Dim *d = index_size(v);
	if (d) {
		Range r = {0, 0, NULL};
		dim_range_empty(d, &r.lo, &r.hi);
		return r;
	}
	if (number_extent(v->def))
		return range_below(number_extent(v->def));
	return v->def->noperand == 2 ? range_binary(v->def, depth) : range_any;
}

Range range_of(const Value *v)
{
	return range_within(v, 0);
}
