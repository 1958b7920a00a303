// For CUDA: which steps of the program are one kernel, and which wait for which. A step is what an
// operation or a branch has done by one launch, or by one call in a kernel; steps of a graph that
// touch the same bytes, sizes or conditions keep their order, all others may run at one time.
// Attributes as in ir/core/waits.h.
#include "ir/core/waits.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/graph.h"

// What an operation gets.
typedef struct Marks {
	int n, cap, npart, cpart, nafter, cafter, nmeet, cmeet, ncount, ccount;
	int64_t *steps, *parts, *counts;
	const char **after, **meet;
	bool has_parts;
} Marks;

typedef struct Waiting {
	Context *ctx;
	Arena *arena;
	PointerMap marks; // Op -> Marks
} Waiting;

static Marks *marks_of(Waiting *w, const Op *op)
{
	Marks *m = (Marks *)pointer_map_get(&w->marks, op); // one of its own
	if (!m)
		pointer_map_set(&w->marks, op, m = NEW(w->arena, Marks));
	return m;
}

// ---- graphs -------------------------------------------------------------------------------------

// The nodes that none waits for, the last one first.
static Waits nodes_last(Waiting *w, int n, const Waits *waits)
{
	bool *awaited = NEW_ARRAY(w->arena, (size_t)n + 1, bool);
	int *list = NEW_ARRAY(w->arena, (size_t)n + 1, int), nlast = 0;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < waits[i].n; k++)
			awaited[waits[i].steps[k]] = true;
	for (int i = n; i-- > 0;)
		if (!awaited[i])
			list[nlast++] = i;
	return (Waits){nlast, list};
}

// As numbers of nodes, the first one first.
static const char *line_of(Waiting *w, const Graph *g, int number, const Waits *waits)
{
	int *list = NEW_ARRAY(w->arena, (size_t)waits->n + 1, int);
	for (int i = 0; i < waits->n; i++)
		list[waits->n - 1 - i] = g->nodes[waits->steps[i]].number;
	return waits_line_text(w->ctx, &(WaitsLine){number, waits->n, list});
}

static void graph_mark(Waiting *w, const Graph *g)
{
	Accesses *accesses = NEW_ARRAY(w->arena, (size_t)g->n + 1, Accesses);
	for (int i = 0; i < g->n; i++)
		accesses[i] = g->nodes[i].accesses;
	Context view = context_of_known_sizes(w->ctx); // offsets with sizes of at least 1
	const Waits *waits = deps_find(&view, w->arena, g->n, accesses);
	for (int i = 0; i < g->n; i++) {
		Marks *m = marks_of(w, g->nodes[i].owner);
		if (!i || (waits[i].n == 1 && waits[i].steps[0] == i - 1))
			continue;
		VEC_ROOM(w->arena, m->after, m->nafter, m->cafter);
		m->after[m->nafter++] = line_of(w, g, g->nodes[i].number, &waits[i]);
	}
	const Waits last = nodes_last(w, g->n, waits);
	if (!g->repeated || last.n < 2)
		return;
	Marks *m = marks_of(w, g->owner);
	VEC_ROOM(w->arena, m->meet, m->nmeet, m->cmeet);
	m->meet[m->nmeet++] = line_of(w, g, g->inside, &last);
}

// ---- the pass -----------------------------------------------------------------------------------

static void steps_mark(Waiting *w, const Graphs *graphs)
{
	for (int i = 0; i < graphs->nstep; i++) {
		const GraphStep *s = &graphs->steps[i];
		Marks *m = marks_of(w, s->op);
		VEC_ROOM(w->arena, m->steps, m->n, m->cap);
		VEC_ROOM(w->arena, m->parts, m->npart, m->cpart);
		m->steps[m->n++] = s->node;
		m->parts[m->npart++] = s->part;
		m->has_parts |= s->part > 0;
	}
	for (int i = 0; i < graphs->ncount; i++) {
		Marks *m = marks_of(w, graphs->counts[i].back);
		VEC_ROOM(w->arena, m->counts, m->ncount, m->ccount);
		m->counts[m->ncount++] = graphs->counts[i].node;
	}
}

static void op_mark(Waiting *w, Op *op)
{
	Context *c = w->ctx;
	static const Marks none;
	const Marks *had = pointer_map_get(&w->marks, op), *m = had ? had : &none;
	op_set_attr(op, "node", m->n ? attr_ints(c, m->n, m->steps) : NULL);
	op_set_attr(op, "apart", m->has_parts ? attr_ints(c, m->n, m->parts) : NULL);
	op_set_attr(op, "after", m->nafter ? attr_strs(c, m->nafter, m->after) : NULL);
	op_set_attr(op, "meet", m->nmeet ? attr_strs(c, m->nmeet, m->meet) : NULL);
	op_set_attr(op, "counts", m->ncount ? attr_ints(c, m->ncount, m->counts) : NULL);
}

// Needs: blocks with places, what one block does, and forms of loops; a target.
// Keeps: everything but attributes.
// Breaks: nothing.
bool pass_cuda_waits(PassContext *p)
{
	Waiting w = {.ctx = p->ctx, .arena = p->ctx->arena};
	Graphs graphs;
	if (!p->target || !p->target->graph || !graphs_find(p->ctx, w.arena, p->module, &graphs))
		return true;
	pointer_map_init(&w.marks, w.arena);
	steps_mark(&w, &graphs);
	for (int i = 0; i < graphs.ngraph; i++)
		graph_mark(&w, &graphs.graphs[i]);
	op_mark(&w, p->module);
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next)
			op_mark(&w, op);
	return true;
}
