// Dropouts in a training step. A program of inference holds them as they are there; each becomes
// one that drops other elements in each step, and in each round of a loop, by a count: what it
// drops hangs on its place in the program, the state `train.seed`, `train.step` and the rounds of
// the loops around it, so that C, CUDA and the interpreter drop the same. Called by train_forms.c.
#include "ir/base/vec.h"
#include "ir/build/infer.h"
#include "lower/grad/train_step.h"

#include <string.h>

static bool drops(const Op *op)
{
	for (int i = 0; i < op->info->ndrop; i++) {
		const Attr *p = op_attr_or_default(op, op->info->drops[i]);
		if (p && p->kind == ATTR_FLOAT && p->f > 0)
			return true;
	}
	return false;
}

static const char *name_of(const Op *op)
{
	return op->nresult && op->results[0].name ? op->results[0].name : "";
}

// ---- what decides which elements are dropped ----------------------------------------------------

typedef struct LoopKey {
	const Op *loop;
	Value *keys[2]; // in its condition, in its body; NULL: not needed so far
} LoopKey;

typedef struct Drops {
	Train *t;
	int n, room; // all that drop, outer ones first
	Op **list;
	Value *key; // outside of loops
	int nloop, loop_room;
	LoopKey *loops;
} Drops;

static Value *draw(Builder *b, Value *seed, Value *count)
{
	return seed && count ? build2(b, OP_PD_DRAW, seed, count, NULL) : NULL;
}

static Value *outer_key(Drops *d)
{
	Train *t = d->t;
	if (d->key)
		return d->key;
	Value *step = train_steps(t);
	Value *seed = step ? train_number(t, "train.seed", DT_I64, (double)t->recipe->seed) : NULL;
	if (!seed)
		return NULL;
	train_store(t, seed->name, seed);
	// New state stands in front of everything, what is newest first.
	Builder b = builder_before(step->def->next);
	b.loc = train_builder(t, "dropout", seed->name).loc;
	return d->key = draw(&b, seed, step);
}

// The same loop with a variable behind the others that counts its rounds.
static Op *count_rounds(Op *loop)
{
	Context *c = loop->ctx;
	const int n = loop->nresult;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	Builder b = builder_before(loop);
	for (int i = 0; i < n; i++) {
		types[i] = loop->results[i].type;
		inits[i] = op_operand(loop, i);
	}
	const Dim *one = dim_const(c, 1);
	types[n] = type_tensor(c, DT_I64, 1, &one, 0);
	inits[n] = build_full(&b, types[n], 0);
	Op *counted = op_new(c, OP_PD_WHILE, loop->loc, n + 1, types, n + 1, inits, 2, 0);
	op_take_regions(counted, loop, 2);
	op_insert_before(loop, counted);
	for (int r = 0; r < 2; r++) {
		Block *block = counted->regions[r].first;
		Builder end = builder_before(block->last);
		Value *round = block_add_arg(c, block, types[n]);
		op_add_operand(block->last,
		               r ? tensor_add(&end, round, build_full(&end, types[n], 1)) : round);
	}
	for (int i = 0; i < n; i++)
		value_take(op_result(loop, i), op_result(counted, i));
	op_erase(loop);
	return counted;
}

static LoopKey *loop_key(Drops *d, Op *loop)
{
	for (int i = 0; i < d->nloop; i++)
		if (d->loops[i].loop == loop)
			return &d->loops[i];
	VEC_ROOM(d->t->c->arena, d->loops, d->nloop, d->loop_room);
	d->loops[d->nloop] = (LoopKey){.loop = count_rounds(loop)};
	return &d->loops[d->nloop++];
}

// The key for operations of the block that `op` stands in. NULL after a diagnostic.
static Value *key_at(Drops *d, const Op *op)
{
	Op *around = op_parent(op);
	if (around == d->t->module)
		return outer_key(d);
	if (op_is_branch(around))
		return key_at(d, around);
	if (around->code != OP_PD_WHILE || (around->nregion > 2 && around->regions[2].first)) {
		train_fail_at(op,
		              "dropout '%s' stands where --train cannot give it a seed; "
		              "`dropout: off` leaves it as it is at inference",
		              name_of(op));
		return NULL;
	}
	Value *outer = key_at(d, around);
	LoopKey *k = outer ? loop_key(d, around) : NULL;
	Block *block = op->block;
	const int in = k && block == k->loop->regions[1].first;
	if (!k)
		return NULL;
	if (!k->keys[in]) {
		Builder b = builder_before(block->first);
		k->keys[in] = draw(&b, outer, block->args[block->narg - 1]);
	}
	return k->keys[in];
}

// ---- forms --------------------------------------------------------------------------------------

// The operation in its form for training, in the place of a dropout of inference.
static bool to_training(Train *t, Op *op, Value *key, int place)
{
	Builder b = builder_before(op);
	Value *const operands[] = {op_operand(op, 0), key};
	const NamedAttr attrs[] = {{"p", attr_float(t->c, op_float(op, "p", 0.5))},
	                           {"mode", attr_str(t->c, op_attr_or_default(op, "mode")->s)},
	                           {"place", attr_int(t->c, place)}};
	Op *training = build_op(&b, OP_PD_DROPOUT_TRAINING, 2, operands, COUNT_OF(attrs), attrs);
	Value *out = training ? op_result(training, 0) : NULL;
	if (out && op->code == OP_PD_FUSED_DROPOUT_ADD)
		out = tensor_add(&b, out, op_operand(op, 1));
	if (!out)
		return false;
	value_take(op_result(op, 0), out);
	op_erase(op);
	return true;
}

static bool dropout_train(Drops *d, Op *op, int place)
{
	Train *t = d->t;
	const bool known = op->code == OP_PD_DROPOUT || op->code == OP_PD_FUSED_DROPOUT_ADD;
	if (op->code == OP_PD_DROPOUT && op_operand(op, 1))
		return train_fail_at(
			op, "the probability of dropout '%s' is computed: --train wants a number", name_of(op));
	if (!known && op->code != OP_PD_DROPOUT_TRAINING)
		return train_fail_at(op,
		                     "%s '%s' has no form for training; `dropout: off` leaves it as it is "
		                     "at inference",
		                     op->info->short_name, name_of(op));
	Value *key = key_at(d, op);
	if (!key)
		return false;
	if (known)
		return to_training(t, op, key, place);
	if (op->noperand < 2)
		op_add_operand(op, key);
	else
		op_set_operand(op, 1, key);
	op_set_attr(op, "place", attr_int(t->c, place));
	return true;
}

static bool dropout_check(const Train *t, const Op *op)
{
	if (op->code == OP_PD_DROPOUT_TRAINING)
		return train_fail_at(op,
		                     "dropout '%s' is not in its form of inference; `dropout: train` in %s "
		                     "has it drop other elements in each step",
		                     name_of(op), t->recipe->path);
	if (t->recipe->dropout == DROPOUT_UNSAID)
		return train_fail_at(op,
		                     "%s '%s' would drop elements in training: `dropout: train` in %s has "
		                     "it do so, `dropout: off` leaves it as it is at inference",
		                     op->info->short_name, name_of(op), t->recipe->path);
	return true;
}

static bool collect(Op *op, void *arg)
{
	Drops *d = arg;
	if (drops(op)) {
		VEC_ROOM(d->t->c->arena, d->list, d->n, d->room);
		d->list[d->n++] = op;
	}
	return true;
}

bool train_dropouts(Train *t)
{
	Drops d = {.t = t};
	bool ok = true;
	op_walk(t->module, collect, &d);
	for (int i = 0; i < d.n; i++)
		ok &= t->recipe->dropout == DROPOUT_TRAIN ? dropout_train(&d, d.list[i], i + 1)
		                                          : dropout_check(t, d.list[i]);
	return ok;
}
