// Square roots that are only compared with a known number: the radicand is compared, with the
// number that the root of all larger ones exceeds. Roots are rounded correctly, on every target,
// and never fall, so this answers the same, to the bit; a radicand that has no root (NaN, or below
// 0) is no more than either number. A pattern of canonicalize.c.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "lower/clean/clean.h"
#include "lower/pass/rewrite.h"

#include <float.h>
#include <math.h>

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
