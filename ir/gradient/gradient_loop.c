// Gradients of pd.while: a loop that goes through the rounds from the last to the first. A loop
// keeps variables with which each round began, and values on its way (gradient_remat.c chooses), on
// a stack: the forward loop pushes them, the backward loop pops them and computes the rest again.
// How many rounds there were is counted apart, so that a loop that keeps nothing works, too.
#include "ir/gradient/gradient_loop.h"
#include "ir/gradient/gradient_remat.h"

// ---- pd.while: the forward loop counts and pushes -----------------------------------------------

// Whether the condition hands the variables on as they are.
static bool passes_through(const Op *op)
{
	const Block *cond = op->regions[0].first;
	for (int i = 0; i < cond->narg; i++)
		if (op_operand(cond->last, i + 1) != cond->args[i])
			return false;
	return true;
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
	control_copy(&b, from, m);
	int given = from->last->noperand;
	Value **out = NEW_ARRAY(c->arena, (size_t)given + 2, Value *);
	for (int i = 0; i < given; i++)
		out[i] = value_map_get(m, op_operand(from->last, i));
	out[given] = push ? tensor_add(&b, count, loop_number(&b, 1)) : count;
	out[given + 1] = stack;
	control_end(&b, from->last->code, given + 2, out);
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
	control_end(&b, OP_CF_YIELD, l->n + 2, out);
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
	inits[l->n] = loop_number(&b, 0);
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
	return control_keeps(t) && dtype_is_float(t->dtype);
}

static LoopDual how_of(const Loop *l, int var)
{
	return l->op->results[var].type->kind == TY_TENSOR ? duals_loop_how(l->g->duals, l->op, var)
	                                                   : LOOP_FLOWS;
}

// Which variables of the loop have a gradient: those of floating type that depend, in some round,
// on what is wanted; all where something comes in that does not flow.
static int dual_vars(const Loop *l, int *vars)
{
	const Block *cond = l->op->regions[0].first;
	bool all = false;
	int n = 0;
	for (int i = 0; i < l->n; i++)
		all |= how_of(l, i) != LOOP_FLOWS;
	for (int i = 0; i < l->n; i++)
		if (has_dual(l->op->results[i].type) && (all || duals_wanted(l->g->duals, cond->args[i])))
			vars[n++] = i;
	return n;
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

Value *loop_save(Loop *l, Block *body, const Type *t, Value *kept)
{
	l->kept[l->nsaved] = kept;
	return l->saved[l->nsaved++] = block_add_arg(l->op->ctx, body, t);
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

static bool use_known_starts(Loop *l, Block *body)
{
	bool ok = true;
	Builder b = builder_before(body->first);
	Value *round = tensor_sub(&b, body->args[0], loop_number(&b, 1));
	for (int i = 0; i < l->n && ok; i++) {
		Value *known = value_used(l->saved[i]) ? loop_start(l, &b, i, round, &ok) : NULL;
		if (known)
			value_replace(l->saved[i], known);
	}
	return ok;
}

// Behind the copy of the round, what is to be found there when its gradient is done, which puts
// other operations in the place of some: all results, then the ends of the variables.
static Op *mark_copy(const Loop *l, Builder *b, ValueMap *m)
{
	const Block *from = l->op->regions[1].first;
	Op *marks = op_new(b->ctx, OP_CF_YIELD, b->loc, 0, NULL, 0, NULL, 0, 0);
	op_append(b->block, marks);
	for (Op *o = from->first; o; o = o->next)
		for (int i = 0; i < o->nresult; i++)
			op_add_operand(marks, value_map_get(m, op_result(o, i)));
	for (int i = 0; i < l->n; i++)
		op_add_operand(marks, value_map_get(m, op_operand(from->last, i)));
	return marks;
}

// What `marks` says of the copy; it is gone afterwards.
static Round round_of(const Loop *l, Op *marks)
{
	Context *c = l->op->ctx;
	Block *body = marks->block;
	Round r = {.body = body, .border = marks->next, .n = l->n, .starts = l->saved};
	int k = 0;
	r.ends = NEW_ARRAY(c->arena, (size_t)l->n + 1, Value *);
	r.carried = NEW_ARRAY(c->arena, (size_t)l->n + 1, bool);
	pointer_map_init(&r.pushed, c->arena);
	for (Op *o = l->op->regions[1].first->first; o; o = o->next)
		for (int i = 0; i < o->nresult; i++) {
			const Value *again = op_operand(marks, k++);
			Value *forward = value_map_get(l->map, op_result(o, i));
			if (again->type == forward->type && !l->slots)
				pointer_map_set(&r.pushed, again, forward);
		}
	r.logged = NEW_ARRAY(c->arena, (size_t)l->n + 1, bool);
	for (int i = 0; i < l->n; i++) {
		r.ends[i] = op_operand(marks, k++);
		r.logged[i] = loop_logs(l, i);
	}
	op_erase(marks);
	return r;
}

// Chooses what is kept of the round, and what of its end the loop backwards still has.
static bool choose_kept(Loop *l, Block *body, Op *marks)
{
	Round r = round_of(l, marks);
	l->border = r.border;
	if (!use_known_starts(l, body))
		return false;
	loop_drop_unread(body);
	remat_choose(&r, duals_how(l->g->duals)->remat);
	for (int i = 0; i < r.nkept; i++) {
		loop_save(l, body, r.kept[i]->type,
		          (Value *)(uintptr_t)pointer_map_get(&r.pushed, r.kept[i]));
		value_replace(r.kept[i], l->saved[l->nsaved - 1]);
	}
	l->carried = NEW_ARRAY(l->op->ctx->arena, (size_t)l->n + 1, int);
	l->ends = NEW_ARRAY(l->op->ctx->arena, (size_t)l->n + 1, Value *);
	for (int i = 0; i < l->n; i++) {
		if (!r.carried[i])
			continue;
		l->ends[l->ncarried] = block_add_arg(l->op->ctx, body, r.ends[i]->type);
		value_replace(r.ends[i], l->ends[l->ncarried]);
		op_add_operand(body->last, l->saved[i]);
		l->carried[l->ncarried++] = i;
	}
	return true;
}

// The gradient of the round behind its copy, which ends with `last`, from what comes in for the
// variables and for what is around the loop.
static bool differentiate_round(Loop *l, Builder *b, Duals *d, ValueMap *m, Op *last, int nvar,
                                const int *vars)
{
	const Block *from = l->op->regions[1].first;
	for (int i = 0; i < l->k.n; i++)
		if (sum_passes(l, i) && !duals_add(b, d, l->k.list[i], b->block->args[1 + nvar + i]))
			return false;
	for (int i = 0; i < nvar; i++)
		if (how_of(l, vars[i]) <= LOOP_STAYS) {
			Value *end = value_map_get(m, op_operand(from->last, vars[i])),
				  *dv = value_as(b, b->block->args[1 + i], end->type);
			if (!dv || !duals_add(b, d, end, dv))
				return false;
		}
	return !last || gradient_ops(b, d, b->block->first, last);
}

// A round backwards: pops what the round kept, computes the rest again, and differentiates it.
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
	int room = 2 * l->n + count_results(from); // numbers for arrays among the variables
	l->saved = NEW_ARRAY(c->arena, (size_t)room + 1, Value *);
	l->kept = NEW_ARRAY(c->arena, (size_t)room + 1, Value *);
	l->first_saved = n;
	for (int i = 0; i < l->n; i++) {
		loop_save(l, b.block, l->op->results[i].type, l->push->block->args[i]);
		value_map_set(m, from->args[i], l->saved[i]);
	}
	for (int i = 0; i < nvar; i++)
		duals_want(d, l->saved[vars[i]]);
	for (int i = 0; i < l->k.n; i++)
		duals_want(d, l->k.list[i]);
	control_copy(&b, from, m);
	Op *marks = mark_copy(l, &b, m);
	// Read whatever the gradient is, so that it can be the border.
	out[0] = tensor_sub(&b, b.block->args[0], loop_number(&b, 1));
	if (!differentiate_round(l, &b, d, m, marks->prev, nvar, vars))
		return false;
	for (int i = 0; i < nvar; i++)
		out[1 + i] = dual_before(l, &b, d, vars[i], b.block->args[1 + i]);
	for (int i = 0; i < l->k.n; i++) {
		Value *sum = b.block->args[1 + nvar + i], *dv = duals_get(&b, d, l->k.list[i]);
		out[1 + nvar + i] = !dv ? sum : sum_passes(l, i) ? dv : tensor_add(&b, sum, dv);
	}
	for (int i = 0; i < n; i++)
		if (!out[i])
			return false;
	control_end(&b, OP_CF_YIELD, n, out);
	return choose_kept(l, b.block, marks);
}

// The condition of the loop backwards; and, where it carries more than its n variables, the loop
// with these.
static void back_finish(Loop *l, int n, const Type *const *types)
{
	Context *c = l->op->ctx;
	const int all = n + l->ncarried + l->nstate;
	const Type **with = NEW_ARRAY(c->arena, (size_t)all, const Type *);
	Value **out = NEW_ARRAY(c->arena, (size_t)all + 1, Value *);
	for (int i = 0; i < all; i++) {
		const int k = i - n - l->ncarried;
		out[i] = i < n    ? op_operand(l->back, i)
		         : k >= 0 ? l->states[k]
		                  : op_result(l->forward, l->carried[i - n]);
		with[i] = i < n ? types[i] : out[i]->type;
	}
	if (all > n) {
		Op *back = op_new(c, OP_PD_WHILE, l->op->loc, all, with, all, out, 2, 0);
		op_insert_before(l->back, back);
		op_take_regions(back, l->back, 2);
		op_erase(l->back);
		l->back = back;
	}
	Builder b = builder_at_end(c, block_new(c, &l->back->regions[0]), l->op->loc);
	for (int i = 0; i < all; i++)
		out[i + 1] = block_add_arg(c, b.block, with[i]);
	out[0] = build2(&b, OP_PD_GREATER_THAN, out[1], loop_number(&b, 0), NULL);
	control_end(&b, OP_CF_COND_YIELD, all + 1, out);
}

// The loop backwards, without regions: it carries a counter, the gradients of variables, and sums
// of those of what rounds read from outside. `types`: theirs.
static Op *back_make(Loop *l, int nvar, const int *vars, const Type **types)
{
	Context *c = l->op->ctx;
	GradientJob *g = l->g;
	const int n = 1 + nvar + l->k.n;
	Value **inits = NEW_ARRAY(c->arena, (size_t)n, Value *);
	inits[0] = op_result(l->forward, l->n);
	for (int i = 0; i < nvar; i++)
		inits[1 + i] = gradient_of(g, vars[i]);
	for (int i = 0; i < l->k.n; i++) {
		Value *taken = dual_taken(g, l->k.list[i]);
		inits[1 + nvar + i] = taken ? taken : gradient_zeros_for(g->b, l->k.list[i]);
	}
	for (int i = 0; i < n; i++)
		types[i] = i && i <= nvar
		               ? found_sizes_open(c, &l->sizes, l->op->results[vars[i - 1]].type, false)
		               : inits[i]->type;
	return op_new(c, OP_PD_WHILE, l->op->loc, n, types, n, inits, 2, 0);
}

// What the loop backwards gives goes on to where the variables and what is read come from.
static bool back_pass_on(Loop *l, int nvar, const int *vars)
{
	GradientJob *g = l->g;
	for (int i = 0; i < nvar; i++) {
		Value *init = op_operand(l->op, vars[i]),
			  *dv = value_as(g->b, op_result(l->back, 1 + i), init->type);
		if (!dv || !duals_add(g->b, g->duals, init, dv))
			return false;
	}
	for (int i = 0; i < l->k.n; i++)
		if (!duals_add(g->b, g->duals, l->k.list[i], op_result(l->back, 1 + nvar + i)))
			return false;
	return true;
}

static bool back_loop(Loop *l)
{
	Context *c = l->op->ctx;
	GradientJob *g = l->g;
	int *vars = NEW_ARRAY(c->arena, (size_t)l->n + 1, int), nvar = dual_vars(l, vars),
		n = 1 + nvar + l->k.n;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	l->back = back_make(l, nvar, vars, types);
	builder_insert(g->b, l->back);
	if (!back_body(l, nvar, vars, types))
		return false;
	const bool revolves = l->slots && loop_revolves(l);
	if (revolves ? !loop_revolve(l) : !loop_push_and_pop(l))
		return false;
	found_sizes_rename(c, &l->sizes, &l->back->regions[1]);
	back_finish(l, n, types);
	if (!revolves && !loop_settle_stack(l))
		return false;
	const int64_t kept = l->forward->nresult - l->n + op_int(l->op, "kept", 0);
	if (duals_how(g->duals)->marks)
		op_set_attr(l->forward, "kept", attr_int(c, kept));
	return back_pass_on(l, nvar, vars);
}

// The operation is gone afterwards: another stands for it.
bool gradient_hook_while(GradientJob *g)
{
	Loop l = {.g = g, .op = g->op, .n = g->op->nresult, .k.c = g->b->ctx};
	if (g->op->nregion > 2 && g->op->regions[2].first)
		return op_error(g->op, "the gradient of a loop that pushes is not supported");
	if (!passes_through(g->op))
		return op_error(
			g->op, "the gradient of a loop whose condition changes its variables is not supported");
	for (int i = 0; i < l.n; i++)
		if (!control_keeps(g->op->results[i].type))
			return op_error(g->op, "the gradient of a loop over lists is not supported");
	l.sizes = found_sizes_in(g->op, &g->op->regions[1]);
	for (int i = 0; i < l.n; i++)
		if (how_of(&l, i) != LOOP_FLOWS && found_sizes_stand_in(&l.sizes, g->op->results[i].type))
			return op_error(g->op, "the gradient of a loop that changes the size of a variable "
			                       "that other rounds add to is not supported");
	captures_find(&l.k, g->duals, g->op);
	if (!captures_kept(g->op, &l.k))
		return false;
	loop_find_slots(&l);
	if (!l.slots)
		loop_hand_on_asked(&l);
	count_and_push(&l);
	if (!back_loop(&l))
		return false;
	for (int i = 0; i < l.n; i++)
		value_replace(op_result(l.op, i), op_result(l.forward, i));
	op_erase(l.op);
	return true;
}
