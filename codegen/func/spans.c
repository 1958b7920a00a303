// What comparisons and limits of positions give where an index is known to lie in a part of its
// range. Asked through scalars_known.
#include "codegen/func/func.h"

enum { MAX_DEPTH = 12, MAX_LIMITS = 6, MAX_TURNS = 2 };

// Both ends included.
typedef struct Between {
	int64_t lo, hi;
} Between;

bool index_of_arg(const Value *v, const Value *arg, int64_t *offset)
{
	int64_t c;
	*offset = 0;
	for (int depth = 0; v != arg; depth++) {
		const Op *op = v->def;
		if (!op || depth > MAX_DEPTH || (op->code != OP_PD_ADD && op->code != OP_PD_SUBTRACT) ||
		    !index_constant(op_operand(op, 1), &c))
			return false;
		*offset += op->code == OP_PD_ADD ? c : -c;
		v = op_operand(op, 0);
	}
	return true;
}

static bool between(const Scalars *s, const Value *v, int depth, Between *out);

static bool span_of_arg(const Scalars *s, const Value *v, Between *out)
{
	int64_t c;
	for (int i = s->nspan; i-- > 0;)
		if (index_of_arg(v, s->spans[i].arg, &c)) {
			*out = (Between){s->spans[i].from + c, s->spans[i].to - 1 + c};
			return true;
		}
	return false;
}

// A loop of known length says between what its index is, wherever it runs; one index of several
// that are merged has no such meaning.
static bool loop_of_arg(const Scalars *s, const Value *v, Between *out)
{
	const Op *loop = v->block ? v->block->region->op : NULL;
	if (!loop || loop->code != OP_LOOP_REDUCE || pointer_map_get(&s->merged, v) ||
	    (v->index && pointer_map_get(&s->merged, v->block->args[v->index - 1])))
		return false;
	const Dim *extent = op_attr(loop, "extents")->dims[v->index];
	*out = (Between){0, extent->value - 1};
	return dim_is_const(extent) && extent->value >= 1;
}

static Between scaled(Between x, int64_t by)
{
	return by < 0 ? (Between){x.hi * by, x.lo * by} : (Between){x.lo * by, x.hi * by};
}

// Of a position and a number that is not 0.
static bool divided(const Op *op, Between x, Between y, Between *out)
{
	if (x.lo < 0 || y.lo < 1 || y.lo != y.hi)
		return false;
	if (op->code == OP_PD_FLOOR_DIVIDE) {
		*out = (Between){x.lo / y.lo, x.hi / y.lo};
		return true;
	}
	*out = (Between){x.lo % y.lo, x.hi % y.lo};
	return op->code == OP_PD_REMAINDER && x.lo / y.lo == x.hi / y.lo;
}

// Of two operands.
static bool combined(const Op *op, Between x, Between y, Between *out)
{
	switch (op->code) {
	case OP_PD_ADD: *out = (Between){x.lo + y.lo, x.hi + y.hi}; return true;
	case OP_PD_SUBTRACT: *out = (Between){x.lo - y.hi, x.hi - y.lo}; return true;
	case OP_PD_MULTIPLY: *out = scaled(x, y.lo); return y.lo == y.hi;
	case OP_PD_MAXIMUM:
		*out = (Between){x.lo > y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi};
		return true;
	case OP_PD_MINIMUM:
		*out = (Between){x.lo < y.lo ? x.lo : y.lo, x.hi < y.hi ? x.hi : y.hi};
		return true;
	default: return divided(op, x, y, out);
	}
}

// What a predicate is that somebody has decided in this place; -1: nobody has.
static int decided(const Scalars *s, const Value *pred)
{
	for (int i = 0; i < s->nknown; i++)
		if (s->known[i] == pred)
			return s->known_value[i];
	return -1;
}

static bool between(const Scalars *s, const Value *v, int depth, Between *out)
{
	int64_t c;
	Between x, y;
	const int choice = v->def && v->def->code == OP_PD_WHERE ? decided(s, op_operand(v->def, 0))
	                                                         : -1;
	if (choice >= 0 && depth < MAX_LIMITS)
		return between(s, op_operand(v->def, choice ? 1 : 2), depth + 1, out);
	if (index_constant(v, &c)) {
		*out = (Between){c, c};
		return true;
	}
	if (span_of_arg(s, v, out) || loop_of_arg(s, v, out))
		return true;
	const Op *op = v->def;
	return op && op->noperand == 2 && depth < MAX_LIMITS &&
	       between(s, op_operand(op, 0), depth + 1, &x) &&
	       between(s, op_operand(op, 1), depth + 1, &y) && combined(op, x, y, out);
}

// 1: x < y always, 0: never, -1: not known.
static int less(Between x, Between y)
{
	return x.hi < y.lo ? 1 : x.lo >= y.hi ? 0 : -1;
}

// 1: x == y always, 0: never, -1: not known.
static int equal(Between x, Between y)
{
	const bool apart = x.hi < y.lo || y.hi < x.lo;
	return apart ? 0 : x.lo == x.hi && y.lo == y.hi ? 1 : -1;
}

static int opposite(int known)
{
	return known < 0 ? known : !known;
}

static int compared(const Scalars *s, const Op *op)
{
	Between x, y;
	if (op->noperand != 2 || op_operand(op, 0)->type->kind != TY_INDEX ||
	    !between(s, op_operand(op, 0), 0, &x) || !between(s, op_operand(op, 1), 0, &y))
		return -1;
	switch (op->code) {
	case OP_PD_LESS_THAN: return less(x, y);
	case OP_PD_GREATER_THAN: return less(y, x);
	case OP_PD_LESS_EQUAL: return opposite(less(y, x));
	case OP_PD_GREATER_EQUAL: return opposite(less(x, y));
	case OP_PD_EQUAL: return equal(x, y);
	case OP_PD_NOT_EQUAL: return opposite(equal(x, y));
	default: return -1;
	}
}

static int known_at(const Scalars *s, const Value *pred, int depth)
{
	const Op *op = pred->def;
	if (decided(s, pred) >= 0)
		return decided(s, pred);
	if (!op || depth > MAX_DEPTH)
		return -1;
	const bool and = op->code == OP_PD_LOGICAL_AND;
	if (op->code == OP_PD_LOGICAL_NOT)
		return opposite(known_at(s, op_operand(op, 0), depth + 1));
	if (!and&&op->code != OP_PD_LOGICAL_OR)
		return compared(s, op);
	const int a = known_at(s, op_operand(op, 0), depth + 1),
			  b = known_at(s, op_operand(op, 1), depth + 1);
	if (a == !and || b == !and)
		return !and;
	return a < 0 || b < 0 ? -1 : and;
}

int scalars_known(const Scalars *s, const Value *pred)
{
	return s->nspan || s->nknown ? known_at(s, pred, 0) : -1;
}

const Value *scalars_rest(const Scalars *s, const Op *op)
{
	if (op->code != OP_PD_LOGICAL_AND && op->code != OP_PD_LOGICAL_OR)
		return NULL;
	for (int i = 0; i < 2; i++)
		if (scalars_known(s, op_operand(op, i)) >= 0)
			return op_operand(op, 1 - i);
	return NULL;
}

const Value *spans_limit(const Scalars *s, const Op *op)
{
	Between x, y;
	const bool most = op->code == OP_PD_MINIMUM;
	if (!s->nspan || (op->code != OP_PD_MAXIMUM && !most) ||
	    op->results[0].type->kind != TY_INDEX || !between(s, op_operand(op, 0), 0, &x) ||
	    !between(s, op_operand(op, 1), 0, &y))
		return NULL;
	const bool first = most ? x.hi <= y.lo : x.lo >= y.hi;
	const bool second = most ? y.hi <= x.lo : y.lo >= x.hi;
	return first ? op_operand(op, 0) : second ? op_operand(op, 1) : NULL;
}

// slope * arg + rest, whose loops of their own say between what it is.
typedef struct Line {
	int64_t slope;
	Between rest;
} Line;

static bool lines_combined(const Op *op, Line x, Line y, Line *out)
{
	const int64_t by = y.rest.lo;
	switch (op->code) {
	case OP_PD_ADD:
		*out = (Line){x.slope + y.slope, {x.rest.lo + y.rest.lo, x.rest.hi + y.rest.hi}};
		return true;
	case OP_PD_SUBTRACT:
		*out = (Line){x.slope - y.slope, {x.rest.lo - y.rest.hi, x.rest.hi - y.rest.lo}};
		return true;
	case OP_PD_MULTIPLY:
		*out = (Line){x.slope * by, scaled(x.rest, by)};
		return !y.slope && by == y.rest.hi;
	default: return false;
	}
}

// v as a line over arg, all limits on the way being decided.
static bool line_of(const Scalars *s, const Value *v, const Value *arg, int depth, Line *out)
{
	Line x, y;
	int64_t c = 0;
	const Op *op = v->def;
	if (v == arg || index_constant(v, &c)) {
		*out = (Line){v == arg, {c, c}};
		return true;
	}
	*out = (Line){0};
	if (!op || op->noperand != 2 || depth >= MAX_LIMITS)
		return loop_of_arg(s, v, &out->rest);
	const Value *chosen = spans_limit(s, op);
	if (chosen)
		return line_of(s, chosen, arg, depth + 1, out);
	return line_of(s, op_operand(op, 0), arg, depth + 1, &x) &&
	       line_of(s, op_operand(op, 1), arg, depth + 1, &y) && lines_combined(op, x, y, out);
}

// x - y as such a line.
static bool line_between(const Scalars *s, const Value *x, const Value *y, const Value *arg,
                         Line *out)
{
	Line a, b;
	if (x->type->kind != TY_INDEX || !line_of(s, x, arg, 0, &a) || !line_of(s, y, arg, 0, &b))
		return false;
	*out = (Line){a.slope - b.slope, {a.rest.lo - b.rest.hi, a.rest.hi - b.rest.lo}};
	return true;
}

// Whether op takes from a position another that moves with it.
static bool distance(const Scalars *s, const Op *op, int64_t *at)
{
	Line l;
	for (int i = s->nspan; op && op->code == OP_PD_SUBTRACT && i-- > 0;)
		if (line_between(s, op_operand(op, 0), op_operand(op, 1), s->spans[i].arg, &l) &&
		    !l.slope && l.rest.lo == l.rest.hi) {
			*at = l.rest.lo;
			return true;
		}
	return false;
}

bool spans_exact(const Scalars *s, const Value *index, int64_t *at)
{
	Between b;
	if (index->type->kind != TY_INDEX)
		return false;
	if (!between(s, index, 0, &b) || b.lo != b.hi)
		return distance(s, index->def, at);
	*at = b.lo;
	return true;
}

// From where on slope * at >= height, for a slope above 0.
static int64_t reached(int64_t slope, int64_t height)
{
	return height > 0 ? (height + slope - 1) / slope : -(-height / slope);
}

// -l where l < 0 is no less than that l + 1 is above 0, for whole numbers.
static Line line_opposite(Line l)
{
	return (Line){-l.slope, {-l.rest.hi - 1, -l.rest.lo - 1}};
}

bool spans_compared(const Scalars *s, const Op *op, const Value *arg, int64_t at[2])
{
	Line l;
	const bool turned = op->code == OP_PD_GREATER_THAN || op->code == OP_PD_GREATER_EQUAL,
			   or_equal = op->code == OP_PD_LESS_EQUAL || op->code == OP_PD_GREATER_EQUAL;
	if ((op->code != OP_PD_LESS_THAN && !turned && !or_equal) ||
	    !line_between(s, op_operand(op, turned), op_operand(op, !turned), arg, &l) || !l.slope)
		return false;
	// l < 0: always while even the most of the rest is below, never once the least of it is not.
	l.rest.lo -= or_equal;
	l.rest.hi -= or_equal;
	if (l.slope < 0)
		l = line_opposite(l);
	at[0] = reached(l.slope, -l.rest.hi);
	at[1] = reached(l.slope, -l.rest.lo);
	return true;
}

bool spans_equal(const Scalars *s, const Op *op, const Value *arg, int64_t *at)
{
	Line l;
	if ((op->code != OP_PD_EQUAL && op->code != OP_PD_NOT_EQUAL) ||
	    !line_between(s, op_operand(op, 0), op_operand(op, 1), arg, &l) || !l.slope ||
	    l.rest.lo != l.rest.hi || l.rest.lo % l.slope)
		return false;
	*at = -l.rest.lo / l.slope;
	return true;
}

bool spans_crossing(const Scalars *s, const Op *op, const Value *arg, int64_t *at)
{
	Line l;
	if ((op->code != OP_PD_MAXIMUM && op->code != OP_PD_MINIMUM) ||
	    op->results[0].type->kind != TY_INDEX || spans_limit(s, op) ||
	    !line_between(s, op_operand(op, 0), op_operand(op, 1), arg, &l) || !l.slope ||
	    l.rest.lo != l.rest.hi)
		return false;
	*at = l.slope > 0 ? reached(l.slope, -l.rest.lo) : reached(-l.slope, l.rest.lo);
	return true;
}

// The division by a constant that op is, and between what it divides; false: it is none, or that is
// not known.
static bool division(const Scalars *s, const Op *op, Between *x, int64_t *by)
{
	return (op->code == OP_PD_FLOOR_DIVIDE || op->code == OP_PD_REMAINDER) &&
	       op->results[0].type->kind == TY_INDEX && index_constant(op_operand(op, 1), by) &&
	       *by > 0 && between(s, op_operand(op, 0), 0, x) && x->lo >= 0;
}

const Value *spans_rest(const Scalars *s, const Op *op, int64_t *shift)
{
	Between x;
	int64_t by, c;
	if (!s->nspan || op->code != OP_PD_REMAINDER || !division(s, op, &x, &by) ||
	    x.lo / by != x.hi / by)
		return NULL;
	*shift = -(x.lo / by * by);
	for (int i = s->nspan; i-- > 0;)
		if (index_of_arg(op_operand(op, 0), s->spans[i].arg, &c)) {
			*shift += c;
			return s->spans[i].arg;
		}
	return op_operand(op, 0);
}

bool spans_turn(const Scalars *s, const Op *op, const Value *arg, int64_t least, int64_t *at)
{
	Between x;
	Line l;
	int64_t by;
	if (!division(s, op, &x, &by) || by < least || x.hi / by - x.lo / by > MAX_TURNS ||
	    x.lo / by == x.hi / by || !line_of(s, op_operand(op, 0), arg, 0, &l) || l.slope <= 0 ||
	    l.rest.lo != l.rest.hi)
		return false;
	*at = reached(l.slope, (x.lo / by + 1) * by - l.rest.lo);
	return true;
}
