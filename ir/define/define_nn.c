// What matrix products, softmax and its losses mean: loop nests and simpler operators
// (ir/ops/nn.yaml).
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- matrix products ----------------------------------------------------------------------------

// Fills `from` with the position in operand t: batch axes aligned at the end of those of the
// result, then row and column.
static void matmul_position(Builder *b, const Type *t, const Nest *n, int batch, Value *row,
                            Value *col, bool transpose, Value **from)
{
	int mine = t->rank - 2;
	for (int d = 0; d < mine; d++)
		from[d] = dim_is(t->dims[d], 1) ? index_const(b, 0) : n->at[batch - mine + d];
	from[mine] = transpose ? col : row;
	from[mine + 1] = transpose ? row : col;
}

bool define_hook_matmul(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1), *from[MAX_RANK];
	const Type *out = op->results[0].type, *tx = x->type, *ty = y->type;
	bool flip_x = op_bool(op, "transpose_x", false), flip_y = op_bool(op, "transpose_y", false);
	const Dim *k = tx->dims[tx->rank == 1 ? 0 : flip_x ? tx->rank - 2 : tx->rank - 1];
	int batch = out->rank - (tx->rank > 1) - (ty->rank > 1);
	Nest n = nest_open(b, out);
	Nest r = reduce_open(&n.b, "sum", out->dtype, 1, &k);
	from[0] = r.at[0];
	if (tx->rank > 1)
		matmul_position(&r.b, tx, &n, batch, n.at[batch], r.at[0], flip_x, from);
	Value *left = scalar_cast(&r.b, load(&r.b, x, from), out->dtype);
	const int64_t zero_point = op_int(op, "zero_point", 0);
	if (zero_point)
		left = tensor_sub(&r.b, left, build_scalar_f(&r.b, out->dtype, (double)zero_point));
	from[0] = r.at[0];
	if (ty->rank > 1)
		matmul_position(&r.b, ty, &n, batch, r.at[0], n.at[out->rank - 1], flip_y, from);
	Value *right = scalar_cast(&r.b, load(&r.b, y, from), out->dtype);
	results[0] = nest_close(&n, reduce_close(&r, tensor_mul(&r.b, left, right)));
	return results[0] != NULL;
}

static Value *matmul_of(Builder *b, Value *x, Value *y, bool tx, bool ty)
{
	if (!x || !y)
		return NULL;
	return build2(b, OP_PD_MATMUL, x, y, "transpose_x", attr_bool(b->ctx, tx), "transpose_y",
	              attr_bool(b->ctx, ty), NULL);
}

static Value *times_number(Builder *b, Value *x, double v)
{
	return v == 1 || !x ? x : tensor_mul(b, x, tensor_number(b, x->type->dtype, v));
}

// x in the shape of t; the same value when it has it.
static Value *shaped_like(Builder *b, Value *x, const Type *t)
{
	if (!x || (x->type->rank == t->rank &&
	           !memcmp(x->type->dims, t->dims, sizeof *t->dims * (size_t)t->rank)))
		return x;
	return tensor_reshape(b, x, t->rank, t->dims);
}

// A vector that is transposed, as a matrix: a column on the left, a row on the right.
static Value *vector_turned(Builder *b, Value *v, bool left)
{
	const Dim *one = dim_const(b->ctx, 1), *n = v->type->dims[0];
	const Dim *shape[] = {left ? n : one, left ? one : n};
	return tensor_reshape(b, v, 2, shape);
}

// Axes `axis` and the next one change places.
static Value *neighbours_swapped(Builder *b, Value *v, int axis)
{
	int64_t order[MAX_RANK];
	if (!v)
		return NULL;
	for (int d = 0; d < v->type->rank; d++)
		order[d] = d == axis ? d + 1 : d == axis + 1 ? axis : d;
	return tensor_transpose(b, v, v->type->rank, order);
}

// The last axis, or the one before it, as `heads` shares, the heads in front of the matrix.
static Value *heads_apart(Builder *b, Value *v, int64_t heads, bool last)
{
	const int n = v->type->rank, axis = last ? n - 1 : n - 2;
	const Dim *shape[MAX_RANK], *h = dim_const(b->ctx, heads);
	memcpy(shape, v->type->dims, sizeof *shape * (size_t)n);
	shape[n] = shape[n - 1];
	shape[axis + 1] = dim_div(b->ctx, v->type->dims[axis], h);
	shape[axis] = h;
	Value *split = tensor_reshape(b, v, n + 1, shape);
	return last ? neighbours_swapped(b, split, n - 2) : split;
}

// Products of shares of x, beside each other.
static Value *product_of_heads(Builder *b, Op *op, int64_t heads)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	const int nx = x->type->rank, ny = y->type->rank;
	if (op_bool(op, "transpose_x", false))
		x = neighbours_swapped(b, x, nx - 2);
	if (op_bool(op, "transpose_y", false))
		y = neighbours_swapped(b, y, ny - 2);
	if (!x || !y)
		return NULL;
	const bool whole = y->type->dims[ny - 2]->value == x->type->dims[nx - 1]->value;
	x = heads_apart(b, x, heads, true);
	y = heads_apart(b, y, heads, !whole);
	Value *product = matmul_of(b, x, y, false, false);
	return product ? neighbours_swapped(b, product, product->type->rank - 3) : NULL;
}

bool define_hook_scaled_matmul(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	const int64_t heads = op_int(op, "head_number", 1);
	if (heads > 1) {
		Value *beside = shaped_like(b, product_of_heads(b, op, heads), op->results[0].type);
		results[0] = times_number(b, beside, op_float(op, "alpha", 1));
		return results[0] != NULL;
	}
	bool tx = op_bool(op, "transpose_x", false), ty = op_bool(op, "transpose_y", false);
	if (tx && x->type->rank == 1) {
		x = vector_turned(b, x, true);
		tx = false;
	}
	if (ty && y->type->rank == 1) {
		y = vector_turned(b, y, false);
		ty = false;
	}
	Value *product = shaped_like(b, matmul_of(b, x, y, tx, ty), op->results[0].type);
	results[0] = times_number(b, product, op_float(op, "alpha", 1));
	return results[0] != NULL;
}

// x as a matrix after `n` axes.
static Value *as_matrix(Builder *b, Value *x, int64_t n)
{
	const Dim *shape[2] = {dim_const(b->ctx, 1), dim_const(b->ctx, 1)};
	if (x->type->rank == 2 && n == 1)
		return x;
	for (int d = 0; d < x->type->rank; d++)
		shape[d >= n] = dim_mul(b->ctx, shape[d >= n], x->type->dims[d]);
	return tensor_reshape(b, x, 2, shape);
}

bool define_hook_mul(Builder *b, Op *op, Value **results)
{
	Value *x = as_matrix(b, op_operand(op, 0), op_int(op, "x_num_col_dims", 1));
	Value *y = as_matrix(b, op_operand(op, 1), op_int(op, "y_num_col_dims", 1));
	results[0] = shaped_like(b, matmul_of(b, x, y, false, false), op->results[0].type);
	return results[0] != NULL;
}

bool define_hook_fc(Builder *b, Op *op, Value **results)
{
	Value *x = as_matrix(b, op_operand(op, 0), op_int(op, "in_num_col_dims", 1)),
		  *bias = op_operand(op, 2);
	Value *out = matmul_of(b, x, op_operand(op, 1), false, false);
	if (bias)
		out = tensor_add(b, out, tensor_along(b, bias, 2, 1));
	if (op_enum(op, "activation_type") == FC_ACTIVATION_RELU)
		out = apply1(b, OP_PD_RELU, out);
	results[0] = shaped_like(b, out, op->results[0].type);
	return results[0] != NULL;
}

// bmm and mv.
bool define_hook_bmm(Builder *b, Op *op, Value **results)
{
	results[0] = matmul_of(b, op_operand(op, 0), op_operand(op, 1), false, false);
	return results[0] != NULL;
}

bool define_hook_mv(Builder *b, Op *op, Value **results)
{
	return define_hook_bmm(b, op, results);
}

bool define_hook_dot(Builder *b, Op *op, Value **results)
{
	Value *product = tensor_mul(b, op_operand(op, 0), op_operand(op, 1));
	int64_t last = -1;
	results[0] = product ? build1(b, OP_PD_SUM, product, "axis", attr_ints(b->ctx, 1, &last),
	                              "dtype", attr_dtype(b->ctx, product->type->dtype), NULL)
	                     : NULL;
	return results[0] != NULL;
}

bool define_hook_addmm(Builder *b, Op *op, Value **results)
{
	Value *product = matmul_of(b, op_operand(op, 1), op_operand(op, 2), false, false);
	product = times_number(b, product, op_float(op, "alpha", 1));
	const Type *t = op->results[0].type;
	Value *input = op_operand(op, 0); // as large as the product, or 1
	if (input->type->rank != t->rank ||
	    memcmp(input->type->dims, t->dims, 2 * sizeof *t->dims) != 0)
		input = build1(b, OP_PD_EXPAND, input, "shape", attr_dims(b->ctx, t->rank, t->dims), NULL);
	results[0] = tensor_add(b, product, times_number(b, input, op_float(op, "beta", 1)));
	return results[0] != NULL;
}

// ---- softmax and losses -------------------------------------------------------------------------

// x minus its maximum along the axis, and not below -64: what Paddle's CPU kernels give to exp, so
// that no weight is 0.
static Value *shifted_of(Builder *b, Value *x, int64_t axis)
{
	Value *way = tensor_sub(b, x, tensor_reduce(b, OP_PD_MAX, x, 1, &axis));
	return way ? build2(b, OP_PD_MAXIMUM, tensor_number(b, x->type->dtype, -64), way, NULL)
	           : NULL; // keeps NaN
}

static Value *softmax_of(Builder *b, Value *x, int64_t axis)
{
	Value *e = apply1(b, OP_PD_EXP, shifted_of(b, x, axis));
	return tensor_div(b, e, tensor_reduce(b, OP_PD_SUM, e, 1, &axis));
}

static Value *log_softmax_of(Builder *b, Value *x, int64_t axis)
{
	Value *way = shifted_of(b, x, axis);
	Value *sum = tensor_reduce(b, OP_PD_SUM, apply1(b, OP_PD_EXP, way), 1, &axis);
	return tensor_sub(b, way, apply1(b, OP_PD_LOG, sum));
}

// Along the operator's axis; a number by itself gives `single`.
static bool along_axis(Builder *b, Op *op, Value *(*of)(Builder *b, Value *x, int64_t axis),
                       double single, Value **results)
{
	Value *x = op_operand(op, 0);
	int rank = x->type->rank;
	results[0] = rank ? of(b, x, axis_norm(op_int(op, "axis", -1), rank))
	                  : build_full(b, op->results[0].type, single);
	return results[0] != NULL;
}

bool define_hook_softmax(Builder *b, Op *op, Value **results)
{
	return along_axis(b, op, softmax_of, 1, results);
}

bool define_hook_log_softmax(Builder *b, Op *op, Value **results)
{
	return along_axis(b, op, log_softmax_of, 0, results);
}

// Minus the log probability that each position's label has: a sum against a distribution, or a
// choice by class number (nothing where it is ignore_index). `log`: how logarithms come from x; of
// a class that is not chosen there is none, nor a gradient.
static Value *label_loss(Builder *b, Op *op, Value *x, Value *label, enum OpCode log, int64_t axis,
                         const Type *type)
{
	if (!x)
		return NULL;
	if (op_bool(op, "soft_label", false)) {
		Value *sum = tensor_mul(b, apply1(b, log, x), label);
		return apply1(b, OP_PD_NEGATIVE, tensor_reduce(b, OP_PD_SUM, sum, 1, &axis));
	}
	Value *from[MAX_RANK];
	Nest n = nest_open(b, type);
	DType t = label->type->dtype;
	Value *id = load(&n.b, label, n.at);
	Value *ignore = build_scalar_f(&n.b, t, (double)op_int(op, "ignore_index", -100));
	Value *used = id ? build2(&n.b, OP_PD_NOT_EQUAL, id, ignore, NULL) : NULL;
	Value *safe = index_where(&n.b, used, id, build_scalar_f(&n.b, t, 0));
	memcpy(from, n.at, sizeof from);
	from[axis] = index_from_data(&n.b, safe, x->type->dims[axis], false);
	if (log == OP_PD_ASSIGN)
		return nest_close(
			&n, apply1(&n.b, OP_PD_NEGATIVE,
		               load_or(&n.b, used, build_scalar_f(&n.b, type->dtype, 0), x, from)));
	Value *own = load_or(&n.b, used, build_scalar_f(&n.b, type->dtype, 1), x, from);
	return apply1(b, OP_PD_NEGATIVE, apply1(b, log, nest_close(&n, own)));
}

// The loss of probabilities x.
static Value *probability_loss(Builder *b, Op *op, int64_t axis, const Type *type)
{
	return label_loss(b, op, op_operand(op, 0), op_operand(op, 1), OP_PD_TOLERABLE_LOG, axis, type);
}

bool define_hook_softmax_cross_entropy(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int64_t axis = axis_norm(op_int(op, "axis", -1), x->type->rank);
	bool use = op_bool(op, "use_softmax", true);
	results[0] = use ? softmax_of(b, x, axis) : apply1(b, OP_PD_ASSIGN, x);
	const Type *type = op->results[1].type;
	Value *log = use ? build1(b, OP_PD_LOG_SOFTMAX, x, "axis", attr_int(b->ctx, axis), NULL) : NULL;
	results[1] = use ? label_loss(b, op, log, op_operand(op, 1), OP_PD_ASSIGN, axis, type)
	                 : probability_loss(b, op, axis, type);
	return results[0] && results[1];
}

bool define_hook_cross_entropy(Builder *b, Op *op, Value **results)
{
	const int last = op_operand(op, 0)->type->rank - 1;
	results[0] = probability_loss(b, op, last, op->results[0].type);
	return results[0] != NULL;
}

// ---- for other rooms --------------------------------------------------------------------------

Value *soft_weights(Builder *b, Value *scores)
{
	return scores ? build1(b, OP_PD_SOFTMAX, scores, "axis", attr_int(b->ctx, -1), NULL) : NULL;
}

// ---- prelu --------------------------------------------------------------------------------------

bool define_hook_prelu(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *alpha = op_operand(op, 1);
	const int mode = op_enum(op, "mode");
	int rank = x->type->rank;
	const Dim *shape[MAX_RANK];
	if (mode == SLOPES_CHANNEL) {
		alpha = tensor_along(b, alpha, rank, rank > 1 ? channel_axis(op, rank) : 0);
	} else if (mode == SLOPES_ELEMENT) {
		for (int d = 0; d < rank; d++)
			shape[d] = d ? x->type->dims[d] : dim_const(b->ctx, 1);
		alpha = tensor_reshape(b, alpha, rank, shape);
	} else {
		alpha = tensor_reshape(b, alpha, 0, NULL);
	}
	Value *up = build2(b, OP_PD_GREATER_THAN, x, tensor_number(b, x->type->dtype, 0), NULL);
	Value *down = tensor_mul(b, alpha, x);
	Value *const operands[] = {up, x, down};
	results[0] = up && down ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
	return results[0] != NULL;
}
