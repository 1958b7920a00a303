// What a scalar operation of a nest or kernel is in simpler words: index arithmetic folds by the
// ranges that the loops give, comparisons and choices by what is known, elements by neutral
// constants. Called by fuse_simplify.c for each operation of a region.
#include "ir/build/nest.h"
#include "lower/nests/fuse.h"
#include "lower/nests/fuse_range.h"
#include "lower/pass/numbering.h"

enum { MAX_TABLE = 64 << 10 }; // elements that are looked at

// ---- rewriting ----------------------------------------------------------------------------------

static Value *build_bool(Builder *b, bool v)
{
	return build(b, OP_LOOP_CONSTANT, 0, NULL, "value", attr_int(b->ctx, v), "type",
	             attr_type(b->ctx, type_scalar(b->ctx, DT_BOOL)), NULL);
}

static bool fold_constants(enum OpCode code, int64_t a, int64_t b, int64_t *out)
{
	const bool divides = b > 0 && a >= 0;
	switch (code) {
	case OP_PD_ADD: *out = a + b; return true;
	case OP_PD_SUBTRACT: *out = a - b; return true;
	case OP_PD_MULTIPLY: *out = a * b; return true;
	case OP_PD_FLOOR_DIVIDE: *out = divides ? a / b : 0; return divides;
	case OP_PD_REMAINDER: *out = divides ? a % b : 0; return divides;
	case OP_PD_MINIMUM: *out = a < b ? a : b; return true;
	case OP_PD_MAXIMUM: *out = a > b ? a : b; return true;
	default: return false;
	}
}

// (x + c1) + c2 and the like to x + c.
static Value *simplify_offsets(Builder *b, const Op *op, int64_t c2)
{
	const Op *inner = op_operand(op, 0)->def;
	int64_t c1;
	if (!inner || (inner->code != OP_PD_ADD && inner->code != OP_PD_SUBTRACT))
		return NULL;
	if (!scalar_constant(op_operand(inner, 1), &c1))
		return NULL;
	int64_t sum = (inner->code == OP_PD_ADD ? c1 : -c1) + (op->code == OP_PD_ADD ? c2 : -c2);
	Value *x = op_operand(inner, 0);
	if (sum == 0)
		return x;
	Value *c = index_const(b, sum < 0 ? -sum : sum);
	return build2(b, sum < 0 ? OP_PD_SUBTRACT : OP_PD_ADD, x, c, NULL);
}

// x / d or x % d for x = outer * d + inner, inner < d.
static Value *simplify_split(const Op *op, const Dim *d)
{
	const Op *sum = op_operand(op, 0)->def;
	if (!sum || sum->code != OP_PD_ADD)
		return NULL;
	for (int i = 0; i < 2; i++) {
		const Op *mul = op_operand(sum, i)->def;
		Value *inner = op_operand(sum, 1 - i);
		if (!mul || mul->code != OP_PD_MULTIPLY)
			continue;
		int at = index_size(op_operand(mul, 1)) == d   ? 0
		         : index_size(op_operand(mul, 0)) == d ? 1
		                                               : -1;
		Range r = range_of(inner);
		bool small = r.lo >= 0 && (r.below == d || (dim_is_const(d) && r.hi < d->value));
		if (at >= 0 && small)
			return op->code == OP_PD_REMAINDER ? inner : op_operand(mul, at);
	}
	return NULL;
}

static Value *simplify_division(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0);
	const Dim *d = index_size(op_operand(op, 1));
	bool rest = op->code == OP_PD_REMAINDER;
	if (!d)
		return NULL;
	if (dim_is(d, 1))
		return rest ? index_const(b, 0) : x;
	Range r = range_of(x);
	if (r.lo >= 0 && (r.below == d || (dim_is_const(d) && r.hi < d->value)))
		return rest ? x : index_const(b, 0);
	return simplify_split(op, d);
}

static Value *simplify_min_max(const Op *op)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	Range a = range_of(x), b = range_of(y);
	bool min = op->code == OP_PD_MINIMUM;
	if (a.hi <= b.lo)
		return min ? x : y;
	if (b.hi <= a.lo)
		return min ? y : x;
	const Dim *d = index_size(y);
	if (min && d && a.below && dim_add(op->ctx, d, dim_const(op->ctx, 1)) == a.below)
		return x;
	return NULL;
}

// x / d * d + x % d is x.
static Value *simplify_rejoin(const Op *op)
{
	for (int i = 0; i < 2; i++) {
		const Op *mul = op_operand(op, i)->def, *rem = op_operand(op, 1 - i)->def;
		if (!mul || mul->code != OP_PD_MULTIPLY || !rem || rem->code != OP_PD_REMAINDER)
			continue;
		const Op *div = op_operand(mul, 0)->def;
		const Dim *d = index_size(op_operand(mul, 1));
		if (d && div && div->code == OP_PD_FLOOR_DIVIDE &&
		    op_operand(div, 0) == op_operand(rem, 0) && index_size(op_operand(div, 1)) == d &&
		    index_size(op_operand(rem, 1)) == d)
			return op_operand(rem, 0);
	}
	return NULL;
}

static Value *simplify_sum(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	int64_t cx, cy;
	if (scalar_constant(x, &cx) && cx == 0)
		return y;
	if (scalar_constant(y, &cy))
		return cy == 0 ? x : simplify_offsets(b, op, cy);
	return simplify_rejoin(op);
}

static Value *simplify_difference(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	int64_t by;
	if (x == y)
		return index_const(b, 0);
	return !scalar_constant(y, &by) ? NULL : by == 0 ? x : simplify_offsets(b, op, by);
}

static Value *simplify_product(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	int64_t cx, cy;
	bool kx = scalar_constant(x, &cx), ky = scalar_constant(y, &cy);
	if ((kx && cx == 0) || (ky && cy == 0))
		return index_const(b, 0);
	return kx && cx == 1 ? y : ky && cy == 1 ? x : NULL;
}

static Value *simplify_arithmetic(Builder *b, const Op *op)
{
	int64_t cx, cy, out;
	if (scalar_constant(op_operand(op, 0), &cx) && scalar_constant(op_operand(op, 1), &cy) &&
	    fold_constants(op->code, cx, cy, &out))
		return index_const(b, out);
	switch (op->code) {
	case OP_PD_ADD: return simplify_sum(b, op);
	case OP_PD_SUBTRACT: return simplify_difference(b, op);
	case OP_PD_MULTIPLY: return simplify_product(b, op);
	case OP_PD_FLOOR_DIVIDE:
	case OP_PD_REMAINDER: return simplify_division(b, op);
	case OP_PD_MINIMUM:
	case OP_PD_MAXIMUM: return simplify_min_max(op);
	default: return NULL;
	}
}

// 1: x < y always, 0: never, -1: not known.
static int known_less(const Value *x, const Value *y)
{
	Range a = range_of(x), b = range_of(y);
	const Dim *d = index_size(y);
	const Op *sum = y->def && y->def->code == OP_PD_ADD ? y->def : NULL;
	int64_t more;
	if (a.hi < b.lo || (d && a.below == d) ||
	    (sum && op_operand(sum, 0) == x && scalar_constant(op_operand(sum, 1), &more) && more > 0))
		return 1;
	d = index_size(x);
	// y < D = x: then x < y never holds.
	if (a.lo >= b.hi || (d && b.below == d))
		return 0;
	return -1;
}

static Value *simplify_compare(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	int known = -1;
	switch (op->code) {
	case OP_PD_LESS_THAN: known = known_less(x, y); break;
	case OP_PD_GREATER_THAN: known = known_less(y, x); break;
	case OP_PD_LESS_EQUAL:
		known = known_less(y, x);
		known = known < 0 ? known : !known;
		break;
	case OP_PD_GREATER_EQUAL:
		known = known_less(x, y);
		known = known < 0 ? known : !known;
		break;
	case OP_PD_EQUAL:
	case OP_PD_NOT_EQUAL:
		if (x == y)
			known = op->code == OP_PD_EQUAL;
		else if (known_less(x, y) == 1 || known_less(y, x) == 1)
			known = op->code == OP_PD_NOT_EQUAL;
		break;
	default: break;
	}
	return known < 0 ? NULL : build_bool(b, known);
}

static bool same_value(const Value *a, const Value *b)
{
	return a == b ||
	       (a->def && b->def && a->def->code == OP_LOOP_CONSTANT && op_alike(a->def, b->def));
}

// A number compared with itself, or the larger of it. Not of floats: NaN differs from itself.
static Value *simplify_same(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0);
	if (op->noperand != 2 || !same_value(x, op_operand(op, 1)) || x->type->kind != TY_SCALAR ||
	    !dtype_is_int(x->type->dtype))
		return NULL;
	switch (op->code) {
	case OP_PD_EQUAL:
	case OP_PD_LESS_EQUAL:
	case OP_PD_GREATER_EQUAL: return build_bool(b, true);
	case OP_PD_NOT_EQUAL:
	case OP_PD_LESS_THAN:
	case OP_PD_GREATER_THAN: return build_bool(b, false);
	case OP_PD_MINIMUM:
	case OP_PD_MAXIMUM: return x;
	default: return NULL;
	}
}

static Value *simplify_logic(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	int64_t v;
	if (op->code == OP_PD_LOGICAL_NOT)
		return scalar_constant(x, &v) ? build_bool(b, !v) : NULL;
	bool and = op->code == OP_PD_LOGICAL_AND;
	if (x == y)
		return x;
	if (scalar_constant(x, &v))
		return (v != 0) == and? y : x;
	if (scalar_constant(y, &v))
		return (v != 0) == and? x : y;
	return NULL;
}

// A load whose predicate is known.
static Value *simplify_load_or(Builder *b, const Op *op)
{
	int64_t v;
	if (!scalar_constant(op_operand(op, 0), &v))
		return NULL;
	if (!v)
		return op_operand(op, 1);
	Value *operands[MAX_RANK + 1];
	int n = op->noperand - 2;
	if (n > MAX_RANK + 1)
		return NULL;
	for (int i = 0; i < n; i++)
		operands[i] = op_operand(op, i + 2);
	return build(b, OP_LOOP_LOAD, n, operands, NULL);
}

// A choice between a load under the same predicate and something else is one load_or.
static Value *simplify_guarded(Builder *b, const Op *where)
{
	const Op *load = op_operand(where, 1)->def;
	Value *operands[MAX_RANK + 3];
	if (!load || load->code != OP_LOOP_LOAD_OR || op_operand(load, 0) != op_operand(where, 0) ||
	    load->noperand > (int)COUNT_OF(operands))
		return NULL;
	for (int i = 0; i < load->noperand; i++)
		operands[i] = op_operand(load, i);
	operands[1] = op_operand(where, 2);
	return build(b, OP_LOOP_LOAD_OR, load->noperand, operands, NULL);
}

static bool number_is(const Value *v, double to)
{
	return v && v->def && v->def->code == OP_LOOP_CONSTANT &&
	       op_float(v->def, "value", to + 1) == to;
}

// Arithmetic of elements with neutral constants, as `scale` and its like make it. (Of x + 0 the
// sign of zero may differ.)
static Value *simplify_neutral(const Op *op)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	switch (op->code) {
	case OP_PD_ADD: return number_is(y, 0) ? x : number_is(x, 0) ? y : NULL;
	case OP_PD_SUBTRACT: return number_is(y, 0) ? x : NULL;
	case OP_PD_MULTIPLY: return number_is(y, 1) ? x : number_is(x, 1) ? y : NULL;
	case OP_PD_DIVIDE: return number_is(y, 1) ? x : NULL;
	default: return NULL;
	}
}

static Value *simplify_cast(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0);
	const Type *to = op->results[0].type;
	if (x->type == to)
		return x;
	bool number = x->def && x->def->code == OP_LOOP_CONSTANT && x->type->kind == TY_SCALAR;
	// Between floats only: other conversions truncate and wrap.
	return number && dtype_is_float(x->type->dtype) && (to->dtype == DT_F32 || to->dtype == DT_F64)
	           ? build_scalar_f(b, to->dtype,
	                            to->dtype == DT_F32 ? (float)op_float(x->def, "value", 0)
	                                                : op_float(x->def, "value", 0))
	           : NULL;
}

// Constants go to the right of sums and products, where the rules below look for them.
static void order_operands(Op *op)
{
	int64_t v;
	if ((op->code == OP_PD_ADD || op->code == OP_PD_MULTIPLY) &&
	    scalar_constant(op_operand(op, 0), &v) && !scalar_constant(op_operand(op, 1), &v)) {
		Value *x = op_operand(op, 0);
		op_set_operand(op, 0, op_operand(op, 1));
		op_set_operand(op, 1, x);
	}
}

static Value *simplify_where(Builder *b, Op *op)
{
	int64_t v;
	if (same_value(op_operand(op, 1), op_operand(op, 2)))
		return op_operand(op, 1);
	return scalar_constant(op_operand(op, 0), &v) ? op_operand(op, v ? 1 : 2)
	                                              : simplify_guarded(b, op);
}

// Whether all numbers of a constant from which one is loaded are positions below the size.
static bool table_is_below(const Op *load, int64_t size)
{
	const Tensor *t = value_constant(op_operand(load, 0));
	const int64_t n = t && dtype_is_int(t->dtype) ? tensor_numel(t) : 0;
	if (n == 0 || n > MAX_TABLE)
		return false;
	for (int64_t i = 0; i < n; i++)
		if (tensor_get_i(t, i) < 0 || tensor_get_i(t, i) >= size)
			return false;
	return true;
}

// A number that is surely within its tensor is an index that nobody checks.
static Value *simplify_index(Builder *b, const Op *op)
{
	const Op *number = op_operand(op, 0)->def;
	const Attr *value = number && number->code == OP_LOOP_CONSTANT ? op_attr(number, "value")
	                                                               : NULL;
	const Dim *extent = op_attr(op, "extent")->dim;
	int64_t least, most;
	dim_range_empty(extent, &least, &most);
	if (number && number->code == OP_LOOP_LOAD && table_is_below(number, least))
		return build1(b, OP_LOOP_POSITION, op_operand(op, 0), "extent", op_attr(op, "extent"),
		              NULL);
	if (!value || value->kind != ATTR_INT)
		return NULL;
	const bool wraps = op_bool(op, "wrap", false) && value->i < 0 && dim_is_const(extent);
	const int64_t at = value->i + (wraps ? extent->value : 0);
	return at >= 0 && at < least ? index_const(b, at) : NULL;
}

Value *scalar_simplified(Op *op)
{
	Builder b = builder_before(op);
	order_operands(op);
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	switch (op->code) {
	case OP_LOOP_TO_INDEX: return simplify_index(&b, op);
	case OP_LOOP_LOAD_OR: return simplify_load_or(&b, op);
	case OP_PD_WHERE: return simplify_where(&b, op);
	case OP_PD_LOGICAL_AND:
	case OP_PD_LOGICAL_OR:
	case OP_PD_LOGICAL_NOT: return value_is_bool(x) ? simplify_logic(&b, op) : NULL;
	case OP_PD_CAST: return simplify_cast(&b, op);
	default: break;
	}
	if (op->results[0].type->kind == TY_SCALAR && dtype_is_float(op->results[0].type->dtype))
		return simplify_neutral(op);
	if (op->noperand != 2 || !value_is_index(x) || !value_is_index(y))
		return simplify_same(&b, op);
	return value_is_index(&op->results[0]) ? simplify_arithmetic(&b, op) : simplify_compare(&b, op);
}
