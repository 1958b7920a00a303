// Linear algebra (ir/ops/linalg.yaml) from factorisations (algebra.h).
#include "ir/algebra/algebra.h"

#include <float.h>
#include <math.h>
#include <string.h>

static bool is_square(const Op *op, const Type *t)
{
	const Dim *same;
	return infer_same_dim(op, t->dims[t->rank - 2], t->dims[t->rank - 1], "rows and columns",
	                      &same);
}

// Operand i holds real matrices: its type.
static const Type *matrix_type(const Op *op, int i, bool square)
{
	const Type *t = infer_tensor(op, i);
	if (!t)
		return NULL;
	if (t->rank < 2 || (t->dtype != DT_F32 && t->dtype != DT_F64)) {
		op_error(op, "matrices of f32 or f64 are needed, not %d axes of %s", t->rank,
		         dtype_name(t->dtype));
		return NULL;
	}
	return !square || is_square(op, t) ? t : NULL;
}

// Operand i holds matrices that may be complex, too: its type.
static const Type *any_matrix(const Op *op, int i, bool square)
{
	const Type *t = infer_tensor(op, i);
	if (!t || t->rank < 2 || !dtype_is_complex(t->dtype))
		return matrix_type(op, i, square);
	return !square || is_square(op, t) ? t : NULL;
}

// Matrices a and y with the leading axes that both broadcast to; *like has these axes and y's
// matrix.
static bool matrices_pair(Builder *b, const Op *op, Value **a, Value **y, const Type **like)
{
	Context *c = b->ctx;
	const Type *p = (*a)->type, *q = (*y)->type;
	const Dim *dims[MAX_RANK + 2];
	int rank;
	if (!infer_broadcast_open(op, p->rank - 2, p->dims, q->rank - 2, q->dims, &rank, dims))
		return false;
	Value **each[] = {a, y};
	for (int i = 0; i < 2; i++) {
		const Type *t = (*each[i])->type;
		dims[rank] = t->dims[t->rank - 2];
		dims[rank + 1] = t->dims[t->rank - 1];
		if (t->rank != rank + 2 || memcmp(t->dims, dims, sizeof dims[0] * (size_t)rank))
			*each[i] = build1(b, OP_PD_EXPAND, *each[i], "shape", attr_dims(c, rank + 2, dims),
			                  NULL);
		if (!*each[i])
			return false;
	}
	*like = type_tensor(c, q->dtype, rank + 2, dims, 0);
	*a = matrices_of(b, *a);
	*y = matrices_of(b, *y);
	return *a && *y;
}

// ---- factorisations -----------------------------------------------------------------------------

bool define_hook_cholesky(Builder *b, Op *op, Value **results)
{
	const Type *t = matrix_type(op, 0, true);
	bool upper = op_bool(op, "upper", false);
	Value *x = t ? matrices_of(b, op_operand(op, 0)) : NULL;
	x = matrices_cholesky(b, upper ? matrices_transposed(b, x) : x);
	results[0] = matrices_back(b, upper ? matrices_transposed(b, x) : x, t, 2);
	return results[0] != NULL;
}

bool define_hook_lu(Builder *b, Op *op, Value **results)
{
	const Type *t = any_matrix(op, 0, false);
	if (t && !op_bool(op, "pivots", true))
		return op_error(op, "only with pivots");
	Lu lu = t ? matrices_lu(b, matrices_of(b, op_operand(op, 0))) : (Lu){NULL, NULL, NULL};
	results[0] = matrices_back(b, lu.both, t, 2);
	results[1] = matrices_back(b, lu.pivots, t, 2);
	results[2] = t ? build_full(b, type_tensor(b->ctx, DT_I32, t->rank - 2, t->dims, 0), 0) : NULL;
	return results[0] && results[1] && results[2];
}

bool define_hook_lu_unpack(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	CountedLoop l;
	const Type *t = any_matrix(op, 0, false), *p = t ? infer_tensor(op, 1) : NULL;
	Value *x = p ? matrices_of(b, op_operand(op, 0)) : NULL;
	if (!x)
		return false;
	const Dim *rows = x->type->dims[1], *cols = x->type->dims[2], *count = dim_min(c, rows, cols),
			  *none = dim_const(c, 0);
	results[1] = matrices_back(
		b, matrices_triangle(b, matrices_part(b, x, 2, none, count), false, true), t, 2);
	results[2] = matrices_back(
		b, matrices_triangle(b, matrices_part(b, x, 1, none, count), true, false), t, 2);
	const Dim *pivot_dims[] = {x->type->dims[0], count}, *row_dims[] = {x->type->dims[0], rows};
	Value *pivots = tensor_cast(b, tensor_reshape(b, op_operand(op, 1), 2, pivot_dims), DT_I64);
	Nest s = nest_open(b, type_tensor(c, DT_I64, 2, row_dims, 0));
	Value *order = nest_close(&s, scalar_from_index(&s.b, s.at[1], DT_I64));
	// The swaps one after the other give where each row came from.
	Value *steps = pivots && order ? build_size(b, pivots, 1) : NULL;
	if (!steps || !count_begin(&l, b, steps, false, 1, &order))
		return false;
	Nest o = nest_open(&l.b, order->type);
	Value *k = loop_position(&o.b, l.at, count), *own[] = {o.at[0], k};
	Value *with = index_plus(
		&o.b,
		index_from_data(&o.b, load(&o.b, pivots, own), dim_add(c, rows, dim_const(c, 1)), false),
		-1);
	Value *from = index_where(&o.b, index_equal(&o.b, o.at[1], k), with,
	                          index_where(&o.b, index_equal(&o.b, o.at[1], with), k, o.at[1]));
	Value *at[] = {o.at[0], from}, *next = nest_close(&o, load(&o.b, l.args[0], at));
	if (!next || !count_end(&l, &next))
		return false;
	const Dim *dims[] = {x->type->dims[0], rows, rows};
	Nest n = nest_open(b, type_tensor(c, t->dtype, 3, dims, 0));
	Value *col[] = {n.at[0], n.at[2]},
		  *row = index_from_data(&n.b, load(&n.b, count_result(&l, 0), col), rows, false);
	results[0] = matrices_back(
		b, nest_close(&n, scalar_cast(&n.b, index_equal(&n.b, row, n.at[1]), t->dtype)), t, 2);
	return results[0] && results[1] && results[2];
}

bool define_hook_qr(Builder *b, Op *op, Value **results)
{
	const Type *t = matrix_type(op, 0, false);
	const int mode = op_enum(op, "mode");
	Value *q, *r, *x = t ? matrices_of(b, op_operand(op, 0)) : NULL;
	const bool complete = mode == QR_COMPLETE;
	if (!x || !matrices_qr(b, x, &q, &r))
		return false;
	const Dim *none = dim_const(b->ctx, 0),
			  *count = dim_min(b->ctx, x->type->dims[1], x->type->dims[2]);
	if (!complete) {
		q = matrices_part(b, q, 2, none, count);
		r = matrices_part(b, r, 1, none, count);
	}
	results[0] = matrices_back(b, q, t, 2);
	results[1] = matrices_back(b, r, t, 2);
	return results[0] && results[1];
}

// The triangle that is given, on both sides of the diagonal.
static Value *symmetric(Builder *b, Value *x, bool upper)
{
	if (!x)
		return NULL;
	Nest n = nest_open(b, x->type);
	Value *low = index_min(&n.b, n.at[1], n.at[2]), *high = index_max(&n.b, n.at[1], n.at[2]);
	Value *from[] = {n.at[0], upper ? low : high, upper ? high : low};
	return nest_close(&n, load(&n.b, x, from));
}

static bool eigen_of(Builder *b, const Op *op, Value **values, Value **vectors)
{
	const Type *t = matrix_type(op, 0, true);
	if (!t)
		return false;
	if (!matrices_eigen(
			b, symmetric(b, matrices_of(b, op_operand(op, 0)), op_enum(op, "UPLO") == TRIANGLE_U),
			values, vectors))
		return false;
	*values = matrices_back(b, *values, t, 2);
	*vectors = matrices_back(b, *vectors, t, 2);
	return *values && *vectors;
}

// eigh, and eigvalsh, whose vectors nobody reads.
bool define_hook_eigh(Builder *b, Op *op, Value **results)
{
	return eigen_of(b, op, &results[0], &results[1]);
}

bool define_hook_svd(Builder *b, Op *op, Value **results)
{
	const Type *t = matrix_type(op, 0, false);
	Value *u, *s, *v;
	if (!t || !matrices_svd(b, matrices_of(b, op_operand(op, 0)),
	                        op_bool(op, "full_matrices", false), &u, &s, &v))
		return false;
	results[0] = matrices_back(b, u, t, 2);
	results[1] = matrices_back(b, s, t, 2);
	results[2] = matrices_back(b, matrices_transposed(b, v), t, 2);
	return results[0] && results[1] && results[2];
}

// ---- systems ------------------------------------------------------------------------------------

bool define_hook_triangular_solve(Builder *b, Op *op, Value **results)
{
	Value *a = op_operand(op, 0), *y = op_operand(op, 1);
	const Type *like;
	if (!any_matrix(op, 0, true) || !any_matrix(op, 1, false) ||
	    !matrices_pair(b, op, &a, &y, &like))
		return false;
	Value *x = matrices_solve_triangle(b, a, y, op_bool(op, "upper", true),
	                                   op_bool(op, "transpose", false),
	                                   op_bool(op, "unitriangular", false));
	results[0] = matrices_back(b, x, like, 2);
	return results[0] != NULL;
}

bool define_hook_cholesky_solve(Builder *b, Op *op, Value **results)
{
	Value *y = op_operand(op, 0), *a = op_operand(op, 1);
	const Type *like;
	bool upper = op_bool(op, "upper", false);
	if (!matrix_type(op, 0, false) || !matrix_type(op, 1, true) ||
	    !matrices_pair(b, op, &a, &y, &like))
		return false;
	Value *half = matrices_solve_triangle(b, a, y, upper, upper, false);
	results[0] = matrices_back(b, matrices_solve_triangle(b, a, half, upper, !upper, false), like,
	                           2);
	return results[0] != NULL;
}

bool define_hook_solve(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *a = op_operand(op, 0), *y = op_operand(op, 1);
	const Type *t = matrix_type(op, 0, true), *s = t ? infer_tensor(op, 1) : NULL, *like;
	const Dim *dims[MAX_RANK + 1];
	if (!s)
		return false;
	bool vector = s->rank == 1 || (s->rank == t->rank - 1 &&
	                               !memcmp(s->dims, t->dims, sizeof s->dims[0] * (size_t)s->rank));
	if (vector) {
		memcpy(dims, s->dims, sizeof dims[0] * (size_t)s->rank);
		dims[s->rank] = dim_const(c, 1);
		y = tensor_reshape(b, y, s->rank + 1, dims);
	}
	if (!y)
		return false;
	const Dim *rows = y->type->dims[y->type->rank - 2], *size = t->dims[t->rank - 1];
	if (!check_sizes(b, 1, &rows, &size, false, "rows of the two sides differ") ||
	    !matrices_pair(b, op, &a, &y, &like))
		return false;
	Value *x = matrices_back(b, matrices_solve(b, a, y), like, 2);
	results[0] = x && vector ? tensor_reshape(b, x, like->rank - 1, like->dims) : x;
	return results[0] != NULL;
}

// P L U x = b, or its transpose.
bool define_hook_lu_solve(Builder *b, Op *op, Value **results)
{
	Value *y = op_operand(op, 0), *a = op_operand(op, 1);
	Value *const packed[] = {a, op_operand(op, 2)};
	const Type *like;
	const bool plain = op_enum(op, "trans") == TRANSPOSED_N;
	if (!matrix_type(op, 0, false) || !matrix_type(op, 1, true))
		return false;
	Op *parts = build_op(b, OP_PD_LU_UNPACK, 2, packed, 0, NULL);
	Value *swaps = parts ? op_result(parts, 0) : NULL;
	if (!swaps || !matrices_pair(b, op, &swaps, &y, &like))
		return false;
	y = op_operand(op, 0);
	if (!matrices_pair(b, op, &a, &y, &like))
		return false;
	Value *x = plain ? matrices_product(b, swaps, y, true, false) : y;
	x = matrices_solve_triangle(b, a, x, !plain, !plain, plain);
	x = matrices_solve_triangle(b, a, x, plain, !plain, !plain);
	results[0] = matrices_back(b, plain ? x : matrices_product(b, swaps, x, false, false), like, 2);
	return results[0] != NULL;
}

bool define_hook_inverse(Builder *b, Op *op, Value **results)
{
	const Type *t = any_matrix(op, 0, true);
	Value *x = t ? matrices_of(b, op_operand(op, 0)) : NULL;
	results[0] = x ? matrices_back(
						 b, matrices_solve(b, x, matrices_identity(b, x, x->type->dims[1])), t, 2)
	               : NULL;
	return results[0] != NULL;
}

// x = v diag(1 / s, of those above the limit) u^T y.
bool define_hook_lstsq(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *a = op_operand(op, 0), *y = op_operand(op, 1), *u, *s, *v;
	const LstsqKind driver = (LstsqKind)op_enum(op, "driver");
	const int64_t last[] = {1};
	const Type *like;
	if (!matrix_type(op, 0, false) || !matrix_type(op, 1, false) ||
	    !matrices_pair(b, op, &a, &y, &like) || !matrices_svd(b, a, false, &u, &s, &v))
		return false;
	const Dim *rows = a->type->dims[1], *cols = a->type->dims[2], *none = dim_const(c, 0);
	double least = op_number(op, "rcond");
	if (least <= 0)
		least = a->type->dtype == DT_F32 ? FLT_EPSILON : DBL_EPSILON;
	Value *limit = tensor_mul(b, tensor_reduce(b, OP_PD_MAX, s, 1, last),
	                          tensor_number(b, s->type->dtype, least));
	Value *counts = build2(b, OP_PD_GREATER_THAN, s, limit, NULL),
		  *zero = tensor_number(b, s->type->dtype, 0);
	Value *const choice[] = {counts, apply1(b, OP_PD_RECIPROCAL, s), zero};
	Value *inverse = build(b, OP_PD_WHERE, 3, choice, NULL);
	const Dim *column[] = {s->type->dims[0], s->type->dims[1], dim_const(c, 1)};
	Value *parts = tensor_mul(b, matrices_product(b, u, y, true, false),
	                          tensor_reshape(b, inverse, 3, column));
	Value *x = matrices_product(b, v, parts, false, false);
	results[0] = matrices_back(b, x, like, 2);
	int64_t lo, hi;
	dim_range(dim_sub(c, rows, cols), &lo, &hi);
	if (lo > 0) {
		Value *away = tensor_sub(b, matrices_product(b, a, x, false, false), y);
		const Dim *dims[] = {y->type->dims[0], y->type->dims[2]};
		results[1] = matrices_back(
			b,
			tensor_reshape(b, tensor_reduce(b, OP_PD_SUM, tensor_mul(b, away, away), 1, last), 2,
		                   dims),
			like, 2);
	} else {
		results[1] = build_full(b, type_tensor(c, like->dtype, 1, &none, 0), 0);
	}
	const bool ranks = driver != LSTSQ_GELS,
			   values = driver == LSTSQ_GELSD || driver == LSTSQ_GELSS;
	Value *rank = build1(b, OP_PD_SUM, tensor_cast(b, counts, DT_I32), "axis",
	                     attr_ints(c, 1, last), "dtype", attr_dtype(c, DT_I32), NULL);
	results[2] = ranks ? matrices_back(b, rank, like, 2)
	                   : build_full(b, type_tensor(c, DT_I32, 1, &none, 0), 0);
	results[3] = values ? matrices_back(b, s, like, 2)
	                    : build_full(b, type_tensor(c, like->dtype, 1, &none, 0), 0);
	return results[0] && results[1] && results[2] && results[3];
}

// ---- numbers of matrices ------------------------------------------------------------------------

// Element k of U's diagonal, with the sign of the swap that its row made.
static Value *diagonal_factor(Builder *b, const Lu *lu, Value *batch, Value *k)
{
	Value *at[] = {batch, k, k}, *own[] = {batch, k}, *v = load(b, lu->both, at);
	Value *stays = scalar_from_index(b, index_plus(b, k, 1), DT_I32);
	return index_where(b, apply2(b, OP_PD_EQUAL, load(b, lu->pivots, own), stays), v,
	                   apply1(b, OP_PD_NEGATIVE, v));
}

bool define_hook_determinant(Builder *b, Op *op, Value **results)
{
	const Type *t = any_matrix(op, 0, true);
	Lu lu = t ? matrices_lu(b, matrices_of(b, op_operand(op, 0))) : (Lu){NULL, NULL, NULL};
	if (!lu.both)
		return false;
	Nest n = nest_open(b, type_tensor(b->ctx, t->dtype, 1, lu.both->type->dims, 0));
	Nest p = reduce_open(&n.b, "prod", t->dtype, 1, &lu.both->type->dims[1]);
	results[0] = matrices_back(
		b, nest_close(&n, reduce_close(&p, diagonal_factor(&p.b, &lu, n.at[0], p.at[0]))), t, 2);
	return results[0] != NULL;
}

// v by its size, and 0 of 0.
static Value *sign_of(Builder *b, Value *v, DType t)
{
	Value *zero = build_scalar_f(b, t, 0), *one = build_scalar_f(b, t, 1);
	if (dtype_is_complex(t)) {
		Value *none = apply2(b, OP_PD_EQUAL, v, zero);
		Value *size = scalar_cast(b, apply1(b, OP_PD_ABS, v), t);
		return tensor_div(b, v, index_where(b, none, one, size));
	}
	Value *below = index_where(b, apply2(b, OP_PD_LESS_THAN, v, zero), build_scalar_f(b, t, -1),
	                           zero);
	return index_where(b, apply2(b, OP_PD_GREATER_THAN, v, zero), one, below);
}

bool define_hook_slogdeterminant(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = any_matrix(op, 0, true);
	Lu lu = t ? matrices_lu(b, matrices_of(b, op_operand(op, 0))) : (Lu){NULL, NULL, NULL};
	if (!lu.both)
		return false;
	const Type *type = type_tensor(c, t->dtype, 1, lu.both->type->dims, 0), *types[] = {type, type};
	Nest n = nest_open_several(b, 2, types);
	Nest p = reduce_open(&n.b, "prod", t->dtype, 1, &lu.both->type->dims[1]);
	Value *sign = sign_of(&p.b, diagonal_factor(&p.b, &lu, n.at[0], p.at[0]), t->dtype);
	Value *elements[2] = {reduce_close(&p, sign), NULL}, *parts[2];
	Nest s = reduce_open(&n.b, "sum", dtype_part(t->dtype), 1, &lu.both->type->dims[1]);
	Value *size = apply1(&s.b, OP_PD_ABS, diagonal_factor(&s.b, &lu, n.at[0], s.at[0]));
	elements[1] = scalar_cast(&n.b, reduce_close(&s, apply1(&s.b, OP_PD_LOG, size)), t->dtype);
	if (!nest_close_several(&n, elements, parts))
		return false;
	for (int i = 0; i < 2; i++)
		parts[i] = matrices_back(b, parts[i], t, 2);
	Value *list = parts[0] && parts[1] ? build(b, OP_BUILTIN_COMBINE, 2, parts, NULL) : NULL;
	results[0] = list ? build1(b, OP_PD_STACK, list, "axis", attr_int(c, 0), NULL) : NULL;
	return results[0] != NULL;
}

// x in the shape of these dims and a last one.
static Value *with_last(Builder *b, Value *x, int rank, const Dim *const *dims, const Dim *last)
{
	const Dim *shape[MAX_RANK];
	if (!x || rank >= MAX_RANK)
		return NULL;
	memcpy(shape, dims, sizeof *shape * (size_t)rank);
	shape[rank] = last;
	return tensor_reshape(b, x, rank + 1, shape);
}

// What rounding leaves of the largest singular value of x, as a part of it.
static Value *rounding_part(Builder *b, DType t, const Value *x)
{
	const Dim *size = dim_max(b->ctx, x->type->dims[1], x->type->dims[2]);
	Nest n = nest_open(b, type_tensor(b->ctx, t, 0, NULL, 0));
	Value *eps = build_scalar_f(&n.b, t, t == DT_F32 ? FLT_EPSILON : DBL_EPSILON);
	return nest_close(&n, tensor_mul(&n.b, eps, scalar_from_index(&n.b, index_dim(&n.b, size), t)));
}

// The larger of atol and rtol times the largest of s; without rtol, where atol is 0, times what
// rounding leaves.
static Value *relative_limit(Builder *b, Op *op, const Value *x, Value *s, Value *atol)
{
	const DType t = s->type->dtype;
	const int64_t last = -1;
	Value *rtol = op_operand_named(op, "rtol");
	if (rtol)
		rtol = with_last(b, tensor_cast(b, rtol, t), rtol->type->rank, rtol->type->dims,
		                 dim_const(b->ctx, 1));
	Value *const parts[] = {atol ? build2(b, OP_PD_GREATER_THAN, atol, tensor_number(b, t, 0), NULL)
	                             : NULL,
	                        tensor_number(b, t, 0), rounding_part(b, t, x)};
	if (!rtol && parts[0] && parts[1] && parts[2])
		rtol = build(b, OP_PD_WHERE, 3, parts, NULL);
	Value *top = build1(b, OP_PD_MAX, s, "axis", attr_ints(b->ctx, 1, &last), "keepdim",
	                    attr_bool(b->ctx, true), NULL);
	return atol && rtol && top ? apply2(b, OP_PD_MAXIMUM, atol, tensor_mul(b, rtol, top)) : NULL;
}

// How many singular values (or sizes of eigenvalues) are over the tolerance.
bool define_hook_matrix_rank(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	bool hermitian = op_bool(op, "hermitian", false);
	const Type *t = matrix_type(op, 0, hermitian);
	int64_t last[] = {1};
	Value *u, *s, *v, *given = op_operand(op, 1), *x = t ? matrices_of(b, op_operand(op, 0)) : NULL;
	if (!x || !(hermitian ? matrices_eigen(b, x, &s, &u) : matrices_svd(b, x, false, &u, &s, &v)))
		return false;
	s = hermitian ? apply1(b, OP_PD_ABS, s) : s;
	Value *limit = tensor_number(b, t->dtype, op_number(op, "tol"));
	if (given) {
		limit = tensor_cast(b, given, t->dtype);
		s = with_last(b, s, t->rank - 2, t->dims, s->type->dims[1]);
		limit = with_last(b, limit, given->type->rank, given->type->dims, dim_const(c, 1));
		if (s && op_bool(op, "relative", false))
			limit = relative_limit(b, op, x, s, limit);
	} else if (op_bool(op, "use_default_tol", true)) {
		limit = tensor_mul(b, tensor_reduce(b, OP_PD_MAX, s, 1, last),
		                   rounding_part(b, t->dtype, x));
	}
	Value *counts = s && limit ? build2(b, OP_PD_GREATER_THAN, s, limit, NULL) : NULL;
	last[0] = -1;
	DType whole = op_dtype(op, "dtype", DT_I32);
	Value *count = counts ? build1(b, OP_PD_SUM, tensor_cast(b, counts, whole), "axis",
	                               attr_ints(c, 1, last), "dtype", attr_dtype(c, whole), NULL)
	                      : NULL;
	results[0] = given ? count : matrices_back(b, count, t, 2);
	return results[0] != NULL;
}

// ---- products -----------------------------------------------------------------------------------

bool define_hook_matrix_power(Builder *b, Op *op, Value **results)
{
	const Type *t = any_matrix(op, 0, true);
	int64_t n = op_int(op, "n", 1);
	Value *x = t ? matrices_of(b, op_operand(op, 0)) : NULL, *out = NULL;
	if (!x)
		return false;
	if (n < -INT32_MAX || n > INT32_MAX)
		return op_error(op, "the power %lld", (long long)n);
	if (n < 0)
		x = matrices_solve(b, x, matrices_identity(b, x, x->type->dims[1]));
	for (uint64_t left = (uint64_t)(n < 0 ? -n : n); left; left >>= 1) {
		if (left & 1)
			out = out ? matrices_product(b, out, x, false, false) : x;
		if (left > 1)
			x = matrices_product(b, x, x, false, false);
	}
	out = n ? out : matrices_identity(b, x, x->type->dims[1]);
	results[0] = matrices_back(b, out, t, 2);
	return results[0] != NULL;
}

// From left to right; vectors may stand at the ends.
bool define_hook_multi_dot(Builder *b, Op *op, Value **results)
{
	Value *const *list, *x = NULL;
	int count = op_operand_list(op, 0, &list);
	if (count < 2)
		return op_error(op, "%d matrices", count);
	for (int i = 0; i < count; i++) {
		const Type *t = list[i] ? list[i]->type : NULL;
		bool end = i == 0 || i == count - 1;
		if (!t || !type_is_tensor(t) || (t->rank != 2 && !(end && t->rank == 1)))
			return op_error(op, "element %d is no matrix", i);
		x = !i ? list[i] : x ? build2(b, OP_PD_MATMUL, x, list[i], NULL) : NULL;
	}
	results[0] = x;
	return x != NULL;
}
