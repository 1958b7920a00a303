// Types of matrix products (ir/ops/nn.yaml).
#include "ir/build/infer.h"
#include "ir/infer/infer.h"

bool infer_exact(Op *op, bool inferred)
{
	if (inferred)
		op->results[0].type = type_like(op->ctx, op->results[0].type, DT_I32);
	return inferred;
}

// A size of a matrix's last two axes, the last one or, with `other`, the one before it; a vector
// has only one.
static const Dim *matrix_dim(const Type *t, bool other)
{
	return t->dims[t->rank == 1 ? 0 : other ? t->rank - 2 : t->rank - 1];
}

// The shape of a matmul; vectors are a row on the left and a column on the right.
static bool matmul_result(Op *op, const Type *x, const Type *y, bool tx, bool ty)
{
	const Dim *shape[MAX_RANK], *k;
	int rank = 0;
	if (!x->rank || !y->rank)
		return op_error(op, "a matrix product of a scalar");
	if (x->dtype != y->dtype && op->code != OP_PD_INTEGER_MATMUL)
		return op_error(op, "a product of %s and %s", dtype_name(x->dtype), dtype_name(y->dtype));
	int bx = x->rank > 2 ? x->rank - 2 : 0, by = y->rank > 2 ? y->rank - 2 : 0;
	if (!infer_broadcast(op, bx, x->dims, by, y->dims, &rank, shape))
		return false;
	if (!infer_same_dim(op, matrix_dim(x, tx), matrix_dim(y, !ty), "inner sizes of the matrices",
	                    &k))
		return false;
	if (x->rank > 1)
		shape[rank++] = matrix_dim(x, !tx);
	if (y->rank > 1)
		shape[rank++] = matrix_dim(y, ty);
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

bool infer_hook_matmul(Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = infer_tensor(op, 1);
	return x && y &&
	       matmul_result(op, x, y, op_bool(op, "transpose_x", false),
	                     op_bool(op, "transpose_y", false));
}

// The vector that operand i is, transposed, is a matrix: a column on the left, a row on the right.
static const Type *matrix_of_vector(Op *op, int i, const Type *t, bool turned)
{
	if (t->rank != 1 || !turned)
		return t;
	const Dim *one = dim_const(op->ctx, 1), *n = t->dims[0];
	const Dim *shape[] = {i ? one : n, i ? n : one};
	return type_tensor(op->ctx, t->dtype, 2, shape, 0);
}

// Whether the operands are matrices, whose product has an axis for the heads.
static bool are_matrices(const Type *x, const Type *y)
{
	return x->rank > 1 && y->rank > 1 && x->rank < MAX_RANK && y->rank < MAX_RANK;
}

// Products of shares of the columns of x, beside each other.
static bool heads_result(Op *op, const Type *x, const Type *y, bool tx, bool ty)
{
	Context *c = op->ctx;
	const int64_t heads = op_int(op, "head_number", 1);
	const Dim *shape[MAX_RANK], *h = dim_const(c, heads);
	int rank = 0;
	if (heads < 1 || !are_matrices(x, y) || x->dtype != y->dtype)
		return op_error(op, "a product of %lld heads needs two matrices", (long long)heads);
	const Dim *k = matrix_dim(x, tx), *rows = matrix_dim(y, !ty), *n = matrix_dim(y, ty);
	if (!dim_is_const(k) || !dim_is_const(rows) || !dim_is_const(n) || k->value % heads)
		return op_error(op, "the sizes of heads must be known, and share the columns of x evenly");
	const bool whole = rows->value == k->value; // y has a row for each column of x
	if (!whole && (rows->value != k->value / heads || n->value % heads))
		return op_error(op, "rows of y that are neither the columns of x nor those of a head");
	if (!infer_broadcast(op, x->rank - 2, x->dims, y->rank - 2, y->dims, &rank, shape))
		return false;
	shape[rank++] = matrix_dim(x, !tx);
	shape[rank++] = whole ? dim_mul(c, n, h) : n;
	return infer_result_shape(op, 0, x->dtype, rank, shape);
}

// Whether a vector is turned into a matrix, and then whether it leaves no axis of that behind.
static bool is_turned(const Type *t, bool turned)
{
	return t->rank == 1 && turned;
}

static bool leaves_none(const Type *t, bool turned)
{
	return is_turned(t, turned) && dim_is(t->dims[0], 1);
}

// The result of a product of matrices without the axes that vectors of one element leave behind.
static bool turned_result(Op *op, const Type *x, const Type *y, bool tx, bool ty)
{
	const Type *out = op->results[0].type;
	const Dim *shape[MAX_RANK];
	int rank = 0, row = out->rank - 2 + (y->rank == 1 && !ty), column = out->rank - 1;
	for (int d = 0; d < out->rank; d++)
		if (!(leaves_none(x, tx) && d == row) && !(leaves_none(y, ty) && d == column))
			shape[rank++] = out->dims[d];
	return infer_result_shape(op, 0, out->dtype, rank, shape);
}

bool infer_hook_scaled_matmul(Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = infer_tensor(op, 1);
	if (!x || !y)
		return false;
	const bool tx = op_bool(op, "transpose_x", false), ty = op_bool(op, "transpose_y", false);
	if (op_int(op, "head_number", 1) != 1)
		return heads_result(op, x, y, tx, ty);
	const bool left = is_turned(x, tx), right = is_turned(y, ty);
	if ((left && !dim_is_const(x->dims[0])) || (right && !dim_is_const(y->dims[0])))
		return op_error(op, "a transposed vector must have a size that is known");
	return matmul_result(op, matrix_of_vector(op, 0, x, tx), matrix_of_vector(op, 1, y, ty),
	                     tx && !left, ty && !right) &&
	       turned_result(op, x, y, tx, ty);
}

bool infer_hook_integer_matmul(Op *op)
{
	return infer_exact(op, infer_hook_matmul(op));
}

bool infer_hook_bmm(Op *op)
{
	const Type *x = infer_rank(op, 0, 3), *y = x ? infer_rank(op, 1, 3) : NULL;
	const Dim *batch;
	return y && matmul_result(op, x, y, false, false) &&
	       infer_same_dim(op, x->dims[0], y->dims[0], "batches of matrices", &batch);
}

bool infer_hook_mv(Op *op)
{
	const Type *x = infer_rank(op, 0, 2), *y = x ? infer_rank(op, 1, 1) : NULL;
	return y && matmul_result(op, x, y, false, false);
}

bool infer_hook_dot(Op *op)
{
	const Type *both = infer_broadcast_pair(op);
	if (!both)
		return false;
	if (!both->rank || both->rank > 2)
		return op_error(op, "a tensor of rank %d where 1 or 2 is needed", both->rank);
	const Type *x = infer_tensor(op, 0), *y = infer_tensor(op, 1);
	if (x->rank != y->rank)
		return op_error(op, "a product of tensors of rank %d and %d", x->rank, y->rank);
	return infer_same_dims(op, 0, x, y, "sizes of the vectors") &&
	       infer_result_shape(op, 0, both->dtype, both->rank - 1, both->dims);
}

bool infer_hook_addmm(Op *op)
{
	const Type *input = infer_tensor(op, 0), *x = infer_rank(op, 1, 2),
			   *y = x ? infer_rank(op, 2, 2) : NULL;
	if (!input || !y || !matmul_result(op, x, y, false, false))
		return false;
	const Type *out = op->results[0].type;
	bool fits = input->rank <= 2;
	for (int d = 0; d < input->rank && fits; d++) {
		const Dim *size = input->dims[d], *whole = out->dims[2 - input->rank + d];
		fits = dim_is(size, 1) || size == whole || !dim_is_const(size) || !dim_is_const(whole);
	}
	return fits || op_error(op, "the input is larger than the product that it is added to");
}

// x and y as matrices after nx and ny axes.
static bool mul_result(Op *op, const Type *x, const Type *y, int64_t nx, int64_t ny)
{
	Context *c = op->ctx;
	const Dim *shape[2 * MAX_RANK], *k;
	if (nx < 1 || nx >= x->rank || ny < 1 || ny >= y->rank)
		return op_error(op, "tensors of rank %d and %d do not flatten after %lld and %lld axes",
		                x->rank, y->rank, (long long)nx, (long long)ny);
	if (!infer_same_dim(op, dims_product(c, x->rank - (int)nx, x->dims + nx),
	                    dims_product(c, (int)ny, y->dims), "inner sizes of the matrices", &k))
		return false;
	int rank = 0;
	for (int d = 0; d < nx; d++)
		shape[rank++] = x->dims[d];
	for (int d = (int)ny; d < y->rank; d++)
		shape[rank++] = y->dims[d];
	if (rank > MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	return infer_result(op, 0, type_tensor(c, x->dtype, rank, shape, x->lod));
}

bool infer_hook_mul(Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = infer_tensor(op, 1);
	return x && y &&
	       mul_result(op, x, y, op_int(op, "x_num_col_dims", 1), op_int(op, "y_num_col_dims", 1));
}

bool infer_hook_fc(Op *op)
{
	const Type *x = infer_tensor(op, 0), *w = infer_rank(op, 1, 2);
	return x && w && mul_result(op, x, w, op_int(op, "in_num_col_dims", 1), 1);
}
