// Places of tensors as the plan's attributes say; views are followed to what they show. Called by
// passes behind the plan, and by printers.
#include "lower/analysis/places.h"

#include <stdlib.h>
#include <string.h>

// Whether a place is of that kind, and the number behind it.
static bool place_number(const char *place, const char *kind, int *number)
{
	const size_t n = strlen(kind);
	if (strncmp(place, kind, n) || place[n] != ' ')
		return false;
	*number = (int)strtol(place + n, NULL, 10);
	return true;
}

// What the word for a place says of it.
static void place_read(Place *p, const char *s)
{
	if ((p->state = !strcmp(s, "state")) || (p->slot = !strcmp(s, "slot")) ||
	    !strcmp(s, "workspace") || place_number(s, "moving", &p->moving))
		p->kind = PLACE_WORKSPACE;
	else if (!strcmp(s, "param"))
		p->kind = PLACE_PARAM;
	else if (place_number(s, "input", &p->col))
		p->kind = PLACE_INPUT;
	else if (place_number(s, "output", &p->col))
		p->kind = PLACE_OUTPUT;
}

Place op_place(const Op *op, int i, bool *view)
{
	Place p = {.kind = PLACE_NONE};
	const Attr *places = op_attr(op, "place"), *offsets = op_attr(op, "offset");
	*view = false;
	if (!places || places->kind != ATTR_STRS || i >= places->n)
		return p;
	const char *s = places->strs[i];
	if (offsets && offsets->kind == ATTR_DIMS && i < offsets->n)
		p.offset = offsets->dims[i];
	if (!strcmp(s, "view") && op_operand(op, 0))
		*view = true;
	else
		place_read(&p, s);
	return p;
}

// Any branch to a block says where the block's arguments lie.
static Place arg_place(const Value *v)
{
	bool view;
	for (const Block *b = v->block->region->first; b; b = b->next)
		for (int s = 0, at = 0; b->last && s < b->last->nsucc; at += (int)b->last->succs[s++].count)
			if (b->last->succs[s].block == v->block)
				return op_place(b->last, at + (int)v->index, &view);
	return (Place){.kind = PLACE_NONE};
}

Place value_place(const Value *v)
{
	bool view = false;
	for (; v->def; v = op_operand(v->def, 0)) {
		Place p = op_place(v->def, (int)v->index, &view);
		p.root = v;
		if (!view)
			return p;
	}
	Place p = arg_place(v);
	p.root = v;
	return p;
}

MoveKind branch_move(const Op *branch, int s, int i)
{
	const Attr *how = op_attr(branch, "moves");
	int at = i;
	for (int k = 0; k < s; k++)
		at += (int)branch->succs[k].count;
	if (!how || how->kind != ATTR_STRS || at >= how->n)
		return MOVE_COUNT;
	return (MoveKind)enum_find(&enum_move, how->strs[at]);
}

bool places_equal(const Place *a, const Place *b)
{
	if (a->moving || b->moving)
		return a->moving == b->moving;
	return a->kind == b->kind && a->col == b->col && a->offset == b->offset;
}

bool places_meet(const Place *a, const Place *b)
{
	return a->kind == b->kind && a->kind != PLACE_NONE && a->col == b->col &&
	       a->moving == b->moving && a->offset == b->offset;
}

const Op *value_slot(const Value *v)
{
	const Place p = value_place(v);
	for (const Use *u = p.slot && p.root == v ? v->uses : NULL; u; u = u->next)
		if (u->user->code == OP_LOOP_UPDATE && u->index == 2)
			return u->user;
	return NULL;
}

bool op_updates(const Op *op)
{
	return op->code == OP_LOOP_UPDATE || op->code == OP_KERNEL_SCATTER;
}

int op_place_operand(const Op *op)
{
	if (op->code == OP_KERNEL_POOL_GRADIENT && op_bool(op, "tiled", false) && op_operand(op, 1))
		return 1;
	return op->code == OP_LOOP_APPEND || op_updates(op) ? 0 : -1;
}

bool update_keeps(const Op *op)
{
	const Value *data = op_operand(op, 0);
	const Place old = value_place(data), place = value_place(&op->results[0]);
	return places_equal(&old, &place) || (data->def && data->def->code == OP_LOOP_EMPTY);
}
