// A program before it is written: what has no form in Paddle 3 becomes what it means.
#include "frontend/write/pir_out.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"

#include <string.h>

// Checks of sizes are Paddle's own business.
static bool erase_check(Op *op, void *arg)
{
	(void)arg;
	if (op->code == OP_PD_ASSERT && op_bool(op, "sizes", false))
		op_erase(op);
	return true;
}

// What is only read inside of regions is read in front of them.
static bool hoist_parameter(Op *op, void *module)
{
	if (op->code == OP_BUILTIN_GET_PARAMETER && op_parent(op) != module &&
	    !param_is_written(op->ctx, op_str(op, "name", ""))) {
		op_detach(op);
		op_insert_before(module_block(module)->first, op);
	}
	return true;
}

// What a program writes without having read it may have no value before; Paddle 3 wants one: zeros.
static void give_value(Op *set, Op *module)
{
	Context *c = set->ctx;
	const char *name = op_str(set, "name", "");
	const Type *t = op_operand(set, 0)->type;
	int64_t dims[MAX_RANK];
	if (module_find(module, OP_BUILTIN_GET_PARAMETER, name) || !type_is_tensor(t))
		return;
	for (int i = 0; i < t->rank; i++) {
		if (!dim_is_const(t->dims[i]))
			return;
		dims[i] = t->dims[i]->value;
	}
	Tensor *value = param_get(c, name);
	if (!value && !(value = tensor_new(c->arena, t->dtype, t->rank, dims)))
		return;
	param_set(c, name, value);
	Op *get = op_new(c, OP_BUILTIN_GET_PARAMETER, set->loc, 1, &t, 0, NULL, 0, 0);
	op_set_attr(get, "name", attr_str(c, name));
	op_result(get, 0)->stop_gradient = true;
	op_insert_before(module_block(module)->first, get);
}

// Sequences (LoD), arrays and lists are no matter of definitions.
static bool plain_tensors(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (!type_is_tensor(op->results[i].type) || op->results[i].type->lod)
			return false;
	for (int i = 0; i < op->noperand; i++) {
		const Type *t = op_operand(op, i) ? op_operand(op, i)->type : NULL;
		if (t && ((!type_is_tensor(t) && t->kind != TY_VEC) || (type_is_tensor(t) && t->lod)))
			return false;
	}
	return op->nresult > 0;
}

static bool has_definition(const Op *op)
{
	const OpInfo *info = op->info;
	if (info->kind == KIND_RANDOM || info->kind == KIND_CONTROL || info->kind == KIND_BUILTIN ||
	    info->kind == KIND_LOOP || info->kind == KIND_KERNEL)
		return false;
	return info->compose || info->scalar || op_functions(op)->define;
}

// Paddle 3.2.2 runs other equations with `...` than the plainest by chance only.
static bool misread(const Op *op)
{
	return op->code == OP_PD_EINSUM && strstr(op_str(op, "equation", ""), "...");
}

static bool negated(Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	Builder b = builder_before(op);
	if (!type_is_tensor(x->type))
		return false;
	results[0] = tensor_mul(&b, x, tensor_number(&b, x->type->dtype, -1));
	return results[0] != NULL;
}

// Paddle 3 rounds halves to the even neighbour: away from 0 is one further where half is cut off.
static bool rounded_away(Op *op, Value **results)
{
	Builder b = builder_before(op);
	Value *x = op_operand(op, 0);
	if (!type_is_tensor(x->type) || !dtype_is_float(x->type->dtype))
		return false;
	Value *cut = build1(&b, OP_PD_TRUNC, x, NULL), *rest = cut ? tensor_sub(&b, x, cut) : NULL;
	Value *half = rest ? build2(&b, OP_PD_GREATER_EQUAL, build1(&b, OP_PD_ABS, rest, NULL),
	                            tensor_number(&b, x->type->dtype, 0.5), NULL)
	                   : NULL;
	Value *const ways[] = {half, half ? tensor_add(&b, cut, build1(&b, OP_PD_SIGN, x, NULL)) : NULL,
	                       cut};
	results[0] = ways[1] ? build(&b, OP_PD_WHERE, 3, ways, NULL) : NULL;
	return results[0] != NULL;
}

// In tensors, what an operation without a form of its own means. False: nothing.
static bool in_tensors(PirWriter *w, Op *op, Value **results)
{
	if (op->code == OP_LOOP_NEST)
		return !out_size_nest(op) && out_nest_tensors(op, results);
	if (op->info->kind == KIND_KERNEL)
		return out_kernel_tensors(op, results);
	if (op->code == OP_PD_NEGATIVE)
		return negated(op, results);
	if (op->code == OP_PD_ROUND)
		return rounded_away(op, results);
	if (op->code == OP_PD_CASE) {
		Builder b = builder_before(op);
		return op_define(&b, op, results);
	}
	if (!has_definition(op) || !plain_tensors(op) || (out_has_form(w, op) && !misread(op)))
		return false;
	Builder b = builder_before(op);
	return op_define(&b, op, results);
}

// Paddle 3's `where` takes operands of one shape only.
static void spread_operands(Op *op)
{
	const Type *t = op->results[0].type;
	Builder b = builder_before(op);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = tensor_spread(&b, op_operand(op, i), t->rank, t->dims);
		if (v)
			op_set_operand(op, i, v);
	}
}

typedef struct Work {
	PirWriter w;
	bool changed;
} Work;

static bool simplify(Op *op, void *arg)
{
	Work *work = arg;
	const Op *outer = op_parent(op);
	if (outer && outer->code == OP_LOOP_NEST)
		return true;
	if (op->code == OP_PD_WHERE && type_is_tensor(op->results[0].type))
		spread_operands(op);
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	if (in_tensors(&work->w, op, results)) {
		for (int i = 0; i < op->nresult; i++) {
			results[i]->name = results[i]->name ? results[i]->name : op->results[i].name;
			value_replace(&op->results[i], results[i]);
		}
		op_erase(op);
		work->changed = true;
	}
	return true;
}

// ---- where gradients stop -----------------------------------------------------------------------

static bool takes_gradient(const Value *v)
{
	const Op *list = v && v->type->kind == TY_VEC ? v->def : NULL;
	if (!v || v->type->kind == TY_TENSOR)
		return v && dtype_is_float(v->type->dtype) && !v->stop_gradient;
	if (!list || list->code != OP_BUILTIN_COMBINE)
		return true;
	for (int i = 0; i < list->noperand; i++)
		if (takes_gradient(op_operand(list, i)))
			return true;
	return false;
}

// A marked result of an operation on marked values has the mark for that. What its definition is
// made of has none of its own; without one, the result would read as a detach.
static bool mark_made(Op *op, void *arg)
{
	(void)arg;
	if (op->info->kind == KIND_CONTROL || op->code == OP_BUILTIN_GET_PARAMETER)
		return true;
	for (int i = 0; i < op->noperand; i++)
		if (takes_gradient(op_operand(op, i)))
			return true;
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = op->results[i].type;
		if (!op->results[i].name && t->kind == TY_TENSOR && dtype_is_float(t->dtype))
			op->results[i].stop_gradient = true;
	}
	return true;
}

// What definitions are made of may have no form either, so many times over.
enum { MAX_ROUNDS = 16 };

void pir_prepare(Op *module)
{
	Work work = {.w = {.c = module->ctx, .module = module}, .changed = true};
	op_walk(module, erase_check, NULL);
	op_walk(module, hoist_parameter, module);
	for (int i = 0; i < MAX_ROUNDS && work.changed; i++) {
		work.changed = false;
		op_walk(module, simplify, &work);
	}
	op_walk(module, mark_made, NULL);
}

void pir_give_values(Op *module)
{
	for (Op *op = module_block(module)->first; op; op = op->next)
		if (op->code == OP_BUILTIN_SET_PARAMETER)
			give_value(op, module);
}
