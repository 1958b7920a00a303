// The rules of kernels (docs/internals.md, sections 3 and 4): their regions, and what each takes.
// Verify hooks of the operator table, called by ir_verify on an operation whose operands,
// attributes and number of regions are already known to be right.
#include "ir/infer/attention.h"
#include "ir/verify/rules.h"

#include <string.h>

// `input` gets the position and gives an element to start from; `epilogue` gets what the template
// computed and the position, and gives the element of the result.
static bool kernel_region(const Op *op, int region)
{
	const Op *yield = region_yield(op, region);
	const Type *result = op->results[0].type;
	bool epilogue = !strcmp(op->info->region_names[region], "epilogue");
	if (!yield || !region_takes_positions(op, region, epilogue, result->rank))
		return false;
	const Block *b = yield->block;
	if (epilogue && b->args[0]->type->kind != TY_SCALAR)
		return verify_fail(op, "argument 0 of its epilogue must be a scalar, not %s",
		                   type_text(op->ctx, b->args[0]->type));
	const Type *want = epilogue ? type_scalar(op->ctx, result->dtype) : NULL;
	return region_gives(yield, 1, &want);
}

bool verify_hook_kernel(Op *op)
{
	const Type *result = op->results[0].type;
	if (result->kind != TY_TENSOR)
		return verify_fail(op, "the result must be a tensor, not %s", type_text(op->ctx, result));
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (v && v->type->kind != TY_TENSOR)
			return verify_fail(op, "%s must be a tensor, not %s", operand_text(op, i),
			                   type_text(op->ctx, v->type));
	}
	for (int i = 0; i < op->nregion; i++) {
		if (!kernel_region(op, i))
			return false;
	}
	return share_is_sound(op) && call_is_sound(op);
}

bool verify_hook_kernel_rows(Op *op)
{
	return verify_hook_kernel(op) && rows_form_is_sound(op);
}

// The last size of a blocked image; 0: it is not known.
static int64_t block_of(const Type *t)
{
	const Dim *b = t->dims[t->rank - 1];
	return dim_is_const(b) ? b->value : 0;
}

// Whether `t` has `channels` channels of images as those of `out`, in blocks of its own; `first`:
// and as many before them, else no blocks but theirs.
static bool image_joins(const Type *t, const Type *out, const int64_t *first, int64_t channels)
{
	if (t->rank != out->rank || t->dtype != out->dtype || block_of(t) < 1 || channels < 1 ||
	    (first && *first < 0) || !dim_is_const(t->dims[1]))
		return false;
	const int64_t b = block_of(t), blocks = ((first ? *first : 0) + channels + b - 1) / b;
	bool same = first ? t->dims[1]->value >= blocks : t->dims[1]->value == blocks;
	for (int d = 0; d < out->rank - 1 && same; d++)
		same = d == 1 || t->dims[d] == out->dims[d];
	return same;
}

bool verify_hook_kernel_join_blocks(Op *op)
{
	const Attr *channels = op_attr(op, "channels"), *from = op_attr(op, "from");
	const Type *out = op->results[0].type;
	int64_t all = 0;
	if (!verify_hook_kernel(op))
		return false;
	if (channels->n != op->noperand || (from && from->n != op->noperand) || out->rank < 3 ||
	    block_of(out) < 1)
		return verify_fail(op, "channels must be given for each operand");
	const int64_t b = block_of(out);
	for (int i = 0; i < op->noperand; all += channels->ints[i++])
		if (!image_joins(op_operand(op, i)->type, out, from ? &from->ints[i] : NULL,
		                 channels->ints[i]))
			return verify_fail(op, "%s is not of the result's images", operand_text(op, i));
	if (!dim_is(out->dims[1], (all + b - 1) / b))
		return verify_fail(op, "the result has not the blocks of all channels");
	return true;
}

// Whether batch dims of an operand are those of the result, or 1, or absent.
static bool batch_fits(const Type *t, const Type *out)
{
	for (int i = 3; i <= t->rank; i++)
		if (i > out->rank ||
		    (t->dims[t->rank - i] != out->dims[out->rank - i] && !dim_is(t->dims[t->rank - i], 1)))
			return false;
	return true;
}

bool verify_hook_kernel_matmul(Op *op)
{
	if (!verify_hook_kernel(op))
		return false;
	const Type *a = op_operand(op, 0)->type, *b = op_operand(op, 1)->type,
			   *out = op->results[0].type;
	const int ta = op_bool(op, "transpose_a", false), tb = op_bool(op, "transpose_b", false);
	const int64_t split = op_int(op, "split", 1);
	if (a->rank < 2 || b->rank < 2 || out->rank < 2 + (split > 1) ||
	    (split > 1 && !dim_is(out->dims[0], split)) || split < 1)
		return verify_fail(op, "operands of rank %d and %d", a->rank, b->rank);
	const bool fits = dims_may_equal(a->dims[a->rank - 1 - ta], b->dims[b->rank - 2 + tb]) &&
	                  a->dtype == b->dtype &&
	                  a->dims[a->rank - 2 + ta] == out->dims[out->rank - 2] &&
	                  b->dims[b->rank - 1 - tb] == out->dims[out->rank - 1] && batch_fits(a, out) &&
	                  batch_fits(b, out);
	return fits || verify_fail(op, "%s and %s do not give %s", type_text(op->ctx, a),
	                           type_text(op->ctx, b), type_text(op->ctx, out));
}

// The result's axes are those of [batch.. x rows x columns] in some order, columns last.
static bool attention_order(const Op *op)
{
	const Attr *perm = op_attr(op, "perm");
	const int rank = op->results[0].type->rank;
	unsigned seen = 0;
	if (op->results[0].type->kind != TY_TENSOR || (perm && perm->n && perm->n != rank))
		return false;
	for (int i = 0; i < rank; i++) {
		const int axis = attention_axis(op, i);
		if (axis < 0 || axis >= rank || seen >> axis & 1)
			return false;
		seen |= 1u << axis;
	}
	return rank >= 2 && attention_axis(op, rank - 1) == rank - 1;
}

// A split kernel has parts in front of both results, and no order of its own.
static bool attention_parts(const Op *op)
{
	const Type *t = op->results[0].type, *sums = op->nresult == 2 ? op->results[1].type : NULL;
	if (!attention_is_split(op))
		return op->nresult == 1;
	if (!sums || t->rank < 3 || !dim_is(t->dims[0], op_int(op, "split", 1)) || t->dtype != DT_F32 ||
	    op_attr(op, "perm") || sums->kind != TY_TENSOR || sums->dtype != DT_F32 ||
	    sums->rank != t->rank - 1)
		return false;
	return !memcmp(sums->dims, t->dims, sizeof *t->dims * (size_t)sums->rank);
}

bool verify_hook_kernel_attention(Op *op)
{
	if (op->nresult < 1 || !attention_order(op))
		return verify_fail(
			op,
			"perm must order the axes of the result, a tensor, and leave the last in its place");
	const Type *result = op->results[0].type, *f32 = type_scalar(op->ctx, DT_F32);
	if (!attention_parts(op))
		return verify_fail(op, "its results must be one tensor or, of a split kernel, two of f32 "
		                       "that begin with the parts");
	if (op_int(op, "depth", 0) < 1)
		return verify_fail(op, "depth must be at least 1");
	for (int i = 0; i < op->nregion; i++) {
		const Op *yield = region_yield(op, i);
		const bool sum = i == ATTENTION_SCORE || i == ATTENTION_EPILOGUE;
		if (!yield ||
		    !region_takes_positions(
				op, i, sum, result->rank - (attention_is_split(op) && i != ATTENTION_EPILOGUE)))
			return false;
		if (sum && yield->block->args[0]->type != f32)
			return verify_fail(op, "argument 0 of its %s must be f32", op->info->region_names[i]);
		const Type *want = i == ATTENTION_EPILOGUE ? type_scalar(op->ctx, result->dtype) : f32;
		if (!region_gives(yield, 1, &want))
			return false;
	}
	return true;
}

// Result i is a tensor of whole numbers of this shape.
static bool chosen(Op *op, int i, int rank, const Dim *const *dims)
{
	const Type *t = op->results[i].type;
	bool same = t->kind == TY_TENSOR && t->rank == rank &&
	            (t->dtype == DT_I32 || t->dtype == DT_I64);
	for (int d = 0; same && d < rank; d++)
		same = t->dims[d] == dims[d];
	return same ||
	       verify_fail(op, "result %d must be positions or numbers of the right sizes, not %s", i,
	                   type_text(op->ctx, t));
}

bool verify_hook_kernel_sort(Op *op)
{
	const Type *x = op_operand(op, 0)->type, *order = op->results[0].type;
	const Dim *dims[MAX_RANK];
	if (!verify_hook_kernel(op))
		return false;
	if (x->rank < 1 || dtype_is_complex(x->dtype))
		return verify_fail(op, "its operand must have an axis to sort along, not %s",
		                   type_text(op->ctx, x));
	for (int d = 0; d < x->rank; d++)
		dims[d] = d + 1 == x->rank && order->rank == x->rank ? order->dims[d] : x->dims[d];
	return chosen(op, 0, x->rank, dims) && chosen(op, 1, x->rank - 1, dims);
}

bool verify_hook_kernel_nms(Op *op)
{
	if (!verify_hook_kernel(op))
		return false;
	const Type *boxes = op_operand(op, 0)->type, *order = op_operand(op, 1)->type,
			   *count = op_operand(op, 2)->type;
	bool fits = order->rank >= 1 && boxes->rank == order->rank + 1 &&
	            dim_is(boxes->dims[order->rank], 4) && count->rank == order->rank - 1 &&
	            order->dtype == op->results[0].type->dtype;
	for (int d = 0; fits && d + 1 < order->rank; d++)
		fits = (dim_is(boxes->dims[d], 1) || boxes->dims[d] == order->dims[d]) &&
		       count->dims[d] == order->dims[d];
	if (!fits || !dtype_is_int(order->dtype) || !dtype_is_int(count->dtype))
		return verify_fail(op, "its operands do not go together");
	return chosen(op, 0, order->rank, order->dims) && chosen(op, 1, count->rank, count->dims);
}

bool verify_hook_kernel_compact(Op *op)
{
	if (!verify_hook_kernel(op))
		return false;
	const Type *mask = op_operand(op, 0)->type;
	const Dim *numel = mask->dtype == DT_BOOL ? type_numel(op->ctx, mask) : NULL;
	return numel ? chosen(op, 0, 1, &numel) && chosen(op, 1, 0, NULL)
	             : verify_fail(op, "its mask must be of bools");
}

bool verify_hook_kernel_scan(Op *op)
{
	if (!verify_hook_kernel(op))
		return false;
	const Type *x = op_operand(op, 0)->type;
	const ScanKind kind = (ScanKind)op_enum(op, "kind");
	bool order = kind == SCAN_MAX || kind == SCAN_MIN;
	int64_t axis = op_int(op, "axis", -1);
	if (axis < 0 || axis >= x->rank || op->results[0].type != x || op->nresult > 1 + order)
		return verify_fail(op, "its axis or results do not go with %s", type_text(op->ctx, x));
	if (dtype_is_complex(x->dtype) && kind != SCAN_SUM && kind != SCAN_PROD)
		return verify_fail(op, "complex numbers have no order");
	return op->nresult < 2 || chosen(op, 1, x->rank, x->dims);
}

bool verify_hook_kernel_scatter(Op *op)
{
	if (!verify_hook_kernel(op))
		return false;
	const Type *x = op_operand(op, 0)->type, *at = op_operand(op, 1)->type,
			   *updates = op_operand(op, 2)->type;
	bool fits = x->rank == 2 && at->rank == 1 && updates->rank == 2 && dtype_is_int(at->dtype);
	fits = fits && dims_may_equal(updates->dims[0], at->dims[0]) &&
	       dims_may_equal(updates->dims[1], x->dims[1]) && updates->dtype == x->dtype;
	return (fits && op->results[0].type == x) ||
	       verify_fail(op, "its operands and its result do not go together");
}
