// Minimum cuts: the cheapest edges of a directed graph without which its source does not reach its
// sink (Ford and Fulkerson's theorem; shortest ways first, as Edmonds and Karp do).
#ifndef PDCC_IR_BASE_CUT_H
#define PDCC_IR_BASE_CUT_H

#include "ir/base/base.h"

#define CUT_NEVER (INT64_MAX / 4) // the cost of an edge that must stay

typedef struct Cut Cut;

// A graph of n nodes without edges; node 0 is its source, node 1 its sink.
Cut *cut_new(Arena *a, int n);
void cut_edge(Cut *g, int from, int to, int64_t cost);
// What the cheapest cut costs; at least CUT_NEVER: there is none.
int64_t cut_solve(Cut *g);
// After that: whether a node is on the source's side, of those cuts the one with fewest nodes
// there.
bool cut_is_before(const Cut *g, int node);

#endif
