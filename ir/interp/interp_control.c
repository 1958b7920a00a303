// Interpreter hooks of control flow: regions, pd.if, pd.case, pd.while and stacks.
#include "ir/interp/hooks.h"
#include "ir/interp/interp.h"

// ---- regions ------------------------------------------------------------------------------------

// Binds a block's arguments; all values are read before any is written (a branch may swap them).
static bool enter_block(Interp *in, const Op *from, const Block *b, int n, const Cell *cells)
{
	if (n != b->narg)
		return op_error(from, "%d values for a block with %d arguments", n, b->narg);
	for (int i = 0; i < n; i++)
		interp_bind_cell(in, b->args[i], cells[i]);
	// Loop-carried sizes may be others every time.
	const Op *owner = b->region->op;
	for (int i = 0; i < n; i++)
		if (!interp_found_dims(in, owner, b->args[i]))
			return false;
	return true;
}

// What operands [first, first + n) of op hold.
static bool read_cells(Interp *in, const Op *op, int first, int n, Cell *out)
{
	for (int i = 0; i < n; i++) {
		const Cell *c = op_operand(op, first + i) ? interp_cell(in, op_operand(op, first + i))
		                                          : NULL;
		if (!c)
			return op_error(op, "operand %d has no value", first + i);
		out[i] = *c;
	}
	return true;
}

// Which of the attribute `cases` a number is; their count: none.
static int case_of(const Op *op, int64_t v)
{
	const Attr *cases = op_attr(op, "cases");
	int n = cases ? cases->n : 0, i = 0;
	while (i < n && cases->ints[i] != v)
		i++;
	return i;
}

// Which successor a branch takes; false after a diagnostic.
static bool choose(Interp *in, const Op *op, int *which)
{
	int64_t v;
	*which = 0;
	if (op->code == OP_CF_BR)
		return true;
	if (!interp_whole(in, op, 0, &v))
		return false;
	*which = op->code == OP_CF_COND_BR ? !v : case_of(op, v);
	return true;
}

static bool is_branch(const Op *op)
{
	return op->code == OP_CF_BR || op->code == OP_CF_COND_BR || op->code == OP_CF_SWITCH;
}

static bool too_many_rounds(Interp *in, const Op *op, int64_t limit)
{
	return op_error(op, "the loop takes more than %lld rounds (--max-trip)", (long long)limit);
}

// Counts a branch to `to`: a way back is one more round, any other way to the head begins the loop
// anew.
static bool count_round(Interp *in, PointerMap *rounds, const Op *branch, const Block *to)
{
	int64_t limit = op_int(branch, "max_trip", 0);
	if (!limit) {
		if (rounds->count)
			pointer_map_set_index(rounds, to, 0);
		return true;
	}
	int n = pointer_map_index(rounds, to);
	n = n < 0 ? 1 : n + 1;
	pointer_map_set_index(rounds, to, n);
	return n <= limit || too_many_rounds(in, branch, limit);
}

// Goes where a branch leads: the block; NULL after an error.
static const Block *branch_run(Interp *in, PointerMap *rounds, Op *end)
{
	int which;
	if (!choose(in, end, &which))
		return NULL;
	if (which >= end->nsucc) {
		op_error(end, "the branch has no successor %d", which);
		return NULL;
	}
	const Succ *s = &end->succs[which];
	Cell *cells = NEW_ARRAY(interp_arena(in), s->count + 1, Cell);
	return count_round(in, rounds, end, s->block) &&
	               read_cells(in, end, (int)s->first, (int)s->count, cells) &&
	               enter_block(in, end, s->block, (int)s->count, cells)
	           ? s->block
	           : NULL;
}

const Op *interp_region(Interp *in, const Region *r, int narg, const Cell *args)
{
	const Block *b = region_entry(r);
	PointerMap rounds = {.arena = in->arena};
	if (!b)
		return r->op;
	if (!enter_block(in, r->op, b, narg, args))
		return NULL;
	for (;;) {
		Op *end = block_terminator(b);
		bool ends = end && (end->info->traits & TRAIT_TERMINATOR);
		for (Op *op = b->first; op && !(ends && op == end); op = op->next)
			if (!interp_op(in, op))
				return NULL;
		if (!ends)
			return r->op;
		if (!is_branch(end))
			return end;
		b = branch_run(in, &rounds, end);
		if (!b)
			return NULL;
		interp_tidy(in);
	}
}

// ---- structured operations ----------------------------------------------------------------------

static bool bind_results(Interp *in, Op *op, const Cell *cells)
{
	for (int i = 0; i < op->nresult; i++) {
		interp_bind_cell(in, &op->results[i], cells[i]);
		if (!interp_found_dims(in, op, &op->results[i]))
			return false;
	}
	return true;
}

// The stack of a pd.if, which its third region makes.
static bool read_initial(Interp *in, const Op *op, Cell *stack)
{
	const Op *end = interp_region(in, &op->regions[2], 0, NULL);
	return end && read_cells(in, end, 0, 1, stack);
}

// Runs region r, which takes `n` (0 or 1) arguments, and binds what it gives.
static bool run_part(Interp *in, Op *op, int r, int n, Cell *stack)
{
	const Op *end = interp_region(in, &op->regions[r], n, stack);
	if (!end)
		return false;
	int given = end == op ? 0 : end->noperand;
	if (end == op && n && op->nresult == 1) { // an empty region gives the stack as it is
		interp_bind_cell(in, &op->results[0], *stack);
		return true;
	}
	if (given != op->nresult)
		return op_error(op, "a region yields %d values for %d results", given, op->nresult);
	Cell *cells = NEW_ARRAY(interp_arena(in), (size_t)op->nresult + 1, Cell);
	return read_cells(in, end, 0, op->nresult, cells) && bind_results(in, op, cells);
}

bool interpret_hook_if(Interp *in, Op *op)
{
	int64_t cond;
	Cell stack = {0};
	if (op->nregion < 2 || !interp_whole(in, op, 0, &cond))
		return false;
	const bool init = op->nregion > 2;
	if (init && !read_initial(in, op, &stack))
		return false;
	return run_part(in, op, cond ? 0 : 1, init, &stack);
}

bool interpret_hook_case(Interp *in, Op *op)
{
	int64_t v;
	return interp_whole(in, op, 0, &v) && run_part(in, op, case_of(op, v), 0, NULL);
}

// The rounds of a loop, until its condition does not hold.
static bool run_rounds(Interp *in, const Op *op, LoopFrame *f)
{
	for (int64_t round = 0;; round++) {
		int64_t go_on;
		interp_tidy(in);
		const Op *end = interp_region(in, &op->regions[0], f->n, f->vars);
		if (!end || !interp_whole(in, end, 0, &go_on))
			return false;
		// The values that the condition passes on; a condition that passes none keeps the
		// variables.
		if (end->noperand == f->n + 1 && !read_cells(in, end, 1, f->n, f->vars))
			return false;
		if (!go_on)
			return true;
		if (in->max_trip && round >= in->max_trip)
			return too_many_rounds(in, op, in->max_trip);
		end = interp_region(in, &op->regions[1], f->n, f->vars);
		if (!end ||
		    (end->noperand != f->n && !op_error(op, "the body yields %d values", end->noperand)))
			return false;
		if (!read_cells(in, end, 0, f->n, f->vars))
			return false;
	}
}

// What enters the loop: the operands, or what `init` makes of them.
static bool enter_loop(Interp *in, const Op *op, LoopFrame *f)
{
	if (op->nregion < 3)
		return read_cells(in, op, 0, f->n, f->vars);
	if (!read_cells(in, op, 0, op->noperand, f->vars))
		return false;
	const Op *init = interp_region(in, &op->regions[2], op->noperand, f->vars);
	return init && read_cells(in, init, 0, f->n, f->vars);
}

bool interpret_hook_while(Interp *in, Op *op)
{
	int n = op->noperand + (op->nregion > 2);
	if (op->nregion < 2 || op->nresult != n)
		return op_error(op, "the loop is malformed");
	LoopFrame f = {
		.outer = in->loops, .n = n, .vars = NEW_ARRAY(interp_arena(in), (size_t)n + 1, Cell)};
	if (!enter_loop(in, op, &f))
		return false;
	in->loops = &f;
	bool ok = run_rounds(in, op, &f);
	in->loops = f.outer;
	if (!ok)
		return false;
	for (int i = 0; i < n; i++)
		interp_bind_cell(in, &op->results[i], f.vars[i]);
	return true;
}

// ---- stacks -------------------------------------------------------------------------------------

static CellList *read_stack(Interp *in, const Op *op)
{
	const Cell *c = op_operand(op, 0) ? interp_cell(in, op_operand(op, 0)) : NULL;
	if (c && c->list)
		return c->list;
	op_error(op, "the stack has no value");
	return NULL;
}

bool interpret_hook_create_stack(Interp *in, Op *op)
{
	interp_bind_cell(in, &op->results[0], (Cell){.list = NEW(interp_arena(in), CellList)});
	return true;
}

bool interpret_hook_push_back(Interp *in, Op *op)
{
	CellList *stack = read_stack(in, op), *group = NEW(interp_arena(in), CellList);
	if (!stack)
		return false;
	for (int i = 1; i < op->noperand; i++) {
		Cell c;
		if (!read_cells(in, op, i, 1, &c))
			return false;
		cell_list_add(in, group, c);
	}
	cell_list_add(in, stack, (Cell){.list = group});
	return true;
}

bool interpret_hook_pop_back(Interp *in, Op *op)
{
	CellList *stack = read_stack(in, op);
	if (!stack)
		return false;
	if (stack->n == 0)
		return op_error(op, "the stack is empty");
	const CellList *group = stack->items[--stack->n].list;
	if (group->n != op->nresult)
		return op_error(op, "%d values were pushed, %d are popped", group->n, op->nresult);
	for (int i = 0; i < group->n; i++) {
		const Tensor *t = group->items[i].tensor;
		const Type *want = op->results[i].type;
		if (t && (want->kind != TY_TENSOR || t->dtype != want->dtype || t->rank != want->rank))
			return op_error(op, "value %d that was pushed is no %s", i,
			                type_text(interp_context(in), want));
	}
	return bind_results(in, op, group->items);
}

bool interpret_hook_is_empty(Interp *in, Op *op)
{
	CellList *stack = read_stack(in, op);
	Tensor *t = stack ? interp_result(in, op, 0) : NULL;
	if (t)
		tensor_set_i(t, 0, stack->n == 0);
	return t != NULL;
}
