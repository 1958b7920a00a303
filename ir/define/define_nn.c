// What matrix products, normalisations and losses mean: loop nests and simpler operators
// (ir/ops/nn.yaml).
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

static int channel_axis(const Op *op, int rank)
{
	return channels_last(op) ? rank - 1 : 1;
}

// x * scale + bias, either of which may be missing.
static Value *scale_shift(Builder *b, Value *x, Value *scale, Value *bias)
{
	x = scale ? tensor_mul(b, x, scale) : x;
	return bias ? tensor_add(b, x, bias) : x;
}

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

bool define_hook_scaled_matmul(Builder *b, Op *op, Value **results)
{
	Value *product = matmul_of(b, op_operand(op, 0), op_operand(op, 1),
	                           op_bool(op, "transpose_x", false),
	                           op_bool(op, "transpose_y", false));
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

// ---- normalisation ------------------------------------------------------------------------------

// (x - mean) / sqrt(variance + epsilon) over `n` axes; the mean and variance are kept apart for
// batch norm.
static Value *normalized(Builder *b, Value *x, int n, const int64_t *axes, double epsilon)
{
	Value *mean = tensor_reduce(b, OP_PD_MEAN, x, n, axes);
	Value *way = tensor_sub(b, x, mean);
	Value *variance = tensor_reduce(b, OP_PD_MEAN, tensor_mul(b, way, way), n, axes);
	Value *safe = tensor_add(b, variance, tensor_number(b, x->type->dtype, epsilon));
	return tensor_div(b, way, apply1(b, OP_PD_SQRT, safe));
}

// All axes but `channel`, and but the first unless `batch`.
static int other_axes(int rank, int channel, bool batch, int64_t *axes)
{
	int n = 0;
	for (int d = batch ? 0 : 1; d < rank; d++)
		if (d != channel)
			axes[n++] = d;
	return n;
}

bool define_hook_batch_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *mean = op_operand(op, 1), *variance = op_operand(op, 2);
	Value *scale = op_operand(op, 3), *bias = op_operand(op, 4);
	int rank = x->type->rank, channel = channel_axis(op, rank);
	const DType narrow = x->type->dtype;
	double epsilon = op_float(op, "epsilon", 1e-5);
	x = tensor_cast(b, x, mean->type->dtype); // statistics of f16 are f32
	bool test = op_bool(op, "is_test", false) && !op_bool(op, "trainable_statistics", false);
	if (!test && !op_bool(op, "use_global_stats", false)) {
		int64_t axes[MAX_RANK];
		Value *out = normalized(b, x, other_axes(rank, channel, true, axes), axes, epsilon);
		out = scale_shift(b, out, scale ? tensor_along(b, scale, rank, channel) : NULL,
		                  bias ? tensor_along(b, bias, rank, channel) : NULL);
		results[0] = tensor_cast(b, out, narrow);
		return results[0] != NULL;
	}
	Value *deviation = apply1(
		b, OP_PD_SQRT, tensor_add(b, variance, tensor_number(b, variance->type->dtype, epsilon)));
	Value *factor = scale ? tensor_div(b, scale, deviation)
	                      : apply1(b, OP_PD_RECIPROCAL, deviation);
	Value *shift = tensor_mul(b, mean, factor);
	shift = bias ? tensor_sub(b, bias, shift) : apply1(b, OP_PD_NEGATIVE, shift);
	Value *out = scale_shift(b, x, tensor_along(b, factor, rank, channel),
	                         tensor_along(b, shift, rank, channel));
	results[0] = tensor_cast(b, out, narrow);
	return results[0] != NULL;
}

bool define_hook_batch_norm_statistics(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *mean = op_operand(op, 1), *variance = op_operand(op, 2);
	int rank = x->type->rank, channel = channel_axis(op, rank);
	int64_t axes[MAX_RANK];
	int n = other_axes(rank, channel, true, axes);
	DType t = mean->type->dtype;
	double momentum = op_float(op, "momentum", 0.9);
	x = tensor_cast(b, x, t);
	Value *centre = tensor_reduce(b, OP_PD_MEAN, x, n, axes), *off = tensor_sub(b, x, centre);
	Value *spread = tensor_reduce(b, OP_PD_MEAN, tensor_mul(b, off, off), n, axes);
	Value *now[] = {tensor_reshape(b, centre, 1, mean->type->dims),
	                tensor_reshape(b, spread, 1, mean->type->dims)};
	Value *old[] = {mean, variance};
	for (int i = 0; i < 2; i++)
		results[i] = tensor_add(b, tensor_mul(b, old[i], tensor_number(b, t, momentum)),
		                        tensor_mul(b, now[i], tensor_number(b, t, 1 - momentum)));
	results[2] = now[0];
	results[3] = apply1(b, OP_PD_RSQRT,
	                    tensor_add(b, now[1], tensor_number(b, t, op_float(op, "epsilon", 1e-5))));
	return results[0] && results[1] && results[2] && results[3];
}

bool define_hook_layer_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *scale = op_operand(op, 1), *bias = op_operand(op, 2);
	int rank = x->type->rank, first = axis_norm(op_int(op, "begin_norm_axis", 1), rank),
		n = rank - first;
	int64_t axes[MAX_RANK];
	const DType narrow = x->type->dtype; // of f16, the scale and bias may be f32
	x = tensor_cast(b, x, scale ? scale->type->dtype : bias ? bias->type->dtype : narrow);
	for (int i = 0; i < n; i++)
		axes[i] = first + i;
	Value *out = normalized(b, x, n, axes, op_float(op, "epsilon", 1e-5));
	const Dim *const *dims = x->type->dims + first;
	scale = scale && n > 1 ? tensor_reshape(b, scale, n, dims) : scale;
	bias = bias && n > 1 ? tensor_reshape(b, bias, n, dims) : bias;
	results[0] = tensor_cast(b, scale_shift(b, out, scale, bias), narrow);
	return results[0] != NULL;
}

Value *rows_normalised(Builder *b, Value *x, Value *scale, Value *bias, double epsilon, int first)
{
	Value *const operands[] = {x, scale, bias};
	return x ? build(b, OP_PD_LAYER_NORM, 3, operands, "epsilon", attr_float(b->ctx, epsilon),
	                 "begin_norm_axis", attr_int(b->ctx, first), NULL)
	         : NULL;
}

// x normalised from axis `first` on, with the operands scale and norm_bias of op.
static Value *norm_of_sum(Builder *b, const Op *op, Value *x, const char *epsilon, int first)
{
	return rows_normalised(b, x, op_operand_named(op, "scale"), op_operand_named(op, "norm_bias"),
	                       op_number(op, epsilon), first);
}

Value *soft_weights(Builder *b, Value *scores)
{
	return scores ? build1(b, OP_PD_SOFTMAX, scores, "axis", attr_int(b->ctx, -1), NULL) : NULL;
}

// Of x + bias after dropout, and the residual, over the last axis; and that sum.
bool define_hook_bias_residual_norm(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	Value *x = op_operand(op, 0), *bias = op_operand_named(op, "bias");
	if (!t || t->rank < 1)
		return t && op_error(op, "no axis to normalise");
	x = bias ? tensor_add(b, x, bias) : x;
	x = x ? build1(b, OP_PD_DROPOUT, x, "p", attr_float(c, op_number(op, "dropout_rate")),
	               "is_test", attr_bool(c, op_bool(op, "is_test", false)), "mode",
	               attr_str(c, op_str(op, "dropout_implementation", "downgrade_in_infer")), NULL)
	      : NULL;
	results[1] = tensor_add(b, x, op_operand(op, 1));
	if (!results[1])
		return false;
	results[0] = norm_of_sum(b, op, results[1], "ln_epsilon", t->rank - 1);
	return results[0] != NULL;
}

// Mean and variance of each row, which begins at axis `first`.
static bool row_moments(Builder *b, Value *x, int first, Value **results)
{
	int64_t axes[MAX_RANK];
	const Dim *rows = dim_const(b->ctx, 1);
	for (int d = 0; d < x->type->rank; d++) {
		axes[d] = first + d;
		rows = d < first ? dim_mul(b->ctx, rows, x->type->dims[d]) : rows;
	}
	Value *mean = tensor_reduce(b, OP_PD_MEAN, x, x->type->rank - first, axes),
		  *away = tensor_sub(b, x, mean);
	Value *spread = away ? tensor_reduce(b, OP_PD_MEAN, tensor_mul(b, away, away),
	                                     x->type->rank - first, axes)
	                     : NULL;
	results[0] = tensor_reshape(b, mean, 1, &rows);
	results[1] = tensor_reshape(b, spread, 1, &rows);
	return results[0] && results[1];
}

// Of x + bias + residual times residual_alpha, from axis begin_norm_axis on; that sum, and the
// moments of its rows.
bool define_hook_bias_residual_layernorm(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	if (!t || op_int(op, "begin_norm_axis", 1) < 0 || op_int(op, "begin_norm_axis", 1) > t->rank)
		return t && op_error(op, "no axis to normalise");
	Value *x = op_operand(op, 0), *bias = op_operand(op, 1), *residual = op_operand(op, 2);
	if (bias)
		x = tensor_add(b, x, bias);
	if (residual) {
		Value *alpha = tensor_number(b, residual->type->dtype, op_float(op, "residual_alpha", 1));
		x = tensor_add(b, x, tensor_mul(b, residual, alpha));
	}
	const int first = (int)op_int(op, "begin_norm_axis", 1);
	results[0] = norm_of_sum(b, op, x, "epsilon", first);
	results[1] = x;
	return results[0] && row_moments(b, x, first, results + 2);
}

bool define_hook_instance_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *scale = op_operand(op, 1), *bias = op_operand(op, 2);
	int64_t axes[MAX_RANK];
	int rank = x->type->rank, n = other_axes(rank, 1, false, axes);
	Value *out = normalized(b, x, n, axes, op_float(op, "epsilon", 1e-5));
	results[0] = scale_shift(b, out, scale ? tensor_along(b, scale, rank, 1) : NULL,
	                         bias ? tensor_along(b, bias, rank, 1) : NULL);
	return results[0] != NULL;
}

// The channels are split into groups and channels of a group; all but image and group is
// normalised.
bool define_hook_group_norm(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *scale = op_operand(op, 1), *bias = op_operand(op, 2);
	const Type *t = x->type;
	const Dim *shape[MAX_RANK + 1], *groups = dim_const(c, op_int(op, "groups", 1));
	int channel = channel_axis(op, t->rank), rank = 0;
	int64_t axes[MAX_RANK];
	for (int d = 0; d < t->rank; d++) {
		if (d == channel)
			shape[rank++] = groups;
		shape[rank++] = d == channel ? dim_div(c, t->dims[d], groups) : t->dims[d];
	}
	Value *split = tensor_reshape(b, x, rank, shape);
	if (!split)
		return false;
	Value *out = normalized(b, split, other_axes(rank, channel, false, axes), axes,
	                        op_float(op, "epsilon", 1e-5));
	out = shaped_like(b, out, t);
	results[0] = scale_shift(b, out, scale ? tensor_along(b, scale, t->rank, channel) : NULL,
	                         bias ? tensor_along(b, bias, t->rank, channel) : NULL);
	return results[0] != NULL;
}

bool define_hook_affine_channel(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int rank = x->type->rank, channel = channel_axis(op, rank);
	results[0] = scale_shift(b, x, tensor_along(b, op_operand(op, 1), rank, channel),
	                         tensor_along(b, op_operand(op, 2), rank, channel));
	return results[0] != NULL;
}

// mid_out = k + alpha * sum of squares of n channels around; out = x / mid_out ^ beta
bool define_hook_lrn(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *t = x->type;
	int channel = channel_axis(op, t->rank);
	int64_t count = op_int(op, "n", 5);
	const Dim *extent = dim_const(b->ctx, count);
	if (channel >= t->rank)
		return op_error(op, "there is no axis of channels among %d", t->rank);
	Nest n = nest_open(b, t);
	Nest r = reduce_open(&n.b, "sum", t->dtype, 1, &extent);
	memcpy(from, n.at, sizeof from);
	from[channel] = index_plus(&r.b, index_add(&r.b, n.at[channel], r.at[0]), -((count - 1) / 2));
	Value *inside = index_inside(&r.b, from[channel], t->dims[channel]);
	Value *near = load_or(&r.b, inside, build_scalar_f(&r.b, t->dtype, 0), x, from);
	Value *sum = reduce_close(&r, tensor_mul(&r.b, near, near));
	sum = tensor_mul(&n.b, sum, build_scalar_f(&n.b, t->dtype, op_float(op, "alpha", 1e-4)));
	sum = tensor_add(&n.b, sum, build_scalar_f(&n.b, t->dtype, op_float(op, "k", 2)));
	results[1] = nest_close(&n, sum);
	if (!results[1])
		return false;
	Value *beta = tensor_number(b, t->dtype, -op_float(op, "beta", 0.75));
	Value *power = build2(b, OP_PD_ELEMENTWISE_POW, results[1], beta, NULL);
	results[0] = tensor_mul(b, x, power);
	return results[0] != NULL;
}

bool define_hook_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int64_t axis = op_int(op, "axis", -1);
	Value *sum = tensor_reduce(b, OP_PD_SUM, tensor_mul(b, x, x), 1, &axis);
	sum = tensor_add(b, sum, tensor_number(b, x->type->dtype, op_float(op, "epsilon", 1e-10)));
	Value *norm = apply1(b, OP_PD_SQRT, sum);
	results[0] = tensor_div(b, x, norm);
	results[1] = norm;
	return results[0] && norm;
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
// choice by class number (nothing where it is ignore_index).
static Value *label_loss(Builder *b, Op *op, Value *log, Value *label, int64_t axis,
                         const Type *type)
{
	if (op_bool(op, "soft_label", false)) {
		Value *sum = tensor_reduce(b, OP_PD_SUM, tensor_mul(b, log, label), 1, &axis);
		return apply1(b, OP_PD_NEGATIVE, sum);
	}
	Value *from[MAX_RANK];
	Nest n = nest_open(b, type);
	DType t = label->type->dtype;
	Value *id = load(&n.b, label, n.at);
	Value *ignore = build_scalar_f(&n.b, t, (double)op_int(op, "ignore_index", -100));
	Value *used = id ? build2(&n.b, OP_PD_NOT_EQUAL, id, ignore, NULL) : NULL;
	Value *safe = index_where(&n.b, used, id, build_scalar_f(&n.b, t, 0));
	memcpy(from, n.at, sizeof from);
	from[axis] = index_from_data(&n.b, safe, log->type->dims[axis], false);
	Value *loss = load_or(&n.b, used, build_scalar_f(&n.b, type->dtype, 0), log, from);
	return nest_close(&n, loss ? build1(&n.b, OP_PD_NEGATIVE, loss, NULL) : NULL);
}

// log(x), where infinities are 1e20 as in Paddle's losses.
static Value *tolerable_log(Builder *b, Value *x)
{
	Value *log = apply1(b, OP_PD_LOG, x);
	Value *up = log ? build2(b, OP_PD_MAXIMUM, tensor_number(b, x->type->dtype, -1e20), log, NULL)
	                : NULL;
	return up ? build2(b, OP_PD_MINIMUM, tensor_number(b, x->type->dtype, 1e20), up, NULL) : NULL;
}

bool define_hook_softmax_cross_entropy(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int64_t axis = axis_norm(op_int(op, "axis", -1), x->type->rank);
	bool use = op_bool(op, "use_softmax", true);
	results[0] = use ? softmax_of(b, x, axis) : apply1(b, OP_PD_ASSIGN, x);
	Value *log = use ? build1(b, OP_PD_LOG_SOFTMAX, x, "axis", attr_int(b->ctx, axis), NULL)
	                 : tolerable_log(b, x);
	results[1] = log ? label_loss(b, op, log, op_operand(op, 1), axis, op->results[1].type) : NULL;
	return results[0] && results[1];
}

bool define_hook_cross_entropy(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *log = tolerable_log(b, x);
	results[0] = log ? label_loss(b, op, log, op_operand(op, 1), x->type->rank - 1,
	                              op->results[0].type)
	                 : NULL;
	return results[0] != NULL;
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

// ---- sines of positions -------------------------------------------------------------------------

// x [n x positions x size]: the first half of a position gets sines, the second cosines.
bool define_hook_position_encoding(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 3);
	if (!t)
		return false;
	if (!dim_is_const(t->dims[2]) || t->dims[2]->value % 2)
		return op_error(op, "the last axis must have an even size that is known");
	const int64_t half = t->dims[2]->value / 2;
	Nest n = nest_open(b, t);
	Value *size = index_const(&n.b, half), *first = index_less(&n.b, n.at[2], size);
	Value *k = scalar_from_index(&n.b, index_mod(&n.b, n.at[2], size), DT_F64);
	Value *place = scalar_from_index(&n.b, n.at[1], DT_F64);
	Value *step = build_scalar_f(&n.b, DT_F64, 10000);
	if (half > 1)
		step = apply2(&n.b, OP_PD_ELEMENTWISE_POW, step,
		              tensor_div(&n.b, k, build_scalar_f(&n.b, DT_F64, (double)(half - 1))));
	Value *angle = scalar_cast(&n.b, tensor_div(&n.b, place, step), t->dtype);
	Value *wave = index_where(&n.b, first, apply1(&n.b, OP_PD_SIN, angle),
	                          apply1(&n.b, OP_PD_COS, angle));
	Value *own = tensor_mul(&n.b, load(&n.b, op_operand(op, 0), n.at),
	                        build_scalar_f(&n.b, t->dtype, op_number(op, "alpha")));
	wave = tensor_mul(&n.b, wave, build_scalar_f(&n.b, t->dtype, op_number(op, "beta")));
	results[0] = nest_close(&n, tensor_add(&n.b, own, wave));
	return results[0] != NULL;
}
