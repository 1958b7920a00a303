// What known numbers tell of comparisons, patterns of canonicalize.c: of two of one integer both
// never hold, or one always does (never_both, one_of_two); a square root need not be taken to be
// compared (root_compared).
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "lower/clean/clean.h"
#include "lower/pass/rewrite.h"

#include <float.h>
#include <math.h>
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

// ---- roots --------------------------------------------------------------------------------------

// Square roots that are only compared with a known number: the radicand is compared, with the
// number that the root of all larger ones exceeds. Roots are rounded correctly, on every target,
// and never fall, so this answers the same, to the bit; a radicand that has no root (NaN, or below
// 0) is no more than either number.

// Which of the two is the root, for comparisons that ask whether that is large.
static int root_side(const Op *op)
{
	return op->code == OP_PD_LESS_THAN || op->code == OP_PD_LESS_EQUAL;
}

static bool asks_for_more(const Op *op)
{
	return op->code == OP_PD_GREATER_THAN || op->code == OP_PD_LESS_THAN;
}

// The positive number that all elements of v are, the square of which is no special one. False: not
// so.
static bool all_are(const Value *v, double least, double *number)
{
	const Tensor *t = constant_of_equals(v);
	*number = t ? tensor_get_f(t, 0) : 0;
	return *number > least && *number < 1 / least;
}

static double root(DType t, double x)
{
	return t == DT_F32 ? (double)sqrtf((float)x) : sqrt(x);
}

static double next(DType t, double x, double towards)
{
	return t == DT_F32 ? (double)nextafterf((float)x, (float)towards) : nextafter(x, towards);
}

// The smallest number whose root is `least`, or more; more than that, where it must be `more`.
static double radicand(DType t, double least, bool more)
{
	double x = t == DT_F32 ? (double)(float)(least * least) : least * least;
	while (more ? root(t, x) > least : root(t, x) >= least)
		x = next(t, x, 0);
	while (more ? root(t, x) <= least : root(t, x) < least)
		x = next(t, x, INFINITY);
	return x;
}

Value *simplify_hook_root_compared(Builder *b, Op *op)
{
	const int side = root_side(op);
	const Value *x = op_operand(op, side), *y = op_operand(op, !side);
	const DType t = x->type->dtype;
	double least;
	if (!x->def || x->def->code != OP_PD_SQRT || (t != DT_F32 && t != DT_F64) ||
	    y->type->dtype != t ||
	    !all_are(y, t == DT_F32 ? sqrt(FLT_MIN) * 2 : sqrt(DBL_MIN) * 2, &least))
		return NULL;
	double limit = radicand(t, least, asks_for_more(op));
	if (asks_for_more(op))
		limit = next(t, limit, 0);
	Value *under = op_operand(x->def, 0), *number = build_full(b, y->type, limit);
	return build2(b, op->code, side ? number : under, side ? under : number, NULL);
}
