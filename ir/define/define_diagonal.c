// Diagonals, triangles, and products by elements of vectors and matrices (ir/ops/matrix.yaml):
// types and meaning.
#include "ir/build/nest.h"
#include "ir/infer/infer.h"

#include <string.h>

// How many positions the diagonal has.
static const Dim *diagonal_size(Context *c, const Dim *rows, const Dim *cols, int64_t offset)
{
	const Dim *shift = dim_const(c, offset < 0 ? -offset : offset), *zero = dim_const(c, 0);
	const Dim *size = offset < 0 ? dim_min(c, dim_sub(c, rows, shift), cols)
	                             : dim_min(c, rows, dim_sub(c, cols, shift));
	return dim_max(c, size, zero);
}

static Value *diagonal_row(Builder *b, Value *at, int64_t offset)
{
	return index_plus(b, at, offset < 0 ? -offset : 0);
}

static Value *diagonal_column(Builder *b, Value *at, int64_t offset)
{
	return index_plus(b, at, offset > 0 ? offset : 0);
}

static bool offset_check(const Op *op)
{
	int64_t offset = op_int(op, "offset", 0);
	return (offset > -INT32_MAX && offset < INT32_MAX) ||
	       op_error(op, "an offset of %lld", (long long)offset);
}

// ---- diagonals ----------------------------------------------------------------------------------

bool infer_hook_diag(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	int64_t offset = op_int(op, "offset", 0);
	if (!x || !offset_check(op))
		return false;
	if (x->rank == 2) {
		const Dim *size = diagonal_size(c, x->dims[0], x->dims[1], offset);
		return infer_result_shape(op, 0, x->dtype, 1, &size);
	}
	if (x->rank > 2)
		return op_error(op, "an operand of %d axes", x->rank);
	const Dim *size = dim_add(c, x->rank ? x->dims[0] : dim_const(c, 1),
	                          dim_const(c, offset < 0 ? -offset : offset));
	const Dim *shape[] = {size, size};
	return infer_result_shape(op, 0, x->dtype, 2, shape);
}

bool define_hook_diag(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int64_t offset = op_int(op, "offset", 0);
	Nest n = nest_open(b, op->results[0].type);
	if (x->type->rank == 2) {
		Value *from[] = {diagonal_row(&n.b, n.at[0], offset),
		                 diagonal_column(&n.b, n.at[0], offset)};
		results[0] = nest_close(&n, load(&n.b, x, from));
		return results[0] != NULL;
	}
	Value *on = index_equal(&n.b, index_plus(&n.b, n.at[0], offset), n.at[1]);
	Value *at = n.at[offset < 0 ? 1 : 0],
		  *other = build_scalar_f(&n.b, x->type->dtype, op_number(op, "padding_value"));
	results[0] = nest_close(&n, load_or(&n.b, on, other, x, &at));
	return results[0] != NULL;
}

bool infer_hook_diag_embed(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int one, two;
	int64_t offset = op_int(op, "offset", 0);
	if (!x || !offset_check(op))
		return false;
	if (x->rank < 1 || x->rank + 1 > MAX_RANK)
		return op_error(op, "an operand of %d axes", x->rank);
	if (!infer_axis(op, op_int(op, "dim1", -2), x->rank + 1, &one) ||
	    !infer_axis(op, op_int(op, "dim2", -1), x->rank + 1, &two))
		return false;
	if (one == two)
		return op_error(op, "both axes are %d", one);
	const Dim *size = dim_add(c, x->dims[x->rank - 1], dim_const(c, offset < 0 ? -offset : offset));
	for (int d = 0, k = 0; d <= x->rank; d++)
		shape[d] = d == one || d == two ? size : x->dims[k++];
	return infer_result_shape(op, 0, x->dtype, x->rank + 1, shape);
}

bool define_hook_diag_embed(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int rank = x->type->rank + 1, one = axis_norm(op_int(op, "dim1", -2), rank),
		two = axis_norm(op_int(op, "dim2", -1), rank);
	int64_t offset = op_int(op, "offset", 0);
	Nest n = nest_open(b, op->results[0].type);
	for (int d = 0, k = 0; d < rank; d++)
		if (d != one && d != two)
			from[k++] = n.at[d];
	from[rank - 2] = n.at[offset < 0 ? two : one];
	Value *on = index_equal(&n.b, index_plus(&n.b, n.at[one], offset), n.at[two]);
	results[0] = nest_close(&n,
	                        load_or(&n.b, on, build_scalar_f(&n.b, x->type->dtype, 0), x, from));
	return results[0] != NULL;
}

// The axes of the matrices; the others in `rest`.
static bool matrix_axes(const Op *op, const char *first, const char *second, int rank, int *one,
                        int *two)
{
	if (rank < 2)
		return op_error(op, "an operand of %d axes", rank);
	if (!infer_axis(op, op_int(op, first, 0), rank, one) ||
	    !infer_axis(op, op_int(op, second, 1), rank, two))
		return false;
	return *one != *two || op_error(op, "both axes are %d", *one);
}

// The axes that count rows and columns.
static bool diagonal_axes(Op *op, int rank, int *one, int *two)
{
	if (!matrix_axes(op, "axis1", "axis2", rank, one, two))
		return false;
	if (op_bool(op, "ordered", false) && *one > *two) {
		const int rows = *two;
		*two = *one;
		*one = rows;
	}
	return true;
}

bool infer_hook_diagonal(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int one, two, k = 0;
	if (!x || !offset_check(op) || !diagonal_axes(op, x->rank, &one, &two))
		return false;
	for (int d = 0; d < x->rank; d++)
		if (d != one && d != two)
			shape[k++] = x->dims[d];
	shape[k++] = diagonal_size(op->ctx, x->dims[one], x->dims[two], op_int(op, "offset", 0));
	return infer_result_shape(op, 0, x->dtype, k, shape);
}

bool define_hook_diagonal(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int rank = x->type->rank, one, two;
	int64_t offset = op_int(op, "offset", 0);
	if (!diagonal_axes(op, rank, &one, &two))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	for (int d = 0, k = 0; d < rank; d++)
		if (d != one && d != two)
			from[d] = n.at[k++];
	from[one] = diagonal_row(&n.b, n.at[rank - 2], offset);
	from[two] = diagonal_column(&n.b, n.at[rank - 2], offset);
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

// As Paddle's kernel goes over the elements in memory: in steps of the sum of all strides, `offset`
// further on in the row, and, without wrap, only in the first cols x cols elements.
bool define_hook_fill_diagonal(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0);
	const Type *t = x->type;
	int64_t offset = op_int(op, "offset", 0);
	if (t->rank < 2 || !offset_check(op))
		return t->rank < 2 && op_error(op, "an operand of %d axes", t->rank);
	const Dim *cols = t->dims[1], *stride = dim_const(c, 1), *step = stride;
	for (int d = t->rank - 1; d > 0; d--)
		step = dim_add(c, step, stride = dim_mul(c, stride, t->dims[d]));
	const Dim *size = type_numel(c, t);
	if (!op_bool(op, "wrap", false))
		size = dim_min(c, size, dim_mul(c, cols, cols));
	Nest n = nest_open(b, t);
	Value *from = index_plus(&n.b, index_linear(&n.b, t->rank, t->dims, n.at), -offset);
	Value *on = index_inside(&n.b, from, size), *safe = index_max(&n.b, from, index_const(&n.b, 0));
	on = pred_and(
		&n.b, on,
		index_equal(&n.b, index_mod(&n.b, safe, index_dim(&n.b, step)), index_const(&n.b, 0)));
	Value *column = index_plus(&n.b, index_mod(&n.b, safe, index_dim(&n.b, cols)), offset);
	on = pred_and(&n.b, on, index_inside(&n.b, column, cols));
	Value *fill = build_scalar_f(&n.b, t->dtype, op_number(op, "value"));
	results[0] = nest_close(&n, index_where(&n.b, on, fill, load(&n.b, x, n.at)));
	return results[0] != NULL;
}

bool define_hook_fill_diagonal_tensor(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1), *from[MAX_RANK];
	const Type *t = x->type;
	int one, two, k = 0;
	if (!offset_check(op) || !matrix_axes(op, "dim1", "dim2", t->rank, &one, &two))
		return false;
	int64_t offset = op_int(op, "offset", 0);
	const Dim *shape[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		if (d != one && d != two)
			shape[k++] = t->dims[d];
	shape[k++] = diagonal_size(b->ctx, t->dims[one], t->dims[two], offset);
	y = tensor_reshape(b, y, k, shape);
	Nest n = nest_open(b, t);
	k = 0;
	for (int d = 0; d < t->rank; d++)
		if (d != one && d != two)
			from[k++] = n.at[d];
	from[k] = n.at[offset < 0 ? two : one];
	Value *on = index_equal(&n.b, index_plus(&n.b, n.at[one], offset), n.at[two]);
	results[0] = y ? nest_close(&n, load_or(&n.b, on, load(&n.b, x, n.at), y, from)) : NULL;
	return results[0] != NULL;
}

// ---- triangles ----------------------------------------------------------------------------------

// The first position of row r in the triangle, and behind its last one.
static void triangle_row(const Op *op, int64_t r, int64_t cols, int64_t *first, int64_t *end)
{
	int64_t edge = r + op_int(op, "offset", 0);
	bool lower = op->code == OP_PD_TRIL_INDICES;
	*first = lower || edge < 0 ? 0 : edge < cols ? edge : cols;
	*end = !lower ? cols : edge + 1 < 0 ? 0 : edge + 1 < cols ? edge + 1 : cols;
}

static int64_t triangle_size(const Op *op, int64_t rows, int64_t cols)
{
	int64_t count = 0, first, end;
	for (int64_t r = 0; r < rows; r++) {
		triangle_row(op, r, cols, &first, &end);
		count += end - first;
	}
	return count;
}

static bool triangle_shape(const Op *op, int64_t *rows, int64_t *cols)
{
	const int64_t most = 1 << 15;
	bool lower = op->code == OP_PD_TRIL_INDICES;
	*rows = op_int(op, lower ? "rows" : "row", 0);
	*cols = op_int(op, lower ? "cols" : "col", 0);
	return (*rows >= 0 && *cols >= 0 && *rows <= most && *cols <= most && offset_check(op)) ||
	       op_error(op, "a matrix of %lld x %lld", (long long)*rows, (long long)*cols);
}

bool infer_hook_triangle_indices(Op *op)
{
	int64_t rows, cols;
	if (!triangle_shape(op, &rows, &cols))
		return false;
	const Dim *shape[] = {dim_const(op->ctx, 2), dim_const(op->ctx, triangle_size(op, rows, cols))};
	return infer_result_shape(op, 0, op_dtype(op, "dtype", DT_I64), 2, shape);
}

bool define_hook_triangle_indices(Builder *b, Op *op, Value **results)
{
	int64_t rows, cols, first, end, k = 0;
	if (!triangle_shape(op, &rows, &cols))
		return false;
	const int64_t dims[] = {2, triangle_size(op, rows, cols)};
	Tensor *t = tensor_new(b->ctx->arena, op->results[0].type->dtype, 2, dims);
	if (!t)
		return false;
	for (int64_t r = 0; r < rows; r++) {
		triangle_row(op, r, cols, &first, &end);
		for (int64_t col = first; col < end; col++, k++) {
			tensor_set_i(t, k, r);
			tensor_set_i(t, dims[1] + k, col);
		}
	}
	results[0] = build_constant(b, t);
	return results[0] != NULL;
}

// ---- products -----------------------------------------------------------------------------------

bool infer_hook_kron(Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = x ? infer_tensor(op, 1) : NULL;
	const Dim *shape[MAX_RANK];
	if (!y)
		return false;
	if (x->dtype != y->dtype)
		return op_error(op, "operands of types %s and %s", dtype_name(x->dtype),
		                dtype_name(y->dtype));
	int rank = x->rank > y->rank ? x->rank : y->rank;
	for (int d = 0; d < rank; d++) {
		int i = d - rank + x->rank, j = d - rank + y->rank;
		shape[d] = i < 0   ? y->dims[j]
		           : j < 0 ? x->dims[i]
		                   : dim_mul(op->ctx, x->dims[i], y->dims[j]);
	}
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

bool define_hook_kron(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1), *p[MAX_RANK], *q[MAX_RANK];
	int rank = op->results[0].type->rank;
	Nest n = nest_open(b, op->results[0].type);
	for (int d = 0; d < rank; d++) {
		int i = d - rank + x->type->rank, j = d - rank + y->type->rank;
		Value *size = j < 0 ? NULL : index_dim(&n.b, y->type->dims[j]);
		if (i >= 0)
			p[i] = size ? index_div(&n.b, n.at[d], size) : n.at[d];
		if (j >= 0)
			q[j] = i >= 0 ? index_mod(&n.b, n.at[d], size) : n.at[d];
	}
	results[0] = nest_close(&n, tensor_mul(&n.b, load(&n.b, x, p), load(&n.b, y, q)));
	return results[0] != NULL;
}

// The axis that is given; or else the first of three: *axis when none of those before it is, the
// open ones in `maybe`, as a run finds them. Where no size is known to be 3, the last open one.
static bool cross_axis(const Op *op, const Type *x, int *axis, bool *maybe)
{
	int64_t given = op_int(op, "axis", 9);
	memset(maybe, 0, MAX_RANK * sizeof *maybe);
	if (given != 9)
		return infer_axis(op, given, x->rank, axis);
	*axis = -1;
	for (int d = 0; d < x->rank; d++) {
		if (dim_is(x->dims[d], 3)) {
			*axis = d;
			return true;
		}
		maybe[d] = !dim_is_const(x->dims[d]);
		*axis = maybe[d] ? d : *axis;
	}
	return *axis >= 0 || op_error(op, "no axis has size 3");
}

// Sees to it that an axis has size 3 in a run.
static bool cross_check(const Op *op, const Type *x, int axis, const bool *maybe)
{
	Context *c = op->ctx;
	const Dim *three = dim_const(c, 3), *same, *all = dim_sub(c, x->dims[axis], three);
	int before = 0;
	for (int d = 0; d < axis; d++)
		if (maybe[d]) {
			before++;
			all = dim_mul(c, all, dim_sub(c, x->dims[d], three));
		}
	if (!before || dim_is(x->dims[axis], 3))
		return infer_same_dim(op, x->dims[axis], three, "the vectors", &same);
	dim_check(c, all, dim_const(c, 0)); // one of the factors is 0
	return true;
}

bool infer_hook_cross(Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = x ? infer_tensor(op, 1) : NULL;
	int axis = 0;
	bool maybe[MAX_RANK];
	if (!y || !cross_axis(op, x, &axis, maybe))
		return false;
	if (x->rank != y->rank || x->dtype != y->dtype)
		return op_error(op, "operands of other rank or type");
	return infer_same_dims(op, 0, x, y, "sizes of the operands") &&
	       cross_check(op, x, axis, maybe) && infer_result(op, 0, x);
}

// The position `by` further along the axis of the vectors, which are on the first axis of three:
// the last one, unless one of those before it is.
static void cross_from(Nest *n, const Type *x, int axis, const bool *maybe, int by, Value **from)
{
	Value *none = NULL;
	memcpy(from, n->at, MAX_RANK * sizeof *from);
	for (int d = 0; d <= axis; d++) {
		if (d < axis && !maybe[d])
			continue;
		Value *on = index_mod(&n->b, index_plus(&n->b, n->at[d], by), index_const(&n->b, 3));
		Value *size = index_dim(&n->b, x->dims[d]), *three = index_const(&n->b, 3);
		Value *is = d < axis ? pred_and(&n->b, none, index_equal(&n->b, size, three)) : none;
		from[d] = is ? index_where(&n->b, is, on, n->at[d]) : on;
		if (d < axis)
			none = pred_and(&n->b, none, apply2(&n->b, OP_PD_NOT_EQUAL, size, three));
	}
}

bool define_hook_cross(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1), *from[MAX_RANK], *v[4];
	bool maybe[MAX_RANK];
	int axis = 0;
	if (!cross_axis(op, x->type, &axis, maybe))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	for (int i = 0; i < 2; i++) {
		cross_from(&n, x->type, axis, maybe, i + 1, from);
		v[i] = load(&n.b, x, from);
		v[3 - i] = load(&n.b, y, from);
	}
	results[0] = nest_close(
		&n, tensor_sub(&n.b, tensor_mul(&n.b, v[0], v[2]), tensor_mul(&n.b, v[1], v[3])));
	return results[0] != NULL;
}

bool define_hook_cos_sim(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	const int64_t last[] = {1};
	if (!infer_rank(op, 0, 2) || !infer_rank(op, 1, 2))
		return false;
	results[1] = apply1(b, OP_PD_SQRT, tensor_reduce(b, OP_PD_SUM, tensor_mul(b, x, x), 1, last));
	results[2] = apply1(b, OP_PD_SQRT, tensor_reduce(b, OP_PD_SUM, tensor_mul(b, y, y), 1, last));
	Value *product = tensor_reduce(b, OP_PD_SUM, tensor_mul(b, x, y), 1, last);
	results[0] = tensor_div(b, product, tensor_mul(b, results[1], results[2]));
	return results[0] != NULL;
}

// x W[k] as a product of matrices [n x p] and [p x k q], then the sum of its products with y.
bool define_hook_bilinear(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *x = infer_rank(op, 0, 2), *y = x ? infer_rank(op, 1, 2) : NULL,
			   *w = y ? infer_rank(op, 2, 3) : NULL;
	if (!w)
		return false;
	const int64_t perm[] = {1, 0, 2}, last[] = {2};
	const Dim *flat[] = {w->dims[1], dim_mul(c, w->dims[0], w->dims[2])},
			  *apart[] = {x->dims[0], w->dims[0], w->dims[2]};
	const Dim *row[] = {y->dims[0], dim_const(c, 1), y->dims[1]}, *out[] = {x->dims[0], w->dims[0]};
	Value *right = tensor_reshape(b, tensor_transpose(b, op_operand(op, 2), 3, perm), 2, flat);
	Value *product = build2(b, OP_PD_MATMUL, op_operand(op, 0), right, NULL);
	product = product ? tensor_mul(b, tensor_reshape(b, product, 3, apart),
	                               tensor_reshape(b, op_operand(op, 1), 3, row))
	                  : NULL;
	results[0] = tensor_reshape(b, tensor_reduce(b, OP_PD_SUM, product, 1, last), 2, out);
	if (op_operand(op, 3))
		results[0] = tensor_add(b, results[0], op_operand(op, 3));
	return results[0] != NULL;
}
