// Which variables a loop carries, and what they hold before it. Called by control_while.c.
#include "frontend/control/control_while.h"
#include "frontend/job/array_types.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/base/vec.h"
#include "ir/build/nest.h"

#include <string.h>

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

Value *loop_with_rank(const Loop *l, const LoopVar *v, Builder *b, Value *x, const Type *want)
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
		v->init = loop_with_rank(l, v, &l->j->b, v->init, v->memo->fitted);
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

bool loop_find_vars(Loop *l)
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
