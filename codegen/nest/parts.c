// A loop whose body chooses by where its index stands, as what is put together from several tensors
// does, or limits positions, as what is beyond a border does, or begins anew, as what goes round
// does, is printed as several loops over parts of its range, in each of which the choice is made.
// Called by nest.c.
#include "codegen/nest/nest.h"

#include <inttypes.h>

// Parts of a loop: beyond them the code grows more than it gains; shorter ones, on average, are for
// many parts only.
enum { MAX_PARTS = 64, MIN_LENGTH = 16, MANY_PARTS = 4 };

typedef struct Cuts {
	int64_t extent;            // of the loop
	int64_t at[MAX_PARTS + 1]; // where parts begin, in order; the end at last
	int n;                     // parts
} Cuts;

static void cut_add(Cuts *c, int64_t at)
{
	int i = 0;
	while (i <= c->n && c->at[i] < at)
		i++;
	// Not at the ends, nor twice; one too many shows.
	if (i == 0 || i > c->n || c->at[i] == at || c->n > MAX_PARTS)
		return;
	if (c->n < MAX_PARTS) {
		for (int j = c->n; j >= i; j--)
			c->at[j + 1] = c->at[j];
		c->at[i] = at;
	}
	c->n++;
}

// Where comparisons of positions are decided, those of what is summed, too. That they are equal is
// asked for outer loops only, whose rounds are tensors of a stack then.
static void compare_cuts(const Nest *n, const Block *b, const Value *arg, bool outer, Cuts *c)
{
	int64_t at[2];
	for (const Op *op = b->first; op; op = op->next) {
		if (!op->nresult || !nest_needed(n, op))
			continue;
		if (op->nregion)
			compare_cuts(n, op->regions[0].first, arg, outer, c);
		if (op->noperand != 2)
			continue;
		// Where most rounds leave it open, as those of `j < i` do, the others are no main part.
		if (spans_compared(&n->s, op, arg, at) && 2 * (at[1] - at[0]) <= c->extent) {
			cut_add(c, at[0]);
			cut_add(c, at[1]);
		} else if (outer && spans_equal(&n->s, op, arg, at)) {
			cut_add(c, at[0]);
			cut_add(c, at[0] + 1);
		}
	}
}

// Where limits of positions turn from one operand to the other, which may hang on limits before
// them, and where quotients become others: in each part, from left to right.
static void limit_cuts(Nest *n, const Loop *loop, Cuts *c)
{
	int64_t at;
	IndexSpan *span = &n->s.spans[n->s.nspan++];
	for (int i = 0; i < c->n && c->n < MAX_PARTS;) {
		const int had = c->n;
		*span = (IndexSpan){loop->arg, c->at[i], c->at[i + 1]};
		for (const Op *op = n->body->first; op && c->n == had; op = op->next)
			if (op->nresult && op->noperand == 2 && nest_needed(n, op) &&
			    (spans_crossing(&n->s, op, loop->arg, &at) ||
			     spans_turn(&n->s, op, loop->arg, MIN_LENGTH, &at)) &&
			    at > span->from && at < span->to)
				cut_add(c, at);
		i += c->n == had;
	}
	n->s.nspan--;
}

// Whether most of the loop is one part.
static bool has_main_part(const Cuts *c)
{
	const int64_t whole = c->at[c->n];
	for (int i = 0; i < c->n; i++)
		if (c->at[i + 1] - c->at[i] >= MIN_LENGTH && (c->at[i + 1] - c->at[i]) * 4 >= whole * 3)
			return true;
	return false;
}

bool nest_has_reductions(const Nest *n)
{
	for (const Op *op = n->body->first; op; op = op->next)
		if (op->nregion)
			return true;
	return false;
}

static bool may_be_cut(const Nest *n, const Loop *loop)
{
	return !n->k->cg->backend->device && !n->turned && !loop->first && !loop->step &&
	       dim_is_const(loop->extent) && loop->extent->value >= 2;
}

// The parts of the loop at `level`, if that pays.
static bool cuts_find(Nest *n, int level, Cuts *c)
{
	const Loop *loop = &n->loops[level];
	*c = (Cuts){.n = 0};
	if (nest_loop_is_written(n, level)) {
		c->n = (int)loop->extent->value;
		for (int i = 1; i <= c->n; i++)
			c->at[i] = i;
		return true;
	}
	if (!may_be_cut(n, loop))
		return false;
	c->at[1] = c->extent = loop->extent->value;
	c->n = 1;
	const bool outer = level + 1 < n->nloop, sums = nest_has_reductions(n);
	if (outer && sums)
		return false;
	compare_cuts(n, n->body, loop->arg, outer, c);
	if (!outer && c->n <= MAX_PARTS)
		limit_cuts(n, loop, c);
	if (c->n < 2 || c->n > MAX_PARTS)
		return false;
	if (sums) // borders on both sides of what has none
		return c->n < MANY_PARTS && has_main_part(c);
	// Outer loops: few choices are made by nest.c, unless there is one for each round.
	return c->n >= MANY_PARTS ||
	       (outer ? c->n == loop->extent->value
	              : loop->extent->value / c->n >= MIN_LENGTH || has_main_part(c));
}

bool nest_parts_print(Nest *n, int level, int depth, NestPrint *print, bool *done)
{
	Cuts cuts;
	Loop *loop = &n->loops[level];
	*done = n->s.nspan < (int)COUNT_OF(n->s.spans) && cuts_find(n, level, &cuts);
	if (!*done)
		return true;
	IndexSpan *span = &n->s.spans[n->s.nspan++];
	bool ok = true;
	for (int i = 0; i < cuts.n && ok; i++) {
		*span = (IndexSpan){loop->arg, cuts.at[i], cuts.at[i + 1]};
		loop->first = arena_printf(n->k->arena, "%" PRId64, span->from);
		loop->end = arena_printf(n->k->arena, "%" PRId64, span->to);
		loop->only = span->to == span->from + 1;
		loop->part = span;
		nest_renew(n);
		ok = print(n, level, depth);
	}
	loop->first = loop->end = NULL;
	loop->only = false;
	loop->part = NULL;
	n->s.nspan--;
	nest_renew(n);
	return ok;
}
