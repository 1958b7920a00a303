// Types of the operators on sequences (ir/ops/sequence.yaml).
#include "ir/sequence/sequence.h"

#include <string.h>

const Dim *sequence_count(Context *c, const Value *lod)
{
	return dim_sub(c, lod->type->dims[0], dim_const(c, 1));
}

// ---- what they share ----------------------------------------------------------------------------

// Operand i holds rows; its type, or NULL after a diagnostic.
static const Type *rows_type(const Op *op, int i)
{
	const Type *t = infer_tensor(op, i);
	if (t && !t->rank) {
		op_error(op, "operand '%s' has no rows", op->info->operands[i].name);
		return NULL;
	}
	return t;
}

// Operand i, `<x>_lod`, is a vector of offsets.
static bool check_offsets(const Op *op, int i)
{
	const Type *t = infer_rank(op, i, 1);
	if (t && dim_is(t->dims[0], 0))
		return op_error(op, "operand '%s' must hold at least one offset",
		                op->info->operands[i].name);
	return t != NULL;
}

bool infer_hook_sequence_pool(Op *op)
{
	const Type *x = rows_type(op, 0);
	const Dim *shape[MAX_RANK];
	if (!x || !check_offsets(op, 1))
		return false;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[0] = sequence_count(op->ctx, op_operand(op, 1));
	return infer_result_shape(op, 0, x->dtype, x->rank, shape) &&
	       infer_result_shape(op, 1, DT_I32, x->rank, shape);
}

// ---- as many rows as before ---------------------------------------------------------------------

bool infer_hook_row_conv(Op *op)
{
	const Type *x = rows_type(op, 0), *filter = infer_rank(op, 1, 2);
	const Dim *same;
	bool dense = !op_operand(op, 2);
	if (!x || !filter || (!dense && !check_offsets(op, 2)))
		return false;
	if (x->rank != (dense ? 3 : 2))
		return op_error(op, "x of rank %d", x->rank);
	return infer_same_dim(op, x->dims[x->rank - 1], filter->dims[1], "widths of x and filter",
	                      &same) &&
	       infer_result(op, 0, x);
}

bool infer_hook_sequence_conv(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 2), *filter = infer_rank(op, 1, 2);
	const Dim *same;
	int64_t length = op_int(op, "context_length", 0);
	if (!x || !filter || !check_offsets(op, 3))
		return false;
	if (length < 1 || length > 1 << 20 || op_int(op, "context_stride", 1) != 1)
		return op_error(op, "a context of %lld rows, in steps of %lld", (long long)length,
		                (long long)op_int(op, "context_stride", 1));
	const Dim *shape[] = {x->dims[0], filter->dims[1]};
	return infer_same_dim(op, dim_mul(c, x->dims[1], dim_const(c, length)), filter->dims[0],
	                      "rows of the filter and sizes of the context", &same) &&
	       infer_result_shape(op, 0, x->dtype, 2, shape);
}

bool infer_hook_sequence_enumerate(Op *op)
{
	const Type *x = rows_type(op, 0);
	int64_t wide = op_int(op, "win_size", 0);
	if (!x || !check_offsets(op, 1))
		return false;
	if (x->rank > 2 || (x->rank == 2 && !dim_is(x->dims[1], 1)))
		return op_error(op, "rows of more than one id");
	if (wide < 1)
		return op_error(op, "a window of %lld ids", (long long)wide);
	const Dim *shape[] = {x->dims[0], dim_const(op->ctx, wide)};
	return infer_result_shape(op, 0, x->dtype, 2, shape);
}

// ---- other rows ---------------------------------------------------------------------------------

// A result like x with so many rows, and the offsets of `count` sequences of them.
static bool result_rows(Op *op, const Type *x, const Dim *rows, const Dim *count)
{
	const Dim *shape[MAX_RANK], *size = dim_add(op->ctx, count, dim_const(op->ctx, 1));
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[0] = rows;
	return infer_result_shape(op, 0, x->dtype, x->rank, shape) &&
	       infer_result_shape(op, 1, DT_I64, 1, &size);
}

bool infer_hook_sequence_expand(Op *op)
{
	const Type *x = rows_type(op, 0);
	const Attr *total = op_attr(op, "total");
	const Dim *same, *have;
	if (!x || !check_offsets(op, 2) || (op_operand(op, 3) && !check_offsets(op, 3)))
		return false;
	if (!total)
		return op_error(op, "attribute 'total' is missing");
	have = op_operand(op, 3) ? sequence_count(op->ctx, op_operand(op, 3)) : x->dims[0];
	if (!infer_same_dim(op, have, sequence_count(op->ctx, op_operand(op, 2)),
	                    "numbers of sequences", &same))
		return false;
	return result_rows(op, x, op_operand(op, 3) ? infer_found_size(op, NULL) : total->dim,
	                   total->dim);
}

bool infer_hook_sequence_expand_as(Op *op)
{
	const Type *x = rows_type(op, 0), *y = rows_type(op, 1);
	const Dim *shape[MAX_RANK], *same;
	if (!x || !y || !check_offsets(op, 2))
		return false;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[0] = y->dims[0];
	return infer_same_dim(op, x->dims[0], sequence_count(op->ctx, op_operand(op, 2)),
	                      "rows of x and sequences of y", &same) &&
	       infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_sequence_concat(Op *op)
{
	Context *c = op->ctx;
	Value *const *x, *const *lod;
	int n = op_operand_list(op, 0, &x), nlod = op_operand_list(op, 1, &lod);
	const Dim *rows = dim_const(c, 0), *same;
	if (n < 1 || n != nlod)
		return op_error(op, "%d inputs and %d LoDs", n, nlod);
	for (int i = 0; i < n; i++) {
		const Type *t = x[i]->type;
		if (!type_is_tensor(t) || !t->rank || t->rank != x[0]->type->rank ||
		    t->dtype != x[0]->type->dtype || !type_is_tensor(lod[i]->type) ||
		    lod[i]->type->rank != 1)
			return op_error(op, "input %d is of another kind", i);
		if (!infer_same_dims(op, 1, t, x[0]->type, "sizes of rows") ||
		    !infer_same_dim(op, lod[i]->type->dims[0], lod[0]->type->dims[0],
		                    "numbers of sequences", &same))
			return false;
		rows = dim_add(c, rows, t->dims[0]);
	}
	return result_rows(op, x[0]->type, rows, sequence_count(c, lod[0]));
}

bool infer_hook_sequence_reshape(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 2);
	int64_t wide = op_int(op, "new_dim", 0);
	if (!x || !check_offsets(op, 1))
		return false;
	if (wide < 1)
		return op_error(op, "rows of %lld elements", (long long)wide);
	const Dim *shape[] = {infer_divided(c, type_numel(c, x), dim_const(c, wide)),
	                      dim_const(c, wide)};
	return infer_result_shape(op, 0, x->dtype, 2, shape) &&
	       infer_result(op, 1, op_operand(op, 1)->type);
}

bool infer_hook_sequence_pad(Op *op)
{
	const Type *x = rows_type(op, 0), *pad = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK];
	int64_t length = op_int(op, "padded_length", -1);
	if (!x || !pad || !check_offsets(op, 2))
		return false;
	if (x->rank == MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	shape[0] = sequence_count(op->ctx, op_operand(op, 2));
	shape[1] = length < 0 ? infer_found_size(op, NULL) : dim_const(op->ctx, length);
	for (int d = 1; d < x->rank; d++)
		shape[d + 1] = x->dims[d];
	return infer_result_shape(op, 0, x->dtype, x->rank + 1, shape) &&
	       infer_result_shape(op, 1, DT_I64, 1, shape);
}

bool infer_hook_sequence_unpad(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0), *length = infer_tensor(op, 1);
	const Dim *shape[MAX_RANK] = {NULL, dim_const(c, 1)}, *same;
	if (!x || !length)
		return false;
	if (x->rank < 2)
		return op_error(op, "x of rank %d", x->rank);
	if (!infer_same_dim(op, x->dims[0], type_numel(c, length), "numbers of sequences and lengths",
	                    &same))
		return false;
	for (int d = 2; d < x->rank; d++)
		shape[d - 1] = x->dims[d];
	shape[0] = infer_found_size(op, dim_mul(c, x->dims[0], x->dims[1]));
	const Dim *size = dim_add(c, x->dims[0], dim_const(c, 1));
	return infer_result_shape(op, 0, x->dtype, x->rank > 2 ? x->rank - 1 : 2, shape) &&
	       infer_result_shape(op, 1, DT_I64, 1, &size);
}

bool infer_hook_sequence_slice(Op *op)
{
	Context *c = op->ctx;
	const Type *x = rows_type(op, 0);
	const Dim *same;
	if (!x || !infer_tensor(op, 1) || !infer_tensor(op, 2) || !check_offsets(op, 3))
		return false;
	const Dim *count = sequence_count(c, op_operand(op, 3));
	for (int i = 1; i <= 2; i++)
		if (!infer_same_dim(op, type_numel(c, op_operand(op, i)->type), count,
		                    "numbers of sequences and slices", &same))
			return false;
	return result_rows(op, x, infer_found_size(op, x->dims[0]), count);
}

bool infer_hook_sequence_erase(Op *op)
{
	const Type *x = rows_type(op, 0);
	if (!x || !check_offsets(op, 1))
		return false;
	if (x->rank > 2 || (x->rank == 2 && !dim_is(x->dims[1], 1)))
		return op_error(op, "rows of more than one id");
	return result_rows(op, x, infer_found_size(op, x->dims[0]),
	                   sequence_count(op->ctx, op_operand(op, 1)));
}

bool infer_hook_ctc_align(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 2);
	if (!x)
		return false;
	const Dim *one = dim_const(c, 1), *lengths[] = {x->dims[0], one};
	Value *lod = op_operand(op, 2);
	if (!lod) {
		if (!infer_tensor(op, 1))
			return false;
		return infer_result(op, 0, x) && infer_result_shape(op, 1, x->dtype, 2, lengths) &&
		       infer_result_shape(op, 2, DT_I64, 1, &one);
	}
	if (!check_offsets(op, 2))
		return false;
	const Dim *same;
	if (!infer_same_dim(op, x->dims[1], one, "tokens of a row and 1", &same))
		return false;
	const Dim *shape[] = {infer_found_size(op, dim_max(c, x->dims[0], one)), one};
	return infer_result_shape(op, 0, x->dtype, 2, shape) &&
	       infer_result_shape(op, 1, x->dtype, 2, lengths) && infer_result(op, 2, lod->type);
}

// How many rows images have of which operand 1 says how large they are.
static bool rows_of_sizes(const Op *op, const Type *images, const Dim **rows)
{
	const Type *t = infer_rank(op, 1, 2);
	const Dim *same, *two = dim_const(op->ctx, 2);
	int64_t shares[2];
	if (!t || !infer_same_dim(op, t->dims[0], images->dims[0], "images and their sizes", &same) ||
	    !infer_same_dim(op, t->dims[1], two, "sizes of an image and 2", &same))
		return false;
	if (op_ints(op, "out_stride", shares, 2) != 2 || shares[0] < 1 || shares[1] < 1)
		return op_error(op, "sizes need 2 numbers in out_stride, which are positive");
	if (!dim_is(images->dims[0], 1)) // a single image is whole
		*rows = infer_found_size(op, NULL);
	return true;
}

bool infer_hook_im2sequence(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 4);
	int64_t kernels[2], strides[2], paddings[4];
	const Dim *size[2];
	if (!x)
		return false;
	if (op_ints(op, "kernels", kernels, 2) != 2 || op_ints(op, "strides", strides, 2) != 2 ||
	    op_ints(op, "paddings", paddings, 4) != 4)
		return op_error(op, "needs 2 kernels, 2 strides and 4 paddings");
	for (int i = 0; i < 2; i++) {
		if (kernels[i] < 1 || strides[i] < 1 || paddings[i] < 0 || paddings[i + 2] < 0)
			return op_error(op, "a window of %lld in steps of %lld", (long long)kernels[i],
			                (long long)strides[i]);
		const Dim *room = dim_add(c, x->dims[2 + i],
		                          dim_const(c, paddings[i] + paddings[i + 2] - kernels[i]));
		size[i] = dim_add(c, dim_div(c, room, dim_const(c, strides[i])), dim_const(c, 1));
	}
	const Dim *wide = dim_mul(c, x->dims[1], dim_const(c, kernels[0] * kernels[1]));
	const Dim *rows = dim_mul(c, x->dims[0], dim_mul(c, size[0], size[1]));
	if (op_operand(op, 1) && !rows_of_sizes(op, x, &rows))
		return false;
	const Dim *shape[] = {rows, wide}, *offsets = dim_add(c, x->dims[0], dim_const(c, 1));
	return infer_result_shape(op, 0, x->dtype, 2, shape) &&
	       infer_result_shape(op, 1, DT_I64, 1, &offsets);
}

bool infer_hook_lod_offsets(Op *op)
{
	const Type *offsets = infer_tensor(op, 1);
	if (!rows_type(op, 0) || !offsets)
		return false;
	const Dim *n = type_numel(op->ctx, offsets);
	return infer_result_shape(op, 0, DT_I64, 1, &n);
}

bool infer_hook_lod_concat(Op *op)
{
	Value *const *list;
	int n = op_operand_list(op, 0, &list);
	const Dim *count = dim_const(op->ctx, 1);
	for (int i = 0; i < n; i++) {
		if (!type_is_tensor(list[i]->type) || list[i]->type->rank != 1)
			return op_error(op, "offsets %d are no vector", i);
		count = dim_add(op->ctx, count, sequence_count(op->ctx, list[i]));
	}
	return infer_result_shape(op, 0, DT_I64, 1, &count);
}

// ---- step by step -------------------------------------------------------------------------------

// Operand i, when it is there, is a matrix of this width, and of as many rows as there are
// sequences.
static bool check_state(const Op *op, int i, const Dim *wide, const Value *lod)
{
	const Dim *same;
	if (!op_operand(op, i))
		return true;
	const Type *t = infer_rank(op, i, 2);
	return t &&
	       infer_same_dim(op, t->dims[0], sequence_count(op->ctx, lod),
	                      "numbers of sequences and states", &same) &&
	       infer_same_dim(op, t->dims[1], wide, "widths of states", &same);
}

// What lstm and lstmp have in common. `state`: the width of what comes back.
static bool check_lstm(const Op *op, const Dim *hidden, const Dim *state, const Value *lod)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 2), *w = infer_rank(op, 3, 2),
			   *bias = op_operand(op, 4) ? infer_tensor(op, 4) : NULL;
	const Dim *four = dim_mul(c, hidden, dim_const(c, 4)), *same;
	bool peepholes = op_bool(op, "use_peepholes", true) && bias;
	if (!x || !w || (op_operand(op, 4) && !bias))
		return false;
	if (!infer_same_dim(op, x->dims[1], four, "widths of input and gates", &same) ||
	    !infer_same_dim(op, w->dims[0], state, "rows of the weight and widths of the state",
	                    &same) ||
	    !infer_same_dim(op, w->dims[1], four, "widths of weight and gates", &same))
		return false;
	if (bias && !infer_same_dim(op, type_numel(c, bias),
	                            peepholes ? dim_mul(c, hidden, dim_const(c, 7)) : four,
	                            "sizes of the bias", &same))
		return false;
	return check_state(op, 1, state, lod) && check_state(op, 2, hidden, lod);
}

// A fourth of the gates' width.
static const Dim *lstm_hidden(const Op *op)
{
	const Type *w = infer_rank(op, 3, 2);
	if (w && (!dim_is_const(w->dims[1]) || w->dims[1]->value % 4)) {
		op_error(op, "the width of the weight must be a multiple of 4");
		return NULL;
	}
	return w ? dim_const(op->ctx, w->dims[1]->value / 4) : NULL;
}

// Three results from `first` on say how rows stand step by step: where steps begin, which row and
// which sequence is where.
static bool batch_order(Op *op, int first, const Dim *rows, const Value *lod)
{
	Context *c = op->ctx;
	const Dim *starts = infer_found(op, "n_",
	                                arena_printf(c->arena, "%s_starts", op->info->short_name), -1);
	const Dim *count = sequence_count(c, lod);
	dim_set_bound(c, starts, dim_add(c, rows, dim_const(c, 1)));
	return infer_result_shape(op, first, DT_I64, 1, &starts) &&
	       infer_result_shape(op, first + 1, DT_I64, 1, &rows) &&
	       infer_result_shape(op, first + 2, DT_I64, 1, &count);
}

bool infer_hook_sequence_lstm(Op *op)
{
	const Type *x = infer_rank(op, 0, 2);
	const Dim *hidden = x && check_offsets(op, 5) ? lstm_hidden(op) : NULL;
	if (!hidden || !check_lstm(op, hidden, hidden, op_operand(op, 5)))
		return false;
	const Dim *shape[] = {x->dims[0], hidden},
			  *four = dim_mul(op->ctx, hidden, dim_const(op->ctx, 4)),
			  *gates[] = {x->dims[0], four};
	return infer_result_shape(op, 0, x->dtype, 2, shape) &&
	       infer_result_shape(op, 1, x->dtype, 2, shape) &&
	       infer_result_shape(op, 2, x->dtype, 2, gates) &&
	       infer_result_shape(op, 3, x->dtype, 2, shape) &&
	       batch_order(op, 4, x->dims[0], op_operand(op, 5));
}

bool infer_hook_sequence_lstmp(Op *op)
{
	const Type *x = infer_rank(op, 0, 2), *proj = infer_rank(op, 5, 2);
	const Dim *hidden = x && proj && check_offsets(op, 6) ? lstm_hidden(op) : NULL, *same;
	if (!hidden || !check_lstm(op, hidden, proj->dims[1], op_operand(op, 6)) ||
	    !infer_same_dim(op, proj->dims[0], hidden, "rows of the projection", &same))
		return false;
	const Dim *shape[] = {x->dims[0], proj->dims[1]}, *cell[] = {x->dims[0], hidden};
	return infer_result_shape(op, 0, x->dtype, 2, shape) &&
	       infer_result_shape(op, 1, x->dtype, 2, cell);
}

static bool gru_results(Op *op, DType t, const Dim *rows, const Dim *hidden, const Dim *three)
{
	const Dim *shape[] = {rows, hidden}, *gates[] = {rows, three};
	return infer_result_shape(op, 0, t, 2, shape) && infer_result_shape(op, 1, t, 2, gates) &&
	       infer_result_shape(op, 2, t, 2, shape) && infer_result_shape(op, 3, t, 2, shape) &&
	       batch_order(op, 4, rows, op_operand(op, 4));
}

bool infer_hook_sequence_gru(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 2), *w = infer_rank(op, 2, 2),
			   *bias = op_operand(op, 3) ? infer_tensor(op, 3) : NULL;
	const Dim *same;
	if (!x || !w || (op_operand(op, 3) && !bias) || !check_offsets(op, 4))
		return false;
	if (!dim_is_const(w->dims[0]))
		return op_error(op, "the size of the weight must be known");
	const Dim *hidden = w->dims[0], *three = dim_mul(c, hidden, dim_const(c, 3));
	return infer_same_dim(op, x->dims[1], three, "widths of input and gates", &same) &&
	       infer_same_dim(op, w->dims[1], three, "widths of weight and gates", &same) &&
	       (!bias || infer_same_dim(op, type_numel(c, bias), three, "sizes of the bias", &same)) &&
	       check_state(op, 1, hidden, op_operand(op, 4)) &&
	       gru_results(op, x->dtype, x->dims[0], hidden, three);
}

bool infer_hook_edit_distance(Op *op)
{
	Context *c = op->ctx;
	const Type *hyps = rows_type(op, 0), *refs = rows_type(op, 1);
	const Dim *shape[] = {NULL, dim_const(c, 1)}, *same;
	if (!hyps || !refs)
		return false;
	for (int k = 0; k < 2; k++) {
		Value *lod = op_operand(op, 4 + k);
		const Type *t = op_operand(op, k)->type;
		bool dense = !lod;
		if (dense && (!op_operand(op, 2 + k) || t->rank != 2))
			return op_error(op, "operand '%s' has neither LoD nor lengths",
			                op->info->operands[k].name);
		if (!dense && (!check_offsets(op, 4 + k) || t->rank > 2))
			return op_error(op, "operand '%s' must hold one token in a row",
			                op->info->operands[k].name);
		const Dim *count = dense ? t->dims[0] : sequence_count(c, lod);
		if (k && !infer_same_dim(op, shape[0], count, "numbers of sequences", &same))
			return false;
		shape[0] = count;
	}
	return infer_result_shape(op, 0, DT_I64, 1, &shape[1]) &&
	       infer_result_shape(op, 1, DT_F32, 2, shape);
}
