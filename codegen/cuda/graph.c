// The whole program as one graph of CUDA, in which pd.if and pd.while are conditional nodes again,
// and chains of pd.if that flatten.c made a switch are one. Branches have the roles that it left,
// which say where loops begin and where the parts of an if meet. Called by run.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/analysis.h"

#include <inttypes.h>
#include <string.h>

typedef struct Walk {
	Codegen *cg;
	const Op **bound;
	const Block *heads[64]; // of the loops around
	int nhead;
	const Op *test; // of the loop at which the last walk ended
} Walk;

// Where a walk ended, beside blocks: at the branch of a loop, at the end of the program, or with a
// diagnostic.
static const Block at_loop_branch, at_end, at_error;

static const Block *walk(Walk *w, const Block *b);

// ---- branches -----------------------------------------------------------------------------------

// Sizes first: values move by those of the arguments.
static bool edge_print(Codegen *cg, const Op *op, int s)
{
	cuda_node_begin(cg, "sizes");
	const bool ok = cuda_edge_sizes_print(cg, op, s);
	cuda_node_end(cg);
	return ok && cuda_moves_print(cg, op, s);
}

// ---- nesting ------------------------------------------------------------------------------------

// The graph of a part of the program.
static void nodes_begin(Codegen *cg)
{
	cuda_nodes_begin(cg);
	cg->cuda.nested++;
}

static void nodes_end(Codegen *cg)
{
	cg->cuda.nested--;
	cuda_nodes_end(cg, false);
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

// A condition, and the step that takes it to its node, which may be part of the steps in front of
// it.
static const char *condition_new(Codegen *cg, const char *stem, bool has_else)
{
	const char *name = names_unique(&cg->locals, stem);
	text_line(&cg->run, 1, "const pd_condition %s = pd_condition_new(queue, parts_on + %d, %s);",
	          name, 2 * cg->cuda.ncondition, has_else ? "true" : "false");
	cg->cuda.ncondition++;
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

// How often the way back to a loop may be taken, and its counter on the device.
static void trips_print(Walk *w, const Op *op, const Op *back, int64_t limit, int counter)
{
	Codegen *cg = w->cg;
	const int word = counter_word(cg, counter);
	if (!limit)
		return;
	CudaArg args[4] = {cuda_arg_word(cg, "int64_t *", word),
	                   cuda_arg_literal("int64_t ", op == back
	                                                    ? arena_printf(cg->arena, "%" PRId64, limit)
	                                                    : "0")};
	if (op == back)
		args[2] = cuda_arg_state(cg, "pd_state *");
	args[3] = cuda_arg_literal("int ", arena_printf(cg->arena, "%d", cuda_failure(cg, op)));
	cuda_node_begin(cg, "trips");
	thread_print(cg, op, op == back ? "pd_count_trip<int64_t>" : "pd_set<int64_t>", "trips",
	             op == back ? 4 : 2, args);
	cuda_node_end(cg);
}

// The condition: from the head to the branch of the loop, which it returns; NULL after a
// diagnostic.
static const Op *condition_print(Walk *w, const Block *head, const char *again)
{
	Codegen *cg = w->cg;
	if (walk(w, head) != &at_loop_branch) {
		if (!diag_errors(cg->ctx->diag))
			diag_error(cg->ctx->diag, cg->module->loc,
			           "code generation: a loop without a condition");
		return NULL;
	}
	const Op *test = w->test;
	const char *cond = tensor_pointer(cg, op_operand(test, 0));
	if (!cond)
		return NULL;
	if (again)
		decide_print(cg, test, cond, again);
	else
		cuda_block_test(cg, "if (!", op_operand(test, 0), cond, ")");
	return test;
}

// One round: from the branch that ends the condition to the head of the loop.
static bool round_print(Walk *w, const Block *head, const Op *branch, int64_t limit, int counter)
{
	const Op *back = loop_back(head);
	// Before what the round does, which may have no more room.
	trips_print(w, back, back, limit, counter);
	return edge_print(w->cg, branch, 0) && walk(w, branch->succs[0].block) == head;
}

static bool body_print(Walk *w, const Block *head, const Op *branch, int64_t limit, int counter,
                       const char *again)
{
	text_line(&w->cg->run, 1, "pd_queue *const queue = &body;");
	nodes_begin(w->cg);
	if (!round_print(w, head, branch, limit, counter) || !condition_print(w, head, again))
		return false;
	nodes_end(w->cg);
	return true;
}

// A loop in a kernel of one block. Returns the branch of the loop, or NULL.
static const Op *loop_kernel_print(Walk *w, const Op *enter, int64_t limit, int counter)
{
	Codegen *cg = w->cg;
	const Block *head = enter->succs[0].block;
	cuda_loop_kernel_begin(cg, enter);
	trips_print(w, enter, loop_back(head), limit, counter);
	cuda_block_text(cg, "for (;;) {", 1);
	const Op *branch = condition_print(w, head, NULL);
	cuda_block_text(cg, "\tbreak;", 0);
	const bool ok = branch && round_print(w, head, branch, limit, counter);
	cuda_block_text(cg, "}", -1);
	cuda_loop_kernel_end(cg);
	return ok ? branch : NULL;
}

// A loop as a conditional node. The steps in front of it decide first.
static const Op *loop_node_print(Walk *w, const Op *enter, int64_t limit, int counter)
{
	Codegen *cg = w->cg;
	const Block *head = enter->succs[0].block;
	trips_print(w, enter, loop_back(head), limit, counter);
	const char *again = condition_new(cg, "again", false);
	const Op *branch = condition_print(w, head, again);
	cuda_node_begin(cg, op_stem(cg, enter));
	cuda_node_step(cg, enter);
	Text outer = cuda_scope_open(cg);
	text_line(&cg->run, 1, "pd_queue body = pd_while(queue, %s);", again);
	Text inner = cuda_scope_open(cg);
	const bool ok = branch && body_print(w, head, branch, limit, counter, again);
	cuda_scope_close(cg, inner, "while (pd_round(&body)) ", NULL);
	cuda_scope_close(cg, outer, "", comment_text(cg->arena, op_title(cg, enter)));
	cuda_node_end(cg);
	return ok ? branch : NULL;
}

// ---- while, counted -----------------------------------------------------------------------------

static bool counted_round_print(Walk *w, const Block *head, const Op *branch)
{
	return edge_print(w->cg, branch, 0) && walk(w, branch->succs[0].block) == head;
}

// As rounds behind each other in the graph around.
static bool counted_unrolled_print(Walk *w, const Op *enter, const Op *branch, int64_t rounds)
{
	Codegen *cg = w->cg;
	cuda_node_begin(cg, op_stem(cg, enter));
	cuda_node_step(cg, enter);
	Text outer = cuda_scope_open(cg);
	cuda_nodes_begin(cg);
	const bool ok = counted_round_print(w, enter->succs[0].block, branch);
	cuda_nodes_end(cg, true);
	cuda_scope_close(
		cg, outer,
		arena_printf(cg->arena, "for (int round = 0; round < %" PRId64 "; round++) ", rounds),
		comment_text(cg->arena, op_title(cg, enter)));
	cuda_node_end(cg);
	return ok;
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
static bool counted_kernel_print(Walk *w, const Op *enter, const Op *branch)
{
	Codegen *cg = w->cg;
	const Block *head = enter->succs[0].block;
	const Dim *rounds = loop_rounds(head);
	cuda_loop_kernel_begin(cg, enter);
	if (rounds && dim_is_const(rounds)) {
		cuda_block_text(cg,
		                arena_printf(cg->arena,
		                             "for (int round = 0; round < %" PRId64 "; round++) {",
		                             rounds->value),
		                1);
	} else {
		const char *count = count_pointer(cg, enter);
		if (!count)
			return false;
		cuda_block_rounds(cg, count_of(enter), count);
	}
	const bool ok = counted_round_print(w, head, branch);
	cuda_block_text(cg, "}", -1);
	cuda_loop_kernel_end(cg);
	return ok;
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

// At the end of a round: beside what a kernel of the round does, or a step.
static void count_down_print(Codegen *cg, const Op *back, int word, const char *again)
{
	const CudaArg args[] = {cuda_arg_word(cg, "int64_t *", word), {"pd_condition ", again, again}};
	const char *line = arena_printf(cg->arena, "pd_count_with_next(queue, %s, %s);", args[0].text,
	                                again);
	const int func = cuda_node_count_down(cg, back, line);
	if (func >= 0) {
		cg->funcs[func].counts = true;
		return;
	}
	cuda_node_begin(cg, again);
	thread_print(cg, back, "pd_count_down<int64_t>", again, COUNT_OF(args), args);
	cuda_node_end(cg);
}

// As a conditional node. Rounds end with the counter: no condition is computed.
static bool counted_node_print(Walk *w, const Op *enter, const Op *branch)
{
	Codegen *cg = w->cg;
	const Block *head = enter->succs[0].block;
	const Dim *rounds = loop_rounds(head);
	const int word = counter_word(cg, cg->cuda.ncounter++);
	const char *again = names_unique(&cg->locals, "again");
	text_line(&cg->run, 1,
	          "const pd_condition %s = pd_counter_new(queue, parts_on + %d, sizes + %d);", again,
	          2 * cg->cuda.ncondition, word);
	cg->cuda.ncondition++;
	if (!count_print(cg, enter, word, again))
		return false;
	cuda_node_begin(cg, op_stem(cg, enter));
	cuda_node_step(cg, enter);
	Text outer = cuda_scope_open(cg);
	text_line(&cg->run, 1, "pd_queue body = pd_counted(queue, %s, sizes + %d, %s);", again, word,
	          rounds ? dim_in_run(cg, rounds) : "-1");
	Text inner = cuda_scope_open(cg);
	text_line(&cg->run, 1, "pd_queue *const queue = &body;");
	nodes_begin(cg);
	const bool ok = counted_round_print(w, head, branch);
	count_down_print(cg, loop_back(head), word, again);
	nodes_end(cg);
	cuda_scope_close(cg, inner, "while (pd_round(&body)) ", NULL);
	cuda_scope_close(cg, outer, "", comment_text(cg->arena, op_title(cg, enter)));
	cuda_node_end(cg);
	return ok;
}

static const Op *counted_print(Walk *w, const Op *enter, const Op *branch, bool in_kernel)
{
	const Op *back = loop_back(enter->succs[0].block);
	const int64_t unrolled = in_kernel ? 0 : op_int(back, "unrolled", 0);
	const bool ok = in_kernel  ? counted_kernel_print(w, enter, branch)
	                : unrolled ? counted_unrolled_print(w, enter, branch, unrolled)
	                           : counted_node_print(w, enter, branch);
	return ok ? branch : NULL;
}

// A loop in either form.
static const Op *form_print(Walk *w, const Op *enter, bool in_kernel, int64_t limit, int counter)
{
	const Op *counted = loop_counted(enter->succs[0].block);
	return counted ? counted_print(w, enter, counted, in_kernel)
	               : (in_kernel ? loop_kernel_print : loop_node_print)(w, enter, limit, counter);
}

// A loop that one block does where it is little, else as rounds of the graph.
static const Op *either_form_print(Walk *w, const Op *enter, const Attr *little, int64_t limit,
                                   int counter)
{
	const Works works = {.n = little->n, .items = (const Dim **)little->dims};
	Codegen *cg = w->cg;
	cuda_node_begin(cg, op_stem(cg, enter));
	cuda_node_step(cg, enter);
	cuda_node_launches(cg, CUDA_NEVER_COUNTS);
	Text outer = cuda_scope_open(cg);
	const Op *branch = form_print(w, enter, true, limit, counter);
	cuda_scope_close(cg, outer, arena_printf(cg->arena, "if (%s) ", cuda_works_little(cg, &works)),
	                 NULL);
	outer = cuda_scope_open(cg);
	cuda_nodes_begin(cg);
	if (branch)
		branch = form_print(w, enter, false, limit, counter);
	cuda_nodes_end(cg, true);
	cuda_scope_close(cg, outer, "else ", NULL);
	cuda_node_end(cg);
	return branch;
}

// Returns the branch of the loop, behind which the program goes on; NULL after a diagnostic.
static const Op *while_print(Walk *w, const Op *enter)
{
	Codegen *cg = w->cg;
	const Block *head = enter->succs[0].block;
	const Op *back = loop_back(head);
	const int64_t limit = op_int(back, "max_trip", 0);
	const int counter = cg->cuda.ncounter;
	cg->cuda.ncounter += limit > 0 && !loop_counted(head);
	if (w->nhead == (int)COUNT_OF(w->heads)) {
		diag_error(cg->ctx->diag, enter->loc,
		           "code generation: more than %d loops inside of each other", w->nhead);
		return NULL;
	}
	w->heads[w->nhead++] = head;
	const InBlockKind in_block = (InBlockKind)op_enum(back, "in_block");
	const bool in_kernel = cuda_in_loop_kernel(cg) || in_block == IN_BLOCK_ALWAYS;
	const Op *branch = !in_kernel && in_block == IN_BLOCK_LITTLE
	                       ? either_form_print(w, enter, op_attr(back, "little"), limit, counter)
	                       : form_print(w, enter, in_kernel, limit, counter);
	w->nhead--;
	return branch && edge_print(cg, branch, 1) ? branch : NULL;
}

// ---- if -----------------------------------------------------------------------------------------

// One part of an if, to the block where the parts meet.
static const Block *part_print(Walk *w, const Op *op, int s)
{
	if (!edge_print(w->cg, op, s))
		return &at_error;
	const Block *b = op->succs[s].block;
	return block_joins(b) ? b : walk(w, b);
}

// A part as a graph of its own, that number among the parts of a conditional node. Returns where it
// ends.
static const Block *part_node_print(Walk *w, const Op *op, int s, const char *comment)
{
	Codegen *cg = w->cg;
	Text part = cuda_scope_open(cg);
	text_line(&cg->run, 1, "pd_queue *const queue = &parts[%d];", s);
	nodes_begin(cg);
	const Block *end = part_print(w, op, s);
	if (end == &at_error)
		return end;
	nodes_end(cg);
	cuda_scope_close(cg, part, "", comment);
	return end;
}

// Where the parts end is left in meet[].
static void if_node_print(Walk *w, const Op *op, const char *cond, const Block **meet)
{
	Codegen *cg = w->cg;
	const char *choice = condition_new(cg, "choice", true);
	decide_print(cg, op, cond, choice);
	cuda_node_begin(cg, op_stem(cg, op));
	cuda_node_step(cg, op);
	Text outer = cuda_scope_open(cg);
	text_line(&cg->run, 1, "pd_queue parts[2];");
	text_line(&cg->run, 1, "pd_if(queue, %s, parts);", choice);
	for (int s = 0; s < 2; s++)
		if ((meet[s] = part_node_print(w, op, s, s ? "else" : "then")) == &at_error)
			return;
	cuda_scope_close(cg, outer, "", comment_text(cg->arena, op_title(cg, op)));
	cuda_node_end(cg);
}

static void if_in_kernel_print(Walk *w, const Op *op, const char *cond, const Block **meet)
{
	Codegen *cg = w->cg;
	cuda_block_test(cg, "if (", op_operand(op, 0), cond, ") {");
	for (int s = 0; s < 2; s++) {
		cuda_block_text(cg, s ? "} else {" : "", 1);
		meet[s] = part_print(w, op, s);
		cuda_block_text(cg, s ? "}" : "", -1);
	}
}

static const Block *if_print(Walk *w, const Op *op)
{
	Codegen *cg = w->cg;
	const char *cond = tensor_pointer(cg, op_operand(op, 0));
	const Block *meet[2] = {&at_error, &at_error};
	if (!cond)
		return &at_error;
	(cuda_in_loop_kernel(cg) ? if_in_kernel_print : if_node_print)(w, op, cond, meet);
	if (meet[0] == meet[1])
		return meet[0];
	if (!diag_errors(cg->ctx->diag))
		diag_error(cg->ctx->diag, op->loc, "code generation: the parts of '%s' do not meet",
		           op->info->name);
	return &at_error;
}

// ---- switch -------------------------------------------------------------------------------------

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

static const Block *switch_node_print(Walk *w, const Op *op, const char *pointer)
{
	Codegen *cg = w->cg;
	const Block *meet = NULL;
	const char *choice = names_unique(&cg->locals, "choice");
	text_line(&cg->run, 1, "const pd_choice<%d> %s = pd_choice_new<%d>(queue, parts_on + %d);",
	          op->nsucc, choice, op->nsucc, 2 * cg->cuda.ncondition);
	cg->cuda.ncondition += (op->nsucc + 1) / 2; // two words each
	choose_print(cg, op, pointer, choice);
	cuda_node_begin(cg, op_stem(cg, op));
	cuda_node_step(cg, op);
	Text outer = cuda_scope_open(cg);
	text_line(&cg->run, 1, "pd_queue parts[%d];", op->nsucc);
	text_line(&cg->run, 1, "pd_switch(queue, %s, parts);", choice);
	for (int s = 0; s < op->nsucc; s++) {
		const Block *end = part_node_print(w, op, s, case_comment(cg, op, s));
		if (end == &at_error || (s && end != meet))
			return &at_error;
		meet = end;
	}
	cuda_scope_close(cg, outer, "", comment_text(cg->arena, op_title(cg, op)));
	cuda_node_end(cg);
	return meet;
}

static const Block *switch_in_kernel_print(Walk *w, const Op *op, const char *pointer)
{
	Codegen *cg = w->cg;
	const Attr *cases = op_attr(op, "cases");
	const Block *meet = NULL;
	for (int s = 0; s < op->nsucc; s++) {
		if (s < cases->n)
			cuda_block_case(
				cg, s ? "} else if (" : "if (", op_operand(op, 0), pointer,
				arena_printf(cg->arena, ", %s)) {",
			                 scalar_int(cg->arena, type_scalar(cg->ctx, DT_I64), cases->ints[s])));
		else
			cuda_block_text(cg, "} else {", 0);
		cuda_block_text(cg, "", 1);
		const Block *end = part_print(w, op, s);
		cuda_block_text(cg, "", -1);
		if (end == &at_error || (s && end != meet))
			return &at_error;
		meet = end;
	}
	cuda_block_text(cg, "}", 0);
	return meet;
}

static const Block *switch_print(Walk *w, const Op *op)
{
	Codegen *cg = w->cg;
	const char *pointer = tensor_pointer(cg, op_operand(op, 0));
	if (!pointer)
		return &at_error;
	const Block *meet = (cuda_in_loop_kernel(cg) ? switch_in_kernel_print
	                                             : switch_node_print)(w, op, pointer);
	if (meet == &at_error && !diag_errors(cg->ctx->diag))
		diag_error(cg->ctx->diag, op->loc, "code generation: the parts of '%s' do not meet",
		           op->info->name);
	return meet;
}

// ---- blocks -------------------------------------------------------------------------------------

static bool block_ops_print(Walk *w, const Block *b)
{
	const int errors = diag_errors(w->cg->ctx->diag);
	for (const Op *op = b->first; op; op = op->next) {
		if ((op->info->traits & TRAIT_TERMINATOR) || op_counts(op))
			continue;
		cuda_node_begin(w->cg, op_stem(w->cg, op));
		if (!run_op_print(w->cg, op, w->bound))
			return run_no_code(w->cg, op, errors);
		cuda_node_end(w->cg);
	}
	return true;
}

static bool head_is_open(const Walk *w, const Block *b)
{
	for (int i = 0; i < w->nhead; i++)
		if (w->heads[i] == b)
			return true;
	return false;
}

// Whether walking on from there makes no sense.
static bool is_place(const Block *b)
{
	return b == &at_error || b == &at_end || b == &at_loop_branch;
}

// A branch that only goes on. Returns the block behind it, with `on` set where it is to be walked.
static const Block *way_print(Walk *w, const Op *op, bool *on)
{
	const Block *to = op->succs[0].block;
	if (!edge_print(w->cg, op, 0))
		return &at_error;
	if (head_is_open(w, to) || branch_joins(op))
		return to;
	const bool loop = branch_enters_loop(op);
	const Op *branch = loop ? while_print(w, op) : NULL;
	*on = !loop || branch;
	return !loop ? to : branch ? branch->succs[1].block : &at_error;
}

// Prints from block b on, with everything inside, up to where the part of the program that b is in
// ends: a block where the parts of an if meet, the head of the loop around, or one of the places
// above.
static const Block *walk(Walk *w, const Block *b)
{
	for (;;) {
		if (!block_ops_print(w, b))
			return &at_error;
		const Op *op = b->last;
		if (!op || op->code == OP_CF_RETURN || !op->nsucc)
			return &at_end;
		if (op->nsucc == 2 && branch_is_of_loop(op)) {
			w->test = op;
			return &at_loop_branch;
		}
		if (op->nsucc > 1) {
			b = (op->code == OP_CF_SWITCH ? switch_print : if_print)(w, op);
			if (is_place(b))
				return b;
			continue;
		}
		bool on = false;
		b = way_print(w, op, &on);
		if (!on)
			return b;
	}
}

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

bool cuda_graph_print(Codegen *cg, const Op **bound)
{
	Walk w = {.cg = cg, .bound = bound};
	const int errors = diag_errors(cg->ctx->diag);
	if (!cuda_schedule_begin(cg))
		return false;
	cuda_nodes_begin(cg);
	sizes_clear_print(cg);
	if (walk(&w, cg->module->regions[0].first) != &at_end)
		return false;
	cuda_nodes_end(cg, false);
	return diag_errors(cg->ctx->diag) == errors && cuda_schedule_end(cg);
}
