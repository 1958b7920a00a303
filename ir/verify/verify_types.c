// Whether inference, once more, gives the types that an operation's results have. Called by
// verify.c.
#include "ir/build/build.h"
#include "ir/verify/rules.h"

#include <string.h>

static bool is_bounded(const Dim *d)
{
	return d->kind == DIM_SYM ? d->bounded
	                          : (d->a && is_bounded(d->a)) || (d->b && is_bounded(d->b));
}

static bool has_bounded_dim(const Type *t)
{
	for (int i = 0; i < t->rank; i++)
		if (is_bounded(t->dims[i]))
			return true;
	return false;
}

// Passes may have written a size that is computed in another way than inference does.
static bool has_computed_dim(const Type *t)
{
	for (int i = 0; i < t->rank; i++)
		if (t->dims[i]->kind != DIM_SYM && !dim_is_const(t->dims[i]))
			return true;
	return false;
}

// Whether inference may want to know what v holds, but nobody knows (any more: text does not say).
static bool lost_contents(const Value *v)
{
	int64_t n;
	if (!v || v->known || v->type->kind != TY_TENSOR || !dtype_is_int(v->type->dtype))
		return false;
	return !type_const_numel(v->type, &n) || n <= 64;
}

// Whether inferring once more must give the same: not where inference reads what integer tensors
// hold, nor where it makes new symbols.
static bool inference_repeats(const Op *op)
{
	const OpInfo *info = op->info;
	if ((!op_functions(op)->infer && !info->result_types) || !(info->traits & TRAIT_PURE) ||
	    op->nregion)
		return false;
	for (int i = 0; i < info->nattr; i++) {
		const AttrInfo *a = &info->attrs[i];
		if (a->operand && op_operand(op, op_info_operand(info, a->operand)))
			return false;
	}
	if (info->result_types)
		return true;
	for (int i = 0; i < op->noperand; i++) {
		if (lost_contents(op->operands[i].value))
			return false;
	}
	for (int i = 0; i < op->nresult; i++) {
		if (has_bounded_dim(op->results[i].type))
			return false;
	}
	return true;
}

static bool check_inferred(const Op *op, const Value *before, const Value *after)
{
	for (int i = 0; i < op->nresult; i++) {
		if (after[i].type && after[i].type != before[i].type && !has_computed_dim(before[i].type))
			return verify_fail(op, "result %d has type %s, but should have %s", i,
			                   type_text(op->ctx, before[i].type),
			                   type_text(op->ctx, after[i].type));
	}
	return true;
}

bool inference_is_sound(Op *op)
{
	if (!inference_repeats(op))
		return true;
	Context *c = op->ctx;
	size_t n = (size_t)op->nresult;
	Value *before = NEW_ARRAY(c->arena, n, Value), *after = NEW_ARRAY(c->arena, n, Value);
	NamedAttr *attrs = NEW_ARRAY(c->arena, (size_t)op->nattr, NamedAttr), *own = op->attrs;
	int nattr = op->nattr, generation = dim_generation(c);
	memcpy(before, op->results, n * sizeof *before);
	if (nattr)
		memcpy(attrs, own, (size_t)nattr * sizeof *attrs);
	op->attrs = attrs; // a hook may complete attributes: into a copy
	const bool learning = dim_set_learning(c, true);
	bool ok = op_infer(op);
	dim_set_learning(c, learning);
	memcpy(after, op->results, n * sizeof *after);
	memcpy(op->results, before, n * sizeof *before);
	op->attrs = own;
	op->nattr = nattr;
	if (!ok)
		return false; // reported
	if (dim_generation(c) != generation)
		return verify_fail(op, "its operands' sizes must be equal, but are different symbols");
	return check_inferred(op, before, after);
}
