// Factorisations of matrices as loops over nests (algebra.h): LU with partial pivoting, Cholesky,
// QR by Householder reflections, triangular systems. A step is a nest over the whole matrix, so
// that batches and threads of a GPU share it.
#include "ir/algebra/algebra.h"

#include <string.h>

// ---- shapes -------------------------------------------------------------------------------------

Value *matrices_of(Builder *b, Value *x)
{
	const Dim *dims[3] = {dim_const(b->ctx, 1)};
	if (!x)
		return NULL;
	const Type *t = x->type;
	for (int d = 0; d + 2 < t->rank; d++)
		dims[0] = dim_mul(b->ctx, dims[0], t->dims[d]);
	dims[1] = t->dims[t->rank - 2];
	dims[2] = t->dims[t->rank - 1];
	return tensor_reshape(b, x, 3, dims);
}

Value *matrices_back(Builder *b, Value *x, const Type *like, int inner)
{
	const Dim *dims[MAX_RANK];
	if (!x)
		return NULL;
	int n = like->rank - inner, rest = x->type->rank - 1;
	memcpy(dims, like->dims, sizeof dims[0] * (size_t)n);
	for (int d = 0; d < rest; d++)
		dims[n + d] = x->type->dims[d + 1];
	return tensor_reshape(b, x, n + rest, dims);
}

Value *matrices_transposed(Builder *b, Value *x)
{
	const int64_t perm[] = {0, 2, 1};
	return x ? tensor_transpose(b, x, 3, perm) : NULL;
}

Value *matrices_product(Builder *b, Value *x, Value *y, bool transpose_x, bool transpose_y)
{
	Context *c = b->ctx;
	return x && y ? build2(b, OP_PD_MATMUL, x, y, "transpose_x", attr_bool(c, transpose_x),
	                       "transpose_y", attr_bool(c, transpose_y), NULL)
	              : NULL;
}

static const Type *matrices_type(Builder *b, Value *x, const Dim *rows, const Dim *cols)
{
	const Dim *dims[] = {x->type->dims[0], rows, cols};
	return type_tensor(b->ctx, x->type->dtype, 3, dims, 0);
}

Value *matrices_identity(Builder *b, Value *x, const Dim *size)
{
	if (!x)
		return NULL;
	Nest n = nest_open(b, matrices_type(b, x, size, size));
	Value *on = index_equal(&n.b, n.at[1], n.at[2]);
	return nest_close(&n, index_where(&n.b, on, build_scalar_f(&n.b, x->type->dtype, 1),
	                                  build_scalar_f(&n.b, x->type->dtype, 0)));
}

Value *matrices_triangle(Builder *b, Value *x, bool upper, bool unit)
{
	if (!x)
		return NULL;
	Nest n = nest_open(b, x->type);
	Value *row = n.at[1], *col = n.at[2];
	Value *keep = upper ? index_less(&n.b, row, index_plus(&n.b, col, !unit))
	                    : index_less(&n.b, col, index_plus(&n.b, row, !unit));
	Value *other = build_scalar_f(&n.b, x->type->dtype, 0);
	if (unit)
		other = index_where(&n.b, index_equal(&n.b, row, col),
		                    build_scalar_f(&n.b, x->type->dtype, 1), other);
	return nest_close(&n, load_or(&n.b, keep, other, x, n.at));
}

Value *matrices_part(Builder *b, Value *x, int axis, const Dim *first, const Dim *count)
{
	const Dim *dims[3];
	Value *from[3];
	if (!x)
		return NULL;
	memcpy(dims, x->type->dims, sizeof dims);
	dims[axis] = count;
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 3, dims, 0));
	memcpy(from, n.at, sizeof from);
	from[axis] = index_add(&n.b, n.at[axis], index_dim(&n.b, first));
	return nest_close(&n, load(&n.b, x, from));
}

Value *matrices_beside(Builder *b, Value *x, Value *y, int axis)
{
	return tensor_concat(b, 2, (Value *const[]){x, y}, axis);
}

Value *loop_position(Builder *b, Value *at, const Dim *size)
{
	return index_from_data(b, load_scalar(b, at), size, false);
}

// As many steps as the smaller of the sizes.
static Value *steps_of(Builder *b, const Dim *rows, const Dim *cols)
{
	const Dim *count = dim_min(b->ctx, rows, cols), *one = dim_const(b->ctx, 1);
	if (dim_is_const(count))
		return build_number(b, DT_I64, 1, count->value);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &one, 0));
	return nest_close(&n, scalar_from_index(&n.b, index_dim(&n.b, count), DT_I64));
}

static Value *both(Builder *b, Value *p, Value *q)
{
	return p && q ? pred_and(b, p, q) : NULL;
}

// ---- LU -----------------------------------------------------------------------------------------

// What a pivot is chosen by: as LAPACK, the sum of both parts' sizes where v is complex.
static Value *pivot_size(Builder *b, Value *v, bool complex)
{
	return complex ? tensor_add(b, apply1(b, OP_PD_ABS, apply1(b, OP_PD_REAL, v)),
	                            apply1(b, OP_PD_ABS, apply1(b, OP_PD_IMAG, v)))
	               : apply1(b, OP_PD_ABS, v);
}

// Of each matrix the row, from k on, whose element in column k is largest: i64 [batch].
static Value *pivot_rows(Builder *b, Value *x, Value *step)
{
	const Dim *rows = x->type->dims[1], *cols = x->type->dims[2];
	const DType t = dtype_part(x->type->dtype);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, x->type->dims, 0));
	Value *row = loop_position(&n.b, step, rows), *col = loop_position(&n.b, step, cols);
	Nest r = reduce_open(&n.b, "argmax", DT_I64, 1, &rows);
	Value *at[] = {n.at[0], r.at[0], col};
	Value *size = pivot_size(&r.b, load(&r.b, x, at), dtype_is_complex(x->type->dtype));
	return nest_close(&n, reduce_close(&r, index_where(&r.b, index_less(&r.b, r.at[0], row),
	                                                   build_scalar_f(&r.b, t, -1), size)));
}

// Where row i of a matrix comes from when rows k and p are swapped.
static Value *swapped_row(Builder *b, Value *i, Value *k, Value *p)
{
	return index_where(b, index_equal(b, i, k), p, index_where(b, index_equal(b, i, p), k, i));
}

// Rows k and p of x swapped, and what is below row k of column k on eliminated.
static Value *lu_step(Builder *b, Value *x, Value *step, Value *pivots)
{
	const Dim *rows = x->type->dims[1], *cols = x->type->dims[2];
	Nest n = nest_open(b, x->type);
	Value *k = loop_position(&n.b, step, rows), *kc = loop_position(&n.b, step, cols);
	Value *p = index_from_data(&n.b, load(&n.b, pivots, n.at), rows, false);
	Value *from = swapped_row(&n.b, n.at[1], k, p);
	Value *own[] = {n.at[0], from, n.at[2]}, *first[] = {n.at[0], from, kc},
		  *pivot[] = {n.at[0], p, kc}, *row[] = {n.at[0], p, n.at[2]};
	Value *v = load(&n.b, x, own), *d = load(&n.b, x, pivot),
		  *zero = build_scalar_f(&n.b, x->type->dtype, 0);
	Value *singular = apply2(&n.b, OP_PD_EQUAL, d, zero);
	Value *factor = tensor_div(
		&n.b, load(&n.b, x, first),
		index_where(&n.b, singular, build_scalar_f(&n.b, x->type->dtype, 1), d));
	Value *rest = tensor_sub(&n.b, v, tensor_mul(&n.b, factor, load(&n.b, x, row)));
	Value *below = index_less(&n.b, k, n.at[1]);
	Value *changed = index_where(&n.b, both(&n.b, below, index_less(&n.b, kc, n.at[2])), rest, v);
	return nest_close(
		&n, index_where(&n.b, both(&n.b, below, index_equal(&n.b, n.at[2], kc)), factor, changed));
}

Lu matrices_lu(Builder *b, Value *x)
{
	Context *c = b->ctx;
	CountedLoop l;
	Lu none = {NULL, NULL, NULL};
	if (!x)
		return none;
	const Dim *rows = x->type->dims[1], *cols = x->type->dims[2], *count = dim_min(c, rows, cols);
	const Dim *pivot_dims[] = {x->type->dims[0], count}, *row_dims[] = {x->type->dims[0], rows};
	Nest s = nest_open(b, type_tensor(c, DT_I64, 2, row_dims, 0));
	Value *order = nest_close(&s, scalar_from_index(&s.b, s.at[1], DT_I64));
	Value *const inits[] = {x, build_full(b, type_tensor(c, DT_I32, 2, pivot_dims, 0), 0), order};
	Value *steps = steps_of(b, rows, cols);
	if (!steps || !inits[1] || !inits[2] || !count_begin(&l, b, steps, false, 3, inits))
		return none;
	count_name(&l, 0, "factors");
	count_name(&l, 1, "pivots");
	count_name(&l, 2, "order");
	Value *p = pivot_rows(&l.b, l.args[0], l.at), *next[3];
	next[0] = p ? lu_step(&l.b, l.args[0], l.at, p) : NULL;
	if (!next[0])
		return none;
	Nest n = nest_open(&l.b, inits[1]->type);
	Value *here = index_equal(&n.b, n.at[1], loop_position(&n.b, l.at, count));
	Value *row = scalar_cast(
		&n.b, tensor_add(&n.b, load(&n.b, p, n.at), build_scalar_f(&n.b, DT_I64, 1)), DT_I32);
	next[1] = nest_close(&n, index_where(&n.b, here, row, load(&n.b, l.args[1], n.at)));
	Nest o = nest_open(&l.b, order->type);
	Value *at[] = {o.at[0], swapped_row(&o.b, o.at[1], loop_position(&o.b, l.at, rows),
	                                    index_from_data(&o.b, load(&o.b, p, o.at), rows, false))};
	next[2] = nest_close(&o, load(&o.b, l.args[2], at));
	if (!count_end(&l, next))
		return none;
	return (Lu){count_result(&l, 0), count_result(&l, 1), count_result(&l, 2)};
}

// ---- triangular systems -------------------------------------------------------------------------

// Element (i, k) of the matrix that the system has.
static Value *system_load(Builder *b, Value *a, Value *batch, Value *i, Value *k, bool transposed)
{
	Value *at[] = {batch, transposed ? k : i, transposed ? i : k};
	return load(b, a, at);
}

Value *matrices_solve_triangle(Builder *b, Value *a, Value *y, bool upper, bool transposed,
                               bool unit)
{
	CountedLoop l;
	if (!a || !y)
		return NULL;
	const Dim *size = y->type->dims[1];
	bool down = upper != transposed; // from the last unknown
	Value *steps = steps_of(b, size, size);
	if (!steps || !count_begin(&l, b, steps, down, 1, &y))
		return NULL;
	Nest n = nest_open(&l.b, y->type);
	Value *k = loop_position(&n.b, l.at, size), *own = load(&n.b, l.args[0], n.at),
		  *at[] = {n.at[0], k, n.at[2]};
	Value *found = load(&n.b, l.args[0], at);
	if (!unit)
		found = tensor_div(&n.b, found, system_load(&n.b, a, n.at[0], k, k, transposed));
	Value *open = down ? index_less(&n.b, n.at[1], k) : index_less(&n.b, k, n.at[1]);
	Value *rest = tensor_sub(
		&n.b, own, tensor_mul(&n.b, system_load(&n.b, a, n.at[0], n.at[1], k, transposed), found));
	Value *v = index_where(&n.b, open, rest, own);
	Value *next = nest_close(&n, index_where(&n.b, index_equal(&n.b, n.at[1], k), found, v));
	return next && count_end(&l, &next) ? count_result(&l, 0) : NULL;
}

Value *matrices_solve(Builder *b, Value *a, Value *y)
{
	Lu lu = matrices_lu(b, a);
	if (!lu.both || !y)
		return NULL;
	Nest n = nest_open(b, y->type);
	Value *from[] = {n.at[0],
	                 index_from_data(&n.b, load(&n.b, lu.rows, n.at), y->type->dims[1], false),
	                 n.at[2]};
	Value *swapped = nest_close(&n, load(&n.b, y, from));
	return matrices_solve_triangle(b, lu.both,
	                               matrices_solve_triangle(b, lu.both, swapped, false, false, true),
	                               true, false, false);
}

// ---- Cholesky -----------------------------------------------------------------------------------

// Of the lower triangles of symmetric matrices; above the diagonal the result has zeros.
Value *matrices_cholesky(Builder *b, Value *x)
{
	CountedLoop l;
	if (!x)
		return NULL;
	const Dim *size = x->type->dims[1];
	Value *steps = steps_of(b, size, size);
	if (!steps || !count_begin(&l, b, steps, false, 1, &x))
		return NULL;
	Nest n = nest_open(&l.b, x->type);
	Value *k = loop_position(&n.b, l.at, size), *own = load(&n.b, l.args[0], n.at);
	Value *corner[] = {n.at[0], k, k}, *left[] = {n.at[0], n.at[1], k},
		  *above[] = {n.at[0], n.at[2], k};
	Value *d = apply1(&n.b, OP_PD_SQRT, load(&n.b, l.args[0], corner));
	Value *column = tensor_div(&n.b, load(&n.b, l.args[0], left), d);
	Value *rest = tensor_sub(
		&n.b, own, tensor_mul(&n.b, column, tensor_div(&n.b, load(&n.b, l.args[0], above), d)));
	Value *here = both(&n.b, index_equal(&n.b, n.at[2], k),
	                   index_less(&n.b, index_plus(&n.b, k, -1), n.at[1]));
	Value *inner = both(&n.b, index_less(&n.b, k, n.at[2]),
	                    index_less(&n.b, n.at[2], index_plus(&n.b, n.at[1], 1)));
	Value *next = nest_close(&n,
	                         index_where(&n.b, here, column, index_where(&n.b, inner, rest, own)));
	return next && count_end(&l, &next) ? matrices_triangle(b, count_result(&l, 0), false, false)
	                                    : NULL;
}

// ---- QR -----------------------------------------------------------------------------------------

// What the reflection of column k makes of its first element: [batch]. That element itself where
// nothing is below it.
static Value *reflected(Builder *b, Value *x, Value *step, const Dim *count)
{
	const Dim *rows = x->type->dims[1];
	DType t = x->type->dtype;
	Nest n = nest_open(b, type_tensor(b->ctx, t, 1, x->type->dims, 0));
	Value *k = loop_position(&n.b, step, count), *first[] = {n.at[0], k, k},
		  *alpha = load(&n.b, x, first);
	Nest s = reduce_open(&n.b, "sum", t, 1, &rows);
	Value *at[] = {n.at[0], s.at[0], k}, *zero = build_scalar_f(&s.b, t, 0), *v = load(&s.b, x, at);
	Value *below = reduce_close(
		&s, index_where(&s.b, index_less(&s.b, k, s.at[0]), tensor_mul(&s.b, v, v), zero));
	Value *size = apply1(&n.b, OP_PD_SQRT, tensor_add(&n.b, below, tensor_mul(&n.b, alpha, alpha)));
	Value *none = build_scalar_f(&n.b, t, 0);
	Value *beta = index_where(&n.b, apply2(&n.b, OP_PD_LESS_THAN, alpha, none), size,
	                          apply1(&n.b, OP_PD_NEGATIVE, size));
	return nest_close(&n, index_where(&n.b, apply2(&n.b, OP_PD_EQUAL, below, none), alpha, beta));
}

// Element i of the vector that is reflected on: column k without what its first element becomes.
static Value *mirror_load(Builder *b, Value *x, Value *batch, Value *i, Value *k, Value *beta)
{
	Value *at[] = {batch, i, k}, *v = load(b, x, at), *zero = build_scalar_f(b, x->type->dtype, 0);
	v = index_where(b, index_equal(b, i, k), tensor_sub(b, v, beta), v);
	return index_where(b, index_less(b, i, k), zero, v);
}

static Value *reflect(Builder *b, Value *x, Value *step, const Dim *count)
{
	const Dim *rows = x->type->dims[1], *dims[] = {x->type->dims[0], x->type->dims[2]};
	DType t = x->type->dtype;
	Value *betas = reflected(b, x, step, count);
	if (!betas)
		return NULL;
	Nest w = nest_open(b, type_tensor(b->ctx, t, 2, dims, 0));
	Value *k = loop_position(&w.b, step, count), *beta = load(&w.b, betas, w.at),
		  *first[] = {w.at[0], k, k};
	Nest s = reduce_open(&w.b, "sum", t, 1, &rows);
	Value *at[] = {w.at[0], s.at[0], w.at[1]};
	Value *dot = reduce_close(
		&s, tensor_mul(&s.b, mirror_load(&s.b, x, w.at[0], s.at[0], k, beta), load(&s.b, x, at)));
	Value *half = tensor_mul(&w.b, beta, tensor_sub(&w.b, beta, load(&w.b, x, first))),
		  *zero = build_scalar_f(&w.b, t, 0);
	Value *still = apply2(&w.b, OP_PD_EQUAL, half, zero);
	half = index_where(&w.b, still, build_scalar_f(&w.b, t, 1), half);
	Value *parts = nest_close(&w, index_where(&w.b, still, zero, tensor_div(&w.b, dot, half)));
	if (!parts)
		return NULL;
	Nest n = nest_open(b, x->type);
	Value *kn = loop_position(&n.b, step, count), *own[] = {n.at[0], n.at[2]};
	Value *v = mirror_load(&n.b, x, n.at[0], n.at[1], kn, load(&n.b, betas, n.at));
	return nest_close(
		&n, tensor_sub(&n.b, load(&n.b, x, n.at), tensor_mul(&n.b, v, load(&n.b, parts, own))));
}

bool matrices_qr(Builder *b, Value *x, Value **q, Value **r)
{
	CountedLoop l;
	if (!x)
		return false;
	const Dim *rows = x->type->dims[1], *cols = x->type->dims[2],
			  *count = dim_min(b->ctx, rows, cols);
	Value *z = matrices_beside(b, x, matrices_identity(b, x, rows), 2),
		  *steps = steps_of(b, rows, cols);
	if (!z || !steps || !count_begin(&l, b, steps, false, 1, &z))
		return false;
	Value *next = reflect(&l.b, l.args[0], l.at, count);
	if (!next || !count_end(&l, &next))
		return false;
	Value *done = count_result(&l, 0);
	*r = matrices_triangle(b, matrices_part(b, done, 2, dim_const(b->ctx, 0), cols), true, false);
	*q = matrices_transposed(b, matrices_part(b, done, 2, cols, rows));
	return *r && *q;
}
