// Normalisations (ir/ops/nn.yaml) as compositions.
#include "ir/loss/loss.h"
#include "ir/define/define.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

#include <string.h>

// x * scale + bias, either of which may be missing.
static Value *scale_shift(Builder *b, Value *x, Value *scale, Value *bias)
{
	x = scale ? tensor_mul(b, x, scale) : x;
	return bias ? tensor_add(b, x, bias) : x;
}

Value *normalized(Builder *b, Value *x, int n, const int64_t *axes, double epsilon,
                  Value **deviation)
{
	Value *mean = tensor_reduce(b, OP_PD_MEAN, x, n, axes);
	Value *way = tensor_sub(b, x, mean);
	Value *variance = tensor_reduce(b, OP_PD_MEAN, tensor_mul(b, way, way), n, axes);
	Value *safe = tensor_add(b, variance, tensor_number(b, x->type->dtype, epsilon));
	Value *root = apply1(b, OP_PD_SQRT, safe);
	if (deviation)
		*deviation = root;
	return tensor_div(b, way, root);
}

int other_axes(int rank, int channel, bool batch, int64_t *axes)
{
	int n = 0;
	for (int d = batch ? 0 : 1; d < rank; d++)
		if (d != channel)
			axes[n++] = d;
	return n;
}

// Whether a channel of the batch may be one element, of which Paddle makes no statistics: for_one
// takes the place of each of the n values then.
static bool choose_for_one(Builder *b, const Type *t, int naxes, const int64_t *axes, int n,
                           Value *const *for_one, Value **values)
{
	const Dim *count = dim_const(b->ctx, 1);
	int64_t least, most;
	for (int i = 0; i < naxes; i++)
		count = dim_mul(b->ctx, count, t->dims[axes[i]]);
	dim_range(count, &least, &most);
	if (least > 1)
		return true;
	Nest nest = nest_open(b, type_tensor(b->ctx, DT_BOOL, 0, NULL, 0));
	Value *same = index_equal(&nest.b, index_dim(&nest.b, count), index_const(&nest.b, 1));
	Value *alone = nest_close(&nest, same);
	for (int i = 0; alone && i < n; i++) {
		Value *const choice[] = {alone, for_one[i], values[i]};
		values[i] = values[i] ? build(b, OP_PD_WHERE, 3, choice, NULL) : NULL;
	}
	return alone != NULL;
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
		const int n = other_axes(rank, channel, true, axes);
		Value *out = normalized(b, x, n, axes, epsilon, NULL);
		out = scale_shift(b, out, scale ? tensor_along(b, scale, rank, channel) : NULL,
		                  bias ? tensor_along(b, bias, rank, channel) : NULL);
		if (!choose_for_one(b, op_operand(op, 0)->type, n, axes, 1, &x, &out))
			return false;
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
	Value *zero = tensor_number(b, t, 0), *const for_one[] = {mean, variance, zero, zero};
	return choose_for_one(b, op_operand(op, 0)->type, n, axes, 4, for_one, results) && results[0] &&
	       results[1] && results[2] && results[3];
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
	Value *out = normalized(b, x, n, axes, op_float(op, "epsilon", 1e-5), NULL);
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

// Of each row, which begins at axis `first`: its mean, and what the operator calls its variance and
// is the inverse of the standard deviation.
static bool row_moments(Builder *b, Value *x, int first, double epsilon, Value **results)
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
	spread = spread ? tensor_add(b, spread, tensor_number(b, spread->type->dtype, epsilon)) : NULL;
	spread = spread ? build1(b, OP_PD_RSQRT, spread, NULL) : NULL;
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
	return results[0] && row_moments(b, x, first, op_number(op, "epsilon"), results + 2);
}

bool define_hook_instance_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *scale = op_operand(op, 1), *bias = op_operand(op, 2);
	int64_t axes[MAX_RANK];
	const Type *t = x->type;
	// Without axes of positions there is one, of which the mean is that of one element, not of all.
	const Dim *shape[] = {t->dims[0], t->dims[1], dim_const(b->ctx, 1)};
	if (t->rank == 2 && !(x = tensor_reshape(b, x, 3, shape)))
		return false;
	int rank = x->type->rank, n = other_axes(rank, 1, false, axes);
	Value *out = normalized(b, x, n, axes, op_float(op, "epsilon", 1e-5), NULL);
	out = scale_shift(b, out, scale ? tensor_along(b, scale, rank, 1) : NULL,
	                  bias ? tensor_along(b, bias, rank, 1) : NULL);
	results[0] = out && t->rank == 2 ? tensor_reshape(b, out, 2, shape) : out;
	return results[0] != NULL;
}

Value *groups_split(Builder *b, const Op *op, Value *x, int *n, int64_t *axes)
{
	Context *c = b->ctx;
	const Type *t = x->type;
	const Dim *shape[MAX_RANK + 1], *groups = dim_const(c, op_int(op, "groups", 1));
	int channel = channel_axis(op, t->rank), rank = 0;
	for (int d = 0; d < t->rank; d++) {
		if (d == channel)
			shape[rank++] = groups;
		shape[rank++] = d == channel ? dim_div(c, t->dims[d], groups) : t->dims[d];
	}
	*n = other_axes(rank, channel, false, axes);
	return tensor_reshape(b, x, rank, shape);
}

bool define_hook_group_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *scale = op_operand(op, 1), *bias = op_operand(op, 2);
	const Type *t = x->type;
	int channel = channel_axis(op, t->rank), n;
	int64_t axes[MAX_RANK];
	Value *split = groups_split(b, op, x, &n, axes);
	if (!split)
		return false;
	Value *out = normalized(b, split, n, axes, op_float(op, "epsilon", 1e-5), NULL);
	out = tensor_reshape(b, out, t->rank, t->dims);
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

// ---- by the largest singular value --------------------------------------------------------------

// v over its length and eps, as a column.
static Value *shortened(Builder *b, Value *v, double eps)
{
	const int64_t rows[] = {0};
	if (!v)
		return NULL;
	Value *size = apply1(b, OP_PD_SQRT, tensor_reduce(b, OP_PD_SUM, tensor_mul(b, v, v), 1, rows));
	return tensor_div(b, v, tensor_add(b, size, tensor_number(b, v->type->dtype, eps)));
}

static Value *product(Builder *b, Value *x, Value *y, bool transposed)
{
	return x && y
	           ? build2(b, OP_PD_MATMUL, x, y, "transpose_x", attr_bool(b->ctx, transposed), NULL)
	           : NULL;
}

bool spectral_estimate(Builder *b, Op *op, Spectral *s)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	int axis;
	int64_t rounds = op_int(op, "power_iters", 1);
	double eps = op_number(op, "eps");
	const Dim *one = dim_const(c, 1);
	if (!t || !infer_axis(op, op_int(op, "dim", 0), t->rank, &axis))
		return false;
	if (rounds < 0 || rounds > 1000)
		return op_error(op, "%lld rounds", (long long)rounds);
	s->flat[1] = one;
	for (int d = 0, n = 1; d < t->rank; d++)
		if (d != axis) {
			s->perm[n] = d;
			s->dims[n++] = t->dims[d];
			s->flat[1] = dim_mul(c, s->flat[1], t->dims[d]);
		}
	s->perm[0] = axis;
	s->dims[0] = s->flat[0] = t->dims[axis];
	Value *w = spectral_matrix(b, s, op_operand(op, 0));
	const Dim *rows[] = {s->flat[0], one}, *cols[] = {s->flat[1], one};
	s->u = tensor_reshape(b, op_operand(op, 1), 2, rows);
	s->v = tensor_reshape(b, op_operand(op, 2), 2, cols);
	for (int64_t i = 0; i < rounds; i++) {
		s->v = shortened(b, product(b, w, s->u, true), eps);
		s->u = shortened(b, product(b, w, s->v, false), eps);
	}
	s->sigma = tensor_reshape(b, product(b, s->u, product(b, w, s->v, false), true), 0, NULL);
	return s->sigma != NULL;
}

Value *spectral_matrix(Builder *b, const Spectral *s, Value *w)
{
	return tensor_reshape(b, tensor_transpose(b, w, w->type->rank, s->perm), 2, s->flat);
}

bool define_hook_spectral_norm(Builder *b, Op *op, Value **results)
{
	Spectral s;
	if (!spectral_estimate(b, op, &s))
		return false;
	results[0] = tensor_div(b, op_operand(op, 0), s.sigma);
	return results[0] != NULL;
}
