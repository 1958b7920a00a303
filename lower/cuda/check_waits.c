// For CUDA: whether the program's steps are those that cuda-waits numbered, and each comes after
// all whose bytes, sizes or conditions it needs as they leave them, whoever wrote the attributes
// (ir/core/waits.h). Where that is so it leaves everything as it is.
#include "ir/base/map.h"
#include "ir/core/waits.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/graph.h"

#include <string.h>

typedef struct Check {
	Context *ctx;
	Arena *arena;
	PointerMap next; // Op -> how many of its numbers were met
} Check;

// ---- numbers ------------------------------------------------------------------------------------

static int64_t number_at(const Op *op, const char *attr, int i)
{
	const Attr *list = op_attr(op, attr);
	return list && list->kind == ATTR_INTS && i < list->n ? list->ints[i] : 0;
}

static bool numbers_fail(const Op *op)
{
	diag_error(op->ctx->diag, op->loc, "%s: its steps are not those of the nodes %s",
	           op->info->name, op_attr(op, "node") ? "that it says" : "of the program");
	return false;
}

static bool steps_are_numbered(Check *k, const Graphs *graphs)
{
	for (int i = 0; i < graphs->nstep; i++) {
		const GraphStep *s = &graphs->steps[i];
		const int had = pointer_map_index(&k->next, s->op), at = had < 0 ? 0 : had;
		if (number_at(s->op, "node", at) != s->node || number_at(s->op, "apart", at) != s->part)
			return numbers_fail(s->op);
		pointer_map_set_index(&k->next, s->op, at + 1);
	}
	for (int i = 0; i < graphs->ncount; i++) {
		const GraphCount *count = &graphs->counts[i];
		const Attr *list = op_attr(count->back, "counts");
		bool there = false;
		for (int n = 0; list && n < list->n; n++)
			there |= list->ints[n] == count->node;
		if (!there)
			return numbers_fail(count->back);
	}
	return true;
}

static bool none_is_left(const Check *k, const Op *op)
{
	const Attr *list = op_attr(op, "node");
	const int had = pointer_map_index(&k->next, op);
	return (list ? list->n : 0) == (had < 0 ? 0 : had) || numbers_fail(op);
}

// ---- order --------------------------------------------------------------------------------------

// Nodes of a graph, and for each the set of those that are done before it begins.
typedef struct Order {
	const Graph *graph;
	size_t words;
	uint64_t **before;
	bool *awaited; // by a later one
} Order;

static int node_find(const Graph *g, int number)
{
	for (int i = 0; i < g->n; i++)
		if (g->nodes[i].number == number)
			return i;
	return -1;
}

static void wait_for(Order *o, int i, int k)
{
	o->before[i][k / 64] |= UINT64_C(1) << (k % 64);
	o->awaited[k] = true;
	for (size_t w = 0; w < o->words; w++)
		o->before[i][w] |= o->before[k][w];
}

static bool node_order(Check *k, Order *o, int i)
{
	const GraphNode *node = &o->graph->nodes[i];
	WaitsLine line;
	o->before[i] = NEW_ARRAY(k->arena, o->words, uint64_t);
	if (!waits_find(k->arena, node->owner, "after", node->number, &line)) {
		if (i)
			wait_for(o, i, i - 1);
		return true;
	}
	for (int n = 0; n < line.n; n++) {
		const int at = node_find(o->graph, line.list[n]);
		if (at < 0 || at >= i) {
			diag_error(k->ctx->diag, node->owner->loc,
			           "%s: node %d waits for %d, which is no node in front of it in its graph",
			           node->owner->info->name, node->number, line.list[n]);
			return false;
		}
		wait_for(o, i, at);
	}
	return true;
}

// Whether node i comes after all that it needs.
static bool node_waits(Check *k, Context *view, const Order *o, int i)
{
	const GraphNode *node = &o->graph->nodes[i];
	for (int n = 0; n < i; n++) {
		const GraphNode *other = &o->graph->nodes[n];
		if ((o->before[i][n / 64] >> (n % 64) & 1) ||
		    !accesses_meet(view, &node->accesses, &other->accesses))
			continue;
		diag_error(k->ctx->diag, node->owner->loc,
		           "%s: node %d does not wait for node %d ('%s'), which touches the same bytes",
		           node->owner->info->name, node->number, other->number, other->owner->info->name);
		return false;
	}
	return true;
}

// A round is over when all that nobody waits for is.
static bool round_ends(Check *k, const Order *o)
{
	const Graph *g = o->graph;
	WaitsLine line = {0};
	int last = 0, met = 0;
	if (!g->repeated)
		return true;
	const bool meets = waits_find(k->arena, g->owner, "meet", g->inside, &line);
	for (int i = 0; i < g->n; i++)
		last += !o->awaited[i];
	for (int n = 0; n < line.n; n++) {
		const int at = node_find(g, line.list[n]);
		met += at >= 0 && !o->awaited[at];
	}
	if (met == last || (!meets && last < 2))
		return true;
	diag_error(k->ctx->diag, g->owner->loc, "%s: a round of node %d ends before its last nodes",
	           g->owner->info->name, g->inside);
	return false;
}

static bool graph_is_in_order(Check *k, const Graph *g)
{
	Order o = {.graph = g, .words = (size_t)g->n / 64 + 1};
	Context view = context_of_known_sizes(k->ctx); // offsets with sizes of at least 1
	o.before = NEW_ARRAY(k->arena, (size_t)g->n + 1, uint64_t *);
	o.awaited = NEW_ARRAY(k->arena, (size_t)g->n + 1, bool);
	for (int i = 0; i < g->n; i++)
		if (!node_order(k, &o, i) || !node_waits(k, &view, &o, i))
			return false;
	return round_ends(k, &o);
}

// Needs: what cuda-waits leaves; a target.
// Keeps: everything.
// Breaks: nothing.
bool pass_check_waits(PassContext *p)
{
	Check k = {.ctx = p->ctx, .arena = p->ctx->arena};
	Graphs graphs;
	if (!p->target || !p->target->graph || !graphs_find(p->ctx, k.arena, p->module, &graphs))
		return true;
	pointer_map_init(&k.next, k.arena);
	if (!steps_are_numbered(&k, &graphs) || !none_is_left(&k, p->module))
		return false;
	for (const Block *b = p->module->regions[0].first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (!none_is_left(&k, op))
				return false;
	for (int i = 0; i < graphs.ngraph; i++)
		if (!graph_is_in_order(&k, &graphs.graphs[i]))
			return false;
	return true;
}
