// Finds layers that are equal but for their weights: calls of the same functions in the same order,
// with the same arguments, but for where weights and buffers lie. A layer may have a step more or
// less than the others: one inserted operator does not take a layer out of the loop.
//
// Each call gets a number, its kind, so that calls which may be one are those of one kind; then
// rounds are found among numbers. A layer is taken as a pattern, and what stands in front of it and
// behind it is laid beside the pattern, with as few gaps as possible. Called by repeat.c.
#include "codegen/c/repeat.h"
#include "codegen/nest/nest.h"
#include "ir/base/vec.h"

#include <string.h>

enum {
	MAX_PERIOD = 512, // steps in a round
	MAX_STEPS = 640,  // of all rounds together
	MIN_PERIOD = 4,   // fewer read as well one after the other
	MIN_SAVED = 8,    // calls that the loop saves
	MAX_GAPS = 6,     // steps that a round may have more or less than the pattern
	GAP_PART = 2,     // the same of one round
	ODD_PART = 2,     // steps that not all rounds have, as a part of all steps
	GAP_COST = 1,     // calls that a step counts as when not all rounds have it
	READ_COST = 4,    // the same of a tensor that each round takes from before it
	MAX_SEEDS = 6,    // patterns that are looked at closely
	MAX_STARTS = 64   // places where such a round may begin
};

// ---- which calls are equal ----------------------------------------------------------------------

// Whether a table may say where a tensor lies.
static bool place_is_listed(const Codegen *cg, const Place *p)
{
	if (p->kind == PLACE_PARAM)
		return cg->inline_weights || !p->offset || dim_is_const(p->offset);
	return p->kind == PLACE_WORKSPACE && p->offset && !number_local(cg, p);
}

static bool places_are_listed(const Codegen *cg, const Place *a, const Place *b)
{
	return a->kind == b->kind && !a->moving == !b->moving && place_is_listed(cg, a) &&
	       place_is_listed(cg, b);
}

static bool places_match(const Codegen *cg, const Place *a, const Place *b)
{
	if (a->root == b->root)
		return true;
	if (a->kind != b->kind || (a->kind == PLACE_PARAM && cg->inline_weights) ||
	    number_local(cg, a) || number_local(cg, b))
		return false;
	return a->kind != PLACE_NONE && a->col == b->col && a->moving == b->moving &&
	       a->offset == b->offset;
}

bool arguments_match(const Codegen *cg, const KernelParam *a, const KernelParam *b)
{
	if (a->given || b->given)
		return false;
	if (!a->value || !b->value)
		return a->value == b->value && a->sym == b->sym && a->bound == b->bound;
	const Place x = value_place(a->value), y = value_place(b->value);
	return a->lead == b->lead && places_match(cg, &x, &y);
}

bool arguments_fit(const Codegen *cg, const KernelParam *a, const KernelParam *b)
{
	if (arguments_match(cg, a, b))
		return true;
	if (a->given || b->given || !a->value || !b->value)
		return false;
	const Place x = value_place(a->value), y = value_place(b->value);
	return places_are_listed(cg, &x, &y);
}

static bool calls_fit(const Codegen *cg, const KernelFunc *a, const KernelFunc *b)
{
	if (a->number != b->number || a->nparam != b->nparam || a->units != b->units ||
	    op_attr(a->op, "parallel") != op_attr(b->op, "parallel"))
		return false;
	for (int i = 0; i < a->nparam; i++)
		if (!arguments_fit(cg, &a->params[i], &b->params[i]))
			return false;
	return true;
}

void steps_classify(Steps *s)
{
	Arena *a = s->cg->arena;
	int *last = NEW_ARRAY(a, (size_t)s->cg->nfunc + 1, int); // by function: its last new kind
	int *before = NEW_ARRAY(a, (size_t)s->n + 1, int);       // by kind's first call: the one before
	for (int i = 0; i < s->cg->nfunc; i++)
		last[i] = -1;
	for (int i = 0; i < s->n; i++) {
		const KernelFunc *k = s->calls[i];
		s->kinds[i] = -1;
		if (!k || k->status || k->inlined)
			continue;
		int j = last[k->number];
		while (j >= 0 && !calls_fit(s->cg, s->calls[j], k))
			j = before[j];
		s->kinds[i] = j >= 0 ? j : i;
		if (j < 0) {
			before[i] = last[k->number];
			last[k->number] = i;
		}
	}
}

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

// Calls that the loop has less; less than nothing where a good part of it is in some rounds only.
static int saved(const Repeat *r)
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
	if (saved(&more.r) <= saved(&x->r))
		return false;
	*x = more;
	return true;
}

// All rounds around the pattern [first, first + period).
static Repeat rounds_around(const Steps *s, int *room, int from, int to, int first, int period)
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

bool steps_are_apart(const Repeat *r, int a, int b)
{
	for (int round = 0; round < r->rounds; round++)
		if (repeat_at(r, round, a) != STEP_ABSENT && repeat_at(r, round, b) != STEP_ABSENT)
			return false;
	return true;
}

// Tensors that a round takes from before it, weights apart: few where layers begin. `seen`: the
// last round that had to do with a tensor.
static int round_reads(const Steps *s, const Repeat *r, int round, PointerMap *seen)
{
	int n = 0;
	for (int step = 0; step < r->nstep; step++) {
		const int at = repeat_at(r, round, step);
		const KernelFunc *k = at == STEP_ABSENT ? NULL : s->calls[at];
		for (int p = 0; k && p < k->nparam; p++) {
			if (!k->params[p].value)
				continue;
			const Place place = value_place(k->params[p].value);
			if (place.kind == PLACE_PARAM || pointer_map_index(seen, place.root) == round)
				continue;
			pointer_map_set_index(seen, place.root, round);
			n += !k->params[p].result;
		}
	}
	return n;
}

// What a loop is worth: the calls that it saves, and that its rounds are layers. Those of a single
// layer that differ must not move the beginning of all.
static int worth(const Steps *s, const Repeat *r, int have)
{
	Arena *scratch = arena_scratch(s->cg->arena);
	PointerMap seen;
	pointer_map_init(&seen, scratch);
	int reads = 0;
	for (int round = 0; round < r->rounds; round++)
		reads += round_reads(s, r, round, &seen);
	arena_free(scratch);
	return have - READ_COST * reads / r->rounds;
}

// Moves step `from` to the place of step `to` in front of it.
static void step_move(Repeat *r, int from, int to)
{
	for (int round = 0; round < r->rounds; round++) {
		int *at = &r->at[round * r->nstep];
		const int op = at[from];
		memmove(&at[to + 1], &at[to], (size_t)(from - to) * sizeof *at);
		at[to] = op;
	}
	const int count = r->count[from];
	memmove(&r->count[to + 1], &r->count[to], (size_t)(from - to) * sizeof *r->count);
	r->count[to] = count;
}

static const Op *step_op(const Steps *s, const Repeat *r, int step)
{
	return s->ops[repeat_at(r, step_first(r, step), step)];
}

// One round through the groups of a chain: what most rounds have comes first, then what the first
// one has. Whether any changed places.
static bool chain_sort(Repeat *r, int from, int to)
{
	bool any = false;
	for (int group = from, next; (next = step_group_end(r, group)) < to; group = next) {
		const int end = step_group_end(r, next), a = r->count[group], b = r->count[next];
		if (a > b || (a == b && step_first(r, group) < step_first(r, next)))
			continue;
		for (int step = next; step < end; step++)
			step_move(r, step, group + step - next);
		next = group + end - next;
		any = true;
	}
	return any;
}

// A step of some rounds stands behind the one whose place it takes: the nearest in front of it that
// does the same kind of thing in other rounds. It may pass those that none of its rounds has.
static void steps_settle(const Steps *s, Repeat *r)
{
	for (int step = 1; step < r->nstep; step++) {
		int other = step - 1;
		while (other >= 0 && steps_are_apart(r, other, step) &&
		       step_op(s, r, other)->code != step_op(s, r, step)->code)
			other--;
		if (other >= 0 && other < step - 1 && steps_are_apart(r, other, step))
			step_move(r, step, other + 1);
	}
	for (int step = 0, end; step < r->nstep; step = end) {
		end = step_chain_end(r, step);
		while (chain_sort(r, step, end))
			;
	}
}

// ---- where to look ------------------------------------------------------------------------------

// `length` operations from `first` on are of the kinds of those `period` later.
typedef struct Seed {
	int first, length, period;
} Seed;

// Whether the same operations have a shorter period already, of which this one is a multiple.
static bool seed_is_known(const Seed *seeds, int n, const Seed *new)
{
	for (int i = 0; i < n; i++)
		if (new->period % seeds[i].period == 0 &&
		    new->first >= seeds[i].first &&new->first + new->length + new->period <=
		        seeds[i].first + seeds[i].length + seeds[i].period)
			return true;
	return false;
}

static void seed_add(Seed *seeds, int *n, Seed new)
{
	if (seed_is_known(seeds, *n, &new))
		return;
	int at = *n;
	while (at && seeds[at - 1].length < new.length)
		at--;
	if (at == MAX_SEEDS)
		return;
	*n += *n < MAX_SEEDS;
	memmove(&seeds[at + 1], &seeds[at], (size_t)(*n - at - 1) * sizeof *seeds);
	seeds[at] = new;
}

static int seeds_find(const Steps *s, int from, int to, Seed *seeds)
{
	int n = 0;
	for (int period = MIN_PERIOD; period <= MAX_PERIOD && from + period < to; period++) {
		int length = 0;
		for (int i = from; i + period <= to; i++) {
			if (i + period < to && s->kinds[i] >= 0 && s->kinds[i] == s->kinds[i + period]) {
				length++;
				continue;
			}
			if (2 * length >= period)
				seed_add(seeds, &n, (Seed){i - length, length, period});
			length = 0;
		}
	}
	return n;
}

// Of two that are worth as much: the one that begins first, so that a small change of the model
// leaves the rounds where they are.
static bool repeat_is_before(const Repeat *a, const Repeat *b)
{
	if (a->first != b->first)
		return a->first < b->first;
	return round_begin(a, a->rounds - 1) < round_begin(b, b->rounds - 1);
}

Repeat repeat_find(const Steps *s, int from, int to)
{
	Seed seeds[MAX_SEEDS];
	Repeat best = {0};
	int most = 0;
	const int n = seeds_find(s, from, to, seeds);
	int *room = n ? NEW_ARRAY(s->cg->arena, (MAX_STEPS + 1) * (2 * MAX_GAPS + 2), int) : NULL;
	for (int i = 0; i < n; i++) {
		const Seed *seed = &seeds[i];
		const int starts = seed->period < seed->length ? seed->period : seed->length;
		for (int shift = 0; shift <= starts; shift += 1 + starts / MAX_STARTS) {
			if (seed->first + shift + seed->period > to)
				break;
			const Repeat r = rounds_around(s, room, from, to, seed->first + shift, seed->period);
			const int have = r.rounds > 1 ? saved(&r) : -1;
			if (have < MIN_SAVED)
				continue;
			const int value = worth(s, &r, have);
			if (!best.rounds || value > most || (value == most && repeat_is_before(&r, &best))) {
				best = r;
				most = value;
			}
		}
	}
	steps_settle(s, &best);
	return best;
}
