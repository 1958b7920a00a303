// The area under a curve that is drawn step by step, and what there is among numbers (auc and
// check_numerics of ir/ops/loss.yaml).
#include "ir/loss/loss.h"
#include "ir/infer/infer.h"

#include <math.h>

// What is counted: how many rows of a kind have a prediction in each of `buckets` parts of [0, 1].
typedef struct Counts {
	Value *predict, *label;
	int64_t buckets, steps; // steps: how many runs the window has; 0: all that there were
} Counts;

static Value *number(Builder *b, double v)
{
	return build_scalar_f(b, DT_I64, v);
}

// The bucket of each row, i64 [rows]; out of range for what is no probability.
static Value *buckets_of(Builder *b, const Counts *c)
{
	const Type *t = c->predict->type;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, t->dims, 0));
	Value *at[] = {n.at[0], index_plus(&n.b, index_dim(&n.b, t->dims[1]), -1)};
	Value *v = load(&n.b, c->predict, at);
	Value *inside = pred_and(
		&n.b, apply2(&n.b, OP_PD_GREATER_EQUAL, v, build_scalar_f(&n.b, t->dtype, 0)),
		apply2(&n.b, OP_PD_LESS_EQUAL, v, build_scalar_f(&n.b, t->dtype, 1)));
	Value *part = tensor_mul(&n.b, v, build_scalar_f(&n.b, t->dtype, (double)(c->buckets - 1)));
	part = scalar_cast(&n.b, index_where(&n.b, inside, part, build_scalar_f(&n.b, t->dtype, 0)),
	                   DT_I64);
	Value *checked = index_from_data(&n.b, index_where(&n.b, inside, part, number(&n.b, -1)),
	                                 dim_const(b->ctx, c->buckets), false);
	return nest_close(&n, scalar_from_index(&n.b, checked, DT_I64));
}

// How many rows of a kind fell into each bucket now, i64 [buckets x 1].
static Value *counted_now(Builder *b, const Counts *c, Value *at, bool positive)
{
	const Dim *one = dim_const(b->ctx, 1), *dims[] = {dim_const(b->ctx, c->buckets), one};
	const Dim *rows[] = {at->type->dims[0], one};
	Value *label = tensor_flat(b, c->label);
	if (!label)
		return NULL;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 2, rows, 0));
	Value *yes = apply2(&n.b, OP_PD_NOT_EQUAL, load(&n.b, label, n.at),
	                    build_scalar_f(&n.b, label->type->dtype, 0));
	if (!positive)
		yes = apply1(&n.b, OP_PD_LOGICAL_NOT, yes);
	Value *ones = nest_close(&n, scalar_cast(&n.b, yes, DT_I64));
	return scatter_rows(b, build_full(b, type_tensor(b->ctx, DT_I64, 2, dims, 0), 0), at, ones,
	                    "add");
}

// The counts as they are now: of each run of the window, their sum, and how many runs there were.
static Value *counted_all(Builder *b, const Counts *c, Value *before, Value *now)
{
	const Dim *numel = type_numel(b->ctx, before->type), *buckets = dim_const(b->ctx, c->buckets);
	const Dim *dims[] = {dim_const(b->ctx, 1), numel};
	Value *flat = tensor_flat(b, before);
	if (!flat || !now)
		return NULL;
	Nest n = nest_open(b, flat->type);
	Value *size = index_dim(&n.b, buckets), *zero = index_const(&n.b, 0);
	Value *own = load(&n.b, flat, n.at), *part = index_mod(&n.b, n.at[0], size);
	Value *fresh[] = {part, zero}, *more = load(&n.b, now, fresh);
	if (!c->steps)
		return tensor_reshape(b, nest_close(&n, tensor_add(&n.b, own, more)), 2, dims);
	Value *run = index_div(&n.b, n.at[0], size),
		  *end = index_const(&n.b, (c->steps + 1) * c->buckets);
	Value *runs = apply2(&n.b, OP_PD_REMAINDER, load(&n.b, flat, &end),
	                     number(&n.b, (double)c->steps));
	Value *at = index_from_data(&n.b, runs, dim_const(b->ctx, c->steps), false);
	Value *old = index_add(&n.b, index_mul(&n.b, at, size), part);
	Value *sum = tensor_add(&n.b, tensor_sub(&n.b, own, load(&n.b, flat, &old)), more);
	Value *v = index_where(&n.b, index_equal(&n.b, run, at), more, own);
	v = index_where(&n.b, index_equal(&n.b, run, index_const(&n.b, c->steps)), sum, v);
	v = index_where(&n.b, index_equal(&n.b, n.at[0], end), tensor_add(&n.b, own, number(&n.b, 1)),
	                v);
	return nest_close(&n, v);
}

// The counts that the curve is drawn from, f64 [buckets].
static Value *curve_of(Builder *b, const Counts *c, Value *all)
{
	const Dim *buckets = dim_const(b->ctx, c->buckets);
	Value *flat = tensor_flat(b, all);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_F64, 1, &buckets, 0));
	Value *at = index_plus(&n.b, n.at[0], c->steps * c->buckets);
	return flat ? nest_close(&n, scalar_cast(&n.b, load(&n.b, flat, &at), DT_F64)) : NULL;
}

// The area in trapezia, from the highest predictions on, over both totals where there are any.
static Value *area_of(Builder *b, Value *positive, Value *negative)
{
	Value *totals = scan_along(b, positive, "sum", 0, false, true, NULL);
	const Dim *buckets = totals ? totals->type->dims[0] : NULL;
	if (!totals || !negative)
		return NULL;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_F64, 0, NULL, 0));
	Nest r = reduce_open(&n.b, "sum", DT_F64, 1, &buckets);
	Value *own = load(&r.b, positive, r.at), *up = load(&r.b, totals, r.at);
	Value *middle = tensor_sub(&r.b, up, tensor_mul(&r.b, own, build_scalar_f(&r.b, DT_F64, 0.5)));
	Value *area = reduce_close(&r, tensor_mul(&r.b, middle, load(&r.b, negative, r.at)));
	Nest s = reduce_open(&n.b, "sum", DT_F64, 1, &buckets);
	Value *others = reduce_close(&s, load(&s.b, negative, s.at)), *zero = index_const(&n.b, 0);
	Value *all = load(&n.b, totals, &zero), *none = build_scalar_f(&n.b, DT_F64, 0);
	Value *some = pred_and(&n.b, apply2(&n.b, OP_PD_GREATER_THAN, all, none),
	                       apply2(&n.b, OP_PD_GREATER_THAN, others, none));
	Value *safe = build_scalar_f(&n.b, DT_F64, 1);
	Value *part = tensor_div(&n.b, area, index_where(&n.b, some, all, safe));
	return nest_close(&n, tensor_div(&n.b, part, index_where(&n.b, some, others, safe)));
}

static bool counts_open(Counts *c, Builder *b, Op *op)
{
	const Type *p = infer_rank(op, 0, 2), *label = p ? infer_tensor(op, 1) : NULL;
	const Dim *same;
	*c = (Counts){op_operand(op, 0), op_operand(op, 1), op_int(op, "num_thresholds", 4095) + 1,
	              op_int(op, "slide_steps", 1)};
	if (!label || !infer_same_dim(op, p->dims[0], type_numel(b->ctx, label),
	                              "numbers of predictions and labels", &same))
		return false;
	if (c->buckets < 2 || c->steps < 0 || c->buckets > INT32_MAX || c->steps > INT32_MAX)
		return op_error(op, "%lld buckets of %lld runs", (long long)c->buckets,
		                (long long)c->steps);
	int64_t room = c->steps ? (c->steps + 1) * c->buckets + 1 : c->buckets;
	for (int i = 2; i < 4; i++)
		if (!infer_same_dim(op, type_numel(b->ctx, op_operand(op, i)->type),
		                    dim_const(b->ctx, room), "sizes of the counts", &same))
			return false;
	return true;
}

bool define_hook_auc(Builder *b, Op *op, Value **results)
{
	Counts c;
	Value *at = counts_open(&c, b, op) ? buckets_of(b, &c) : NULL, *curve[2];
	for (int i = 0; at && i < 2; i++) {
		results[1 + i] = counted_all(b, &c, op_operand(op, 2 + i), counted_now(b, &c, at, i == 0));
		curve[i] = results[1 + i] ? curve_of(b, &c, results[1 + i]) : NULL;
		if (!curve[i])
			return false;
	}
	results[0] = at ? area_of(b, curve[0], curve[1]) : NULL;
	return results[0] != NULL;
}

// ---- check_numerics -----------------------------------------------------------------------------

// How many elements are NaN (0), infinite (1) or zero (2), i64 [1].
static Value *elements_of_kind(Builder *b, Value *flat, int kind)
{
	const Dim *one = dim_const(b->ctx, 1);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &one, 0));
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, flat->type->dims);
	Value *v = load(&r.b, flat, r.at);
	Value *is = kind == 2 ? apply2(&r.b, OP_PD_EQUAL, v, build_scalar_f(&r.b, flat->type->dtype, 0))
	                      : apply1(&r.b, kind ? OP_PD_ISINF : OP_PD_ISNAN, v);
	return nest_close(&n, reduce_close(&r, scalar_cast(&r.b, is, DT_I64)));
}

// The largest or the smallest element that is a number; NaN if the first is, 0 of none. [1].
static Value *extreme_of(Builder *b, Value *flat, const char *kind)
{
	const DType t = flat->type->dtype;
	const Dim *one = dim_const(b->ctx, 1), *numel = flat->type->dims[0];
	Nest n = nest_open(b, type_tensor(b->ctx, t, 1, &one, 0));
	Value *zero = index_const(&n.b, 0), *some = index_less(&n.b, zero, index_dim(&n.b, numel));
	Value *none = build_scalar_f(&n.b, t, 0);
	Value *first = load_or(&n.b, some, none, flat, &zero);
	Nest r = reduce_open(&n.b, kind, t, 1, &numel);
	Value *v = load(&r.b, flat, r.at);
	v = reduce_close(&r, index_where(&r.b, apply1(&r.b, OP_PD_ISNAN, v), first, v));
	v = index_where(&n.b, apply1(&n.b, OP_PD_ISNAN, first), first, v);
	return nest_close(&n, index_where(&n.b, some, v, none));
}

static Value *mean_of(Builder *b, Value *flat)
{
	const DType t = flat->type->dtype;
	const Dim *one = dim_const(b->ctx, 1), *numel = flat->type->dims[0];
	Nest n = nest_open(b, type_tensor(b->ctx, t, 1, &one, 0));
	Value *all = scalar_from_index(&n.b, index_dim(&n.b, numel), t);
	Nest r = reduce_open(&n.b, "sum", t, 1, &numel);
	return nest_close(&n, reduce_close(&r, tensor_div(&r.b, load(&r.b, flat, r.at), all)));
}

bool define_hook_check_numerics(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_tensor(op, 0);
	Value *flat = t ? tensor_flat(b, op_operand(op, 0)) : NULL;
	if (flat && t->dtype != DT_F64)
		flat = tensor_cast(b, flat, DT_F32);
	if (!flat)
		return false;
	Value *const stats[] = {elements_of_kind(b, flat, 0), elements_of_kind(b, flat, 1),
	                        elements_of_kind(b, flat, 2)};
	Value *const values[] = {extreme_of(b, flat, "max"), extreme_of(b, flat, "min"),
	                         mean_of(b, flat)};
	results[0] = tensor_concat(b, 3, stats, 0);
	results[1] = tensor_cast(b, tensor_concat(b, 3, values, 0), DT_F32);
	return results[0] && results[1];
}
