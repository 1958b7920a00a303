// Where buffers lie in the workspace of a C program whose sizes are open: a member of model_places
// for each place, named after the buffer that is there first in the program, in order of address.
// Called by run.c and the printers of C; c/plan.c prints the struct.
#include "codegen/model/model.h"
#include "ir/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 97 }; // the size that addresses are ordered for

const char *offset_in_run(Codegen *cg, const char *stem, const Dim *offset)
{
	const char *first = pointer_map_get(&cg->firsts, offset);
	if (dim_is_const(offset) || cg->backend->device)
		return dim_in_locals(&cg->plan, offset);
	const int have = pointer_map_index(&cg->offset_at, offset);
	if (have >= 0)
		return arena_printf(cg->arena, "%s.%s", cg->places, cg->offsets[have].name);
	const char *name = names_unique(&cg->place_names, first ? first : stem);
	VEC_ROOM(cg->arena, cg->offsets, cg->noffset, cg->coffset);
	cg->offsets[cg->noffset] = (Offset){offset, name, cg->noffset, INT64_MAX};
	pointer_map_set_index(&cg->offset_at, offset, cg->noffset++);
	return arena_printf(cg->arena, "%s.%s", cg->places, name);
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
