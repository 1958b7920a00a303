// Nests of a few elements, as functions that the C compiler may inline: programs over vectors of
// two or three elements are little else. Results are put together in local arrays, which become
// registers, and stored once all is read: so nothing needs to be `restrict` (see PD_APART), and the
// compiler sees what goes from one nest to the next. And where the elements of any nest stand.
// Called by nest.c, and by what prints its loops in other forms.
#include "codegen/nest/nest.h"

#include <inttypes.h>
#include <string.h>

// The most elements, and rounds of reductions; and the most elements that are written out, which
// gcc does not take for vectors then, to take them apart again.
enum { TINY_ELEMENTS = 8, TINY_WORK = 64, WRITTEN_ELEMENTS = 4 };

const char *nest_result(Nest *n, int i)
{
	if (!n->tiny)
		return kernel_result(n->k, i);
	return n->op->nresult == 1 ? "result" : arena_printf(n->k->arena, "result%d", i);
}

const char *nest_result_index(Nest *n)
{
	const char *sum = NULL;
	Arena *a = n->k->arena;
	for (int i = 0; i < n->nloop; i++) {
		const Loop *loop = &n->layout[i];
		const char *name = scalars_name(&n->s, loop->arg);
		if (!name)
			return NULL;
		if (sum && !dim_is(loop->extent, 1))
			sum = strcmp(sum, "1") ? arena_printf(a, "%s * %s", sum, kernel_dim(n->k, loop->extent))
			                       : kernel_dim(n->k, loop->extent);
		if (!strcmp(name, "0"))
			continue;
		sum = !sum ? name : arena_printf(a, i + 1 < n->nloop ? "(%s + %s)" : "%s + %s", sum, name);
	}
	return sum ? sum : "0";
}

// How often the reductions in a region go round, when it runs so many times; more than TINY_WORK
// where it is not known.
static int64_t reductions_work(const Region *r, int64_t times)
{
	int64_t work = 0;
	for (const Op *op = r->first->first; op && work <= TINY_WORK; op = op->next) {
		const Attr *extents = op->code == OP_LOOP_REDUCE ? op_attr(op, "extents") : NULL;
		int64_t rounds = times;
		for (int i = 0; extents && i < extents->n && rounds <= TINY_WORK; i++)
			rounds = dim_is_const(extents->dims[i]) ? rounds * extents->dims[i]->value
			                                        : TINY_WORK + 1;
		for (int i = 0; i < op->nregion && rounds <= TINY_WORK; i++)
			work += reductions_work(&op->regions[i], rounds);
		work += extents ? rounds : 0;
	}
	return work;
}

int64_t nest_tiny_elements(const Nest *n)
{
	int64_t elements;
	if (!n->nloop || n->k->cg->backend->device || op_attr(n->op, "parallel") ||
	    !type_const_numel(n->op->results[0].type, &elements) || elements > TINY_ELEMENTS ||
	    reductions_work(&n->op->regions[0], elements) > TINY_WORK)
		return 0;
	return elements;
}

bool nest_loop_is_written(const Nest *n, int level)
{
	const Loop *loop = &n->loops[level];
	int64_t elements;
	return n->tiny && !loop->first && !loop->step && dim_is_const(loop->extent) &&
	       type_const_numel(n->op->results[0].type, &elements) && elements <= WRITTEN_ELEMENTS &&
	       !nest_has_reductions(n);
}

void nest_tiny_store(Nest *n, int64_t elements)
{
	for (int64_t e = 0; e < elements && elements <= WRITTEN_ELEMENTS; e++)
		for (int i = 0; i < n->op->nresult; i++)
			text_line(n->out, 1, "%s[%" PRId64 "] = %s[%" PRId64 "];", kernel_result(n->k, i), e,
			          nest_result(n, i), e);
	if (elements <= WRITTEN_ELEMENTS)
		return;
	text_line(n->out, 1, "for (int64_t i = 0; i < %" PRId64 "; i++) {", elements);
	for (int i = 0; i < n->op->nresult; i++)
		text_line(n->out, 2, "%s[i] = %s[i];", kernel_result(n->k, i), nest_result(n, i));
	text_line(n->out, 1, "}");
}

void nest_tiny_declare(Nest *n, int64_t elements)
{
	for (int i = 0; i < n->op->nresult; i++)
		text_line(n->out, 1, "%s %s[%" PRId64 "];", dtype_c_memory(n->op->results[i].type->dtype),
		          nest_result(n, i), elements);
}
