// unique, unique_consecutive and reindex_graph: types and meaning, as loop nests; the first and the
// last compare all pairs.
//
// Slices along the axis (or elements, when there is none) are compared in dictionary order.
// place[i] is the place of slice i in the result: how many different slices come before it.
// Everything else follows.
#include "ir/search/search.h"

#include <string.h>

enum { OUT, INDICES, INVERSE, COUNTS };

bool infer_hook_unique(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *numel;
	int64_t axes[MAX_RANK];
	int axis = 0;
	if (!x)
		return false;
	int n = op_ints(op, "axis", axes, MAX_RANK);
	if (n > 1 || (n == 1 && !infer_axis(op, axes[0], x->rank, &axis)))
		return op_error(op, "more than one axis");
	const Dim *count = infer_found(op, "n_", "unique", -1);
	DType t = op_dtype(op, "dtype", DT_I64);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[n == 1 ? axis : 0] = count;
	numel = n == 1 ? x->dims[axis] : type_numel(c, x);
	dim_set_bound(c, count, numel);
	return infer_result_shape(op, OUT, x->dtype, n == 1 ? x->rank : 1, shape) &&
	       infer_result_shape(op, INDICES, t, 1, &count) &&
	       infer_result_shape(op, INVERSE, t, 1, &numel) &&
	       infer_result_shape(op, COUNTS, t, 1, &count);
}

// x as a matrix: a row per slice along the axis. The axis changes places with the first one, which
// decides the order in which elements of slices are compared, as in Paddle.
static Value *slices_of(Builder *b, Op *op)
{
	Value *x = op_operand(op, 0);
	const Type *t = x->type;
	const Dim *shape[2] = {NULL, dim_const(b->ctx, 1)};
	int64_t axes[1], perm[MAX_RANK];
	if (op_ints(op, "axis", axes, 1) != 1) {
		shape[0] = type_numel(b->ctx, t);
		return tensor_reshape(b, x, 2, shape);
	}
	int axis = axis_norm(axes[0], t->rank), n = t->rank;
	for (int d = 0; d < n; d++)
		perm[d] = d == 0 ? axis : d == axis ? 0 : d;
	shape[0] = t->dims[axis];
	for (int d = 1; d < n; d++)
		shape[1] = dim_mul(b->ctx, shape[1], t->dims[perm[d]]);
	return tensor_reshape(b, tensor_transpose(b, x, n, perm), 2, shape);
}

// The elements of rows i and j in which they first differ (the first ones when they are equal).
static void first_difference(Builder *b, Value *rows, Value *i, Value *j, Value **x, Value **y)
{
	const Dim *width = rows->type->dims[1];
	Value *column = index_const(b, 0);
	if (!dim_is(width, 1)) {
		Nest r = reduce_open(b, "argmax", DT_I64, 1, &width);
		Value *p = load(&r.b, rows, (Value *const[]){i, r.at[0]}),
			  *q = load(&r.b, rows, (Value *const[]){j, r.at[0]});
		Value *differ = p && q ? build2(&r.b, OP_PD_NOT_EQUAL, p, q, NULL) : NULL;
		column = index_from_data(b, reduce_close(&r, scalar_cast(&r.b, differ, DT_I32)), width,
		                         false);
	}
	*x = load(b, rows, (Value *const[]){i, column});
	*y = load(b, rows, (Value *const[]){j, column});
}

// Whether NaN may stand among single elements.
static bool may_be_nan(const Value *rows)
{
	return dtype_is_float(rows->type->dtype) && dim_is(rows->type->dims[1], 1);
}

// Whether row i, a NaN, is the same as row j all the same. As Paddle's ordered sets have it, the
// first of all is the same as everything, and others are nothing; without order each is a row of
// its own.
static Value *same_nan(Builder *b, Value *rows, Value *i, Value *j, bool sorted)
{
	Value *zero = index_const(b, 0);
	if (!sorted)
		return index_equal(b, i, j);
	Value *first = load(b, rows, (Value *const[]){zero, zero});
	return apply2(b, OP_PD_NOT_EQUAL, first, first);
}

// For every row the position of the first row that is equal to it.
static Value *first_equals(Builder *b, Value *rows, bool sorted)
{
	const Dim *count = rows->type->dims[0];
	Value *x, *y;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &count, 0));
	Nest r = reduce_open(&n.b, "argmax", DT_I64, 1, &count);
	first_difference(&r.b, rows, n.at[0], r.at[0], &x, &y);
	Value *same = apply2(&r.b, OP_PD_EQUAL, x, y);
	if (may_be_nan(rows))
		same = apply2(&r.b, OP_PD_LOGICAL_OR, same, same_nan(&r.b, rows, n.at[0], r.at[0], sorted));
	return nest_close(&n, reduce_close(&r, scalar_cast(&r.b, same, DT_I32)));
}

// How many first rows come before each row: in order, or in the order of the program when not
// sorted.
static Value *places_of(Builder *b, Value *rows, Value *firsts, bool sorted)
{
	const Dim *count = rows->type->dims[0];
	Value *x, *y, *before;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &count, 0));
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &count);
	Value *number = scalar_from_index(&r.b, r.at[0], DT_I64);
	Value *is_first = apply2(&r.b, OP_PD_EQUAL, load(&r.b, firsts, r.at), number);
	if (sorted) {
		first_difference(&r.b, rows, r.at[0], n.at[0], &x, &y);
		before = apply2(&r.b, OP_PD_LESS_THAN, x, y);
	} else {
		before = apply2(&r.b, OP_PD_LESS_THAN, number, load(&r.b, firsts, n.at));
	}
	return nest_close(
		&n, reduce_close(&r, is_first && before ? pred_and(&r.b, is_first, before) : NULL));
}

// Tells the run how many different rows there are.
static bool bind_count(Builder *b, Value *firsts, const Dim *size)
{
	Context *c = b->ctx;
	const Dim *count = firsts->type->dims[0];
	Nest n = nest_open(b, type_tensor(c, DT_I64, 0, NULL, 0));
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &count);
	Value *number = scalar_from_index(&r.b, r.at[0], DT_I64);
	Value *total = nest_close(
		&n, reduce_close(&r, apply2(&r.b, OP_PD_EQUAL, load(&r.b, firsts, r.at), number)));
	const NamedAttr bind = {"dims", attr_dims(c, 1, &size)};
	return total && build_op(b, OP_LOOP_BIND, 1, &total, 1, &bind);
}

// For every place the position of the first row there, or how many rows are there.
static Value *rows_at_places(Builder *b, Value *places, const char *kind, const Type *type)
{
	const Dim *count = places->type->dims[0];
	bool arg = !strncmp(kind, "arg", 3);
	Nest n = nest_open(b, type);
	Nest r = reduce_open(&n.b, kind, DT_I64, 1, &count);
	Value *wanted = scalar_from_index(&r.b, n.at[0], DT_I64);
	Value *here = apply2(&r.b, OP_PD_EQUAL, load(&r.b, places, r.at), wanted);
	return nest_close(&n, reduce_close(&r, arg ? scalar_cast(&r.b, here, DT_I32) : here));
}

// The places, -1 for a row that is not equal to what is there (NaN): it is not counted.
static Value *counted_places(Builder *b, Value *rows, Value *firsts, Value *places)
{
	Nest n = nest_open(b, places->type);
	Value *first = index_from_data(&n.b, load(&n.b, firsts, n.at), rows->type->dims[0], false);
	Value *zero = index_const(&n.b, 0);
	Value *x = load(&n.b, rows, (Value *const[]){n.at[0], zero});
	Value *y = load(&n.b, rows, (Value *const[]){first, zero});
	return nest_close(&n, index_where(&n.b, apply2(&n.b, OP_PD_EQUAL, x, y),
	                                  load(&n.b, places, n.at), build_scalar_f(&n.b, DT_I64, -1)));
}

// The slices of x that were first at each place.
static Value *first_slices(Builder *b, Op *op, Value *indices)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[OUT].type;
	const Dim *numel = type_numel(b->ctx, x->type);
	int64_t axes[1];
	int axis = 0;
	if (op_ints(op, "axis", axes, 1) == 1)
		axis = axis_norm(axes[0], x->type->rank);
	else if (!(x = tensor_reshape(b, x, 1, &numel)))
		return NULL;
	Nest n = nest_open(b, out);
	memcpy(from, n.at, sizeof from);
	from[axis] = index_from_data(&n.b, load(&n.b, indices, &n.at[axis]), x->type->dims[axis],
	                             false);
	return nest_close(&n, load(&n.b, x, from));
}

bool define_hook_unique(Builder *b, Op *op, Value **results)
{
	bool sorted = op_bool(op, "is_sorted", true);
	Value *rows = slices_of(b, op), *firsts = rows ? first_equals(b, rows, sorted) : NULL;
	Value *places = firsts ? places_of(b, rows, firsts, sorted) : NULL, *counted = places;
	if (places && sorted && may_be_nan(rows))
		counted = counted_places(b, rows, firsts, places);
	if (!counted || !bind_count(b, firsts, op->results[COUNTS].type->dims[0]))
		return false;
	results[INDICES] = rows_at_places(b, counted, "argmax", op->results[INDICES].type);
	results[COUNTS] = rows_at_places(b, counted, "sum", op->results[COUNTS].type);
	results[INVERSE] = tensor_cast(b, places, op->results[INVERSE].type->dtype);
	results[OUT] = results[INDICES] ? first_slices(b, op, results[INDICES]) : NULL;
	return results[OUT] && results[COUNTS] && results[INVERSE];
}

// ---- runs of equal elements ---------------------------------------------------------------------

bool infer_hook_unique_consecutive(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *numel;
	int64_t axes[MAX_RANK];
	int axis = 0, n = op_ints(op, "axis", axes, MAX_RANK);
	if (!x)
		return false;
	if (n > 1 || (n == 1 && !infer_axis(op, axes[0], x->rank, &axis)))
		return n > 1 && op_error(op, "more than one axis");
	numel = n == 1 ? x->dims[axis] : type_numel(op->ctx, x);
	const Dim *count = infer_found_size(op, numel);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	shape[n == 1 ? axis : 0] = count;
	DType t = op_dtype(op, "dtype", DT_I64);
	return infer_result_shape(op, 0, x->dtype, n == 1 ? x->rank : 1, shape) &&
	       infer_result_shape(op, 1, t, 1, &numel) && infer_result_shape(op, 2, t, 1, &count);
}

// Whether slice i of the axis differs from the one before.
static Value *begins(Builder *b, Value *x, int axis)
{
	const Type *t = x->type;
	const Dim *extents[MAX_RANK];
	Value *here[MAX_RANK], *before[MAX_RANK];
	int k = 0;
	for (int d = 0; d < t->rank; d++)
		if (d != axis)
			extents[k++] = t->dims[d];
	Nest n = nest_open(b, type_tensor(b->ctx, DT_BOOL, 1, &t->dims[axis], 0));
	Nest r = {.b = n.b};
	if (k)
		r = reduce_open(&n.b, "any", DT_BOOL, k, extents);
	for (int d = 0, i = 0; d < t->rank; d++)
		here[d] = before[d] = d == axis ? n.at[0] : r.at[i++];
	before[axis] = index_max(&r.b, index_plus(&r.b, n.at[0], -1), index_const(&r.b, 0));
	Value *differ = apply2(&r.b, OP_PD_NOT_EQUAL, load(&r.b, x, here), load(&r.b, x, before));
	differ = k ? reduce_close(&r, differ) : differ;
	Value *first = index_equal(&n.b, n.at[0], index_const(&n.b, 0));
	return nest_close(&n, differ ? build2(&n.b, OP_PD_LOGICAL_OR, first, differ, NULL) : NULL);
}

bool define_hook_unique_consecutive(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int64_t axes[1];
	const Type *out = op->results[0].type;
	const Dim *count = op->results[2].type->dims[0];
	int axis = op_ints(op, "axis", axes, 1) == 1 ? axis_norm(axes[0], x->type->rank) : 0;
	if (op_ints(op, "axis", axes, 1) != 1)
		x = tensor_flat(b, x);
	Value *starts = x ? begins(b, x, axis) : NULL;
	Chosen found = select_true(b, starts);
	const Dim *size = x ? x->type->dims[axis] : NULL;
	if (!found.at || !bind_size(b, found.count, count))
		return false;
	Nest n = nest_open(b, out);
	memcpy(from, n.at, sizeof from);
	from[axis] = index_from_data(&n.b, load(&n.b, found.at, &n.at[axis]), size, false);
	results[0] = nest_close(&n, load(&n.b, x, from));
	Value *sums = scan_along(b, tensor_cast(b, starts, DT_I64), "sum", 0, false, false, NULL);
	results[1] = sums ? tensor_cast(b, tensor_sub(b, sums, tensor_number(b, DT_I64, 1)),
	                                op->results[1].type->dtype)
	                  : NULL;
	Nest l = nest_open(b, op->results[2].type);
	Value *next = index_plus(&l.b, l.at[0], 1),
		  *more = index_less(&l.b, next, index_dim(&l.b, count));
	Value *start = scalar_cast(&l.b, load(&l.b, found.at, l.at), DT_I64);
	Value *none = build_scalar_f(&l.b, found.at->type->dtype, 0);
	Value *end = scalar_cast(&l.b, load_or(&l.b, more, none, found.at, &next), DT_I64);
	end = index_where(&l.b, more, end, scalar_from_index(&l.b, index_dim(&l.b, size), DT_I64));
	results[2] = nest_close(&l, tensor_sub(&l.b, end, start));
	return results[0] && results[1] && results[2];
}

// ---- graphs -------------------------------------------------------------------------------------

enum { SRC, DST, NODES };

bool infer_hook_reindex_graph(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 1), *neighbors = x ? infer_rank(op, 1, 1) : NULL,
			   *count = neighbors ? infer_rank(op, 2, 1) : NULL;
	const Dim *same;
	if (!count || !infer_same_dim(op, x->dims[0], count->dims[0], "counts", &same))
		return false;
	const Dim *nodes = infer_found(op, "n_", "nodes", -1);
	dim_set_bound(c, nodes, dim_add(c, x->dims[0], neighbors->dims[0]));
	return infer_result_shape(op, SRC, x->dtype, 1, neighbors->dims) &&
	       infer_result_shape(op, DST, x->dtype, 1, neighbors->dims) &&
	       infer_result_shape(op, NODES, x->dtype, 1, &nodes);
}

// The node of x whose neighbor each is: as many nodes have all their neighbors in front of it.
static Value *nodes_of_neighbors(Builder *b, Value *count, const Type *type)
{
	const Dim *n = count->type->dims[0];
	Value *ends = build1(b, OP_PD_CUMSUM, tensor_cast(b, count, DT_I64), "axis",
	                     attr_int(b->ctx, 0), NULL);
	if (!ends)
		return NULL;
	Nest nest = nest_open(b, type);
	Value *number = scalar_from_index(&nest.b, nest.at[0], DT_I64);
	Nest r = reduce_open(&nest.b, "sum", DT_I64, 1, &n);
	Value *before = apply2(&r.b, OP_PD_LESS_EQUAL, load(&r.b, ends, r.at), number);
	Value *node = index_from_data(&nest.b, reduce_close(&r, before), n, false);
	return nest_close(&nest, scalar_from_index(&nest.b, node, type->dtype));
}

bool define_hook_reindex_graph(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *parts[] = {x, tensor_cast(b, op_operand(op, 1), x->type->dtype)};
	const Type *src = op->results[SRC].type, *nodes = op->results[NODES].type;
	const Dim *n = x->type->dims[0], *shape[] = {dim_add(c, n, src->dims[0]), dim_const(c, 1)};
	Value *both = parts[1] ? tensor_concat(b, 2, parts, 0) : NULL;
	Value *rows = tensor_reshape(b, both, 2, shape),
		  *firsts = rows ? first_equals(b, rows, false) : NULL;
	Value *places = firsts ? places_of(b, rows, firsts, false) : NULL;
	if (!places || !bind_count(b, firsts, nodes->dims[0]))
		return false;
	Value *at = rows_at_places(b, places, "argmax", type_tensor(c, DT_I64, 1, nodes->dims, 0));
	Nest from = nest_open(b, src);
	Value *place = index_add(&from.b, index_dim(&from.b, n), from.at[0]);
	results[SRC] = nest_close(&from,
	                          scalar_cast(&from.b, load(&from.b, places, &place), src->dtype));
	results[DST] = nodes_of_neighbors(b, op_operand(op, 2), op->results[DST].type);
	results[NODES] = at ? tensor_rows(b, both, at) : NULL;
	return results[SRC] && results[DST] && results[NODES];
}
