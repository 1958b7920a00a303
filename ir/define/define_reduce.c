// What reductions, scans and sorts mean, as loop nests (ir/ops/reduce.yaml).
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FEW = 8 }; // elements that need no kernel of their own

// ---- reductions ---------------------------------------------------------------------------------

static const char *reduce_kind(const Op *op)
{
	const bool stays = op_bool(op, "keep_nan", false) && dtype_is_float(op->results[0].type->dtype);
	switch (op->code) {
	case OP_PD_PROD: return "prod";
	case OP_PD_MAX: return stays ? "highest" : "max";
	case OP_PD_MIN: return stays ? "lowest" : "min";
	case OP_PD_ANY: return "any";
	case OP_PD_ALL: return "all";
	default: return "sum";
	}
}

// The reduction of `kind` inside nest n over the axes that op reduces.
static Value *reduce_element(Nest *n, Op *op, const char *kind, DType t)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	int axes[MAX_RANK], count = reduced_axes(op, x->type->rank, axes);
	const Dim *extents[MAX_RANK];
	bool keep = op_bool(op, "keepdim", false);
	if (count < 0)
		return NULL;
	if (!count)
		return scalar_cast(&n->b, load(&n->b, x, n->at), t);
	for (int i = 0; i < count; i++)
		extents[i] = x->type->dims[axes[i]];
	Nest r = reduce_open(&n->b, kind, t, count, extents);
	for (int d = 0, i = 0, k = 0; d < x->type->rank; d++) {
		bool reduced = i < count && axes[i] == d;
		from[d] = reduced ? r.at[i++] : n->at[keep ? d : k++];
	}
	return reduce_close(&r, load(&r.b, x, from));
}

bool define_hook_reduce(Builder *b, Op *op, Value **results)
{
	Nest n = nest_open(b, op->results[0].type);
	results[0] = nest_close(&n,
	                        reduce_element(&n, op, reduce_kind(op), op->results[0].type->dtype));
	return results[0] != NULL;
}

// A reduction by another operation with op's axes.
static Value *reduce_like(Builder *b, const Op *op, enum OpCode code, Value *x, bool keep)
{
	Context *c = b->ctx;
	const Attr *axes = op_attr(op, "axis");
	return x ? build1(b, code, x, "axis", axes ? axes : attr_ints(c, 0, NULL), "keepdim",
	                  attr_bool(c, keep), "reduce_all",
	                  attr_bool(c, op_bool(op, "reduce_all", false)), NULL)
	         : NULL;
}

bool define_hook_mean(Builder *b, Op *op, Value **results)
{
	const Type *x = op_operand(op, 0)->type, *out = op->results[0].type;
	int axes[MAX_RANK], count = reduced_axes(op, x->rank, axes);
	const Dim *number = dim_const(b->ctx, 1);
	if (x->dtype == DT_BOOL) { // Paddle's sums of truth values are disjunctions
		results[0] = reduce_like(b, op, OP_PD_ANY, op_operand(op, 0),
		                         op_bool(op, "keepdim", false));
		return results[0] != NULL;
	}
	for (int i = 0; i < count; i++)
		number = dim_mul(b->ctx, number, x->dims[axes[i]]);
	Nest n = nest_open(b, out);
	Value *sum = reduce_element(&n, op, "sum", out->dtype);
	Value *by = scalar_from_index(&n.b, index_dim(&n.b, number), out->dtype);
	results[0] = nest_close(&n, tensor_div(&n.b, sum, by));
	return results[0] != NULL;
}

static Value *squeeze_to(Builder *b, Value *x, const Type *t)
{
	return x && x->type->rank != t->rank ? tensor_reshape(b, x, t->rank, t->dims) : x;
}

bool define_hook_logsumexp(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *most = reduce_like(b, op, OP_PD_MAX, x, true);
	Value *small = tensor_sub(b, x, most);
	Value *e = small ? build1(b, OP_PD_EXP, small, NULL) : NULL;
	Value *sum = reduce_like(b, op, OP_PD_SUM, e, true);
	Value *log = sum ? build1(b, OP_PD_LOG, sum, NULL) : NULL;
	results[0] = squeeze_to(b, tensor_add(b, log, most), op->results[0].type);
	return results[0] != NULL;
}

bool define_hook_frobenius_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	Value *sum = reduce_like(b, op, OP_PD_SUM, tensor_mul(b, x, x), op_bool(op, "keepdim", false));
	results[0] = sum ? build1(b, OP_PD_SQRT, sum, NULL) : NULL;
	return results[0] != NULL;
}

// The norm of order p of x over `n` axes (all when 0), which stay with size 1.
static Value *norm_of(Builder *b, Value *x, double p, int n, const int64_t *axes)
{
	DType t = x->type->dtype;
	Value *a = build1(b, OP_PD_ABS, x, NULL);
	if (!a)
		return NULL;
	if (isinf(p))
		return tensor_reduce(b, p > 0 ? OP_PD_MAX : OP_PD_MIN, a, n, axes);
	if (p == 0) {
		Value *some = build2(b, OP_PD_NOT_EQUAL, x, tensor_number(b, t, 0), NULL);
		return tensor_reduce(b, OP_PD_SUM, tensor_cast(b, some, t), n, axes);
	}
	if (p == 1)
		return tensor_reduce(b, OP_PD_SUM, a, n, axes);
	if (p == 2) {
		Value *sum = tensor_reduce(b, OP_PD_SUM, tensor_mul(b, x, x), n, axes);
		return sum ? build1(b, OP_PD_SQRT, sum, NULL) : NULL;
	}
	Value *power = build2(b, OP_PD_ELEMENTWISE_POW, a, tensor_number(b, t, p), NULL);
	Value *sum = tensor_reduce(b, OP_PD_SUM, power, n, axes);
	return sum ? build2(b, OP_PD_ELEMENTWISE_POW, sum, tensor_number(b, t, 1 / p), NULL) : NULL;
}

bool define_hook_p_norm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int64_t axis = axis_norm(op_int(op, "axis", -1), x->type->rank);
	Value *norm = norm_of(b, x, op_float(op, "porder", 2.0), !op_bool(op, "asvector", false),
	                      &axis);
	results[0] = squeeze_to(b, norm, op->results[0].type);
	return results[0] != NULL;
}

bool define_hook_dist(Builder *b, Op *op, Value **results)
{
	Value *way = tensor_sub(b, op_operand(op, 0), op_operand(op, 1));
	Value *norm = way ? build1(b, OP_PD_P_NORM, way, "porder",
	                           attr_float(b->ctx, op_float(op, "p", 2.0)), "asvector",
	                           attr_bool(b->ctx, true), NULL)
	                  : NULL;
	results[0] = squeeze_to(b, norm, op->results[0].type);
	return results[0] != NULL;
}

static Value *in_sizes_of(Builder *b, Value *x, const Type *t)
{
	for (int d = 0; d < t->rank; d++)
		if (x->type->dims[d] != t->dims[d])
			return tensor_reshape(b, x, t->rank, t->dims);
	return x;
}

bool define_hook_add_n(Builder *b, Op *op, Value **results)
{
	Value *const *list;
	int n = op_operand_list(op, 0, &list);
	Value *sum = n > 1 ? list[0] : build1(b, OP_PD_ASSIGN, list[0], NULL);
	// Sizes that a run found to be equal are still two symbols: those of the first are the
	// result's.
	for (int i = 1; i < n; i++)
		sum = tensor_add(b, sum, in_sizes_of(b, list[i], op->results[0].type));
	results[0] = sum;
	return results[0] != NULL;
}

// argmax and argmin.
bool define_hook_arg_reduce(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[0].type;
	const Dim *numel = type_numel(b->ctx, x->type);
	bool flat = op_bool(op, "flatten", false) || !x->type->rank,
		 keep = op_bool(op, "keepdims", false);
	if (flat && !(x = tensor_reshape(b, x, 1, &numel)))
		return false;
	int axis = flat ? 0 : axis_norm(op_int(op, "axis", -1), x->type->rank);
	Nest n = nest_open(b, out);
	const Dim *extent = x->type->dims[axis];
	Nest r = reduce_open(&n.b, op->code == OP_PD_ARGMAX ? "argmax" : "argmin", DT_I64, 1, &extent);
	for (int d = 0, k = 0; d < x->type->rank; d++) {
		if (d == axis)
			from[d] = r.at[0];
		else
			from[d] = n.at[keep ? d : k++];
	}
	results[0] = nest_close(&n, reduce_close(&r, load(&r.b, x, from)));
	return results[0] != NULL;
}

// ---- scans --------------------------------------------------------------------------------------

// Few elements sum their own prefixes: quadratic time along the axis.
bool define_hook_cumsum(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[0].type;
	if (!x->type->rank && !out->rank) {
		results[0] = build1(b, OP_PD_ASSIGN, x, NULL);
		return results[0] != NULL;
	}
	if (op_bool(op, "flatten", false) && !(x = tensor_reshape(b, x, 1, out->dims)))
		return false;
	int axis = op_bool(op, "flatten", false) ? 0 : axis_norm(op_int(op, "axis", -1), out->rank);
	bool reverse = op_bool(op, "reverse", false), exclusive = op_bool(op, "exclusive", false);
	const Dim *extent = out->dims[axis];
	if (!(dim_is_const(extent) && extent->value <= FEW)) {
		results[0] = scan_along(b, x, "sum", axis, exclusive, reverse, NULL);
		return results[0] != NULL;
	}
	Nest n = nest_open(b, out);
	Nest r = reduce_open(&n.b, "sum", out->dtype, 1, &extent);
	memcpy(from, n.at, sizeof from);
	from[axis] = r.at[0];
	Value *near = reverse ? n.at[axis] : r.at[0], *far = reverse ? r.at[0] : n.at[axis];
	Value *inside = index_less(&r.b, near, exclusive ? far : index_plus(&r.b, far, 1));
	Value *zero = build_scalar_f(&r.b, out->dtype, 0);
	results[0] = nest_close(&n, reduce_close(&r, load_or(&r.b, inside, zero, x, from)));
	return results[0] != NULL;
}

static const char *scan_kind(const Op *op)
{
	switch (op->code) {
	case OP_PD_CUMPROD: return "prod";
	case OP_PD_CUMMAX: return "max";
	case OP_PD_CUMMIN: return "min";
	default: return "logsumexp";
	}
}

// Where Paddle begins with the lowest number.
static Value *not_below_lowest(Builder *b, Value *v)
{
	if (!v)
		return NULL;
	const DType t = v->type->dtype;
	return apply2(b, OP_PD_MAXIMUM, tensor_number(b, t, t == DT_F64 ? -DBL_MAX : -FLT_MAX), v);
}

// cumprod, logcumsumexp, cummax and cummin.
bool define_hook_scan(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *which = NULL;
	const Type *out = op->results[0].type;
	bool product = op->code == OP_PD_CUMPROD, order = op->nresult > 1;
	if (op_bool(op, "flatten", false) && !(x = tensor_reshape(b, x, 1, out->dims)))
		return false;
	const Dim *one = dim_const(b->ctx, 1);
	if (!out->rank && !(x = tensor_reshape(b, x, 1, &one)))
		return false;
	int axis = axis_norm(op_int(op, product ? "dim" : "axis", -1), out->rank ? out->rank : 1);
	axis = op_bool(op, "flatten", false) || !out->rank ? 0 : axis;
	Value *v = scan_along(b, x, scan_kind(op), axis, op_bool(op, "exclusive", false),
	                      op_bool(op, "reverse", false), order ? &which : NULL);
	if (op->code == OP_PD_LOGCUMSUMEXP)
		v = not_below_lowest(b, v);
	results[0] = tensor_reshape(b, v, out->rank, out->dims);
	if (order)
		results[1] = tensor_reshape(b, tensor_cast(b, which, op->results[1].type->dtype), out->rank,
		                            out->dims);
	return results[0] && (!order || results[1]);
}

// ---- sorting ------------------------------------------------------------------------------------

// By kernel.sort, along the last axis of a transposed x.
static bool sorted_in_sequence(Builder *b, Op *op, int axis, bool descending, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[1].type;
	int64_t perm[MAX_RANK];
	int last = x->type->rank - 1;
	for (int d = 0; d <= last; d++)
		perm[d] = d < axis ? d : d < last ? d + 1 : axis;
	Value *rows = axis == last ? x : tensor_transpose(b, x, last + 1, perm);
	Value *order = select_sorted(b, rows, descending, NULL, out->dims[axis]).at;
	if (!order)
		return false;
	Nest n = nest_open(b, out);
	for (int d = 0; d <= last; d++)
		from[d] = n.at[perm[d]];
	results[1] = nest_close(&n, load(&n.b, order, from));
	Nest g = nest_open(b, op->results[0].type);
	for (int d = 0; d <= last; d++)
		from[d] = g.at[perm[d]];
	Value *at = index_from_data(&g.b, load(&g.b, order, from), x->type->dims[axis], false);
	memcpy(from, g.at, sizeof from);
	from[axis] = at;
	results[0] = nest_close(&g, load(&g.b, x, from));
	return results[0] && results[1];
}

// results: the elements whose ranks are 0, 1 ... along the axis, and their positions.
static bool sorted_elements(Builder *b, Op *op, bool descending, Value **results)
{
	Value *x = op_operand(op, 0);
	if (!x->type->rank) {
		results[0] = build1(b, OP_PD_ASSIGN, x, NULL);
		results[1] = build_full(b, op->results[1].type, 0);
		return results[0] && results[1];
	}
	int axis = axis_norm(op_int(op, "axis", -1), x->type->rank);
	return sorted_in_sequence(b, op, axis, descending, results);
}

bool define_hook_argsort(Builder *b, Op *op, Value **results)
{
	return sorted_elements(b, op, op_bool(op, "descending", false), results);
}

bool define_hook_topk(Builder *b, Op *op, Value **results)
{
	return sorted_elements(b, op, op_bool(op, "largest", true), results);
}

// The sum of x over axes that target has once only, where a run tells which of them (`open`): each
// position of target's sums those that it stands for, one or a whole axis.
static Value *reduced_as(Builder *b, Value *x, const Type *target, const bool *open)
{
	Context *c = b->ctx;
	const Dim *have[MAX_RANK], *want[MAX_RANK], *extents[MAX_RANK], *one = dim_const(c, 1);
	const int more = x->type->rank - target->rank;
	int nopen = 0, axis[MAX_RANK], n = 0;
	for (int d = 0; d < x->type->rank; d++) {
		const Dim *size = x->type->dims[d], *to = d < more ? one : target->dims[d - more];
		if (d >= more && size == to)
			continue;
		if (open[d]) {
			have[nopen] = to;
			want[nopen++] = size;
		}
		axis[n] = d;
		extents[n++] = open[d] ? dim_div(c, size, dim_max(c, to, one)) : size;
	}
	if (!check_sizes(b, nopen, have, want, true, "sizes that broadcast must be equal or 1"))
		return NULL;
	Nest out = nest_open(b, type_tensor(c, x->type->dtype, target->rank, target->dims, 0));
	Nest sum = reduce_open(&out.b, "sum", x->type->dtype, n, extents);
	Value *from[MAX_RANK];
	for (int d = more; d < x->type->rank; d++)
		from[d] = out.at[d - more];
	for (int i = 0; i < n; i++)
		from[axis[i]] = axis[i] < more ? sum.at[i] : index_add(&sum.b, from[axis[i]], sum.at[i]);
	return nest_close(&out, reduce_close(&sum, load(&sum.b, x, from)));
}

// The axes of x that target lacks, or has once only; `open`: those that a run tells. -1 after a
// diagnostic.
static int axes_reduced_as(const Op *op, const Type *x, const Type *target, int64_t *axes,
                           bool *open)
{
	const int more = x->rank - target->rank;
	int n = 0;
	for (int d = 0; d < x->rank; d++) {
		const Dim *want = d < more ? NULL : target->dims[d - more];
		if (want == x->dims[d])
			continue;
		open[d] = want && !dim_is(want, 1);
		if (open[d] && dim_is_const(want) && dim_is_const(x->dims[d])) {
			op_error(op, "axis %d is %s, in target %s", d, dim_text(op->ctx, x->dims[d]),
			         dim_text(op->ctx, want));
			return -1;
		}
		axes[n++] = d;
	}
	return n;
}

bool define_hook_reduce_as(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_tensor(op, 0), *target = infer_tensor(op, 1);
	int64_t axes[MAX_RANK];
	bool open[MAX_RANK] = {false}, any = false;
	if (!x || !target)
		return false;
	if (x->rank < target->rank)
		return op_error(op, "target has %d axes, x only %d", target->rank, x->rank);
	const int n = axes_reduced_as(op, x, target, axes, open);
	if (n < 0)
		return false;
	for (int d = 0; d < x->rank; d++)
		any = any || open[d];
	// Paddle sums i32 and bool in i64, and passes on what has the target's shape already.
	const bool widens = n && (x->dtype == DT_I32 || x->dtype == DT_BOOL);
	if (any && widens)
		return op_error(op, "x of %s may have target's shape or not: sums of it are i64",
		                dtype_name(x->dtype));
	Value *sum = widens ? tensor_cast(b, op_operand(op, 0), DT_I64) : op_operand(op, 0);
	if (any)
		sum = reduced_as(b, sum, target, open);
	else if (n)
		sum = tensor_reduce(b, OP_PD_SUM, sum, n, axes);
	results[0] = sum ? tensor_reshape(b, sum, target->rank, target->dims) : NULL;
	return results[0] != NULL;
}
