// Text that somebody wrote: whether results have the element types and ranks that inference gives.
// Definitions rely on them, and ir_verify can only repeat an inference that neither reads what
// integers hold, which text does not say, nor finds sizes. Called by the driver, on a module that
// is thrown away: inference names sizes, and puts operands that it knows into attributes.
#include "ir/build/build.h"
#include "ir/verify/rules.h"
#include "ir/verify/verify.h"

static bool check_type(const Op *op, int i, const Type *has, const Type *should)
{
	const bool same = !should || (has->kind == should->kind && has->dtype == should->dtype &&
	                              (has->kind != TY_TENSOR || has->rank == should->rank));
	return same || verify_fail(op, "result %d has type %s, but should have %s", i,
	                           type_text(op->ctx, has), type_text(op->ctx, should));
}

static bool check_op(Op *op, void *arg)
{
	bool *ok = arg;
	const size_t n = (size_t)op->nresult;
	const Type **has = NEW_ARRAY(op->ctx->arena, n + 1, const Type *);
	if (!op_functions(op)->infer || !(op->info->traits & TRAIT_PURE) || op->nregion)
		return true;
	for (size_t i = 0; i < n; i++)
		has[i] = op->results[i].type;
	bool sound = op_infer(op);
	for (size_t i = 0; i < n; i++) {
		sound = sound && check_type(op, (int)i, has[i], op->results[i].type);
		op->results[i].type = has[i]; // others read the result as the text has it
	}
	*ok &= sound;
	return true;
}

bool ir_verify_text(Op *module)
{
	bool ok = true;
	const bool learning = dim_set_learning(module->ctx, false);
	op_walk(module, check_op, &ok);
	dim_set_learning(module->ctx, learning);
	return ok;
}
