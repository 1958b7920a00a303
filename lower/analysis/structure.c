// How the blocks that flatten leaves nest: by the roles of branches each block ends as a part of a
// loop, an if or a switch, so that a printer can write those instead of labels. Called by code
// generation for C.
#include "lower/analysis/analysis.h"

// A loop, an if or a switch that has begun.
typedef struct Open {
	const Block *head; // of a loop; NULL: an if or a switch
	const Op *owner;   // its branch; NULL: a loop whose test has not come yet
	const Block *join; // where parts go that have ended; NULL: none has
	int part;          // that is under way
} Open;

typedef struct Nesting {
	int n;
	Open *open;
} Nesting;

static Open *top_of(Nesting *z)
{
	return z->n ? &z->open[z->n - 1] : NULL;
}

// The way back to a loop's head: what follows is where its test leaves to.
static bool tail_round(Nesting *z, const Op *op, const Block *next, BlockTail *tail)
{
	const Open *top = top_of(z);
	if (!top || top->head != op->succs[0].block || !top->owner ||
	    top->owner->succs[1].block != next)
		return false;
	*tail = (BlockTail){TAIL_ROUND, top->owner, 0};
	z->n--;
	return true;
}

// The end of a part of an if or switch: another part comes next, or all go on in the next block. An
// if may have no else.
static bool tail_part(Nesting *z, const Op *op, const Block *next, BlockTail *tail)
{
	Open *top = top_of(z);
	const Block *join = op->succs[0].block;
	if (!top || top->head || (top->join && top->join != join))
		return false;
	const Op *owner = top->owner;
	top->join = join;
	if (top->part + 1 < owner->nsucc && owner->succs[top->part + 1].block == next && next != join) {
		*tail = (BlockTail){TAIL_PART, owner, ++top->part};
		return true;
	}
	const bool no_else = owner->code == OP_CF_COND_BR && top->part == 0 &&
	                     owner->succs[1].block == join;
	if (next != join || !(no_else || top->part + 1 == owner->nsucc))
		return false;
	*tail = (BlockTail){TAIL_JOIN, owner, no_else ? 1 : 0};
	z->n--;
	return true;
}

static bool tail_branch(Nesting *z, const Op *op, const Block *next, BlockTail *tail)
{
	Open *top = top_of(z);
	if (op->succs[0].block != next)
		return false;
	if (branch_is_of_loop(op)) {
		if (!top || !top->head || top->owner)
			return false;
		top->owner = op;
		*tail = (BlockTail){TAIL_TEST, op, 0};
		return true;
	}
	z->open[z->n++] = (Open){.owner = op};
	*tail = (BlockTail){op->code == OP_CF_SWITCH ? TAIL_SWITCH : TAIL_IF, op, 0};
	return true;
}

static bool block_tail(Nesting *z, const Block *b, BlockTail *tail)
{
	const Op *op = b->last;
	const bool branches = op && op->nsucc;
	*tail = (BlockTail){TAIL_THROUGH, op, 0};
	if (!branches)
		return !b->next && !z->n;
	if (op->code != OP_CF_BR)
		return tail_branch(z, op, b->next, tail);
	if (loop_back(op->succs[0].block) == op)
		return tail_round(z, op, b->next, tail);
	if (branch_joins(op))
		return tail_part(z, op, b->next, tail);
	return op->succs[0].block == b->next;
}

bool blocks_nest(Arena *a, const Region *r, BlockTail **tails)
{
	size_t total = 0;
	for (const Block *b = r->first; b; b = b->next)
		total++;
	Nesting z = {.open = NEW_ARRAY(a, 2 * total + 1, Open)};
	*tails = NEW_ARRAY(a, total + 1, BlockTail);
	BlockTail *tail = *tails;
	for (const Block *b = r->first; b; b = b->next, tail++) {
		if (loop_back(b))
			z.open[z.n++] = (Open){.head = b};
		if (!block_tail(&z, b, tail))
			return false;
	}
	return true;
}
