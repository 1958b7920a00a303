// Rearranging images, channels and lists (ir/ops/rearrange.yaml): types and meaning.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

#include <float.h>
#include <string.h>

// ---- channels and pixels ------------------------------------------------------------------------

// Splits axis `axis` of x into parts of `inner` and the rest in front (of `outer` known parts, when
// inner is NULL).
static Value *axis_split(Builder *b, Value *x, int axis, int64_t part, bool part_behind)
{
	Context *c = b->ctx;
	const Dim *dims[MAX_RANK], *p = dim_const(c, part);
	if (!x)
		return NULL;
	const Type *t = x->type;
	for (int d = 0; d <= t->rank; d++)
		dims[d] = t->dims[d > axis ? d - 1 : d];
	const Dim *rest = dim_div(c, t->dims[axis], p);
	dims[axis] = part_behind ? rest : p;
	dims[axis + 1] = part_behind ? p : rest;
	return tensor_reshape(b, x, t->rank + 1, dims);
}

// Makes axes `axis` and axis + 1 one.
static Value *axis_merge(Builder *b, Value *x, int axis)
{
	const Dim *dims[MAX_RANK];
	if (!x)
		return NULL;
	const Type *t = x->type;
	for (int d = 0; d + 1 < t->rank; d++)
		dims[d] = d == axis ? dim_mul(b->ctx, t->dims[d], t->dims[d + 1])
		                    : t->dims[d > axis ? d + 1 : d];
	return tensor_reshape(b, x, t->rank - 1, dims);
}

static bool divides(const Op *op, const Dim *size, int64_t part)
{
	if (part < 1 || (dim_is_const(size) && size->value % part))
		return op_error(op, "an axis does not divide into parts of %lld", (long long)part);
	return true;
}

bool define_hook_pixel_unshuffle(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 4);
	int64_t r = op_int(op, "downscale_factor", 1);
	bool last = channels_last(op);
	int y = last ? 1 : 2;
	if (!t || !divides(op, t->dims[y], r) || !divides(op, t->dims[y + 1], r))
		return false;
	Value *x = axis_split(b, axis_split(b, op_operand(op, 0), y + 1, r, true), y, r, true);
	const int64_t first_perm[] = {0, 1, 3, 5, 2, 4}, last_perm[] = {0, 1, 3, 5, 2, 4};
	// NCHW: n c h r w r; NHWC: n h r w r c. Either way the channel comes before its part of the
	// square.
	x = tensor_transpose(b, x, 6, last ? last_perm : first_perm);
	results[0] = last ? axis_merge(b, axis_merge(b, x, 3), 3)
	                  : axis_merge(b, axis_merge(b, x, 1), 1);
	return results[0] != NULL;
}

bool define_hook_channel_shuffle(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 4);
	int64_t groups = op_int(op, "groups", 1), perm[5] = {0, 1, 2, 3, 4};
	int axis = channels_last(op) ? 3 : 1;
	if (!t || !divides(op, t->dims[axis], groups))
		return false;
	perm[axis] = axis + 1;
	perm[axis + 1] = axis;
	Value *x = axis_split(b, op_operand(op, 0), axis, groups, false);
	results[0] = axis_merge(b, tensor_transpose(b, x, 5, perm), axis);
	return results[0] != NULL;
}

// The first of the largest along the axis: the one that the gradient goes to.
static Value *first_largest(Builder *b, Value *x, int axis, int64_t n)
{
	Value *largest = x ? tensor_cut(b, x, axis, 0, 1) : NULL;
	for (int64_t k = 1; largest && k < n; k++) {
		Value *next = tensor_cut(b, x, axis, k, k + 1);
		Value *stays = next ? apply2(b, OP_PD_GREATER_EQUAL, largest, next) : NULL;
		Value *const operands[] = {stays, largest, next};
		largest = stays ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
	}
	return largest;
}

bool define_hook_maxout(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	int64_t groups = op_int(op, "groups", 1);
	int axis;
	if (!t || !infer_axis(op, op_int(op, "axis", 1), t->rank, &axis) ||
	    !divides(op, t->dims[axis], groups))
		return false;
	Value *x = axis_split(b, op_operand(op, 0), axis, groups, true);
	x = first_largest(b, x, axis + 1, groups);
	// Paddle begins with -FLT_MAX, which is the maximum of -inf.
	if (x && dtype_is_float(x->type->dtype))
		x = apply2(b, OP_PD_MAXIMUM, tensor_number(b, x->type->dtype, -FLT_MAX), x);
	results[0] = axis_merge(b, x, axis);
	return results[0] != NULL;
}

// Whether position c is in the first `share` of the channels, rounded down in f32 as Paddle does.
static Value *in_share(Builder *b, Value *c, const Dim *channels, float share)
{
	if (dim_is_const(channels))
		return index_less(b, c, index_const(b, (int64_t)((float)channels->value * share)));
	Value *n = scalar_from_index(b, index_dim(b, channels), DT_F32);
	n = apply2(b, OP_PD_MULTIPLY, n, build_scalar_f(b, DT_F32, share));
	return apply2(b, OP_PD_LESS_THAN, scalar_from_index(b, c, DT_I64), scalar_cast(b, n, DT_I64));
}

bool define_hook_temporal_shift(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 4);
	int64_t segments = op_int(op, "seg_num", 1);
	int channel = channels_last(op) ? 3 : 1;
	if (!t || !divides(op, t->dims[0], segments))
		return false;
	const Dim *size = t->dims[channel];
	double ratio = op_number(op, "shift_ratio");
	Value *from[MAX_RANK];
	Nest n = nest_open(b, t);
	memcpy(from, n.at, sizeof from);
	Value *in = index_mod(&n.b, n.at[0], index_const(&n.b, segments)), *c = n.at[channel];
	Value *first = in_share(&n.b, c, size, (float)ratio),
		  *second = in_share(&n.b, c, size, 2 * (float)ratio);
	Value *step = index_where(
		&n.b, first, index_const(&n.b, -1),
		index_where(&n.b, second, index_const(&n.b, 1), index_const(&n.b, 0)));
	Value *there = index_inside(&n.b, index_add(&n.b, in, step), dim_const(b->ctx, segments));
	from[0] = index_add(&n.b, n.at[0], step);
	results[0] = nest_close(
		&n, load_or(&n.b, there, build_scalar_f(&n.b, t->dtype, 0), op_operand(op, 0), from));
	return results[0] != NULL;
}

// ---- images -------------------------------------------------------------------------------------

bool infer_hook_affine_grid(Op *op)
{
	const Type *t = infer_rank(op, 0, 3);
	const Dim *sizes[MAX_RANK], *shape[MAX_RANK], *same;
	int n = t ? infer_resolve(op, "output_shape", sizes, MAX_RANK) : -1;
	if (n < 0)
		return false;
	if (n != 4 && n != 5)
		return op_error(op, "the shape of the images needs 4 or 5 sizes");
	if (!infer_same_dim(op, t->dims[1], dim_const(op->ctx, n - 2), "rows of theta", &same) ||
	    !infer_same_dim(op, t->dims[2], dim_const(op->ctx, n - 1), "columns of theta", &same))
		return false;
	shape[0] = t->dims[0];
	for (int d = 2; d < n; d++)
		shape[d - 1] = sizes[d];
	shape[n - 1] = dim_const(op->ctx, n - 2);
	return infer_result_shape(op, 0, t->dtype, n, shape);
}

// Where position `at` of an axis lies between -1 and 1.
static Value *grid_place(Builder *b, Value *at, const Dim *size, bool align, DType t)
{
	Value *one = build_scalar_f(b, t, 1), *two = build_scalar_f(b, t, 2),
		  *x = scalar_from_index(b, at, t);
	Value *count = scalar_from_index(b, index_dim(b, size), t);
	Value *span = align ? apply2(b, OP_PD_MAXIMUM, tensor_sub(b, count, one), one) : count;
	Value *place = tensor_sub(b, tensor_div(b, tensor_mul(b, x, two), span), one);
	return align ? place : tensor_add(b, place, tensor_div(b, one, count));
}

bool define_hook_affine_grid(Builder *b, Op *op, Value **results)
{
	Value *theta = op_operand(op, 0);
	const Type *out = op->results[0].type;
	int axes = out->rank - 2;
	bool align = op_bool(op, "align_corners", true);
	Nest n = nest_open(b, out);
	// The columns of theta are for x, y (z) and 1: the last axis comes first.
	Value *at[] = {n.at[0], n.at[out->rank - 1], index_const(&n.b, axes)},
		  *sum = load(&n.b, theta, at);
	for (int i = axes - 1; i >= 0; i--) {
		at[2] = index_const(&n.b, i);
		Value *place = grid_place(&n.b, n.at[axes - i], out->dims[axes - i], align, out->dtype);
		sum = tensor_add(&n.b, sum, tensor_mul(&n.b, load(&n.b, theta, at), place));
	}
	results[0] = nest_close(&n, sum);
	return results[0] != NULL;
}

typedef struct FoldShape {
	int64_t size[2], kernel[2], stride[2], pad[4], dilation[2], count[2];
} FoldShape;

static bool fold_shape(const Op *op, FoldShape *f)
{
	int n = op_ints(op, "paddings", f->pad, 4);
	if (op_ints(op, "output_sizes", f->size, 2) != 2 ||
	    op_ints(op, "kernel_sizes", f->kernel, 2) != 2 ||
	    op_ints(op, "strides", f->stride, 2) != 2 ||
	    op_ints(op, "dilations", f->dilation, 2) != 2 || (n != 2 && n != 4))
		return op_error(op, "sizes come in pairs");
	if (n == 2) {
		f->pad[2] = f->pad[0];
		f->pad[3] = f->pad[1];
	}
	for (int i = 0; i < 2; i++) {
		if (f->size[i] < 1 || f->kernel[i] < 1 || f->stride[i] < 1 || f->dilation[i] < 1)
			return op_error(op, "a size is not positive");
		f->count[i] = (f->size[i] + f->pad[i] + f->pad[i + 2] -
		               f->dilation[i] * (f->kernel[i] - 1) - 1) /
		                  f->stride[i] +
		              1;
	}
	return true;
}

bool infer_hook_fold(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 3);
	const Dim *same;
	FoldShape f;
	if (!x || !fold_shape(op, &f) || !divides(op, x->dims[1], f.kernel[0] * f.kernel[1]))
		return false;
	const Dim *channels = dim_div(c, x->dims[1], dim_const(c, f.kernel[0] * f.kernel[1]));
	const Dim *shape[] = {x->dims[0], channels, dim_const(c, f.size[0]), dim_const(c, f.size[1])};
	return infer_same_dim(op, x->dims[2], dim_const(c, f.count[0] * f.count[1]),
	                      "patches that there are and that fit", &same) &&
	       infer_result_shape(op, 0, x->dtype, 4, shape);
}

bool define_hook_fold(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *patch[2], *there = NULL;
	FoldShape f;
	if (!fold_shape(op, &f))
		return false;
	const Dim *taps[] = {dim_const(b->ctx, f.kernel[0]), dim_const(b->ctx, f.kernel[1])};
	Nest n = nest_open(b, op->results[0].type);
	Nest s = reduce_open(&n.b, "sum", x->type->dtype, 2, taps);
	Value *channel = n.at[1];
	for (int i = 0; i < 2; i++) {
		channel = index_add(&s.b, index_times(&s.b, channel, f.kernel[i]), s.at[i]);
		Value *at = index_sub(&s.b, index_plus(&s.b, n.at[2 + i], f.pad[i]),
		                      index_times(&s.b, s.at[i], f.dilation[i]));
		there = pred_and(&s.b, there, index_less(&s.b, index_const(&s.b, -1), at));
		at = index_max(&s.b, at, index_const(&s.b, 0));
		Value *stride = index_const(&s.b, f.stride[i]);
		there = pred_and(&s.b, there,
		                 index_equal(&s.b, index_mod(&s.b, at, stride), index_const(&s.b, 0)));
		patch[i] = index_div(&s.b, at, stride);
		there = pred_and(&s.b, there, index_less(&s.b, patch[i], index_const(&s.b, f.count[i])));
	}
	Value *from[] = {n.at[0], channel,
	                 index_add(&s.b, index_times(&s.b, patch[0], f.count[1]), patch[1])};
	Value *v = load_or(&s.b, there, build_scalar_f(&s.b, x->type->dtype, 0), x, from);
	results[0] = nest_close(&n, reduce_close(&s, v));
	return results[0] != NULL;
}

static const Dim *unpooled(Context *c, const Dim *size, int64_t kernel, int64_t stride, int64_t pad)
{
	const Dim *stretched = dim_mul(c, dim_sub(c, size, dim_const(c, 1)), dim_const(c, stride));
	return dim_add(c, stretched, dim_const(c, kernel - 2 * pad));
}

// What the axes of the image were before a pooling by these windows.
static bool unpooled_axes(const Op *op, int axes, const Dim *const *from, const Dim **to)
{
	int64_t kernel[3], stride[3], pad[3];
	if (op_ints(op, "ksize", kernel, 3) != axes || op_ints(op, "strides", stride, 3) != axes ||
	    op_ints(op, "paddings", pad, 3) != axes)
		return op_error(op, "%d sizes of windows are needed", axes);
	for (int i = 0; i < axes; i++)
		to[i] = unpooled(op->ctx, from[i], kernel[i], stride[i], pad[i]);
	return true;
}

bool infer_hook_unpool(Op *op)
{
	const Type *x = infer_tensor(op, 0), *at = x ? infer_tensor(op, 1) : NULL;
	const Dim *shape[MAX_RANK], *sizes[MAX_RANK], *same;
	if (!at)
		return false;
	int axes = x->rank - 2;
	if ((axes != 2 && axes != 3) || at->rank != x->rank || channels_last(op))
		return op_error(op, "images of 2 or 3 axes behind their channels are needed");
	for (int d = 0; d < x->rank; d++)
		if (!infer_same_dim(op, shape[d] = x->dims[d], at->dims[d],
		                    "sizes of x and of the positions", &same))
			return false;
	int n = infer_resolve(op, "output_size", sizes, MAX_RANK);
	if (n < 0)
		return false;
	if (n >= axes && !dim_is(sizes[n - 1], 0))
		memcpy(shape + 2, sizes + n - axes, sizeof *shape * (size_t)axes);
	else if (!unpooled_axes(op, axes, x->dims + 2, shape + 2))
		return false;
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

// An image as a row for each channel, which are `pixels` long.
static Value *unpool_rows(Builder *b, Value *x)
{
	const Type *t = x->type;
	const Dim *rows[] = {dim_mul(b->ctx, t->dims[0], t->dims[1]), dim_const(b->ctx, 1)};
	for (int d = 2; d < t->rank; d++)
		rows[1] = dim_mul(b->ctx, rows[1], t->dims[d]);
	return tensor_reshape(b, x, 2, rows);
}

bool define_hook_unpool(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	Value *const operands[] = {unpool_rows(b, build_full(b, out, 0)),
	                           unpool_rows(b, op_operand(op, 1)),
	                           unpool_rows(b, op_operand(op, 0))};
	Value *v = build(b, OP_PD_PUT_ALONG_AXIS, 3, operands, "axis", attr_int(b->ctx, 1), "reduce",
	                 attr_str(b->ctx, "assign"), NULL);
	results[0] = tensor_reshape(b, v, out->rank, out->dims);
	return results[0] != NULL;
}

bool define_hook_unpool_slope(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_tensor(op, 0), *indices = infer_tensor(op, 1);
	if (!x || !indices || !infer_rank(op, 3, x->rank))
		return false;
	if (x->rank < 3 || indices->rank != x->rank)
		return op_error(op, "an image needs indices of its axes");
	if (!infer_same_dims(op, 0, x, indices, "the image and its indices"))
		return false;
	Value *v = build2(b, OP_PD_TAKE_ALONG_AXIS, unpool_rows(b, op_operand(op, 3)),
	                  unpool_rows(b, op_operand(op, 1)), "axis", attr_int(b->ctx, 1), NULL);
	results[0] = tensor_reshape(b, v, x->rank, x->dims);
	return results[0] != NULL;
}

// ---- lists --------------------------------------------------------------------------------------

bool define_hook_broadcast_tensors(Builder *b, Op *op, Value **results)
{
	Value *const *list;
	int count = op_operand_list(op, 0, &list), rank = 0;
	const Dim *dims[MAX_RANK], *have[MAX_RANK];
	for (int i = 0; i < count; i++) {
		if (!list[i] || !type_is_tensor(list[i]->type))
			return op_error(op, "element %d is no tensor", i);
		memcpy(have, dims, sizeof have);
		if (!infer_broadcast_open(op, rank, have, list[i]->type->rank, list[i]->type->dims, &rank,
		                          dims))
			return false;
	}
	Value **parts = NEW_ARRAY(b->ctx->arena, (size_t)count + 1, Value *);
	for (int i = 0; i < count; i++)
		if (!(parts[i] = build1(b, OP_PD_EXPAND, list[i], "shape", attr_dims(b->ctx, rank, dims),
		                        NULL)))
			return false;
	results[0] = build(b, OP_BUILTIN_COMBINE, count, parts, NULL);
	return results[0] != NULL;
}

bool define_hook_coalesce_tensor(Builder *b, Op *op, Value **results)
{
	Value *const *list;
	const int count = op_operand_list(op, 0, &list);
	Value **same = NEW_ARRAY(b->ctx->arena, (size_t)count + 1, Value *),
		  **flat = NEW_ARRAY(b->ctx->arena, (size_t)count + 1, Value *);
	for (int i = 0; i < count; i++) {
		if (!list[i] || !type_is_tensor(list[i]->type))
			return op_error(op, "element %d is no tensor", i);
		const Dim *all = type_numel(b->ctx, list[i]->type);
		same[i] = build1(b, OP_PD_ASSIGN, list[i], NULL);
		if (!same[i] || !(flat[i] = tensor_reshape(b, list[i], 1, &all)))
			return false;
	}
	results[0] = build(b, OP_BUILTIN_COMBINE, count, same, NULL);
	Value *parts = build(b, OP_BUILTIN_COMBINE, count, flat, NULL);
	results[1] = parts ? build1(b, OP_PD_CONCAT, parts, "axis", attr_int(b->ctx, 0), NULL) : NULL;
	return results[0] && results[1];
}

bool infer_hook_multiplex(Op *op)
{
	Value *const *list;
	int count = op_operand_list(op, 0, &list);
	const Type *index = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK], *same;
	if (!index || count < 1 || !list[0] || !type_is_tensor(list[0]->type) ||
	    list[0]->type->rank < 1)
		return index && op_error(op, "the list has no tensors");
	const Type *first = list[0]->type;
	for (int i = 1; i < count; i++) {
		if (!list[i] || !type_is_tensor(list[i]->type) || list[i]->type->rank != first->rank)
			return op_error(op, "element %d has another rank", i);
		for (int d = 0; d < first->rank; d++)
			if (!infer_same_dim(op, first->dims[d], list[i]->type->dims[d], "sizes of the tensors",
			                    &same))
				return false;
	}
	if (index->rank < 1)
		return op_error(op, "the index has no axes");
	memcpy(shape, first->dims, sizeof shape[0] * (size_t)first->rank);
	shape[0] = index->dims[0];
	return infer_result_shape(op, 0, first->dtype, first->rank, shape);
}

bool define_hook_multiplex(Builder *b, Op *op, Value **results)
{
	Value *const *list, *index = op_operand(op, 1), *at[MAX_RANK];
	int count = op_operand_list(op, 0, &list);
	Nest n = nest_open(b, op->results[0].type);
	for (int d = 0; d < index->type->rank; d++)
		at[d] = d ? index_const(&n.b, 0) : n.at[0];
	Value *which = index_from_data(&n.b, load(&n.b, index, at), dim_const(b->ctx, count), false);
	Value *v = build_scalar_f(&n.b, list[0]->type->dtype, 0);
	for (int i = 0; i < count; i++)
		v = load_or(&n.b, index_equal(&n.b, which, index_const(&n.b, i)), v, list[i], n.at);
	results[0] = nest_close(&n, v);
	return results[0] != NULL;
}

bool define_hook_shard_index(Builder *b, Op *op, Value **results)
{
	int64_t total = op_int(op, "index_num", 0), shards = op_int(op, "nshards", 0),
			shard = op_int(op, "shard_id", 0);
	if (total < 1 || shards < 1 || shard < 0 || shard >= shards)
		return op_error(op, "shard %lld of %lld of %lld numbers", (long long)shard,
		                (long long)shards, (long long)total);
	int64_t size = (total + shards - 1) / shards;
	Nest n = nest_open(b, op->results[0].type);
	Value *at = index_from_data(&n.b, load(&n.b, op_operand(op, 0), n.at), dim_const(b->ctx, total),
	                            false);
	Value *here = index_equal(&n.b, index_div(&n.b, at, index_const(&n.b, size)),
	                          index_const(&n.b, shard));
	Value *place = index_mod(&n.b, at, index_const(&n.b, size));
	Value *v = index_where(&n.b, here, place, index_const(&n.b, op_int(op, "ignore_value", -1)));
	results[0] = nest_close(&n, scalar_from_index(&n.b, v, op->results[0].type->dtype));
	return results[0] != NULL;
}

// partial_concat and partial_sum.
bool define_hook_partial(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *const *list, **parts;
	int count = op_operand_list(op, 0, &list);
	int64_t start = op_int(op, "start_index", 0), length = op_int(op, "length", -1);
	parts = NEW_ARRAY(c->arena, (size_t)count + 1, Value *);
	for (int i = 0; i < count; i++) {
		const Type *t = list[i] ? list[i]->type : NULL;
		if (!t || !type_is_tensor(t) || t->rank != 2)
			return op_error(op, "element %d is no matrix", i);
		const Dim *first = start < 0 ? dim_add(c, t->dims[1], dim_const(c, start))
		                             : dim_const(c, start);
		const Dim *end = length < 0 ? t->dims[1] : dim_add(c, first, dim_const(c, length));
		if (dim_is_const(t->dims[1]) && (first->value < 0 || end->value > t->dims[1]->value))
			return op_error(op, "columns %lld to %lld of %lld", (long long)first->value,
			                (long long)end->value, (long long)t->dims[1]->value);
		parts[i] = tensor_slice(b, list[i], 1, first, end);
		if (!parts[i])
			return false;
	}
	results[0] = op->code == OP_PD_PARTIAL_SUM
	                 ? apply1(b, OP_PD_ADD_N, build(b, OP_BUILTIN_COMBINE, count, parts, NULL))
	                 : tensor_concat(b, count, parts, 1);
	return results[0] != NULL;
}
