// Loops in loops for --stack-budget: see grad.h. A loop of T rounds becomes one of K rounds around
// one of T / K; the gradient of the outer one keeps what its rounds began with, and goes through
// the inner one again, round by round, with a stack of its own.
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/build/nest.h"
#include "lower/analysis/analysis.h"
#include "lower/grad/grad.h"

enum { MAX_LEVELS = 8, FEW_ROUNDS = 4 };

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

// ---- a loop in a loop ---------------------------------------------------------------------------

static Value *number(Builder *b, int64_t v)
{
	return build_number(b, DT_I64, 1, v);
}

static void copy_block(Builder *b, const Block *from, ValueMap *m)
{
	for (const Op *o = from->first; o && o != from->last; o = o->next)
		op_append(b->block, op_clone(b->ctx, o, m));
}

// A region of `loop` with the arguments of `like` and a counter behind them.
static Builder open_region(Op *loop, int region, const Block *like, ValueMap *m)
{
	Builder b = builder_at_end(loop->ctx, block_new(loop->ctx, &loop->regions[region]), loop->loc);
	for (int i = 0; i < like->narg; i++) {
		Value *arg = block_add_arg(loop->ctx, b.block, like->args[i]->type);
		value_map_set(m, like->args[i], arg);
		value_name_like(like->args[i], arg);
	}
	const Dim *one = dim_const(loop->ctx, 1);
	block_add_arg(loop->ctx, b.block, type_tensor(loop->ctx, DT_I64, 1, &one, 0));
	return b;
}

static void close_region(Builder *b, enum OpCode code, int n, Value *const *values)
{
	op_append(b->block, op_new(b->ctx, code, b->loc, 0, NULL, n, values, 0, 0));
}

// Goes on as `loop` does, for at most `rounds` rounds.
static bool copy_condition(Op *with, const Op *loop, int64_t rounds)
{
	const Block *from = loop->regions[0].first;
	ValueMap *m = value_map_new(loop->ctx->arena);
	Builder b = open_region(with, 0, from, m);
	const int n = from->narg;
	Value **out = NEW_ARRAY(loop->ctx->arena, (size_t)n + 2, Value *);
	copy_block(&b, from, m);
	for (int i = 0; i <= n; i++)
		out[i] = value_map_get(m, op_operand(from->last, i));
	out[n + 1] = b.block->args[n];
	Value *some = build2(&b, OP_PD_LESS_THAN, out[n + 1], number(&b, rounds), NULL);
	some = some ? tensor_reshape(&b, some, out[0]->type->rank, out[0]->type->dims) : NULL;
	out[0] = some ? build2(&b, OP_PD_LOGICAL_AND, out[0], some, NULL) : NULL;
	if (!out[0])
		return false;
	close_region(&b, OP_CF_COND_YIELD, n + 2, out);
	return true;
}

// A loop like `loop`, and a counter, in front of which the builder stands; its body is missing.
static Op *open_loop(Builder *b, const Op *loop, Value *const *inits, int64_t rounds)
{
	const int n = loop->nresult;
	const Type **types = NEW_ARRAY(b->ctx->arena, (size_t)n + 1, const Type *);
	Value **operands = NEW_ARRAY(b->ctx->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		types[i] = loop->results[i].type;
		operands[i] = inits[i];
	}
	operands[n] = number(b, 0);
	types[n] = operands[n]->type;
	Op *with = op_new(b->ctx, OP_PD_WHILE, loop->loc, n + 1, types, n + 1, operands, 2, 0);
	builder_insert(b, with);
	return copy_condition(with, loop, rounds) ? with : NULL;
}

// Ends the body of a loop: the next values of its variables, and its counter.
static void close_loop(Builder *b, int n, Value **out)
{
	out[n] = tensor_add(b, b->block->args[n], number(b, 1));
	close_region(b, OP_CF_YIELD, n + 1, out);
}

// Puts `outer` rounds of `inner` rounds in the place of the loop; gives the inner one.
static Op *loop_split(Op *loop, int64_t outer, int64_t inner)
{
	Context *c = loop->ctx;
	const int n = loop->nresult;
	const Block *body = loop->regions[1].first;
	Value **values = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	Builder b = builder_before(loop);
	for (int i = 0; i < n; i++)
		values[i] = op_operand(loop, i);
	Op *around = open_loop(&b, loop, values, outer);
	if (!around)
		return NULL;
	Builder in = open_region(around, 1, body, value_map_new(c->arena));
	Op *within = open_loop(&in, loop, in.block->args, inner);
	if (!within)
		return NULL;
	ValueMap *m = value_map_new(c->arena);
	Builder round = open_region(within, 1, body, m);
	copy_block(&round, body, m);
	for (int i = 0; i < n; i++)
		values[i] = value_map_get(m, op_operand(body->last, i));
	close_loop(&round, n, values);
	for (int i = 0; i < n; i++)
		values[i] = op_result(within, i);
	close_loop(&in, n, values);
	for (int i = 0; i < n; i++)
		value_take(op_result(loop, i), op_result(around, i));
	op_erase(loop);
	return within;
}

static int64_t divided_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

// The least k of which `levels` factors make at least n.
static int64_t root_up(int64_t n, int levels)
{
	for (int64_t k = 2;; k++) {
		int64_t left = n;
		for (int i = 0; i < levels && left > 1; i++)
			left = divided_up(left, k);
		if (left <= 1)
			return k;
	}
}

static bool loop_levels(Op *loop, int levels)
{
	for (int64_t rounds = rounds_of(loop); loop && levels > 1; levels--) {
		const int64_t outer = root_up(rounds, levels);
		rounds = divided_up(rounds, outer);
		loop = loop_split(loop, outer, rounds);
	}
	return loop != NULL;
}

static bool may_split(const Op *op)
{
	if (op->code != OP_PD_WHILE || op->nregion > 2 || rounds_of(op) < FEW_ROUNDS)
		return false;
	for (int i = 0; i < op->nresult; i++)
		if (op->results[i].type->kind != TY_TENSOR)
			return false;
	return true;
}

static bool split_all(Op *module, int levels)
{
	for (Op *op = module_block(module)->first, *next; op; op = next) {
		next = op->next;
		if (levels > 1 && may_split(op) && !loop_levels(op, levels))
			return false;
	}
	return true;
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
	int64_t bytes;
	bool ok;
} Kept;

static bool kept_visit(Op *op, void *arg)
{
	Kept *k = arg;
	const Type *stack = op->code == OP_PD_WHILE && op->nresult ? op->results[op->nresult - 1].type
	                                                           : NULL;
	if (!stack || stack->kind != TY_STACK)
		return true;
	const int64_t rounds = op_int(op, "most_rounds", 0);
	if (!rounds)
		k->ok = fail(k->module, "--stack-budget: a loop takes an unknown number of rounds", 0, 0);
	for (int i = 0; i < stack->nelem && k->ok; i++) {
		int64_t n, bytes;
		if (!type_const_numel(stack->elems[i], &n))
			k->ok = fail(k->module,
			             "--stack-budget: what a loop keeps has a size that is not known; --shape "
			             "pins those of inputs",
			             0, 0);
		else if (__builtin_mul_overflow(n * (int64_t)dtype_size(stack->elems[i]->dtype), rounds,
		                                &bytes) ||
		         __builtin_add_overflow(k->bytes, bytes, &k->bytes))
			k->bytes = INT64_MAX;
	}
	return k->ok;
}

// What loops keep in a copy of the module, made to so many levels and derived; nothing of that is
// left.
static bool bytes_kept(Kept *k, const Op *module, int levels, DeriveFn *derive,
                       const DeriveHow *how, const void *arg)
{
	Context *c = module->ctx;
	struct ParamTable *own = c->params;
	Op *trial = op_clone(c, module, value_map_new(c->arena));
	*k = (Kept){module, 0, true};
	if (!split_all(trial, levels))
		return false;
	op_walk(trial, rounds_visit, NULL);
	c->params = params_copy(c);
	k->ok = derive(trial, how, arg);
	c->params = own;
	if (k->ok)
		op_walk(trial, kept_visit, k);
	return k->ok;
}

bool checkpoint_loops(Op *module, int64_t budget, DeriveFn *derive, DeriveHow *how, const void *arg)
{
	int64_t least = INT64_MAX;
	for (int levels = 1; levels <= MAX_LEVELS; levels++) {
		Kept k;
		if (!bytes_kept(&k, module, levels, derive, how, arg))
			return false;
		if (k.bytes <= budget)
			return split_all(module, levels);
		least = k.bytes < least ? k.bytes : least;
	}
	return fail(module, "--stack-budget: loops keep %lld bytes at least, which is more than %lld",
	            least, budget);
}
