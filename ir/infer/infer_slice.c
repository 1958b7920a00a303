// Types of slices, paddings and repetitions, and the extents that their definitions read
// (geometry.h).
#include "ir/build/infer.h"
#include "ir/build/nest.h"
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

// The start of a walk downwards, at most the last position; its end, at least -1.
static const Dim *slice_top(Context *c, const Dim *v, const Dim *size)
{
	const Dim *last = dim_sub(c, size, dim_const(c, 1));
	if (dim_is_const(v) && v->value < 0)
		return dim_max(c, dim_add(c, v, size), dim_const(c, -1));
	if (!dim_is_const(v) && is_inside(c, dim_add(c, v, dim_const(c, 1)), size))
		return v;
	if (!dim_is_const(v) && may_be_negative(v))
		return dim_max(c, dim_min(c, from_the_end(c, v, size, 0), last), dim_const(c, -1));
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
		e->start[d] = slice_top(c, start, size);
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
		e->dropped[d] = false;
		e->single[d] = false;
	}
}

// Axes that the result has no longer.
static bool extent_drop(Op *op, int rank, Extent *e)
{
	int64_t drop[MAX_RANK];
	const bool set = op->code == OP_PD_SET_VALUE;
	const int n = op_ints(op, set ? "decrease_axes" : "decrease_axis", drop, MAX_RANK);
	for (int i = 0; i < n; i++) {
		int d;
		if (!infer_axis(op, drop[i], rank, &d))
			return false;
		e->dropped[d] = true;
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
	return extent_drop(op, x->rank, e);
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
	const Dim *shape[MAX_RANK], *offsets[MAX_RANK];
	Value *like = op_operand(op, 1);
	if (!x)
		return false;
	int n = like && type_is_tensor(like->type) ? like->type->rank
	                                           : infer_resolve(op, "shape", shape, MAX_RANK);
	int noffset = infer_resolve(op, "offsets", offsets, MAX_RANK);
	if (n != x->rank || noffset < 0 || (noffset && noffset != n))
		return op_error(op, "shape and offsets must have one element per axis");
	for (int d = 0; d < n; d++) {
		if (like)
			shape[d] = like->type->dims[d];
		if (dim_is(shape[d], -1))
			shape[d] = noffset ? dim_sub(op->ctx, x->dims[d], offsets[d]) : x->dims[d];
	}
	return infer_result_shape(op, 0, x->dtype, n, shape);
}

// ---- repetition ---------------------------------------------------------------------------------

// Sizes that only a run tells to be 1 or as wanted are checked there (define_hook_expand).
static bool stretches(const Op *op, const Dim *have, const Dim *want)
{
	bool known = dim_is_const(have) && dim_is_const(want);
	return !known || dim_is(have, 1) || have == want ||
	       op_error(op, "size and expanded size differ: %s and %s", dim_text(op->ctx, have),
	                dim_text(op->ctx, want));
}

bool infer_hook_expand(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int n;
	if (!x || (n = infer_sizes_bound(op, "shape", shape, MAX_RANK)) < 0)
		return false;
	int shift = n - x->rank;
	if (shift < 0)
		return op_error(op, "a shape of %d axes for a tensor of rank %d", n, x->rank);
	for (int d = 0; d < n; d++) {
		const Dim *have = d < shift ? dim_const(op->ctx, 1) : x->dims[d - shift];
		// Exported programs write -1 (and -2, for a size that a tensor gives) for "as it is".
		bool keep = dim_is_const(shape[d]) && shape[d]->value < 0;
		if (keep && d < shift)
			return op_error(op, "axis %d of the shape is new, so its size must be given", d);
		if (keep)
			shape[d] = have;
		else if (!stretches(op, have, shape[d]))
			return false;
	}
	op_set_attr(op, "shape", attr_dims(op->ctx, n, shape));
	if (op_operand(op, 1))
		op_set_operand(op, 1, NULL);
	return infer_result_shape(op, 0, x->dtype, n, shape);
}

bool infer_hook_expand_as(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t target[MAX_RANK];
	Value *y = op_operand(op, 1);
	if (!x)
		return false;
	int n = y ? y->type->rank : op_ints(op, "target_shape", target, MAX_RANK), shift = n - x->rank;
	if (n < 0 || shift < 0)
		return op_error(op, "a shape of %d axes for a tensor of rank %d", n, x->rank);
	for (int d = 0; d < n; d++) {
		shape[d] = y ? y->type->dims[d] : dim_const(op->ctx, target[d]);
		if (d >= shift && !stretches(op, x->dims[d - shift], shape[d]))
			return false;
	}
	return infer_result_shape(op, 0, x->dtype, n, shape);
}

bool infer_hook_tile(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *times[MAX_RANK], *shape[MAX_RANK];
	int n;
	if (!x || (n = infer_resolve(op, "repeat_times", times, MAX_RANK)) < 0)
		return false;
	int rank = n > x->rank ? n : x->rank;
	for (int d = 0; d < rank; d++) {
		int dx = d - (rank - x->rank), dt = d - (rank - n);
		const Dim *size = dx < 0 ? dim_const(c, 1) : x->dims[dx];
		shape[d] = dt < 0 ? size : dim_mul(c, size, times[dt]);
	}
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

// Whether the counts of repetitions are constants.
static bool repeats_known(const Op *op)
{
	const Dim *const *known;
	int n = infer_known(op, 1, &known);
	for (int i = 0; i < n; i++)
		if (!dim_is_const(known[i]))
			return false;
	return n >= 0;
}

bool infer_hook_repeat_interleave(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t repeats[MAX_KNOWN], total = 0;
	int axis, n;
	if (!x || !infer_axis(op, op_int(op, "axis", 0), x->rank, &axis))
		return false;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	if (op_operand_named(op, "repeats_tensor") && !repeats_known(op)) {
		const Type *r = infer_rank(op, 1, 1);
		const Dim *same;
		if (!r || (!dim_is(r->dims[0], 1) &&
		           !infer_same_dim(op, r->dims[0], x->dims[axis], "repeats", &same)))
			return false;
		shape[axis] = infer_found(op, "n_", op->info->short_name, -1);
		return infer_result_shape(op, 0, x->dtype, x->rank, shape);
	}
	if ((n = infer_resolve_ints(op, "repeats", repeats, MAX_KNOWN)) < 0)
		return false;
	for (int i = 0; i < n; i++) {
		if (repeats[i] < (n == 1))
			return op_error(op, "repeats is %lld", (long long)repeats[i]);
		total += repeats[i];
	}
	const Dim *elements;
	if (n != 1 && !infer_same_dim(op, x->dims[axis], dim_const(op->ctx, n), "repeats", &elements))
		return false;
	shape[axis] = n == 1 ? dim_mul(op->ctx, shape[axis], dim_const(op->ctx, total))
	                     : dim_const(op->ctx, total);
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_roll(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shifts[MAX_RANK], *sizes[MAX_RANK];
	int64_t axes[MAX_RANK];
	int axis, naxes = op_ints(op, "axis", axes, MAX_RANK);
	naxes = naxes < 0 ? 0 : naxes;
	if (!x)
		return false;
	for (int i = 0; i < naxes; i++) { // one after the other: an axis may come again
		if (!infer_axis(op, axes[i], x->rank, &axis))
			return false;
		sizes[i] = x->dims[axis];
	}
	sizes[0] = naxes ? sizes[0] : type_numel(op->ctx, x);
	if (!infer_shifts(op, naxes ? naxes : 1, sizes))
		return false;
	int n = infer_resolve(op, "shifts", shifts, MAX_RANK);
	if (n < 0 || (naxes ? n != naxes : n != 1))
		return op_error(op, "%d shifts for %d axes", n, naxes);
	return infer_result(op, 0, x);
}

bool infer_hook_flip(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	int64_t axes[MAX_RANK];
	bool flags[MAX_RANK];
	if (!x)
		return false;
	int n = op_ints(op, "axis", axes, MAX_RANK);
	return infer_axes(op, n < 0 ? 0 : n, axes, x->rank, false, flags) && infer_result(op, 0, x);
}

// ---- padding ------------------------------------------------------------------------------------

// First and number of the axes that pad2d and pad3d pad, and the order in which `paddings` has
// them.
static void image_axes(const Op *op, int *first, int *count)
{
	bool volume = op->code == OP_PD_PAD3D;
	*count = volume ? 3 : 2;
	*first = channels_last(op) ? 1 : 2;
}

bool padding_of_image(Op *op, Padding *p)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *pads[2 * MAX_RANK];
	int first = 0, count = x ? x->rank : 0;
	if (!x)
		return false;
	if (op->code != OP_PD_PAD)
		image_axes(op, &first, &count);
	int n = op_dims(op, "paddings", pads, 2 * MAX_RANK);
	if (n != 2 * count || first + count > x->rank)
		return op_error(op, "%d paddings for a tensor of rank %d", n, x->rank);
	for (int d = 0; d < x->rank; d++)
		p->before[d] = p->after[d] = dim_const(op->ctx, 0);
	for (int i = 0; i < count; i++) {
		// pad3d lists the last axis first.
		int d = op->code == OP_PD_PAD3D ? first + count - 1 - i : first + i;
		p->before[d] = pads[2 * i];
		p->after[d] = pads[2 * i + 1];
	}
	return true;
}

static bool pad_result(Op *op)
{
	const Type *x = op_operand(op, 0)->type;
	const Dim *shape[MAX_RANK];
	Padding p;
	if (!padding_of_image(op, &p))
		return false;
	for (int d = 0; d < x->rank; d++) {
		shape[d] = dim_add(op->ctx, dim_add(op->ctx, x->dims[d], p.before[d]), p.after[d]);
		if (dim_is_const(shape[d]) && shape[d]->value < 0)
			return op_error(op, "the paddings leave nothing of axis %d", d);
	}
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_pad(Op *op)
{
	return pad_result(op);
}

bool infer_hook_pad_image(Op *op)
{
	const Dim *pads[2 * MAX_RANK];
	if (!infer_tensor(op, 0) || infer_resolve(op, "paddings", pads, 2 * MAX_RANK) < 0)
		return false;
	return pad_result(op);
}
