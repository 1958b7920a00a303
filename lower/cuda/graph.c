// The steps of a CUDA program as nodes of graphs, from its course: a conditional part is a graph of
// its own, and so are rounds that are written out. Small steps of a program with branches that
// stand side by side are one kernel, hence one node; where only sizes of a run make them little,
// they are nodes of a graph inside of it, too. Called by passes cuda-waits and check-waits.
#include "lower/cuda/graph.h"
#include "lower/analysis/course.h"
#include "lower/cuda/graph_walk.h"
#include "lower/target/schedule.h"

typedef bool Handler(GraphWalk *w, const CourseEvent *e); // false: the plan says too little

// ---- operations, branches -----------------------------------------------------------------------

static bool op_nodes(GraphWalk *w, const CourseEvent *e)
{
	if (!op_is_silent(e->op))
		graph_op(w, e->op);
	return true;
}

// A kernel that sets sizes, then moves.
static bool edge_nodes(GraphWalk *w, const CourseEvent *e)
{
	const Op *op = e->op;
	const EdgeSizes z = edge_sizes_find(w->arena, op, e->part);
	const EdgeMove *moves;
	const int n = edge_moves_find(w->arena, op, e->part, &moves);
	if (edge_sizes_work(&z, op, e->part)) {
		graph_node_begin(w);
		touch_edge_sizes(&w->touches, &z, op, e->part);
		graph_step(w, &(GraphCall){.op = op, .own = true, .fits = true, .narg = graph_args(w)});
		graph_node_end(w);
	}
	for (int i = 0; i < n; i++)
		graph_move(w, op, &moves[i]);
	return n >= 0;
}

// A step of one thread that a function of the runtime does.
static void thread_step(GraphWalk *w, const Op *op, int narg)
{
	graph_step(w, &(GraphCall){.op = op, .fits = true, .narg = narg});
}

// What takes a condition to its node. Steps behind it wait for no kernel that it is part of.
static void decide(GraphWalk *w, const Op *op, int condition)
{
	graph_node_begin(w);
	touch_tensor(&w->touches, op_operand(op, 0), ACCESS_READ);
	touch_state(&w->touches, ACCESS_READ);
	touch_number(&w->touches, MEMORY_CONDITIONS, condition, ACCESS_WRITE);
	graph_step(w, &(GraphCall){.op = op, .own = op->code == OP_CF_SWITCH, .fits = true, .narg = 3});
	graph_node_end(w);
	graph_steps_end(w);
}

// A conditional node.
static void conditional_begin(GraphWalk *w, const Op *op, int condition)
{
	graph_node_begin(w);
	graph_launch(w, op, false);
	touch_number(&w->touches, MEMORY_CONDITIONS, condition, ACCESS_READ);
}

static void part_begin(GraphWalk *w)
{
	graph_begin(w);
	w->nested++;
}

static void part_end(GraphWalk *w)
{
	graph_steps_end(w);
	w->nested--;
	graph_end(w, false);
}

// ---- loops: begin -------------------------------------------------------------------------------

// Counters of loops are words, too: behind all sizes.
static void touch_counter(GraphWalk *w, int counter, unsigned how)
{
	touch_number(&w->touches, MEMORY_SIZES, -1 - counter, how);
}

// How often the way back may be taken: op sets the counter, or is that way.
static void trips(GraphWalk *w, const Op *op, const CourseLoop *l)
{
	if (op_int(l->back, "max_trip", 0) <= 0)
		return;
	graph_node_begin(w);
	touch_counter(w, l->counter, ACCESS_WRITE);
	if (op == l->back)
		touch_state(&w->touches, ACCESS_UPDATE);
	thread_step(w, op, op == l->back ? 4 : 2);
	graph_node_end(w);
}

static void touch_count(GraphWalk *w, const Op *enter)
{
	touch_tensor(&w->touches, op_operand(enter, enter->noperand - 1), ACCESS_READ);
	touch_state(&w->touches, ACCESS_READ);
}

static void counted_kernel_begin(GraphWalk *w, const Op *enter)
{
	const Dim *rounds = loop_rounds(enter->succs[0].block);
	graph_loop_begin(w, enter);
	if (rounds && dim_is_const(rounds))
		return;
	touch_count(w, enter);
	graph_block_look(w, 2);
}

static void touch_again(GraphWalk *w, const CourseLoop *l)
{
	touch_counter(w, l->counter, ACCESS_WRITE);
	touch_number(&w->touches, MEMORY_CONDITIONS, l->condition, ACCESS_WRITE);
}

static void counted_node_begin(GraphWalk *w, const CourseLoop *l)
{
	graph_node_begin(w);
	touch_count(w, l->enter);
	touch_again(w, l);
	thread_step(w, l->enter, 4);
	graph_node_end(w);
	graph_steps_end(w);
	conditional_begin(w, l->enter, l->condition);
	part_begin(w);
}

// What goes on in nodes of the graph around, one way or another.
static void repeated_begin(GraphWalk *w, const Op *enter)
{
	graph_steps_end(w);
	graph_node_begin(w);
	graph_launch(w, enter, false);
	w->looped++;
}

static bool loop_nodes(GraphWalk *w, const CourseEvent *e)
{
	const CourseLoop *l = e->loop;
	switch (l->form) {
	case LOOP_KERNEL:
		graph_loop_begin(w, l->enter);
		trips(w, l->enter, l);
		break;
	case LOOP_NODE: trips(w, l->enter, l); break;
	case LOOP_COUNTED_KERNEL: counted_kernel_begin(w, l->enter); break;
	case LOOP_COUNTED_NODE: counted_node_begin(w, l); break;
	case LOOP_COUNTED_UNROLLED:
		repeated_begin(w, l->enter);
		graph_begin(w);
		break;
	}
	return true;
}

// ---- loops: tests, end --------------------------------------------------------------------------

static bool test_nodes(GraphWalk *w, const CourseEvent *e)
{
	const CourseLoop *l = e->loop;
	if (l->form == LOOP_NODE) {
		decide(w, l->test, l->condition);
		conditional_begin(w, l->enter, l->condition);
		part_begin(w);
	} else {
		touch_tensor(&w->touches, op_operand(l->test, 0), ACCESS_READ);
		touch_state(&w->touches, ACCESS_READ);
		graph_block_look(w, 2);
	}
	trips(w, l->back, l);
	return true;
}

static bool again_nodes(GraphWalk *w, const CourseEvent *e)
{
	decide(w, e->loop->test, e->loop->condition);
	return true;
}

// At the end of a round: one of the small steps there; else beside what some kernel of the round
// does; else a kernel.
static bool count_nodes(GraphWalk *w, const CourseEvent *e)
{
	const CourseLoop *l = e->loop;
	Touches *t = &w->touches;
	t->accesses = w->block ? t->accesses : (Accesses){0};
	if (!w->block) {
		touch_again(w, l);
		const bool beside = graph_node_counts(w, l->back, &t->accesses);
		t->accesses = (Accesses){0};
		if (beside)
			return true;
	}
	graph_node_begin(w);
	touch_again(w, l);
	thread_step(w, l->back, 2);
	graph_node_end(w);
	return true;
}

static void repeated_end(GraphWalk *w)
{
	graph_end(w, true);
	graph_node_end(w);
}

static bool loop_end_nodes(GraphWalk *w, const CourseEvent *e)
{
	switch (e->loop->form) {
	case LOOP_KERNEL:
	case LOOP_COUNTED_KERNEL: graph_loop_end(w); break;
	case LOOP_COUNTED_NODE:
	case LOOP_NODE:
		part_end(w);
		graph_node_end(w);
		break;
	case LOOP_COUNTED_UNROLLED:
		graph_steps_end(w);
		w->looped--;
		repeated_end(w);
		break;
	}
	return true;
}

// A loop that one block does where it is little, else as rounds of the graph.
static bool either_nodes(GraphWalk *w, const CourseEvent *e)
{
	repeated_begin(w, e->op);
	graph_node_never_counts(w);
	return true;
}

static bool else_nodes(GraphWalk *w, const CourseEvent *e)
{
	graph_steps_end(w);
	w->looped--;
	graph_begin(w);
	return true;
}

static bool either_end_nodes(GraphWalk *w, const CourseEvent *e)
{
	graph_steps_end(w);
	repeated_end(w);
	return true;
}

// ---- if, switch ---------------------------------------------------------------------------------

static bool choice_nodes(GraphWalk *w, const CourseEvent *e)
{
	if (!e->in_kernel) {
		decide(w, e->op, e->condition);
		conditional_begin(w, e->op, e->condition);
		return true;
	}
	touch_tensor(&w->touches, op_operand(e->op, 0), ACCESS_READ);
	if (e->op->code != OP_CF_SWITCH) {
		touch_state(&w->touches, ACCESS_READ);
		graph_block_look(w, 2);
	}
	return true;
}

static bool part_nodes(GraphWalk *w, const CourseEvent *e)
{
	if (!e->in_kernel)
		part_begin(w);
	else if (e->op->code == OP_CF_SWITCH && e->part + 1 < e->op->nsucc)
		graph_block_look(w, 1);
	return true;
}

static bool part_end_nodes(GraphWalk *w, const CourseEvent *e)
{
	if (!e->in_kernel)
		part_end(w);
	return true;
}

static bool choice_end_nodes(GraphWalk *w, const CourseEvent *e)
{
	if (!e->in_kernel)
		graph_node_end(w);
	return true;
}

// ---- the program --------------------------------------------------------------------------------

static Handler *const handlers[COURSE_KINDS] = {
	[COURSE_OP] = op_nodes,
	[COURSE_EDGE] = edge_nodes,
	[COURSE_LOOP] = loop_nodes,
	[COURSE_TEST] = test_nodes,
	[COURSE_AGAIN] = again_nodes,
	[COURSE_COUNT] = count_nodes,
	[COURSE_LOOP_END] = loop_end_nodes,
	[COURSE_EITHER] = either_nodes,
	[COURSE_ELSE] = else_nodes,
	[COURSE_EITHER_END] = either_end_nodes,
	[COURSE_CHOICE] = choice_nodes,
	[COURSE_PART] = part_nodes,
	[COURSE_PART_END] = part_end_nodes,
	[COURSE_CHOICE_END] = choice_end_nodes,
};

bool graphs_find(Context *c, Arena *a, const Op *module, Graphs *out)
{
	const Region *r = &module->regions[0];
	GraphWalk w = {.touches = {.ctx = c, .arena = a},
	               .arena = a,
	               .ctx = c,
	               .out = out,
	               .blocks = r->first != r->last};
	Course course;
	*out = (Graphs){0};
	if (!course_find(a, module, &course))
		return false;
	graph_begin(&w);
	graph_sizes_clear(&w, module);
	for (int i = 0; i < course.n; i++)
		if (!handlers[course.events[i].kind](&w, &course.events[i]))
			return false;
	graph_steps_end(&w);
	graph_end(&w, false);
	return true;
}
