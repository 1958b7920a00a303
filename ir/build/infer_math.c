// Shape arithmetic through maps: what an integer tensor of few elements holds, when its operands
// are known as sizes. Called by op_infer after the types. Verify hooks of maps are here too.
#include "ir/build/infer.h"

#include <math.h>
#include <string.h>

// An operand of a map: one size per element of the result, or one for all; none: it is missing.
typedef struct KnownOperand {
	int n;
	const Dim *const *dims;
} KnownOperand;

static const Dim *known_at(const KnownOperand *k, int i)
{
	return !k->n ? NULL : k->dims[k->n == 1 ? 0 : i];
}

static int truth_not(int truth)
{
	return truth < 0 ? truth : !truth;
}

// Truth of a comparison of sizes, when it is certain; -1: not known.
static int dim_compare(Context *c, enum OpCode code, const Dim *a, const Dim *b)
{
	int64_t lo, hi;
	dim_range_empty(dim_sub(c, a, b), &lo, &hi); // programs ask whether a feed is empty
	const int equal = a == b             ? 1
	                  : lo > 0 || hi < 0 ? 0
	                                     : -1,
			  less = hi < 0    ? 1
	                 : lo >= 0 ? 0
	                           : -1,
			  greater = lo > 0    ? 1
	                    : hi <= 0 ? 0
	                              : -1;
	switch (code) {
	case OP_PD_EQUAL: return equal;
	case OP_PD_NOT_EQUAL: return truth_not(equal);
	case OP_PD_LESS_THAN: return less;
	case OP_PD_LESS_EQUAL: return truth_not(greater);
	case OP_PD_GREATER_THAN: return greater;
	case OP_PD_GREATER_EQUAL: return truth_not(less);
	default: return -1;
	}
}

// One element of a map of two sizes; NULL when it is no size.
static const Dim *known_binary(Context *c, enum OpCode code, const Dim *a, const Dim *b)
{
	int64_t lo, hi, blo, bhi;
	int truth;
	switch (code) {
	case OP_PD_ADD: return dim_add(c, a, b);
	case OP_PD_SUBTRACT: return dim_sub(c, a, b);
	case OP_PD_MULTIPLY: return dim_mul(c, a, b);
	case OP_PD_MAXIMUM: return dim_max(c, a, b);
	case OP_PD_MINIMUM: return dim_min(c, a, b);
	case OP_PD_DIVIDE: // truncates: the same as rounding down when nothing is negative
	case OP_PD_FLOOR_DIVIDE:
	case OP_PD_REMAINDER:
		dim_range(a, &lo, &hi);
		dim_range(b, &blo, &bhi);
		if (blo <= 0 || (code == OP_PD_DIVIDE && lo < 0))
			return NULL;
		return code == OP_PD_REMAINDER ? dim_mod(c, a, b) : dim_div(c, a, b);
	default: truth = dim_compare(c, code, a, b); return truth < 0 ? NULL : dim_const(c, truth);
	}
}

// x * scale + bias, and the like, with whole numbers.
static const Dim *known_scale(const Op *op, const Dim *x)
{
	double scale = op->code == OP_PD_SCALE ? op_number(op, "scale") : 1;
	double bias = op_number(op, op->code == OP_PD_SCALE ? "bias" : "value");
	Context *c = op->ctx;
	if (op->results[0].type->dtype == DT_BOOL) // scale and bias are truths there, too
		return NULL;
	if (fabs(scale) > 1e15 || fabs(bias) > 1e15 || scale != floor(scale) || bias != floor(bias))
		return NULL;
	const Dim *s = dim_const(c, (int64_t)scale), *b = dim_const(c, (int64_t)bias);
	bool after = op->code != OP_PD_SCALE || op_number(op, "bias_after_scale") != 0;
	return after ? dim_add(c, dim_mul(c, x, s), b) : dim_mul(c, dim_add(c, x, b), s);
}

static const Dim *known_element(const Op *op, const KnownOperand *k, int i)
{
	const Dim *x = known_at(&k[0], i), *y = known_at(&k[1], i);
	if (!x)
		return NULL;
	switch (op->code) {
	case OP_PD_CAST:
	case OP_PD_ASSIGN: return x;
	case OP_PD_NEGATIVE: return dim_sub(op->ctx, dim_const(op->ctx, 0), x);
	case OP_PD_SCALE:
	case OP_PD_INCREMENT: return op->noperand > 1 && op_operand(op, 1) ? NULL : known_scale(op, x);
	case OP_PD_WHERE: return !dim_is_const(x) ? NULL : known_at(&k[x->value ? 1 : 2], i);
	default: return op->info->noperand == 2 && y ? known_binary(op->ctx, op->code, x, y) : NULL;
	}
}

void infer_map_known(Op *op)
{
	KnownOperand k[3] = {{0}};
	const Dim *known[MAX_KNOWN];
	const Type *t = op->results[0].type;
	int64_t n;
	op->results[0].known = NULL;
	op->results[0].nknown = 0;
	if (op->nresult != 1 || !t || t->kind != TY_TENSOR ||
	    !(dtype_is_int(t->dtype) || t->dtype == DT_BOOL))
		return;
	if (!type_const_numel(t, &n) || n > MAX_KNOWN)
		return;
	for (int i = 0; i < op->noperand && i < (int)COUNT_OF(k); i++) {
		if (!op_operand(op, i))
			continue;
		k[i].n = infer_known(op, i, &k[i].dims);
		if (k[i].n != 1 && k[i].n != n)
			return;
	}
	for (int i = 0; i < (int)n; i++)
		if (!(known[i] = known_element(op, k, i)))
			return;
	infer_set_known(op, 0, (int)n, known);
}

bool infer_hook_one_bool(Op *op)
{
	const Dim *one = dim_const(op->ctx, 1);
	return infer_tensor(op, 0) && infer_result_shape(op, 0, DT_BOOL, 1, &one);
}

bool verify_hook_dropout(Op *op)
{
	if (op->code == OP_PD_DROPOUT && op_number(op, "is_test") == 0 && op_number(op, "p") != 0)
		return op_error(op, "dropout in training is random; only inference (is_test) is supported");
	return true;
}
