// Nodes of graphs: which steps are one kernel of one block, and what is a node. Called by graph.c.
#include "ir/base/vec.h"
#include "lower/cuda/graph_walk.h"
#include "lower/target/schedule.h"

// Whether a node launches a function of the program first, which may count rounds.
enum { OWN_NONE, OWN_FIRST, OWN_NEVER };

// ---- graphs -------------------------------------------------------------------------------------

// What was noted belongs to the node that is open. Returns it.
static Accesses noted(GraphWalk *w)
{
	const Accesses had = w->touches.accesses;
	w->touches.accesses = (Accesses){0};
	if (w->graph->depth)
		accesses_add_all(w->arena, &w->graph->accesses, &had);
	return had;
}

void graph_begin(GraphWalk *w)
{
	if (w->graph)
		noted(w);
	OpenGraph *g = NEW(w->arena, OpenGraph);
	*g = (OpenGraph){.outer = w->graph};
	w->graph = g;
}

void graph_end(GraphWalk *w, bool repeated)
{
	OpenGraph *g = w->graph, *outer = g->outer;
	Graphs *out = w->out;
	const GraphNode *around = outer && outer->there ? &outer->nodes[outer->n - 1] : NULL;
	VEC_ROOM(w->arena, out->graphs, out->ngraph, out->cgraph);
	out->graphs[out->ngraph++] = (Graph){.n = g->n,
	                                     .nodes = g->nodes,
	                                     .repeated = repeated,
	                                     .inside = around ? around->number : -1,
	                                     .owner = around ? around->owner : NULL};
	w->graph = outer;
	for (int i = 0; outer && outer->depth && i < g->n; i++)
		accesses_add_all(w->arena, &outer->accesses, &g->nodes[i].accesses);
}

// ---- nodes --------------------------------------------------------------------------------------

void graph_node_begin(GraphWalk *w)
{
	OpenGraph *g = w->graph;
	if (g->depth++)
		return;
	g->there = false;
	g->accesses = w->touches.accesses = (Accesses){0};
}

void graph_node_end(GraphWalk *w)
{
	OpenGraph *g = w->graph;
	if (g->depth == 1) {
		noted(w);
		if (g->there)
			g->nodes[g->n - 1].accesses = g->accesses;
		g->there = false;
	}
	g->depth--;
}

static GraphNode *node_here(GraphWalk *w, const Op *op)
{
	OpenGraph *g = w->graph;
	if (!g->there) {
		VEC_ROOM(w->arena, g->nodes, g->n, g->cap);
		g->nodes[g->n++] = (GraphNode){.number = ++w->number, .owner = op};
		g->there = true;
	}
	return &g->nodes[g->n - 1];
}

void graph_node_never_counts(GraphWalk *w)
{
	GraphNode *node = &w->graph->nodes[w->graph->n - 1];
	if (node->own == OWN_NONE)
		node->own = OWN_NEVER;
}

static void node_launches(GraphWalk *w, bool own)
{
	GraphNode *node = &w->graph->nodes[w->graph->n - 1];
	if (own && w->nested && node->own == OWN_NONE)
		node->own = OWN_FIRST;
}

bool graph_node_counts(GraphWalk *w, const Op *back, const Accesses *count)
{
	OpenGraph *g = w->graph;
	Graphs *out = w->out;
	int i = g->n;
	while (i > 0 && g->nodes[i - 1].own != OWN_FIRST)
		i--;
	if (!i)
		return false;
	accesses_add_all(w->arena, &g->nodes[i - 1].accesses, count);
	VEC_ROOM(w->arena, out->counts, out->ncount, out->ccount);
	out->counts[out->ncount++] = (GraphCount){back, g->nodes[i - 1].number};
	return true;
}

// ---- steps --------------------------------------------------------------------------------------

static int step_add(GraphWalk *w, const Op *op)
{
	Graphs *out = w->out;
	const int node = node_here(w, op)->number;
	VEC_ROOM(w->arena, out->steps, out->nstep, out->cstep);
	out->steps[out->nstep] = (GraphStep){.op = op, .node = node};
	return out->nstep++;
}

void graph_launch(GraphWalk *w, const Op *op, bool own)
{
	step_add(w, op);
	node_launches(w, own);
}

bool graph_in_loop(const GraphWalk *w)
{
	return w->block && w->block->loops;
}

static void block_open(GraphWalk *w)
{
	w->block = NEW(w->arena, OpenBlock);
	*w->block = (OpenBlock){0};
	graph_node_begin(w);
}

int graph_args(const GraphWalk *w)
{
	return w->touches.ntensor + 2 * w->touches.nsymbol + 2;
}

void graph_block_look(GraphWalk *w, int narg)
{
	w->block->narg += narg;
}

// Ends the kernel that is open, and its node: the step whose accesses were noted is of another one.
static void node_split(GraphWalk *w)
{
	const Accesses step = w->touches.accesses;
	w->touches.accesses = (Accesses){0};
	graph_steps_end(w);
	graph_node_end(w);
	graph_node_begin(w);
	w->touches.accesses = step;
}

void graph_step(GraphWalk *w, const GraphCall *call)
{
	if (!graph_in_loop(w)) {
		if (w->block && (!call->fits || w->block->narg + call->narg > CUDA_MAX_PARAMS ||
		                 (w->block->has_loop && call->work)))
			node_split(w);
		if (!call->fits || !w->blocks) {
			graph_launch(w, call->op, call->own);
			return;
		}
		if (!w->block)
			block_open(w);
		w->block->has_ops |= call->own;
		if (call->work)
			works_add(w->ctx, &w->block->works, call->work);
	}
	OpenBlock *b = w->block;
	VEC_ROOM(w->arena, b->calls, b->n, b->cap);
	b->narg += call->narg;
	b->calls[b->n++] = (BlockCall){*call, step_add(w, call->op), noted(w)};
}

// Where sizes of the run do not make all steps little, they wait for what they need: surely little
// ones side by side are one launch.
static void either(GraphWalk *w, const OpenBlock *b)
{
	graph_node_never_counts(w);
	graph_begin(w);
	for (int i = 0; i < b->n;) {
		graph_node_begin(w);
		const int number = node_here(w, b->calls[i].call.op)->number;
		do {
			accesses_add_all(w->arena, &w->touches.accesses, &b->calls[i].accesses);
			w->out->steps[b->calls[i].step].part = number;
		} while (!b->calls[i++].call.work && i < b->n && !b->calls[i].call.work);
		graph_node_end(w);
	}
	graph_end(w, true);
}

void graph_steps_end(GraphWalk *w)
{
	OpenBlock *b = w->block;
	if (!b || b->loops)
		return;
	w->block = NULL;
	if (b->n > 1 && b->works.n)
		either(w, b);
	else if (b->n)
		node_launches(w, b->n > 1 || b->has_loop || b->calls[0].call.own);
	graph_node_end(w);
}

// In the body of another loop everything waits for everything; elsewhere a kernel that needs what
// small operations gave must not wait for a loop.
static bool loop_stands_alone(const GraphWalk *w)
{
	return !w->nested && !graph_in_loop(w);
}

void graph_loop_begin(GraphWalk *w, const Op *enter)
{
	const OpenBlock *b = w->block;
	if (b && !b->loops &&
	    (b->narg > CUDA_MAX_PARAMS - CUDA_MAX_LOOP_PARAMS || b->works.n ||
	     (loop_stands_alone(w) && b->has_ops)))
		graph_steps_end(w);
	if (!w->block)
		block_open(w);
	w->block->loops++;
	w->block->has_loop = true;
	step_add(w, enter);
}

void graph_loop_end(GraphWalk *w)
{
	if (!--w->block->loops && loop_stands_alone(w))
		graph_steps_end(w);
}

// ---- operations ---------------------------------------------------------------------------------

// Where only a run tells whether work is little, a text for either is worth it where it is gone
// through again and again.
static const Dim *work_here(const GraphWalk *w, const Dim *work)
{
	return work && (work_is_little(work) || w->nested || w->looped) ? work : NULL;
}

static const Dim *op_work(const GraphWalk *w, const Op *op)
{
	const Attr *work = op_attr(op, "block_work");
	return work ? work_here(w, work->dim) : NULL;
}

// What moves from v; of a branch, which knows what is too much for one block; else NULL.
static const Dim *move_work(const GraphWalk *w, const Value *v, const Op *branch)
{
	const Attr *much = branch ? op_attr(branch, "much") : NULL;
	const Dim *most = dim_at_most(w->ctx, move_most(w->ctx, v));
	return work_may_be_little(w->ctx, most, much ? much->dim : NULL) ? work_here(w, most) : NULL;
}

static GraphCall call_of(const Op *op, bool own, const Dim *work, int narg)
{
	return (GraphCall){op, own, work != NULL, work && !work_is_little(work) ? work : NULL, narg};
}

// The step that moves v; `to` takes its place where `back` is not NULL.
static void transfer(GraphWalk *w, const Op *op, const Value *v, const Type *t, const Type *back,
                     const Op *branch)
{
	MoveCount count, other = {0};
	const bool sized = move_count(w->ctx, t, &count) && count.n > 0;
	if (sized && back && back->dtype == t->dtype && !move_count(w->ctx, back, &other))
		other.n = 0;
	for (int i = 0; sized && i < count.n; i++)
		touch_size(&w->touches, count.sizes[i], ACCESS_READ);
	for (int i = 0; i < other.n; i++)
		touch_size(&w->touches, other.sizes[i], ACCESS_READ);
	const GraphCall call = call_of(op, false, move_work(w, v, branch),
	                               3 + (sized ? 2 * (1 + MOVE_SIZES) : 0));
	graph_step(w, &call);
}

void graph_move(GraphWalk *w, const Op *branch, const EdgeMove *m)
{
	if (!move_work(w, m->value, branch))
		graph_steps_end(w);
	graph_node_begin(w);
	touch_place(&w->touches, &m->to, ACCESS_WRITE);
	touch_place(&w->touches, &m->from, m->back ? ACCESS_WRITE : ACCESS_READ);
	transfer(w, branch, m->value, m->arg->type, m->back, branch);
	graph_node_end(w);
}

// What is fetched without having been computed where the caller wants it.
static void fetch(GraphWalk *w, const Op *op)
{
	const Value *v = op_operand(op, 0);
	const Place p = value_place(v);
	const int col = (int)op_int(op, "col", 0);
	if (p.kind == PLACE_OUTPUT && p.col == col)
		return;
	touch_tensor(&w->touches, v, ACCESS_READ);
	touch_output(&w->touches, col, ACCESS_WRITE);
	if (type_is_found(v->type))
		transfer(w, op, v, v->type, NULL, NULL);
	else
		graph_launch(w, op, false);
}

// What a run stores in a parameter is copied where it was not computed in place.
static void store(GraphWalk *w, const Op *op)
{
	const Value *v = op_operand(op, 0);
	const Attr *offsets = op_attr(op, "offset");
	const Place from = value_place(v);
	const Place to = {.kind = PLACE_WORKSPACE,
	                  .state = true,
	                  .root = from.root,
	                  .offset = offsets && offsets->kind == ATTR_DIMS ? offsets->dims[0] : NULL};
	if (from.state && from.offset == to.offset)
		return;
	touch_tensor(&w->touches, v, ACCESS_READ);
	touch_place(&w->touches, &to, ACCESS_WRITE);
	graph_launch(w, op, false);
}

void graph_op(GraphWalk *w, const Op *op)
{
	const Dim *work = op_work(w, op);
	if (w->block && !w->block->loops && !work)
		graph_steps_end(w);
	graph_node_begin(w);
	if (op->code == OP_PD_FETCH) {
		fetch(w, op);
	} else if (op->code == OP_BUILTIN_SET_PARAMETER) {
		store(w, op);
	} else {
		const bool own = !cuda_op_is_library(op) || !op_attr(op, "epilogue");
		touch_op(&w->touches, op);
		const GraphCall call = call_of(op, own, work, graph_args(w));
		graph_step(w, &call);
	}
	graph_node_end(w);
}

// ---- sizes --------------------------------------------------------------------------------------

// Whether a run finds a size: an operation or a branch sets it.
static bool sizes_are_found(const Op *module)
{
	for (const Block *b = module->regions[0].first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			if (type_is_found(b->args[i]->type))
				return true;
		for (const Op *op = b->first; op; op = op->next)
			if (op->code == OP_LOOP_BIND || op->code == OP_LOOP_CAPACITY)
				return true;
	}
	return false;
}

// Sizes that a run finds are 0 until it does.
void graph_sizes_clear(GraphWalk *w, const Op *module)
{
	if (!sizes_are_found(module))
		return;
	const Access all = {MEMORY_SIZES, ACCESS_WRITE, dim_const(w->ctx, 0),
	                    dim_const(w->ctx, INT32_MAX)};
	graph_node_begin(w);
	accesses_add(w->arena, &w->touches.accesses, all);
	graph_step(w, &(GraphCall){.op = module, .fits = true, .narg = 2});
	graph_node_end(w);
}
