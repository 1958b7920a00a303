// Minimum cuts (cut.h): flows are pushed along shortest ways until there is no way left.
#include "ir/base/cut.h"
#include "ir/base/vec.h"

typedef struct Edge {
	int to, next; // next: of the same node; -1: the last one
	int64_t room; // what may still flow
} Edge;

struct Cut {
	Arena *arena;
	int nnode, nedge, cap;
	int *first;  // [nnode], edges; -1: none
	Edge *edges; // an edge and the way back, in turn
	int *by;     // [nnode], the edge by which the search came; -1: it did not
	int *queue;  // [nnode]
};

enum { SOURCE, SINK };

Cut *cut_new(Arena *a, int n)
{
	Cut *g = NEW(a, Cut);
	*g = (Cut){.arena = a, .nnode = n};
	g->first = NEW_ARRAY(a, (size_t)n, int);
	g->by = NEW_ARRAY(a, (size_t)n, int);
	g->queue = NEW_ARRAY(a, (size_t)n, int);
	for (int i = 0; i < n; i++)
		g->first[i] = -1;
	return g;
}

static void half_edge(Cut *g, int from, int to, int64_t room)
{
	VEC_ROOM(g->arena, g->edges, g->nedge, g->cap);
	g->edges[g->nedge] = (Edge){to, g->first[from], room};
	g->first[from] = g->nedge++;
}

void cut_edge(Cut *g, int from, int to, int64_t cost)
{
	half_edge(g, from, to, cost < CUT_NEVER ? cost : CUT_NEVER);
	half_edge(g, to, from, 0);
}

// Whether the sink is reached; `by` says how.
static bool search(Cut *g)
{
	int n = 0;
	for (int i = 0; i < g->nnode; i++)
		g->by[i] = -1;
	g->queue[n++] = SOURCE;
	for (int i = 0; i < n && g->by[SINK] < 0; i++)
		for (int e = g->first[g->queue[i]]; e >= 0; e = g->edges[e].next) {
			const int to = g->edges[e].to;
			if (to == SOURCE || g->by[to] >= 0 || !g->edges[e].room)
				continue;
			g->by[to] = e;
			g->queue[n++] = to;
		}
	return g->by[SINK] >= 0;
}

int64_t cut_solve(Cut *g)
{
	int64_t cost = 0;
	while (cost < CUT_NEVER && search(g)) {
		int64_t room = CUT_NEVER;
		for (int at = SINK; at != SOURCE; at = g->edges[g->by[at] ^ 1].to)
			room = g->edges[g->by[at]].room < room ? g->edges[g->by[at]].room : room;
		for (int at = SINK; at != SOURCE; at = g->edges[g->by[at] ^ 1].to) {
			g->edges[g->by[at]].room -= room;
			g->edges[g->by[at] ^ 1].room += room;
		}
		cost += room;
	}
	return cost;
}

bool cut_is_before(const Cut *g, int node)
{
	return node == SOURCE || g->by[node] >= 0;
}
