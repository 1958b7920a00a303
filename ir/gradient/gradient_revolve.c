// Checkpoints of loops: a loop that may keep only so much keeps the beginnings of a few rounds, and
// the loop backwards runs the rounds between them again. Which rounds these are is optimal for
// their number (Griewank and Walther, Algorithm 799: Revolve, 2000): with s checkpoints and each
// round run again at most r times, as many as binomial(s + r, s) rounds can be reversed.
#include "ir/build/counted.h"
#include "ir/gradient/gradient_loop.h"
#include "ir/gradient/gradient_remat.h"

// Whether an operation gives no tensor that it takes out of an array: these are kept on a stack,
// since no array is kept.
static bool takes_no_element(Op *op, void *arg)
{
	(void)arg;
	bool tensor = !op->nregion && op->nresult;
	for (int i = 0; i < op->nresult; i++)
		tensor &= op->results[i].type->kind == TY_TENSOR;
	for (int i = 0; i < op->noperand; i++)
		if (tensor && op_operand(op, i) && op_operand(op, i)->type->kind == TY_ARRAY)
			return false;
	return true;
}

void loop_find_slots(Loop *l)
{
	const Attr *said = op_attr(l->op, "checkpoints");
	if (said && !duals_how(l->g->duals)->arrays && op_walk(l->op, takes_no_element, NULL)) {
		l->slots = said->ints[0];
		l->most = said->ints[1];
	}
}

// ---- which variables are kept -------------------------------------------------------------------

typedef struct Revolve {
	Loop *l;
	int n; // variables that are kept
	int *vars;
	int ncolumn;       // of their checkpoints: those of variable vars[i] begin at
	int *column;       // column[i], behind STATES
	PointerMap needed; // values of the body that rounds run again need
	bool *need;        // [variables]
} Revolve;

static bool visit_operands(Op *op, void *revolve)
{
	Revolve *r = revolve;
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i))
			pointer_map_set(&r->needed, op_operand(op, i), op);
	return true;
}

// Variables that those already needed hang on, from round to round. Whether there are more now.
static bool need_more(Revolve *r)
{
	const Block *from = r->l->op->regions[1].first;
	int64_t step;
	bool more = false;
	pointer_map_init(&r->needed, r->l->op->ctx->arena);
	for (int i = 0; i < r->l->n; i++)
		if (r->need[i])
			pointer_map_set(&r->needed, op_operand(from->last, i), from);
	for (Op *op = from->last->prev; op; op = op->prev) {
		bool runs = control_stays(op);
		for (int i = 0; i < op->nresult; i++)
			runs |= pointer_map_get(&r->needed, &op->results[i]) != NULL;
		if (!runs)
			continue;
		visit_operands(op, r);
		op_walk(op, visit_operands, r);
	}
	for (int i = 0; i < r->l->n; i++)
		if (!r->need[i] && pointer_map_get(&r->needed, from->args[i]) &&
		    !loop_start_is_known(r->l, i, &step))
			more = r->need[i] = true;
	return more;
}

// What a round, or its copy for the gradient up to the border, finds of the sizes.
static FoundSizes sizes_in(const Loop *l, const Block *round, const Op *border)
{
	const size_t n = (size_t)l->sizes.n;
	FoundSizes s = {(int)n, (int)n, NEW_ARRAY(l->op->ctx->arena, n + 1, FoundSize)};
	for (size_t i = 0; i < n; i++)
		s.list[i] = l->sizes.list[i];
	found_sizes_settle(&s, round, border);
	return s;
}

static bool is_lost(const Loop *l, const FoundSize *size, const Block *round)
{
	Op *behind;
	return found_size_is_missing(size, round) && found_size_is_known(size, l->push->block, &behind);
}

// Variables of which rounds that run again need no more than a size.
static void need_for_sizes(Revolve *r, const Block *round, const Op *border)
{
	const FoundSizes here = sizes_in(r->l, round, border);
	for (int i = 0; i < here.n; i++)
		for (int k = 0; k < r->l->n && is_lost(r->l, &here.list[i], round); k++)
			r->need[k] |= type_has_size(r->l->op->results[k].type, here.list[i].size);
}

static Revolve find_vars(Loop *l)
{
	Arena *a = l->op->ctx->arena;
	Revolve r = {.l = l};
	r.need = NEW_ARRAY(a, (size_t)l->n + 1, bool);
	r.vars = NEW_ARRAY(a, (size_t)l->n + 1, int);
	r.column = NEW_ARRAY(a, (size_t)l->n + 1, int);
	for (int i = 0; i < l->n; i++)
		r.need[i] = value_used(l->saved[i]);
	need_for_sizes(&r, l->op->regions[1].first, NULL);
	need_for_sizes(&r, l->back->regions[1].first, l->border);
	while (need_more(&r))
		continue;
	for (int i = 0; i < l->n; i++)
		if (r.need[i]) {
			r.column[r.n] = r.ncolumn;
			r.ncolumn += checkpoint_columns(l->op->results[i].type);
			r.vars[r.n++] = i;
		}
	return r;
}

// Whether the variables that are kept have the size, each round from its beginning on.
static bool starts_have(const Revolve *r, const Dim *size)
{
	for (int i = 0; i < r->n; i++)
		if (type_has_size(r->l->op->results[r->vars[i]].type, size))
			return true;
	return false;
}

// Whether each size that rounds find is found again where they run again, by an operation or with a
// variable that is kept, but not both; no numbers are kept for sizes.
static bool sizes_are_found(const Revolve *r, const Block *round, const Op *border)
{
	const FoundSizes here = sizes_in(r->l, round, border);
	for (int i = 0; i < here.n; i++)
		if (starts_have(r, here.list[i].size) ? here.list[i].finder != NULL
		                                      : is_lost(r->l, &here.list[i], round))
			return false;
	return true;
}

bool loop_revolves(Loop *l)
{
	loop_drop_unread(l->back->regions[1].first);
	const Revolve r = find_vars(l);
	for (int i = 0; i < r.n; i++)
		if (!checkpoint_takes(l->op->ctx, l->op->results[r.vars[i]].type))
			return false;
	return r.n > 0 && sizes_are_found(&r, l->op->regions[1].first, NULL) &&
	       sizes_are_found(&r, l->back->regions[1].first, l->border);
}

// ---- small loops --------------------------------------------------------------------------------

typedef struct While {
	Op *op;
	Builder b; // at the end of the body
	Value **args;
} While;

// A loop that goes on while its first variable is less than `limit`. Sizes that a run finds may be
// others after each round.
static bool while_begin(While *w, Builder *b, int n, Value *const *inits, Value *limit)
{
	Context *c = b->ctx;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	Value **out = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++)
		types[i] = type_is_found(inits[i]->type) ? type_found_anew(c, TY_TENSOR, inits[i]->type)
		                                         : inits[i]->type;
	w->op = op_new(c, OP_PD_WHILE, b->loc, n, types, n, inits, 2, 0);
	builder_insert(b, w->op);
	Builder cond = builder_at_end(c, block_new(c, &w->op->regions[0]), b->loc);
	w->b = builder_at_end(c, block_new(c, &w->op->regions[1]), b->loc);
	for (int i = 0; i < n; i++) {
		out[i + 1] = block_add_arg(c, cond.block, types[i]);
		block_add_arg(c, w->b.block, types[i]);
	}
	w->args = w->b.block->args;
	out[0] = build2(&cond, OP_PD_LESS_THAN, out[1], limit, NULL);
	control_end(&cond, OP_CF_COND_YIELD, n + 1, out);
	return out[0] != NULL;
}

static bool while_end(While *w, int n, Value *const *next)
{
	for (int i = 0; i < n; i++)
		if (!next[i])
			return false;
	control_end(&w->b, OP_CF_YIELD, n, next);
	return true;
}

static Value *divide(Builder *b, Value *x, Value *y)
{
	return x && y ? build2(b, OP_PD_FLOOR_DIVIDE, x, y, NULL) : NULL;
}

static Value *least(Builder *b, Value *x, Value *y)
{
	return x && y ? build2(b, OP_PD_MINIMUM, x, y, NULL) : NULL;
}

static Value *most(Builder *b, Value *x, Value *y)
{
	return x && y ? build2(b, OP_PD_MAXIMUM, x, y, NULL) : NULL;
}

// ---- where the next checkpoint is ---------------------------------------------------------------

// How many rounds behind a checkpoint the next one is, when n rounds are to be reversed from it on
// with s checkpoints, itself included; less than n, or 1. All are i64 [1].
static Value *distance(Builder *b, Value *n, Value *s)
{
	// reach = binomial(s + r, s), of the least r for which that is at least n.
	Value *const inits[] = {loop_number(b, 1), loop_number(b, 0)};
	While w;
	if (!n || !s || !while_begin(&w, b, 2, inits, n))
		return NULL;
	Value *one = loop_number(&w.b, 1), *r = tensor_add(&w.b, w.args[1], one);
	Value *const next[] = {divide(&w.b, tensor_mul(&w.b, w.args[0], tensor_add(&w.b, s, r)), r), r};
	if (!while_end(&w, 2, next))
		return NULL;
	Value *reach = op_result(w.op, 0);
	r = op_result(w.op, 1);
	one = loop_number(b, 1);
	// With one repetition less: binomial(s + r - 1, s), and binomial(s + r - 2, s - 1).
	Value *sum = tensor_add(b, s, r);
	Value *left = divide(b, tensor_mul(b, reach, r), sum);
	Value *right = divide(b, tensor_mul(b, left, s), most(b, tensor_sub(b, sum, one), one));
	return most(b, least(b, left, tensor_sub(b, n, right)), one);
}

// ---- forward ------------------------------------------------------------------------------------

enum {
	TOP,
	POSITIONS,
	STATES
}; // what both loops carry: how many checkpoints, of which rounds, what

// A checkpoint in a round that is one: how many there are then, and where the next one is.
static Op *count_checkpoint(Builder *b, const Loop *l, Value *here, Value *count, Value *top,
                            Value *next)
{
	const Type *const types[] = {top->type, next->type};
	Op *choice = op_new(b->ctx, OP_PD_IF, b->loc, 2, types, 1, &here, 2, 0);
	builder_insert(b, choice);
	Builder then = builder_at_end(b->ctx, block_new(b->ctx, &choice->regions[0]), b->loc);
	Builder other = builder_at_end(b->ctx, block_new(b->ctx, &choice->regions[1]), b->loc);
	Value *left = tensor_sub(&then, loop_number(&then, l->slots), top);
	Value *far = distance(&then, tensor_sub(&then, loop_number(&then, l->most), count),
	                      most(&then, left, loop_number(&then, 1)));
	Value *const yes[] = {
		least(&then, tensor_add(&then, top, loop_number(&then, 1)), loop_number(&then, l->slots)),
		far ? tensor_add(&then, count, far) : NULL};
	Value *const no[] = {top, next};
	if (!yes[0] || !yes[1])
		return NULL;
	control_end(&then, OP_CF_YIELD, 2, yes);
	control_end(&other, OP_CF_YIELD, 2, no);
	return choice;
}

// What a round writes: args are its number, the next checkpoint, and what is carried.
static bool forward_round(const Revolve *r, Block *body, Value *const *args, Value **out)
{
	const Loop *l = r->l;
	Builder b = builder_before(body->first);
	Value *here = build2(&b, OP_PD_EQUAL, args[0], args[1], NULL), *const *carried = args + 2;
	Value *const choose[] = {here, carried[TOP], loop_number(&b, l->slots)};
	Value *at = here ? build(&b, OP_PD_WHERE, 3, choose, NULL) : NULL;
	Op *counted = at ? count_checkpoint(&b, l, here, args[0], carried[TOP], args[1]) : NULL;
	if (!counted)
		return false;
	out[0] = op_result(counted, 1);
	out[1 + TOP] = op_result(counted, 0);
	bool ok = checkpoint_put(&b, carried + POSITIONS, at, args[0], out + 1 + POSITIONS);
	for (int i = 0; i < r->n && ok; i++)
		ok = checkpoint_put(&b, carried + STATES + r->column[i], at, body->args[r->vars[i]],
		                    out + 1 + STATES + r->column[i]);
	return ok;
}

// The loop forward, with a counter and checkpoints in the place of its stack.
static bool forward(const Revolve *r)
{
	Loop *l = r->l;
	Context *c = l->op->ctx;
	op_erase(l->push);
	Op *plain = gradient_keep_arrays(l->forward, NULL, NULL);
	const int own = plain->nresult, more = 1 + STATES + r->ncolumn, n = own + more;
	Builder b = builder_before(plain);
	const Type **types = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)n, Value *),
		  **args = NEW_ARRAY(c->arena, (size_t)more + 1, Value *),
		  **out = NEW_ARRAY(c->arena, (size_t)more + 1, Value *);
	for (int i = 0; i < own; i++)
		inits[i] = op_operand(plain, i);
	inits[own] = loop_number(&b, 0);
	inits[own + 1 + TOP] = loop_number(&b, 0);
	checkpoint_rooms(&b, l->slots, type_tensor(c, DT_I64, 0, NULL, 0), inits + own + 1 + POSITIONS);
	for (int i = 0; i < r->n; i++)
		checkpoint_rooms(&b, l->slots, l->op->results[r->vars[i]].type,
		                 inits + own + 1 + STATES + r->column[i]);
	for (int i = 0; i < n; i++)
		types[i] = i < own ? plain->results[i].type : inits[i]->type;
	l->forward = op_new(c, OP_PD_WHILE, l->op->loc, n, types, n, inits, 2, 0);
	for (int i = 0; i < plain->nattr; i++)
		op_set_attr(l->forward, plain->attrs[i].name, plain->attrs[i].attr);
	const int64_t said[] = {l->slots, l->most, STATES - POSITIONS + r->ncolumn};
	op_set_attr(l->forward, "checkpoints", attr_ints(c, 3, said));
	op_insert_before(plain, l->forward);
	op_take_regions(l->forward, plain, 2);
	Block *cond = l->forward->regions[0].first, *body = l->forward->regions[1].first;
	args[0] = body->args[own - 1];
	for (int i = 0; i < more; i++) {
		op_add_operand(cond->last, block_add_arg(c, cond, types[own + i]));
		args[1 + i] = block_add_arg(c, body, types[own + i]);
	}
	if (!forward_round(r, body, args, out))
		return false;
	for (int i = 0; i < more; i++)
		op_add_operand(body->last, out[i]);
	for (int i = 0; i < own; i++)
		value_take(op_result(plain, i), op_result(l->forward, i));
	op_erase(plain);
	l->nstate = STATES + r->ncolumn;
	l->states = NEW_ARRAY(c->arena, (size_t)l->nstate, Value *);
	for (int i = 0; i < l->nstate; i++)
		l->states[i] = op_result(l->forward, own + 1 + i);
	return true;
}

// ---- backward -----------------------------------------------------------------------------------

// Runs rounds again, from `from` on until `to`; out: the variables that are kept, behind them.
static bool advance(const Revolve *r, Builder *b, Value *from, Value *to, Value *const *vars,
                    Value **out)
{
	Loop *l = r->l;
	Context *c = b->ctx;
	const Block *round = l->op->regions[1].first;
	Value **values = NEW_ARRAY(c->arena, (size_t)r->n + 1, Value *);
	ValueMap *m = value_map_new(c->arena);
	const FoundSizes again = found_sizes_in(l->op, &l->op->regions[1]);
	bool ok = true;
	While w;
	values[0] = from;
	for (int i = 0; i < r->n; i++)
		values[1 + i] = vars[i];
	if (!while_begin(&w, b, 1 + r->n, values, to))
		return false;
	for (int i = 0; i < l->n; i++) {
		Value *known = loop_start(l, &w.b, i, w.args[0], &ok);
		if (known)
			value_map_set(m, round->args[i], known);
	}
	for (int i = 0; i < r->n; i++) {
		Value *start = value_as(&w.b, w.args[1 + i], round->args[r->vars[i]]->type);
		value_map_set(m, round->args[r->vars[i]], start);
		ok &= start != NULL;
	}
	control_copy(&w.b, round, m);
	values[0] = tensor_add(&w.b, w.args[0], loop_number(&w.b, 1));
	for (int i = 0; i < r->n; i++)
		values[1 + i] = value_map_get(m, op_operand(round->last, r->vars[i]));
	if (!ok || !while_end(&w, 1 + r->n, values))
		return false;
	loop_drop_unread(w.b.block);
	found_sizes_rename(c, &again, &w.op->regions[1]);
	for (int i = 0; i < r->n; i++)
		out[i] = op_result(w.op, 1 + i);
	return true;
}

// One stretch: from the round where w stands to the next checkpoint, which is put there.
static bool stretch(const Revolve *r, While *w, Value *target, Value **next)
{
	const Loop *l = r->l;
	Builder *b = &w->b;
	Value *at = w->args[0], *const *carried = w->args + 1,
		  *const *vars = carried + STATES + r->ncolumn;
	Value *one = loop_number(b, 1), *all = loop_number(b, l->slots), *top = carried[TOP];
	Value *to = distance(b, tensor_add(b, tensor_sub(b, target, at), one),
	                     tensor_add(b, tensor_sub(b, all, top), one));
	Value **states = next + 1 + STATES, **reached = states + r->ncolumn;
	next[0] = to ? tensor_add(b, at, to) : NULL;
	if (!next[0] || !advance(r, b, at, next[0], vars, reached))
		return false;
	next[1 + TOP] = least(b, tensor_add(b, top, one), all);
	bool ok = checkpoint_put(b, carried + POSITIONS, top, next[0], next + 1 + POSITIONS);
	for (int i = 0; i < r->n && ok; i++)
		ok = checkpoint_put(b, carried + STATES + r->column[i], top, reached[i],
		                    states + r->column[i]);
	return ok && while_end(w, 1 + STATES + r->ncolumn + r->n, next);
}

// What round `target` began with, from the last checkpoint on. w: afterwards its results are the
// round, what is carried, and the variables.
static bool find_start(const Revolve *r, Builder *b, Value *target, Value *const *carried, While *w)
{
	const int n = 1 + STATES + r->ncolumn + r->n;
	Value **values = NEW_ARRAY(b->ctx->arena, (size_t)n, Value *);
	Value *last = tensor_sub(b, carried[TOP], loop_number(b, 1));
	values[0] = checkpoint_get(b, carried + POSITIONS, last, target->type);
	for (int i = 0; i < STATES + r->ncolumn; i++)
		values[1 + i] = carried[i];
	for (int i = 0; i < r->n; i++)
		values[n - r->n + i] = checkpoint_get(b, carried + STATES + r->column[i], last,
		                                      r->l->op->results[r->vars[i]].type);
	for (int i = 0; i < n; i++)
		if (!values[i])
			return false;
	return while_begin(w, b, n, values, target) && stretch(r, w, target, values);
}

static bool backward(const Revolve *r)
{
	Loop *l = r->l;
	Context *c = l->op->ctx;
	Block *body = l->back->regions[1].first;
	Builder b = builder_before(body->first);
	Value **carried = NEW_ARRAY(c->arena, (size_t)l->nstate, Value *);
	While w;
	for (int i = 0; i < l->nstate; i++)
		carried[i] = block_add_arg(c, body, l->states[i]->type);
	Value *target = tensor_sub(&b, body->args[0], loop_number(&b, 1));
	if (!find_start(r, &b, target, carried, &w))
		return false;
	for (int i = 0; i < r->n; i++) {
		Value *saved = l->saved[r->vars[i]],
			  *start = value_as(&b, op_result(w.op, 1 + l->nstate + i), saved->type);
		if (!start)
			return false;
		value_replace(saved, start);
	}
	for (int i = l->nsaved - 1; i >= 0; i--)
		block_remove_arg(body, l->first_saved + i);
	// A checkpoint of this round is not needed any more.
	Value *top = op_result(w.op, 1 + TOP), *last = tensor_sub(&b, top, loop_number(&b, 1));
	Value *const positions = op_result(w.op, 1 + POSITIONS),
				 *at = checkpoint_get(&b, &positions, last, target->type);
	Value *done = at ? build2(&b, OP_PD_EQUAL, at, target, NULL) : NULL;
	Value *left = done ? tensor_sub(&b, top, tensor_cast(&b, done, DT_I64)) : NULL;
	if (!left)
		return false;
	op_add_operand(body->last, left);
	for (int i = 1; i < l->nstate; i++)
		op_add_operand(body->last, op_result(w.op, 1 + i));
	return true;
}

bool loop_revolve(Loop *l)
{
	const Revolve r = find_vars(l);
	return forward(&r) && backward(&r);
}
