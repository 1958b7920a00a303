// Loops and branches among the blocks that flatten leaves, by the roles that it gives to branches;
// and, for CUDA, whether a loop counts its rounds (count_loops.c), so that its condition and what
// counts in the blocks are neither kept nor printed. Called by plan.c and by code generation.
#include "lower/analysis/analysis.h"

static bool has_role(const Op *op, RoleKind role)
{
	return op && (op->code == OP_CF_BR || op->code == OP_CF_COND_BR) &&
	       op_enum(op, "role") == (int)role;
}

const Op *loop_back(const Block *head)
{
	// The block in front goes into the loop: others need not be looked through.
	if (!head->prev || !has_role(head->prev->last, ROLE_ENTER))
		return NULL;
	for (const Block *b = head; b; b = b->next)
		if (has_role(b->last, ROLE_BACK) && b->last->succs[0].block == head)
			return b->last;
	return NULL;
}

bool branch_is_of_loop(const Op *op)
{
	return has_role(op, ROLE_LOOP);
}

bool branch_enters_loop(const Op *op)
{
	return has_role(op, ROLE_ENTER) || has_role(op, ROLE_BACK);
}

const char *branch_kind(const Op *op)
{
	return branch_is_of_loop(op) || branch_enters_loop(op) ? "while"
	       : op->code == OP_CF_SWITCH                      ? "switch"
	                                                       : "if";
}

bool branch_joins(const Op *op)
{
	return has_role(op, ROLE_JOIN);
}

bool block_joins(const Block *b)
{
	for (const Block *from = b->region->first; from; from = from->next)
		if (branch_joins(from->last) && from->last->succs[0].block == b)
			return true;
	return false;
}

bool op_is_silent(const Op *op)
{
	return op->code == OP_PD_FEED || op->code == OP_BUILTIN_GET_PARAMETER ||
	       op->code == OP_BUILTIN_CONSTANT || op->code == OP_BUILTIN_COMBINE ||
	       op->code == OP_LOOP_EMPTY || (op->info->traits & TRAIT_VIEW);
}

// ---- loops that count ---------------------------------------------------------------------------

static const Value *last_operand(const Op *op)
{
	return op->noperand ? op_operand(op, op->noperand - 1) : NULL;
}

// Whether v is computed where nobody but one operation reads it.
static bool is_read_once(const Value *v)
{
	return v && v->def && v->def->nresult == 1 && v->uses && !v->uses->next;
}

const Op *loop_counted(const Block *head)
{
	const Op *back = loop_back(head), *branch = head->last;
	if (!back || !op_bool(back, "counted", false) || !branch || branch->code != OP_CF_COND_BR ||
	    !branch_is_of_loop(branch) || !is_read_once(last_operand(back)))
		return NULL;
	for (const Op *op = head->first; op != branch; op = op->next)
		if (!op_is_silent(op) &&
		    !(op == op_operand(branch, 0)->def && is_read_once(op_operand(branch, 0))))
			return NULL;
	return branch;
}

const Dim *loop_rounds(const Block *head)
{
	const Attr *rounds = op_attr(loop_back(head), "rounds");
	return rounds ? rounds->dim : NULL;
}

bool argument_counts(const Value *arg)
{
	const Block *b = arg->block;
	return b->args[b->narg - 1] == arg && loop_back(b) && loop_counted(b);
}

bool op_counts(const Op *op)
{
	const Value *v = op->nresult ? &op->results[0] : NULL;
	if (!is_read_once(v))
		return false;
	const Op *user = v->uses->user;
	if (user->code == OP_CF_COND_BR)
		return user->block == op->block && loop_counted(op->block) == user;
	return user->code == OP_CF_BR && op_bool(user, "counted", false) && last_operand(user) == v &&
	       loop_counted(user->succs[0].block);
}
