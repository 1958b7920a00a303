// Gradients that neither an expression nor the transposition of a nest gives: of kernel.scan and
// kernel.scatter (ir/ops/kernel.yaml).
#include "ir/gradient/gradient.h"
#include "ir/infer/geometry.h"

#include <float.h>
#include <string.h>

// ---- scatter ------------------------------------------------------------------------------------

// Rows `at` of x, where `only` (a row number for each row of x; NULL: always) names the row itself;
// zeros elsewhere.
static Value *rows_of(Builder *b, Value *x, Value *at, Value *only)
{
	const Dim *dims[] = {at->type->dims[0], x->type->dims[1]};
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 2, dims, 0));
	Value *row = index_from_data(&n.b, load(&n.b, at, n.at), x->type->dims[0], false),
		  *from[] = {row, n.at[1]};
	Value *element = load(&n.b, x, from);
	if (only) {
		Value *place[] = {row, index_const(&n.b, 0)};
		Value *mine = scalar_from_index(&n.b, n.at[0], only->type->dtype);
		Value *last = apply2(&n.b, OP_PD_EQUAL, load(&n.b, only, place), mine);
		element = index_where(&n.b, last, element, build_scalar_f(&n.b, x->type->dtype, 0));
	}
	return nest_close(&n, element);
}

// For each of the rows, the number of the last update that names it.
static Value *last_update(Builder *b, Value *at, const Dim *rows)
{
	const Dim *one = dim_const(b->ctx, 1), *from[] = {at->type->dims[0], one}, *to[] = {rows, one};
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 2, from, 0));
	Value *numbers = nest_close(&n, scalar_from_index(&n.b, n.at[0], DT_I64));
	Value *none = build_full(b, type_tensor(b->ctx, DT_I64, 2, to, 0), -1);
	return scatter_rows(b, none, at, numbers, "replace");
}

// The product of the other updates of the row that each update names: what division by an update
// of 0 cannot give.
static Value *other_factors(Builder *b, Value *at, Value *updates)
{
	const Dim *count = at->type->dims[0];
	Nest n = nest_open(b, updates->type);
	Nest r = reduce_open(&n.b, "prod", updates->type->dtype, 1, &count);
	Value *mine[] = {n.at[0]}, *theirs[] = {r.at[0]}, *from[] = {r.at[0], n.at[1]};
	Value *same = apply2(&r.b, OP_PD_EQUAL, load(&r.b, at, mine), load(&r.b, at, theirs));
	Value *self = index_equal(&r.b, r.at[0], n.at[0]);
	Value *counts = pred_and(&r.b, same, apply1(&r.b, OP_PD_LOGICAL_NOT, self));
	Value *one = build_scalar_f(&r.b, updates->type->dtype, 1);
	return nest_close(&n,
	                  reduce_close(&r, index_where(&r.b, counts, load(&r.b, updates, from), one)));
}

// Rows that are multiplied: x goes with the product of its updates, each of them with x and the
// others.
static bool scatter_products(GradientJob *g, Value *at, Value *updates, Value *d)
{
	Value *x = op_operand(g->op, 0);
	if (gradient_wants(g, 0) &&
	    !gradient_give(g, 0, scatter_rows(g->b, d, at, updates, "multiply")))
		return false;
	if (!gradient_wants(g, 2))
		return true;
	Value *before = rows_of(g->b, tensor_mul(g->b, d, x), at, NULL);
	return gradient_give(g, 2, tensor_mul(g->b, before, other_factors(g->b, at, updates)));
}

// What updates get that are added, or of which the last one of a row takes the place of what was
// there.
static bool scatter_updates(GradientJob *g, Value *at, Value *d, bool replaces)
{
	bool some = replaces && !dim_is(at->type->dims[0], 1); // one alone is the last one
	Value *last = some ? last_update(g->b, at, d->type->dims[0]) : NULL;
	return (!some || last) && gradient_give(g, 2, rows_of(g->b, d, at, last));
}

bool gradient_hook_scatter(GradientJob *g)
{
	Value *at = op_operand(g->op, 1), *updates = op_operand(g->op, 2), *d = gradient_of(g, 0);
	const ScatterKind how = (ScatterKind)op_enum(g->op, "how");
	if (how == SCATTER_MULTIPLY && !dtype_is_complex(d->type->dtype))
		return scatter_products(g, at, updates, d);
	if (how == SCATTER_MULTIPLY || how == SCATTER_MAX || how == SCATTER_MIN) {
		diag_error(g->b->ctx->diag, g->op->loc,
		           "what changes rows that data name by '%s' has no gradient",
		           op_str(g->op, "how", ""));
		return false;
	}
	// The rows are read in front of where they become zero: that can then be done in place.
	if (gradient_wants(g, 2) && !scatter_updates(g, at, d, how == SCATTER_REPLACE))
		return false;
	if (!gradient_wants(g, 0))
		return true;
	if (how != SCATTER_ADD) // what was there is gone
		d = scatter_rows(g->b, d, at, gradient_zero(g->b, updates->type), "replace");
	return gradient_give(g, 0, d);
}

// ---- scan ---------------------------------------------------------------------------------------

// Adds dv[j] to the element that which[j] names along the axis.
static Value *to_named(Builder *b, Value *dv, Value *which, int axis)
{
	const Type *t = dv->type;
	const Dim *extent = t->dims[axis];
	Nest n = nest_open(b, t), r = reduce_open(&n.b, "sum", t->dtype, 1, &extent);
	Value *at[MAX_RANK];
	memcpy(at, n.at, sizeof at);
	at[axis] = r.at[0];
	Value *here = scalar_from_index(&r.b, n.at[axis], which->type->dtype);
	Value *hit = apply2(&r.b, OP_PD_EQUAL, load(&r.b, which, at), here);
	Value *term = index_where(&r.b, hit, load(&r.b, dv, at), build_scalar_f(&r.b, t->dtype, 0));
	return nest_close(&n, reduce_close(&r, term));
}

// Opens the sum over the positions j of the results that element i of the axis is part of: j >= i,
// or as the scan goes.
static Nest open_later(Nest *n, const Op *op, int axis, Value **at, Value **later)
{
	const Type *t = op->results[0].type;
	bool reverse = op_bool(op, "reverse", false), exclusive = op_bool(op, "exclusive", false);
	Nest r = reduce_open(&n->b, "sum", t->dtype, 1, &t->dims[axis]);
	memcpy(at, n->at, sizeof *at * MAX_RANK);
	at[axis] = r.at[0];
	Value *first = reverse ? r.at[0] : n->at[axis], *second = reverse ? n->at[axis] : r.at[0];
	enum OpCode code = exclusive ? OP_PD_LESS_THAN : OP_PD_LESS_EQUAL;
	*later = apply2(&r.b, code, first, second);
	return r;
}

// exp(x[i] - out[j]) is the part of element i in sum j of exponentials.
static Value *scan_exponentials(GradientJob *g, Value *dv, int axis)
{
	Value *x = op_operand(g->op, 0), *out = op_result(g->op, 0), *at[MAX_RANK], *later;
	Nest n = nest_open(g->b, x->type), r = open_later(&n, g->op, axis, at, &later);
	// an infinity in front of all others is no part of any sum
	const double lowest = x->type->dtype == DT_F64 ? -DBL_MAX : -FLT_MAX;
	Value *sum = apply2(&r.b, OP_PD_MAXIMUM, build_scalar_f(&r.b, x->type->dtype, lowest),
	                    load(&r.b, out, at));
	Value *part = apply1(&r.b, OP_PD_EXP, tensor_sub(&r.b, load(&r.b, x, n.at), sum));
	Value *term = tensor_mul(&r.b, load(&r.b, dv, at), part);
	Value *zero = build_scalar_f(&r.b, x->type->dtype, 0);
	return nest_close(&n, reduce_close(&r, index_where(&r.b, later, term, zero)));
}

// Element i of a running product: the sum of dv[j] times the product of all others up to j. Those
// are products over every j for every i, so that a zero among the elements is no harm.
static Value *scan_products(GradientJob *g, Value *dv, int axis)
{
	Value *x = op_operand(g->op, 0), *at[MAX_RANK], *from[MAX_RANK], *later;
	const Type *t = x->type;
	const Dim *dims[MAX_RANK];
	if (t->rank == MAX_RANK)
		return NULL;
	memcpy(dims, t->dims, sizeof *dims * (size_t)t->rank);
	dims[t->rank] = t->dims[axis]; // which one is left out
	Nest n = nest_open(g->b, type_tensor(g->b->ctx, t->dtype, t->rank + 1, dims, 0));
	Value *out = index_equal(&n.b, n.at[axis], n.at[t->rank]);
	Value *without = nest_close(
		&n, index_where(&n.b, out, build_scalar_f(&n.b, t->dtype, 1), load(&n.b, x, n.at)));
	Value *products = without ? scan_along(g->b, without, "prod", axis,
	                                       op_bool(g->op, "exclusive", false),
	                                       op_bool(g->op, "reverse", false), NULL)
	                          : NULL;
	if (!products)
		return NULL;
	Nest m = nest_open(g->b, t), r = open_later(&m, g->op, axis, at, &later);
	memcpy(from, at, sizeof from);
	from[t->rank] = m.at[axis];
	Value *slope = gradient_conjugate(&r.b, load(&r.b, products, from));
	Value *term = tensor_mul(&r.b, load(&r.b, dv, at), slope);
	Value *zero = build_scalar_f(&r.b, t->dtype, 0);
	return nest_close(&m, reduce_close(&r, index_where(&r.b, later, term, zero)));
}

bool gradient_hook_scan(GradientJob *g)
{
	const ScanKind kind = (ScanKind)op_enum(g->op, "kind");
	int axis = axis_norm(op_int(g->op, "axis", 0), g->op->results[0].type->rank);
	bool exclusive = op_bool(g->op, "exclusive", false), reverse = op_bool(g->op, "reverse", false);
	Value *d = gradient_of(g, 0), *x = op_operand(g->op, 0);
	if (kind == SCAN_SUM)
		return gradient_give(g, 0, scan_along(g->b, d, "sum", axis, exclusive, !reverse, NULL));
	if (kind == SCAN_PROD)
		return gradient_give(g, 0, scan_products(g, d, axis));
	if (kind == SCAN_LOGSUMEXP)
		return gradient_give(g, 0, scan_exponentials(g, d, axis));
	Value *which = g->op->nresult > 1 ? op_result(g->op, 1) : NULL;
	if (!which)
		scan_along(g->b, x, op_str(g->op, "kind", ""), axis, exclusive, reverse, &which);
	return which && gradient_give(g, 0, to_named(g->b, d, which, axis));
}
