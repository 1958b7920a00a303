// Next values of parameters as early as may be: what is stored goes up to where all that it is
// computed from is there and nobody reads the old value any more. A gradient is then kept until the
// parameter has learned from it, not until the end of the step, and is read while it is near. Run
// when `state` has put what is stored at the end of the last block, and in front of the plan.
#include "ir/base/map.h"
#include "lower/memory/memory.h"
#include "lower/pass/rewrite.h"

typedef struct Step Step;

typedef struct StepList {
	Step *step;
	struct StepList *next;
} StepList;

// An operation of the block, in its scratch.
struct Step {
	Op *op;
	bool moves;   // a tensor that it gives is stored: goes up
	bool follows; // gives single numbers that only what is stored needs: goes with what goes up
	bool placed;
	int waits;           // for so many steps, where it moves
	const Step *seen_by; // the last one whose reasons to wait were asked of this one
	StepList *waiting;   // those that wait for it
	Step *next;          // in a queue
};

typedef struct Updates {
	Arena *arena;
	Block *block;
	PointerMap readers; // name of a parameter -> StepList *, the steps that read it
	Op *at;             // behind which the next one goes
	Step *last;         // of the queue of those that are placed
} Updates;

static void list_add(const Updates *u, StepList **list, Step *s)
{
	StepList *l = NEW(u->arena, StepList);
	*l = (StepList){s, *list};
	*list = l;
}

// The step of the block that op is, or is in; NULL: it is elsewhere.
static Step *step_of(const Updates *u, const Op *op)
{
	while (op && op->block != u->block)
		op = op_parent(op);
	return op ? op->scratch : NULL;
}

// ---- what goes where ----------------------------------------------------------------------------

static bool is_stored(const Value *v)
{
	for (const Use *use = v->uses; use; use = use->next)
		if (use->user->code == OP_BUILTIN_SET_PARAMETER)
			return true;
	return false;
}

static bool only_stores_need(const Updates *u, const Value *v)
{
	for (const Use *use = v->uses; use; use = use->next) {
		const Step *by = step_of(u, use->user);
		if (!by || !(by->moves || by->follows || by->op->code == OP_BUILTIN_SET_PARAMETER))
			return false;
	}
	return true;
}

static void step_judge(const Updates *u, Step *s)
{
	const Op *op = s->op;
	int64_t n;
	bool stored = false, single = true, needed = false;
	if (!(op->info->traits & TRAIT_PURE) || (op->info->traits & TRAIT_CONSTANT))
		return;
	for (int i = 0; i < op->nresult; i++) {
		const Value *v = &op->results[i];
		const bool one = type_const_numel(v->type, &n) && n == 1;
		stored |= !one && is_stored(v);
		single &= one;
		needed |= !only_stores_need(u, v);
	}
	s->moves = stored && !needed;
	s->follows = single && !needed;
}

static void steps_find(const Updates *u)
{
	for (Op *op = u->block->first; op; op = op->next) {
		Step *s = NEW(u->arena, Step);
		*s = (Step){.op = op};
		op->scratch = s;
	}
	for (Op *op = u->block->last; op; op = op->prev)
		step_judge(u, op->scratch);
}

// Who reads a parameter, itself or through views of it.
static void readers_note(Updates *u, const Attr *name, const Value *v)
{
	for (const Use *use = v->uses; use; use = use->next) {
		Step *by = step_of(u, use->user);
		if (by) {
			StepList *all = (StepList *)pointer_map_get(&u->readers, name);
			list_add(u, &all, by);
			pointer_map_set(&u->readers, name, all);
		}
		if (use->user->info->traits & TRAIT_VIEW)
			readers_note(u, name, &use->user->results[0]);
	}
}

static void readers_find(Updates *u)
{
	pointer_map_init(&u->readers, u->arena);
	for (const Block *b = u->block->region->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (op->code == OP_BUILTIN_GET_PARAMETER)
				readers_note(u, op_attr(op, "name"), &op->results[0]);
}

// ---- what waits for what ------------------------------------------------------------------------

typedef struct Reads {
	const Updates *updates;
	Step *step; // waits
	Step *of;   // for this one's reasons
} Reads;

static void step_wait(const Updates *u, Step *s, Step *on)
{
	list_add(u, &on->waiting, s);
	s->waits++;
}

static void step_waits(const Updates *u, Step *s, Step *of);

// s reads what `on` gives: waits for it, or for what that waits for, with which it comes along.
static void step_wait_read(const Updates *u, Step *s, Step *on)
{
	if (!on->follows)
		step_wait(u, s, on);
	else if (on->seen_by != s)
		step_waits(u, s, on);
}

static bool reads_wait(Op *op, void *arg)
{
	const Reads *r = arg;
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		Step *on = v && v->def ? step_of(r->updates, v->def) : NULL;
		if (on && on != r->of)
			step_wait_read(r->updates, r->step, on);
	}
	return true;
}

// s waits for what `of` reads, itself or what comes with it, and for all others that read what that
// overwrites.
static void step_waits(const Updates *u, Step *s, Step *of)
{
	Reads reads = {u, s, of};
	of->seen_by = s;
	reads_wait(of->op, &reads);
	op_walk(of->op, reads_wait, &reads);
	for (int i = 0; i < of->op->nresult; i++)
		for (const Use *use = of->op->results[i].uses; use; use = use->next) {
			if (use->user->code != OP_BUILTIN_SET_PARAMETER)
				continue;
			const StepList *r = pointer_map_get(&u->readers, op_attr(use->user, "name"));
			for (; r; r = r->next)
				if (r->step != of && r->step != s)
					step_wait(u, s, r->step);
		}
}

// ---- moving -------------------------------------------------------------------------------------

static void step_place(Updates *u, Step *s);

static bool reads_place(Op *op, void *arg)
{
	Updates *u = arg;
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		Step *s = v && v->def ? step_of(u, v->def) : NULL;
		if (s && s->follows && !s->placed)
			step_place(u, s);
	}
	return true;
}

// Here, behind what comes with it; into the queue.
static void step_place(Updates *u, Step *s)
{
	s->placed = true;
	reads_place(s->op, u);
	op_walk(s->op, reads_place, u);
	op_detach(s->op);
	op_insert_after(u->at, s->op);
	u->at = s->op;
	s->next = NULL;
	u->last = u->last->next = s;
}

// Those that waited for `done` and for nothing else any more follow; those that waited for these,
// too.
static void step_done(Updates *u, Step *done)
{
	done->placed = true;
	done->next = NULL;
	u->last = done;
	u->at = done->op;
	for (const Step *s = done; s; s = s->next)
		for (const StepList *w = s->waiting; w; w = w->next)
			if (--w->step->waits == 0 && !w->step->placed)
				step_place(u, w->step);
}

// Needs: blocks, stores at the end of the last one (state). Keeps: what is computed, and the order
// of all that is not only there for what is stored. Breaks: nothing.
bool pass_updates(PassContext *p)
{
	if (p->target && p->target->graph) // its steps run when they can, in whichever order they stand
		return true;
	Arena *arena = arena_scratch(p->ctx->arena);
	Updates u = {.arena = arena, .block = p->module->regions[0].last};
	steps_find(&u);
	readers_find(&u);
	for (Op *op = u.block->first; op; op = op->next) {
		Step *s = op->scratch;
		if (s->moves)
			step_waits(&u, s, s);
	}
	for (Op *op = u.block->first, *next; op; op = next) {
		next = op->next;
		if (!((Step *)op->scratch)->placed)
			step_done(&u, op->scratch);
	}
	arena_free(arena);
	return true;
}
