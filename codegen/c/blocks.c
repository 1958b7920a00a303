// The blocks of model_run in C: loops, ifs and switches where they nest (lower/analysis says so),
// else labels and gotos. Called by run.c.
#include "codegen/c/c.h"
#include "codegen/nest/nest.h"
#include "lower/analysis/analysis.h"

#include <inttypes.h>

static const char *title(Codegen *cg, const Op *op)
{
	return comment_text(cg->arena, op_title(cg, op));
}

static bool is_printed(const Op *op)
{
	return !(op->info->traits & TRAIT_TERMINATOR) && !op_is_silent(op);
}

static int count_printed(const Block *b)
{
	int n = 0;
	for (const Op *op = b->first; op; op = op->next)
		n += is_printed(op);
	return n;
}

// What computes the condition of a block's branch, as an expression that stands in the branch:
// nothing else reads it, and nothing happens in between. NULL: not so.
static const char *condition_fold(Codegen *cg, const Block *b)
{
	const Op *branch = b->last, *op = branch->prev;
	while (op && !is_printed(op))
		op = op->prev;
	if (branch->code != OP_CF_COND_BR || !op || op_operand(branch, 0)->def != op ||
	    op->nresult != 1 || op->results[0].uses->next || op->results[0].type->dtype != DT_BOOL ||
	    !nest_is_statement(&cg->numbers, op))
		return NULL;
	const Place place = value_place(&op->results[0]);
	if (!number_local(cg, &place))
		return NULL;
	KernelFunc *k = kernel_new(cg, op);
	k->inlined = true;
	return nest_number(k);
}

// Whether a loop's head does nothing but to compute its condition: `while (condition)`.
static bool head_only_asks(const Block *head, const BlockTail *tail)
{
	const Op *test = head->last;
	return tail->kind == TAIL_TEST && count_printed(head) == 1 && !branch_passes(test, 0) &&
	       !branch_passes(test, 1);
}

// All but the branch, and but the last one that is printed if that is `folded` into it.
static bool block_ops_print(Codegen *cg, const Block *b, bool folded, const Op **bound)
{
	const Value *condition = folded ? op_operand(b->last, 0) : NULL;
	const Op **ops = NEW_ARRAY(cg->arena, (size_t)count_printed(b) + 1, const Op *);
	int n = 0;
	for (const Op *op = b->first; op; op = op->next)
		if (is_printed(op) && !(condition && condition->def == op))
			ops[n++] = op;
	return steps_print(cg, ops, n, bound);
}

// A loop is left in the middle, after what its condition needs.
static bool test_print(Codegen *cg, const Op *op, const char *condition)
{
	if (!branch_passes(op, 1)) {
		run_line(cg, 1, "if (!%s)", condition);
		run_line(cg, 2, "break;");
		return branch_moves_print(cg, op, 0);
	}
	run_open(cg, arena_printf(cg->arena, "if (!%s)", condition));
	if (!branch_moves_print(cg, op, 1))
		return false;
	run_line(cg, 1, "break;");
	run_close(cg);
	return branch_moves_print(cg, op, 0);
}

// `words (condition) {`
static void asking_open(Codegen *cg, const char *words, const char *condition)
{
	run_open(cg,
	         arena_printf(cg->arena, "%s (%s)", words, expression_unwrap(cg->arena, condition)));
}

// Whether there is nothing to do in part s of an if: a block that goes on to where the parts meet.
static bool part_is_empty(const Op *owner, int s)
{
	const Block *b = owner->succs[s].block;
	return !branch_passes(owner, s) && branch_joins(b->last) && !branch_passes(b->last, 0) &&
	       !count_printed(b);
}

// Of an if with an else.
static bool then_is_empty(const Op *owner)
{
	return owner->code == OP_CF_COND_BR && part_is_empty(owner, 0) &&
	       owner->succs[0].block->last->succs[0].block != owner->succs[1].block;
}

static bool if_print(Codegen *cg, const Op *op, const char *condition)
{
	run_comment(cg, "%s", title(cg, op));
	if (then_is_empty(op)) {
		run_open(cg, arena_printf(cg->arena, "if (!%s)", condition));
		return branch_moves_print(cg, op, 1);
	}
	asking_open(cg, "if", condition);
	return branch_moves_print(cg, op, 0);
}

static void case_print(Codegen *cg, const Op *op, int part)
{
	const Attr *cases = op_attr(op, "cases");
	const char *label = part >= cases->n ? "default:"
	                    : cases->ints[part] == INT64_MIN
	                        ? "case INT64_MIN:"
	                        : arena_printf(cg->arena, "case %" PRId64 ":", cases->ints[part]);
	run_open(cg, label);
}

static bool switch_print(Codegen *cg, const Op *op, const char *value)
{
	run_comment(cg, "%s", title(cg, op));
	run_line(cg, 1, "switch (%s) {", value);
	case_print(cg, op, 0);
	return branch_moves_print(cg, op, 0);
}

static void case_close(Codegen *cg)
{
	run_line(cg, 1, "break;");
	run_close(cg);
}

static void else_open(Codegen *cg)
{
	cg->depth--;
	run_open(cg, "} else");
}

// From one part of an if or switch to the next.
static bool part_print(Codegen *cg, const Op *op, const BlockTail *tail)
{
	if (then_is_empty(tail->owner))
		return true;
	if (!branch_moves_print(cg, op, 0))
		return false;
	if (tail->owner->code == OP_CF_SWITCH) {
		case_close(cg);
		case_print(cg, tail->owner, tail->part);
	} else if (part_is_empty(tail->owner, 1)) {
		return true;
	} else {
		else_open(cg);
	}
	return branch_moves_print(cg, tail->owner, tail->part);
}

static bool join_print(Codegen *cg, const Op *op, const BlockTail *tail)
{
	if (!branch_moves_print(cg, op, 0))
		return false;
	if (tail->owner->code == OP_CF_SWITCH) {
		case_close(cg);
		run_line(cg, 1, "}");
		return true;
	}
	if (tail->part && branch_passes(tail->owner, 1)) {
		else_open(cg);
		if (!branch_moves_print(cg, tail->owner, 1))
			return false;
	}
	run_close(cg);
	return true;
}

static bool round_print(Codegen *cg, const Op *op)
{
	if (!branch_moves_print(cg, op, 0))
		return false;
	run_close(cg);
	return true;
}

static bool tail_print(Codegen *cg, const Op *op, const BlockTail *tail, const char *condition)
{
	switch (tail->kind) {
	case TAIL_THROUGH: return !op || !op->nsucc || branch_moves_print(cg, op, 0);
	case TAIL_TEST: return test_print(cg, op, condition);
	case TAIL_ROUND: return round_print(cg, op);
	case TAIL_IF: return if_print(cg, op, condition);
	case TAIL_SWITCH: return switch_print(cg, op, condition);
	case TAIL_PART: return part_print(cg, op, tail);
	default: return join_print(cg, op, tail);
	}
}

static bool block_print(Codegen *cg, const Block *b, const BlockTail *tail, const Op **bound)
{
	const int errors = diag_errors(cg->ctx->diag);
	const Op *back = loop_back(b), *last = b->last;
	const bool asks = last && (last->code == OP_CF_COND_BR || last->code == OP_CF_SWITCH);
	const char *condition = asks ? condition_fold(cg, b) : NULL;
	const bool folded = condition != NULL;
	if (back)
		run_comment(cg, "%s", title(cg, back));
	if (back && folded && head_only_asks(b, tail)) {
		asking_open(cg, "while", condition);
		branch_trips_print(cg, last, 0, 1);
		return true;
	}
	if (back)
		run_open(cg, "for (;;)");
	if (!block_ops_print(cg, b, folded, bound))
		return false;
	if (asks && !folded && !(condition = branch_condition(cg, last)))
		return false;
	return tail_print(cg, last, tail, condition) || run_no_code(cg, last, errors);
}

static bool nested_print(Codegen *cg, const BlockTail *tail, const Op **bound)
{
	for (const Block *b = cg->module->regions[0].first; b; b = b->next, tail++)
		if (!block_print(cg, b, tail, bound))
			return false;
	return true;
}

// Labels with the numbers of blocks.
static bool labelled_print(Codegen *cg, const Op **bound)
{
	const int errors = diag_errors(cg->ctx->diag);
	for (const Block *b = cg->module->regions[0].first; b; b = b->next) {
		block_label_print(cg, b);
		if (!block_ops_print(cg, b, false, bound))
			return false;
		if (b->last && (b->last->info->traits & TRAIT_TERMINATOR) && !branch_print(cg, b->last))
			return run_no_code(cg, b->last, errors);
	}
	return true;
}

bool blocks_print(Codegen *cg, const Op **bound)
{
	BlockTail *tails;
	if (!blocks_nest(cg->arena, &cg->module->regions[0], &tails))
		return labelled_print(cg, bound);
	scopes_find(cg, tails);
	return nested_print(cg, tails, bound);
}
