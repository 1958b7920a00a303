// Loops. A legacy while writes outer variables from its block, and goes on as long as its condition
// variable holds. Here those variables are arguments of both regions of a pd.while, and its
// results.
//
// What a loop carries may change its size from round to round. The first attempt gives the
// arguments the types that come in; sizes that are others at the end of the body are found at run
// time in the next attempt. What was learnt is kept in memory for the next time that this loop is
// translated (it may stand in another loop, or the translation starts over).
#include "frontend/control/control.h"
#include "frontend/control/variants.h"
#include "frontend/job/array_types.h"
#include "frontend/job/flow.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <inttypes.h>
#include <string.h>

// What is known of a loop variable; outlives attempts and restarts.
typedef struct LoopMemo {
	uint32_t open;         // axes whose size changes
	const Type *undefined; // of a variable without a value before the loop, or with one that nobody
	                       // looks at
	int retyped;           // how often that was learnt
	const Value *nothing;  // the body's argument, while only a mark came in and no type is known
	bool taken;            // an inner operator took it for something of another type
	bool solid;            // the type that it comes with is its own
	struct LoopMemo *next; // in Translator.nothings
	const Type *fitted;    // of one element: with the number of axes that comes around
	int levels;            // of LoD that changes from round to round
	bool bare;             // its LoD gets lost
	VariantTypes types;    // of a variable that changes its type from round to round
	bool grows;            // begins at 0 or above, and never becomes less
	const Dim *sizes[MAX_RANK]; // of open axes: another variable's, which it always equals
	uint32_t apart;             // axes of which that was not so in the end
} LoopMemo;

enum { MAX_RETYPED = 6 };

typedef struct LoopVar {
	const char *name;
	Binding *binding; // outside
	Value *init, *next;
	const Type *type;
	LoopMemo *memo;
	Value *replaced; // the value of another type that went in: zeros stand for it
	int of,
		level; // the offsets of a LoD level of the variable at this place; -1: an ordinary variable
	bool split; // of several types: this is which one, and those behind it (`of`) are the values
} LoopVar;

typedef struct Loop {
	OpJob *j;
	int block; // the body, in the program
	const char *condition;
	int n, cap;
	LoopVar *vars; // the condition is the last one
	Op *op;
} Loop;

// ---- which variables --------------------------------------------------------------------------

static LoopMemo *memo_of(Loop *l, const char *var)
{
	Translator *t = l->j->t;
	const char *key = context_str(
		t->c, arena_printf(t->c->arena, "loop %d %d %s", t->block_index, t->frame.op, var));
	LoopMemo *m = name_map_get(t->memo, key);
	if (!m) {
		m = NEW(t->c->arena, LoopMemo);
		name_map_set(t->memo, key, m);
	}
	return m;
}

static bool is_implied(const Binding *b)
{
	return b->desc &&
	       (var_is_state(b->desc) || b->desc->type->type == PADDLE__VAR_KIND__LOD_TENSOR_ARRAY);
}

// A value of loop variable v with the axes that it has in all rounds.
static Value *with_rank(const Loop *l, const LoopVar *v, Builder *b, Value *x, const Type *want)
{
	if (!ranks_differ(x->type, want))
		return x;
	if (strcmp(v->name, l->condition) != 0)
		diag_warning(b->ctx->diag, b->loc, "variable '%s' is %s also in rounds that leave %s",
		             v->name, type_text(b->ctx, want), type_text(b->ctx, x->type));
	return tensor_reshape(b, x, want->rank, want->dims);
}

bool value_is_nothing(Translator *t, const Value *v)
{
	if (is_undefined(v))
		return true;
	for (LoopMemo *m = t->nothings; m; m = m->next)
		if (m->nothing == v)
			return m->taken = true;
	return false;
}

static Value *init_undefined(Loop *l, LoopVar *v)
{
	return v->init = undefined_value(&l->j->b, v->memo->undefined);
}

// What the variable holds before the loop is one of its types.
static bool split_types(Loop *l, LoopVar *v)
{
	v->split = true;
	return value_is_nothing(l->j->t, v->init) || variant_types_add(&v->memo->types, v->init) ||
	       job_fail(l->j, "loop variable '%s' has too many types", v->name);
}

// Without a value before the loop.
static bool init_nothing(Loop *l, LoopVar *v)
{
	if (v->memo->types.n) {
		v->init = undefined_value(&l->j->b, v->memo->types.types[0]);
		return split_types(l, v);
	}
	return !v->memo->undefined || init_undefined(l, v);
}

// Whether what stands in front of the loop is nothing of the type that later comes.
static bool init_is_undefined(const LoopVar *v)
{
	return v->memo->undefined &&
	       (is_undefined(v->init) || !types_go_together(v->init->type, v->memo->undefined));
}

// Whether the variable has a value before the loop.
static bool init_is_there(const LoopVar *v, bool exposed)
{
	const Binding *b = v->binding;
	return b->value || b->guard || b->broken || is_implied(b) || exposed;
}

// Nothing goes in, in place of a value of another type that nobody looks at.
static bool init_replaced(Loop *l, LoopVar *v)
{
	const bool held = !value_is_nothing(l->j->t, v->init) && v->init->type->kind == TY_TENSOR;
	v->replaced = held ? v->init : NULL;
	return init_undefined(l, v) != NULL;
}

// The value before the loop. Without one the variable is left out of the first attempt; then its
// type is known, and undefined_value() stands for it. So it does for a value of another type that
// nobody looks at.
static bool find_init(Loop *l, LoopVar *v, bool exposed)
{
	if (!init_is_there(v, exposed))
		return init_nothing(l, v);
	const bool condition = !strcmp(v->name, l->condition);
	v->init = condition ? read_var(l->j, "Condition", v->name) : read_any(l->j, "X", v->name);
	if (!v->init)
		return false;
	if (v->memo->types.n || is_variant(v->init))
		return split_types(l, v);
	if (v->memo->fitted)
		v->init = with_rank(l, v, &l->j->b, v->init, v->memo->fitted);
	if (v->init && init_is_undefined(v))
		return init_replaced(l, v);
	return v->init != NULL;
}

static LoopVar *next_var(Loop *l, const char *name)
{
	Translator *t = l->j->t;
	VEC_ROOM(t->c->arena, l->vars, l->n, l->cap);
	LoopVar *v = &l->vars[l->n++];
	*v = (LoopVar){.name = context_str(t->c, name), .memo = memo_of(l, name), .of = -1};
	return v;
}

// Offsets that change are carried beside the variable. Without any before the loop its rows are one
// sequence.
static bool add_levels(Loop *l, int of)
{
	Translator *t = l->j->t;
	Value *init = l->vars[of].init;
	int levels = init ? l->vars[of].memo->levels : 0;
	const Lod *lod = lod_of(t, init);
	for (int i = 0; i < levels; i++) {
		LoopVar *v = next_var(l, arena_printf(t->c->arena, "%s.lod%d", l->vars[of].name, i));
		v->of = of;
		v->level = i;
		if (lod && lod->n == levels)
			v->init = lod_offsets(l->j, lod, i);
		else if (init->type->kind == TY_ARRAY)
			v->init = undefined_value(&l->j->b, array_level_type(t, v->name, NULL));
		else
			v->init = lod_one(l->j, init, i + 1 == levels);
		if (!v->init)
			return false;
	}
	return true;
}

// The values of each type are carried beside the number of the one that counts.
static bool add_types(Loop *l, int of)
{
	Builder *b = &l->j->b;
	const VariantTypes list = l->vars[of].memo->types;
	Value *all = l->vars[of].init;
	const bool nothing = value_is_nothing(l->j->t, all);
	for (int k = 0; k < list.n; k++) {
		const char *name = arena_printf(b->ctx->arena, "%s.type%d", l->vars[of].name, k);
		LoopVar *v = next_var(l, name);
		v->of = of;
		v->level = k;
		v->init = nothing ? NULL : variant_alternative(&list, k, all);
		if (!v->init)
			v->init = undefined_value(b, list.types[k]);
	}
	const bool array = list.types[0]->kind == TY_ARRAY;
	l->vars[of].init = !nothing ? variant_which(b, &list, all)
	                   : array  ? mixed_kinds_none(b)
	                            : build_full(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0), 0);
	return l->vars[of].init != NULL;
}

static bool add_var(Loop *l, const char *name, bool exposed)
{
	int at = l->n;
	LoopVar *v = next_var(l, name);
	v->binding = write_binding(l->j->t, name);
	if (!find_init(l, v, exposed))
		return false;
	return l->vars[at].split ? add_types(l, at) : add_levels(l, at);
}

// A variable is carried when a round needs what the one before left, or somebody does after the
// loop.
static bool find_vars(Loop *l)
{
	Translator *t = l->j->t;
	const BlockFlow *f = flow_of(t, l->block);
	bool ok = true;
	for (int i = 0; i < f->writes.n; i++) {
		const char *name = f->writes.names[i];
		bool exposed = name_list_has(&f->exposed, name);
		if (strcmp(name, l->condition) != 0 && (exposed || flow_live_after(t, name)))
			ok &= add_var(l, name, exposed);
	}
	return add_var(l, l->condition, true) && ok;
}

// ---- one attempt ------------------------------------------------------------------------------

static Value *add_arg(Loop *l, Block *b, const LoopVar *v)
{
	Value *arg = block_add_arg(l->j->t->c, b, v->type);
	arg->name = v->name;
	arg->stop_gradient = v->init->stop_gradient;
	return arg;
}

static SizeStem loop_stem(const Loop *l, const LoopVar *v)
{
	return size_stem(l->j->t->c, l->j->b.loc, v->name);
}

// The open axes that are as long as those of other variables.
static const Type *with_shared_sizes(Context *c, const Type *t, const LoopMemo *m)
{
	const Dim *dims[MAX_RANK];
	if (t->kind != TY_TENSOR)
		return t;
	for (int d = 0; d < t->rank; d++)
		dims[d] = m->sizes[d] && m->open >> d & 1 ? m->sizes[d] : t->dims[d];
	return type_tensor(c, t->dtype, t->rank, dims, t->lod);
}

// Sizes that are known to change get symbols.
static bool set_types(Loop *l)
{
	for (int i = 0; i < l->n; i++) {
		LoopVar *v = &l->vars[i];
		if (!v->init)
			continue;
		v->type = v->init->type;
		if (v->memo->open)
			v->type = type_join(l->j->t->c, v->type, v->type, loop_stem(l, v), &v->memo->open);
		if (!v->type)
			return job_fail(l->j, "loop variable '%s' changes in ways that are not supported",
			                v->name);
		v->type = with_shared_sizes(l->j->t->c, v->type, v->memo);
	}
	return true;
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

// The number and the values of each type that come around. False: there is a type that is new.
static bool next_types(Loop *l, int at)
{
	LoopVar *v = &l->vars[at];
	Builder b = builder_at_end(l->j->t->c, region_entry(&l->op->regions[1]), l->j->b.loc);
	Value *all = v->next;
	const int n = v->memo->types.n;
	if (!all || !variant_types_add(&v->memo->types, all) || v->memo->types.n > n)
		return false;
	v->next = variant_which(&b, &v->memo->types, all);
	for (int k = 0; k < n; k++) {
		Value *here = variant_alternative(&v->memo->types, k, all);
		v[k + 1].next = here ? here : undefined_value(&b, v->memo->types.types[k]);
	}
	return true;
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

// ---- types of what is carried -----------------------------------------------------------------

// Whether a loop variable is of one type in every round.
static bool has_one_type(const Loop *l, const LoopVar *v)
{
	return l->j->t->graded || v == &l->vars[l->n - 1] || v->of >= 0;
}

// Where a variable has one type, a value of one element may come around with another number of axes
// than it came with: that one counts from the start, unless it differs again.
static void fit_rank(Loop *l, LoopVar *v, bool *again)
{
	if (!has_one_type(l, v) || !ranks_differ(v->next->type, v->type))
		return;
	if (!v->memo->fitted) {
		v->memo->fitted = v->next->type;
		*again = true;
	}
	Builder b = builder_at_end(l->j->t->c, region_entry(&l->op->regions[1]), l->j->b.loc);
	v->next = with_rank(l, v, &b, v->next, v->type);
}

// LoD that comes around as another one is carried in the next attempt.
static void compare_lod(Loop *l, LoopVar *v, bool *again)
{
	const Lod *next = lod_of(l->j->t, v->next);
	int levels = next ? next->n : 0;
	if (v->of >= 0 || !v->next || !v->init || v->memo->bare || v == &l->vars[l->n - 1])
		return;
	if (levels && levels == v->memo->levels)
		return;
	if (!v->memo->levels && lod_same(next, lod_of(l->j->t, v->init)))
		return;
	v->memo->bare = !levels || v->memo->levels; // gone, or another number of levels each time
	v->memo->levels = v->memo->bare ? 0 : levels;
	*again = true;
}

// The variable begins as what comes around, since what went in is not looked at.
static bool retype(LoopVar *v)
{
	LoopMemo *m = v->memo;
	if (m->retyped == MAX_RETYPED)
		return false;
	m->undefined = v->next->type;
	m->retyped++;
	return true;
}

// Where only the mark of a variable without a value went in.
static bool retype_mark(Loop *l, LoopVar *v)
{
	const Type *known = v->memo->undefined, *now = v->next->type;
	if (v->init->type == now || (known && types_go_together(known, now)) ||
	    !value_is_nothing(l->j->t, v->init))
		return false;
	return retype(v);
}

// Where every round writes the variable before it reads it. After no round it holds what went in:
// put_back.
static bool retype_unseen(Loop *l, LoopVar *v)
{
	const BlockFlow *f = flow_of(l->j->t, l->block);
	if (v == &l->vars[l->n - 1] || name_list_has(&f->needed, v->name))
		return false;
	// A round that leaves it alone leaves what went in.
	if (!l->j->t->graded && !name_map_get(f->sure, v->name) &&
	    !value_is_nothing(l->j->t, v->init) && v->init->type->kind == TY_TENSOR &&
	    v->next->type->kind == TY_TENSOR)
		return false;
	return retype(v);
}

static Value *body_arg(const Loop *l, int var)
{
	int n = 0;
	for (int i = 0; i < var; i++)
		n += l->vars[i].init != NULL;
	return region_entry(&l->op->regions[1])->args[n];
}

// A counter whose sign somebody asked for, and that only grows: they may know in the next attempt.
static void learn_growth(LoopVar *v, Value *arg, bool *again)
{
	if (!arg->sign_asked || v->memo->grows || !value_never_negative(v->init, 8))
		return;
	arg->never_negative = true;
	v->memo->grows = value_never_negative(v->next, 8);
	arg->never_negative = false;
	*again |= v->memo->grows;
}

// Types of which one does not go with the others. False when they are too many, or no tensors'.
static bool learn_types(Loop *l, LoopVar *v)
{
	VariantTypes *list = &v->memo->types;
	if (has_one_type(l, v))
		return false;
	return (!v->init || value_is_nothing(l->j->t, v->init) || variant_types_add(list, v->init)) &&
	       variant_types_add(list, v->next);
}

// Who reads the condition sees all of it; then it is one element, or the run ends.
static bool only_decides(const Loop *l)
{
	return !value_used(body_arg(l, l->n - 1)) && !flow_live_after(l->j->t, l->condition);
}

// False after a diagnostic: a condition without elements has no first one.
static bool decide_by_first(Loop *l)
{
	LoopVar *v = &l->vars[l->n - 1];
	OpJob j = *l->j;
	j.b = builder_at_end(j.t->c, region_entry(&l->op->regions[1]), j.b.loc);
	if (is_variant(v->next))
		v->next = variant_settle(&j, v->name, v->next);
	if (!v->next || !only_decides(l))
		return true;
	v->next = condition_first(l->j, region_entry(&l->op->regions[1]), v->next, v->type);
	return v->next != NULL;
}

// Compares what comes around with what went in. *again: more was learnt, another attempt is needed.
static bool compare_types(Loop *l, bool *again)
{
	Context *c = l->j->t->c;
	bool ok = true;
	for (int i = 0; i < l->n; i++) {
		LoopVar *v = &l->vars[i];
		uint32_t before = v->memo->open;
		if (!v->next)
			continue;
		if (v->split ? !next_types(l, i) : is_variant(v->next)) {
			*again = true;
			ok = ok && (v->split || learn_types(l, v));
			continue;
		}
		if (!v->init) {
			*again |= v->memo->undefined != v->next->type;
			v->memo->undefined = v->next->type;
			continue;
		}
		if (retype_mark(l, v)) {
			*again = true;
			continue;
		}
		fit_rank(l, v, again);
		compare_lod(l, v, again);
		const Type *joined = type_join(c, v->type, v->next->type, loop_stem(l, v), &v->memo->open);
		if (!joined && retype_unseen(l, v)) {
			*again = true;
			continue;
		}
		if (!joined && learn_types(l, v)) {
			*again = true;
			continue;
		}
		if (!joined)
			ok = job_fail(l->j, "loop variable '%s' comes back with another type: %s, not %s",
			              v->name, type_text(c, v->next->type), type_text(c, v->type));
		*again |= v->memo->open != before;
		learn_growth(v, body_arg(l, i), again);
		feed_open(l->j->t, v->name, v->init, v->memo->open);
	}
	return ok;
}

// An open size of a loop variable.
typedef struct OpenAxis {
	LoopMemo *memo;
	int axis;
} OpenAxis;

static int open_axes(const Loop *l, OpenAxis *axes, LoopSize *sizes)
{
	int n = 0;
	for (int i = 0; i < l->n; i++) {
		const LoopVar *v = &l->vars[i];
		if (!v->init || !v->next || v->type->kind != TY_TENSOR)
			continue;
		for (int d = 0; d < v->type->rank; d++)
			if (v->memo->open >> d & 1 && !(v->memo->apart >> d & 1)) {
				axes[n] = (OpenAxis){v->memo, d};
				sizes[n++] = (LoopSize){v->type->dims[d], v->init->type->dims[d],
				                        v->next->type->dims[d], n};
			}
	}
	return n;
}

// Variables that grow together have one size in the next attempt. What was taken for equal and is
// not, since more is known now, is not taken for that again. Whether anything changed.
static bool share_sizes(Loop *l)
{
	Arena *a = l->j->t->c->arena;
	OpenAxis *axes = NEW_ARRAY(a, (size_t)l->n * MAX_RANK, OpenAxis);
	LoopSize *sizes = NEW_ARRAY(a, (size_t)l->n * MAX_RANK, LoopSize);
	const int n = open_axes(l, axes, sizes);
	bool wrong = false, shared = false;
	dims_together(l->j->t->c, n, sizes);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			if (sizes[i].sym == sizes[k].sym && sizes[i].same != sizes[k].same) {
				axes[i].memo->apart |= UINT32_C(1) << axes[i].axis;
				axes[i].memo->sizes[axes[i].axis] = NULL;
				wrong = true;
			}
	for (int i = 0; i < n && !wrong; i++)
		if (sizes[i].sym != sizes[sizes[i].same].sym) {
			axes[i].memo->sizes[axes[i].axis] = sizes[sizes[i].same].sym;
			shared = true;
		}
	return wrong || shared;
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
	const NamedAttr message = {"message", attr_str(b->ctx, text)};
	return build_op(b, OP_PD_ASSERT, 1, &first, 1, &message) != NULL;
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
	const bool needed = !only_decides(l);
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
	if (!set_types(l))
		return 0;
	l->op = make_loop(l);
	LoopMemo *outer = t->nothings;
	bool ok = translate_body(l);
	ok &= decide_by_first(l);
	ok = !t->stale && compare_types(l, &again) && ok;
	if (ok && !again)
		again = share_sizes(l);
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
		if (!find_vars(&l) || !condition_is_right(&l))
			return false;
		int done = attempt(&l);
		if (done >= 0)
			return done;
	}
	return job_fail(j, "the types of its variables do not settle");
}
