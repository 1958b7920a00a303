// The types of what a loop carries: those its arguments get, and what is learnt from those that
// come around. Called by control_while.c.
#include "frontend/control/control_while.h"
#include "frontend/job/flow.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/infer/geometry.h"

enum { MAX_RETYPED = 6 };

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

bool loop_set_types(Loop *l)
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
	v->next = loop_with_rank(l, v, &b, v->next, v->type);
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

bool loop_only_decides(const Loop *l)
{
	return !value_used(body_arg(l, l->n - 1)) && !flow_live_after(l->j->t, l->condition);
}

bool loop_decide_by_first(Loop *l)
{
	LoopVar *v = &l->vars[l->n - 1];
	OpJob j = *l->j;
	j.b = builder_at_end(j.t->c, region_entry(&l->op->regions[1]), j.b.loc);
	if (is_variant(v->next))
		v->next = variant_settle(&j, v->name, v->next);
	if (!v->next || !loop_only_decides(l))
		return true;
	v->next = condition_first(l->j, region_entry(&l->op->regions[1]), v->next, v->type);
	return v->next != NULL;
}

bool loop_compare_types(Loop *l, bool *again)
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

bool loop_share_sizes(Loop *l)
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
