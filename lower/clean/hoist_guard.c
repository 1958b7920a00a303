// Dear operations in front of a loop that may run no round: under a pd.if on the condition as it is
// at first, so that a loop without rounds does not pay for them. Called by hoist.c before nests are
// made.
#include "ir/build/build.h"
#include "lower/analysis/analysis.h"
#include "lower/clean/hoist.h"

enum { MAX_CONDITION = 8 }; // operations in the condition, which is there once more

bool op_is_dear(const Op *op)
{
	OpKind kind = op->info->kind;
	bool pure = (op->info->traits & TRAIT_PURE) && op->nregion == 0;
	return (pure && (kind == KIND_CONTRACT || kind == KIND_COMPOSITE)) ||
	       (op->code == OP_PD_IF && control_is_plain(op) && control_is_pure(op));
}

static bool types_stay(const Op *loop)
{
	const Block *cond = loop->regions[0].first;
	for (int i = 0; i < loop->noperand; i++)
		if (op_operand(loop, i)->type != cond->args[i]->type)
			return false;
	return true;
}

bool loop_wants_guard(const Op *loop)
{
	const Dim *exact, *at_most;
	int64_t lo, hi;
	while_trip_count(loop->ctx, loop, &exact, &at_most);
	if (exact)
		dim_range(exact, &lo, &hi);
	if (exact && lo >= 1)
		return false;
	return loop_is_plain(loop) && types_stay(loop) && region_is_pure(&loop->regions[0]) &&
	       !region_finds(&loop->regions[0]) && region_size(&loop->regions[0]) <= MAX_CONDITION;
}

static bool value_leaves(const Value *v, const Region *r)
{
	for (const Use *u = v->uses; u; u = u->next)
		if (!use_is_in(u, r))
			return true;
	return false;
}

// The condition before the first round.
static Value *first_condition(Op *loop)
{
	const Block *cond = loop->regions[0].first;
	Value **given = NEW_ARRAY(loop->ctx->arena, (size_t)loop->noperand + 1, Value *);
	ValueMap *m = value_map_new(loop->ctx->arena);
	for (int i = 0; i < cond->narg; i++)
		value_map_set(m, cond->args[i], op_operand(loop, i));
	region_copy(&loop->regions[0], loop, 0, m, given);
	return given[0];
}

// Gives the branch what its readers outside read: as results, for which zeros stand where the loop
// runs no round.
static void results_give(Op *guard, Value *const *out, int n)
{
	Region *then = &guard->regions[0];
	Builder b[2];
	Op *end[2];
	for (int side = 0; side < 2; side++) {
		b[side] = builder_at_end(guard->ctx, guard->regions[side].first, guard->loc);
		end[side] = op_new(guard->ctx, OP_CF_YIELD, guard->loc, 0, NULL, 0, NULL, 0, 0);
	}
	for (int i = 0; i < n; i++) {
		for (Use *u = out[i]->uses, *next; u; u = next) {
			next = u->next;
			if (!use_is_in(u, then))
				op_set_operand(u->user, (int)u->index, op_result(guard, i));
		}
		guard->results[i].name = out[i]->name;
		op_add_operand(end[0], out[i]);
		op_add_operand(end[1], build_full(&b[1], out[i]->type, 0));
	}
	for (int side = 0; side < 2; side++)
		op_append(guard->regions[side].first, end[side]);
}

void hoist_guarded(Op *loop, Op *const *ops, int n)
{
	Context *c = loop->ctx;
	int nout = 0, most = 0;
	for (int i = 0; i < n; i++)
		most += ops[i]->nresult;
	Region *held = NEW(
		c->arena, Region); // stands for the region until it is known how many results there are
	Block *into = block_new(c, held);
	for (int i = 0; i < n; i++) {
		op_detach(ops[i]);
		op_append(into, ops[i]);
	}
	Value **out = NEW_ARRAY(c->arena, (size_t)most + 1, Value *);
	const Type **types = NEW_ARRAY(c->arena, (size_t)most + 1, const Type *);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < ops[i]->nresult; k++)
			if (value_leaves(&ops[i]->results[k], held)) {
				types[nout] = ops[i]->results[k].type;
				out[nout++] = op_result(ops[i], k);
			}
	Op *guard = op_new(c, OP_PD_IF, loop->loc, nout, types, 1, (Value *[]){first_condition(loop)},
	                   2, 0);
	guard->regions[0].first = guard->regions[0].last = into;
	into->region = &guard->regions[0];
	block_new(c, &guard->regions[1]);
	op_insert_before(loop, guard);
	results_give(guard, out, nout);
}
