// pd.array_to_tensor on the tensors of an array. Along the first axis the elements of one size
// already lie one behind the other, so the result is the beginning of the array's memory; else a
// nest collects them. Called by arrays_ops.c.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/arrays/parts.h"
#include "lower/pass/rewrite.h"

typedef struct Join {
	Arrays *a;
	Builder b;
	Op *op;
	const ArrayGroup *g;
	const Type *type; // of the result
	const Dim *count; // elements
	int axis;
	bool stack;
} Join;

static const Type *one_integer(Context *c)
{
	const Dim *one = dim_const(c, 1);
	return type_tensor(c, DT_I64, 1, &one, 0);
}

// The axis of elements that is axis d of the result; -1: the new one.
static int element_axis(const Join *j, int d)
{
	return !j->stack || d < j->axis ? d : d == j->axis ? -1 : d - 1;
}

// ---- checks -------------------------------------------------------------------------------------

static bool check(Join *j, Value *holds, const char *message)
{
	return build_assert(&j->b, holds, message);
}

static bool check_not_empty(Join *j)
{
	Nest n = nest_open(&j->b, type_shaped(j->a->ctx, TY_TENSOR, DT_BOOL, 0, NULL));
	Value *some = apply2(&n.b, OP_PD_LESS_THAN, build_scalar_f(&n.b, DT_I64, 0),
	                     load_scalar(&n.b, j->g->length));
	return check(j, nest_close(&n, some), "the array is empty");
}

// Whether size d of element e is as it must be: that of the first one, or at least 0 where the
// sizes may differ.
static Value *size_fits(Join *j, Builder *b, Value *e, int d)
{
	Value *at[] = {e, index_const(b, d)}, *first[] = {index_const(b, 0), at[1]},
		  *size = load(b, j->g->extra, at);
	if (d == (j->stack ? -1 : j->axis))
		return apply2(b, OP_PD_LESS_EQUAL, build_scalar_f(b, DT_I64, 0), size);
	return apply2(b, OP_PD_EQUAL, size, load(b, j->g->extra, first));
}

// Every element must be there, and of a size that goes with the others.
static bool check_elements(Join *j)
{
	if (!j->g->extra)
		return true;
	Nest n = nest_open(&j->b, type_shaped(j->a->ctx, TY_TENSOR, DT_BOOL, 0, NULL));
	Nest all = reduce_open(&n.b, "all", DT_BOOL, 1, &j->g->c->capacity);
	Value *e = scalar_from_index(&all.b, all.at[0], DT_I64), *fits = NULL;
	Value *outside = apply2(&all.b, OP_PD_LESS_EQUAL, load_scalar(&all.b, j->g->length), e);
	if (!j->g->c->open)
		fits = load(&all.b, j->g->extra, all.at);
	for (int d = 0; j->g->c->open && d < j->g->c->rank; d++)
		fits = pred_and(&all.b, fits, size_fits(j, &all.b, all.at[0], d));
	return check(
		j, nest_close(&n, reduce_close(&all, apply2(&all.b, OP_PD_LOGICAL_OR, outside, fits))),
		"an element is missing, or has another size");
}

// ---- sizes --------------------------------------------------------------------------------------

// How long the result is along the axis, as a scalar.
static Value *size_along(Join *j, Builder *b)
{
	const ArrayClass *c = j->g->c;
	Value *length = load_scalar(b, j->g->length);
	if (j->stack)
		return length;
	if (!c->open)
		return apply2(b, OP_PD_MULTIPLY, length,
		              scalar_from_index(b, index_dim(b, c->dims[j->axis]), DT_I64));
	Nest sum = reduce_open(b, "sum", DT_I64, 1, &c->capacity);
	Value *e = scalar_from_index(&sum.b, sum.at[0], DT_I64),
		  *at[] = {sum.at[0], index_const(&sum.b, j->axis)};
	Value *where[] = {apply2(&sum.b, OP_PD_LESS_THAN, e, load_scalar(&sum.b, j->g->length)),
	                  load(&sum.b, j->g->extra, at), build_scalar_f(&sum.b, DT_I64, 0)};
	return reduce_close(&sum, build(&sum.b, OP_PD_WHERE, 3, where, NULL));
}

// Size d of the result, as a scalar.
static Value *size_result(Join *j, Builder *b, int d)
{
	int from = element_axis(j, d);
	if (d == j->axis)
		return size_along(j, b);
	if (!j->g->c->open)
		return scalar_from_index(b, index_dim(b, j->g->c->dims[from]), DT_I64);
	Value *at[] = {index_const(b, 0), index_const(b, from)};
	return load(b, j->g->extra, at);
}

// What is known before the run of how long the result becomes.
static void bound_sizes(Join *j)
{
	const ArrayClass *c = j->g->c;
	Context *ctx = j->a->ctx;
	const Dim *most = c->open && !j->stack ? dim_mul(ctx, c->capacity, c->slice) : c->capacity;
	if (!c->open && !j->stack)
		most = dim_mul(ctx, most, c->dims[j->axis]);
	array_set_bound(ctx, j->count, c->capacity);
	array_set_bound(ctx, j->type->dims[j->axis], most);
}

static bool bind_sizes(Join *j)
{
	bound_sizes(j);
	for (int d = -1; d < j->type->rank; d++) {
		const Dim *dim = d < 0 ? j->count : j->type->dims[d];
		if (j->stack && d == j->axis && dim == j->count)
			continue; // the length, which was bound first
		Nest n = nest_open(&j->b, one_integer(j->a->ctx));
		Value *size = d < 0 ? load_scalar(&n.b, j->g->length) : size_result(j, &n.b, d);
		if (!array_bind(&j->b, nest_close(&n, size), 1, &dim))
			return false;
	}
	return true;
}

// ---- elements -----------------------------------------------------------------------------------

// Positions at which the elements begin along the axis, i64 [count].
static Value *build_starts(Join *j)
{
	Nest n = nest_open(&j->b, type_tensor(j->a->ctx, DT_I64, 1, &j->count, 0));
	Nest sum = reduce_open(&n.b, "sum", DT_I64, 1, &j->count);
	Value *at[] = {sum.at[0], index_const(&sum.b, j->axis)};
	Value *where[] = {index_less(&sum.b, sum.at[0], n.at[0]), load(&sum.b, j->g->extra, at),
	                  build_scalar_f(&sum.b, DT_I64, 0)};
	return nest_close(&n, reduce_close(&sum, build(&sum.b, OP_PD_WHERE, 3, where, NULL)));
}

// Which element holds each position along the axis, i64 [along]: the last one that does not begin
// behind it.
static Value *build_owners(Join *j, Value *starts)
{
	Nest n = nest_open(&j->b, type_tensor(j->a->ctx, DT_I64, 1, &j->type->dims[j->axis], 0));
	Nest sum = reduce_open(&n.b, "sum", DT_I64, 1, &j->count);
	Value *at = scalar_from_index(&sum.b, n.at[0], DT_I64);
	Value *begun = scalar_cast(
		&sum.b, apply2(&sum.b, OP_PD_LESS_EQUAL, load(&sum.b, starts, sum.at), at), DT_I64);
	Value *behind = reduce_close(&sum, begun);
	return nest_close(&n, apply2(&n.b, OP_PD_SUBTRACT, behind, build_scalar_f(&n.b, DT_I64, 1)));
}

// The element at `at` (positions in element e) of an open array: the size along the axis is that of
// the element.
static Value *load_open(Join *j, Builder *b, Value *e, Value *const *at)
{
	const ArrayClass *c = j->g->c;
	const Dim *room = dim_add(b->ctx, c->slice, dim_const(b->ctx, 1));
	Value *linear = NULL;
	for (int d = 0; d < c->rank; d++) {
		Value *size_at[] = {e, index_const(b, d)}, *size = NULL;
		if (linear)
			size = index_from_data(b, load(b, j->g->extra, size_at), room, false);
		linear = linear ? index_add(b, index_mul(b, linear, size), at[d]) : at[d];
	}
	Value *index[] = {e, linear ? linear : index_const(b, 0)};
	return load(b, j->g->data, index);
}

static Value *collect(Join *j, Value *starts, Value *owners)
{
	const ArrayClass *c = j->g->c;
	Nest n = nest_open(&j->b, j->type);
	Value *at[MAX_RANK + 1], *along = n.at[j->axis], *e = along;
	for (int d = 0; d < j->type->rank; d++)
		if (element_axis(j, d) >= 0)
			at[1 + element_axis(j, d)] = n.at[d];
	if (!j->stack && c->open) {
		e = index_from_data(&n.b, load(&n.b, owners, &along), c->capacity, false);
		Value *begin = index_from_data(&n.b, load(&n.b, starts, &e), j->type->dims[j->axis], false);
		at[1 + j->axis] = index_sub(&n.b, along, begin);
	} else if (!j->stack) {
		Value *size = index_dim(&n.b, c->dims[j->axis]);
		e = index_div(&n.b, along, size);
		at[1 + j->axis] = index_mod(&n.b, along, size);
	}
	at[0] = e;
	return nest_close(&n, c->open ? load_open(j, &n.b, e, at + 1) : load(&n.b, j->g->data, at));
}

static Value *elements_join(Join *j)
{
	if (!j->g->c->open && j->axis == 0) {
		Op *prefix = op_new(j->a->ctx, OP_LOOP_PREFIX, j->op->loc, 1, &j->type, 1, &j->g->data, 0,
		                    0);
		op_insert_before(j->op, prefix);
		return &prefix->results[0];
	}
	if (j->stack || !j->g->c->open)
		return collect(j, NULL, NULL);
	Value *starts = build_starts(j), *owners = starts ? build_owners(j, starts) : NULL;
	return owners ? collect(j, starts, owners) : NULL;
}

// The size of every element along the axis.
static Value *build_sizes(Join *j)
{
	Nest n = nest_open(&j->b, j->op->results[1].type);
	Value *at[] = {n.at[0], index_const(&n.b, j->axis)}, *size;
	if (j->stack)
		size = build_scalar_f(&n.b, DT_I64, 1);
	else if (j->g->c->open)
		size = load(&n.b, j->g->extra, at);
	else
		size = scalar_from_index(&n.b, index_dim(&n.b, j->g->c->dims[j->axis]), DT_I64);
	return nest_close(&n, size);
}

bool array_join_rewrite(Arrays *a, Op *op)
{
	const Type *t = op->results[0].type;
	Join j = {.a = a,
	          .b = builder_before(op),
	          .op = op,
	          .g = array_group(a, op_operand(op, 0)),
	          .type = t};
	j.stack = op_bool(op, "use_stack", false);
	j.count = op->results[1].type->dims[0];
	j.axis = axis_norm(op_int(op, "axis", 0), t->rank);
	if (t->rank != j.g->c->rank + j.stack || !check_not_empty(&j) || !check_elements(&j) ||
	    !bind_sizes(&j))
		return false;
	Value *with[2] = {elements_join(&j),
	                  value_used(&op->results[1]) ? build_sizes(&j) : &op->results[1]};
	if (!with[0] || !with[1])
		return false;
	op_replace(op, with);
	return true;
}
