// Operators that go through their input step by step become the loops that they mean, and pd.case a
// chain of pd.if: first of all passes, so that those on control flow see them and products in their
// bodies become kernels with packed weights. Whole numbers ask what they are divided by, as long as
// an operation is where the program has it.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

static bool op_expand(Op *op)
{
	Builder b = builder_before(op);
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(&b, op, results))
		return false;
	op_replace(op, results);
	return true;
}

// pd.if_grad and pd.while_grad are pd.if and pd.while; what comes in for a branch is in sight there
// anyway.
static void rename_gradient(Op *op)
{
	const bool loop = op->code == OP_PD_WHILE_GRAD;
	const Type **types = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, const Type *);
	Value **operands = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->nresult; i++)
		types[i] = op->results[i].type;
	for (int i = 0; i < op->noperand; i++)
		operands[i] = op_operand(op, i);
	Op *plain = op_new(op->ctx, loop ? OP_PD_WHILE : OP_PD_IF, op->loc, op->nresult, types,
	                   loop ? op->noperand : 1, operands, 2, 0);
	op_insert_before(op, plain);
	op_take_regions(plain, op, 2);
	Block *body = plain->regions[1].first;
	if (loop && (!body->last || !(body->last->info->traits & TRAIT_TERMINATOR)))
		op_append(body, op_new(op->ctx, OP_CF_YIELD, op->loc, 0, NULL, 0, NULL, 0, 0));
	for (int i = 0; i < op->nresult; i++)
		value_take(op_result(op, i), op_result(plain, i));
	op_erase(op);
}

// A tensor of one number that the program says; NULL: it is no such thing.
static const Op *made_full(const Value *v)
{
	const Op *op = v->def;
	const bool plain = op && op->code == OP_PD_FULL && op->noperand == 0;
	return plain || (op && op->code == OP_PD_FULL_LIKE && op->noperand == 1) ? op : NULL;
}

static bool size_may_be_zero(const Dim *d)
{
	int64_t least = 0, most = 0;
	if (d)
		dim_range_empty(d, &least, &most);
	return least <= 0 && most >= 0;
}

// Whether an element may be 0, for all that is known here.
static bool may_be_zero(const Value *v)
{
	const Tensor *t = value_constant(v);
	const int64_t n = t ? tensor_numel(t) : 0;
	const Op *full = made_full(v);
	bool zero = !t && !v->known;
	if (full)
		return op_float(full, "value", 0) == 0;
	for (int64_t i = 0; i < n; i++)
		zero |= tensor_get_i(t, i) == 0;
	for (int i = 0; !t && i < v->nknown; i++)
		zero |= size_may_be_zero(v->known[i]);
	return zero;
}

// A run fails where a whole number is divided by 0.
static bool op_check_divisor(Op *op)
{
	const Type *t = op->results[0].type;
	if (!type_is_tensor(t) || !dtype_is_int(t->dtype) || !may_be_zero(op_operand(op, 1)))
		return true;
	Builder b = builder_before(op);
	Value *y = op_operand(op, 1), *zero = tensor_number(&b, y->type->dtype, 0);
	return build_assert(&b, apply2(&b, OP_PD_NOT_EQUAL, y, zero), "integer division by zero");
}

static bool op_divides(const Op *op)
{
	return op->code == OP_PD_DIVIDE || op->code == OP_PD_FLOOR_DIVIDE ||
	       op->code == OP_PD_REMAINDER;
}

static bool region_expand(Region *r)
{
	for (Block *block = r->first; block; block = block->next)
		for (Op *op = block->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				if (!region_expand(&op->regions[i]))
					return false;
			if (op_divides(op) && !op_check_divisor(op))
				return false;
			const bool backward = op->code == OP_PD_IF_GRAD || op->code == OP_PD_WHILE_GRAD;
			if (backward)
				rename_gradient(op);
			if (backward || (op->code != OP_PD_CASE && !(op->info->traits & TRAIT_STEPS)))
				continue;
			// What the definition is made of may have such a definition itself.
			Op *before = op->prev;
			if (!op_expand(op))
				return false;
			next = before ? before->next : block->first;
		}
	return true;
}

// Needs: inferred types.
// Keeps: values, names, locations.
// Breaks: nothing.
bool pass_expand(PassContext *p)
{
	return region_expand(&p->module->regions[0]);
}
