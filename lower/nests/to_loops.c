// Expands every operation that is not a kernel, a view or control flow into loop nests, by its
// definition in the operator table: a `define` hook, a composition, or a scalar expression inside a
// nest. Runs after layout has taken what tuned templates do better, and before fuse.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/verify/verify.h"
#include "lower/analysis/nest.h"
#include "lower/clean/clean.h"
#include "lower/nests/nests.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

// How many expansions a chain of definitions may take before the table must be circular.
enum { MAX_EXPANSIONS = 1 << 20 };

// Whether the table says what the operation means, and it is not best left as it is.
static bool op_expands(const Op *op)
{
	const OpInfo *info = op->info;
	switch (info->kind) {
	case KIND_CONTROL:
	case KIND_BUILTIN:
	case KIND_LOOP:
	case KIND_RANDOM: return false;
	default: break;
	}
	if ((info->traits & TRAIT_VIEW) || !strncmp(info->name, "kernel.", 7))
		return false;
	return op_functions(op)->define || info->compose || info->scalar ||
	       (info->traits & TRAIT_PRIMITIVE);
}

// Whether no result has an element, so that nothing is computed.
static bool gives_nothing(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (op->results[i].type->kind != TY_TENSOR ||
		    !dim_is(type_numel(op->ctx, op->results[i].type), 0))
			return false;
	return op->nresult;
}

static void op_empty(Op *op)
{
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult, Value *);
	for (int i = 0; i < op->nresult; i++) {
		Op *empty = op_new(op->ctx, OP_LOOP_EMPTY, op->loc, 1, &op->results[i].type, 0, NULL, 0, 0);
		op_set_attr(empty, "name", attr_str(op->ctx, "nothing"));
		op_insert_before(op, empty);
		results[i] = &empty->results[0];
	}
	op_replace(op, results);
}

static bool op_expand(Op *op)
{
	Builder b = builder_before(op);
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	int errors = diag_errors(op->ctx->diag);
	if (!op_define(&b, op, results)) {
		if (diag_errors(op->ctx->diag) == errors)
			diag_error(op->ctx->diag, op->loc, "'%s' is not supported for these types or sizes",
			           op->info->name);
		return false;
	}
	for (int i = 0; i < op->nresult; i++) {
		if (!results[i] && value_used(&op->results[i])) {
			diag_error(op->ctx->diag, op->loc, "'%s': the definition gives no result %d",
			           op->info->name, i);
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
	if (!list || !list->def || list->def->code != OP_BUILTIN_COMBINE || at < 0 ||
	    at >= list->def->noperand)
		return NULL;
	return op_operand(list->def, (int)at);
}

static bool region_expand(Region *r, int *budget)
{
	for (Block *block = r->first; block; block = block->next) {
		for (Op *op = block->first, *next; op; op = next) {
			next = op->next;
			if (op->code == OP_LOOP_NEST)
				continue;                      // scalars inside
			Value *element = list_element(op); // of what a definition just made
			if (element)
				op_replace(op, &element);
			else if (op_expands(op) && gives_nothing(op))
				op_empty(op);
			else if (!op_expands(op)) {
				for (int i = 0; i < op->nregion; i++)
					if (strncmp(op->info->name, "kernel.", 7) &&
					    !region_expand(&op->regions[i], budget))
						return false;
			} else if (!op_expand_within(op, budget, &next))
				return false;
		}
	}
	return true;
}

// The one number that all elements of a constant are; NULL: it is none.
static Value *one_number(Builder *b, const Value *v)
{
	const Tensor *t = v->def && v->def->code == OP_BUILTIN_CONSTANT ? value_constant(v) : NULL;
	return t && !dtype_is_complex(t->dtype) && tensor_is_uniform(t) ? build_element(b, t, 0) : NULL;
}

// Whether two numbers in a nest are one constant.
static bool same_number(const Value *x, const Value *y)
{
	return x->def && y->def && x->def->code == OP_LOOP_CONSTANT &&
	       y->def->code == OP_LOOP_CONSTANT && x->type == y->type && op_attrs_equal(x->def, y->def);
}

// Sizes of operands that do not go together, which inference should have found, must not become
// code that reads outside of a tensor. A constant of equal elements, loaded from anywhere, is a
// number, but a position from data is checked, whatever lies there.
static bool load_visit(Op *op, void *arg)
{
	bool *ok = arg;
	const int first = load_indices_at(op);
	if (!first)
		return true;
	Builder b = builder_before(op);
	if (op->code == OP_LOOP_LOAD)
		*ok &= load_verify_bounds(op);
	for (int i = first; i < op->noperand; i++)
		if (position_is_checked(op_operand(op, i)))
			return true;
	Value *number = one_number(&b, op_operand(op, first - 1));
	if (number && op->code == OP_LOOP_LOAD_OR && !same_number(number, op_operand(op, 1))) {
		Value *const choice[] = {op_operand(op, 0), number, op_operand(op, 1)};
		number = build(&b, OP_PD_WHERE, 3, choice, NULL);
	}
	if (number)
		op_replace(op, &number);
	return true;
}

// Needs: what `layout` wants for itself is in kernels already.
// Keeps: kernels, views, control flow, names and locations.
// Breaks: nothing; afterwards no operation of pd is left but views, feeds, fetches and control
// flow.
bool pass_to_loops(PassContext *p)
{
	int budget = MAX_EXPANSIONS;
	if (!region_expand(&p->module->regions[0], &budget))
		return false;
	bool ok = true;
	op_walk(p->module, load_visit, &ok);
	return ok && pass_dce(p); // vectors and shapes that only the expanded operations read
}
