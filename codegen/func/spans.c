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

static bool between(const Scalars *s, const Value *v, int depth, Between *out)
{
	int64_t c;
	Between x, y;
	if (index_constant(v, &c)) {
		*out = (Between){c, c};
		return true;
	}
	if (span_of_arg(s, v, out))
		return true;
	const Op *op = v->def;
	return op && op->noperand == 2 && depth < MAX_LIMITS &&
	       between(s, op_operand(op, 0), depth + 1, &x) &&
	       between(s, op_operand(op, 1), depth + 1, &y) && combined(op, x, y, out);
}

bool spans_exact(const Scalars *s, const Value *index, int64_t *at)
{
	Between b;
	if (index->type->kind != TY_INDEX || !between(s, index, 0, &b) || b.lo != b.hi)
		return false;
	*at = b.lo;
	return true;
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
	if (!op || depth > MAX_DEPTH)
		return -1;
	const bool and = op->code == OP_PD_LOGICAL_AND;
	if (!and&&op->code != OP_PD_LOGICAL_OR)
		return op->code == OP_PD_LOGICAL_NOT ? opposite(known_at(s, op_operand(op, 0), depth + 1))
		                                     : compared(s, op);
	const int a = known_at(s, op_operand(op, 0), depth + 1),
			  b = known_at(s, op_operand(op, 1), depth + 1);
	if (a == !and || b == !and)
		return !and;
	return a < 0 || b < 0 ? -1 : and;
}

int spans_know(const Scalars *s, const Value *pred)
{
	return s->nspan ? known_at(s, pred, 0) : -1;
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

static bool lines_combined(const Op *op, const int64_t *x, const int64_t *y, int64_t *a)
{
	const int64_t sign = op->code == OP_PD_SUBTRACT ? -1 : 1;
	if (op->code == OP_PD_MULTIPLY) {
		a[0] = x[0] * y[1];
		a[1] = x[1] * y[1];
		return !y[0];
	}
	a[0] = x[0] + sign * y[0];
	a[1] = x[1] + sign * y[1];
	return op->code == OP_PD_ADD || op->code == OP_PD_SUBTRACT;
}

// v as a line over arg, a[0] * arg + a[1], all limits on the way being decided.
static bool line_of(const Scalars *s, const Value *v, const Value *arg, int depth, int64_t *a)
{
	int64_t x[2], y[2];
	const Op *op = v->def;
	a[0] = v == arg;
	a[1] = 0;
	if (v == arg || index_constant(v, &a[1]))
		return true;
	if (!op || op->noperand != 2 || depth >= MAX_LIMITS)
		return false;
	const Value *chosen = spans_limit(s, op);
	if (chosen)
		return line_of(s, chosen, arg, depth + 1, a);
	return line_of(s, op_operand(op, 0), arg, depth + 1, x) &&
	       line_of(s, op_operand(op, 1), arg, depth + 1, y) && lines_combined(op, x, y, a);
}

bool spans_crossing(const Scalars *s, const Op *op, const Value *arg, int64_t *at)
{
	int64_t x[2], y[2];
	if ((op->code != OP_PD_MAXIMUM && op->code != OP_PD_MINIMUM) ||
	    op->results[0].type->kind != TY_INDEX || spans_limit(s, op) ||
	    !line_of(s, op_operand(op, 0), arg, 0, x) || !line_of(s, op_operand(op, 1), arg, 0, y) ||
	    x[0] == y[0])
		return false;
	// slope * at >= height from there on
	const int64_t slope = x[0] > y[0] ? x[0] - y[0] : y[0] - x[0];
	const int64_t height = x[0] > y[0] ? y[1] - x[1] : x[1] - y[1];
	*at = height > 0 ? (height + slope - 1) / slope : -(-height / slope);
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
	int64_t by, a[2];
	if (!division(s, op, &x, &by) || by < least || x.hi / by - x.lo / by > MAX_TURNS ||
	    x.lo / by == x.hi / by || !line_of(s, op_operand(op, 0), arg, 0, a) || a[0] <= 0)
		return false;
	*at = ((x.lo / by + 1) * by - a[1] + a[0] - 1) / a[0];
	return true;
}
