// Rounds of a loop around a pattern: what stands behind it and in front of it is laid beside it
// with as few gaps as possible, which become steps that not all rounds have. Called by
// repeat_find.c.
#include "codegen/c/repeat.h"
#include "codegen/nest/nest.h"

#include <string.h>

enum {
	MAX_STEPS = 640, // of all rounds together
	MAX_GAPS = 6,    // steps that a round may have more or less than the pattern
	GAP_PART = 2,    // the same of one round
	ODD_PART = 2,    // steps that not all rounds have, as a part of all steps
	GAP_COST = 1     // calls that a step counts as when not all rounds have it
};

// ---- a round laid beside the pattern ------------------------------------------------------------

// A loop that grows; `kinds` of its steps, -1 for those that cannot be in several rounds.
typedef struct Rounds {
	const Steps *s;
	Repeat r;
	int *kinds;
	int *codes;       // of the operations of its steps
	int gaps;         // that a round may have
	int *room;        // for the costs of a round, and the way that it is laid
	int front, after; // numbers that there is room for around r.at
} Rounds;

// What may stand in a loop in one of its rounds, besides calls of some kind. Where control flow has
// locals in front of everything, statements and checks may, too.
static bool step_may_be_single(const Steps *s, int i)
{
	const Op *op = s->ops[i];
	if (s->calls[i])
		return true;
	return s->cg->blocks && (op->code == OP_PD_ASSERT || nest_is_statement(&s->cg->numbers, op));
}

// Costs of laying the first i steps beside j operations, for j from i - gaps to i + gaps.
typedef struct Costs {
	int *items, gaps;
} Costs;

static int *cost_at(const Costs *c, int i, int j)
{
	const int width = 2 * c->gaps + 1, k = j - i + c->gaps;
	return k < 0 || k >= width ? NULL : &c->items[i * width + k];
}

static int cost_of(const Costs *c, int i, int j)
{
	const int *cost = i < 0 || j < 0 ? NULL : cost_at(c, i, j);
	return cost ? *cost : MAX_PERIOD;
}

// Step i and operation j of a round that is looked at from its beginning (`way` 1, from operation
// `from` on) or from its end (`way` -1, what stands in front of `from`).
static int step_of(const Rounds *x, int way, int i)
{
	return way > 0 ? i : x->r.nstep - 1 - i;
}

static int op_of(int way, int from, int j)
{
	return way > 0 ? from + j : from - 1 - j;
}

// What it costs to lay operation j in the place of step i: nothing where a loop may print both as
// one. What does the same kind of thing otherwise costs one, not two, so that what differs in one
// layer only is not at the edge of the next one. Nothing else may stand there.
static int pair_cost(const Rounds *x, int way, int from, int i, int j)
{
	if (i < 0 || j < 0)
		return MAX_PERIOD;
	const int step = step_of(x, way, i), op = op_of(way, from, j);
	if (x->kinds[step] >= 0 && x->kinds[step] == x->s->kinds[op])
		return 0;
	const KernelFunc *k = x->s->calls[op];
	return k && !k->status && x->codes[step] == (int)k->op->code ? 1 : MAX_PERIOD;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int lay_cost(const Rounds *x, int way, int from, int room, const Costs *c, int i, int j)
{
	if (j > room)
		return MAX_PERIOD;
	if (!i && !j)
		return 0;
	const int without = cost_of(c, i - 1, j) + 1;
	const int both = cost_of(c, i - 1, j - 1) + pair_cost(x, way, from, i - 1, j - 1);
	const int more = j && step_may_be_single(x->s, op_of(way, from, j - 1))
	                     ? cost_of(c, i, j - 1) + 1
	                     : MAX_PERIOD;
	return least(least(without, both), least(more, MAX_PERIOD));
}

static void costs_fill(const Rounds *x, int way, int from, int room, const Costs *c)
{
	for (int i = 0; i <= x->r.nstep; i++)
		for (int j = i < c->gaps ? 0 : i - c->gaps; j <= i + c->gaps; j++)
			*cost_at(c, i, j) = lay_cost(x, way, from, room, c, i, j);
}

// How the round was laid: by step, and what it has between them.
typedef struct Laid {
	int *steps;           // the operation, or STEP_ABSENT
	int extra[MAX_GAPS];  // operations, in the order in which they were met …
	int behind[MAX_GAPS]; // … and the step in front of which each stands
	int nextra, count;
} Laid;

// What a round has more stands in front of what it has less, whichever way it is looked at.
static void lay(const Rounds *x, int way, int from, int length, const Costs *c, Laid *l)
{
	int i = x->r.nstep, j = length;
	l->nextra = 0;
	l->count = length;
	while (i || j) {
		const int cost = cost_of(c, i, j);
		const int pair = pair_cost(x, way, from, i - 1, j - 1);
		const bool both = cost == cost_of(c, i - 1, j - 1) + pair;
		const bool without = i && cost == cost_of(c, i - 1, j) + 1;
		const bool more = j && cost == cost_of(c, i, j - 1) + 1;
		if (both && !pair) {
			l->steps[step_of(x, way, --i)] = op_of(way, from, --j);
		} else if (both && pair == 1) {
			l->steps[step_of(x, way, --i)] = STEP_ABSENT;
			l->behind[l->nextra] = step_of(x, way, i) + 1;
			l->extra[l->nextra++] = op_of(way, from, --j);
		} else if (without && (way > 0 || !more)) {
			l->steps[step_of(x, way, --i)] = STEP_ABSENT;
		} else {
			l->behind[l->nextra] = way > 0 ? i : x->r.nstep - i;
			l->extra[l->nextra++] = op_of(way, from, --j);
		}
	}
}

// Whether what begins at `from`, or ends there, is another round: laid beside the pattern.
static bool round_lay(const Rounds *x, int way, int from, int room, Laid *l)
{
	const Costs c = {x->room + x->r.nstep, x->gaps};
	int best = -1;
	if (x->r.nstep > MAX_STEPS)
		return false;
	costs_fill(x, way, from, room, &c);
	// Of two ends that cost as much, the one that makes the round as long as the pattern.
	for (int k = 0; k <= 2 * c.gaps; k++) {
		const int j = x->r.nstep + (k % 2 ? -(k + 1) / 2 : k / 2);
		if (j > 0 && j <= room && cost_of(&c, x->r.nstep, j) <= c.gaps &&
		    (best < 0 || cost_of(&c, x->r.nstep, j) < cost_of(&c, x->r.nstep, best)))
			best = j;
	}
	if (best < 0)
		return false;
	l->steps = x->room;
	lay(x, way, from, best, &c, l);
	return true;
}

// ---- rounds -------------------------------------------------------------------------------------

// The operation of round `round` that stands in front of step `i` and is not in the pattern; they
// are taken in the order of the code.
static int extra_in_front(const Laid *l, int i, int nth)
{
	int found = STEP_ABSENT, last = -1;
	for (int n = 0; n <= nth; n++) {
		found = STEP_ABSENT;
		for (int e = 0; e < l->nextra; e++)
			if (l->behind[e] == i && l->extra[e] > last &&
			    (found == STEP_ABSENT || l->extra[e] < found))
				found = l->extra[e];
		if (found == STEP_ABSENT)
			return found;
		last = found;
	}
	return found;
}

// A round that has no operation more than the pattern.
static void round_append(Rounds *x, int way, const Laid *l)
{
	Repeat *r = &x->r;
	const int all = r->rounds * r->nstep;
	if ((way > 0 ? x->after : x->front) < r->nstep) {
		int *at = NEW_ARRAY(x->s->cg->arena, 3 * (size_t)all, int);
		memcpy(at + all, r->at, (size_t)all * sizeof *at);
		r->at = at + all;
		x->front = x->after = all;
	}
	*(way > 0 ? &x->after : &x->front) -= r->nstep;
	r->at -= way > 0 ? 0 : r->nstep;
	memcpy(r->at + (way > 0 ? all : 0), l->steps, (size_t)r->nstep * sizeof *r->at);
	int *count = NEW_ARRAY(x->s->cg->arena, (size_t)r->nstep, int);
	for (int i = 0; i < r->nstep; i++)
		count[i] = r->count[i] + (l->steps[i] != STEP_ABSENT);
	r->count = count;
	r->rounds++;
}

// A round with operations of its own, which the others do without.
static void round_insert(Rounds *x, int way, const Laid *l)
{
	Arena *a = x->s->cg->arena;
	const Repeat old = x->r;
	Repeat *r = &x->r;
	const int *kinds = x->kinds, *codes = x->codes;
	r->nstep = old.nstep + l->nextra;
	r->rounds++;
	r->at = NEW_ARRAY(a, (size_t)r->rounds * (size_t)r->nstep, int);
	r->count = NEW_ARRAY(a, (size_t)r->nstep, int);
	x->kinds = NEW_ARRAY(a, (size_t)r->nstep + 1, int);
	x->codes = NEW_ARRAY(a, (size_t)r->nstep + 1, int);
	const int mine = way > 0 ? old.rounds : 0, shift = way > 0 ? 0 : 1;
	int step = 0;
	for (int i = 0; i <= old.nstep; i++) {
		for (int n = 0, op; (op = extra_in_front(l, i, n)) != STEP_ABSENT; n++, step++) {
			for (int round = 0; round < r->rounds; round++)
				r->at[round * r->nstep + step] = round == mine ? op : STEP_ABSENT;
			r->count[step] = 1;
			x->kinds[step] = x->s->kinds[op];
			x->codes[step] = x->s->ops[op]->code;
		}
		if (i == old.nstep)
			break;
		for (int round = 0; round < old.rounds; round++)
			r->at[(round + shift) * r->nstep + step] = repeat_at(&old, round, i);
		r->at[mine * r->nstep + step] = l->steps[i];
		r->count[step] = old.count[i] + (l->steps[i] != STEP_ABSENT);
		x->codes[step] = codes[i];
		x->kinds[step++] = kinds[i];
	}
	x->front = x->after = 0;
}

// The rounds with one more, the first (`way` -1) or the last.
static void round_add(Rounds *x, int way, const Laid *l)
{
	Repeat *r = &x->r;
	(l->nextra ? round_insert : round_append)(x, way, l);
	r->first -= way > 0 ? 0 : l->count;
	r->end += way > 0 ? l->count : 0;
}

int repeat_saves(const Repeat *r)
{
	int n = 0, odd = 0;
	for (int step = 0; step < r->nstep; step++) {
		const int rounds = r->count[step];
		n += rounds - 1;
		odd += rounds < r->rounds;
	}
	return odd * ODD_PART > r->nstep ? -1 : n - GAP_COST * odd;
}

// Another round behind all, or in front of them. False: there is none that saves anything.
static bool round_extend(Rounds *x, int way, int from, int room)
{
	Laid l;
	Rounds more = *x;
	if (!round_lay(x, way, from, room, &l))
		return false;
	round_add(&more, way, &l);
	if (repeat_saves(&more.r) <= repeat_saves(&x->r))
		return false;
	*x = more;
	return true;
}

int *rounds_room(Arena *a)
{
	return NEW_ARRAY(a, (MAX_STEPS + 1) * (2 * MAX_GAPS + 2), int);
}

Repeat rounds_around(const Steps *s, int *room, int from, int to, int first, int period)
{
	Arena *a = s->cg->arena;
	Rounds x = {.s = s,
	            .r = {.first = first, .end = first + period, .rounds = 1, .nstep = period},
	            .gaps = period / GAP_PART,
	            .room = room};
	x.gaps = x.gaps > MAX_GAPS ? MAX_GAPS : x.gaps;
	x.r.at = NEW_ARRAY(a, (size_t)period, int);
	x.r.count = NEW_ARRAY(a, (size_t)period, int);
	x.kinds = NEW_ARRAY(a, (size_t)period + 1, int);
	x.codes = NEW_ARRAY(a, (size_t)period + 1, int);
	for (int i = 0; i < period; i++) {
		x.r.at[i] = first + i;
		x.r.count[i] = 1;
		x.kinds[i] = s->kinds[first + i];
		x.codes[i] = s->ops[first + i]->code;
		if (!step_may_be_single(s, first + i)) {
			x.r.rounds = 0;
			return x.r;
		}
	}
	while (round_extend(&x, 1, x.r.end, to - x.r.end))
		;
	while (round_extend(&x, -1, x.r.first, x.r.first - from))
		;
	return x.r;
}
