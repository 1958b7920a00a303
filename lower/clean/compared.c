// Two comparisons of one integer with known ones: both never hold, or one of them always does
// (patterns never_both and one_of_two of canonicalize).
#include "ir/build/build.h"
#include "lower/clean/clean.h"

#include <string.h>

const Tensor *constant_of_equals(const Value *v)
{
	const Tensor *t = value_constant(v);
	const int64_t n = t ? tensor_numel(t) : 0;
	if (n == 0 || n > 4096)
		return NULL;
	const size_t size = dtype_size(t->dtype);
	return memcmp(t->data, (const char *)t->data + size, (size_t)(n - 1) * size) ? NULL : t;
}

// The integer that all elements are, where that is known.
static bool value_is_all_int(const Value *v, int64_t *c)
{
	const Tensor *t = constant_of_equals(v);
	if (t)
		*c = tensor_get_i(t, 0);
	return t != NULL;
}

// What a comparison of x with a known integer asks of x: from lo to hi, but for `hole`.
typedef struct Asked {
	const Value *x;
	int64_t lo, hi, hole;
	bool holed;
} Asked;

static bool compares_integer(const Op *op, int64_t *c)
{
	if (!op || op->noperand != 2)
		return false;
	const Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	return x && y && type_is_tensor(x->type) && dtype_is_int(x->type->dtype) &&
	       x->type->dtype != DT_BOOL && y->type->dtype == x->type->dtype &&
	       value_is_all_int(y, c) && *c != INT64_MIN && *c != INT64_MAX;
}

static bool asked_of(const Value *truth, Asked *out)
{
	const Op *op = truth->def;
	int64_t c;
	if (!compares_integer(op, &c))
		return false;
	*out = (Asked){.x = op_operand(op, 0), .lo = INT64_MIN, .hi = INT64_MAX, .hole = c};
	switch (op->code) {
	case OP_PD_LESS_THAN: out->hi = c - 1; return true;
	case OP_PD_LESS_EQUAL: out->hi = c; return true;
	case OP_PD_GREATER_THAN: out->lo = c + 1; return true;
	case OP_PD_GREATER_EQUAL: out->lo = c; return true;
	case OP_PD_EQUAL: out->lo = out->hi = c; return true;
	case OP_PD_NOT_EQUAL: out->holed = true; return true;
	default: return false;
	}
}

// Whether no integer is asked for by both.
static bool asked_apart(const Asked *a, const Asked *b)
{
	if (a->holed || b->holed) {
		const Asked *hole = a->holed ? a : b, *other = a->holed ? b : a;
		return !other->holed && other->lo == hole->hole && other->hi == hole->hole;
	}
	return a->hi < b->lo || b->hi < a->lo;
}

// Whether every integer is asked for by one of them.
static bool asked_cover(const Asked *a, const Asked *b)
{
	if (a->holed || b->holed) {
		const Asked *hole = a->holed ? a : b, *other = a->holed ? b : a;
		return other->holed ? a->hole != b->hole
		                    : other->lo <= hole->hole && hole->hole <= other->hi;
	}
	const Asked *low = a->lo == INT64_MIN ? a : b, *high = a->lo == INT64_MIN ? b : a;
	return low->lo == INT64_MIN && high->hi == INT64_MAX && low->hi != INT64_MAX &&
	       high->lo <= low->hi + 1;
}

static Value *known_of_two(Builder *b, Op *op, bool (*holds)(const Asked *, const Asked *),
                           bool truth)
{
	Asked x, y;
	if (!asked_of(op_operand(op, 0), &x) || !asked_of(op_operand(op, 1), &y) || x.x != y.x ||
	    !holds(&x, &y))
		return NULL;
	return build_full(b, op->results[0].type, truth);
}

Value *simplify_hook_never_both(Builder *b, Op *op)
{
	return known_of_two(b, op, asked_apart, false);
}

Value *simplify_hook_one_of_two(Builder *b, Op *op)
{
	return known_of_two(b, op, asked_cover, true);
}
