// Types of operators that repeat, turn round and pad (expand, tile, repeat_interleave, roll, flip,
// pad), and the paddings that their definitions read (geometry.h).
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- repetition ---------------------------------------------------------------------------------

// Sizes that only a run tells to be 1 or as wanted are checked there (define_hook_expand).
static bool stretches(const Op *op, const Dim *have, const Dim *want)
{
	bool known = dim_is_const(have) && dim_is_const(want);
	return !known || dim_is(have, 1) || have == want ||
	       op_error(op, "size and expanded size differ: %s and %s", dim_text(op->ctx, have),
	                dim_text(op->ctx, want));
}

// A shape that only data tell: -1 keeps an axis there, too.
static bool expand_by_data(Op *op, const Type *x)
{
	const Dim *own[MAX_RANK];
	int64_t n;
	const Value *v = op_operand(op, 1);
	if (!v || !type_is_tensor(v->type) || !type_const_numel(v->type, &n) || n < x->rank ||
	    n > MAX_RANK)
		return true;
	for (int d = 0; d < (int)n; d++)
		own[d] = d < (int)n - x->rank ? NULL : x->dims[d - ((int)n - x->rank)];
	return infer_own_sizes(op, 1, (int)n, own);
}

bool infer_hook_expand(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int n;
	if (!x || !expand_by_data(op, x) || (n = infer_sizes_bound(op, "shape", shape, MAX_RANK)) < 0)
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

// A reflection has as many elements before the first as are after it, and none of nothing; the edge
// and a wrapped image need one element.
static bool pad_finds(Op *op, const Dim *size, const Dim *before, const Dim *after)
{
	Context *c = op->ctx;
	const PadKind mode = (PadKind)op_enum(op, "mode");
	const Dim *one = dim_const(c, 1);
	if (mode == PAD_CONSTANT || (dim_is(before, 0) && dim_is(after, 0)))
		return true;
	if (mode != PAD_REFLECT)
		return infer_at_least(op, size, one, "the size of a padded axis");
	return infer_at_least(op, size, dim_add(c, before, one), "the size of a reflected axis") &&
	       infer_at_least(op, size, dim_add(c, after, one), "the size of a reflected axis");
}

bool infer_hook_pad(Op *op)
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
		if (!pad_finds(op, x->dims[d], p.before[d], p.after[d]))
			return false;
	}
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_pad_image(Op *op)
{
	const Dim *pads[2 * MAX_RANK];
	if (!infer_tensor(op, 0) || infer_resolve(op, "paddings", pads, 2 * MAX_RANK) < 0)
		return false;
	return infer_hook_pad(op);
}
