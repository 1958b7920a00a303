// What comparisons of positions give where an index is known to lie in a part of its range. Asked
// through scalars_known.
#include "codegen/func/func.h"

enum { MAX_DEPTH = 12 };

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

static bool between(const Scalars *s, const Value *v, Between *out)
{
	int64_t c;
	if (index_constant(v, &c)) {
		*out = (Between){c, c};
		return true;
	}
	for (int i = s->nspan; i-- > 0;)
		if (index_of_arg(v, s->spans[i].arg, &c)) {
			*out = (Between){s->spans[i].from + c, s->spans[i].to - 1 + c};
			return true;
		}
	return false;
}

bool spans_exact(const Scalars *s, const Value *index, int64_t *at)
{
	Between b;
	if (index->type->kind != TY_INDEX || !between(s, index, &b) || b.lo != b.hi)
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
	    !between(s, op_operand(op, 0), &x) || !between(s, op_operand(op, 1), &y))
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
