// The places of a window on images as rows of sequences (im2sequence of ir/ops/sequence.yaml).
#include "ir/sequence/sequence.h"

// The windows of an operation, and how many places they have along the two axes of a whole image.
typedef struct Windows {
	int64_t kernels[2], strides[2], paddings[4], shares[2];
	const Dim *places[2];
	Value *sizes; // [N x 2]: of each image, of which a share counts; NULL: they are whole
} Windows;

static Windows windows_open(Builder *b, const Op *op)
{
	Context *c = b->ctx;
	const Type *x = op_operand(op, 0)->type;
	Windows w = {.sizes = dim_is(x->dims[0], 1) ? NULL : op_operand(op, 1)};
	op_ints(op, "kernels", w.kernels, 2);
	op_ints(op, "strides", w.strides, 2);
	op_ints(op, "paddings", w.paddings, 4);
	op_ints(op, "out_stride", w.shares, 2);
	for (int i = 0; i < 2; i++) {
		const Dim *room = dim_add(c, x->dims[2 + i],
		                          dim_const(c, w.paddings[i] + w.paddings[i + 2] - w.kernels[i]));
		w.places[i] = dim_add(c, dim_div(c, room, dim_const(c, w.strides[i])), dim_const(c, 1));
	}
	return w;
}

static Value *whole(Builder *b, int64_t v)
{
	return build_scalar_f(b, DT_I64, (double)v);
}

// How many places image `image` has along an axis; all of them when there is no other image.
static Value *places_of(Builder *b, const Windows *w, Value *image, int axis)
{
	const Dim *images = w->sizes->type->dims[0];
	Value *at[] = {image, index_const(b, axis)}, *none = whole(b, 0);
	Value *size = scalar_cast(b, load(b, w->sizes, at), DT_I64);
	size = tensor_add(b, apply2(b, OP_PD_MAXIMUM, size, none), whole(b, w->shares[axis] - 1));
	size = tensor_div(b, size, whole(b, w->shares[axis]));
	Value *room = tensor_add(
		b, size, whole(b, w->paddings[axis] + w->paddings[axis + 2] - w->kernels[axis]));
	Value *count = tensor_add(b, tensor_div(b, room, whole(b, w->strides[axis])), whole(b, 1));
	count = apply2(b, OP_PD_MAXIMUM, count, none);
	Value *several = index_less(b, index_const(b, 1), index_dim(b, images));
	Value *all = scalar_from_index(b, index_dim(b, w->places[axis]), DT_I64);
	return index_from_data(b, index_where(b, several, count, all), dim_const(b->ctx, INT32_MAX),
	                       false);
}

static Value *places_of_image(Builder *b, Value *image, void *arg)
{
	return index_mul(b, places_of(b, arg, image, 0), places_of(b, arg, image, 1));
}

// Offsets of the rows of each image.
static Value *offsets_of_images(Builder *b, const Op *op, Windows *w)
{
	if (w->sizes) {
		Value *lod = offsets_of_lengths(b, w->sizes->type->dims[0], places_of_image, w);
		return lod && bind_rows(b, lod, op->results[0].type->dims[0]) ? lod : NULL;
	}
	Nest l = nest_open(b, op->results[1].type);
	Value *rows = index_dim(&l.b, dim_mul(b->ctx, w->places[0], w->places[1]));
	return nest_close(&l, scalar_from_index(&l.b, index_mul(&l.b, l.at[0], rows), DT_I64));
}

// The image of a row, and the place of its window there.
static void place_of_row(Builder *b, const Windows *w, const Type *x, Value *lod, Value *row,
                         Value **place)
{
	if (!w->sizes) {
		const Dim *dims[] = {x->dims[0], w->places[0], w->places[1]};
		index_split(b, row, 3, dims, place);
		return;
	}
	const Dim *most = dim_const(b->ctx, INT32_MAX);
	place[0] = sequence_of_row(b, lod, row);
	Value *local = index_sub(b, row, sequence_start(b, lod, place[0], most));
	Value *wide = index_max(b, places_of(b, w, place[0], 1), index_const(b, 1));
	place[1] = index_div(b, local, wide);
	place[2] = index_mod(b, local, wide);
}

bool define_hook_im2sequence(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *place[3], *part[3], *at[4], *inside = NULL;
	const Type *out = op->results[0].type;
	Windows w = windows_open(b, op);
	const Dim *window[3] = {x->type->dims[1], dim_const(c, w.kernels[0]),
	                        dim_const(c, w.kernels[1])};
	results[1] = offsets_of_images(b, op, &w);
	if (!results[1])
		return false;
	Nest n = nest_open(b, out);
	place_of_row(&n.b, &w, x->type, results[1], n.at[0], place);
	index_split(&n.b, n.at[1], 3, window, part);
	at[0] = place[0];
	at[1] = part[0];
	for (int i = 0; i < 2; i++) {
		at[2 + i] = index_plus(
			&n.b, index_add(&n.b, index_times(&n.b, place[i + 1], w.strides[i]), part[i + 1]),
			-w.paddings[i]);
		inside = pred_and(&n.b, inside, index_inside(&n.b, at[2 + i], x->type->dims[2 + i]));
	}
	results[0] = nest_close(&n, load_or(&n.b, inside, build_scalar_f(&n.b, out->dtype, 0), x, at));
	return results[0] != NULL;
}
