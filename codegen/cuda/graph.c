// The whole program as one graph of CUDA, in the order of its course (lower/analysis/course.h):
// pd.if and pd.while are conditional nodes again, and chains of pd.if that flatten.c made a switch
// are one. Called by run.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/analysis.h"

#include <inttypes.h>
#include <string.h>

// What has begun and not ended yet: a loop in one of its forms, a choice, a part of it.
typedef struct Frame {
	struct Frame *outer;
	Text around, inside; // the texts in which its scopes stand
	const char *name;    // of its condition
	const char *pointer; // where a choice looks
} Frame;

typedef struct Printing {
	Codegen *cg;
	const Op **bound;
	Frame *frame;
} Printing;

typedef bool Printer(Printing *p, const CourseEvent *e); // false after a diagnostic

static Frame *frame_push(Printing *p)
{
	Frame *f = NEW(p->cg->arena, Frame);
	*f = (Frame){.outer = p->frame};
	return p->frame = f;
}

static Frame *frame_pop(Printing *p)
{
	Frame *f = p->frame;
	p->frame = f->outer;
	return f;
}

// ---- operations, branches -----------------------------------------------------------------------

static bool op_print(Printing *p, const CourseEvent *e)
{
	const int errors = diag_errors(p->cg->ctx->diag);
	cuda_node_begin(p->cg, op_stem(p->cg, e->op));
	if (!run_op_print(p->cg, e->op, p->bound))
		return run_no_code(p->cg, e->op, errors);
	cuda_node_end(p->cg);
	return true;
}

// Sizes first: values move by those of the arguments.
static bool edge_print(Printing *p, const CourseEvent *e)
{
	cuda_node_begin(p->cg, "sizes");
	const bool ok = cuda_edge_sizes_print(p->cg, e->op, e->part);
	cuda_node_end(p->cg);
	return ok && cuda_moves_print(p->cg, e->op, e->part);
}

static const CudaArg *args_keep(Codegen *cg, int n, const CudaArg *args)
{
	CudaArg *kept = NEW_ARRAY(cg->arena, (size_t)n, CudaArg);
	memcpy(kept, args, (size_t)n * sizeof *args);
	return kept;
}

// A step of one thread that a function of pdrt_cuda_device.h does.
static void thread_print(Codegen *cg, const Op *op, const char *kernel, const char *stem, int n,
                         const CudaArg *args)
{
	cuda_step_print(cg, &(CudaStep){.op = op,
	                                .kernel = kernel,
	                                .stem = stem,
	                                .func = -1,
	                                .blocks = "1",
	                                .threads = 1,
	                                .width = 1,
	                                .narg = n,
	                                .args = args_keep(cg, n, args)});
}

// A conditional node in the graph, whose text stands in braces.
static void conditional_begin(Codegen *cg, Frame *f, const Op *op)
{
	cuda_node_begin(cg, op_stem(cg, op));
	cuda_node_step(cg, op);
	f->around = cuda_scope_open(cg);
}

static void conditional_end(Codegen *cg, const Frame *f, const Op *op, const char *head)
{
	cuda_scope_close(cg, f->around, head, comment_text(cg->arena, op_title(cg, op)));
	cuda_node_end(cg);
}

// ---- conditions ---------------------------------------------------------------------------------

// A condition, and the step that takes it to its node, which may be part of the steps in front of
// it.
static const char *condition_new(Codegen *cg, const char *stem, int word, bool has_else)
{
	const char *name = names_unique(&cg->locals, stem);
	text_line(&cg->run, 1, "const pd_condition %s = pd_condition_new(queue, parts_on + %d, %s);",
	          name, 2 * word, has_else ? "true" : "false");
	return name;
}

static void decide_print(Codegen *cg, const Op *op, const char *pointer, const char *condition)
{
	const Value *cond = op_operand(op, 0);
	const char *type = dtype_c_memory(cond->type->dtype);
	const CudaArg args[] = {
		cuda_arg_tensor(cg, arena_printf(cg->arena, "const %s *", type), cond, pointer, false),
		cuda_arg_state(cg, "pd_state *"),
		{"pd_condition ", condition, condition}};
	cuda_node_begin(cg, condition);
	thread_print(cg, op, arena_printf(cg->arena, "pd_decide<%s>", type), condition, COUNT_OF(args),
	             args);
	cuda_node_end(cg);
}

// ---- while --------------------------------------------------------------------------------------

// A counter on the device: its word behind the sizes that are found.
static int counter_word(const Codegen *cg, int counter)
{
	return 2 * cuda_found_count(cg) + counter;
}

// How often the way back to a loop may be taken: `op` sets the counter on the device, or is that
// way.
static void trips_print(Codegen *cg, const Op *op, const CourseLoop *l)
{
	const int64_t limit = op_int(l->back, "max_trip", 0);
	const bool back = op == l->back;
	if (limit <= 0)
		return;
	CudaArg args[4] = {
		cuda_arg_word(cg, "int64_t *", counter_word(cg, l->counter)),
		cuda_arg_literal("int64_t ", back ? arena_printf(cg->arena, "%" PRId64, limit) : "0")};
	if (back)
		args[2] = cuda_arg_state(cg, "pd_state *");
	args[3] = cuda_arg_literal("int ", arena_printf(cg->arena, "%d", cuda_failure(cg, op)));
	cuda_node_begin(cg, "trips");
	thread_print(cg, op, back ? "pd_count_trip<int64_t>" : "pd_set<int64_t>", "trips", back ? 4 : 2,
	             args);
	cuda_node_end(cg);
}

static void body_begin(Codegen *cg, Frame *f)
{
	f->inside = cuda_scope_open(cg);
	text_line(&cg->run, 1, "pd_queue *const queue = &body;");
	cuda_nodes_begin(cg, true);
}

static void body_end(Codegen *cg, const Frame *f, const CourseLoop *l)
{
	cuda_nodes_end(cg, false);
	cuda_scope_close(cg, f->inside, "while (pd_round(&body)) ", NULL);
	conditional_end(cg, f, l->enter, "");
}

static const Value *count_of(const Op *enter)
{
	return op_operand(enter, enter->noperand - 1);
}

static const char *count_pointer(Codegen *cg, const Op *enter)
{
	return tensor_pointer(cg, count_of(enter));
}

// In a kernel of one block. A failure inside ends nothing: the rounds do.
static bool counted_kernel_begin(Codegen *cg, const Op *enter)
{
	const Dim *rounds = loop_rounds(enter->succs[0].block);
	cuda_loop_kernel_begin(cg, enter);
	if (rounds && dim_is_const(rounds)) {
		cuda_block_text(cg,
		                arena_printf(cg->arena,
		                             "for (int round = 0; round < %" PRId64 "; round++) {",
		                             rounds->value),
		                1);
		return true;
	}
	const char *count = count_pointer(cg, enter);
	if (count)
		cuda_block_rounds(cg, count_of(enter), count);
	return count != NULL;
}

// In front of the loop.
static bool count_print(Codegen *cg, const Op *enter, int word, const char *again)
{
	cuda_node_begin(cg, again);
	const char *from = count_pointer(cg, enter);
	if (!from)
		return false;
	const CudaArg args[] = {cuda_arg_word(cg, "int64_t *", word),
	                        cuda_arg_tensor(cg, "const int64_t *", count_of(enter), from, false),
	                        cuda_arg_state(cg, "pd_state *"),
	                        {"pd_condition ", again, again}};
	thread_print(cg, enter, "pd_count<int64_t>", again, COUNT_OF(args), args);
	cuda_node_end(cg);
	return true;
}

// As a conditional node. Rounds end with the counter: no condition is computed.
static bool counted_node_begin(Codegen *cg, Frame *f, const CourseLoop *l)
{
	const Dim *rounds = loop_rounds(l->enter->succs[0].block);
	const int word = counter_word(cg, l->counter);
	f->name = names_unique(&cg->locals, "again");
	text_line(&cg->run, 1,
	          "const pd_condition %s = pd_counter_new(queue, parts_on + %d, sizes + %d);", f->name,
	          2 * l->condition, word);
	if (!count_print(cg, l->enter, word, f->name))
		return false;
	conditional_begin(cg, f, l->enter);
	text_line(&cg->run, 1, "pd_queue body = pd_counted(queue, %s, sizes + %d, %s);", f->name, word,
	          rounds ? dim_in_run(cg, rounds) : "-1");
	body_begin(cg, f);
	return true;
}

// At the end of a round: beside what a kernel of the round does, or a step.
static bool count_down_print(Printing *p, const CourseEvent *e)
{
	Codegen *cg = p->cg;
	const CourseLoop *l = e->loop;
	const char *again = p->frame->name;
	const CudaArg args[] = {cuda_arg_word(cg, "int64_t *", counter_word(cg, l->counter)),
	                        {"pd_condition ", again, again}};
	const char *line = arena_printf(cg->arena, "pd_count_with_next(queue, %s, %s);", args[0].text,
	                                again);
	const int func = cuda_node_count_down(cg, l->back, line);
	if (func >= 0) {
		cg->funcs[func].counts = true;
		return true;
	}
	cuda_node_begin(cg, again);
	thread_print(cg, l->back, "pd_count_down<int64_t>", again, COUNT_OF(args), args);
	cuda_node_end(cg);
	return true;
}

static bool loop_print(Printing *p, const CourseEvent *e)
{
	const CourseLoop *l = e->loop;
	Codegen *cg = p->cg;
	Frame *f = frame_push(p);
	switch (l->form) {
	case LOOP_KERNEL:
		cuda_loop_kernel_begin(cg, l->enter);
		trips_print(cg, l->enter, l);
		cuda_block_text(cg, "for (;;) {", 1);
		return true;
	case LOOP_NODE: // the steps in front of it decide first
		trips_print(cg, l->enter, l);
		f->name = condition_new(cg, "again", l->condition, false);
		return true;
	case LOOP_COUNTED_KERNEL: return counted_kernel_begin(cg, l->enter);
	case LOOP_COUNTED_NODE: return counted_node_begin(cg, f, l);
	case LOOP_COUNTED_UNROLLED: break;
	}
	conditional_begin(cg, f, l->enter);
	cuda_nodes_begin(cg, false);
	return true;
}

static bool test_print(Printing *p, const CourseEvent *e)
{
	const CourseLoop *l = e->loop;
	Codegen *cg = p->cg;
	Frame *f = p->frame;
	const char *cond = tensor_pointer(cg, op_operand(l->test, 0));
	if (!cond)
		return false;
	if (l->form == LOOP_NODE) {
		decide_print(cg, l->test, cond, f->name);
		conditional_begin(cg, f, l->enter);
		text_line(&cg->run, 1, "pd_queue body = pd_while(queue, %s);", f->name);
		body_begin(cg, f);
	} else {
		cuda_block_test(cg, "if (!", op_operand(l->test, 0), cond, ")");
		cuda_block_text(cg, "\tbreak;", 0);
	}
	trips_print(cg, l->back, l); // before what the round does, which may have no more room
	return true;
}

static bool again_print(Printing *p, const CourseEvent *e)
{
	const char *cond = tensor_pointer(p->cg, op_operand(e->op, 0));
	if (cond)
		decide_print(p->cg, e->op, cond, p->frame->name);
	return cond != NULL;
}

static bool loop_end_print(Printing *p, const CourseEvent *e)
{
	const CourseLoop *l = e->loop;
	Codegen *cg = p->cg;
	const Frame *f = frame_pop(p);
	switch (l->form) {
	case LOOP_KERNEL:
	case LOOP_COUNTED_KERNEL:
		cuda_block_text(cg, "}", -1);
		cuda_loop_kernel_end(cg);
		break;
	case LOOP_COUNTED_NODE:
	case LOOP_NODE: body_end(cg, f, l); break;
	case LOOP_COUNTED_UNROLLED:
		cuda_nodes_end(cg, true);
		conditional_end(cg, f, l->enter,
		                arena_printf(cg->arena,
		                             "for (int round = 0; round < %" PRId64 "; round++) ",
		                             op_int(l->back, "unrolled", 0)));
		break;
	}
	return true;
}

// A loop that one block does where it is little, else as rounds of the graph.
static bool either_print(Printing *p, const CourseEvent *e)
{
	Codegen *cg = p->cg;
	Frame *f = frame_push(p);
	cuda_node_begin(cg, op_stem(cg, e->op));
	cuda_node_step(cg, e->op);
	cuda_node_launches(cg, CUDA_NEVER_COUNTS);
	f->around = cuda_scope_open(cg);
	return true;
}

static bool else_print(Printing *p, const CourseEvent *e)
{
	const Attr *little = op_attr(e->loop->back, "little");
	const Works works = {.n = little->n, .items = (const Dim **)little->dims};
	Codegen *cg = p->cg;
	cuda_scope_close(cg, p->frame->around,
	                 arena_printf(cg->arena, "if (%s) ", cuda_works_little(cg, &works)), NULL);
	p->frame->around = cuda_scope_open(cg);
	cuda_nodes_begin(cg, false);
	return true;
}

static bool either_end_print(Printing *p, const CourseEvent *e)
{
	cuda_nodes_end(p->cg, true);
	cuda_scope_close(p->cg, frame_pop(p)->around, "else ", NULL);
	cuda_node_end(p->cg);
	return true;
}

// ---- if, switch ---------------------------------------------------------------------------------

// A kernel that takes the number of the part to the node.
static void choose_print(Codegen *cg, const Op *op, const char *pointer, const char *choice)
{
	const Attr *cases = op_attr(op, "cases");
	const char *type = arena_printf(cg->arena, "const %s *",
	                                dtype_c_memory(op_operand(op, 0)->type->dtype));
	const char *choice_type = arena_printf(cg->arena, "pd_choice<%d> ", op->nsucc);
	Text text;
	text_init(&text, cg->arena);
	text_str(&text, KERNEL_HEAD "\n\tswitch (*x) {\n");
	for (int i = 0; i < cases->n; i++)
		text_line(&text, 1, "case %s: return pd_choose(choice, %d);",
		          scalar_int(cg->arena, type_scalar(cg->ctx, DT_I64), cases->ints[i]), i);
	text_printf(&text, "\tdefault: return pd_choose(choice, %d);\n\t}\n}\n", cases->n);
	const char *params = arena_printf(cg->arena, "%sx, %schoice", type, choice_type);
	const int func = kernel_add(
		cg,
		(EmittedFunc){
			.text = text.text, .params = params, .called_params = params, .arguments = "x, choice"},
		arena_printf(cg->arena, "choose_%s", op_stem(cg, op)));
	const CudaArg args[] = {cuda_arg_tensor(cg, type, op_operand(op, 0), pointer, false),
	                        {choice_type, choice, choice}};
	cuda_node_begin(cg, choice);
	cuda_step_print(cg, &(CudaStep){.op = op,
	                                .kernel = cg->funcs[func].name,
	                                .stem = choice,
	                                .func = func,
	                                .blocks = "1",
	                                .threads = 1,
	                                .width = 1,
	                                .narg = 2,
	                                .args = args_keep(cg, 2, args)});
	cuda_node_end(cg);
}

static const char *case_comment(Codegen *cg, const Op *op, int s)
{
	const Attr *cases = op_attr(op, "cases");
	return s < cases->n ? arena_printf(cg->arena, "case %" PRId64, cases->ints[s]) : "default";
}

static void if_node_begin(Codegen *cg, Frame *f, const CourseEvent *e)
{
	f->name = condition_new(cg, "choice", e->condition, true);
	decide_print(cg, e->op, f->pointer, f->name);
	conditional_begin(cg, f, e->op);
	text_line(&cg->run, 1, "pd_queue parts[2];");
	text_line(&cg->run, 1, "pd_if(queue, %s, parts);", f->name);
}

static void switch_node_begin(Codegen *cg, Frame *f, const CourseEvent *e)
{
	const int n = e->op->nsucc;
	f->name = names_unique(&cg->locals, "choice");
	text_line(&cg->run, 1, "const pd_choice<%d> %s = pd_choice_new<%d>(queue, parts_on + %d);", n,
	          f->name, n, 2 * e->condition);
	choose_print(cg, e->op, f->pointer, f->name);
	conditional_begin(cg, f, e->op);
	text_line(&cg->run, 1, "pd_queue parts[%d];", n);
	text_line(&cg->run, 1, "pd_switch(queue, %s, parts);", f->name);
}

static bool choice_print(Printing *p, const CourseEvent *e)
{
	Codegen *cg = p->cg;
	Frame *f = frame_push(p);
	f->pointer = tensor_pointer(cg, op_operand(e->op, 0));
	if (!f->pointer)
		return false;
	if (!e->in_kernel)
		(e->op->code == OP_CF_SWITCH ? switch_node_begin : if_node_begin)(cg, f, e);
	else if (e->op->code != OP_CF_SWITCH)
		cuda_block_test(cg, "if (", op_operand(e->op, 0), f->pointer, ") {");
	return true;
}

// The head of a case in a kernel.
static void case_print(Codegen *cg, const Op *op, int s, const char *pointer)
{
	const Attr *cases = op_attr(op, "cases");
	if (s < cases->n)
		cuda_block_case(
			cg, s ? "} else if (" : "if (", op_operand(op, 0), pointer,
			arena_printf(cg->arena, ", %s)) {",
		                 scalar_int(cg->arena, type_scalar(cg->ctx, DT_I64), cases->ints[s])));
	else
		cuda_block_text(cg, "} else {", 0);
}

// A part of a node is a graph of its own.
static bool part_print(Printing *p, const CourseEvent *e)
{
	Codegen *cg = p->cg;
	const Frame *choice = p->frame;
	Frame *f = frame_push(p);
	if (!e->in_kernel) {
		f->around = cuda_scope_open(cg);
		text_line(&cg->run, 1, "pd_queue *const queue = &parts[%d];", e->part);
		cuda_nodes_begin(cg, true);
	} else if (e->op->code == OP_CF_SWITCH) {
		case_print(cg, e->op, e->part, choice->pointer);
		cuda_block_text(cg, "", 1);
	} else {
		cuda_block_text(cg, e->part ? "} else {" : "", 1);
	}
	return true;
}

static bool part_end_print(Printing *p, const CourseEvent *e)
{
	Codegen *cg = p->cg;
	const Frame *f = frame_pop(p);
	const bool chooses = e->op->code == OP_CF_SWITCH;
	if (e->in_kernel) {
		cuda_block_text(cg, !chooses && e->part ? "}" : "", -1);
		return true;
	}
	cuda_nodes_end(cg, false);
	cuda_scope_close(cg, f->around, "",
	                 chooses   ? case_comment(cg, e->op, e->part)
	                 : e->part ? "else"
	                           : "then");
	return true;
}

static bool choice_end_print(Printing *p, const CourseEvent *e)
{
	const Frame *f = frame_pop(p);
	if (!e->in_kernel)
		conditional_end(p->cg, f, e->op, "");
	else if (e->op->code == OP_CF_SWITCH)
		cuda_block_text(p->cg, "}", 0);
	return true;
}

// ---- the program --------------------------------------------------------------------------------

// Sizes that a run finds are 0 until it does.
static void sizes_clear_print(Codegen *cg)
{
	const int words = 2 * cuda_found_count(cg);
	const CudaArg args[] = {{"int64_t *", "sizes", "sizes"},
	                        cuda_arg_literal("int ", arena_printf(cg->arena, "%d", words))};
	if (!words)
		return;
	cg->uses_sizes = true;
	cuda_node_begin(cg, "sizes");
	cuda_step_print(cg, &(CudaStep){.op = cg->module,
	                                .kernel = "pd_zero<int64_t>",
	                                .stem = "sizes",
	                                .func = -1,
	                                .blocks = "1",
	                                .threads = 32,
	                                .width = words,
	                                .narg = 2,
	                                .args = args_keep(cg, 2, args)});
	cuda_node_end(cg);
}

static Printer *const printers[COURSE_KINDS] = {
	[COURSE_OP] = op_print,
	[COURSE_EDGE] = edge_print,
	[COURSE_LOOP] = loop_print,
	[COURSE_TEST] = test_print,
	[COURSE_AGAIN] = again_print,
	[COURSE_COUNT] = count_down_print,
	[COURSE_LOOP_END] = loop_end_print,
	[COURSE_EITHER] = either_print,
	[COURSE_ELSE] = else_print,
	[COURSE_EITHER_END] = either_end_print,
	[COURSE_CHOICE] = choice_print,
	[COURSE_PART] = part_print,
	[COURSE_PART_END] = part_end_print,
	[COURSE_CHOICE_END] = choice_end_print,
};

bool cuda_graph_print(Codegen *cg, const Op **bound)
{
	Printing p = {.cg = cg, .bound = bound};
	Course *course = NEW(cg->arena, Course);
	const int errors = diag_errors(cg->ctx->diag);
	if (!course_find(cg->arena, cg->module, course)) {
		diag_error(cg->ctx->diag, course->at->loc, "code generation: %s", course->error);
		return false;
	}
	cg->cuda.course = course;
	if (!cuda_schedule_begin(cg))
		return false;
	cuda_nodes_begin(cg, false);
	sizes_clear_print(cg);
	for (int i = 0; i < course->n; i++)
		if (!printers[course->events[i].kind](&p, &course->events[i]))
			return false;
	cuda_nodes_end(cg, false);
	return diag_errors(cg->ctx->diag) == errors && cuda_schedule_end(cg);
}
