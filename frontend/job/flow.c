// Which variables the blocks of a program read and write: what a loop carries, and what of it is
// needed afterwards. Names follow the scopes of the program: a sub-block sees the variables of the
// blocks around it, and hides those that it declares itself.
#include "frontend/job/flow.h"
#include "ir/base/vec.h"

#include <string.h>

// ---- operators --------------------------------------------------------------------------------

int sub_block(const Paddle__OpDesc *d)
{
	static const char *const names[] = {"sub_block", "backward_block"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const Paddle__OpAttr *a = attr_find(d, names[i]);
		if (a && a->type == PADDLE__ATTR_KIND__BLOCK && a->has_block_idx)
			return a->block_idx;
	}
	// The second is for the operator's gradient, which names it again.
	const Paddle__OpAttr *list = attr_find(d, "blocks");
	const bool has = list && list->type == PADDLE__ATTR_KIND__BLOCKS && list->n_blocks_idx;
	return has ? list->blocks_idx[0] : -1;
}

int sub_block_of(OpJob *j)
{
	int block = sub_block(j->desc);
	if (block < 0)
		job_fail(j, "attribute 'sub_block' is missing, or names no block");
	return block;
}

// Whether the table gives an operator this hook: legacy programs and those of Paddle 3 have other
// names for one thing.
static bool has_hook(const Paddle__OpDesc *d, const char *hook)
{
	const LegacyMap *map = NULL;
	return op_info_by_legacy(d->type, &map) && map->hook && strcmp(map->hook, hook) == 0;
}

// Control flow lists in these slots what its block reads and writes: the block says it better.
static bool is_summary_slot(const Paddle__OpDesc *d, const char *slot)
{
	static const char *const names[] = {"X", "Input", "Out", "Scope", "StepScopes"};
	if (!has_hook(d, "while") && !has_hook(d, "conditional_block"))
		return false;
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(slot, names[i]) == 0)
			return true;
	return false;
}

// Operators that may leave an output, or a part of it, as it was.
static bool writes_partly(const Paddle__OpDesc *d)
{
	return has_hook(d, "array_write") || has_hook(d, "select_output");
}

// ---- blocks -----------------------------------------------------------------------------------

// While a block is looked at: variables that are surely written by now.
typedef struct Walk {
	Translator *t;
	BlockFlow *f;
	NameMap *sure;
	NameMap *likely; // the same, if every loop runs a round
	size_t op;
} Walk;

static void list_add(Translator *t, NameList *l, const char *name)
{
	if (name_map_get(l->set, name))
		return;
	name_map_set(l->set, name, l);
	VEC_ROOM(t->c->arena, l->names, l->n, l->cap);
	l->names[l->n++] = name;
}

static void note_read(Walk *w, const char *var)
{
	name_map_set(w->f->last_read, var, (void *)(uintptr_t)(w->op + 1));
	if (!name_map_get(w->f->declared, var) && !name_map_get(w->sure, var))
		list_add(w->t, &w->f->exposed, var);
}

static void note_need(Walk *w, const char *var)
{
	if (!name_map_get(w->f->declared, var) && !name_map_get(w->likely, var))
		list_add(w->t, &w->f->needed, var);
}

static void note_write(Walk *w, const char *var, bool surely)
{
	if (surely) {
		name_map_set(w->sure, var, w);
		name_map_set(w->likely, var, w);
	}
	if (!name_map_get(w->f->declared, var))
		list_add(w->t, &w->f->writes, var);
}

// By the operator itself, not by its block.
static void note_direct_read(Walk *w, const char *var)
{
	note_read(w, var);
	note_need(w, var);
}

static void walk_reads(Walk *w, const Paddle__OpDesc *d)
{
	for (size_t s = 0; s < d->n_inputs; s++)
		for (size_t k = 0;
		     !is_summary_slot(d, d->inputs[s]->parameter) && k < d->inputs[s]->n_arguments; k++)
			note_direct_read(w, d->inputs[s]->arguments[k]);
	for (size_t s = 0; writes_partly(d) && s < d->n_outputs; s++)
		for (size_t k = 0; k < d->outputs[s]->n_arguments; k++)
			note_direct_read(w, d->outputs[s]->arguments[k]);
	for (size_t i = 0; i < d->n_attrs; i++) {
		const Paddle__OpAttr *a = d->attrs[i];
		if (a->type == PADDLE__ATTR_KIND__VAR && a->var_name)
			note_direct_read(w, a->var_name);
		for (size_t k = 0; a->type == PADDLE__ATTR_KIND__VARS && k < a->n_vars_name; k++)
			note_direct_read(w, a->vars_name[k]);
	}
}

static void walk_sub_block(Walk *w, int block, bool loop)
{
	const BlockFlow *inner = flow_of(w->t, block);
	for (int i = 0; i < inner->exposed.n; i++)
		note_read(w, inner->exposed.names[i]);
	for (int i = 0; i < inner->needed.n; i++)
		note_need(w, inner->needed.names[i]);
	for (int i = 0; i < inner->writes.n; i++) {
		note_write(w, inner->writes.names[i], false);
		if (loop)
			name_map_set(w->likely, inner->writes.names[i], w);
	}
}

static void walk_op(Walk *w, const Paddle__OpDesc *d)
{
	int block = sub_block(d);
	walk_reads(w, d);
	if (block > 0)
		walk_sub_block(w, block, strcmp(d->type, "while") == 0);
	for (size_t s = 0; s < d->n_outputs; s++)
		for (size_t k = 0;
		     !is_summary_slot(d, d->outputs[s]->parameter) && k < d->outputs[s]->n_arguments; k++)
			if (slot_var(d->outputs[s], k))
				note_write(w, d->outputs[s]->arguments[k], !writes_partly(d));
}

static BlockFlow *flow_new(Translator *t)
{
	Arena *a = t->c->arena;
	BlockFlow *f = NEW(a, BlockFlow);
	f->declared = name_map_new(a);
	f->last_read = name_map_new(a);
	f->exposed.set = name_map_new(a);
	f->needed.set = name_map_new(a);
	f->writes.set = name_map_new(a);
	return f;
}

const BlockFlow *flow_of(Translator *t, int block)
{
	if (t->flows[block])
		return t->flows[block];
	const Paddle__BlockDesc *b = t->p->blocks[block];
	Walk w = {.t = t,
	          .f = flow_new(t),
	          .sure = name_map_new(t->c->arena),
	          .likely = name_map_new(t->c->arena)};
	for (size_t i = 0; i < b->n_vars; i++)
		name_map_set(w.f->declared, b->vars[i]->name, b->vars[i]);
	for (w.op = 0; w.op < b->n_ops; w.op++)
		walk_op(&w, b->ops[w.op]);
	w.f->sure = w.sure;
	t->flows[block] = w.f;
	return w.f;
}

bool name_list_has(const NameList *l, const char *name)
{
	return name_map_get(l->set, name) != NULL;
}

// ---- what is needed later ---------------------------------------------------------------------

static bool has_fetches(Translator *t)
{
	const Paddle__BlockDesc *b = t->p->blocks[0];
	for (size_t i = 0; i < b->n_ops; i++)
		if (strncmp(b->ops[i]->type, "fetch", 5) == 0)
			return true;
	return false;
}

bool flow_live_after(Translator *t, const char *var)
{
	const Binding *b = scope_find(t, var);
	if (b && b->desc && var_is_state(b->desc))
		return true;
	for (const Frame *f = &t->frame; f; f = f->outer) {
		const BlockFlow *flow = flow_of(t, f->block);
		uintptr_t last = (uintptr_t)name_map_get(flow->last_read, var);
		if (last > (uintptr_t)f->op + 1 ||
		    (f->later && name_map_get(flow_of(t, f->later)->last_read, var)))
			return true;
		if (name_map_get(flow->declared, var))
			return f->block == 0 && !has_fetches(t);
		// The next round of a loop reads what this one leaves, and so does its condition.
		if (f->loop && (name_list_has(&flow->exposed, var) ||
		                (f->condition && strcmp(f->condition, var) == 0)))
			return true;
	}
	return false;
}

// ---- for gradients -----------------------------------------------------------------------------

static bool has_later_gradient(const Paddle__BlockDesc *b, size_t from)
{
	for (size_t i = from; i < b->n_ops; i++)
		if (!strcmp(b->ops[i]->type, "conditional_block_grad"))
			return true;
	return false;
}

bool branch_keep_reads(OpJob *j, int block)
{
	Translator *t = j->t;
	const Frame *f = &t->frame;
	const NameList *names = &flow_of(t, block)->exposed;
	if (!has_later_gradient(t->p->blocks[f->block], (size_t)f->op) &&
	    !(f->later && has_later_gradient(t->p->blocks[f->later], 0)))
		return true;
	for (int i = 0; i < names->n; i++) {
		const Binding *b = scope_find(t, names->names[i]);
		bool implied = b && b->desc &&
		               (var_is_state(b->desc) ||
		                b->desc->type->type == PADDLE__VAR_KIND__LOD_TENSOR_ARRAY);
		if (b && (b->value || b->guard || implied) && !read_var(j, "Input", names->names[i]))
			return false;
	}
	return true;
}
