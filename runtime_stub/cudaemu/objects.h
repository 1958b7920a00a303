// What api.cc makes and queue.cc runs: nodes, graphs and streams.
#ifndef CUDAEMU_OBJECTS_H
#define CUDAEMU_OBJECTS_H

#include "cudaemu.h"

enum NodeKind {
	NODE_EMPTY,
	NODE_KERNEL,
	NODE_COPY,
	NODE_SET,
	NODE_GRAPH,
	NODE_CHILD,
	NODE_CONDITIONAL
};

struct Condition {
	unsigned value, initial;
	bool assign, bound;
	cudaGraph_t root;
	Condition *next;
};

struct Edge {
	cudaGraphNode_t from, to;
	const Edge *next; // from the same node
};

struct CUgraphNode_st {
	NodeKind kind;
	cudaemu::Launch launch;
	void *to;
	const void *from;
	size_t bytes;
	int byte;
	cudaGraphExec_t exec;
	Condition *condition;
	cudaGraphConditionalNodeType type;
	unsigned nbody;
	cudaGraph_t *bodies, child;
	size_t ndep;
	Edge *deps;
	const Edge *after; // to nodes that depend on it
	cudaGraph_t graph;
	size_t number;        // in its graph
	cudaGraphNode_t next; // in its graph or stream
	size_t waits;         // for so many nodes, while its graph runs
};

struct CUgraph_st {
	cudaGraphNode_t first, last;
	cudaGraph_t root; // itself, unless it is the body of a conditional node
	Condition *conditions;
	uint64_t
		*before; // for each node the set of those that edges put before it; NULL: not asked so far
	int execs;   // made from it
	bool destroyed; // once there are none
	bool running;
};

struct CUgraphExec_st {
	cudaGraph_t graph;
};

struct CUstream_st {
	int device;
	cudaGraph_t recorded; // what is queued goes there
	cudaGraphNode_t first, last;
	cudaStream_t next;
};

// All of queue.cc.
namespace cudaemu
{

cudaGraphNode_t node_new(NodeKind kind);
void kernel_shared_most(void *kernel, size_t bytes); // that its launches may ask for
cudaError_t kernel_node(cudaGraphNode_t *out, void *kernel, dim3 grid, dim3 block,
                        void *const *args, size_t shared);

cudaGraph_t graph_new(cudaGraph_t root); // NULL: it is no body
void graph_free(cudaGraph_t g);          // now, or once nothing is left that was made from it
void graph_release(cudaGraph_t g);       // that something was made from
cudaError_t graph_add(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t ndep,
                      cudaGraphNode_t n);

cudaStream_t stream_new();
void stream_free(cudaStream_t s);
cudaStream_t stream_check(cudaStream_t s); // which exists
cudaError_t stream_queue(cudaStream_t s, cudaGraphNode_t n);
void stream_drain(cudaStream_t s);
void all_drain();

} // namespace cudaemu

#endif
