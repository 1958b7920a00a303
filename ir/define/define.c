// What an operation means, whatever its entry in the operator table has for that: a hook, a scalar
// definition for each element, or a composition. Lowering (expand, to-loops), gradients and the
// interpreter call op_define.
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/define/expr.h"

int op_env(const Op *op, const EnvEntry **out)
{
	Value **operands = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->noperand; i++)
		operands[i] = op_operand(op, i);
	return expr_env(op->ctx, op->info, op->noperand, operands, op->nattr, op->attrs, out);
}

Value *build_map_scalar(Builder *b, const Op *op, Value *const *x)
{
	const OpInfo *info = op->info;
	if (info->scalar) {
		const EnvEntry *env;
		int n = expr_env(b->ctx, info, op->noperand, x, op->nattr, op->attrs, &env);
		return build_expr(b, info->scalar, n, env);
	}
	Op *element = build_op(b, op->code, op->noperand, x, op->nattr, op->attrs);
	return element ? op_result(element, 0) : NULL;
}

// The element of `tensor` that meets position `at` of a result, under broadcasting aligned at the
// last axis.
static Value *load_broadcast(Nest *n, Value *tensor, const Type *result)
{
	Value *at[MAX_RANK];
	const Type *t = tensor->type;
	for (int d = 0; d < t->rank; d++) {
		int to = result->rank - t->rank + d;
		if (dim_is(t->dims[d], 1) || to < 0)
			at[d] = index_const(&n->b, 0);
		else if (t->dims[d] == result->dims[to])
			at[d] = n->at[to];
		else // sizes that inference could not tell apart: this one is the result's, or 1
			at[d] = index_min(
				&n->b, n->at[to],
				index_dim(&n->b, dim_sub(n->b.ctx, t->dims[d], dim_const(n->b.ctx, 1))));
	}
	return load(&n->b, tensor, at);
}

static bool define_map(Builder *b, Op *op, Value **results)
{
	const Type *type = op->results[0].type;
	Value **elements = NEW_ARRAY(b->ctx->arena, (size_t)op->noperand + 1, Value *);
	Nest n = nest_open(b, type);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		if (v && !(elements[i] = load_broadcast(&n, v, type)))
			return false;
	}
	Value *element = build_map_scalar(&n.b, op, elements);
	results[0] = element ? nest_close(&n, element) : NULL;
	return results[0] != NULL;
}

static bool define_by_entry(Builder *b, Op *op, Value **results)
{
	const OpInfo *info = op->info;
	const EnvEntry *env;
	if (op_functions(op)->define)
		return op_functions(op)->define(b, op, results);
	if (info->compose) {
		int n = op_env(op, &env);
		if (op->nresult > 1)
			return expr_results(b, op, n, env, results);
		results[0] = build_expr(b, info->compose, n, env);
		return results[0] != NULL;
	}
	if (op->nresult == 1 && (info->scalar || (info->traits & TRAIT_PRIMITIVE)))
		return define_map(b, op, results);
	return op_error(op, "the operator has no definition");
}

// A definition that gives elements of another type than inference says would change what the
// program gives: neither is believed.
static bool same_elements(const Op *op, Value *const *results)
{
	for (int i = 0; i < op->nresult; i++) {
		const Type *want = op->results[i].type, *have = results[i] ? results[i]->type : NULL;
		if (!want || !have || !type_is_tensor(want) || !type_is_tensor(have))
			continue;
		if (want->dtype != have->dtype)
			return op_error(op, "the definition gives %s, not %s", type_text(op->ctx, have),
			                type_text(op->ctx, want));
	}
	return true;
}

bool op_define(Builder *b, Op *op, Value **results)
{
	return define_by_entry(b, op, results) && same_elements(op, results);
}
