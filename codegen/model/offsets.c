// Where buffers lie in the workspace of a C program whose sizes are open: a local of model_run for
// each place, named after the buffer that is there first in the program, in order of address. An
// offset is said by the one before it and what lies between, so that the lines read as a table.
// Called by run.c and the printers of C.
#include "codegen/model/model.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 97, NEAR = 4 }; // sizes that addresses are ordered for; places an offset may go on

const char *offset_in_run(Codegen *cg, const char *stem, const Dim *offset)
{
	const char *first = pointer_map_get(&cg->firsts, offset);
	if (dim_is_const(offset) || cg->backend->device)
		return dim_in_locals(&cg->plan, offset);
	const int have = pointer_map_index(&cg->offset_at, offset);
	if (have >= 0)
		return cg->offsets[have].name;
	const char *name = names_unique(&cg->locals,
	                                arena_printf(cg->arena, "at_%s", first ? first : stem));
	VEC_ROOM(cg->arena, cg->offsets, cg->noffset, cg->coffset);
	cg->offsets[cg->noffset] = (Offset){offset, name, cg->noffset, INT64_MAX};
	pointer_map_set_index(&cg->offset_at, offset, cg->noffset++);
	return name;
}

static int64_t sample(const Dim *sym, void *arg)
{
	(void)sym;
	(void)arg;
	return SAMPLE;
}

static int by_address(const void *x, const void *y)
{
	const Offset *a = x, *b = y;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

void offsets_order(Codegen *cg)
{
	for (int i = 0; i < cg->noffset; i++)
		if (!dim_eval(cg->offsets[i].dim, sample, NULL, &cg->offsets[i].address))
			cg->offsets[i].address = INT64_MAX;
	if (cg->noffset)
		qsort(cg->offsets, (size_t)cg->noffset, sizeof *cg->offsets, by_address);
	for (int i = 0; i < cg->noffset; i++)
		pointer_map_set_index(&cg->offset_at, cg->offsets[i].dim, i);
}

int64_t offset_address(const Codegen *cg, const Dim *offset)
{
	if (dim_is_const(offset))
		return offset->value;
	const int at = pointer_map_index(&cg->offset_at, offset);
	return at < 0 ? INT64_MAX : cg->offsets[at].address;
}

// What is left of offset i behind one of those in front of it, where that is shorter to say.
static const Dim *rest_of(Codegen *cg, int i, const Offset **behind)
{
	const Dim *best = cg->offsets[i].dim;
	size_t least = strlen(dim_text(cg->ctx, best));
	*behind = NULL;
	for (int j = i - 1; j >= 0 && j >= i - NEAR; j--) {
		const Dim *rest = dim_sub(cg->ctx, cg->offsets[i].dim, cg->offsets[j].dim);
		const size_t length = strlen(dim_text(cg->ctx, rest));
		if (length >= least)
			continue;
		least = length;
		best = rest;
		*behind = &cg->offsets[j];
	}
	return best;
}

void offsets_print(Codegen *cg)
{
	SizeLocals *l = &cg->plan;
	for (int i = 0; i < cg->noffset; i++) {
		const Offset *o = &cg->offsets[i], *behind;
		const Dim *rest = rest_of(cg, i, &behind);
		const char *more = dim_in_locals(l, rest);
		text_line(&l->text, 1, "const int64_t %s = %s%s%s;", o->name, behind ? behind->name : "",
		          behind ? " + " : "", expression_unwrap(cg->arena, more));
		pointer_map_set(&l->names, o->dim, o->name);
	}
}
