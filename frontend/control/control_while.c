// Loops. A legacy while writes outer variables from its block, and goes on as long as its condition
// variable holds. Here those variables are arguments of both regions of a pd.while, and its
// results.
//
// What a loop carries may change its size from round to round. The first attempt gives the
// arguments the types that come in; sizes that are others at the end of the body are found at run
// time in the next attempt. What was learnt is kept in memory for the next time that this loop is
// translated (it may stand in another loop, or the translation starts over).
//
// Which variables those are is in control_while_vars.c, their types in control_while_types.c.
#include "frontend/control/control_while.h"
#include "frontend/job/flow.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

#include <inttypes.h>

// ---- one attempt ------------------------------------------------------------------------------

static Value *add_arg(Loop *l, Block *b, const LoopVar *v)
{
	Value *arg = block_add_arg(l->j->t->c, b, v->type);
	arg->name = v->name;
	arg->stop_gradient = v->init->stop_gradient;
	return arg;
}

static Op *make_loop(Loop *l)
{
	Context *c = l->j->t->c;
	const Type **types = NEW_ARRAY(c->arena, (size_t)l->n, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)l->n, Value *);
	int n = 0;
	for (int i = 0; i < l->n; i++) {
		if (!l->vars[i].init)
			continue;
		types[n] = l->vars[i].type;
		inits[n++] = l->vars[i].init;
	}
	Op *op = op_new(c, OP_PD_WHILE, l->j->b.loc, n, types, n, inits, 2, 0);
	block_new(c, &op->regions[0]);
	block_new(c, &op->regions[1]);
	op_append(l->j->t->block, op);
	return op;
}

// What the body's arguments have: offsets that are carried, or those from before the loop.
static void set_lods(Loop *l, Value *const *args)
{
	Translator *t = l->j->t;
	for (int i = 0; i < l->n; i++) {
		const LoopVar *v = &l->vars[i];
		if (v->split || (v->of >= 0 && l->vars[v->of].split))
			continue;
		if (v->of >= 0)
			lod_set(t, args[v->of], lod_extend(t, lod_of(t, args[v->of]), v->level, args[i]));
		else if (args[i] && !v->memo->levels && !v->memo->bare)
			lod_set(t, args[i], lod_of(t, v->init));
	}
}

// The offsets that come around.
static void next_levels(Loop *l)
{
	for (int i = 0; i < l->n; i++) {
		LoopVar *v = &l->vars[i];
		Value *of = v->of >= 0 && !l->vars[v->of].split ? l->vars[v->of].next : NULL;
		const Lod *lod = lod_of(l->j->t, of);
		if (lod && v->level < lod->n)
			v->next = lod_offsets(l->j, lod, v->level);
	}
}

// What only a mark goes into has no type yet: inner operators may take it for what they need.
static void note_nothing(Loop *l, LoopVar *v, const Value *arg)
{
	Translator *t = l->j->t;
	LoopMemo *m = v->memo;
	m->nothing = NULL;
	m->taken = false;
	if (!arg || m->undefined || m->solid || !value_is_nothing(t, v->init))
		return;
	m->nothing = arg;
	m->next = t->nothings;
	t->nothings = m;
}

// A type of its own: one that comes around as it went in, although something inside took it for
// another.
static void settle_nothings(Loop *l, struct LoopMemo *outer, bool *again)
{
	l->j->t->nothings = outer;
	for (int i = 0; i < l->n; i++) {
		LoopMemo *m = l->vars[i].memo;
		if (m->nothing && m->taken && !m->undefined && !*again && !l->j->t->stale)
			*again = m->solid = true;
		m->nothing = NULL;
	}
}

// The variable at `at`, from the number and the values of each type.
static Value *join_types(const Loop *l, int at, Builder *b, Value *const *values)
{
	return variant_make(b, values[at], l->vars[at].memo->types.n, values + at + 1);
}

// Translates the body and reads what its variables hold then. False when something failed;
// variables that failed have no next value.
static bool translate_body(Loop *l)
{
	Translator *t = l->j->t;
	Block *body = region_entry(&l->op->regions[1]);
	Outside o;
	region_enter(t, &o, body, l->block);
	t->frame.loop = true;
	t->frame.condition = l->condition;
	Value **args = NEW_ARRAY(t->c->arena, (size_t)l->n, Value *);
	for (int i = 0; i < l->n; i++) {
		LoopVar *v = &l->vars[i];
		args[i] = v->init ? add_arg(l, body, v) : NULL;
		if (args[i])
			args[i]->never_negative = v->memo->grows;
		note_nothing(l, v, args[i]);
		if (v->of >= 0)
			continue;
		binding_save(t, v->binding);
		v->binding->guard = NULL;
		v->binding->value = args[i];
	}
	for (int i = 0; i < l->n; i++) {
		Builder b = builder_at_end(t->c, body, l->j->b.loc);
		if (l->vars[i].split)
			l->vars[i].binding->value = join_types(l, i, &b, args);
	}
	set_lods(l, args);
	bool ok = region_translate(t);
	for (int i = 0; i < l->n; i++) {
		LoopVar *v = &l->vars[i];
		if (v->of >= 0)
			continue;
		if (v->binding->guard && !guard_resolve(l->j, v->name, v->binding))
			ok = false;
		v->next = v->binding->value;
	}
	next_levels(l);
	region_leave(t, &o);
	return ok;
}

// ---- the finished loop ------------------------------------------------------------------------

static void drop_condition(Loop *l)
{
	int last = l->op->noperand - 1;
	op_remove_operand(l->op, last);
	block_remove_arg(region_entry(&l->op->regions[1]), last);
	l->op->nresult = last;
	l->n = last;
}

static bool assert_ran(Builder *b, Value *first, const char *var)
{
	const char *text = arena_printf(b->ctx->arena, "'%s' has another type after no round", var);
	return build_assert(b, first, text);
}

// 1 where the condition holds, else 0.
static Value *as_number(Builder *b, Value *condition)
{
	Value *v = tensor_cast(b, condition, DT_I64);
	return v && v->type->rank
	           ? build1(b, OP_PD_RESHAPE, v, "shape", attr_dims(b->ctx, 0, NULL), NULL)
	           : v;
}

// A variable that the loop replaced before it began holds that value after no round at all: it is
// of two types behind the loop. Gradients have one type: such a run ends with a status.
static bool put_back(Loop *l, Value *first)
{
	Translator *t = l->j->t;
	Builder b = builder_at_end(t->c, t->block, l->j->b.loc);
	for (int i = 0; i < l->n; i++) {
		const LoopVar *v = &l->vars[i];
		if (!v->replaced || !flow_live_after(t, v->name))
			continue;
		if (t->graded)
			return assert_ran(&b, first, v->name);
		Value *const parts[] = {v->replaced, v->binding->value};
		Value *which = as_number(&b, first);
		if (!which)
			return false;
		write_var(l->j, v->name, variant_make(&b, which, 2, parts));
	}
	return true;
}

// The regions end, and the variables hold the results.
static bool finish(Loop *l)
{
	OpJob *j = l->j;
	Context *c = j->t->c;
	Block *cond = region_entry(&l->op->regions[0]), *body = region_entry(&l->op->regions[1]);
	Value **next = NEW_ARRAY(c->arena, (size_t)l->n + 1, Value *), *again = NULL,
		  *first = l->vars[l->n - 1].init;
	const bool needed = !loop_only_decides(l);
	for (int i = 0; i < l->n; i++) {
		next[i] = l->vars[i].next;
		add_arg(l, cond, &l->vars[i]);
	}
	if (!needed && condition_build(j, l->op, l->n, next, &again)) {
		drop_condition(l);
		block_remove_arg(cond, l->n);
	} else {
		again = cond->args[l->n - 1];
	}
	op_append(body, op_new(c, OP_CF_YIELD, j->b.loc, 0, NULL, l->n, next, 0, 0));
	Value **pass = NEW_ARRAY(c->arena, (size_t)l->n + 1, Value *);
	pass[0] = again;
	for (int i = 0; i < l->n; i++)
		pass[i + 1] = cond->args[i];
	op_append(cond, op_new(c, OP_CF_COND_YIELD, j->b.loc, 0, NULL, l->n + 1, pass, 0, 0));
	Value **results = NEW_ARRAY(c->arena, (size_t)l->n + 1, Value *);
	Builder after = builder_at_end(c, j->t->block, j->b.loc);
	for (int i = 0; i < l->n; i++) {
		results[i] = op_result(l->op, i);
		results[i]->name = l->vars[i].name;
	}
	for (int i = 0; i < l->n; i++) {
		if (l->vars[i].of < 0)
			write_var(j, l->vars[i].name,
			          l->vars[i].split ? join_types(l, i, &after, results) : results[i]);
	}
	set_lods(l, results);
	return put_back(l, first);
}

static bool condition_is_right(Loop *l)
{
	const Type *t = l->vars[l->n - 1].init->type;
	int64_t n;
	if (!type_is_tensor(t) || t->dtype != DT_BOOL)
		return job_fail(l->j, "condition '%s' must be a bool tensor", l->condition);
	if (type_const_numel(t, &n) && n != 1)
		return job_fail(l->j, "condition '%s' must be one element, not %" PRId64, l->condition, n);
	return true;
}

// One attempt. 1: done, 0: failed, -1: more is known now.
static int attempt(Loop *l)
{
	Translator *t = l->j->t;
	DiagMark mark = diag_mark(t->c->diag);
	bool failed = t->failed, again = false;
	if (!loop_set_types(l))
		return 0;
	l->op = make_loop(l);
	LoopMemo *outer = t->nothings;
	bool ok = translate_body(l);
	ok &= loop_decide_by_first(l);
	ok = !t->stale && loop_compare_types(l, &again) && ok;
	if (ok && !again)
		again = loop_share_sizes(l);
	settle_nothings(l, outer, &again);
	if (t->stale)
		return 0;
	if (ok && !again)
		return finish(l);
	op_erase(l->op);
	if (!again)
		return 0;
	// What was reported may come from types that were wrong.
	diag_rewind(t->c->diag, mark);
	t->failed = failed;
	return -1;
}

bool while_translate(OpJob *j)
{
	enum { MAX_ATTEMPTS = 64 };
	Loop l = {.j = j, .block = sub_block_of(j)};
	l.condition = input_var(j, "Condition");
	if (l.block < 0)
		return false;
	if (!l.condition)
		return job_fail(j, "input Condition has no variable");
	for (int i = 0; i < MAX_ATTEMPTS; i++) {
		l.n = 0;
		if (!loop_find_vars(&l) || !condition_is_right(&l))
			return false;
		int done = attempt(&l);
		if (done >= 0)
			return done;
	}
	return job_fail(j, "the types of its variables do not settle");
}
