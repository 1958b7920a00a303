// What the operators that move elements mean, as loop nests (ir/ops/tensor.yaml).
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- same elements, new shape -------------------------------------------------------------------

// Finds the next group of axes of `in` from i and of `out` from j that hold equally many elements:
// it ends before *i2 and *j2. Sizes that cannot be compared put all that is left in one group.
static void view_group(Context *c, const Type *in, const Type *out, int i, int j, int *i2, int *j2)
{
	const Dim *p = in->dims[i], *q = out->dims[j];
	for (*i2 = i + 1, *j2 = j + 1; p != q;) {
		bool p_smaller = dim_is_const(p) && dim_is_const(q) ? p->value < q->value
		                                                    : dim_is(dim_mod(c, q, p), 0);
		bool q_smaller = !p_smaller && (dim_is_const(p) || dim_is(dim_mod(c, p, q), 0));
		if (p_smaller && *i2 < in->rank) {
			p = dim_mul(c, p, in->dims[(*i2)++]);
		} else if (q_smaller && *j2 < out->rank) {
			q = dim_mul(c, q, out->dims[(*j2)++]);
		} else {
			*i2 = in->rank;
			*j2 = out->rank;
			return;
		}
	}
}

// The position in `in` of the element at position `at` of `out`.
static void view_position(Builder *b, const Type *in, const Type *out, Value *const *at,
                          Value **from)
{
	int i = 0, j = 0;
	while (i < in->rank || j < out->rank) {
		if (i < in->rank && dim_is(in->dims[i], 1)) {
			from[i++] = index_const(b, 0);
		} else if (j < out->rank && dim_is(out->dims[j], 1)) {
			j++;
		} else if (i == in->rank || j == out->rank) {
			// Sizes that inference could not tell to be 1: what is left over is position 0.
			if (i < in->rank)
				from[i++] = index_const(b, 0);
			else
				j++;
		} else {
			int i2, j2;
			view_group(b->ctx, in, out, i, j, &i2, &j2);
			if (i2 == i + 1 && j2 == j + 1) {
				from[i] = at[j];
			} else {
				Value *linear = index_linear(b, j2 - j, out->dims + j, at + j);
				index_split(b, linear, i2 - i, in->dims + i, from + i);
			}
			i = i2;
			j = j2;
		}
	}
}

bool define_hook_view(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	Nest n = nest_open(b, op->results[0].type);
	view_position(&n.b, x->type, op->results[0].type, n.at, from);
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

// ---- one load per element -----------------------------------------------------------------------

bool define_hook_transpose(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int64_t perm[MAX_RANK];
	int rank = op_ints(op, "perm", perm, MAX_RANK);
	Nest n = nest_open(b, op->results[0].type);
	for (int i = 0; i < rank; i++)
		from[axis_norm(perm[i], rank)] = n.at[i];
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

// Axes of sizes that only a run tells have one element where they go away.
static bool dropped_have_one(Builder *b, int rank, const Extent *e)
{
	const Dim *have[MAX_RANK], *one[MAX_RANK];
	int n = 0;
	for (int d = 0; d < rank; d++)
		if (e->dropped[d] && !e->single[d]) {
			have[n] = e->count[d];
			one[n++] = dim_const(b->ctx, 1);
		}
	return check_sizes(b, n, have, one, false, "an axis that goes away has other than one element");
}

bool define_hook_slice(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	Extent e;
	if (slice_is_open(op))
		return define_open_slice(b, op, results);
	if (!extent_of_slice(op, &e) || !dropped_have_one(b, x->type->rank, &e))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	// A result without axes left has rank 0, or 1 in programs of old: either way one position per
	// kept axis.
	for (int d = 0, k = 0; d < x->type->rank; d++) {
		Value *at = e.dropped[d] ? index_const(&n.b, 0) : n.at[k++];
		from[d] = index_add(&n.b, index_times(&n.b, at, e.step[d]), index_dim(&n.b, e.start[d]));
		int64_t lo, hi;
		dim_range(e.start[d], &lo, &hi);
		if (e.single[d]) // x[i - 1] of the first i is the last
			from[d] = index_from_data(&n.b,
			                          scalar_from_index(&n.b, index_dim(&n.b, e.start[d]), DT_I64),
			                          x->type->dims[d], e.dropped[d] && lo < 0);
	}
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

bool define_hook_crop(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Dim *offsets[MAX_RANK], *ends[MAX_RANK];
	int count = op_dims(op, "offsets", offsets, MAX_RANK);
	for (int d = 0; d < x->type->rank; d++) {
		ends[d] = op->results[0].type->dims[d];
		if (d < count)
			ends[d] = dim_add(b->ctx, ends[d], offsets[d]);
	}
	if (!check_within(b, x->type->rank, ends, x->type->dims, "a crop reaches beyond its tensor"))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	for (int d = 0; d < x->type->rank; d++)
		from[d] = d < count ? index_add(&n.b, n.at[d], index_dim(&n.b, offsets[d])) : n.at[d];
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

// The position in an axis of size `have` of position `at` in one of size `want`.
static Value *stretched_position(Builder *b, Value *at, const Dim *have, const Dim *want)
{
	Value *zero = index_const(b, 0);
	if (dim_is(have, 1))
		return zero;
	return have == want
	           ? at
	           : index_where(b, index_equal(b, index_dim(b, have), index_const(b, 1)), zero, at);
}

bool define_hook_expand(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[0].type;
	const int shift = out->rank - x->type->rank;
	if (!check_sizes(b, x->type->rank, x->type->dims, out->dims + shift, true,
	                 "sizes that broadcast must be equal or 1"))
		return false;
	Nest n = nest_open(b, out);
	for (int d = 0; d < x->type->rank; d++)
		from[d] = stretched_position(&n.b, n.at[d + shift], x->type->dims[d], out->dims[d + shift]);
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

bool define_hook_tile(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[0].type;
	int shift = out->rank - x->type->rank;
	Nest n = nest_open(b, out);
	for (int d = 0; d < x->type->rank; d++) {
		const Dim *size = x->type->dims[d];
		from[d] = size == out->dims[d + shift]
		              ? n.at[d + shift]
		              : index_mod(&n.b, n.at[d + shift], index_dim(&n.b, size));
	}
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

// As often as data say: an element comes from where the running sum of the counts passes it.
static Value *repeated_by_data(Builder *b, Op *op, Value *x, Value *repeats, int axis)
{
	const Type *out = op->results[0].type;
	const Dim *most = dim_const(b->ctx, INT32_MAX), *one = dim_const(b->ctx, 1);
	Value *from[MAX_RANK];
	repeats = tensor_spread(b, repeats, 1, &x->type->dims[axis]);
	if (!repeats)
		return NULL;
	Nest c = nest_open(b, type_like(b->ctx, repeats->type, DT_I64));
	Value *count = index_from_data(&c.b, load(&c.b, repeats, c.at), most, false);
	Value *counts = nest_close(&c, scalar_from_index(&c.b, count, DT_I64));
	Value *ends = counts ? build1(b, OP_PD_CUMSUM, counts, "axis", attr_int(b->ctx, 0), NULL)
	                     : NULL;
	const int64_t first = 0;
	Value *total = counts ? tensor_reduce(b, OP_PD_SUM, counts, 1, &first) : NULL;
	if (!ends || !total || !bind_size(b, tensor_reshape(b, total, 1, &one), out->dims[axis]))
		return NULL;
	Nest p = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &out->dims[axis], 0));
	Value *places = nest_close(&p, scalar_from_index(&p.b, p.at[0], DT_I64));
	Value *at = places ? build2(b, OP_PD_SEARCHSORTED, ends, places, "right",
	                            attr_bool(b->ctx, true), NULL)
	                   : NULL;
	if (!at)
		return NULL;
	Nest n = nest_open(b, out);
	memcpy(from, n.at, sizeof from);
	from[axis] = index_from_data(&n.b, load(&n.b, at, &n.at[axis]), x->type->dims[axis], false);
	return nest_close(&n, load(&n.b, x, from));
}

bool define_hook_repeat_interleave(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int axis = axis_norm(op_int(op, "axis", 0), x->type->rank);
	Value *counted = op_operand_named(op, "repeats_tensor"); // stands above the attribute
	if (counted) {
		results[0] = repeated_by_data(b, op, x, counted, axis);
		return results[0] != NULL;
	}
	const Attr *repeats = op_attr(op, "repeats");
	Nest n = nest_open(b, op->results[0].type);
	memcpy(from, n.at, sizeof from);
	if (repeats->n == 1) {
		from[axis] = index_div(&n.b, n.at[axis], index_const(&n.b, repeats->ints[0]));
	} else {
		// The last element whose run starts at or before this position.
		int64_t start = 0;
		from[axis] = index_const(&n.b, 0);
		for (int i = 0; i + 1 < repeats->n; i++) {
			start += repeats->ints[i];
			Value *before = index_less(&n.b, n.at[axis], index_const(&n.b, start));
			from[axis] = index_where(&n.b, before, from[axis], index_const(&n.b, i + 1));
		}
	}
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

// (at - shift) modulo size, without a negative number on the way.
static Value *index_shifted(Builder *b, Value *at, const Dim *shift, const Dim *size)
{
	const Dim *back = dim_mod(b->ctx, dim_sub(b->ctx, dim_const(b->ctx, 0), shift), size);
	return index_mod(b, index_add(b, at, index_dim(b, back)), index_dim(b, size));
}

bool define_hook_roll(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Dim *shifts[MAX_RANK];
	int64_t axes[MAX_RANK];
	int rank = x->type->rank;
	int count = op_dims(op, "shifts", shifts, MAX_RANK),
		naxes = op_ints(op, "axis", axes, MAX_RANK);
	if (count != (naxes > 0 ? naxes : 1))
		return op_error(op, "the shifts are not known");
	Nest n = nest_open(b, op->results[0].type);
	memcpy(from, n.at, sizeof from);
	if (naxes <= 0) {
		Value *linear = index_linear(&n.b, rank, x->type->dims, n.at);
		linear = index_shifted(&n.b, linear, shifts[0], type_numel(b->ctx, x->type));
		index_split(&n.b, linear, rank, x->type->dims, from);
	}
	for (int i = 0; i < naxes && i < count; i++) {
		int d = axis_norm(axes[i], rank);
		from[d] = index_shifted(&n.b, from[d], shifts[i], x->type->dims[d]);
	}
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

bool define_hook_flip(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int64_t axes[MAX_RANK];
	int naxes = op_ints(op, "axis", axes, MAX_RANK);
	Nest n = nest_open(b, op->results[0].type);
	memcpy(from, n.at, sizeof from);
	for (int i = 0; i < naxes; i++) {
		int d = axis_norm(axes[i], x->type->rank);
		const Dim *last = dim_sub(b->ctx, x->type->dims[d], dim_const(b->ctx, 1));
		from[d] = index_sub(&n.b, index_dim(&n.b, last), n.at[d]);
	}
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

bool define_hook_tril_triu(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int rank = x->type->rank;
	int64_t diagonal = op_int(op, "diagonal", 0);
	if (rank < 2)
		return op_error(op, "a matrix is needed, not %d axes", rank);
	Nest n = nest_open(b, op->results[0].type);
	Value *row = index_plus(&n.b, n.at[rank - 2], diagonal), *col = n.at[rank - 1];
	bool lower = op_bool(op, "lower", true);
	// Below: col <= row + diagonal; above: col >= row + diagonal.
	Value *keep = lower ? index_less(&n.b, col, index_plus(&n.b, row, 1))
	                    : index_less(&n.b, row, index_plus(&n.b, col, 1));
	Value *zero = build_scalar_f(&n.b, x->type->dtype, 0);
	results[0] = nest_close(&n, load_or(&n.b, keep, zero, x, n.at));
	return results[0] != NULL;
}

// ---- padding ------------------------------------------------------------------------------------

// Position in the image of position `at` of the padded image, where it lies outside too.
static Value *pad_position(Builder *b, PadKind mode, Value *at, const Dim *before, const Dim *size)
{
	Context *c = b->ctx;
	if (mode == PAD_CIRCULAR)
		return index_shifted(b, at, before, size);
	Value *x = index_sub(b, at, index_dim(b, before));
	const Dim *last = dim_sub(c, size, dim_const(c, 1));
	if (mode == PAD_REFLECT) {
		x = index_max(b, x, index_sub(b, index_const(b, 0), x));
		return index_min(b, x, index_sub(b, index_dim(b, dim_mul(c, last, dim_const(c, 2))), x));
	}
	return index_min(b, index_max(b, x, index_const(b, 0)), index_dim(b, last)); // replicate, edge
}

bool define_hook_pad(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK], *inside = NULL;
	const PadKind mode = (PadKind)op_enum(op, "mode");
	const bool constant = mode == PAD_CONSTANT;
	Padding p;
	if (!padding_of_image(op, &p))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	for (int d = 0; d < x->type->rank; d++) {
		const Dim *size = x->type->dims[d];
		bool padded = !dim_is(p.before[d], 0) || !dim_is(p.after[d], 0);
		if (!padded) {
			from[d] = n.at[d];
		} else if (constant) {
			from[d] = index_sub(&n.b, n.at[d], index_dim(&n.b, p.before[d]));
			inside = pred_and(&n.b, inside, index_inside(&n.b, from[d], size));
		} else {
			from[d] = pad_position(&n.b, mode, n.at[d], p.before[d], size);
		}
	}
	Value *other = inside ? build_scalar_f(&n.b, x->type->dtype, op_float(op, "pad_value", 0))
	                      : NULL;
	results[0] = nest_close(&n, load_or(&n.b, inside, other, x, from));
	return results[0] != NULL;
}

// ---- several tensors ----------------------------------------------------------------------------

bool define_hook_concat(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *const *parts;
	const Type *out = op->results[0].type;
	int count = op_operand_list(op, 0, &parts), axis = axis_norm(op_int(op, "axis", 0), out->rank);
	Nest n = nest_open(b, out);
	Value *element = count > 1 ? build_scalar_f(&n.b, out->dtype, 0) : NULL;
	const Dim *start = dim_const(c, 0);
	for (int i = 0; i < count; i++) {
		Value *from[MAX_RANK], *here = NULL;
		memcpy(from, n.at, sizeof from);
		Value *first = index_dim(&n.b, start);
		start = dim_add(c, start, parts[i]->type->dims[axis]);
		from[axis] = index_sub(&n.b, n.at[axis], first);
		if (i)
			here = index_less(&n.b, first, index_plus(&n.b, n.at[axis], 1));
		if (i + 1 < count)
			here = pred_and(&n.b, here, index_less(&n.b, n.at[axis], index_dim(&n.b, start)));
		DType have = parts[i]->type->dtype;
		Value *other = here ? scalar_cast(&n.b, element, have) : NULL;
		element = scalar_cast(&n.b, load_or(&n.b, here, other, parts[i], from), out->dtype);
	}
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}

bool define_hook_stack(Builder *b, Op *op, Value **results)
{
	Value *const *parts;
	const Type *out = op->results[0].type;
	int count = op_operand_list(op, 0, &parts), axis = axis_norm(op_int(op, "axis", 0), out->rank);
	Nest n = nest_open(b, out);
	Value *element = NULL;
	for (int i = 0; i < count; i++) {
		Value *from[MAX_RANK];
		for (int d = 0, k = 0; d < out->rank; d++)
			if (d != axis)
				from[k++] = n.at[d];
		Value *here = i ? index_equal(&n.b, n.at[axis], index_const(&n.b, i)) : NULL;
		element = load_or(&n.b, here, element, parts[i], from);
	}
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}

// The pieces of a result that is a list, made one by one by `piece`.
static bool define_pieces(Builder *b, Op *op, Value **results,
                          Value *(*piece)(Builder *b, Op *op, int i, const Type *type))
{
	const Type *list = op->results[0].type;
	Value **parts = NEW_ARRAY(b->ctx->arena, (size_t)list->nelem + 1, Value *);
	for (int i = 0; i < list->nelem; i++)
		if (!(parts[i] = piece(b, op, i, list->elems[i])))
			return false;
	Op *combine = build_op(b, OP_BUILTIN_COMBINE, list->nelem, parts, 0, NULL);
	results[0] = combine ? op_result(combine, 0) : NULL;
	return results[0] != NULL;
}

static Value *split_piece(Builder *b, Op *op, int i, const Type *type)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *list = op->results[0].type;
	int axis = axis_norm(op_int(op, "axis", 0), type->rank);
	const Dim *start = dim_const(b->ctx, 0);
	for (int k = 0; k < i; k++)
		start = dim_add(b->ctx, start, list->elems[k]->dims[axis]);
	Nest n = nest_open(b, type);
	memcpy(from, n.at, sizeof from);
	from[axis] = index_add(&n.b, n.at[axis], index_dim(&n.b, start));
	return nest_close(&n, load(&n.b, x, from));
}

bool define_hook_split(Builder *b, Op *op, Value **results)
{
	return define_pieces(b, op, results, split_piece);
}

static Value *unstack_piece(Builder *b, Op *op, int i, const Type *type)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int axis = axis_norm(op_int(op, "axis", 0), x->type->rank);
	Nest n = nest_open(b, type);
	for (int d = 0, k = 0; d < x->type->rank; d++)
		from[d] = d == axis ? index_const(&n.b, i) : n.at[k++];
	return nest_close(&n, load(&n.b, x, from));
}

bool define_hook_unstack(Builder *b, Op *op, Value **results)
{
	return define_pieces(b, op, results, unstack_piece);
}

static Value *meshgrid_piece(Builder *b, Op *op, int i, const Type *type)
{
	Value *const *parts;
	op_operand_list(op, 0, &parts);
	Nest n = nest_open(b, type);
	return nest_close(&n, load(&n.b, parts[i], &n.at[i]));
}

bool define_hook_meshgrid(Builder *b, Op *op, Value **results)
{
	return define_pieces(b, op, results, meshgrid_piece);
}
