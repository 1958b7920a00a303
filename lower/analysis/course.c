// The course of a CUDA program (course.h): the one place that goes through its blocks as it runs,
// and that decides by what cuda-steps left how each loop is done. Branches have the roles that
// flatten left, which say where loops begin and where the parts of an if meet.
#include "lower/analysis/course.h"
#include "ir/base/vec.h"
#include "lower/analysis/analysis.h"

typedef struct Walk {
	Arena *arena;
	Course *out;
	const Block *heads[64]; // of the loops around
	int nhead;
	int kernels; // loops in kernels around
	const CourseLoop *loop;
	const Op *test; // of the loop at which the last walk ended
} Walk;

// Where a walk ended, beside blocks: at the test of a loop, at the end of the program, or with an
// error.
static const Block at_test, at_end, at_error;

static const Block *walk(Walk *w, const Block *b);

// The innermost error is kept.
static const Block *fail(Walk *w, const Op *op, const char *error)
{
	if (!w->out->error) {
		w->out->error = error;
		w->out->at = op;
	}
	return &at_error;
}

static CourseEvent *event(Walk *w, CourseKind kind, const Op *op)
{
	Course *c = w->out;
	VEC_ROOM(w->arena, c->events, c->n, c->cap);
	c->events[c->n] = (CourseEvent){.kind = kind, .op = op, .in_kernel = w->kernels > 0};
	return &c->events[c->n++];
}

static void edge(Walk *w, const Op *op, int s)
{
	event(w, COURSE_EDGE, op)->part = s;
}

static int words_new(Walk *w, int n)
{
	const int first = w->out->ncondition;
	w->out->ncondition += n;
	return first;
}

// ---- loops --------------------------------------------------------------------------------------

static LoopForm form_of(const CourseLoop *l, bool in_kernel)
{
	if (!l->test)
		return in_kernel ? LOOP_KERNEL : LOOP_NODE;
	return in_kernel                        ? LOOP_COUNTED_KERNEL
	       : op_int(l->back, "unrolled", 0) ? LOOP_COUNTED_UNROLLED
	                                        : LOOP_COUNTED_NODE;
}

// From the head to the test.
static bool head_walk(Walk *w, CourseLoop *l, CourseKind kind)
{
	if (walk(w, l->enter->succs[0].block) != &at_test) {
		fail(w, l->enter, "a loop without a condition");
		return false;
	}
	l->test = w->test;
	event(w, kind, l->test)->loop = l;
	return true;
}

static bool round_walk(Walk *w, const CourseLoop *l)
{
	edge(w, l->test, 0);
	return walk(w, l->test->succs[0].block) == l->enter->succs[0].block;
}

// Returns the test; NULL after an error.
static const Op *form_walk(Walk *w, const CourseLoop *loop, bool in_kernel)
{
	CourseLoop *l = NEW(w->arena, CourseLoop);
	*l = *loop;
	l->form = form_of(l, in_kernel);
	const bool node = l->form == LOOP_NODE, counted = l->test != NULL;
	if (l->form == LOOP_COUNTED_NODE)
		l->counter = w->out->ncounter++;
	if (node || l->form == LOOP_COUNTED_NODE)
		l->condition = words_new(w, 1);
	const CourseLoop *around = w->loop;
	w->kernels += in_kernel;
	w->loop = l;
	event(w, COURSE_LOOP, l->enter)->loop = l;
	const bool ok = (counted || head_walk(w, l, COURSE_TEST)) && round_walk(w, l) &&
	                (!node || head_walk(w, l, COURSE_AGAIN));
	event(w, COURSE_LOOP_END, l->enter)->loop = l;
	w->kernels -= in_kernel;
	w->loop = around;
	return ok ? l->test : NULL;
}

static const Op *either_walk(Walk *w, const CourseLoop *l)
{
	event(w, COURSE_EITHER, l->enter)->loop = l;
	const Op *test = form_walk(w, l, true);
	event(w, COURSE_ELSE, l->enter)->loop = l;
	test = test ? form_walk(w, l, false) : NULL;
	event(w, COURSE_EITHER_END, l->enter)->loop = l;
	return test;
}

// Returns the block behind the loop.
static const Block *loop_walk(Walk *w, const Op *enter)
{
	const Block *head = enter->succs[0].block;
	CourseLoop *l = NEW(w->arena, CourseLoop);
	*l = (CourseLoop){.enter = enter,
	                  .back = loop_back(head),
	                  .test = loop_counted(head),
	                  .counter = w->out->ncounter};
	if (!l->back)
		return fail(w, enter, "a loop without a way back");
	if (w->nhead == (int)COUNT_OF(w->heads))
		return fail(w, enter,
		            arena_printf(w->arena, "more than %d loops inside of each other", w->nhead));
	w->out->ncounter += !l->test && op_int(l->back, "max_trip", 0) > 0;
	const InBlockKind in_block = (InBlockKind)op_enum(l->back, "in_block");
	w->heads[w->nhead++] = head;
	const Op *test = !w->kernels && in_block == IN_BLOCK_LITTLE
	                     ? either_walk(w, l)
	                     : form_walk(w, l, w->kernels || in_block == IN_BLOCK_ALWAYS);
	w->nhead--;
	if (!test)
		return fail(w, enter, "the rounds of a loop do not come back to its head");
	edge(w, test, 1);
	return test->succs[1].block;
}

// ---- if, switch ---------------------------------------------------------------------------------

// Returns where the part ends.
static const Block *part_walk(Walk *w, const Op *op, int s)
{
	const Block *b = op->succs[s].block;
	event(w, COURSE_PART, op)->part = s;
	edge(w, op, s);
	const Block *end = block_joins(b) ? b : walk(w, b);
	event(w, COURSE_PART_END, op)->part = s;
	return end;
}

// Returns where the parts meet.
static const Block *choice_walk(Walk *w, const Op *op)
{
	const Block *meet = NULL;
	const int condition = w->kernels ? 0 : words_new(w, (op->nsucc + 1) / 2);
	event(w, COURSE_CHOICE, op)->condition = condition;
	for (int s = 0; s < op->nsucc; s++) {
		const Block *end = part_walk(w, op, s);
		if (end == &at_error || (s && end != meet))
			return fail(w, op,
			            arena_printf(w->arena, "the parts of '%s' do not meet", op->info->name));
		meet = end;
	}
	event(w, COURSE_CHOICE_END, op);
	return meet;
}

// ---- blocks -------------------------------------------------------------------------------------

static void ops_walk(Walk *w, const Block *b)
{
	for (const Op *op = b->first; op; op = op->next)
		if (!(op->info->traits & TRAIT_TERMINATOR) && !op_counts(op))
			event(w, COURSE_OP, op);
}

// Whether walking on from there makes no sense.
static bool is_place(const Block *b)
{
	return b == &at_error || b == &at_end || b == &at_test;
}

static bool head_is_open(const Walk *w, const Block *b)
{
	for (int i = 0; i < w->nhead; i++)
		if (w->heads[i] == b)
			return true;
	return false;
}

// A branch that only goes on. Returns the block behind it; `on`: it is to be walked.
static const Block *way_walk(Walk *w, const Op *op, bool *on)
{
	const Block *to = op->succs[0].block;
	if (w->loop && op == w->loop->back && w->loop->form == LOOP_COUNTED_NODE)
		event(w, COURSE_COUNT, op)->loop = w->loop; // little steps do it, too
	edge(w, op, 0);
	if (head_is_open(w, to) || branch_joins(op))
		return to;
	*on = true;
	return branch_enters_loop(op) ? loop_walk(w, op) : to;
}

// From block b on, with everything inside, up to where the part of the program that b is in ends: a
// block where the parts of an if meet, the head of the loop around, or one of the places above.
static const Block *walk(Walk *w, const Block *b)
{
	for (;;) {
		ops_walk(w, b);
		const Op *op = b->last;
		bool on = op && op->nsucc > 1;
		if (!op || op->code == OP_CF_RETURN || !op->nsucc)
			return &at_end;
		w->test = op;
		if (op->nsucc == 2 && branch_is_of_loop(op))
			return &at_test;
		b = op->nsucc > 1 ? choice_walk(w, op) : way_walk(w, op, &on);
		if (!on || is_place(b))
			return b;
	}
}

bool course_find(Arena *a, const Op *module, Course *out)
{
	*out = (Course){0};
	Walk w = {.arena = a, .out = out};
	if (walk(&w, module->regions[0].first) != &at_end)
		fail(&w, module, "the blocks of the program do not nest");
	return !out->error;
}
