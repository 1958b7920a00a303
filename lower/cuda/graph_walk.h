// Nodes of graphs while they are found: what is one kernel, what belongs to one node. Private to
// graph.c and graph_nodes.c.
#ifndef PDCC_LOWER_CUDA_GRAPH_WALK_H
#define PDCC_LOWER_CUDA_GRAPH_WALK_H

#include "lower/analysis/work.h"
#include "lower/cuda/graph.h"

// A step on its way into a node.
typedef struct GraphCall {
	const Op *op;
	bool own;        // a function of the program
	bool fits;       // one block is enough
	const Dim *work; // where sizes of the run decide that; NULL: it always is
	int narg;        // at most
} GraphCall;

// In a kernel of one block.
typedef struct BlockCall {
	GraphCall call;
	int step; // among those that were found
	Accesses accesses;
} BlockCall;

// A kernel of one block that is being filled.
typedef struct OpenBlock {
	int n, cap, narg, loops;
	BlockCall *calls;
	bool has_loop, has_ops;
	Works works;
} OpenBlock;

// A graph whose nodes are being found.
typedef struct OpenGraph {
	struct OpenGraph *outer;
	int n, cap, depth;
	GraphNode *nodes;
	bool there;        // the last one is the node that is open; else that has no step so far
	Accesses accesses; // of the open node
} OpenGraph;

typedef struct GraphWalk {
	Touches touches; // of the open node, since the last step in a kernel of one block
	Arena *arena;
	Context *ctx;
	Graphs *out;
	OpenGraph *graph;
	OpenBlock *block; // NULL: none
	bool blocks;      // the program has several
	int number, nested, looped;
} GraphWalk;

void graph_begin(GraphWalk *w);
void graph_end(GraphWalk *w, bool repeated);
// A node; inside of it another call changes nothing. Without a step there is none.
void graph_node_begin(GraphWalk *w);
void graph_node_end(GraphWalk *w);
void graph_node_never_counts(GraphWalk *w);
// Has the last node of the graph that launches a function of the program count the rounds, where
// there is one: it touches that, too.
bool graph_node_counts(GraphWalk *w, const Op *back, const Accesses *count);
// A step of op in the node that is open: a launch or whatever; or such as can be part of a kernel.
void graph_launch(GraphWalk *w, const Op *op, bool own);
void graph_step(GraphWalk *w, const GraphCall *call);
void graph_op(GraphWalk *w, const Op *op);
void graph_move(GraphWalk *w, const Op *branch, const EdgeMove *m);
void graph_sizes_clear(GraphWalk *w, const Op *module);
// At most how many arguments the step has whose accesses were noted last.
int graph_args(const GraphWalk *w);
// The kernel of one block that is open ends; and one for a loop.
void graph_steps_end(GraphWalk *w);
void graph_loop_begin(GraphWalk *w, const Op *enter);
void graph_loop_end(GraphWalk *w);
bool graph_in_loop(const GraphWalk *w);
void graph_block_look(GraphWalk *w, int narg); // all threads of it look at something

#endif
