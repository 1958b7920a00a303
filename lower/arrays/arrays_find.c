// Which arrays a program has, and which of them share their memory: those that a write, a loop or a
// branch makes of each other. Called by arrays.c.
#include "lower/arrays/parts.h"

// ---- the table ----------------------------------------------------------------------------------

static ArrayGroup *group_slot(const Arrays *a, const Value *v)
{
	size_t mask = (size_t)a->cgroup - 1;
	size_t i = (size_t)(((uint64_t)(uintptr_t)v * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
	while (a->groups[i].array && a->groups[i].array != v)
		i = (i + 1) & mask;
	return &a->groups[i];
}

ArrayGroup *array_group(Arrays *a, const Value *v)
{
	ArrayGroup *g = a->cgroup ? group_slot(a, v) : NULL;
	return g && g->array ? g : NULL;
}

static void group_add(Arrays *a, const Value *v)
{
	if (2 * (a->ngroup + 1) > a->cgroup) {
		int old = a->cgroup;
		ArrayGroup *groups = a->groups;
		a->cgroup = old ? 2 * old : 64;
		a->groups = NEW_ARRAY(a->arena, (size_t)a->cgroup, ArrayGroup);
		for (int i = 0; i < old; i++)
			if (groups[i].array)
				*group_slot(a, groups[i].array) = groups[i];
	}
	ArrayClass *c = NEW(a->arena, ArrayClass);
	c->name = v->name;
	c->id = a->ngroup;
	c->group = -1;
	*a->tail = c;
	a->tail = &c->next;
	*group_slot(a, v) = (ArrayGroup){.array = v, .c = c};
	a->ngroup++;
}

// ---- classes ------------------------------------------------------------------------------------

ArrayClass *array_class(ArrayClass *c)
{
	while (c->same)
		c = c->same;
	return c;
}

static void arrays_join(Arrays *a, const Value *x, const Value *y)
{
	ArrayGroup *g = x ? array_group(a, x) : NULL, *h = y ? array_group(a, y) : NULL;
	if (!g || !h)
		return;
	ArrayClass *c = array_class(g->c), *d = array_class(h->c);
	if (c == d)
		return;
	ArrayClass *first = c->id < d->id ? c : d, *other = first == c ? d : c;
	if (!first->name)
		first->name = other->name;
	other->same = first;
}

static bool find_visit(Op *op, void *arg)
{
	Arrays *a = arg;
	for (int i = 0; i < op->nresult; i++)
		if (type_is_array(op->results[i].type))
			group_add(a, &op->results[i]);
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (int i = 0; i < b->narg; i++)
				if (type_is_array(b->args[i]->type))
					group_add(a, b->args[i]);
	return true;
}

static bool join_visit(Op *op, void *arg)
{
	Arrays *a = arg;
	if (op->code == OP_PD_ARRAY_WRITE || op->code == OP_PD_ARRAY_SLICE)
		arrays_join(a, op_operand(op, 0), &op->results[0]);
	for (int r = 0; r < op->nregion; r++) {
		const Op *end = region_end(op, r);
		const Block *b = op->regions[r].first;
		int first = end && end->code == OP_CF_COND_YIELD;
		for (int i = 0; i < op->nresult; i++) {
			if (end && first + i < end->noperand)
				arrays_join(a, &op->results[i], op_operand(end, first + i));
			if (op->code == OP_PD_WHILE && b && i < b->narg)
				arrays_join(a, &op->results[i], b->args[i]);
		}
	}
	for (int i = 0; op->code == OP_PD_WHILE && i < op->nresult; i++)
		arrays_join(a, &op->results[i], op_operand(op, i));
	return true;
}

// ---- elements -----------------------------------------------------------------------------------

// An element of that type joins the class.
static bool class_add_element(ArrayClass *c, const Op *op, const Type *t)
{
	if (c->typed && (c->dtype != t->dtype || c->rank != t->rank)) {
		diag_error(op->ctx->diag, op->loc,
		           "'%s': elements of different types or numbers of axes cannot be compiled",
		           op->info->name);
		return false;
	}
	for (int d = 0; d < t->rank; d++) {
		c->open = c->open || dim_is_found(t->dims[d]) || (c->typed && c->dims[d] != t->dims[d]);
		c->dims[d] = t->dims[d];
	}
	c->dtype = t->dtype;
	c->rank = t->rank;
	c->typed = true;
	return true;
}

typedef struct Learn {
	Arrays *a;
	bool copies; // look at what was read from the same array
	bool ok;
} Learn;

// Whether v was read from an array of that class, so that it says nothing new about the sizes of
// elements.
static bool value_is_copy(Arrays *a, const ArrayClass *c, const Value *v)
{
	const Op *def = v->def;
	const ArrayGroup *g = def && def->code == OP_PD_ARRAY_READ ? array_group(a, op_operand(def, 0))
	                                                           : NULL;
	return g && array_class(g->c) == c;
}

static bool learn_visit(Op *op, void *arg)
{
	Learn *l = arg;
	const ArrayGroup *g = op->nresult == 1 ? array_group(l->a, &op->results[0]) : NULL;
	ArrayClass *c = g ? array_class(g->c) : NULL;
	if (!c)
		return true;
	if (op->code == OP_PD_ARRAY_WRITE) {
		const Value *x = op_operand(op, 2);
		if (value_is_copy(l->a, c, x) == l->copies && !(l->copies && c->typed))
			l->ok &= class_add_element(c, op, x->type);
	} else if (op->code == OP_PD_FEED && !l->copies) {
		l->ok &= class_add_element(c, op, op->results[0].type);
	}
	return true;
}

// Nothing is ever put into an array of that class; its type will do.
static void class_add_default(ArrayClass *c, const Type *t)
{
	c->typed = true;
	c->dtype = t->dtype;
	c->rank = t->rank;
	for (int d = 0; d < t->rank; d++) {
		c->dims[d] = t->dims[d];
		c->open = c->open || dim_is_found(t->dims[d]);
	}
}

bool arrays_find(Arrays *a)
{
	op_walk(a->p->module, find_visit, a);
	op_walk(a->p->module, join_visit, a);
	Learn l = {a, false, true};
	op_walk(a->p->module, learn_visit, &l);
	l.copies = true;
	op_walk(a->p->module, learn_visit, &l);
	for (int i = 0; i < a->cgroup; i++) {
		ArrayGroup *g = &a->groups[i];
		if (!g->array)
			continue;
		g->c = array_class(g->c);
		if (!g->c->typed)
			class_add_default(g->c, g->array->type);
	}
	return l.ok;
}
