// What the operators that change elements at positions from data mean (ir/ops/tensor.yaml). In
// sequence (kernel.scatter), or, where the target has no such kernel, seen from the element that
// receives.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/infer/infer.h"
#include "ir/build/nest.h"

#include <string.h>

// x with `rows` leading axes as one and the others as one.
static Value *as_rows(Builder *b, Value *x, int rows)
{
	Context *c = b->ctx;
	const Type *t = x->type;
	const Dim *dims[] = {dim_const(c, 1), dim_const(c, 1)};
	for (int d = 0; d < t->rank; d++)
		dims[d >= rows] = dim_mul(c, dims[d >= rows], t->dims[d]);
	return tensor_reshape(b, x, 2, dims);
}

// x with the rows that `at` (one linear position over its first `rows` axes each) names changed by
// `updates`.
static Value *change_rows(Builder *b, Value *x, int rows, Value *at, Value *updates,
                          int updates_rows, const char *how)
{
	const Dim *count = at ? type_numel(b->ctx, at->type) : NULL;
	if (!at || !updates)
		return NULL;
	Value *changed = scatter_rows(b, as_rows(b, x, rows), tensor_reshape(b, at, 1, &count),
	                              as_rows(b, updates, updates_rows), how);
	return tensor_reshape(b, changed, x->type->rank, x->type->dims);
}

// ---- seen from the element that receives --------------------------------------------------------

// Whether row `k` of the indices names row `row`.
static Value *scatter_hits(Builder *b, Value *index, Value *k, Value *row, const Dim *rows)
{
	Value *at[MAX_RANK] = {k};
	for (int d = 1; d < index->type->rank; d++)
		at[d] = index_const(b, 0);
	return index_equal(b, index_from_data(b, load(b, index, at), rows, false), row);
}

// The element of updates that the last matching row gives; x's where none matches.
static Value *scatter_last(Nest *n, Value *x, Value *index, Value *updates)
{
	const Dim *rows = x->type->dims[0], *count = index->type->rank ? index->type->dims[0] : NULL;
	Nest r = reduce_open(&n->b, "max", DT_I64, 1, &count);
	Value *hit = scatter_hits(&r.b, index, r.at[0], n->at[0], rows);
	Value *number = scalar_from_index(&r.b, index_plus(&r.b, r.at[0], 1), DT_I64);
	Value *last = reduce_close(&r, index_where(&r.b, hit, number, build_scalar_f(&r.b, DT_I64, 0)));
	// 0 means that none matched, so that the reduction never has to be negative.
	Value *any = last ? build2(&n->b, OP_PD_GREATER_THAN, last, build_scalar_f(&n->b, DT_I64, 0),
	                           NULL)
	                  : NULL;
	const Dim *beyond = dim_add(n->b.ctx, count, dim_const(n->b.ctx, 1));
	Value *from[MAX_RANK];
	memcpy(from, n->at, sizeof from);
	from[0] = index_plus(&n->b, index_from_data(&n->b, last, beyond, false), -1);
	return load_or(&n->b, any, load(&n->b, x, n->at), updates, from);
}

// The sum of all matching rows; x's element where none matches.
static Value *scatter_sum(Nest *n, Value *x, Value *index, Value *updates)
{
	const Dim *rows = x->type->dims[0], *count = index->type->dims[0];
	Nest any = reduce_open(&n->b, "any", DT_BOOL, 1, &count);
	Value *matched = reduce_close(&any, scatter_hits(&any.b, index, any.at[0], n->at[0], rows));
	Nest r = reduce_open(&n->b, "sum", x->type->dtype, 1, &count);
	Value *from[MAX_RANK];
	memcpy(from, n->at, sizeof from);
	from[0] = r.at[0];
	Value *hit = scatter_hits(&r.b, index, r.at[0], n->at[0], rows);
	Value *zero = build_scalar_f(&r.b, x->type->dtype, 0);
	Value *sum = reduce_close(&r, load_or(&r.b, hit, zero, updates, from));
	return index_where(&n->b, matched, sum, load(&n->b, x, n->at));
}

// ---- scatter ------------------------------------------------------------------------------------

Value *scatter_positions(Builder *b, Value *index, const Dim *rows, bool wrap)
{
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, index->type->dims, 0));
	Value *at[] = {n.at[0], index_const(&n.b, 0)};
	return nest_close(&n, index_from_data(&n.b, load(&n.b, index, at), rows, wrap));
}

bool define_hook_scatter(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *index = op_operand(op, 1), *updates = op_operand(op, 2);
	if (index->type->rank == 0) {
		const Dim *one = dim_const(b->ctx, 1);
		index = tensor_reshape(b, index, 1, &one);
		const Dim *dims[MAX_RANK] = {one};
		for (int d = 1; d < x->type->rank; d++)
			dims[d] = x->type->dims[d];
		updates = tensor_reshape(b, updates, x->type->rank, dims);
		if (!index || !updates)
			return false;
	}
	bool overwrite = op_bool(op, "overwrite", true), wrap = op_bool(op, "wrap", false);
	if (!b->ctx->nests_only || wrap)
		index = scatter_positions(b, index, x->type->dims[0], wrap);
	if (!b->ctx->nests_only) {
		results[0] = change_rows(b, x, 1, index, updates, 1, overwrite ? "replace" : "sum");
		return results[0] != NULL;
	}
	if (!index)
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *element = overwrite ? scatter_last(&n, x, index, updates)
	                           : scatter_sum(&n, x, index, updates);
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}

bool define_hook_scatter_nd_add(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *index = op_operand(op, 1), *updates = op_operand(op, 2);
	int rows = index->type->rank - 1, count = (int)index->type->dims[rows]->value;
	if (!b->ctx->nests_only && (dtype_is_int(x->type->dtype) || dtype_is_float(x->type->dtype))) {
		Value *to[MAX_RANK];
		Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, rows, index->type->dims, 0));
		index_row(&n.b, op, n.at, count, to);
		Value *at = nest_close(&n, index_linear(&n.b, count, x->type->dims, to));
		results[0] = change_rows(b, x, count, at, updates, rows, "add");
		return results[0] != NULL;
	}
	Nest n = nest_open(b, op->results[0].type);
	Nest r = reduce_open(&n.b, "sum", x->type->dtype, rows, index->type->dims);
	Value *from[MAX_RANK], *place[MAX_RANK], *hit = NULL;
	index_row(&r.b, op, r.at, count, from);
	for (int k = 0; k < count; k++)
		hit = pred_and(&r.b, hit, index_equal(&r.b, from[k], n.at[k]));
	for (int d = 0; d < updates->type->rank; d++)
		place[d] = d < rows ? r.at[d] : n.at[count + d - rows];
	Value *zero = build_scalar_f(&r.b, x->type->dtype, 0);
	Value *sum = reduce_close(&r, load_or(&r.b, hit, zero, updates, place));
	Value *old = load(&n.b, x, n.at);
	results[0] = nest_close(&n, old && sum ? build2(&n.b, OP_PD_ADD, old, sum, NULL) : NULL);
	return results[0] != NULL;
}

// ---- in sequence --------------------------------------------------------------------------------

// An index that counts positions of true elements of a mask instead of naming positions: what it
// stands for.
typedef struct Places {
	Value *index;     // whole numbers, or the positions of true elements
	const Type *mask; // NULL: whole numbers
} Places;

// Where index_put puts: for each place of the indices (broadcast to `dims`) the linear position
// over the axes that they cover.
static Value *put_places(Builder *b, const Op *op, int n, const Places *p, int rank,
                         const Dim *const *dims)
{
	const Type *x = op_operand(op, 0)->type;
	Value *to[MAX_RANK];
	Nest m = nest_open(b, type_tensor(b->ctx, DT_I64, rank, dims, 0));
	int axis = 0;
	for (int i = 0; i < n; i++) {
		const Type *t = p[i].index->type;
		Value *at[MAX_RANK];
		int count = p[i].mask ? 1 : t->rank; // axes of this index, aligned at the last
		for (int d = 0; d < count; d++)
			at[d] = !p[i].mask && dim_is(t->dims[d], 1) ? index_const(&m.b, 0)
			                                            : m.at[rank - count + d];
		Value *v = load(&m.b, p[i].index, at);
		if (p[i].mask) {
			index_split(&m.b, index_from_data(&m.b, v, t->dims[0], false), p[i].mask->rank,
			            p[i].mask->dims, to + axis);
			axis += p[i].mask->rank;
		} else {
			to[axis] = index_from_data(&m.b, v, x->dims[axis], true);
			axis++;
		}
	}
	return nest_close(&m, index_linear(&m.b, axis, x->dims, to));
}

// Finds what a mask says; binds its number to `found`.
static bool places_of_mask(Builder *b, Value *mask, const Dim *found, Places *p)
{
	Chosen r = select_true(b, mask);
	*p = (Places){r.at, mask->type};
	return r.at && bind_size(b, r.count, found);
}

// Brings whole numbers to the sizes that all indices have together, which end at `end`: a run may
// find 1 or that. What surely is 1 stays.
static bool places_spread(Builder *b, Places *p, const Dim *const *end)
{
	const Type *t = p->index->type;
	const Dim *dims[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		dims[d] = dim_is(t->dims[d], 1) ? t->dims[d] : end[d - t->rank];
	p->index = tensor_spread(b, p->index, t->rank, dims);
	return p->index != NULL;
}

bool define_hook_index_put(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *const * indices;
	int n = op_operand_list(op, 1, &indices), rank = 0, covered = 0, k = 0;
	const Dim *dims[2 * MAX_RANK];
	Places p[MAX_RANK];
	for (int i = 0; i < n; i++) {
		const Type *t = indices[i]->type;
		bool mask = t->dtype == DT_BOOL;
		p[i] = (Places){indices[i], NULL};
		covered += mask ? t->rank : 1;
		if (mask && !places_of_mask(b, indices[i], index_put_found(op, i), &p[i]))
			return false;
		if (!index_put_spread(op, i, t, &rank, dims))
			return false;
	}
	for (int i = 0; i < n; i++)
		if (!p[i].mask && !places_spread(b, &p[i], dims + rank))
			return false;
	Value *at = put_places(b, op, n, p, rank, dims);
	for (int d = covered; d < x->type->rank; d++)
		dims[rank + k++] = x->type->dims[d];
	Value *updates = tensor_spread(b, op_operand(op, 2), rank + k, dims);
	results[0] = change_rows(b, x, covered, at, updates, rank,
	                         op_bool(op, "accumulate", false) ? "add" : "replace");
	return results[0] != NULL;
}

// Elements of x (as rows of one) that `at` names and updates become what `reduce` says.
static Value *reduced_at(Builder *b, Value *x, Value *at, Value *updates, PutKind reduce,
                         bool include_self)
{
	DType t = x->type->dtype;
	if (reduce == PUT_ASSIGN)
		return scatter_rows(b, x, at, updates, "replace");
	if (reduce == PUT_ADD)
		return scatter_rows(b, x, at, updates, include_self ? "add" : "sum");
	if (reduce == PUT_MEAN) {
		Value *sum = scatter_rows(b, x, at, updates, include_self ? "add" : "sum");
		Value *count = build_full(b, type_like(b->ctx, x->type, t), include_self);
		count = scatter_rows(b, count, at, build_full(b, updates->type, 1), "add");
		return tensor_div(b, sum, apply2(b, OP_PD_MAXIMUM, count, build_full(b, x->type, 1)));
	}
	bool max = reduce == PUT_AMAX, least = reduce == PUT_AMIN;
	if (!include_self) // the largest of an update and itself is the update
		x = scatter_rows(b, x, at, max || least ? updates : build_full(b, updates->type, 1),
		                 "replace");
	return scatter_rows(b, x, at, updates, max ? "max" : least ? "min" : "multiply");
}

bool define_hook_put_along_axis(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *index = op_operand(op, 1), *to[MAX_RANK];
	int axis = axis_norm(op_int(op, "axis", 0), x->type->rank), rank = x->type->rank;
	Nest n = nest_open(b, type_like(b->ctx, index->type, DT_I64));
	memcpy(to, n.at, sizeof to);
	to[axis] = index_from_data(&n.b, load(&n.b, index, n.at), x->type->dims[axis], true);
	Value *at = nest_close(&n, index_linear(&n.b, rank, x->type->dims, to));
	Value *updates = op_operand(op, 2);
	for (int d = 0; d < rank && updates && updates->type->rank == rank; d++) {
		const Dim *used = put_along_used(index->type, updates->type, d);
		if (used != updates->type->dims[d])
			updates = tensor_cut(b, updates, d, 0, used->value);
	}
	updates = updates ? tensor_spread(b, updates, rank, index->type->dims) : NULL;
	const Dim *count = type_numel(b->ctx, index->type);
	if (!at || !updates)
		return false;
	Value *changed = reduced_at(b, as_rows(b, x, rank), tensor_reshape(b, at, 1, &count),
	                            as_rows(b, updates, rank), (PutKind)op_enum(op, "reduce"),
	                            op_bool(op, "include_self", true));
	results[0] = tensor_reshape(b, changed, rank, x->type->dims);
	return results[0] != NULL;
}

// x with its axis in front of the others, or back there.
static Value *axis_first(Builder *b, Value *x, int axis, bool back)
{
	int64_t perm[MAX_RANK];
	for (int d = 0; x && d < x->type->rank; d++)
		perm[d] = back ? (d == axis  ? 0
		                  : d < axis ? d + 1
		                             : d)
		               : (d == 0      ? axis
		                  : d <= axis ? d - 1
		                              : d);
	return axis ? tensor_transpose(b, x, x ? x->type->rank : 0, perm) : x;
}

bool define_hook_index_add(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *index = op_operand(op, 1);
	int axis = axis_norm(op_int(op, "axis", 0), x->type->rank);
	Nest n = nest_open(b, type_like(b->ctx, index->type, DT_I64));
	Value *at = nest_close(
		&n, index_from_data(&n.b, load(&n.b, index, n.at), x->type->dims[axis], true));
	Value *updates = axis_first(b, op_operand(op, 2), axis, false),
		  *first = axis_first(b, x, axis, false);
	Value *changed = first && updates ? change_rows(b, first, 1, at, updates, 1, "add") : NULL;
	results[0] = axis_first(b, changed, axis, true);
	return results[0] != NULL;
}
