// Gradients of pd.if and pd.while: another pd.if on the same condition, and a loop that goes
// through the rounds from the last to the first. What a region computed is computed again where its
// gradient needs it; a loop keeps only the variables with which each round began (those that the
// gradient reads), on a stack: the forward loop pushes them, the backward loop pops them. How many
// rounds there were is counted apart, so that a loop that keeps nothing works, too.
#include "ir/gradient/gradient.h"
#include "ir/base/vec.h"

#include <string.h>

// ---- values from around a region ----------------------------------------------------------------

typedef struct Captures {
	Context *c;
	int n, cap;
	Value **list;
} Captures;

static bool is_inside(const Op *op, const Value *v)
{
	for (const Op *at = v->def ? v->def : v->block->region->op; at; at = op_parent(at))
		if (at == op)
			return true;
	return false;
}

static void capture(Captures *k, Value *v)
{
	for (int i = 0; i < k->n; i++)
		if (k->list[i] == v)
			return;
	VEC_ROOM(k->c->arena, k->list, k->n, k->cap);
	k->list[k->n++] = v;
}

// Values whose gradients are wanted that code in the regions of op reads.
static void find_captures(Captures *k, const Duals *d, const Op *around, const Op *op)
{
	for (int r = 0; r < op->nregion; r++) {
		for (const Block *b = op->regions[r].first; b; b = b->next) {
			for (const Op *o = b->first; o; o = o->next) {
				for (int i = 0; i < o->noperand; i++) {
					Value *v = o->operands[i].value;
					if (v && duals_wanted(d, v) && !is_inside(around, v))
						capture(k, v);
				}
				find_captures(k, d, around, o);
			}
		}
	}
}

static bool is_kept(const Type *t)
{
	return t->kind == TY_TENSOR || t->kind == TY_ARRAY;
}

static bool all_kept(const Op *op, const Captures *k)
{
	for (int i = 0; i < k->n; i++)
		if (!is_kept(k->list[i]->type))
			return op_error(op, "the gradient of a list from around it is not supported");
	return true;
}

// Copies of a block's operations, without the terminator, at the end of b's block.
static void copy_block(Builder *b, const Block *from, ValueMap *m)
{
	for (const Op *o = from->first; o && o != from->last; o = o->next)
		op_append(b->block, op_clone(b->ctx, o, m));
}

static void end_region(Builder *b, enum OpCode code, int n, Value *const *values)
{
	op_append(b->block, op_new(b->ctx, code, b->loc, 0, NULL, n, values, 0, 0));
}

static Value *dual_or_zero(Builder *b, Duals *d, Value *v)
{
	Value *dv = duals_get(b, d, v);
	return dv ? dv : gradient_zeros_for(b, v);
}

// A gradient from around a region that is handed in, added to there, and comes back whole; NULL:
// nothing has come in for it yet.
static Value *dual_taken(const GradientJob *g, Value *v)
{
	Value *dv = duals_get(g->b, g->duals, v);
	if (dv)
		duals_clear(g->duals, v);
	return dv;
}

// ---- pd.if --------------------------------------------------------------------------------------

// dv where a value of this type was given: sides may give other sizes than the result says.
static Value *sized_like(Builder *b, Value *dv, const Type *t)
{
	return t->kind == TY_TENSOR && dv->type != t ? tensor_reshape(b, dv, t->rank, t->dims) : dv;
}

// One side: the region again, and what it gives to each of the captured values.
static bool if_side(GradientJob *g, const Region *from, Region *to, const Captures *k,
                    Value *const *taken, Value *const *dv)
{
	Context *c = g->b->ctx;
	Builder b = builder_at_end(c, block_new(c, to), g->op->loc);
	Duals *d = duals_like(g->duals);
	ValueMap *m = value_map_new(c->arena);
	Value **out = NEW_ARRAY(c->arena, (size_t)k->n + 1, Value *);
	const Block *body = from->first;
	for (int i = 0; i < k->n; i++) {
		duals_want(d, k->list[i]);
		if (!duals_add(&b, d, k->list[i], taken[i]))
			return false;
	}
	if (body && body->last) {
		copy_block(&b, body, m);
		Op *first = b.block->first, *last = b.block->last;
		for (int i = 0; i < body->last->noperand && i < g->op->nresult; i++) {
			Value *given = value_map_get(m, op_operand(body->last, i));
			if (dv[i] && !duals_add(&b, d, given, sized_like(&b, dv[i], given->type)))
				return false;
		}
		if (first && !gradient_ops(&b, d, first, last))
			return false;
	}
	for (int i = 0; i < k->n; i++)
		out[i] = dual_or_zero(&b, d, k->list[i]);
	end_region(&b, OP_CF_YIELD, k->n, out);
	return true;
}

static bool gradient_if(GradientJob *g)
{
	Context *c = g->b->ctx;
	Op *op = g->op;
	Captures k = {.c = c};
	if (op->nregion > 2 && op->regions[2].first)
		return op_error(op, "the gradient of a branch that pushes is not supported");
	find_captures(&k, g->duals, op, op);
	if (!all_kept(op, &k) || !k.n)
		return k.n == 0;
	Value **dv = NEW_ARRAY(c->arena, (size_t)op->nresult + 1, Value *), *cond = op_operand(op, 0);
	Value **taken = NEW_ARRAY(c->arena, (size_t)k.n + 1, Value *);
	const Type **types = NEW_ARRAY(c->arena, (size_t)k.n + 1, const Type *);
	for (int i = 0; i < op->nresult; i++)
		dv[i] = gradient_comes(g, i) ? gradient_of(g, i) : NULL;
	for (int i = 0; i < k.n; i++) {
		types[i] = k.list[i]->type;
		taken[i] = types[i]->kind == TY_ARRAY ? dual_taken(g, k.list[i]) : NULL;
	}
	Op *back = op_new(c, OP_PD_IF, op->loc, k.n, types, 1, &cond, 2, 0);
	builder_insert(g->b, back);
	for (int r = 0; r < 2; r++)
		if (!if_side(g, &op->regions[r], &back->regions[r], &k, taken, dv))
			return false;
	for (int i = 0; i < k.n; i++)
		if (!duals_add(g->b, g->duals, k.list[i], op_result(back, i)))
			return false;
	return true;
}

// ---- pd.while: the forward loop counts and pushes -----------------------------------------------

typedef struct Loop {
	GradientJob *g;
	Op *op;      // the loop as it was; gone once `forward` stands for it
	int n;       // its variables
	Op *forward; // with a counter and a stack behind them
	Op *push;    // where it pushes; its operands are added once it is known which are read
	Op *pop;     // NULL: nothing is pushed
	Captures k;
	Op *back;
	int nsaved;    // stand-ins in the body of `back` for what is popped:
	Value **saved; // for the n variables, then for tensors that a round took out of arrays, which
	Value **kept;  // are kept in place of the arrays; [nsaved] in the body of `forward`
	ValueMap *map; // values of the body of `op` to those of `forward`
} Loop;

// Whether the condition hands the variables on as they are.
static bool passes_through(const Op *op)
{
	const Block *cond = op->regions[0].first;
	for (int i = 0; i < cond->narg; i++)
		if (op_operand(cond->last, i + 1) != cond->args[i])
			return false;
	return true;
}

// Whether a variable that has a gradient ends a round with another size than it began with.
static bool changes_sizes(const Op *op)
{
	const Block *body = op->regions[1].first;
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = body->args[i]->type, *next = op_operand(body->last, i)->type;
		for (int d = 0; t->kind == TY_TENSOR && type_moves(t) && d < t->rank; d++)
			if (t->dims[d] != next->dims[d])
				return true;
	}
	return false;
}

static Value *count_constant(Builder *b, int64_t v)
{
	const Dim *one = dim_const(b->ctx, 1);
	return build_full(b, type_tensor(b->ctx, DT_I64, 1, &one, 0), (double)v);
}

// The arguments of a region of the loop, then its code, then the terminator with `more` further
// values behind.
static void copy_region(Loop *l, int region, const Type *const *types, bool push)
{
	Context *c = l->op->ctx;
	const Block *from = l->op->regions[region].first;
	Builder b = builder_at_end(c, block_new(c, &l->forward->regions[region]), l->op->loc);
	ValueMap *m = value_map_new(c->arena);
	for (int i = 0; i < l->n + 2; i++) {
		Value *arg = block_add_arg(c, b.block, types[i]);
		if (i < l->n) {
			value_map_set(m, from->args[i], arg);
			value_name_like(from->args[i], arg);
		}
	}
	Value *count = b.block->args[l->n], *stack = b.block->args[l->n + 1];
	if (push) {
		l->map = m;
		l->push = op_new(c, OP_CF_PUSH_BACK, l->op->loc, 0, NULL, 1, &stack, 0, 0);
		op_append(b.block, l->push);
	}
	copy_block(&b, from, m);
	int given = from->last->noperand;
	Value **out = NEW_ARRAY(c->arena, (size_t)given + 2, Value *);
	for (int i = 0; i < given; i++)
		out[i] = value_map_get(m, op_operand(from->last, i));
	out[given] = push ? tensor_add(&b, count, count_constant(&b, 1)) : count;
	out[given + 1] = stack;
	end_region(&b, from->last->code, given + 2, out);
}

static void copy_init(Loop *l, const Type *const *types)
{
	Context *c = l->op->ctx;
	Builder b = builder_at_end(c, block_new(c, &l->forward->regions[2]), l->op->loc);
	Value **out = NEW_ARRAY(c->arena, (size_t)l->n + 2, Value *);
	for (int i = 0; i <= l->n; i++)
		out[i] = block_add_arg(c, b.block, types[i]);
	Op *create = op_new(c, OP_CF_CREATE_STACK, l->op->loc, 1, &types[l->n + 1], 0, NULL, 0, 0);
	op_append(b.block, create);
	out[l->n + 1] = op_result(create, 0);
	end_region(&b, OP_CF_YIELD, l->n + 2, out);
}

// In the place of the loop: the same with a counter and a stack.
static void count_and_push(Loop *l)
{
	Context *c = l->op->ctx;
	Builder b = builder_before(l->op);
	const Type **types = NEW_ARRAY(c->arena, (size_t)l->n + 2, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)l->n + 1, Value *);
	for (int i = 0; i < l->n; i++) {
		types[i] = l->op->results[i].type;
		inits[i] = op_operand(l->op, i);
	}
	inits[l->n] = count_constant(&b, 0);
	types[l->n] = inits[l->n]->type;
	types[l->n + 1] = type_group(c, TY_STACK, 0, NULL);
	l->forward = op_new(c, OP_PD_WHILE, l->op->loc, l->n + 2, types, l->n + 1, inits, 3, 0);
	static const char *const said[] = {"rounds", "most_rounds"};
	for (size_t i = 0; i < COUNT_OF(said); i++)
		if (op_attr(l->op, said[i]))
			op_set_attr(l->forward, said[i], op_attr(l->op, said[i]));
	op_insert_before(l->op, l->forward);
	copy_region(l, 0, types, false);
	copy_region(l, 1, types, true);
	copy_init(l, types);
	for (int i = 0; i < l->n; i++)
		value_name_like(op_result(l->op, i), op_result(l->forward, i));
}

// ---- pd.while: the backward loop ----------------------------------------------------------------

static bool has_dual(const Type *t)
{
	return is_kept(t) && dtype_is_float(t->dtype);
}

// Which variables of the loop have a gradient: those of floating type.
static int dual_vars(const Loop *l, int *vars)
{
	int n = 0;
	for (int i = 0; i < l->n; i++)
		if (has_dual(l->op->results[i].type))
			vars[n++] = i;
	return n;
}

static LoopDual how_of(const Loop *l, int var)
{
	return l->op->results[var].type->kind == TY_TENSOR ? duals_loop_how(l->g->duals, l->op, var)
	                                                   : LOOP_FLOWS;
}

// What a variable has at the beginning of a round. `came`: at its end.
static Value *dual_before(Loop *l, Builder *b, Duals *d, int var, Value *came)
{
	Value *dv = duals_get(b, d, l->saved[var]);
	switch (how_of(l, var)) {
	case LOOP_STAYS: return came;
	case LOOP_ADDS: return dv ? tensor_add(b, came, dv) : came;
	default: return dv ? dv : gradient_zeros_for(b, l->saved[var]);
	}
}

static void save(Loop *l, Block *body, const Type *t, Value *kept)
{
	l->kept[l->nsaved] = kept;
	l->saved[l->nsaved++] = block_add_arg(l->op->ctx, body, t);
}

// Whether op gives tensors and reads arrays.
static bool takes_from_array(const Op *op)
{
	bool array = false;
	for (int i = 0; i < op->nresult; i++)
		if (op->results[i].type->kind != TY_TENSOR)
			return false;
	for (int i = 0; i < op->noperand; i++)
		array |= op_operand(op, i) && op_operand(op, i)->type->kind == TY_ARRAY;
	return array && !op->nregion;
}

// What the round backwards computes again from arrays is popped: an array is not kept.
static void save_elements(Loop *l, Block *body, ValueMap *m)
{
	for (Op *o = l->op->regions[1].first->first; o; o = o->next) {
		for (int i = 0; takes_from_array(o) && i < o->nresult; i++) {
			Value *again = value_map_get(m, op_result(o, i));
			if (!value_used(again))
				continue;
			save(l, body, again->type, value_map_get(l->map, op_result(o, i)));
			value_replace(again, l->saved[l->nsaved - 1]);
		}
	}
}

static int count_results(const Block *b)
{
	int n = 0;
	for (const Op *o = b->first; o; o = o->next)
		n += o->nresult;
	return n;
}

// Whether sum i, of something from around the loop, goes through the round's gradients: of arrays,
// which are added to where they are, and where a loop in the round goes on with it.
static bool sum_passes(const Loop *l, int i)
{
	const Op *op = l->op->regions[1].first->first;
	while (op && op->code != OP_PD_WHILE)
		op = op->next;
	return op || l->k.list[i]->type->kind == TY_ARRAY;
}

// A round backwards: pops what the round began with, computes it again, and differentiates it.
static bool back_body(Loop *l, int nvar, const int *vars, const Type *const *types)
{
	Context *c = l->op->ctx;
	const Block *from = l->op->regions[1].first;
	int n = 1 + nvar + l->k.n;
	Builder b = builder_at_end(c, block_new(c, &l->back->regions[1]), l->op->loc);
	Value **out = NEW_ARRAY(c->arena, (size_t)n, Value *);
	ValueMap *m = value_map_new(c->arena);
	Duals *d = duals_like(l->g->duals);
	for (int i = 0; i < n; i++)
		block_add_arg(c, b.block, types[i]);
	int room = l->n + count_results(from);
	l->saved = NEW_ARRAY(c->arena, (size_t)room + 1, Value *);
	l->kept = NEW_ARRAY(c->arena, (size_t)room + 1, Value *);
	for (int i = 0; i < l->n; i++) {
		save(l, b.block, l->op->results[i].type, l->push->block->args[i]);
		value_map_set(m, from->args[i], l->saved[i]);
	}
	for (int i = 0; i < nvar; i++)
		duals_want(d, l->saved[vars[i]]);
	for (int i = 0; i < l->k.n; i++)
		duals_want(d, l->k.list[i]);
	copy_block(&b, from, m);
	Op *first = b.block->first, *last = b.block->last;
	for (int i = 0; i < l->k.n; i++)
		if (sum_passes(l, i) && !duals_add(&b, d, l->k.list[i], b.block->args[1 + nvar + i]))
			return false;
	for (int i = 0; i < nvar; i++)
		if (how_of(l, vars[i]) <= LOOP_STAYS &&
		    !duals_add(&b, d, value_map_get(m, op_operand(from->last, vars[i])),
		               b.block->args[1 + i]))
			return false;
	if (first && !gradient_ops(&b, d, first, last))
		return false;
	out[0] = tensor_sub(&b, b.block->args[0], count_constant(&b, 1));
	for (int i = 0; i < nvar; i++)
		out[1 + i] = dual_before(l, &b, d, vars[i], b.block->args[1 + i]);
	for (int i = 0; i < l->k.n; i++) {
		Value *sum = b.block->args[1 + nvar + i], *dv = duals_get(&b, d, l->k.list[i]);
		out[1 + nvar + i] = !dv ? sum : sum_passes(l, i) ? dv : tensor_add(&b, sum, dv);
	}
	for (int i = 0; i < n; i++)
		if (!out[i])
			return false;
	end_region(&b, OP_CF_YIELD, n, out);
	save_elements(l, b.block, m);
	return true;
}

static void back_cond(Loop *l, int n, const Type *const *types)
{
	Context *c = l->op->ctx;
	Builder b = builder_at_end(c, block_new(c, &l->back->regions[0]), l->op->loc);
	Value **out = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++)
		out[i + 1] = block_add_arg(c, b.block, types[i]);
	out[0] = build2(&b, OP_PD_GREATER_THAN, out[1], count_constant(&b, 0), NULL);
	end_region(&b, OP_CF_COND_YIELD, n + 1, out);
}

// Erases operations of a block, and of regions in it, that nobody reads, so that only what the
// gradient needs is popped.
static void drop_unread(Block *b)
{
	for (Op *op = b->last, *before; op; op = before) {
		before = op->prev;
		bool read = !op->nresult || (!(op->info->traits & TRAIT_PURE) && !op->nregion);
		for (int i = 0; i < op->nresult; i++)
			read |= value_used(op_result(op, i));
		for (int r = 0; r < op->nregion && read; r++)
			for (Block *inner = op->regions[r].first; inner; inner = inner->next)
				drop_unread(inner);
		if (!read)
			op_erase(op);
	}
}

static void push_behind(Op *push, Op *def)
{
	if (!def || op_is_before(def, push))
		return;
	Op *next = def->next;
	op_detach(push);
	op_insert_before(next, push);
}

// Pushes what the backward loop reads of the saved variables, and pops it there.
static bool push_and_pop(Loop *l)
{
	Context *c = l->op->ctx;
	Block *body = l->back->regions[1].first;
	const Type **types = NEW_ARRAY(c->arena, (size_t)l->nsaved + 1, const Type *);
	int n = 0, first = body->narg - l->nsaved;
	drop_unread(body);
	for (int i = 0; i < l->nsaved; i++) {
		if (!value_used(l->saved[i]))
			continue;
		if (l->saved[i]->type->kind != TY_TENSOR)
			return op_error(l->op, "the gradient of a loop that must keep an array of every "
			                       "round is not supported");
		types[n++] = l->saved[i]->type;
		op_add_operand(l->push, l->kept[i]);
		push_behind(l->push, l->kept[i]->def);
	}
	if (n) {
		Value *stack = op_result(l->forward, l->n + 1);
		l->pop = op_new(c, OP_CF_POP_BACK, l->op->loc, n, types, 1, &stack, 0, 0);
		op_insert_before(body->first, l->pop);
		for (int i = 0, k = 0; i < l->nsaved; i++)
			if (value_used(l->saved[i]))
				value_replace(l->saved[i], op_result(l->pop, k++));
	} else {
		op_erase(l->push);
	}
	for (int i = l->nsaved - 1; i >= 0; i--)
		block_remove_arg(body, first + i);
	return true;
}

// The stack's type is known now; one that nobody pushes on goes, with the region that makes it.
static bool settle_stack(Loop *l)
{
	Context *c = l->op->ctx;
	if (!l->pop || duals_keeps_arrays(l->g->duals))
		return (l->forward = gradient_keep_arrays(l->forward, l->pop ? l->push : NULL, l->pop));
	const Type **types = NEW_ARRAY(c->arena, (size_t)l->push->noperand, const Type *);
	for (int i = 1; i < l->push->noperand; i++)
		types[i - 1] = op_operand(l->push, i)->type;
	const Type *stack = type_group(c, TY_STACK, l->push->noperand - 1, types);
	for (int r = 0; r < 2; r++)
		l->forward->regions[r].first->args[l->n + 1]->type = stack;
	op_result(l->forward, l->n + 1)->type = stack;
	op_result(l->forward->regions[2].first->first, 0)->type = stack;
	return true;
}

static bool back_loop(Loop *l)
{
	Context *c = l->op->ctx;
	GradientJob *g = l->g;
	int *vars = NEW_ARRAY(c->arena, (size_t)l->n + 1, int), nvar = dual_vars(l, vars),
		n = 1 + nvar + l->k.n;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)n, Value *);
	inits[0] = op_result(l->forward, l->n);
	for (int i = 0; i < nvar; i++)
		inits[1 + i] = gradient_of(g, vars[i]);
	for (int i = 0; i < l->k.n; i++) {
		Value *taken = dual_taken(g, l->k.list[i]);
		inits[1 + nvar + i] = taken ? taken : gradient_zeros_for(g->b, l->k.list[i]);
	}
	for (int i = 0; i < n; i++)
		types[i] = i && i <= nvar ? l->op->results[vars[i - 1]].type : inits[i]->type;
	l->back = op_new(c, OP_PD_WHILE, l->op->loc, n, types, n, inits, 2, 0);
	builder_insert(g->b, l->back);
	back_cond(l, n, types);
	if (!back_body(l, nvar, vars, types))
		return false;
	if (!push_and_pop(l))
		return false;
	if (!settle_stack(l))
		return false;
	const int64_t kept = l->forward->nresult - l->n + op_int(l->op, "kept", 0);
	if (duals_marks(g->duals))
		op_set_attr(l->forward, "kept", attr_int(c, kept));
	for (int i = 0; i < nvar; i++)
		if (!duals_add(g->b, g->duals, op_operand(l->op, vars[i]), op_result(l->back, 1 + i)))
			return false;
	for (int i = 0; i < l->k.n; i++)
		if (!duals_add(g->b, g->duals, l->k.list[i], op_result(l->back, 1 + nvar + i)))
			return false;
	return true;
}

static bool gradient_while(GradientJob *g)
{
	Loop l = {.g = g, .op = g->op, .n = g->op->nresult, .k.c = g->b->ctx};
	if (g->op->nregion > 2 && g->op->regions[2].first)
		return op_error(g->op, "the gradient of a loop that pushes is not supported");
	if (!passes_through(g->op))
		return op_error(
			g->op, "the gradient of a loop whose condition changes its variables is not supported");
	for (int i = 0; i < l.n; i++)
		if (!is_kept(g->op->results[i].type))
			return op_error(g->op, "the gradient of a loop over lists is not supported");
	if (changes_sizes(g->op))
		return op_error(
			g->op,
			"the gradient of a loop that changes the size of its variables is not supported");
	find_captures(&l.k, g->duals, g->op, g->op);
	if (!all_kept(g->op, &l.k))
		return false;
	count_and_push(&l);
	if (!back_loop(&l))
		return false;
	for (int i = 0; i < l.n; i++)
		value_replace(op_result(l.op, i), op_result(l.forward, i));
	op_erase(l.op);
	return true;
}

bool gradient_control(Builder *b, Op *op, Duals *d)
{
	GradientJob g = {b, op, d};
	return op->code == OP_PD_IF ? gradient_if(&g) : gradient_while(&g);
}
