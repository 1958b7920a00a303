// Loops whose rounds are counted at compile time: none, and the variables keep what they were
// given; one, and the body takes the loop's place; few rounds of a small body stand one after the
// other. A loop that ends and that nobody reads is dropped. Run when the program is clean; what is
// uncovered is folded afterwards.
#include "lower/analysis/analysis.h"
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

// No more than so many rounds, and operations in all of them, are written out.
enum { MAX_ROUNDS = 4, MAX_UNROLLED = 32 };

// Whether every variable keeps its type from one round to the next.
static bool types_stay(const Op *loop)
{
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	for (int i = 0; i < loop->nresult; i++) {
		const Type *t = loop->results[i].type;
		if (type_is_found(t) || op_operand(loop, i)->type != t || cond->args[i]->type != t ||
		    body->args[i]->type != t || op_operand(body->last, i)->type != t)
			return false;
	}
	return true;
}

// A copy of region r in front of the loop, with `vars` for its arguments.
static void round_copy(Op *loop, int r, Value *const *vars, Value **given)
{
	ValueMap *m = value_map_new(loop->ctx->arena);
	const Block *b = loop->regions[r].first;
	for (int i = 0; i < b->narg; i++)
		value_map_set(m, b->args[i], vars[i]);
	region_copy(&loop->regions[r], loop, r == 0 ? 1 : 0, m, given);
}

// The condition runs once more than the body; what it computes is mostly dead by now.
static void loop_unroll(Op *loop, int64_t rounds)
{
	int n = loop->nresult;
	Value **vars = NEW_ARRAY(loop->ctx->arena, (size_t)n + 1, Value *);
	Value **given = NEW_ARRAY(loop->ctx->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++)
		vars[i] = op_operand(loop, i);
	for (int64_t k = 0; k <= rounds; k++)
		for (int r = 0; r < (k < rounds ? 2 : 1); r++) {
			round_copy(loop, r, vars, given);
			for (int i = 0; i < n; i++)
				vars[i] = given[i];
		}
	op_replace(loop, vars);
}

static bool loop_is_dead(const Op *loop, const Dim *at_most)
{
	for (int i = 0; i < loop->nresult; i++)
		if (result_needed(&loop->results[i]))
			return false;
	return at_most && control_is_pure(loop);
}

static bool holds_loop(const Region *r)
{
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			if (op->code == OP_PD_WHILE)
				return true;
			for (int i = 0; i < op->nregion; i++)
				if (holds_loop(&op->regions[i]))
					return true;
		}
	return false;
}

// Whether so many rounds are better written out.
static bool rounds_are_few(const Op *loop, int64_t rounds)
{
	const Region *cond = &loop->regions[0], *body = &loop->regions[1];
	if (rounds == 1)
		return !region_finds(cond); // else the condition would be there twice
	return rounds < 1 || (rounds <= MAX_ROUNDS && !region_finds(cond) && !region_finds(body) &&
	                      rounds * (region_size(cond) + region_size(body)) <= MAX_UNROLLED);
}

static bool loop_count(PassContext *p, Op *loop)
{
	const Dim *exact, *at_most;
	if (!loop_is_plain(loop))
		return true;
	while_trip_count(p->ctx, loop, &exact, &at_most);
	if (loop_is_dead(loop, at_most) && !holds_loop(&loop->regions[1])) {
		op_erase(loop);
		return true;
	}
	if (!exact || !dim_is_const(exact) || !types_stay(loop) ||
	    (p->max_trip && exact->value > p->max_trip))
		return true;
	if (rounds_are_few(loop, exact->value))
		loop_unroll(loop, exact->value);
	return true;
}

// Needs: pd operators and folded constants, for while_trip_count.
// Keeps: everything but loops of few rounds.
// Breaks: nothing. Conditions and counters that nobody reads any more are dead.
bool pass_loop_trips(PassContext *p)
{
	return control_visit(p, &p->module->regions[0], OP_PD_WHILE, loop_count);
}
