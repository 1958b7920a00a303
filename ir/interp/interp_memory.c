// Memory of the interpreter in loops: every round makes new tensors, and nothing frees single ones.
// Now and then, between two rounds, what values hold moves into a new arena and the old one goes,
// so a loop of ten million rounds needs no more memory than one of ten. Called by the hooks of
// loops and branches.
#include "ir/base/vec.h"
#include "ir/interp/hooks.h"

#include <string.h>

typedef struct Tidy {
	Interp *in;
	Arena *to;
	PointerMap moved; // Tensor or CellList to place in `now`
	int n, cap;
	void **now;
} Tidy;

static void remember(Tidy *t, const void *from, void *to)
{
	VEC_ROOM(t->moved.arena, t->now, t->n, t->cap);
	pointer_map_set_index(&t->moved, from, t->n);
	t->now[t->n++] = to;
}

static void *moved_before(const Tidy *t, const void *from)
{
	int i = pointer_map_index(&t->moved, from);
	return i < 0 ? NULL : t->now[i];
}

// LoD may be another tensor's, in either arena; it is small.
static void lod_move(Tidy *t, Tensor *copy)
{
	const Tensor old = *copy;
	copy->lod = NEW_ARRAY(t->to, (size_t)old.nlod, int64_t *);
	copy->lod_len = NEW_ARRAY(t->to, (size_t)old.nlod, size_t);
	for (int i = 0; i < old.nlod; i++) {
		copy->lod_len[i] = old.lod_len[i];
		copy->lod[i] = NEW_ARRAY(t->to, old.lod_len[i] + 1, int64_t);
		memcpy(copy->lod[i], old.lod[i], old.lod_len[i] * sizeof *copy->lod[i]);
	}
}

static Tensor *tensor_move(Tidy *t, Tensor *from)
{
	bool owned = arena_owns(t->in->temp, from),
		 data = from->data && arena_owns(t->in->temp, from->data);
	if (!owned && !data)
		return from;
	Tensor *copy = moved_before(t, from);
	if (copy)
		return copy;
	copy = data ? tensor_new(t->to, from->dtype, from->rank, from->dims) : NEW(t->to, Tensor);
	void *bytes = copy->data;
	*copy = *from;
	if (data)
		copy->data = memcpy(bytes, from->data, tensor_bytes(from));
	if (from->nlod)
		lod_move(t, copy);
	remember(t, from, copy);
	return copy;
}

// Lists of lists are stacks: groups in a stack, no deeper.
static void cell_move(Tidy *t, Cell *c)
{
	if (c->tensor)
		c->tensor = tensor_move(t, c->tensor);
	CellList *list = c->list, *copy = list ? moved_before(t, list) : NULL;
	if (!list || copy) {
		c->list = copy;
		return;
	}
	bool owned = arena_owns(t->in->temp, list);
	copy = owned ? NEW(t->to, CellList) : list;
	remember(t, list, copy);
	Cell *items = list->items;
	copy->n = copy->cap = list->n;
	copy->items = list->n ? NEW_ARRAY(t->to, (size_t)list->n, Cell) : NULL;
	for (int i = 0; i < copy->n; i++) {
		copy->items[i] = items[i];
		cell_move(t, &copy->items[i]);
	}
	c->list = copy;
}

void interp_tidy(Interp *in)
{
	if (arena_bytes(in->temp) < in->full || in->seen)
		return;
	Arena *work = arena_scratch(in->arena);
	Tidy t = {.in = in, .to = arena_scratch(in->arena), .moved.arena = work};
	for (int i = 0; i < in->ncell; i++)
		cell_move(&t, &in->cells[i]);
	for (int i = 0; i < in->nfetch; i++)
		cell_move(&t, &in->fetches[i]);
	for (int i = 0; i < in->nfeed; i++)
		cell_move(&t, &(Cell){.list = &in->feeds[i].list});
	for (LoopFrame *f = in->loops; f; f = f->outer) {
		Cell *vars = NEW_ARRAY(t.to, (size_t)f->n + 1, Cell);
		memcpy(vars, f->vars, (size_t)f->n * sizeof *vars);
		f->vars = vars;
		for (int i = 0; i < f->n; i++)
			cell_move(&t, &f->vars[i]);
	}
	size_t kept = arena_bytes(t.to);
	arena_free(in->temp);
	arena_free(work);
	in->temp = t.to;
	in->full = kept > in->full / 2 ? 2 * kept : in->full;
}
