// Finds layers that are equal but for their weights: calls of the same functions in the same order,
// with the same arguments, but for where weights and buffers lie. A layer may have a step more or
// less than the others: one inserted operator does not take a layer out of the loop.
//
// Each call gets a number, its kind, so that calls which may be one are those of one kind; then
// rounds are found among numbers. A layer is taken as a pattern, and rounds grow around it
// (repeat_lay.c). Called by repeat.c.
#include "codegen/c/repeat.h"
#include "codegen/nest/nest.h"
#include "ir/base/vec.h"

#include <string.h>

enum {
	MIN_PERIOD = 4, // fewer read as well one after the other
	MIN_SAVED = 8,  // calls that the loop saves
	READ_COST = 4,  // calls that a tensor counts as which each round takes from before it
	MAX_SEEDS = 6,  // patterns that are looked at closely
	MAX_STARTS = 64 // places where such a round may begin
};

// ---- which calls are equal ----------------------------------------------------------------------

// Whether a table may say where a tensor lies.
static bool place_is_listed(const Codegen *cg, const Place *p)
{
	if (p->kind == PLACE_PARAM)
		return cg->inline_weights || !p->offset || dim_is_const(p->offset);
	return p->kind == PLACE_WORKSPACE && p->offset && !p->slot && !variable_local(cg, p);
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
	if (a->kind != b->kind || (a->kind == PLACE_PARAM && cg->inline_weights) || a->slot ||
	    b->slot || variable_local(cg, a) || variable_local(cg, b))
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
	int *room = n ? rounds_room(s->cg->arena) : NULL;
	for (int i = 0; i < n; i++) {
		const Seed *seed = &seeds[i];
		const int starts = seed->period < seed->length ? seed->period : seed->length;
		for (int shift = 0; shift <= starts; shift += 1 + starts / MAX_STARTS) {
			if (seed->first + shift + seed->period > to)
				break;
			const Repeat r = rounds_around(s, room, from, to, seed->first + shift, seed->period);
			const int have = r.rounds > 1 ? repeat_saves(&r) : -1;
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
