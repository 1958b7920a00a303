// The choice between keeping and computing again (gradient_remat.h). Of each value of the copy that
// the gradient reads: it is kept, which costs its bytes, or its operation runs again, which costs
// the operation's work and needs its operands in the same way. The cheapest choice is a minimum cut
// of a graph with two nodes for that: "the value is needed" and "the operation runs again".
#include "ir/gradient/gradient_remat.h"
#include "ir/base/cut.h"
#include "ir/gradient/gradient_control.h"

#include <math.h>

enum { OPEN_SIZE = 32, OPEN_ROUNDS = 32, SOURCE = 0, SINK, FIRST };

// ---- costs: one is an addition of two elements, or a byte that is pushed and popped -------------

static double elements(const Value *v)
{
	double n = 1;
	if (!v || (v->type->kind != TY_TENSOR && v->type->kind != TY_ARRAY))
		return 1;
	for (int i = 0; i < v->type->rank; i++)
		n *= dim_is_const(v->type->dims[i]) ? (double)v->type->dims[i]->value : OPEN_SIZE;
	return n;
}

static double work_of(const Op *op);

static double region_work(const Op *op)
{
	double work = 1;
	for (int i = 0; i < op->nregion; i++)
		for (const Block *b = op->regions[i].first; b; b = b->next)
			for (const Op *o = b->first; o; o = o->next)
				work += work_of(o);
	return op->code == OP_PD_WHILE ? work * OPEN_ROUNDS : work;
}

static double work_of(const Op *op)
{
	const OpInfo *info = op->info;
	double in = 0, product = 1, out = 0;
	if (!op->noperand || (info->traits & (TRAIT_VIEW | TRAIT_TERMINATOR)))
		return 0;
	if (op->nregion)
		return region_work(op);
	for (int i = 0; i < op->noperand; i++) {
		in += op_operand(op, i) ? elements(op_operand(op, i)) : 0;
		product *= i < 2 && op_operand(op, i) ? elements(op_operand(op, i)) : 1;
	}
	for (int i = 0; i < op->nresult; i++)
		out += elements(&op->results[i]);
	switch (info->kind) {
	case KIND_MAP: return out * info->cost;
	case KIND_INDEX: return out;
	case KIND_CONTRACT: return 2 * sqrt(product * out); // of [m x k] and [k x n]: 2 m k n
	default: return 4 * (in + out);
	}
}

static int64_t bytes_of(const Value *v)
{
	return (int64_t)fmin(elements(v) * (double)dtype_size(v->type->dtype), CUT_NEVER);
}

static int64_t cost_again(const Op *op, RematHow how)
{
	static const double weights[] = {[REMAT_AUTO] = 1, [REMAT_ALWAYS] = 0, [REMAT_NEVER] = 4096};
	return (int64_t)fmin(ceil(work_of(op) * weights[how]), CUT_NEVER / 2);
}

// ---- the graph ----------------------------------------------------------------------------------

typedef struct Graph {
	const Round *r;
	PointerMap nodes; // values and operations of the copy -> nodes
	int n;
	Cut *cut;
	int reader; // the node of what runs, for visit_reads
} Graph;

static int node_of(const Graph *g, const void *what)
{
	return pointer_map_index(&g->nodes, what);
}

static void number(Graph *g, const void *what)
{
	pointer_map_set_index(&g->nodes, what, g->n++);
}

static bool visit_reads(Op *op, void *graph)
{
	Graph *g = graph;
	for (int i = 0; i < op->noperand; i++) {
		const int node = op_operand(op, i) ? node_of(g, op_operand(op, i)) : -1;
		if (node >= 0)
			cut_edge(g->cut, g->reader, node, CUT_NEVER);
	}
	return true;
}

// What op reads, in its regions, too, is needed where op runs.
static void add_reads(Graph *g, Op *op, int reader)
{
	g->reader = reader;
	visit_reads(op, g);
	op_walk(op, visit_reads, g);
}

static bool is_end(const Round *r, const Value *v)
{
	for (int i = 0; i < r->n; i++)
		if (r->carried[i] && r->ends[i] == v)
			return true;
	return false;
}

static bool may_keep(const Round *r, const Value *v)
{
	return v->type->kind == TY_TENSOR && pointer_map_get(&r->pushed, v);
}

// An array costs the elements that a round overwrites, of which nothing is known.
static int64_t bytes_of_start(const Round *r, int i)
{
	if (r->starts[i]->type->kind == TY_TENSOR)
		return bytes_of(r->starts[i]);
	return r->logged[i] ? OPEN_ROUNDS * bytes_of(r->starts[i]) : CUT_NEVER;
}

static Graph graph_of(const Round *r, RematHow how)
{
	Graph g = {.r = r, .n = FIRST};
	Arena *a = r->border->ctx->arena;
	pointer_map_init(&g.nodes, a);
	for (int i = 0; i < r->n; i++)
		number(&g, r->starts[i]);
	for (const Op *op = r->body->first; op != r->border; op = op->next) {
		number(&g, op);
		for (int i = 0; i < op->nresult; i++)
			number(&g, &op->results[i]);
	}
	g.cut = cut_new(a, g.n);
	for (int i = 0; i < r->n; i++) {
		cut_edge(g.cut, node_of(&g, r->starts[i]), SINK, bytes_of_start(r, i));
		if (r->carried[i])
			cut_edge(g.cut, SOURCE, node_of(&g, r->starts[i]), CUT_NEVER);
	}
	Op *op = r->body->first;
	for (; op != r->border; op = op->next) {
		const int again = node_of(&g, op);
		add_reads(&g, op, again);
		if (control_stays(op))
			cut_edge(g.cut, SOURCE, again, CUT_NEVER);
		for (int i = 0; i < op->nresult; i++) {
			const Value *v = &op->results[i];
			if (!is_end(r, v))
				cut_edge(g.cut, node_of(&g, v), again, may_keep(r, v) ? bytes_of(v) : CUT_NEVER);
		}
		cut_edge(g.cut, again, SINK, cost_again(op, how));
	}
	for (; op; op = op->next)
		add_reads(&g, op, SOURCE);
	return g;
}

// Variables that are kept anyway and whose end is needed: their ends need not be.
static bool carry_more(Round *r, const Graph *g)
{
	bool more = false;
	for (int i = 0; i < r->n; i++) {
		const Value *end = r->ends[i], *start = r->starts[i];
		const int node = end ? node_of(g, end) : -1;
		if (r->carried[i] || node < 0 || !end->def || end->type != start->type ||
		    !cut_is_before(g->cut, node) || !cut_is_before(g->cut, node_of(g, start)))
			continue;
		more = r->carried[i] = true;
	}
	return more;
}

void remat_choose(Round *r, RematHow how)
{
	Graph g;
	do {
		g = graph_of(r, how);
		if (cut_solve(g.cut) >= CUT_NEVER)
			return;
	} while (carry_more(r, &g));
	r->kept = NEW_ARRAY(r->border->ctx->arena, (size_t)g.n, Value *);
	for (Op *op = r->body->first; op != r->border; op = op->next)
		for (int i = 0; i < op->nresult; i++)
			if (!is_end(r, &op->results[i]) && cut_is_before(g.cut, node_of(&g, &op->results[i])) &&
			    !cut_is_before(g.cut, node_of(&g, op)))
				r->kept[r->nkept++] = op_result(op, i);
}
