// Expands every operation that is not a kernel, a view or control flow into loop nests, by its definition
// in the operator table: a `define` hook, a composition, or a scalar expression inside a nest. Runs after
// layout has taken what tuned templates do better, and before fuse.
#include "lower.h"

#include <string.h>

// How many expansions a chain of definitions may take before the table must be circular.
enum { MAX_EXPANSIONS = 1 << 20 };

// ---- maps ---------------------------------------------------------------------------------------

// The position along dim `d` of an operand (rank r) for the nest's indices (rank n), under broadcasting
// with trailing alignment.
static Value *broadcast_index(Builder *b, const Type *operand, int d, const Block *body, const Type *result)
{
	Context *c = b->ctx;
	int at = result->rank - operand->rank + d;
	const Dim *have = operand->dims[d];
	if (at >= 0 && have == result->dims[at])
		return body->args[at];
	if (at < 0 || dim_is(have, 1))
		return build_index(b, 0);
	// Sizes that inference could not tell apart: the operand's is the result's, or 1.
	Value *size = build(b, OP_LOOP_DIM, 0, NULL, "dim", attr_dim(c, dim_sub(c, have, dim_const(c, 1))), NULL);
	return size ? build2(b, OP_PD_MINIMUM, body->args[at], size, NULL) : NULL;
}

static Value *broadcast_load(Builder *b, Value *tensor, const Block *body, const Type *result)
{
	Value *operands[MAX_RANK + 1] = {tensor};
	for (int d = 0; d < tensor->type->rank; d++)
		if (!(operands[d + 1] = broadcast_index(b, tensor->type, d, body, result)))
			return NULL;
	return build(b, OP_LOOP_LOAD, tensor->type->rank + 1, operands, NULL);
}

// Names that a definition may use: operands (as `values` has them) and attributes; an operand that
// overrides an attribute stands in for it. Returns how many.
static int definition_env(const Op *op, Value *const *values, EnvEntry *env)
{
	const OpInfo *info = op->info;
	int n = 0;
	for (int i = 0; i < info->noperand; i++)
		env[n++] = (EnvEntry){info->operands[i].name, i < op->noperand ? values[i] : NULL, NULL};
	for (int i = 0; i < info->nattr; i++) {
		const AttrInfo *a = &info->attrs[i];
		int over = a->operand ? op_info_operand(info, a->operand) : -1;
		Value *value = over >= 0 && over < op->noperand ? values[over] : NULL;
		env[n++] = (EnvEntry){a->name, value, value ? NULL : op_attr(op, a->name)};
	}
	return n;
}

// The element of a map's result, from the elements of its operands.
static Value *map_element(Builder *b, const Op *op, Value *const *elements)
{
	const OpInfo *info = op->info;
	if (info->scalar) {
		EnvEntry *env = NEW_ARRAY(b->ctx->arena, (size_t)(info->noperand + info->nattr) + 1, EnvEntry);
		return build_expr(b, info->scalar, definition_env(op, elements, env), env);
	}
	Op *element = build_op(b, op->code, op->noperand, elements, op->nattr, op->attrs);
	return element ? op_result(element, 0) : NULL;
}

static bool map_define(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *type = op->results[0].type;
	Op *nest = op_new(c, OP_LOOP_NEST, op->loc, 1, &type, 0, NULL, 1, 0);
	if (b->before)
		op_insert_before(b->before, nest);
	else
		op_append(b->block, nest);
	Block *body = block_new(c, &nest->regions[0]);
	for (int d = 0; d < type->rank; d++)
		block_add_arg(c, body, type_index(c));
	Builder in = builder_at_end(c, body, op->loc);
	Value **elements = NEW_ARRAY(c->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		if (v && !(elements[i] = broadcast_load(&in, v, body, type)))
			return false;
	}
	Value *out = map_element(&in, op, elements);
	if (out && out->type != type_scalar(c, type->dtype))
		out = build1(&in, OP_PD_CAST, out, "dtype", attr_dtype(c, type->dtype), NULL);
	if (!out || !build_op(&in, OP_LOOP_YIELD, 1, &out, 0, NULL))
		return false;
	results[0] = op_result(nest, 0);
	return true;
}

// ---- everything -------------------------------------------------------------------------------------

static bool compose_define(Builder *b, Op *op, Value **results)
{
	Value **operands = NEW_ARRAY(b->ctx->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->noperand; i++)
		operands[i] = op_operand(op, i);
	EnvEntry *env = NEW_ARRAY(b->ctx->arena, (size_t)(op->info->noperand + op->info->nattr) + 1, EnvEntry);
	results[0] = build_expr(b, op->info->compose, definition_env(op, operands, env), env);
	return results[0] != NULL;
}

// Whether the table says what the operation means, and it is not best left as it is.
static bool op_expands(const Op *op)
{
	const OpInfo *info = op->info;
	switch (info->kind) {
	case KIND_CONTROL:
	case KIND_BUILTIN:
	case KIND_LOOP:
	case KIND_RANDOM:
		return false;
	default:
		break;
	}
	if ((info->traits & TRAIT_VIEW) || !strncmp(info->name, "kernel.", 7))
		return false;
	return info->define || info->compose || info->scalar || (info->traits & TRAIT_PRIMITIVE);
}

static bool op_expand(Op *op)
{
	Builder b = builder_before(op);
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	bool ok = op->info->define  ? op->info->define(&b, op, results)
	          : op->info->compose ? compose_define(&b, op, results)
	                              : map_define(&b, op, results);
	if (!ok)
		return false;
	for (int i = 0; i < op->nresult; i++) {
		if (!results[i] && value_used(&op->results[i])) {
			diag_error(op->ctx->diag, op->loc, "'%s': the definition gives no result %d", op->info->name, i);
			return false;
		}
		if (!results[i])
			results[i] = &op->results[i];
	}
	op_replace(op, results);
	return true;
}

// Expands op; what its definition made may need expansion too, so *next is the first of it.
static bool op_expand_within(Op *op, int *budget, Op **next)
{
	if (--*budget < 0) {
		diag_error(op->ctx->diag, op->loc, "'%s' is defined by itself", op->info->name);
		return false;
	}
	Op *before = op->prev;
	Block *block = op->block;
	if (!op_expand(op))
		return false;
	*next = before ? before->next : block->first;
	return true;
}

// An element of a list whose making is in sight.
static Value *list_element(const Op *op)
{
	const Value *list = op->code == OP_BUILTIN_SLICE ? op_operand(op, 0) : NULL;
	int64_t at = op_int(op, "index", -1);
	if (!list || !list->def || list->def->code != OP_BUILTIN_COMBINE || at < 0 || at >= list->def->noperand)
		return NULL;
	return op_operand(list->def, (int)at);
}

static bool region_expand(Region *r, int *budget)
{
	for (Block *block = r->first; block; block = block->next) {
		for (Op *op = block->first, *next; op; op = next) {
			next = op->next;
			if (op->code == OP_LOOP_NEST)
				continue; // scalars inside
			Value *element = list_element(op); // of what a definition just made
			if (element)
				op_replace(op, &element);
			else if (!op_expands(op)) {
				for (int i = 0; i < op->nregion; i++)
					if (strncmp(op->info->name, "kernel.", 7) && !region_expand(&op->regions[i], budget))
						return false;
			} else if (!op_expand_within(op, budget, &next))
				return false;
		}
	}
	return true;
}

// Needs: what `layout` wants for itself is in kernels already.
// Keeps: kernels, views, control flow, names and locations.
// Breaks: nothing; afterwards no operation of pd is left but views, feeds, fetches and control flow.
bool pass_to_loops(PassContext *p)
{
	int budget = MAX_EXPANSIONS;
	if (!region_expand(&p->module->regions[0], &budget))
		return false;
	return pass_dce(p); // vectors and shapes that only the expanded operations read
}
