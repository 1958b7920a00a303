// The steps of a CUDA program as nodes of graphs. Goes through the blocks as the program runs: a
// conditional part is a graph of its own, and so are rounds that are written out. Small steps of a
// program with branches that stand side by side are one kernel, hence one node; where only sizes of
// a run make them little, they are nodes of a graph inside of it, too. Called by pass cuda-waits.
#include "lower/cuda/graph.h"
#include "lower/cuda/graph_walk.h"
#include "lower/target/schedule.h"

// ---- branches -----------------------------------------------------------------------------------

// Where a walk ended, beside blocks: at the test of a loop, at the end of the program, or where
// nothing is known.
static const Block at_test, at_end, at_error;

static const Block *walk(GraphWalk *w, const Block *b);

// A kernel that sets sizes, then moves.
static bool edge_walk(GraphWalk *w, const Op *op, int s)
{
	const EdgeSizes z = edge_sizes_find(w->arena, op, s);
	const EdgeMove *moves;
	const int n = edge_moves_find(w->arena, op, s, &moves);
	if (edge_sizes_work(&z, op, s)) {
		graph_node_begin(w);
		touch_edge_sizes(&w->touches, &z, op, s);
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

// ---- while --------------------------------------------------------------------------------------

// Counters of loops are words, too: behind all sizes.
static void touch_counter(GraphWalk *w, int counter, unsigned how)
{
	touch_number(&w->touches, MEMORY_SIZES, -1 - counter, how);
}

static void trips(GraphWalk *w, const Op *op, const Op *back, int counter)
{
	if (op_int(back, "max_trip", 0) <= 0)
		return;
	graph_node_begin(w);
	touch_counter(w, counter, ACCESS_WRITE);
	if (op == back)
		touch_state(&w->touches, ACCESS_UPDATE);
	thread_step(w, op, op == back ? 4 : 2);
	graph_node_end(w);
}

// From the head to the branch of the loop, which it returns; NULL: there is none. `condition` of a
// node; less than 0: in a kernel.
static const Op *condition_walk(GraphWalk *w, const Block *head, int condition)
{
	if (walk(w, head) != &at_test)
		return NULL;
	const Op *test = w->test;
	if (condition >= 0) {
		decide(w, test, condition);
		return test;
	}
	touch_tensor(&w->touches, op_operand(test, 0), ACCESS_READ);
	touch_state(&w->touches, ACCESS_READ);
	graph_block_look(w, 2);
	return test;
}

static bool round_walk(GraphWalk *w, const Block *head, const Op *test)
{
	return edge_walk(w, test, 0) && walk(w, test->succs[0].block) == head;
}

static const Op *loop_kernel(GraphWalk *w, const Op *enter, int counter)
{
	const Block *head = enter->succs[0].block;
	const Op *back = loop_back(head);
	graph_loop_begin(w, enter);
	trips(w, enter, back, counter);
	const Op *test = condition_walk(w, head, -1);
	if (!test)
		return NULL;
	trips(w, back, back, counter);
	const bool ok = round_walk(w, head, test);
	graph_loop_end(w);
	return ok ? test : NULL;
}

static const Op *loop_node(GraphWalk *w, const Op *enter, int counter)
{
	const Block *head = enter->succs[0].block;
	const Op *back = loop_back(head);
	trips(w, enter, back, counter);
	const int again = w->ncondition++;
	const Op *test = condition_walk(w, head, again);
	if (!test)
		return NULL;
	graph_node_begin(w);
	graph_launch(w, enter, false);
	touch_number(&w->touches, MEMORY_CONDITIONS, again, ACCESS_READ);
	part_begin(w);
	trips(w, back, back, counter);
	if (!round_walk(w, head, test) || !condition_walk(w, head, again))
		return NULL;
	part_end(w);
	graph_node_end(w);
	return test;
}

// ---- while, counted -----------------------------------------------------------------------------

static const Op *counted_unrolled(GraphWalk *w, const Op *enter, const Op *test)
{
	graph_steps_end(w);
	graph_node_begin(w);
	graph_launch(w, enter, false);
	graph_begin(w);
	w->looped++;
	const bool ok = round_walk(w, enter->succs[0].block, test);
	graph_steps_end(w);
	w->looped--;
	graph_end(w, true);
	graph_node_end(w);
	return ok ? test : NULL;
}

static void touch_count(GraphWalk *w, const Op *enter)
{
	touch_tensor(&w->touches, op_operand(enter, enter->noperand - 1), ACCESS_READ);
	touch_state(&w->touches, ACCESS_READ);
}

static const Op *counted_kernel(GraphWalk *w, const Op *enter, const Op *test)
{
	const Block *head = enter->succs[0].block;
	const Dim *rounds = loop_rounds(head);
	graph_loop_begin(w, enter);
	if (!rounds || !dim_is_const(rounds)) {
		touch_count(w, enter);
		graph_block_look(w, 2);
	}
	const bool ok = round_walk(w, head, test);
	graph_loop_end(w);
	return ok ? test : NULL;
}

static void touch_again(GraphWalk *w, int counter, int again)
{
	touch_counter(w, counter, ACCESS_WRITE);
	touch_number(&w->touches, MEMORY_CONDITIONS, again, ACCESS_WRITE);
}

// At the end of a round: one of the small steps there; else beside what some kernel of the round
// does; else a kernel.
static void count_down(GraphWalk *w, const Op *back, int counter, int again)
{
	Touches *t = &w->touches;
	t->accesses = w->block ? t->accesses : (Accesses){0};
	if (!w->block) {
		touch_again(w, counter, again);
		const bool beside = graph_node_counts(w, back, &t->accesses);
		t->accesses = (Accesses){0};
		if (beside)
			return;
	}
	graph_node_begin(w);
	touch_again(w, counter, again);
	thread_step(w, back, 2);
	graph_node_end(w);
}

static const Op *counted_node(GraphWalk *w, const Op *enter, const Op *test)
{
	const Op *back = loop_back(enter->succs[0].block);
	const int counter = w->ncounter++, again = w->ncondition++;
	graph_node_begin(w);
	touch_count(w, enter);
	touch_again(w, counter, again);
	thread_step(w, enter, 4);
	graph_node_end(w);
	graph_steps_end(w);
	graph_node_begin(w);
	graph_launch(w, enter, false);
	touch_number(&w->touches, MEMORY_CONDITIONS, again, ACCESS_READ);
	part_begin(w);
	const bool ok = round_walk(w, enter->succs[0].block, test);
	count_down(w, back, counter, again);
	part_end(w);
	graph_node_end(w);
	return ok ? test : NULL;
}

static const Op *form_walk(GraphWalk *w, const Op *enter, bool in_kernel, int counter)
{
	const Block *head = enter->succs[0].block;
	const Op *test = loop_counted(head);
	if (!test)
		return (in_kernel ? loop_kernel : loop_node)(w, enter, counter);
	if (in_kernel)
		return counted_kernel(w, enter, test);
	return (op_int(loop_back(head), "unrolled", 0) ? counted_unrolled : counted_node)(w, enter,
	                                                                                  test);
}

// A loop that one block does where it is little, else as rounds of the graph.
static const Op *either_form(GraphWalk *w, const Op *enter, int counter)
{
	graph_steps_end(w);
	graph_node_begin(w);
	graph_launch(w, enter, false);
	graph_node_never_counts(w);
	w->looped++;
	const Op *test = form_walk(w, enter, true, counter);
	graph_steps_end(w);
	w->looped--;
	graph_begin(w);
	test = test ? form_walk(w, enter, false, counter) : NULL;
	graph_steps_end(w);
	graph_end(w, true);
	graph_node_end(w);
	return test;
}

static const Op *loop_walk(GraphWalk *w, const Op *enter)
{
	const Block *head = enter->succs[0].block;
	const Op *back = loop_back(head);
	if (!back || w->nhead == (int)COUNT_OF(w->heads))
		return NULL;
	const int counter = w->ncounter;
	const InBlockKind in_block = (InBlockKind)op_enum(back, "in_block");
	const bool in_kernel = graph_in_loop(w) || in_block == IN_BLOCK_ALWAYS;
	w->ncounter += !loop_counted(head);
	w->heads[w->nhead++] = head;
	const Op *test = !in_kernel && in_block == IN_BLOCK_LITTLE
	                     ? either_form(w, enter, counter)
	                     : form_walk(w, enter, in_kernel, counter);
	w->nhead--;
	return test && edge_walk(w, test, 1) ? test : NULL;
}

// ---- if, switch ---------------------------------------------------------------------------------

static const Block *part_walk(GraphWalk *w, const Op *op, int s)
{
	if (!edge_walk(w, op, s))
		return &at_error;
	const Block *b = op->succs[s].block;
	return block_joins(b) ? b : walk(w, b);
}

// Returns where the parts meet.
static const Block *parts_walk(GraphWalk *w, const Op *op, bool in_kernel)
{
	const Block *meet = NULL;
	for (int s = 0; s < op->nsucc; s++) {
		if (in_kernel && op->code == OP_CF_SWITCH && s + 1 < op->nsucc)
			graph_block_look(w, 1);
		if (!in_kernel)
			part_begin(w);
		const Block *end = part_walk(w, op, s);
		if (end == &at_error || (s && end != meet))
			return &at_error;
		if (!in_kernel)
			part_end(w);
		meet = end;
	}
	return meet;
}

static const Block *choice_walk(GraphWalk *w, const Op *op)
{
	const bool in_kernel = graph_in_loop(w);
	if (in_kernel) {
		touch_tensor(&w->touches, op_operand(op, 0), ACCESS_READ);
		if (op->code != OP_CF_SWITCH) {
			touch_state(&w->touches, ACCESS_READ);
			graph_block_look(w, 2);
		}
		return parts_walk(w, op, true);
	}
	const int choice = w->ncondition++;
	decide(w, op, choice);
	graph_node_begin(w);
	graph_launch(w, op, false);
	touch_number(&w->touches, MEMORY_CONDITIONS, choice, ACCESS_READ);
	const Block *meet = parts_walk(w, op, false);
	if (meet != &at_error)
		graph_node_end(w);
	return meet;
}

// ---- blocks -------------------------------------------------------------------------------------

static void ops_walk(GraphWalk *w, const Block *b)
{
	for (const Op *op = b->first; op; op = op->next) {
		if ((op->info->traits & TRAIT_TERMINATOR) || op_counts(op) || op_is_silent(op))
			continue;
		graph_op(w, op);
	}
}

static bool head_is_open(const GraphWalk *w, const Block *b)
{
	for (int i = 0; i < w->nhead; i++)
		if (w->heads[i] == b)
			return true;
	return false;
}

// A branch that only goes on. Returns the block behind it, with `on` set where it is to be walked.
static const Block *way_walk(GraphWalk *w, const Op *op, bool *on)
{
	const Block *to = op->succs[0].block;
	if (!edge_walk(w, op, 0))
		return &at_error;
	if (head_is_open(w, to) || branch_joins(op))
		return to;
	const bool loop = branch_enters_loop(op);
	const Op *test = loop ? loop_walk(w, op) : NULL;
	*on = !loop || test;
	return !loop ? to : test ? test->succs[1].block : &at_error;
}

// From block b on, with everything inside, up to where the part of the program that b is in ends.
static const Block *walk(GraphWalk *w, const Block *b)
{
	for (;;) {
		ops_walk(w, b);
		const Op *op = b->last;
		bool on = true;
		if (!op || op->code == OP_CF_RETURN || !op->nsucc)
			return &at_end;
		w->test = op;
		if (op->nsucc == 2 && branch_is_of_loop(op))
			return &at_test;
		if (op->nsucc > 1) {
			b = choice_walk(w, op);
			on = b != &at_error && b != &at_end && b != &at_test;
		} else {
			on = false;
			b = way_walk(w, op, &on);
		}
		if (!on)
			return b;
	}
}

bool graphs_find(Context *c, Arena *a, const Op *module, Graphs *out)
{
	const Region *r = &module->regions[0];
	GraphWalk w = {.touches = {.ctx = c, .arena = a},
	               .arena = a,
	               .ctx = c,
	               .out = out,
	               .blocks = r->first != r->last};
	*out = (Graphs){0};
	graph_begin(&w);
	graph_sizes_clear(&w, module);
	if (walk(&w, r->first) != &at_end)
		return false;
	graph_steps_end(&w);
	graph_end(&w, false);
	return true;
}
