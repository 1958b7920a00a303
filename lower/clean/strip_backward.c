// Takes out again what --grad put in: the inverse of differentiate() (lower/grad), whose marks it
// goes by: `backward` on inputs, on fetches, on the first operation behind the program's own and on
// what rounds note, `kept` on a loop that counts its rounds, and maybe keeps what they need, in its
// last variables, and on branches and loops in it that hand on what is noted.
// Run by lower/pipeline.c.
#include "ir/build/build.h"
#include "lower/clean/clean.h"

static bool strip_fail(const Op *op, const char *text)
{
	diag_error(op->ctx->diag, op->loc, "'%s': %s", op->info->name, text);
	return false;
}

static bool is_marked(const Op *op)
{
	return op_attr(op, "backward") != NULL;
}

// The first operation that differentiate() put behind the program; NULL: there is none.
static Op *backward_begin(Block *b)
{
	for (Op *op = b->first; op; op = op->next)
		if (op->code != OP_PD_FEED && is_marked(op))
			return op;
	return NULL;
}

static bool erase_unused(Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (value_used(op_result(op, i)))
			return strip_fail(op, "part of the gradient, and the program reads it");
	op_erase(op);
	return true;
}

// v was only made for what is gone: a count, its constants, an array that kept what rounds had.
static void erase_made(Value *v)
{
	Op *op = v->def;
	if (!op || value_used(v) ||
	    (op->code != OP_PD_ADD && op->code != OP_PD_FULL && op->code != OP_PD_CREATE_ARRAY &&
	     op->code != OP_PD_ARRAY_WRITE))
		return;
	Value *one = op->code == OP_PD_ADD ? op_operand(op, 1) : NULL;
	op_erase(op);
	if (one)
		erase_made(one);
}

static void erase_pushes(Block *body)
{
	for (Op *op = body->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_CF_PUSH_BACK && op_operand(op, 0) == body->args[body->narg - 1])
			op_erase(op);
	}
}

// Without the variables behind the first n: what the blocks' ends give for them, and the arguments.
static void end_shorten(Block *block, int n, bool args)
{
	const int first = n + (block->last->code == OP_CF_COND_YIELD);
	while (block->last->noperand > first) {
		Value *v = op_operand(block->last, block->last->noperand - 1);
		op_remove_operand(block->last, block->last->noperand - 1);
		erase_made(v);
	}
	while (args && block->narg > n)
		block_remove_arg(block, block->narg - 1);
}

// In a loop: a branch, or a loop, without what it hands on for the gradient of the loop around it.
static Op *inner_strip(Op *op)
{
	const int n = op->nresult - (int)op_int(op, "kept", 0), loop = op->code == OP_PD_WHILE;
	const Type **types = NEW_ARRAY(op->ctx->arena, (size_t)n + 1, const Type *);
	Value **given = NEW_ARRAY(op->ctx->arena, (size_t)(loop ? n : op->noperand) + 1, Value *);
	for (int i = 0; i < n; i++)
		types[i] = op->results[i].type;
	for (int i = 0; i < (loop ? n : op->noperand); i++)
		given[i] = op_operand(op, i);
	Op *without = op_remake(op, n, types, loop ? n : op->noperand, given);
	op_set_attr(without, "kept", NULL);
	for (int i = 0; i < n; i++)
		value_take(op_result(op, i), op_result(without, i));
	op_erase(op);
	return without;
}

static bool is_read(Op *op, int from)
{
	for (int i = from; i < op->nresult; i++)
		if (value_used(op_result(op, i)))
			return true;
	return false;
}

// What rounds note for their gradient, in branches and loops, too: sizes as numbers, and what they
// change of arrays.
static void block_strip(Block *b)
{
	for (Op *op = b->last, *prev; op; op = prev) {
		prev = op->prev;
		const int kept = (int)op_int(op, "kept", 0);
		if (is_marked(op) && !is_read(op, 0)) {
			op_erase(op);
			continue;
		}
		if (kept > 0 && kept <= op->nresult && !is_read(op, op->nresult - kept)) {
			op = inner_strip(op);
			for (int r = op->nregion; r-- > 0;)
				if (op->regions[r].first)
					end_shorten(op->regions[r].first, op->nresult, op->code == OP_PD_WHILE);
		}
		for (int r = 0; r < op->nregion; r++)
			if (op->regions[r].first)
				block_strip(op->regions[r].first);
	}
}

// The loop as it was, in its place.
static bool loop_strip(Op *loop)
{
	Context *c = loop->ctx;
	const int n = loop->nresult - (int)op_int(loop, "kept", 0);
	if (n < 0 || n > loop->noperand)
		return strip_fail(loop, "keeps more variables than it has");
	for (int i = n; i < loop->nresult; i++)
		if (value_used(op_result(loop, i)))
			return strip_fail(loop, "the program reads what it keeps for its gradient");
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)loop->noperand + 1, Value *);
	const int given = loop->noperand;
	for (int i = 0; i < n; i++)
		types[i] = loop->results[i].type;
	for (int i = 0; i < given; i++)
		inits[i] = op_operand(loop, i);
	if (loop->nregion > 2)
		erase_pushes(loop->regions[1].first);
	Op *without = op_new(c, loop->code, loop->loc, n, types, n, inits, 2, 0);
	for (int i = 0; i < loop->nattr; i++)
		op_set_attr(without, loop->attrs[i].name, loop->attrs[i].attr);
	op_set_attr(without, "kept", NULL);
	op_insert_before(loop, without);
	op_take_regions(without, loop, 2);
	end_shorten(without->regions[1].first, n, true);
	end_shorten(without->regions[0].first, n, true);
	block_strip(without->regions[1].first);
	for (int i = 0; i < n; i++)
		value_take(op_result(loop, i), op_result(without, i));
	op_erase(loop);
	for (int i = given; i-- > n;)
		erase_made(inits[i]);
	return true;
}

// Needs: the program as differentiate() left it.
// Keeps: all that stood there before, to the byte.
// Breaks: nothing; gradients are gone.
bool pass_strip_backward(PassContext *p)
{
	Block *b = module_block(p->module);
	Op *begin = backward_begin(b), *before = begin ? begin->prev : NULL;
	for (Op *op = b->last, *prev; begin && op != before; op = prev) {
		prev = op->prev;
		if (!erase_unused(op))
			return false;
	}
	for (Op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_PD_WHILE && op_attr(op, "kept") && !loop_strip(op))
			return false;
		if (op->code == OP_PD_FEED && is_marked(op) && !erase_unused(op))
			return false;
	}
	return true;
}
