// Where slices begin and end, when only data say so: negative positions count from the end, and
// what lies outside is clamped, as the run finds the numbers. A nest in front of the operation does
// that for one element, and a loop.bind makes it a size in [0, size of the axis], so that inference
// and definitions go on with sizes.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

// One position: an element of a tensor, and what is known of it.
typedef struct Bound {
	Value *v;
	int at;
	const Dim *known;
	bool joined; // with others to a vector
} Bound;

// Element k of a vector: where it is joined from single numbers, as Paddle 3 writes positions, the
// number itself, so that what x[i] means is seen.
static Bound element_of(Value *vector, int k, const Dim *known)
{
	Value *const *parts,
		*all = vector->def && vector->def->noperand ? op_operand(vector->def, 0) : NULL;
	if (!all || vector->def->code != OP_PD_STACK || all->type->kind != TY_VEC)
		return (Bound){vector, k, known, false};
	const int n = op_operand_list(vector->def, 0, &parts);
	const bool single = k < n && parts[k] && type_is_tensor(parts[k]->type) &&
	                    parts[k]->type->rank == 0;
	return single ? (Bound){parts[k], 0, known, true} : (Bound){vector, k, known, false};
}

// The positions that an operand holds, one per axis; -1: they are not there, or as many as it
// takes.
static int bounds_of(const Op *op, const char *attr, Bound *out)
{
	int i = op_info_operand(op->info, op_info_attr(op->info, attr)->operand), n = 0;
	Value *list_of = op_operand(op, i), *const * list;
	const Dim *const *known;
	int64_t numel;
	if (!list_of)
		return -1;
	if (list_of->type->kind == TY_VEC) {
		n = op_operand_list(op, i, &list);
		for (int k = 0; k < n && n <= MAX_RANK; k++)
			out[k] = (Bound){list[k], 0,
			                 list[k] && value_known(list[k], &known) == 1 ? known[0] : NULL, false};
		return n <= MAX_RANK ? n : -1;
	}
	if (!type_is_tensor(list_of->type) || !type_const_numel(list_of->type, &numel) ||
	    numel > MAX_RANK)
		return -1;
	n = value_known(list_of, &known);
	for (int k = 0; k < (int)numel; k++)
		out[k] = element_of(list_of, k, k < n ? known[k] : NULL);
	return (int)numel;
}

// x = y + 1, as x[i] is exported: from i to i + 1.
static bool is_next(const Value *x, const Value *y)
{
	const Dim *const *one;
	while (x->def && (x->def->info->traits & TRAIT_VIEW))
		x = op_operand(x->def, 0);
	while (y->def && (y->def->info->traits & TRAIT_VIEW))
		y = op_operand(y->def, 0);
	if (!x->def || op_operand(x->def, 0) != y)
		return false;
	if (x->def->code == OP_PD_SCALE)
		return op_number(x->def, "scale") == 1 && op_number(x->def, "bias") == 1;
	return x->def->code == OP_PD_ADD && value_known(op_operand(x->def, 1), &one) == 1 &&
	       dim_is(one[0], 1);
}

static bool is_dropped(Op *op, int axis)
{
	bool dropped[MAX_RANK];
	return slice_drops(op, op_operand(op, 0)->type->rank, dropped) && dropped[axis];
}

// x[-1] is the last element, but x[-1:0] is nothing: no position in the axis then.
static Value *nothing_at_last(Builder *b, Op *op, int axis, Value *v, Value *size, Value *from)
{
	if (is_dropped(op, axis))
		return from;
	Value *last = apply2(b, OP_PD_EQUAL, v, build_scalar_f(b, DT_I64, -1));
	return index_where(b, last, size, from);
}

// What the element is as a position in an axis of this size. Walking down, positions count from 1,
// so that "in front of the first" is 0; there a strided_slice takes an end of -1 as it is.
static Value *position_build(Op *op, const Bound *x, int axis, const Dim *dim, bool down,
                             bool start, bool one)
{
	Builder b = builder_before(op);
	Nest n = nest_open(&b, type_tensor(op->ctx, DT_I64, 0, NULL, 0));
	Value *size = scalar_from_index(&n.b, index_dim(&n.b, dim), DT_I64),
		  *zero = build_scalar_f(&n.b, DT_I64, 0);
	Value *at = index_const(&n.b, x->at),
		  *v = x->v->type->rank == 1 ? load(&n.b, x->v, &at) : load_scalar(&n.b, x->v);
	v = scalar_cast(&n.b, v, DT_I64);
	Value *low = zero;
	Value *from = index_where(&n.b, apply2(&n.b, OP_PD_LESS_THAN, v, zero),
	                          apply2(&n.b, OP_PD_ADD, v, size), v);
	bool past = down && !start && !op_bool(op, "from_end", false); // with an end of -1
	if (past &&
	    op->code == OP_PD_STRIDED_SLICE) // others stop in front of the first element at the latest
		low = build_scalar_f(&n.b, DT_I64, 1);
	if (down)
		from = apply2(&n.b, OP_PD_ADD, from, build_scalar_f(&n.b, DT_I64, 1));
	if (one) { // in front of the first is no element, as behind the last
		from = nothing_at_last(&n.b, op, axis, v, size, from);
		from = index_where(&n.b, apply2(&n.b, OP_PD_LESS_THAN, from, zero), size, from);
	}
	from = apply2(&n.b, OP_PD_MINIMUM, apply2(&n.b, OP_PD_MAXIMUM, from, low), size);
	if (past)
		from = index_where(&n.b, apply2(&n.b, OP_PD_EQUAL, v, build_scalar_f(&n.b, DT_I64, -1)),
		                   zero, from);
	return nest_close(&n, from);
}

static const Dim *position_bind(Op *op, const Bound *x, int axis, const Dim *dim, bool down,
                                bool start, bool one)
{
	Context *c = op->ctx;
	Value *v = x->v && x->v->type->rank <= 1 ? position_build(op, x, axis, dim, down, start, one)
	                                         : NULL;
	const Dim *sym = infer_found(op, start ? "start_" : "end_", op->info->short_name, axis);
	Builder b = builder_before(op);
	if (!bind_certain_size(&b, v, sym))
		return NULL;
	dim_set_bound(c, sym, dim);
	return down ? dim_sub(c, sym, dim_const(c, 1)) : sym;
}

// The element of x, plus `more`, as an i64 in front of op.
static Value *element_plus(Op *op, const Bound *x, int64_t more)
{
	Builder b = builder_before(op);
	Nest n = nest_open(&b, type_tensor(op->ctx, DT_I64, 0, NULL, 0));
	Value *at = index_const(&n.b, x->at),
		  *v = x->v->type->rank == 1 ? load(&n.b, x->v, &at) : load_scalar(&n.b, x->v);
	v = scalar_cast(&n.b, v, DT_I64);
	return nest_close(&n, apply2(&n.b, OP_PD_ADD, v, build_scalar_f(&n.b, DT_I64, (double)more)));
}

// A stride that only data tell must be positive: what is bound, a size, is one less.
static const Dim *stride_bind(Op *op, const Bound *x, int axis)
{
	Context *c = op->ctx;
	Value *less = x->v && x->v->type->rank <= 1 ? element_plus(op, x, -1) : NULL;
	const Dim *sym = infer_found(op, "stride_", op->info->short_name, axis);
	const NamedAttr attrs[] = {{"dims", attr_dims(c, 1, &sym)}};
	Builder b = builder_before(op);
	if (!less || !build_op(&b, OP_LOOP_BIND, 1, &less, COUNT_OF(attrs), attrs))
		return NULL;
	dim_set_bound(c, sym, dim_const(c, INT32_MAX));
	return dim_add(c, sym, dim_const(c, 1));
}

bool infer_slice_strides(Op *op, const char *attr)
{
	Bound x[MAX_RANK];
	const Dim *dims[MAX_RANK];
	int n = bounds_of(op, attr, x);
	if (n < 0)
		return true;
	for (int i = 0; i < n; i++) {
		dims[i] = x[i].known ? x[i].known : stride_bind(op, &x[i], i);
		if (!dims[i])
			return op_error(op, "a stride that only the data tell must be one whole number");
	}
	op_set_attr(op, attr, attr_dims(op->ctx, n, dims));
	op_set_operand(op, op_info_operand(op->info, op_info_attr(op->info, attr)->operand), NULL);
	return true;
}

// How far a cyclic shift goes that only data tell, within the axis: shifts may be negative, and as
// long as they like.
static const Dim *shift_bind(Op *op, const Bound *x, int i, const Dim *size)
{
	Context *c = op->ctx;
	Builder b = builder_before(op);
	Nest n = nest_open(&b, type_tensor(c, DT_I64, 0, NULL, 0));
	Value *at = index_const(&n.b, x->at),
		  *v = x->v->type->rank == 1 ? load(&n.b, x->v, &at) : load_scalar(&n.b, x->v);
	Value *most = scalar_from_index(&n.b, index_dim(&n.b, size), DT_I64);
	most = apply2(&n.b, OP_PD_MAXIMUM, most, build_scalar_f(&n.b, DT_I64, 1));
	v = nest_close(&n, apply2(&n.b, OP_PD_REMAINDER, scalar_cast(&n.b, v, DT_I64), most));
	const Dim *sym = infer_found(op, "shift_", op->info->short_name, i);
	if (!bind_certain_size(&b, v, sym))
		return NULL;
	dim_set_bound(c, sym, size);
	return sym;
}

bool infer_shifts(Op *op, int n, const Dim *const *sizes)
{
	Bound x[MAX_RANK];
	const Dim *dims[MAX_RANK];
	if (bounds_of(op, "shifts", x) != n)
		return true;
	for (int i = 0; i < n; i++) {
		dims[i] = x[i].known                          ? x[i].known
		          : x[i].v && x[i].v->type->rank <= 1 ? shift_bind(op, &x[i], i, sizes[i])
		                                              : NULL;
		if (!dims[i])
			return op_error(op, "a shift that only the data tell must be one whole number");
	}
	op_set_attr(op, "shifts", attr_dims(op->ctx, n, dims));
	op_set_operand(op, op_info_operand(op->info, op_info_attr(op->info, "shifts")->operand), NULL);
	return true;
}

// Whether v changes from round to round of a loop: where a few more instructions for each x[i]
// would count.
static bool changes_in_loop(const Value *v)
{
	const Block *b = v->def ? v->def->block : v->block;
	for (const Op *op; b && (op = b->region->op); b = op->block)
		if (op->code == OP_PD_WHILE)
			return true;
	return false;
}

// Of the operation that makes a value whose first operand is not: whether the result is not either,
// as far as its numbers and second operand tell.
static bool keeps_sign(const Op *op, int depth)
{
	switch (op->code) {
	case OP_PD_SCALE: return op_number(op, "scale") >= 0 && op_number(op, "bias") >= 0;
	case OP_PD_INCREMENT: return op_number(op, "value") >= 0;
	case OP_PD_CAST: return true;
	case OP_PD_ADD:
	case OP_PD_MULTIPLY:
	case OP_PD_FLOOR_DIVIDE:
	case OP_PD_REMAINDER: return value_never_negative(op_operand(op, 1), depth);
	default: return op->info->traits & TRAIT_VIEW;
	}
}

bool value_never_negative(Value *v, int depth)
{
	const Dim *const *known;
	int64_t lo = -1, hi;
	if (value_known(v, &known) == 1)
		dim_range(known[0], &lo, &hi);
	if (lo >= 0 || v->never_negative || !depth)
		return lo >= 0 || v->never_negative;
	v->sign_asked = v->sign_asked || !v->def;
	return v->def && v->def->noperand && keeps_sign(v->def, depth - 1) &&
	       value_never_negative(op_operand(v->def, 0), depth - 1);
}

// The element of x, from the end of an axis of this size where it is negative.
static Value *element_wrapped(Op *op, const Bound *x, int axis, const Dim *dim)
{
	Builder b = builder_before(op);
	Nest n = nest_open(&b, type_tensor(op->ctx, DT_I64, 0, NULL, 0));
	Value *at = index_const(&n.b, x->at),
		  *v = x->v->type->rank == 1 ? load(&n.b, x->v, &at) : load_scalar(&n.b, x->v);
	v = scalar_cast(&n.b, v, DT_I64);
	Value *size = scalar_from_index(&n.b, index_dim(&n.b, dim), DT_I64),
		  *zero = build_scalar_f(&n.b, DT_I64, 0);
	Value *from = index_where(&n.b, apply2(&n.b, OP_PD_LESS_THAN, v, zero),
	                          apply2(&n.b, OP_PD_ADD, v, size), v);
	return nest_close(&n, nothing_at_last(&n.b, op, axis, v, size, from));
}

// The start of x[i], whose end is one further: a size, which the read checks to lie in the axis.
static const Dim *index_bind(Op *op, const Bound *x, int axis, const Dim *dim)
{
	Value *v = x->v && x->v->type->rank <= 1 ? element_wrapped(op, x, axis, dim) : NULL;
	const Dim *sym = infer_found(op, "start_", op->info->short_name, axis);
	const NamedAttr attrs[] = {{"dims", attr_dims(op->ctx, 1, &sym)}};
	Builder b = builder_before(op);
	if (!v || !build_op(&b, OP_LOOP_BIND, 1, &v, COUNT_OF(attrs), attrs))
		return NULL;
	return sym;
}

// The starts (side 0) and the ends (side 1) of a slice.
typedef struct Sides {
	Bound x[2][MAX_RANK];
	int count[2], n;
	const int64_t *axes, *steps;
	int nstep;
} Sides;

// Whether an axis is sliced from a position to the next one. Where the axis stays, and the position
// is joined with others and the same in each round, x[-1:0] may be nothing.
static bool is_one(Op *op, const Bound *start, const Bound *end, int axis)
{
	return op->code == OP_PD_SLICE && is_next(end->v, start->v) &&
	       (!start->joined || changes_in_loop(start->v) || is_dropped(op, axis));
}

// What stands in the attribute for position i of a side. `open`: it is there anew; NULL then where
// no size says it. False after a diagnostic.
static bool side_bind(Op *op, Sides *s, int k, int i, const Dim **dim, bool *open)
{
	const Type *t = op_operand(op, 0)->type;
	const bool down = i < s->nstep && s->steps[i] < 0;
	Bound *start = &s->x[0][i], *end = &s->x[1][i];
	int d;
	if (!infer_axis(op, s->axes[i], t->rank, &d))
		return false;
	const bool one = s->count[!k] == s->n && is_one(op, start, end, d);
	const bool loop = one && changes_in_loop(start->v);
	*dim = s->x[k][i].known;
	if (*dim || (loop && value_never_negative(start->v, 8)))
		return true;
	*open = true;
	if (loop && !k && (*dim = index_bind(op, start, d, t->dims[d])))
		return true;
	*dim = one && k // the end is behind the start, wherever that is
	           ? dim_add(op->ctx, op_attr(op, "starts")->dims[i], dim_const(op->ctx, 1))
	           : position_bind(op, &s->x[k][i], d, t->dims[d], down, !k, one);
	return *dim || op_error(op, "a position that only the data tell must be one whole number");
}

bool infer_slice_bounds(Op *op, const int64_t *steps, int nstep)
{
	static const char *const attrs[] = {"starts", "ends"};
	int64_t axes[MAX_RANK];
	const int n = op_ints(op, "axes", axes, MAX_RANK);
	Sides s = {.n = n, .axes = axes, .steps = steps, .nstep = nstep};
	const Type *t = infer_tensor(op, 0);
	for (int k = 0; k < 2; k++)
		s.count[k] = bounds_of(op, attrs[k], s.x[k]);
	for (int k = 0; t && k < 2; k++) {
		const Dim *dims[MAX_RANK];
		bool open = false;
		for (int i = 0; s.count[k] == n && i < n; i++)
			if (!side_bind(op, &s, k, i, &dims[i], &open))
				return false;
		for (int i = 0; open && i < n; i++)
			open = dims[i] != NULL;
		if (!open)
			continue;
		op_set_attr(op, attrs[k], attr_dims(op->ctx, n, dims));
		op_set_operand(op, op_info_operand(op->info, op_info_attr(op->info, attrs[k])->operand),
		               NULL);
	}
	return true;
}
