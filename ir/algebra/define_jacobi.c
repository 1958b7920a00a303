// Eigenvalues of symmetric matrices and singular values by Jacobi rotations (algebra.h). In a round
// every index is rotated with one partner, so that a round is a nest over the whole matrix: in
// round r the partner of i is the j with i + j = r modulo size - 1, as players of a tournament meet
// (an index without one meets the last). A fixed number of sweeps, each of which lets all pairs
// meet once, is more than what converges quadratically needs.
#include "ir/algebra/algebra.h"

enum { SWEEPS_SINGLE = 10, SWEEPS_DOUBLE = 13 };

// The number of players: even.
static const Dim *players(Context *c, const Dim *size)
{
	const Dim *two = dim_const(c, 2);
	return dim_mul(c, dim_div(c, dim_add(c, size, dim_const(c, 1)), two), two);
}

// Who i meets in a round; itself where that is nobody.
static Value *partner(Builder *b, Value *i, Value *step, const Dim *size)
{
	Context *c = b->ctx;
	const Dim *odd = dim_max(c, dim_sub(c, players(c, size), dim_const(c, 1)), dim_const(c, 1));
	Value *m = index_dim(b, odd), *last = index_dim(b, odd);
	Value *round = index_mod(
		b, index_from_data(b, load_scalar(b, step), dim_const(c, INT64_MAX), false), m);
	Value *other = index_mod(
		b, index_sub(b, index_add(b, round, index_mul(b, m, index_const(b, 2))), i), m);
	other = index_where(b, index_equal(b, other, i), last, other);
	// The last one meets whom the rule gives itself: half of the round, modulo an odd number.
	Value *middle = index_mod(
		b,
		index_mul(b, round,
	              index_dim(b, dim_div(c, dim_add(c, odd, dim_const(c, 1)), dim_const(c, 2)))),
		m);
	other = index_where(b, index_equal(b, i, last), middle, other);
	return index_where(b, index_less(b, other, index_dim(b, size)), other, i);
}

// Cosine and signed sine that make x[p, q] zero, from x[p, p], x[q, q] and x[p, q]; p is the
// smaller.
static void rotation(Builder *b, Value *app, Value *aqq, Value *apq, Value *first, DType t,
                     Value **cosine, Value **sine)
{
	Value *zero = build_scalar_f(b, t, 0), *one = build_scalar_f(b, t, 1),
		  *two = build_scalar_f(b, t, 2);
	Value *none = apply2(b, OP_PD_EQUAL, apq, zero), *safe = index_where(b, none, one, apq);
	Value *theta = tensor_div(b, tensor_sub(b, aqq, app), tensor_mul(b, two, safe));
	Value *root = apply1(b, OP_PD_SQRT, tensor_add(b, tensor_mul(b, theta, theta), one));
	Value *size = tensor_div(b, one, tensor_add(b, apply1(b, OP_PD_ABS, theta), root));
	Value *tangent = index_where(b, apply2(b, OP_PD_LESS_THAN, theta, zero),
	                             apply1(b, OP_PD_NEGATIVE, size), size);
	tangent = index_where(b, none, zero, tangent);
	*cosine = tensor_div(
		b, one, apply1(b, OP_PD_SQRT, tensor_add(b, tensor_mul(b, tangent, tangent), one)));
	Value *s = tensor_mul(b, tangent, *cosine);
	*sine = index_where(b, first, apply1(b, OP_PD_NEGATIVE, s), s);
}

// A nest of the cosines and sines of all indices, given the three elements for the smaller index p
// and the larger q.
typedef void PairLoad(Builder *b, Value *x, const Dim *rows, Value *batch, Value *p, Value *q,
                      Value **pp, Value **qq, Value **pq);

static bool rotations(Builder *b, Value *x, Value *step, const Dim *rows, PairLoad *pair,
                      Value **results)
{
	const Dim *dims[] = {x->type->dims[0], x->type->dims[2]};
	DType t = x->type->dtype;
	const Type *type = type_tensor(b->ctx, t, 2, dims, 0), *types[] = {type, type};
	Nest n = nest_open_several(b, 2, types);
	Value *i = n.at[1], *j = partner(&n.b, i, step, dims[1]), *pp, *qq, *pq, *v[2];
	Value *p = index_min(&n.b, i, j), *q = index_max(&n.b, i, j);
	pair(&n.b, x, rows, n.at[0], p, q, &pp, &qq, &pq);
	Value *alone = index_equal(&n.b, i, j), *zero = build_scalar_f(&n.b, t, 0);
	pq = index_where(&n.b, alone, zero, pq);
	rotation(&n.b, pp, qq, pq, index_equal(&n.b, i, p), t, &v[0], &v[1]);
	return nest_close_several(&n, v, results);
}

// cosine[col] x[row, col] + sine[col] x[row, its partner].
static Value *rotated(Builder *b, Value *x, Value *const *cs, Value *batch, Value *row, Value *col,
                      Value *other)
{
	Value *at[] = {batch, row, col}, *there[] = {batch, row, other}, *own[] = {batch, col};
	return tensor_add(b, tensor_mul(b, load(b, cs[0], own), load(b, x, at)),
	                  tensor_mul(b, load(b, cs[1], own), load(b, x, there)));
}

static Value *columns_rotated(Builder *b, Value *x, Value *step, Value *const *cs)
{
	Nest n = nest_open(b, x->type);
	Value *other = partner(&n.b, n.at[2], step, x->type->dims[2]);
	return nest_close(&n, rotated(&n.b, x, cs, n.at[0], n.at[1], n.at[2], other));
}

static Value *rows_rotated(Builder *b, Value *x, Value *step, Value *const *cs)
{
	Nest n = nest_open(b, x->type);
	Value *other = partner(&n.b, n.at[1], step, x->type->dims[1]),
		  *at[] = {n.at[0], other, n.at[2]}, *own[] = {n.at[0], n.at[1]};
	Value *v = tensor_mul(&n.b, load(&n.b, cs[0], own), load(&n.b, x, n.at));
	return nest_close(
		&n, tensor_add(&n.b, v, tensor_mul(&n.b, load(&n.b, cs[1], own), load(&n.b, x, at))));
}

static Value *rounds_of(Builder *b, const Dim *size, DType t)
{
	Context *c = b->ctx;
	const Dim *one = dim_const(c, 1), *count = dim_sub(c, players(c, size), one);
	count = dim_mul(c, count, dim_const(c, t == DT_F64 ? SWEEPS_DOUBLE : SWEEPS_SINGLE));
	if (dim_is_const(count))
		return build_number(b, DT_I64, 1, count->value < 0 ? 0 : count->value);
	Nest n = nest_open(b, type_tensor(c, DT_I64, 1, &one, 0));
	return nest_close(&n, scalar_from_index(&n.b, index_dim(&n.b, count), DT_I64));
}

// The columns of x in the order of `values`; both then.
static bool in_order(Builder *b, Value *values, Value *x, bool descending, Value **sorted,
                     Value **columns)
{
	Context *c = b->ctx;
	const NamedAttr attrs[] = {{"axis", attr_int(c, -1)}, {"descending", attr_bool(c, descending)}};
	Op *order = values && x ? build_op(b, OP_PD_ARGSORT, 1, &values, 2, attrs) : NULL;
	if (!order)
		return false;
	*sorted = op_result(order, 0);
	Nest n = nest_open(b, x->type);
	Value *own[] = {n.at[0], n.at[2]}, *which = load(&n.b, op_result(order, 1), own);
	Value *from[] = {n.at[0], n.at[1], index_from_data(&n.b, which, x->type->dims[2], false)};
	return (*columns = nest_close(&n, load(&n.b, x, from))) != NULL;
}

// ---- symmetric matrices -------------------------------------------------------------------------

static void symmetric_pair(Builder *b, Value *x, const Dim *rows, Value *batch, Value *p, Value *q,
                           Value **pp, Value **qq, Value **pq)
{
	(void)rows;
	*pp = load(b, x, (Value *const[]){batch, p, p});
	*qq = load(b, x, (Value *const[]){batch, q, q});
	*pq = load(b, x, (Value *const[]){batch, p, q});
}

bool matrices_eigen(Builder *b, Value *x, Value **values, Value **vectors)
{
	CountedLoop l;
	if (!x)
		return false;
	const Dim *size = x->type->dims[1], *dims[] = {x->type->dims[0], size};
	Value *const inits[] = {x, matrices_identity(b, x, size)};
	Value *rounds = rounds_of(b, size, x->type->dtype), *cs[2], *next[2];
	if (!rounds || !inits[1] || !count_begin(&l, b, rounds, false, 2, inits) ||
	    !rotations(&l.b, l.args[0], l.at, size, symmetric_pair, cs))
		return false;
	Value *half = columns_rotated(&l.b, l.args[0], l.at, cs);
	next[0] = half ? rows_rotated(&l.b, half, l.at, cs) : NULL;
	next[1] = columns_rotated(&l.b, l.args[1], l.at, cs);
	if (!next[0] || !next[1] || !count_end(&l, next))
		return false;
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 2, dims, 0));
	Value *at[] = {n.at[0], n.at[1], n.at[1]};
	Value *diagonal = nest_close(&n, load(&n.b, count_result(&l, 0), at));
	return in_order(b, diagonal, count_result(&l, 1), false, values, vectors);
}

// ---- singular values: rotations that make columns orthogonal (Hestenes) -------------------------

static Value *columns_dot(Builder *b, Value *x, const Dim *rows, Value *batch, Value *p, Value *q)
{
	Nest s = reduce_open(b, "sum", x->type->dtype, 1, &rows);
	Value *left = load(&s.b, x, (Value *const[]){batch, s.at[0], p}),
		  *right = load(&s.b, x, (Value *const[]){batch, s.at[0], q});
	return reduce_close(&s, tensor_mul(&s.b, left, right));
}

static void columns_pair(Builder *b, Value *x, const Dim *rows, Value *batch, Value *p, Value *q,
                         Value **pp, Value **qq, Value **pq)
{
	*pp = columns_dot(b, x, rows, batch, p, p);
	*qq = columns_dot(b, x, rows, batch, q, q);
	*pq = columns_dot(b, x, rows, batch, p, q);
}

// Of matrices with at least as many rows as columns.
static bool svd_tall(Builder *b, Value *x, bool full, Value **u, Value **s, Value **v)
{
	Context *c = b->ctx;
	CountedLoop l;
	const Dim *rows = x->type->dims[1], *cols = x->type->dims[2],
			  *dims[] = {x->type->dims[0], cols}, *none = dim_const(c, 0);
	Value *z = matrices_beside(b, x, matrices_identity(b, x, cols), 1),
		  *rounds = rounds_of(b, cols, x->type->dtype), *cs[2];
	if (!z || !rounds || !count_begin(&l, b, rounds, false, 1, &z) ||
	    !rotations(&l.b, l.args[0], l.at, rows, columns_pair, cs))
		return false;
	Value *next = columns_rotated(&l.b, l.args[0], l.at, cs), *sorted, *q, *r;
	if (!next || !count_end(&l, &next))
		return false;
	z = count_result(&l, 0);
	Nest n = nest_open(b, type_tensor(c, x->type->dtype, 2, dims, 0));
	Value *size = nest_close(
		&n, apply1(&n.b, OP_PD_SQRT, columns_dot(&n.b, z, rows, n.at[0], n.at[1], n.at[1])));
	if (!in_order(b, size, z, true, s, &sorted))
		return false;
	*v = matrices_part(b, sorted, 1, rows, cols);
	// Reflections of orthogonal columns give these, but for signs, and fill up with what is
	// orthogonal to them.
	if (!matrices_qr(b, matrices_part(b, sorted, 1, none, rows), &q, &r))
		return false;
	q = full ? q : matrices_part(b, q, 2, none, cols);
	if (!q)
		return false;
	Nest g = nest_open(b, q->type);
	Value *in = index_less(&g.b, g.at[2], index_dim(&g.b, cols)),
		  *zero = build_scalar_f(&g.b, x->type->dtype, 0);
	Value *corner[] = {g.at[0], g.at[2], g.at[2]}, *sign = load_or(&g.b, in, zero, r, corner),
		  *own = load(&g.b, q, g.at);
	*u = nest_close(&g, index_where(&g.b, apply2(&g.b, OP_PD_LESS_THAN, sign, zero),
	                                apply1(&g.b, OP_PD_NEGATIVE, own), own));
	return *u && *v;
}

// Of matrices of which only a run tells whether they have more rows than columns: rows of zeros are
// added as far as they must be, and what they lead to is cut off. Vectors of singular values that
// are zero keep to the first rows, too, since all reflections do.
static bool svd_open(Builder *b, Value *x, bool full, Value **u, Value **s, Value **v)
{
	Context *c = b->ctx;
	const Dim *rows = x->type->dims[1], *cols = x->type->dims[2], *none = dim_const(c, 0),
			  *less = dim_min(c, rows, cols),
			  *dims[] = {x->type->dims[0], dim_max(c, rows, cols), cols};
	Nest n = nest_open(b, type_tensor(c, x->type->dtype, 3, dims, 0));
	Value *there = index_less(&n.b, n.at[1], index_dim(&n.b, rows)),
		  *zero = build_scalar_f(&n.b, x->type->dtype, 0);
	if (!svd_tall(b, nest_close(&n, load_or(&n.b, there, zero, x, n.at)), full, u, s, v))
		return false;
	Value *left = matrices_part(b, *u, 2, none, full ? rows : less);
	*u = matrices_part(b, left, 1, none, rows);
	if (!full)
		*v = matrices_part(b, *v, 2, none, less);
	dims[1] = less;
	Nest part = nest_open(b, type_tensor(c, x->type->dtype, 2, dims, 0));
	*s = nest_close(&part, load(&part.b, *s, part.at));
	return *u && *s && *v;
}

bool matrices_svd(Builder *b, Value *x, bool full, Value **u, Value **s, Value **v)
{
	if (!x)
		return false;
	int64_t lo, hi;
	dim_range(dim_sub(b->ctx, x->type->dims[1], x->type->dims[2]), &lo, &hi);
	if (lo >= 0)
		return svd_tall(b, x, full, u, s, v);
	if (hi > 0)
		return svd_open(b, x, full, u, s, v);
	Value *t = matrices_transposed(b, x);
	return t && svd_tall(b, t, full, v, s, u);
}
