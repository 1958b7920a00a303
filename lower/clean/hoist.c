// Loops made smaller: variables that a loop does not change are read from outside of it, and
// operations that give the same in every round move in front of it. Run when the program is clean,
// and again after fusion, when packed weights and what was not fused show what is left.
#include "lower/clean/hoist.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"

#include <string.h>

// ---- variables that stay ------------------------------------------------------------------------

// Whether variable i goes through condition and body as it came.
static bool variable_stays(const Op *loop, int i)
{
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	return op_operand(cond->last, i + 1) == cond->args[i] &&
	       op_operand(body->last, i) == body->args[i];
}

static bool variables_correspond(const Op *loop)
{
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	return loop->nregion == 2 && cond->narg == loop->noperand && body->narg == loop->noperand &&
	       loop->nresult == loop->noperand;
}

// Reads variables that stay from outside. They remain variables that nobody reads, until flatten.
static void variables_replace(Op *loop)
{
	if (!variables_correspond(loop))
		return;
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	for (int i = 0; i < loop->noperand; i++) {
		Value *init = op_operand(loop, i);
		if (!variable_stays(loop, i) || cond->args[i]->type != init->type ||
		    loop->results[i].type != init->type)
			continue;
		value_replace(&loop->results[i], init);
		value_replace(cond->args[i], init);
		value_replace(body->args[i], init);
	}
}

// ---- operations that stay -----------------------------------------------------------------------

static bool region_holds(const Region *r, const Block *b)
{
	while (b && b->region != r)
		b = b->region->op ? b->region->op->block : NULL;
	return b != NULL;
}

static bool regions_hold(const Op *op, const Block *b)
{
	for (int k = 0; k < op->nregion; k++)
		if (region_holds(&op->regions[k], b))
			return true;
	return false;
}

// Whether op, with all that is in its regions, reads nothing that is made in r but by itself.
static bool reads_from_outside(const Op *op, const Op *self, const Region *r)
{
	if (attrs_are_found(op))
		return false;
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		const Block *home = !v ? NULL : v->def ? v->def->block : v->block;
		if (home && !regions_hold(self, home) && (region_holds(r, home) || type_is_found(v->type)))
			return false;
	}
	for (int k = 0; k < op->nregion; k++)
		for (const Block *b = op->regions[k].first; b; b = b->next)
			for (const Op *in = b->first; in; in = in->next)
				if (!reads_from_outside(in, self, r))
					return false;
	return true;
}

// Whether op checks what it reads, or divides whole numbers.
static bool op_may_fail(const Op *op)
{
	bool divides = op->code == OP_PD_FLOOR_DIVIDE || op->code == OP_PD_REMAINDER ||
	               op->code == OP_PD_DIVIDE;
	if (op->code == OP_LOOP_TO_INDEX)
		return true;
	if (divides && op->results[0].type->kind != TY_INDEX &&
	    dtype_is_int(op->results[0].type->dtype))
		return true;
	for (int k = 0; k < op->nregion; k++)
		for (const Block *b = op->regions[k].first; b; b = b->next)
			for (const Op *in = b->first; in; in = in->next)
				if (op_may_fail(in))
					return true;
	return false;
}

// A loop may run no round at all, so what moves must be harmless. Index operators wait until they
// are nests: only then it shows whether they check positions.
static bool op_may_move(const Op *op)
{
	const OpInfo *info = op->info;
	if (info->traits & TRAIT_CONSTANT)
		return true;
	if (!(info->traits & TRAIT_PURE) || (info->traits & TRAIT_TERMINATOR) || !results_are_sized(op))
		return false;
	bool harmless = info->kind == KIND_MAP || info->kind == KIND_REDUCE ||
	                info->kind == KIND_CONTRACT || op->code == OP_LOOP_NEST ||
	                (info->traits & TRAIT_VIEW) || !strncmp(info->name, "kernel.", 7);
	return harmless && !op_may_fail(op);
}

// The condition runs at least once, so operations leave it as they are.
static void condition_hoist(Op *loop)
{
	Region *r = &loop->regions[0];
	for (Op *op = r->first->first, *next; op; op = next) {
		next = op->next;
		if (!op_may_move(op) || !reads_from_outside(op, op, r))
			continue;
		op_detach(op);
		op_insert_before(loop, op);
	}
}

static bool is_marked(const Value *v, const void *mark)
{
	return v->def && v->def->scratch == mark;
}

// Cheap operations leave the body at once; dear ones, and what reads those, under a guard where the
// loop may run no round. `held` is where they wait: outside of the body, so that what reads them is
// seen to read from outside.
static void body_hoist(Op *loop)
{
	Region *r = &loop->regions[1];
	Context *c = loop->ctx;
	bool guard = r->first && loop_wants_guard(loop);
	Region *held = NEW(c->arena, Region);
	Block *waiting = block_new(c, held);
	int n = 0;
	for (Op *op = r->first->first, *next; op; op = next) {
		next = op->next;
		bool is_dear = guard && op_is_dear(op) && results_are_sized(op);
		if ((!op_may_move(op) && !is_dear) || !reads_from_outside(op, op, r))
			continue;
		bool waits = is_dear || op_reads_any(op, is_marked, held);
		op_detach(op);
		if (!waits) {
			op_insert_before(loop, op);
			continue;
		}
		op->scratch = held;
		op_append(waiting, op);
		n++;
	}
	if (!n)
		return;
	Op **ops = NEW_ARRAY(c->arena, (size_t)n, Op *);
	n = 0;
	for (Op *op = waiting->first; op; op = op->next) {
		op->scratch = NULL;
		ops[n++] = op;
	}
	hoist_guarded(loop, ops, n);
}

// Inner loops first: what leaves them may leave the outer ones, too.
static void region_hoist(Region *r)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next) {
			if (op->info->kind != KIND_CONTROL)
				continue;
			if (op->code == OP_PD_WHILE)
				variables_replace(op);
			for (int i = 0; i < op->nregion; i++)
				region_hoist(&op->regions[i]);
			if (op->code == OP_PD_WHILE) {
				condition_hoist(op);
				body_hoist(op);
			}
		}
}

// Needs: pd operators where dear ones are to be guarded; nests otherwise move without.
// Keeps: values; a loop without rounds runs nothing that may fail, and nothing dear.
// Breaks: nothing.
bool pass_hoist(PassContext *p)
{
	region_hoist(&p->module->regions[0]);
	return true;
}
