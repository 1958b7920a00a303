// Blocks and branches in model_run: labels, gotos, what is tested, and how many rounds loops may
// take; moves.c has what branches pass to the arguments of blocks. Called by run.c.
#include "codegen/model/model.h"
#include "lower/analysis/analysis.h"

#include <inttypes.h>

// ---- the blocks ---------------------------------------------------------------------------------

// Whether the goto to successor s is left out because its block comes next.
static bool succ_falls_through(const Op *op, int s)
{
	const Block *next = op->block->next;
	return op->code != OP_CF_SWITCH && op->succs[s].block == next &&
	       (op->nsucc == 1 || s == 0 || op->succs[0].block != next);
}

static const char *succ_role(Codegen *cg, const Op *op, int s)
{
	const Attr *cases = op->code == OP_CF_SWITCH ? op_attr(op, "cases") : NULL;
	if (cases)
		return s < cases->n ? arena_printf(cg->arena, "case %" PRId64, cases->ints[s]) : "default";
	if (op->code == OP_CF_BR)
		return branch_enters_loop(op) ? "condition" : "after";
	if (branch_is_of_loop(op))
		return s ? "done" : "body";
	return s ? "else" : "then";
}

void block_label_print(Codegen *cg, const Block *b)
{
	const char *comment = NULL;
	bool label = false;
	for (const Block *from = b->region->first; from; from = from->next) {
		const Op *op = from->last;
		for (int s = 0; op && s < op->nsucc; s++) {
			if (op->succs[s].block != b)
				continue;
			if (!comment)
				comment = arena_printf(cg->arena, "%s: %s",
				                       comment_text(cg->arena, op_title(cg, op)),
				                       succ_role(cg, op, s));
			label = label || !succ_falls_through(op, s);
		}
	}
	if (label)
		text_printf(&cg->run, "\nbb%u: /* %s */\n", b->id, comment);
	else if (comment)
		text_printf(&cg->run, "\n\t/* %s */\n", comment);
}

// ---- branches -----------------------------------------------------------------------------------

// The way back of the loop whose condition ends in this branch: the innermost around it.
static const Op *tested_loop(const Op *test)
{
	for (const Block *head = test->block; head; head = head->prev) {
		const Op *back = loop_back(head);
		for (const Block *b = back ? back->block : NULL; b && b != head->prev; b = b->prev)
			if (b == test->block)
				return back;
	}
	return NULL;
}

// Rounds are counted where --max-trip bounds them: from 0 when the loop is entered, and before one
// begins, since what it does may have no more room.
void branch_trips_print(Codegen *cg, const Op *op, int s, int depth)
{
	const bool begins = branch_is_of_loop(op) && s == 0;
	const Op *back = begins ? tested_loop(op) : loop_back(op->succs[s].block);
	const int64_t bound = back && back != op ? op_int(back, "max_trip", 0) : 0;
	if (!bound)
		return;
	const char *counter = arena_printf(cg->arena, "trips_%u", back->succs[0].block->id);
	if (!begins) {
		run_line(cg, depth, "%s = 0;", counter);
		return;
	}
	local_declare(cg, LOCAL_NUMBER, "int64_t ", counter, "0");
	failure_print(cg, arena_printf(cg->arena, "++%s > %" PRId64, counter, bound), "PD_TRIPS", back);
}

static bool edge_and_trips_print(Codegen *cg, const Op *op, int s, int depth)
{
	if (!edge_moves_print(cg, op, s, depth))
		return false;
	branch_trips_print(cg, op, s, depth);
	return true;
}

bool branch_passes(const Op *op, int s)
{
	const Succ *succ = &op->succs[s];
	for (int i = 0; i < (int)succ->count; i++) {
		const MoveKind kind = branch_move(op, s, i);
		int64_t n;
		if (kind != MOVE_NONE || !type_const_numel(succ->block->args[i]->type, &n))
			return true;
	}
	return false;
}

bool branch_moves_print(Codegen *cg, const Op *op, int s)
{
	return edge_and_trips_print(cg, op, s, 1);
}

static bool succ_print(Codegen *cg, const Op *op, int s, int depth)
{
	if (!edge_and_trips_print(cg, op, s, depth))
		return false;
	if (!succ_falls_through(op, s))
		run_line(cg, depth, "goto bb%u;", op->succs[s].block->id);
	return true;
}

const char *branch_condition(Codegen *cg, const Op *op)
{
	const Value *v = op_operand(op, 0);
	const char *condition = tensor_element(cg, v);
	int64_t n;
	if (condition && !type_const_numel(v->type, &n))
		failure_print(
			cg, arena_printf(cg->arena, "%s != 1", dim_in_run(cg, type_numel(cg->ctx, v->type))),
			"PD_DIMS", op);
	return condition;
}

static bool cond_br_print(Codegen *cg, const Op *op)
{
	const char *cond = branch_condition(cg, op);
	if (!cond)
		return false;
	int inner = succ_falls_through(op, 0) ? 1 : 0; // the one that goes elsewhere
	bool bare = op->succs[inner].count == 0;       // nothing but the goto
	run_line(cg, 1, "if (%s%s)%s", inner ? "!" : "", cond, bare ? "" : " {");
	if (!succ_print(cg, op, inner, 2))
		return false;
	if (!bare)
		run_line(cg, 1, "}");
	return succ_print(cg, op, !inner, 1);
}

static bool switch_print(Codegen *cg, const Op *op)
{
	const Attr *cases = op_attr(op, "cases");
	const char *value = branch_condition(cg, op);
	if (!value)
		return false;
	run_line(cg, 1, "switch (%s) {", value);
	for (int s = 0; s < op->nsucc; s++) {
		if (s < cases->n && cases->ints[s] == INT64_MIN)
			run_line(cg, 1, "case INT64_MIN:");
		else if (s < cases->n)
			run_line(cg, 1, "case %" PRId64 ":", cases->ints[s]);
		else
			run_line(cg, 1, "default:");
		if (!succ_print(cg, op, s, 2))
			return false;
	}
	run_line(cg, 1, "}");
	return true;
}

bool branch_print(Codegen *cg, const Op *op)
{
	if (op->code == OP_CF_RETURN && !op->block->next)
		return true; // what follows is the end of the function
	if (op->code == OP_CF_BR)
		return succ_print(cg, op, 0, 1);
	if (op->code == OP_CF_COND_BR)
		return cond_br_print(cg, op);
	if (op->code == OP_CF_SWITCH)
		return switch_print(cg, op);
	diag_error(cg->ctx->diag, op->loc, "code generation: no C for '%s' here", op->info->name);
	return false;
}
