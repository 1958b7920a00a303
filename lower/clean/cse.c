// Common subexpression elimination: of two equal pure operations, the later one gives way to the
// earlier (lower/pass/numbering.h). Run by the pipeline after canonicalize and fold.
#include "ir/base/map.h"
#include "lower/clean/clean.h"
#include "lower/pass/numbering.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

static bool op_mergeable(const Op *op)
{
	return (op->info->traits & (TRAIT_PURE | TRAIT_CONSTANT)) &&
	       !(op->info->traits & TRAIT_TERMINATOR) && op->nregion == 0 && op->nresult > 0;
}

// Replaces op by an equal one that is visible, or remembers it.
static void op_merge(Numbering *s, Op *op)
{
	Op *equal = numbering_meet(s, op);
	if (!equal)
		return;
	Value **with = NEW_ARRAY(s->arena, (size_t)op->nresult, Value *);
	for (int i = 0; i < op->nresult; i++)
		with[i] = op_result(equal, i);
	op_replace(op, with);
}

// ---- checks of sizes ----------------------------------------------------------------------------

typedef struct Check {
	Op *assertion;
	struct Check *older;
} Check;

// Whether two operations are equal when operands of the second have twins among values of the
// first.
static bool op_twin(const PointerMap *twins, const Op *a, const Op *b)
{
	if (!op_alike(a, b) || a->nregion || b->nregion)
		return false;
	for (int i = 0; i < a->noperand; i++) {
		const Value *twin = pointer_map_get(twins, op_operand(b, i));
		if (op_operand(a, i) != (twin ? twin : op_operand(b, i)))
			return false;
	}
	return true;
}

// Whether two nests without operands, of plain operations one after the other, say the same.
static bool nest_equal(Numbering *s, const Op *x, const Op *y)
{
	const Block *p = region_entry(&x->regions[0]), *q = region_entry(&y->regions[0]);
	PointerMap twins;
	if (!op_alike(x, y) || p->narg || q->narg)
		return false;
	pointer_map_init(&twins, s->arena);
	const Op *a = p->first, *b = q->first;
	for (; a && b; a = a->next, b = b->next) {
		if (!op_twin(&twins, a, b))
			return false;
		for (int i = 0; i < a->nresult; i++)
			pointer_map_set(&twins, &b->results[i], &a->results[i]);
	}
	return !a && !b;
}

static const Op *checked_nest(const Op *assertion)
{
	const Op *nest = op_operand(assertion, 0)->def;
	return nest && nest->code == OP_LOOP_NEST && nest->nresult == 1 && !nest->noperand &&
	               nest->nregion == 1
	           ? nest
	           : NULL;
}

// An array's elements have sizes of their own, which reading one may give to a symbol.
static bool may_hold_sizes(const Type *t)
{
	return t->kind != TY_TENSOR && t->kind != TY_VEC;
}

static bool operands_mention(const Op *op, const Dim *d)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && type_mentions(op_operand(op, i)->type, d))
			return true;
	return false;
}

// Whether a result has a size that no operand has.
static bool result_binds(const Op *op, const Type *t)
{
	for (int d = 0; t->kind == TY_TENSOR && d < t->rank; d++)
		if (t->dims[d]->kind == DIM_SYM && t->dims[d]->bounded && !operands_mention(op, t->dims[d]))
			return true;
	return may_hold_sizes(t);
}

// Loops and branches, not regions of elements.
static bool op_is_control(const Op *op)
{
	const Op *last = op->nregion ? block_terminator(region_entry(&op->regions[0])) : NULL;
	return op->nregion && !(last && last->code == OP_LOOP_YIELD);
}

// Whether sizes that a run finds may have other values behind the operation than in front of it.
static bool sizes_change(const Op *op)
{
	if (op->code == OP_LOOP_NEST)
		return false;
	bool change = op_is_control(op) || op->code == OP_LOOP_BIND || op->code == OP_LOOP_CAPACITY;
	for (int i = 0; i < op->noperand; i++)
		change = change || (op_operand(op, i) && may_hold_sizes(op_operand(op, i)->type));
	for (int i = 0; i < op->nresult; i++)
		change = change || result_binds(op, op->results[i].type);
	return change;
}

// What an assertion in front of it has found to be true need not be asked again.
static void checks_merge(Numbering *s, Block *b)
{
	Check *seen = NULL;
	for (Op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (sizes_change(op))
			seen = NULL;
		if (op->code != OP_PD_ASSERT || op->nsucc || !op_bool(op, "sizes", false) ||
		    !checked_nest(op))
			continue;
		const Check *c = seen;
		while (c && !nest_equal(s, checked_nest(c->assertion), checked_nest(op)))
			c = c->older;
		if (c) {
			op_erase(op);
			continue;
		}
		Check *new = NEW(s->arena, Check);
		*new = (Check){op, seen};
		seen = new;
	}
}

static void region_merge(Numbering *s, Region *r)
{
	for (Block *b = r->first; b; b = b->next) {
		Numbered *outer = s->newest;
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				region_merge(s, &op->regions[i]);
			if (op_mergeable(op))
				op_merge(s, op);
		}
		checks_merge(s, b);
		numbering_leave(s, outer);
	}
}

// Needs: nothing.  Keeps: everything.  Breaks: nothing.
bool pass_cse(PassContext *p)
{
	Arena *arena = arena_scratch(p->ctx->arena);
	Numbering s;
	numbering_init(&s, arena);
	region_merge(&s, &p->module->regions[0]);
	arena_free(arena);
	return true;
}
