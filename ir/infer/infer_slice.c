// Types of slices (slice, strided_slice, set_value, crop), and the extents that their definitions
// read (geometry.h).
#include "ir/build/infer.h"
#include "ir/infer/geometry.h"

#include <string.h>

enum { TO_THE_END = INT32_MAX };

static const Dim *at_least_0(Context *c, const Dim *d)
{
	return dim_max(c, d, dim_const(c, 0));
}

// v, or v + size where v is less than `from`.
static const Dim *from_the_end(Context *c, const Dim *v, const Dim *size, int64_t from)
{
	const Dim *below = dim_max(c, dim_sub(c, dim_const(c, from), v), dim_const(c, 0));
	return dim_add(c, v, dim_mul(c, size, dim_min(c, below, dim_const(c, 1))));
}

static bool may_be_negative(const Dim *v)
{
	int64_t lo, hi;
	dim_range(v, &lo, &hi);
	return lo < 0;
}

// A position that infer_slice_bounds has bound: it lies in the axis.
static bool is_inside(Context *c, const Dim *v, const Dim *size)
{
	return v->kind == DIM_SYM && v->bounded && dim_bound(c, v) == size;
}

// A start or end in [0, size]; negative ones count from the end.
static const Dim *slice_bound(Context *c, const Dim *v, const Dim *size)
{
	if (!dim_is_const(v) && may_be_negative(v))
		return at_least_0(c, dim_min(c, from_the_end(c, v, size, 0), size));
	if (!dim_is_const(v))
		return is_inside(c, v, size) ? v : dim_min(c, v, size);
	if (v->value >= TO_THE_END)
		return size;
	if (v->value < 0)
		return at_least_0(c, dim_add(c, v, size));
	return dim_min(c, v, size);
}

// The start of a walk downwards, at most the last position. One in front of the first is the first
// if there is one, or with `from_end`, as in Python, nowhere.
static const Dim *slice_top(const Op *op, const Dim *v, const Dim *size)
{
	Context *c = op->ctx;
	const Dim *last = dim_sub(c, size, dim_const(c, 1));
	const Dim *least = op_bool(op, "from_end", false) ? dim_const(c, -1)
	                                                  : dim_min(c, dim_const(c, 0), last);
	if (dim_is_const(v) && v->value < 0)
		return dim_max(c, dim_add(c, v, size), least);
	if (!dim_is_const(v) && is_inside(c, dim_add(c, v, dim_const(c, 1)), size))
		return v;
	if (!dim_is_const(v) && may_be_negative(v))
		return dim_max(c, dim_min(c, from_the_end(c, v, size, 0), last), least);
	return dim_is_const(v) && v->value >= TO_THE_END ? last : dim_min(c, v, last);
}

// An end of -1 means "past the first"; other negative ones count from the end, in strided_slice at
// most to the first. With `from_end` all of them count from the end, as in Python.
static const Dim *slice_bottom(const Op *op, const Dim *v, const Dim *size)
{
	Context *c = op->ctx;
	if (!dim_is_const(v) && is_inside(c, dim_add(c, v, dim_const(c, 1)), size))
		return v;
	if (!dim_is_const(v) || v->value >= 0)
		return dim_min(c, v, size);
	bool python = op_bool(op, "from_end", false);
	if (v->value == -1 && !python)
		return v;
	int64_t last = op->code == OP_PD_STRIDED_SLICE && !python ? 0 : -1;
	return dim_max(c, dim_add(c, v, size), dim_const(c, last));
}

static const Dim *steps_between(Context *c, const Dim *from, const Dim *to, const Dim *step)
{
	const Dim *way = at_least_0(c, dim_sub(c, to, from));
	return dim_div(c, dim_add(c, way, dim_sub(c, step, dim_const(c, 1))), step);
}

static bool extent_axis(const Op *op, Extent *e, int d, const Dim *size, const Dim *start,
                        const Dim *end, const Dim *stride)
{
	Context *c = op->ctx;
	const bool known = dim_is_const(stride);
	const int64_t step = known ? stride->value : 1;
	e->stride[d] = known ? NULL : stride;
	if (!step || step < -INT64_MAX)
		return op_error(op, "a stride of %lld", (long long)step);
	e->step[d] = step;
	e->single[d] = known && step > 0 && op->code != OP_PD_SET_VALUE && !dim_is_const(start) &&
	               dim_is(dim_sub(c, end, start), 1);
	if (e->single[d]) {
		e->start[d] = start;
		e->count[d] = dim_const(c, 1);
	} else if (step > 0) {
		e->start[d] = slice_bound(c, start, size);
		e->count[d] = steps_between(c, e->start[d], slice_bound(c, end, size), stride);
	} else {
		bool bound = is_inside(c, dim_add(c, end, dim_const(c, 1)), size);
		if (!dim_is_const(end) && !bound && may_be_negative(end))
			return op_error(op, "a walk down to %s, which may be negative", dim_text(c, end));
		e->start[d] = slice_top(op, start, size);
		e->count[d] = steps_between(c, slice_bottom(op, end, size), e->start[d],
		                            dim_const(c, -step));
	}
	return true;
}

// All of x: what axes that are not sliced have.
static void extent_whole(Context *c, const Type *x, Extent *e)
{
	for (int d = 0; d < x->rank; d++) {
		e->start[d] = dim_const(c, 0);
		e->count[d] = x->dims[d];
		e->step[d] = 1;
		e->stride[d] = NULL;
		e->single[d] = false;
	}
}

bool slice_drops(Op *op, int rank, bool dropped[MAX_RANK])
{
	int64_t drop[MAX_RANK];
	memset(dropped, 0, MAX_RANK * sizeof *dropped);
	const bool set = op->code == OP_PD_SET_VALUE;
	const int n = op_ints(op, set ? "decrease_axes" : "decrease_axis", drop, MAX_RANK);
	for (int i = 0; i < n; i++) {
		int d;
		if (!infer_axis(op, drop[i], rank, &d))
			return false;
		dropped[d] = true;
	}
	return true;
}

// Axes that are sliced, and from where to where.
typedef struct SliceAxes {
	int n, nstep; // nstep 0: all steps are 1
	int64_t axes[MAX_RANK];
	const Dim *starts[MAX_RANK], *ends[MAX_RANK], *steps[MAX_RANK];
} SliceAxes;

static bool slice_axes(Op *op, SliceAxes *s)
{
	const char *step_name = op->code == OP_PD_SET_VALUE ? "steps" : "strides";
	s->n = op_ints(op, "axes", s->axes, MAX_RANK);
	const int nstart = op_dims(op, "starts", s->starts, MAX_RANK);
	const int nend = op_dims(op, "ends", s->ends, MAX_RANK);
	s->nstep = op->code == OP_PD_SLICE ? 0 : op_dims(op, step_name, s->steps, MAX_RANK);
	if (s->n < 0 || nstart != s->n || nend != s->n || (s->nstep && s->nstep != s->n))
		return op_error(op, "axes, starts, ends and strides are of different lengths");
	return true;
}

bool extent_of_slice(Op *op, Extent *e)
{
	const Type *x = infer_tensor(op, 0);
	SliceAxes s;
	if (!x || !slice_axes(op, &s))
		return false;
	extent_whole(op->ctx, x, e);
	for (int i = 0; i < s.n; i++) {
		int d;
		if (s.nstep && !dim_is_const(s.steps[i]) && op->code != OP_PD_SET_VALUE)
			return op_error(op, "strides must be known when the program is compiled");
		if (!infer_axis(op, s.axes[i], x->rank, &d) ||
		    !extent_axis(op, e, d, x->dims[d], s.starts[i], s.ends[i],
		                 s.nstep ? s.steps[i] : dim_const(op->ctx, 1)))
			return false;
	}
	return slice_drops(op, x->rank, e->dropped);
}

// What is known of a sliced vector.
static void slice_known(Op *op, const Extent *e)
{
	const Dim *const *known, *picked[MAX_KNOWN];
	int n = infer_known(op, 0, &known);
	if (n < 0 || op_operand(op, 0)->type->rank != 1 || !dim_is_const(e->start[0]) ||
	    !dim_is_const(e->count[0]))
		return;
	int64_t count = e->count[0]->value;
	for (int64_t i = 0; i < count; i++) {
		int64_t at = e->start[0]->value + i * e->step[0];
		if (at < 0 || at >= n || i >= MAX_KNOWN)
			return;
		picked[i] = known[at];
	}
	infer_set_known(op, 0, (int)count, picked);
}

static bool resolve_bounds(Op *op)
{
	const Dim *dims[MAX_RANK];
	int64_t ints[MAX_RANK];
	int nstep = op->code == OP_PD_SLICE
	                ? 0
	                : infer_sizes(op, op->code == OP_PD_SET_VALUE ? "steps" : "strides", dims,
	                              MAX_RANK);
	for (int i = 0; i < nstep; i++)
		ints[i] = dim_is_const(dims[i]) ? dims[i]->value : 1;
	if (!infer_slice_bounds(op, ints, nstep))
		return false;
	if (infer_resolve(op, "starts", dims, MAX_RANK) < 0 ||
	    infer_resolve(op, "ends", dims, MAX_RANK) < 0)
		return false;
	if (op->code == OP_PD_SLICE)
		return true;
	if (op->code == OP_PD_SET_VALUE)
		return infer_slice_strides(op, "steps") && infer_resolve(op, "steps", dims, MAX_RANK) >= 0;
	return infer_resolve_ints(op, "strides", ints, MAX_RANK) >= 0;
}

// slice and strided_slice.
bool infer_hook_slice(Op *op)
{
	Extent e;
	const Dim *shape[MAX_RANK];
	int rank = 0;
	if (slice_is_open(op))
		return infer_open_slice(op);
	if (!resolve_bounds(op) || !extent_of_slice(op, &e))
		return false;
	const Type *x = op_operand(op, 0)->type;
	for (int d = 0; d < x->rank; d++) {
		if (e.dropped[d] && dim_is_const(e.count[d]) && !dim_is(e.count[d], 1))
			return op_error(op, "axis %d is dropped, but the slice has %lld elements there", d,
			                (long long)e.count[d]->value);
		if (!e.dropped[d])
			shape[rank++] = e.count[d];
	}
	slice_known(op, &e);
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

// Old programs say the values in the attribute of their type.
static void merge_values(Op *op)
{
	static const char *const names[] = {"fp32_values", "fp64_values", "int32_values",
	                                    "int64_values", "bool_values"};
	Context *c = op->ctx;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const Attr *a = op_attr(op, names[i]);
		if (a && a->n) {
			double *v = NEW_ARRAY(c->arena, (size_t)a->n, double);
			for (int k = 0; k < a->n; k++)
				v[k] = a->kind == ATTR_FLOATS ? a->floats[k] : (double)a->ints[k];
			op_set_attr(op, "values", attr_floats(c, a->n, v));
		}
		op_set_attr(op, names[i], NULL);
	}
}

bool infer_hook_set_value(Op *op)
{
	Extent e;
	merge_values(op);
	if (!resolve_bounds(op) || !extent_of_slice(op, &e))
		return false;
	if (!op_operand(op, 1) && !op_attr(op, "values"))
		return op_error(op, "neither a value operand nor values");
	return infer_result(op, 0, op_operand(op, 0)->type);
}

bool infer_hook_crop(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *offsets[MAX_RANK], *rest[MAX_RANK];
	Value *like = op_operand(op, 1);
	if (!x)
		return false;
	const int noffset = infer_resolve(op, "offsets", offsets, MAX_RANK);
	if (noffset < 0 || (noffset && noffset != x->rank))
		return op_error(op, "shape and offsets must have one element per axis");
	for (int d = 0; d < x->rank; d++)
		rest[d] = noffset ? dim_sub(op->ctx, x->dims[d], offsets[d]) : x->dims[d];
	if (!infer_own_sizes(op, op_info_operand(op->info, "shape_tensor"), x->rank, rest))
		return false;
	const int n = like && type_is_tensor(like->type) ? like->type->rank
	                                                 : infer_resolve(op, "shape", shape, MAX_RANK);
	if (n != x->rank)
		return op_error(op, "shape and offsets must have one element per axis");
	for (int d = 0; d < n; d++) {
		if (like)
			shape[d] = like->type->dims[d];
		if (dim_is(shape[d], -1))
			shape[d] = rest[d];
	}
	return infer_result_shape(op, 0, x->dtype, n, shape);
}
