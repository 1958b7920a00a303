// Loops of CUDA whose rounds are known on entry (lower/count_loops.c): their conditions, and what counts the rounds in the
// blocks, are not printed; how such a loop is printed, cuda_graph.c says. Called by it and by cuda_move.c.
#include "codegen_impl.h"

// A round as a conditional node costs about as much as two or three launches in a graph, and a node of a graph some hundred
// bytes on the device and a few microseconds when the graph is made: up to so many nodes in all, loops are written out.
enum { MAX_UNROLLED_NODES = 512 };

static const Value *last_operand(const Op *op)
{
	return op->noperand ? op_operand(op, op->noperand - 1) : NULL;
}

// Whether v is computed where nobody but one operation reads it.
static bool is_read_once(const Value *v)
{
	return v && v->def && v->def->nresult == 1 && v->uses && !v->uses->next;
}

const Op *cuda_loop_counted(const Block *head)
{
	const Op *back = loop_back(head), *branch = head->last;
	if (!back || !op_bool(back, "counted", false) || !branch || branch->code != OP_CF_COND_BR || !branch_is_of_loop(branch) ||
	    !is_read_once(last_operand(back)))
		return NULL;
	for (const Op *op = head->first; op != branch; op = op->next)
		if (!op_is_silent(op) && !(op == op_operand(branch, 0)->def && is_read_once(op_operand(branch, 0))))
			return NULL;
	return branch;
}

const Dim *cuda_loop_rounds(const Block *head)
{
	const Attr *rounds = op_attr(loop_back(head), "rounds");
	return rounds ? rounds->dim : NULL;
}

bool cuda_argument_counts(const Value *arg)
{
	const Block *b = arg->block;
	return b->args[b->narg - 1] == arg && loop_back(b) && cuda_loop_counted(b);
}

bool cuda_op_counts(const Op *op)
{
	const Value *v = op->nresult ? &op->results[0] : NULL;
	if (!is_read_once(v))
		return false;
	const Op *user = v->uses->user;
	if (user->code == OP_CF_COND_BR)
		return user->block == op->block && cuda_loop_counted(op->block) == user;
	return user->code == OP_CF_BR && op_bool(user, "counted", false) && last_operand(user) == v &&
	       cuda_loop_counted(user->succs[0].block);
}

// ---- written out -------------------------------------------------------------------------------------------

// At most how many nodes a round is, those of loops inside as often as they are written out.
static int64_t round_nodes(Codegen *cg, const Block *head)
{
	const Block *last = loop_back(head)->block;
	int64_t n = 0;
	for (const Block *b = head; b && b->prev != last; b = b->next) {
		if (b != head && loop_back(b)) {
			const int64_t rounds = cuda_loop_unrolled(cg, b);
			n += 1 + (rounds ? rounds : 1) * round_nodes(cg, b);
			b = loop_back(b)->block;
			continue;
		}
		for (const Op *op = b->first; op; op = op->next)
			n += op->info->traits & TRAIT_TERMINATOR ? op->nsucc > 1 : !op_is_silent(op) && !cuda_op_counts(op);
	}
	return n;
}

int64_t cuda_loop_unrolled(Codegen *cg, const Block *head)
{
	const Dim *rounds = cuda_loop_counted(head) ? cuda_loop_rounds(head) : NULL;
	if (!rounds || !dim_is_const(rounds) || rounds->value > MAX_UNROLLED_NODES || cuda_loop_fits_block(cg, head))
		return 0;
	return rounds->value * round_nodes(cg, head) <= MAX_UNROLLED_NODES ? rounds->value : 0;
}
