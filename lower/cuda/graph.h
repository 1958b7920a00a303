// A program as graphs of CUDA: which steps are launched, in which order, which of them are one
// node, and what nodes touch. Behind the plan and cuda-steps. Leaves the IR as it was. Uses
// lower/analysis, lower/target and ir/.
#ifndef PDCC_LOWER_CUDA_GRAPH_H
#define PDCC_LOWER_CUDA_GRAPH_H

#include "lower/analysis/touches.h"

// A node: a launch or several, one behind the other, or a conditional node with all inside.
// Numbered in the order of the program through all graphs, from 1. Sizes that a run finds are
// cleared first, which is a step of the module.
typedef struct GraphNode {
	int number;
	const Op *owner; // that has its first step
	int own;         // private
	Accesses accesses;
} GraphNode;

// Nodes that may wait for each other: the program, a part of it, the steps of a kernel one by one.
typedef struct Graph {
	int n;
	const GraphNode *nodes;
	bool repeated; // in a loop of the host, or a part of one: all wait for all of the round before
	int inside;    // number of the node that it is in; -1: of none
	const Op *owner; // of that node
} Graph;

// A step of an operation, which has as many as it has launches, in the order of the program.
typedef struct GraphStep {
	const Op *op;
	int node; // that it is part of
	int part; // it is a node of its own, or of some, where sizes of a run are not little; 0: never
} GraphStep;

// The node of a round that counts the rounds of a loop beside what it does.
typedef struct GraphCount {
	const Op *back; // of the loop
	int node;
} GraphCount;

typedef struct Graphs {
	int ngraph, cgraph;
	Graph *graphs;
	int nstep, cstep;
	GraphStep *steps;
	int ncount, ccount;
	GraphCount *counts;
} Graphs;

// False where blocks do not nest, or the plan says too little: then there is no such program.
bool graphs_find(Context *c, Arena *a, const Op *module, Graphs *out);

#endif
