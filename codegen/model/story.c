// Which operators of the model one operation of the lowered program stands for: its own and those
// that were fused into it, by the locations that passes keep. Called by the printers of comments,
// events and source maps.
#include "codegen/model/model.h"
#include "ir/base/vec.h"

#include <string.h>

enum { MOST = 6 }; // that a comment names

static bool loc_is_behind(const Loc *a, const Loc *b)
{
	return a->block != b->block ? a->block > b->block : a->op > b->op;
}

static void story_add(Codegen *cg, Story *s, const Loc *loc)
{
	if (!loc->type)
		return;
	int at = s->n;
	while (at && loc_is_behind(s->locs[at - 1], loc))
		at--;
	for (int i = at; i && !loc_is_behind(loc, s->locs[i - 1]); i--)
		if (!strcmp(s->locs[i - 1]->type, loc->type))
			return;
	VEC_ROOM(cg->arena, s->locs, s->n, s->cap);
	memmove(s->locs + at + 1, s->locs + at, (size_t)(s->n++ - at) * sizeof *s->locs);
	s->locs[at] = loc;
}

static void region_add(Codegen *cg, Story *s, const Region *r)
{
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			story_add(cg, s, op->loc);
			for (int i = 0; i < op->nregion; i++)
				region_add(cg, s, &op->regions[i]);
		}
}

const Story *op_story(Codegen *cg, const Op *op)
{
	const Story *known = pointer_map_get(&cg->stories, op);
	if (known)
		return known;
	Story *s = NEW(cg->arena, Story);
	story_add(cg, s, op->loc);
	for (int i = 0; i < op->nregion; i++)
		region_add(cg, s, &op->regions[i]);
	pointer_map_set(&cg->stories, op, s);
	return s;
}

const char *op_type_of(Codegen *cg, const Op *op, const char *var)
{
	const Story *s = op_story(cg, op);
	for (int i = 0; i < s->n; i++)
		if (s->locs[i]->var && !strcmp(s->locs[i]->var, var))
			return s->locs[i]->type;
	return op->loc->type;
}

const char *story_text(Codegen *cg, const Op *op, bool names)
{
	const Story *s = op_story(cg, op);
	Text t;
	text_init(&t, cg->arena);
	for (int i = 0; i < s->n && i < MOST; i++) {
		text_printf(&t, "%s%s", i ? " + " : "", s->locs[i]->type);
		if (names && s->locs[i]->var)
			text_printf(&t, " '%s'", s->locs[i]->var);
	}
	if (s->n > MOST)
		text_printf(&t, " + %d more", s->n - MOST);
	return t.len ? t.text : NULL;
}

const char *op_kinds(Codegen *cg, const Op *op)
{
	return story_text(cg, op, false);
}
