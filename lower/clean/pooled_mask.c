// Truths by which the gradient of a maximum's image is multiplied, such as that of a relu in front
// of the pooling: an element gets something only where it is the maximum, so that the truth can be
// asked of the maxima, which are fewer, and what comes in for them is multiplied. A pattern of
// canonicalize.c.
#include "ir/build/build.h"
#include "lower/clean/clean.h"
#include "lower/pass/rewrite.h"

enum { MAX_DEPTH = 4, MAX_OPERANDS = 3 }; // of the operations that say what is asked

// Whether nothing but the same element of x, and single numbers, decide v.
static bool is_asked_of(const Value *v, const Value *x, int depth)
{
	const Op *op = v ? v->def : NULL;
	if (v == x || (v && v->type->rank == 0))
		return true;
	if (!op || depth == MAX_DEPTH || op->info->kind != KIND_MAP || op->nregion ||
	    op->nresult != 1 || op->noperand > MAX_OPERANDS)
		return false;
	for (int i = 0; i < op->noperand; i++)
		if (!is_asked_of(op_operand(op, i), x, depth + 1))
			return false;
	return op->noperand > 0;
}

// The same asked of `most`.
static Value *asked_of(Builder *b, Value *v, const Value *x, Value *most)
{
	Value *operands[MAX_OPERANDS];
	if (v == x)
		return most;
	if (v->type->rank == 0)
		return v;
	const Op *op = v->def;
	for (int i = 0; i < op->noperand; i++)
		if (!(operands[i] = asked_of(b, op_operand(op, i), x, most)))
			return NULL;
	Op *copy = build_op(b, op->code, op->noperand, operands, op->nattr, op->attrs);
	return copy ? &copy->results[0] : NULL;
}

// A truth as a number, 0 or 1.
static bool is_truth(const Value *v)
{
	const Op *cast = v->def && v->def->code == OP_PD_CAST ? v->def : NULL;
	return cast && op_operand(cast, 0)->type->dtype == DT_BOOL;
}

static bool gives_maxima(const Op *op)
{
	return op && (op->code == OP_PD_POOL2D_GRADIENT || op->code == OP_PD_POOL3D_GRADIENT) &&
	       op_operand(op, 1) && op_operand(op, 2) && value_use_count(&op->results[0]) == 1;
}

Value *simplify_hook_pooled_mask(Builder *b, Op *op)
{
	for (int i = 0; i < 2; i++) {
		const Op *gradient = op_operand(op, i)->def;
		Value *mask = op_operand(op, 1 - i);
		if (!gives_maxima(gradient) || mask->type != op->results[0].type || !is_truth(mask) ||
		    !is_asked_of(mask, op_operand(gradient, 1), 0))
			continue;
		Value *x = op_operand(gradient, 1), *most = op_operand(gradient, 2);
		Value *asked = asked_of(b, mask, x, most);
		Value *d = asked ? build2(b, OP_PD_MULTIPLY, op_operand(gradient, 0), asked, NULL) : NULL;
		Op *masked = d ? build_op(b, gradient->code, 3, (Value *[]){d, x, most}, gradient->nattr,
		                          gradient->attrs)
		               : NULL;
		return masked ? &masked->results[0] : NULL;
	}
	return NULL;
}
