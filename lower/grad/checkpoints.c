// Checkpoints for --stack-budget: see grad.h. How many of them a loop may keep follows from how
// often its rounds may run again (ir/gradient/gradient_revolve.c), the same for all loops: as often
// as it takes.
#include "ir/build/build.h"
#include "lower/analysis/analysis.h"
#include "lower/grad/grad.h"

enum { MOST_REPEATS = 64, FEW_ROUNDS = 4, PARTS = 16, MOST_NOTES = 8 };

static bool fail(const Op *module, const char *text, int64_t a, int64_t b)
{
	const Loc loc = {.file = module->ctx->file, .block = -1, .op = -1};
	diag_error(module->ctx->diag, &loc, text, (long long)a, (long long)b);
	return false;
}

// The most rounds of a loop; 0: not known.
static int64_t rounds_of(const Op *loop)
{
	const Dim *exact, *most;
	return while_trip_count(loop->ctx, loop, &exact, &most) && dim_is_const(most) ? most->value : 0;
}

// The fewest checkpoints s with which so many rounds can be reversed when each runs again at most
// `repeats` times: binomial(s + repeats, s) of them.
static int64_t slots_for(int64_t rounds, int repeats)
{
	for (int64_t s = 1;; s++) {
		int64_t reach = 1;
		for (int r = 1; r <= repeats && reach < rounds; r++)
			reach = reach * (s + r) / r;
		if (reach >= rounds)
			return s;
	}
}

// Checkpoints of all loops: as few as `repeats` ask for, and `part` of PARTS of the way to the
// number that one repetition less would take. Without repeats loops have stacks.
typedef struct Slots {
	int repeats, part;
} Slots;

static bool slots_visit(Op *op, void *slots)
{
	const Slots *s = slots;
	const int64_t rounds = op->code == OP_PD_WHILE && op->nregion <= 2 ? rounds_of(op) : 0;
	if (rounds < FEW_ROUNDS)
		return true;
	const int64_t few = slots_for(rounds, s->repeats),
				  many = s->repeats > 1 ? slots_for(rounds, s->repeats - 1) : few;
	const int64_t said[] = {few + (many - few) * s->part / PARTS, rounds};
	op_set_attr(op, "checkpoints", attr_ints(op->ctx, 2, said));
	return true;
}

// Says on loops how many checkpoints they may keep.
static void give_slots(Op *module, Slots s)
{
	if (s.repeats)
		op_walk(module, slots_visit, &s);
}

// ---- what is kept -------------------------------------------------------------------------------

// Says on each loop of a copy how many rounds it takes, before there are stacks.
static bool rounds_visit(Op *op, void *arg)
{
	(void)arg;
	if (op->code == OP_PD_WHILE)
		op_set_attr(op, "most_rounds", attr_int(op->ctx, rounds_of(op)));
	return true;
}

typedef struct Kept {
	const Op *module;
	bool revolves; // loops were to have checkpoints,
	int nwhole;    // which these have not: places for notes, no more than there is room for
	const Op *whole[MOST_NOTES];
	int64_t bytes;
	bool ok;
} Kept;

// What a loop keeps has sizes that are not known: those of inputs, or one that a run finds.
static bool fail_at_size(const Kept *k, const Op *loop, const Type *t)
{
	Context *c = k->module->ctx;
	for (int i = 0; i < t->rank; i++)
		if (dim_is_found(dim_at_most(c, t->dims[i]))) {
			diag_error(c->diag, loop->loc,
			           "--stack-budget: nothing bounds a size of what loops keep here, %s",
			           dim_text(c, t->dims[i]));
			return false;
		}
	return fail(k->module,
	            "--stack-budget: what a loop keeps has a size that is not known; --shape "
	            "pins those of inputs",
	            0, 0);
}

// Sizes that a run finds count with their bound, as in the workspace.
static void kept_add(Kept *k, const Op *loop, const Type *t, int64_t rounds)
{
	const Dim *size = type_bytes_at_most(k->module->ctx, t);
	int64_t bytes;
	if (!dim_is_const(size))
		k->ok = fail_at_size(k, loop, t);
	else if (__builtin_mul_overflow(size->value, rounds, &bytes) ||
	         __builtin_add_overflow(k->bytes, bytes, &k->bytes))
		k->bytes = INT64_MAX;
}

// What a value of an array's type is made of: an array before a write, a branch or a loop; of an
// argument of a loop, what that begins with, *rounds times as often then. Sets *notes where the
// loop has it for a gradient.
static const Value *array_before(const Value *v, int64_t *rounds, bool *notes)
{
	const Op *op = v->def ? v->def : value_op(v);
	if (op->code == OP_PD_WHILE) {
		*notes |= (int64_t)v->index >= op->nresult - op_int(op, "kept", 0);
		if (!v->def && __builtin_mul_overflow(*rounds, op_int(op, "most_rounds", 0), rounds))
			*rounds = INT64_MAX;
		return op_operand(op, (int)v->index);
	}
	if (op_is_branch(op))
		return op_operand(op->regions[0].first->last, (int)v->index);
	return op->code == OP_PD_ARRAY_WRITE ? op_operand(op, 0) : NULL;
}

// Whether another side of the branch around it writes in its place.
static bool is_other_side(const Op *write)
{
	const Op *branch = op_parent(write);
	if (!branch || !op_is_branch(branch) || branch->regions[0].first == write->block)
		return false;
	const Value *given = op_operand(branch->regions[0].first->last, 0);
	const Op *first = given ? given->def : NULL;
	return first && first->code == OP_PD_ARRAY_WRITE &&
	       op_operand(first, 0) == op_operand(write, 0) &&
	       op_operand(first, 1) == op_operand(write, 1);
}

// An element of an array that is there for a gradient.
static bool element_visit(Kept *k, const Op *write)
{
	const Value *array = op_operand(write, 0);
	int64_t rounds = 1;
	bool notes = false;
	for (const Value *before = array; before; before = array_before(array, &rounds, &notes))
		array = before;
	if (!notes || is_other_side(write))
		return true;
	if (!rounds)
		k->ok = fail(k->module, "--stack-budget: a loop takes an unknown number of rounds", 0, 0);
	else
		kept_add(k, write, op_operand(write, 2)->type, rounds);
	return k->ok;
}

// What a loop keeps: notes for each checkpoint, or a stack with all of each round.
static bool loop_visit(Kept *k, Op *op)
{
	const Attr *said = op_attr(op, "checkpoints");
	for (int i = 0; said && said->n > 2 && i < said->ints[2] && k->ok; i++)
		kept_add(k, op, op->results[op->nresult - 1 - i].type, 1);
	const Type *stack = op->results[op->nresult - 1].type;
	if (stack->kind != TY_STACK)
		return k->ok;
	const int64_t rounds = op_int(op, "most_rounds", 0);
	if (!rounds)
		k->ok = fail(k->module, "--stack-budget: a loop takes an unknown number of rounds", 0, 0);
	for (int i = 0; i < stack->nelem && k->ok; i++)
		kept_add(k, op, stack->elems[i], rounds);
	if (k->revolves && !said && rounds >= FEW_ROUNDS && k->nwhole < MOST_NOTES)
		k->whole[k->nwhole++] = op;
	return k->ok;
}

static bool kept_visit(Op *op, void *arg)
{
	if (op->code == OP_PD_ARRAY_WRITE)
		return element_visit(arg, op);
	return op->code != OP_PD_WHILE || !op->nresult || loop_visit(arg, op);
}

typedef struct Search {
	Op *module;
	DeriveFn *derive;
	DeriveHow *how;
	const void *arg;
} Search;

// What loops keep in a copy of the module, derived; nothing of that is left.
static Kept bytes_kept(const Search *s, Slots slots)
{
	Context *c = s->module->ctx;
	struct ParamTable *own = c->params;
	Op *trial = op_clone(c, s->module, value_map_new(c->arena));
	Kept k = {.module = s->module, .revolves = slots.repeats > 0, .ok = true};
	op_walk(trial, rounds_visit, NULL);
	give_slots(trial, slots);
	c->params = params_copy(c);
	k.ok = s->derive(trial, s->how, s->arg);
	c->params = own;
	if (k.ok)
		op_walk(trial, kept_visit, &k);
	return k;
}

// Gives loops as many checkpoints as there is room for, beyond those that the repeats ask for.
static bool use_room(const Search *s, int64_t budget, Slots slots)
{
	for (int more = slots.repeats ? PARTS / 2 : 0; more; more /= 2) {
		const Kept k = bytes_kept(s, (Slots){slots.repeats, slots.part + more});
		if (!k.ok)
			return false;
		if (k.bytes <= budget)
			slots.part += more;
	}
	give_slots(s->module, slots);
	return true;
}

// Whether the budget suffices without rounds that run again.
static bool fits_at_once(const Search *s, int64_t budget, Kept *k)
{
	*k = bytes_kept(s, (Slots){0});
	// What is not kept costs less to compute again within a round than from rounds before it.
	if (k->ok && k->bytes > budget && s->how->remat == REMAT_AUTO) {
		s->how->remat = REMAT_ALWAYS;
		*k = bytes_kept(s, (Slots){0});
	}
	return k->ok && k->bytes <= budget;
}

static bool reads_array(Op *op, void *yes)
{
	for (int i = 0; i < op->noperand; i++)
		*(bool *)yes |= op_operand(op, i) && op_operand(op, i)->type->kind == TY_ARRAY;
	return true;
}

// The budget is too small; and which loops keep all rounds, whatever it is, and why.
static bool fail_at_least(const Kept *k, int64_t bytes, int64_t budget)
{
	fail(k->module, "--stack-budget: loops keep %lld bytes at least, which is more than %lld",
	     bytes, budget);
	for (int i = 0; i < k->nwhole; i++) {
		bool arrays = false;
		op_walk((Op *)(uintptr_t)k->whole[i], reads_array, &arrays);
		diag_note(k->module->ctx->diag, k->whole[i]->loc, "this loop has no checkpoints: %s",
		          arrays ? "its rounds read tensor arrays"
		                 : "its rounds need a size that no variable of a bounded size has");
	}
	return false;
}

bool checkpoint_loops(Op *module, int64_t budget, DeriveFn *derive, DeriveHow *how, const void *arg)
{
	const Search s = {module, derive, how, arg};
	Kept k;
	if (fits_at_once(&s, budget, &k))
		return use_room(&s, budget, (Slots){0});
	if (!k.ok)
		return false;
	const int64_t stacks = k.bytes;
	k = bytes_kept(&s, (Slots){MOST_REPEATS, 0});
	if (!k.ok)
		return false;
	if (k.bytes > budget)
		return fail_at_least(&k, k.bytes < stacks ? k.bytes : stacks, budget);
	// The more often rounds run again, the less is kept: the fewest repeats that the budget takes.
	int few = 0, enough = MOST_REPEATS;
	while (enough - few > 1) {
		const int repeats = (few + enough) / 2;
		k = bytes_kept(&s, (Slots){repeats, 0});
		if (!k.ok)
			return false;
		*(k.bytes <= budget ? &enough : &few) = repeats;
	}
	return use_room(&s, budget, (Slots){enough, 0});
}
