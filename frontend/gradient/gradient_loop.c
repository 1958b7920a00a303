// while_grad, recurrent_grad: the gradient (ir/gradient) of what the forward loop became, which is
// run once more with the variables that the backward rounds read on a stack. The block that the
// legacy operator holds tells only what goes from round to round (where Paddle 2 computes another
// gradient than the loop's, so does this, with a warning), and which counters it counts down.
#include "frontend/control/control.h"
#include "frontend/gradient/gradient.h"
#include "frontend/job/flow.h"
#include "frontend/job/general.h"
#include "frontend/job/trace.h"
#include "ir/gradient/gradient.h"

#include <string.h>

// A gradient operator on its way.
typedef struct LoopJob {
	OpJob *j;
	const OpTrace *forward;
	const Op *loop; // what the forward operator became
	Op *again;      // the same once more
	Duals *duals;
	const Paddle__BlockDesc *back; // the block of a round backwards
} LoopJob;

// The last operator of this type before this one with these step scopes.
static const OpTrace *find_loop(OpJob *j, const char *type, const char *slot)
{
	const char *scopes = input_var(j, slot);
	for (const OpTrace *t = j->t->traces; t && scopes; t = t->before) {
		if (strcmp(t->desc->type, type))
			continue;
		const char *have = slot_var(slot_find(t->desc->n_outputs, t->desc->outputs, slot), 0);
		if (have && !strcmp(have, scopes) && t->block == j->t->block)
			return t;
	}
	return NULL;
}

static Op *loop_of(const OpTrace *t)
{
	for (Op *op = t->last; op; op = op == t->first ? NULL : op->prev)
		if (op->code == OP_PD_WHILE)
			return op;
	return NULL;
}

static Value *written(const OpTrace *t, const char *var)
{
	for (const TracedVar *w = t->writes; w; w = w->next)
		if (!strcmp(w->var, var))
			return w->value;
	return NULL;
}

// What the variable was in front of the loop: where a round changes it, the loop's initial value.
static Value *value_before(OpJob *j, const OpTrace *t, const Op *loop, const char *var)
{
	const Value *after = written(t, var);
	if (after && after->def == loop)
		return op_operand(loop, (int)after->index);
	return read_var(j, "X", var);
}

// The output that a gradient is called after: the list of gradients leaves out those that nothing
// comes in for.
static const char *output_of(const Paddle__OpSlot *out, const char *gradient)
{
	for (size_t i = 0; out && i < out->n_arguments; i++) {
		const char *var = slot_var(out, i);
		size_t n = var ? strlen(var) : 0;
		if (n && !strncmp(gradient, var, n) && !strncmp(gradient + n, "@GRAD", 5))
			return var;
	}
	return NULL;
}

// ---- what Paddle does between rounds ------------------------------------------------------------

static bool slots_name(size_t n, Paddle__OpSlot *const *slots, const char *var, bool gradient)
{
	const size_t length = strlen(var);
	for (size_t s = 0; s < n; s++) {
		for (size_t i = 0; i < slots[s]->n_arguments; i++) {
			const char *have = slot_var(slots[s], i);
			if (have && !strncmp(have, var, length) &&
			    !strcmp(have + length, gradient ? "@GRAD" : ""))
				return true;
		}
	}
	return false;
}

static bool block_writes_gradient(const Paddle__BlockDesc *b, const char *var)
{
	for (size_t i = 0; i < b->n_ops; i++)
		if (slots_name(b->ops[i]->n_outputs, b->ops[i]->outputs, var, true))
			return true;
	return false;
}

// Whether the block reads the gradient that it finds.
static bool block_finds_gradient(const Paddle__BlockDesc *b, const char *var)
{
	for (size_t i = 0; i < b->n_ops; i++) {
		if (slots_name(b->ops[i]->n_inputs, b->ops[i]->inputs, var, true))
			return true;
		if (slots_name(b->ops[i]->n_outputs, b->ops[i]->outputs, var, true))
			return false;
	}
	return false;
}

// The gradient that is asked for of a variable; NULL: none.
static const char *asked_of(const OpJob *j, const char *var)
{
	const Paddle__OpSlot *in = slot_find(j->desc->n_inputs, j->desc->inputs, "X");
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, "X@GRAD");
	for (size_t i = 0; in && i < in->n_arguments; i++)
		if (slot_var(in, i) && !strcmp(slot_var(in, i), var))
			return slot_var(out, i);
	return NULL;
}

static bool comes_in(const OpJob *j, const char *var)
{
	const Paddle__OpSlot *given = slot_find(j->desc->n_inputs, j->desc->inputs, "Out@GRAD");
	const size_t n = strlen(var);
	for (size_t i = 0; given && i < given->n_arguments; i++) {
		const char *g = slot_var(given, i);
		if (g && !strncmp(g, var, n) && !strncmp(g + n, "@GRAD", 5))
			return true;
	}
	return false;
}

static bool holds_nothing(OpJob *j, const char *var)
{
	const Binding *b = scope_find(j->t, var);
	return !b || (!b->value && !b->guard && !b->broken);
}

// A program may be translated more than once.
static void warn_once(OpJob *j, const char *var, const char *text)
{
	Translator *t = j->t;
	const char *key = context_str(
		t->c, arena_printf(t->c->arena, "gradient %d %d %s", t->block_index, t->frame.op, var));
	if (name_map_get(t->memo, key))
		return;
	name_map_set(t->memo, key, (void *)key);
	diag_warning(t->c->diag, j->b.loc,
	             "the gradient of '%s' %s: so Paddle 2 computes it, and it is not the loop's", var,
	             text);
}

static LoopDual dual_of(const LoopJob *w, const char *var, bool asked)
{
	if (!comes_in(w->j, var))
		return asked ? LOOP_ADDS : LOOP_FORGETS;
	return asked && block_writes_gradient(w->back, var) ? LOOP_FLOWS : LOOP_STAYS;
}

// Paddle hands a variable's gradient on from round to round where it comes in from outside. What
// the rounds do not write stays as it came, also where the variable is written anew in every round;
// a variable whose gradient does not come in is treated as one from around the loop.
static void set_flow(LoopJob *w)
{
	const Paddle__OpSlot *out = slot_find(w->j->desc->n_inputs, w->j->desc->inputs, "Out");
	for (size_t i = 0; out && i < out->n_arguments; i++) {
		const char *var = slot_var(out, i), *asked = var ? asked_of(w->j, var) : NULL;
		const Value *v = var ? written(w->forward, var) : NULL;
		if (!v || v->def != w->loop || !type_is_tensor(v->type) || !dtype_is_float(v->type->dtype))
			continue;
		const LoopDual how = dual_of(w, var, asked != NULL);
		const char *in = arena_printf(w->j->t->c->arena, "%s@GRAD", var);
		if (how == LOOP_ADDS)
			warn_once(w->j, var, "is the sum of what the rounds give");
		if (how == LOOP_STAYS && !holds_nothing(w->j, in))
			warn_once(w->j, var, "comes in for every round, not only for the last one");
		duals_loop(w->duals, w->again, (int)v->index, how);
	}
}

// The block is not translated, but what may change what it computes is no more passed over there
// than elsewhere: attributes, and a gradient that is not that of its operators.
static bool attributes_known(OpJob *j, const Paddle__BlockDesc *b)
{
	const Paddle__ProgramDesc *p = j->t->p;
	const bool named = b->forward_block_idx >= 0 && (size_t)b->forward_block_idx < p->n_blocks;
	const Paddle__BlockDesc *of = named ? p->blocks[b->forward_block_idx] : NULL;
	bool ok = true;
	for (size_t i = 0; i < b->n_ops; i++) {
		const Paddle__OpDesc *o = b->ops[i];
		const int inner = sub_block(o);
		const LegacyMap *map = NULL;
		const char *why = NULL;
		if (inner >= 0)
			ok = attributes_known(j, p->blocks[inner]) && ok;
		if (attr_find(o, "backward_block"))
			why = "a gradient that its author has written is not supported in a loop";
		else if (!op_info_by_legacy(o->type, &map))
			why = gradient_objection(j->t->c, o, of ? of->n_ops : 0, of ? of->ops : NULL);
		for (size_t k = 0; map && k < o->n_attrs && !why; k++)
			why = attr_objection(j->t->c, map, o->attrs[k]);
		if (why)
			ok = job_fail(j, "its block %d, op %zu '%s': %s", b->idx, i, o->type, why);
	}
	return ok;
}

// Counters that the rounds backwards count down have their first values again.
static void count_down(LoopJob *w)
{
	for (size_t i = 0; i < w->back->n_ops; i++) {
		const Paddle__OpDesc *o = w->back->ops[i];
		const char *var = slot_var(slot_find(o->n_outputs, o->outputs, "Out"), 0);
		const Value *after = var ? written(w->forward, var) : NULL;
		if (!strcmp(o->type, "increment") && after && after->def == w->loop &&
		    slots_name(o->n_inputs, o->inputs, var, false))
			write_var(w->j, var, op_operand(w->loop, (int)after->index));
	}
}

// ---- the gradient operators ---------------------------------------------------------------------

// Adds what comes in for a result of the loop, with that one's sizes: behind a branch those of what
// came out of it have names of their own.
static bool add_result(LoopJob *w, const char *slot, const char *gradient, int result)
{
	OpJob *j = w->j;
	Value *dv = read_var(j, slot, gradient), *to = op_result(w->again, result);
	if (dv && type_is_tensor(dv->type) && type_is_tensor(to->type))
		dv = value_as(&j->b, dv, to->type);
	return dv && duals_add(&j->b, w->duals, to, dv);
}

static bool add_results(LoopJob *w)
{
	OpJob *j = w->j;
	const Paddle__OpSlot *out = slot_find(j->desc->n_inputs, j->desc->inputs, "Out");
	const Paddle__OpSlot *given = slot_find(j->desc->n_inputs, j->desc->inputs, "Out@GRAD");
	for (size_t i = 0; given && i < given->n_arguments; i++) {
		const char *g = slot_var(given, i), *var = g ? output_of(out, g) : NULL;
		if (!g || holds_nothing(j, g))
			continue; // nothing has come in for it
		const Value *v = var ? written(w->forward, var) : NULL;
		if (!v || v->def != w->loop)
			return job_fail(j, "'%s' is the gradient of no variable of the loop", g);
		if (!add_result(w, "Out@GRAD", g, (int)v->index))
			return false;
	}
	return true;
}

static bool begin(LoopJob *w, OpJob *j, const char *type, const char *scopes)
{
	const int block = sub_block_of(j);
	const DualsHow how = {.overwrite = true};
	*w = (LoopJob){
		.j = j, .forward = find_loop(j, type, scopes), .duals = duals_new(j->t->c, &how)};
	w->loop = w->forward ? loop_of(w->forward) : NULL;
	if (!w->loop)
		return job_fail(j, "no %s before it has these step scopes", type);
	if (block < 0)
		return false;
	w->back = j->t->p->blocks[block];
	if (!gradient_attributes(j, w->forward->desc) || !attributes_known(j, w->back))
		return false;
	w->again = op_clone(j->t->c, w->loop, NULL);
	return true;
}

// The gradients of the n values, which the loop reads, to the variables `out`.
static bool differentiate(LoopJob *w, size_t n, Value *const *values, const char *const *out)
{
	OpJob *j = w->j;
	if (!op_gradient(&j->b, w->again, w->duals))
		return false;
	for (size_t i = 0; i < n; i++)
		if (values[i] &&
		    !gradient_write(j, out[i], values[i], duals_get(&j->b, w->duals, values[i])))
			return false;
	return true;
}

bool loop_gradient_translate(OpJob *j)
{
	LoopJob w;
	const Paddle__OpSlot *in = slot_find(j->desc->n_inputs, j->desc->inputs, "X");
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, "X@GRAD");
	size_t n = in ? in->n_arguments : 0;
	Value **values = NEW_ARRAY(j->t->c->arena, n + 1, Value *);
	const char **names = NEW_ARRAY(j->t->c->arena, n + 1, const char *);
	if (!begin(&w, j, "while", "StepScopes"))
		return false;
	for (size_t i = 0; i < n; i++) {
		names[i] = slot_var(out, i);
		if (!slot_var(in, i) || !names[i])
			continue;
		values[i] = value_before(j, w.forward, w.loop, slot_var(in, i));
		if (!values[i])
			return false;
		for (size_t k = 0; k < i; k++)
			if (values[k] == values[i])
				return job_fail(j, "'%s' and '%s' are one value: not supported", slot_var(in, i),
				                slot_var(in, k));
		duals_want(w.duals, values[i]);
	}
	op_append(j->t->block, w.again);
	duals_reach(w.duals, w.again);
	set_flow(&w);
	if (!add_results(&w) || !differentiate(&w, n, values, names))
		return false;
	count_down(&w);
	return true;
}

// What the forward operator read.
static Value *was_read(const LoopJob *w, const char *var)
{
	for (const TracedVar *r = w->forward->reads; r; r = r->next)
		if (!strcmp(r->var, var))
			return r->value;
	return NULL;
}

// The variables of recurrent are a counter, its states and its outputs. Whether a state's gradient
// goes from step to step is said by the block: whether it reads what comes in for the state.
static bool add_steps(LoopJob *w)
{
	OpJob *j = w->j;
	const Paddle__OpDesc *d = j->desc;
	const Paddle__OpSlot *given = slot_find(d->n_inputs, d->inputs, "outputs@GRAD");
	const Paddle__OpAttr *states = attr_find(d, "states");
	const size_t n = states ? states->n_strings : 0;
	for (size_t i = 0; i < n; i++) {
		if (block_finds_gradient(w->back, states->strings[i]))
			continue;
		duals_loop(w->duals, w->again, 1 + (int)i, LOOP_FORGETS);
		warn_once(j, states->strings[i],
		          "does not go from step to step, as its block does not "
		          "read it");
	}
	for (size_t i = 0; given && i < given->n_arguments; i++) {
		const char *g = slot_var(given, i);
		if (g && !holds_nothing(j, g) && !add_result(w, "outputs@GRAD", g, 1 + (int)(n + i)))
			return false;
	}
	return true;
}

bool recurrent_gradient_translate(OpJob *j)
{
	static const char *const slots[] = {"inputs", "initial_states", "parameters"};
	LoopJob w;
	size_t n = 0, room = 1;
	for (size_t s = 0; s < j->desc->n_inputs; s++)
		room += j->desc->inputs[s]->n_arguments;
	Value **values = NEW_ARRAY(j->t->c->arena, room, Value *);
	const char **names = NEW_ARRAY(j->t->c->arena, room, const char *);
	if (!begin(&w, j, "recurrent", "step_scopes"))
		return false;
	for (size_t s = 0; s < COUNT_OF(slots); s++) {
		const Paddle__OpSlot *in = slot_find(j->desc->n_inputs, j->desc->inputs, slots[s]);
		const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs,
		                                      arena_printf(j->t->c->arena, "%s@GRAD", slots[s]));
		for (size_t i = 0; in && i < in->n_arguments; i++) {
			const char *var = slot_var(in, i);
			if (!var || !slot_var(out, i))
				continue;
			values[n] = was_read(&w, var);
			if (!values[n] && !(values[n] = read_var(j, slots[s], var)))
				return false;
			duals_want(w.duals, values[n]);
			names[n++] = slot_var(out, i);
		}
	}
	op_append(j->t->block, w.again);
	duals_reach(w.duals, w.again);
	return add_steps(&w) && differentiate(&w, n, values, names);
}
