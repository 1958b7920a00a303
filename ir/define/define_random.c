// Random operators (ir/ops/random.yaml), made of pd.uniform. The numbers themselves are not
// Paddle's; their distribution is.
#include "ir/build/counted.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

#include <float.h>
#include <math.h>
#include <string.h>

// Two operations with the same operands at different places are not the same.
bool infer_hook_random(Op *op)
{
	infer_keep_place(op);
	return infer_hook_composed(op);
}

// Uniform numbers between min and max for the place of op.
static Value *uniform_numbers(Builder *b, const Op *op, DType t, int rank, const Dim *const *dims,
                              double min, double max)
{
	Context *c = b->ctx;
	return build(b, OP_PD_UNIFORM, 0, NULL, "shape", attr_dims(c, rank, dims), "dtype",
	             attr_dtype(c, t), "min", attr_float(c, min), "max", attr_float(c, max), "seed",
	             attr_int(c, op_int(op, "seed", 0)), "place", attr_int(c, op_int(op, "place", 0)),
	             NULL);
}

// Exponentially distributed numbers, above zero.
static Value *exponential_numbers(Builder *b, const Op *op, DType t, int rank,
                                  const Dim *const *dims)
{
	Value *u = uniform_numbers(b, op, t, rank, dims, 0, 1);
	// 1 - u is above zero, and where it is 1 the logarithm of what is next to it serves.
	Value *rest = u ? tensor_sub(b, tensor_number(b, t, 1), u) : NULL;
	Value *v = rest ? apply1(b, OP_PD_NEGATIVE, apply1(b, OP_PD_LOG, rest)) : NULL;
	return v ? build2(b, OP_PD_MAXIMUM, v, tensor_number(b, t, 2.9802322387695312e-08), NULL)
	         : NULL;
}

// The column in which the running sum of each row passes what was drawn: [.., draws].
static Value *columns_drawn(Builder *b, Value *x, Value *drawn, bool whole)
{
	int last = x->type->rank - 1;
	const Dim *size = x->type->dims[last];
	Value *sums = scan_along(b, x, "sum", last, false, false, NULL), *from[MAX_RANK];
	if (!sums || !drawn)
		return NULL;
	Nest n = nest_open(b, type_like(b->ctx, drawn->type, DT_I64));
	memcpy(from, n.at, sizeof from);
	from[last] = index_dim(&n.b, dim_sub(b->ctx, size, dim_const(b->ctx, 1)));
	Value *mark = load(&n.b, drawn, n.at);
	mark = whole ? tensor_mul(&n.b, mark, load(&n.b, sums, from)) : mark;
	Nest s = reduce_open(&n.b, "sum", DT_I64, 1, &size);
	from[last] = s.at[0];
	Value *passed = apply2(&s.b, OP_PD_LESS_EQUAL, load(&s.b, sums, from), mark);
	Value *count = reduce_close(&s, scalar_cast(&s.b, passed, DT_I64));
	Value *most = scalar_from_index(
		&n.b, index_dim(&n.b, dim_sub(b->ctx, size, dim_const(b->ctx, 1))), DT_I64);
	return nest_close(&n, apply2(&n.b, OP_PD_MINIMUM, count, most));
}

bool define_hook_multinomial(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	const Dim *dims[MAX_RANK], *count;
	if (!t || t->rank < 1)
		return t && op_error(op, "no axis of probabilities");
	if (infer_sizes(op, "num_samples", &count, 1) != 1)
		count = dim_const(c, op_int(op, "num_samples", 1));
	memcpy(dims, t->dims, sizeof dims[0] * (size_t)t->rank);
	int last = t->rank - 1;
	if (op_bool(op, "replacement", false)) {
		dims[last] = count;
		results[0] = columns_drawn(b, op_operand(op, 0),
		                           uniform_numbers(b, op, t->dtype, t->rank, dims, 0, 1), true);
		return results[0] != NULL;
	}
	if (!dim_is_const(count))
		return op_error(op, "the number of samples must be known when the program is compiled");
	// Those with the largest ratio of probability and exponential number, in this order, are drawn
	// one after the other.
	Value *keys = tensor_div(b, op_operand(op, 0),
	                         exponential_numbers(b, op, t->dtype, t->rank, dims));
	const NamedAttr attrs[] = {{"k", attr_int(c, count->value)}, {"axis", attr_int(c, last)}};
	Op *top = keys ? build_op(b, OP_PD_TOPK, 1, &keys, 2, attrs) : NULL;
	results[0] = top ? op_result(top, 1) : NULL;
	return results[0] != NULL;
}

bool define_hook_sampling_id(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 2);
	if (!t)
		return false;
	const Dim *dims[] = {t->dims[0], dim_const(b->ctx, 1)};
	Value *drawn = uniform_numbers(b, op, t->dtype, 2, dims, op_number(op, "min"),
	                               op_number(op, "max"));
	results[0] = tensor_reshape(b, columns_drawn(b, op_operand(op, 0), drawn, false), 1, dims);
	return results[0] != NULL;
}

// The numbers below `size` in random order, as i64.
static Value *random_order(Builder *b, const Op *op, const Dim *size)
{
	Value *keys = uniform_numbers(b, op, DT_F32, 1, &size, 0, 1);
	Op *order = keys ? build_op(b, OP_PD_ARGSORT, 1, &keys, 0, NULL) : NULL;
	return order ? op_result(order, 1) : NULL;
}

bool define_hook_randperm(Builder *b, Op *op, Value **results)
{
	int64_t n = op_int(op, "n", 0);
	if (n < 0)
		return op_error(op, "%lld numbers", (long long)n);
	results[0] = tensor_cast(b, random_order(b, op, dim_const(b->ctx, n)),
	                         op_dtype(op, "dtype", DT_I64));
	return results[0] != NULL;
}

bool define_hook_shuffle_batch(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	const Dim *dims[2] = {dim_const(c, 1)}, *one = dim_const(c, 1);
	if (!t || t->rank < 1)
		return false;
	for (int d = 0; d + 1 < t->rank; d++)
		dims[0] = dim_mul(c, dims[0], t->dims[d]);
	dims[1] = t->dims[t->rank - 1];
	Value *rows = tensor_reshape(b, op_operand(op, 0), 2, dims), *seed = op_operand(op, 1);
	results[1] = random_order(b, op, dims[0]);
	Value *moved = tensor_rows(b, rows, results[1]);
	results[0] = tensor_reshape(b, moved, t->rank, t->dims);
	results[2] = seed ? tensor_cast(b, tensor_reshape(b, seed, 1, &one), DT_I64)
	                  : build_number(b, DT_I64, 1, op_int(op, "startup_seed", 0));
	return results[0] && results[1] && results[2];
}

bool define_hook_rrelu(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	double low = op_number(op, "lower"), high = op_number(op, "upper");
	Value *x = op_operand(op, 0), *slope;
	if (!t || low > high)
		return t && op_error(op, "lower is above upper");
	if (op_bool(op, "is_test", false))
		slope = tensor_number(b, t->dtype, (low + high) / 2);
	else
		slope = uniform_numbers(b, op, t->dtype, t->rank, t->dims, low, high);
	Value *below = slope ? build2(b, OP_PD_LESS_THAN, x, tensor_number(b, t->dtype, 0), NULL)
	                     : NULL;
	Value *const choice[] = {below, slope, tensor_number(b, t->dtype, 1)};
	results[1] = below ? build(b, OP_PD_WHERE, 3, choice, NULL) : NULL;
	results[0] = tensor_mul(b, x, results[1]);
	return results[0] && results[1];
}

bool define_hook_exponential(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	double rate = op_number(op, "rate");
	if (!t || !(rate > 0))
		return t && op_error(op, "a rate that is not positive");
	results[0] = tensor_div(b, exponential_numbers(b, op, t->dtype, t->rank, t->dims),
	                        tensor_number(b, t->dtype, rate));
	return results[0] != NULL;
}

bool define_hook_random_like(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_tensor(op, 0);
	if (!t)
		return false;
	if (op->code == OP_PD_UNIFORM_INPLACE) {
		if (op_int(op, "diag_num", 0))
			return op_error(op, "a diagonal of its own is not supported");
		results[0] = uniform_numbers(b, op, t->dtype, t->rank, t->dims, op_number(op, "min"),
		                             op_number(op, "max"));
		return results[0] != NULL;
	}
	results[0] = build(b, OP_PD_GAUSSIAN, 0, NULL, "shape", attr_dims(c, t->rank, t->dims), "dtype",
	                   attr_dtype(c, t->dtype), "mean", attr_float(c, op_number(op, "mean")), "std",
	                   attr_float(c, op_number(op, "std")), "seed",
	                   attr_int(c, op_int(op, "seed", 0)), "place",
	                   attr_int(c, op_int(op, "place", 0)), NULL);
	return results[0] != NULL;
}

// The inverse of the normal distribution function at numbers that keep within two standard
// deviations.
bool define_hook_truncated_gaussian(Builder *b, Op *op, Value **results)
{
	const double within = 0.9544997361036416; // erf(sqrt(2)): what lies there
	int64_t sizes[MAX_RANK];
	const Dim *dims[MAX_RANK];
	int rank = op_ints(op, "shape", sizes, MAX_RANK);
	DType t = op_dtype(op, "dtype", DT_F32);
	for (int d = 0; d < rank; d++)
		dims[d] = dim_const(b->ctx, sizes[d]);
	if (rank < 0)
		return op_error(op, "no shape");
	Value *u = uniform_numbers(b, op, t, rank, dims, -within, within),
		  *z = u ? build1(b, OP_PD_ERFINV, u, NULL) : NULL;
	z = tensor_mul(b, z, tensor_number(b, t, 1.4142135623730951 * op_number(op, "std")));
	results[0] = tensor_add(b, z, tensor_number(b, t, op_number(op, "mean")));
	return results[0] != NULL;
}

// Inversion: for k = 0, 1 .. as long as the distribution function at k stays below a uniform
// number, the result counts on. As many steps as the largest mean needs.
bool define_hook_poisson(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	CountedLoop l;
	const Type *t = infer_tensor(op, 0);
	const Dim *one = dim_const(c, 1);
	if (!t)
		return false;
	const Type *wide = type_like(c, t, DT_F64);
	Value *means = tensor_cast(b, op_operand(op, 0), DT_F64),
		  *u = uniform_numbers(b, op, DT_F64, t->rank, t->dims, 0, 1);
	Value *most = means ? build1(b, OP_PD_MAX, means, "reduce_all", attr_bool(c, true), NULL)
	                    : NULL;
	Value *spread = most ? tensor_mul(b, apply1(b, OP_PD_SQRT, most), tensor_number(b, DT_F64, 12))
	                     : NULL;
	Value *bound = tensor_add(b, tensor_add(b, most, spread), tensor_number(b, DT_F64, 32));
	Value *steps = tensor_reshape(b, tensor_cast(b, bound, DT_I64), 1, &one);
	Value *chance = means ? apply1(b, OP_PD_EXP, apply1(b, OP_PD_NEGATIVE, means)) : NULL;
	Value *const inits[] = {chance, chance,
	                        build_full(b, wide, 0)}; // of k, of up to k, and how many were passed
	if (!steps || !chance || !u || !count_begin(&l, b, steps, false, 3, inits))
		return false;
	Value *passed = build2(&l.b, OP_PD_LESS_EQUAL, l.args[1], u, NULL), *next[3];
	next[2] = passed ? tensor_add(&l.b, l.args[2], tensor_cast(&l.b, passed, DT_F64)) : NULL;
	Value *k = tensor_reshape(&l.b, tensor_cast(&l.b, l.at, DT_F64), 0, NULL);
	Value *ratio = tensor_div(&l.b, means, tensor_add(&l.b, k, tensor_number(&l.b, DT_F64, 1)));
	next[0] = tensor_mul(&l.b, l.args[0], ratio);
	next[1] = tensor_add(&l.b, l.args[1], next[0]);
	if (!next[0] || !next[1] || !next[2] || !count_end(&l, next))
		return false;
	results[0] = tensor_cast(b, count_result(&l, 2), t->dtype);
	return results[0] != NULL;
}

bool define_hook_seed(Builder *b, Op *op, Value **results)
{
	const Dim *one = dim_const(b->ctx, 1);
	const int64_t seed = op_int(op, "seed", 0);
	Value *u = seed ? NULL : uniform_numbers(b, op, DT_F64, 1, &one, 1, 2147483647);
	results[0] = seed ? build_number(b, DT_I32, 1, seed) : tensor_cast(b, u, DT_I32);
	return results[0] != NULL;
}

// ---- noise contrastive estimation ---------------------------------------------------------------

typedef struct Nce {
	Op *op;
	Value *labels; // [rows, true ones and then drawn ones], i64
	int64_t classes, drawn;
	bool logarithmic;  // class k with a chance of log((k + 2) / (k + 1)) / log(classes + 1)
	const Dim *wanted; // how many are true
} Nce;

// Classes drawn for each row.
static Value *nce_drawn(Builder *b, const Nce *k, const Dim *rows)
{
	const Dim *dims[] = {rows, dim_const(b->ctx, k->drawn)};
	double top = k->logarithmic ? log((double)k->classes + 1) : (double)k->classes;
	Value *u = uniform_numbers(b, k->op, DT_F64, 2, dims, 0, top);
	if (u && k->logarithmic)
		u = tensor_sub(b, apply1(b, OP_PD_EXP, u), tensor_number(b, DT_F64, 1));
	u = u ? tensor_cast(b, u, DT_I64) : NULL;
	return u ? build2(b, OP_PD_MINIMUM, u, tensor_number(b, DT_I64, (double)(k->classes - 1)), NULL)
	         : NULL;
}

// The class at a position, and how likely it is: its chance to be drawn times the number of draws.
static Value *nce_noise(Builder *b, const Nce *k, Value *label, DType t)
{
	if (!k->logarithmic)
		return build_scalar_f(b, t, (double)k->drawn / (double)k->classes);
	Value *v = scalar_cast(b, label, t), *one = build_scalar_f(b, t, 1);
	Value *ratio = tensor_div(b, tensor_add(b, v, build_scalar_f(b, t, 2)), tensor_add(b, v, one));
	double times = (double)k->drawn / log((double)k->classes + 1);
	return tensor_mul(b, apply1(b, OP_PD_LOG, ratio), build_scalar_f(b, t, times));
}

// [rows, labels]: the chance of each label.
static Value *nce_chances(Builder *b, const Nce *k)
{
	Value *x = op_operand(k->op, 0), *w = op_operand(k->op, 2), *bias = op_operand(k->op, 3);
	const Dim *width = x->type->dims[1];
	Nest n = nest_open(b, type_like(b->ctx, k->labels->type, x->type->dtype));
	Value *at = index_from_data(&n.b, load(&n.b, k->labels, n.at), w->type->dims[0], false);
	Nest s = reduce_open(&n.b, "sum", x->type->dtype, 1, &width);
	Value *from[] = {n.at[0], s.at[0]}, *row[] = {at, s.at[0]};
	Value *sum = reduce_close(&s, tensor_mul(&s.b, load(&s.b, x, from), load(&s.b, w, row)));
	Value *first[] = {at, index_const(&n.b, 0)};
	sum = sum && bias ? tensor_add(&n.b, sum, load(&n.b, bias, first)) : sum;
	Value *one = build_scalar_f(&n.b, x->type->dtype, 1);
	Value *falls = sum ? apply1(&n.b, OP_PD_EXP, apply1(&n.b, OP_PD_NEGATIVE, sum)) : NULL;
	return nest_close(&n, falls ? tensor_div(&n.b, one, tensor_add(&n.b, one, falls)) : NULL);
}

static Value *nce_cost(Builder *b, const Nce *k, Value *chances)
{
	Value *weights = op_operand(k->op, 4);
	const Type *t = chances->type;
	const Dim *dims[] = {t->dims[0], dim_const(b->ctx, 1)}, *count = t->dims[1];
	Nest n = nest_open(b, type_tensor(b->ctx, t->dtype, 2, dims, 0));
	Nest s = reduce_open(&n.b, "sum", t->dtype, 1, &count);
	Value *from[] = {n.at[0], s.at[0]}, *chance = load(&s.b, chances, from);
	Value *noise = nce_noise(&s.b, k, load(&s.b, k->labels, from), t->dtype);
	Value *is_true = index_less(&s.b, s.at[0], index_dim(&s.b, k->wanted));
	Value *part = tensor_div(&s.b, index_where(&s.b, is_true, chance, noise),
	                         tensor_add(&s.b, chance, noise));
	Value *cost = apply1(&s.b, OP_PD_NEGATIVE, apply1(&s.b, OP_PD_LOG, part));
	cost = reduce_close(&s, cost);
	if (cost && weights)
		cost = tensor_mul(&n.b, cost, load(&n.b, weights, n.at));
	return nest_close(&n, cost);
}

// Checks operands and attributes.
static bool nce_read(Nce *k, Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 2), *label = x ? infer_tensor(op, 1) : NULL,
			   *w = label ? infer_rank(op, 2, 2) : NULL;
	const int64_t sampler = op_int(op, "sampler", 0);
	const Dim *same;
	*k = (Nce){.op = op,
	           .classes = op_int(op, "num_total_classes", 0),
	           .drawn = op_int(op, "num_neg_samples", 10),
	           .logarithmic = sampler == 1};
	if (!w)
		return false;
	if (sampler < 0 || sampler > 1)
		return op_error(op, "a distribution of its own is not supported");
	if (k->classes < 1 || k->drawn < 0 || label->rank < 1 || label->rank > 2)
		return op_error(op, "%lld classes", (long long)k->classes);
	k->wanted = label->rank == 2 ? label->dims[1] : dim_const(c, 1);
	return infer_same_dim(op, label->dims[0], x->dims[0], "rows", &same) &&
	       infer_same_dim(op, w->dims[0], dim_const(c, k->classes), "classes", &same) &&
	       infer_same_dim(op, w->dims[1], x->dims[1], "widths", &same);
}

bool define_hook_nce(Builder *b, Op *op, Value **results)
{
	Nce k;
	if (!nce_read(&k, op))
		return false;
	const Dim *dims[] = {op_operand(op, 0)->type->dims[0], k.wanted};
	Value *parts[] = {tensor_cast(b, tensor_reshape(b, op_operand(op, 1), 2, dims), DT_I64),
	                  nce_drawn(b, &k, dims[0])};
	results[2] = tensor_concat(b, 2, parts, 1);
	k.labels = results[2];
	results[1] = results[2] ? nce_chances(b, &k) : NULL;
	results[0] = results[1] ? nce_cost(b, &k, results[1]) : NULL;
	return results[0] != NULL;
}
