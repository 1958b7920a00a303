// What single numbers may be in a run, from the branches and updates on the way to where they are
// read: sums that count within what was compared cannot overflow, counters that begin at 0 are
// positions. The printers ask, and leave out checks and wider types.
#include "lower/analysis/numbers.h"

enum { MAX_DEPTH = 4 };
enum { POSITION = 1 }; // operand of loop.update

// ---- sums that cannot overflow ------------------------------------------------------------------

// Whether every way from the first block to `b` leads through `over`. Blocks are numbered.
static bool block_dominates(Arena *a, const Block *over, const Block *b)
{
	const Region *r = b->region;
	size_t n = r->last->id + (size_t)1;
	bool *seen = NEW_ARRAY(a, n, bool);
	const Block **todo = NEW_ARRAY(a, n, const Block *);
	size_t count = 0;
	if (r->first != over) {
		seen[r->first->id] = true;
		todo[count++] = r->first;
	}
	while (count) {
		const Block *at = todo[--count];
		if (at == b)
			return false;
		for (int s = 0; at->last && s < at->last->nsucc; s++) {
			const Block *to = at->last->succs[s].block;
			if (to == over || seen[to->id])
				continue;
			seen[to->id] = true;
			todo[count++] = to;
		}
	}
	return true;
}

// Whether the way into the block is this branch alone.
static bool branch_leads_alone(const Op *branch, const Block *b)
{
	int ways = 0;
	for (const Block *from = b->region->first; from; from = from->next)
		for (int s = 0; from->last && s < from->last->nsucc; s++)
			ways += from->last->succs[s].block == b;
	return ways == 1 && branch->succs[0].block == b;
}

// The number that is seen in another shape.
static const Value *number_base(const Value *v)
{
	while (v->def && (v->def->info->traits & TRAIT_VIEW) && value_is_number(op_operand(v->def, 0)))
		v = op_operand(v->def, 0);
	return v;
}

static const Value *loaded(const Value *v)
{
	return v && v->def && v->def->code == OP_LOOP_LOAD ? number_base(op_operand(v->def, 0)) : NULL;
}

// Whether the size is what v was found to hold.
static bool size_is_number(const Value *v, const Dim *size)
{
	for (const Use *u = v ? v->uses : NULL; u; u = u->next) {
		if ((u->user->info->traits & TRAIT_VIEW) && size_is_number(&u->user->results[0], size))
			return true;
		const Attr *dims = u->user->code == OP_LOOP_BIND ? op_attr(u->user, "dims") : NULL;
		if (dims && dims->n == 1 && dims->dims[0] == size && !op_bool(u->user, "anew", false))
			return true;
	}
	return false;
}

// Whether a number in a nest is surely no more (or no less) than the size; NULL: than what there
// is.
static bool limit_fits(const Value *limit, bool above, const Dim *most)
{
	const Op *op = limit ? limit->def : NULL;
	if (!most || (above && most->kind == DIM_SYM && size_is_number(loaded(limit), most)))
		return true;
	const Attr *value = op && op->code == OP_LOOP_CONSTANT ? op_attr(op, "value") : NULL;
	if (!value || value->kind != ATTR_INT || !dim_is_const(most))
		return false;
	return above ? value->i <= most->value : value->i >= most->value;
}

// Whether a test in a nest says that what `v` holds is less (or greater) than something that is no
// more (no less) than `most`.
static bool test_bounds(const Value *test, const Value *v, bool above, const Dim *most)
{
	const Op *op = test ? test->def : NULL;
	if (!op)
		return false;
	if (op->code == OP_PD_LOGICAL_AND)
		return test_bounds(op_operand(op, 0), v, above, most) ||
		       test_bounds(op_operand(op, 1), v, above, most);
	if (op->code != OP_PD_LESS_THAN && op->code != OP_PD_GREATER_THAN)
		return false;
	const int side = (op->code == OP_PD_LESS_THAN) == above ? 0 : 1;
	return loaded(op_operand(op, side)) == v && limit_fits(op_operand(op, !side), above, most);
}

// Where conditions that read v are branched on: a branch there bounds v on its way to `b`.
static bool branch_bounds(Arena *a, const Value *v, bool above, const Dim *most, const Block *b)
{
	for (const Block *from = b->region->first; from; from = from->next) {
		const Op *end = from->last;
		const Value *cond = end && end->code == OP_CF_COND_BR ? op_operand(end, 0) : NULL;
		const Op *nest = cond ? cond->def : NULL;
		if (nest && nest->code == OP_LOOP_NEST &&
		    test_bounds(op_operand(nest->regions[0].first->last, (int)cond->index), v, above,
		                most) &&
		    branch_leads_alone(end, end->succs[0].block) &&
		    block_dominates(a, end->succs[0].block, b))
			return true;
	}
	return false;
}

// Whether an update reads it as the position of a slice.
static bool is_position(const Use *u)
{
	return u->user->code == OP_LOOP_UPDATE && u->index == POSITION;
}

// Whether every way to `op` leads through the other operation.
static bool op_dominates(Arena *a, const Op *other, const Op *op)
{
	const Op *before = op->prev;
	if (other->block != op->block)
		return block_dominates(a, other->block, op->block);
	while (before && before != other)
		before = before->prev;
	return before;
}

// Whether a size is the room in arrays, which is the same for a whole run.
static bool size_is_room(const Op *op, const Dim *size)
{
	for (const Op *at = op->block->region->first->first; at; at = at->next) {
		const Attr *rooms = at->code == OP_LOOP_CAPACITY ? op_attr(at, "dims") : NULL;
		for (int i = 0; rooms && i < rooms->n; i++)
			if (rooms->dims[i] == size)
				return true;
	}
	return false;
}

// Whether all positions below `few` are below `many`, whatever a run finds. NULL: any number will
// do.
static bool slices_cover(const Op *op, const Dim *few, const Dim *many)
{
	if (!many)
		return true;
	if (dim_is_const(few) && dim_is_const(many))
		return few->value <= many->value;
	return few == many && few->kind == DIM_SYM && (!few->bounded || size_is_room(op, few));
}

// Whether an update on each way to `op` has found that v is a position, among no more than that
// many slices.
static bool position_was_checked(Arena *a, const Value *v, const Op *op, const Dim *slices)
{
	for (const Use *u = v->uses; u; u = u->next) {
		const Op *other = u->user;
		if ((other->info->traits & TRAIT_VIEW) && value_is_number(&other->results[0]) &&
		    position_was_checked(a, &other->results[0], op, slices))
			return true;
		if (is_position(u) && other != op &&
		    slices_cover(op, other->results[0].type->dims[0], slices) && op_dominates(a, other, op))
			return true;
	}
	return false;
}

// Whether v is less than some number of slices, which an update on each way to `op` has seen.
static bool counts_slices(Arena *a, const Value *v, const Op *op)
{
	return v->type->dtype == DT_I64 && position_was_checked(a, v, op, NULL);
}

// The operand that the way `s` out of `from` passes to an argument; NULL: it leads elsewhere.
static const Value *passed(const Block *from, int s, const Value *arg)
{
	const Succ *way = &from->last->succs[s];
	return way->block == arg->block
	           ? number_base(op_operand(from->last, (int)(way->first + arg->index)))
	           : NULL;
}

// Whether each value that ways to the argument's block pass is a constant, or less than some
// position there is.
static bool argument_is_bounded(Arena *a, const Value *arg)
{
	for (const Block *from = arg->block->region->first; from; from = from->next)
		for (int s = 0; from->last && s < from->last->nsucc; s++) {
			const Value *v = passed(from, s, arg);
			const Tensor *known = v ? value_constant(v) : NULL;
			const bool small = known && tensor_get_i(known, 0) < INT64_MAX;
			if (v && v != arg && !small && !counts_slices(a, v, from->last))
				return false;
		}
	return true;
}

// Whether something on each way to `op` says that v is less (or greater) than something.
static bool value_is_bounded(Arena *a, const Value *v, bool above, const Op *op)
{
	if (branch_bounds(a, v, above, NULL, op->block))
		return true;
	return above && (counts_slices(a, v, op) || (!v->def && v->type->dtype == DT_I64 &&
	                                             value_is_number(v) && argument_is_bounded(a, v)));
}

// By how much a sum or difference of a number in memory and a constant of 1 changes it: 1 or -1; 0:
// it is none.
static int step_of(const Op *op)
{
	const Type *t = op->results[0].type;
	if ((op->code != OP_PD_ADD && op->code != OP_PD_SUBTRACT) || t->kind != TY_SCALAR ||
	    (t->dtype != DT_I64 && t->dtype != DT_I32))
		return 0;
	const Op *by = op_operand(op, 1) ? op_operand(op, 1)->def : NULL;
	const Attr *step = by && by->code == OP_LOOP_CONSTANT ? op_attr(by, "value") : NULL;
	if (!step || step->kind != ATTR_INT || (step->i != 1 && step->i != -1))
		return 0;
	return (step->i > 0) == (op->code == OP_PD_ADD) ? 1 : -1;
}

bool sum_fits(Arena *a, const Op *op)
{
	const int step = step_of(op);
	const Value *v = step ? loaded(op_operand(op, 0)) : NULL;
	const Op *nest = op_parent(op);
	return v && nest && nest->block && value_is_bounded(a, v, step > 0, nest);
}

// ---- positions ----------------------------------------------------------------------------------

// Values of which the same holds as far as it does of those further up.
typedef struct Assumed {
	const Value *v;
	const struct Assumed *up;
} Assumed;

static bool value_stays(Arena *a, const Value *v, const Dim *most, const Assumed *up);

// Each round of a loop passes what the rounds before gave: where all of these stay within as far as
// the argument did, it always does.
static bool argument_stays(Arena *a, const Value *arg, const Dim *most, const Assumed *up)
{
	const Assumed with = {arg, up};
	for (const Block *from = arg->block->region->first; from; from = from->next)
		for (int s = 0; from->last && s < from->last->nsucc; s++) {
			const Value *v = passed(from, s, arg);
			if (v && !value_stays(a, v, most, &with))
				return false;
		}
	return arg->block != arg->block->region->first;
}

// Whether a branch on the way to the nest has found that v is more than 0.
static bool is_above_zero(Arena *a, const Value *v, const Op *nest)
{
	return v && nest && nest->block &&
	       branch_bounds(a, v, false, dim_const(nest->ctx, 0), nest->block);
}

// Whether what a nest computes is never negative.
static bool scalar_is_natural(Arena *a, const Value *v, const Assumed *up)
{
	const Op *op = v ? v->def : NULL;
	if (!op)
		return false;
	switch (op->code) {
	case OP_LOOP_LOAD: return value_stays(a, op_operand(op, 0), NULL, up);
	case OP_PD_MAXIMUM:
		return scalar_is_natural(a, op_operand(op, 0), up) ||
		       scalar_is_natural(a, op_operand(op, 1), up);
	case OP_PD_ADD:
	case OP_PD_SUBTRACT:
		if (step_of(op) < 0)
			return is_above_zero(a, loaded(op_operand(op, 0)), op_parent(op));
		return step_of(op) > 0 && sum_fits(a, op) && scalar_is_natural(a, op_operand(op, 0), up);
	default: return false;
	}
}

// The number to which op, in a nest, adds 1, or -1, without overflow; NULL: it does something else.
static const Value *steps_from(Arena *a, const Op *op)
{
	return op && step_of(op) && sum_fits(a, op) ? loaded(op_operand(op, 0)) : NULL;
}

// Whether what a nest computes is never more than the size: the count of updates, of which each was
// checked, and what is counted down from it.
static bool scalar_is_at_most(Arena *a, const Value *v, const Dim *most, const Assumed *up)
{
	const Value *x = v ? steps_from(a, v->def) : NULL;
	if (!x)
		return false;
	return step_of(v->def) > 0 ? position_was_checked(a, x, op_parent(v->def), most)
	                           : value_stays(a, x, most, up);
}

// Whether v, an integer of one element, is never more than the size; NULL: never negative.
static bool value_stays(Arena *a, const Value *v, const Dim *most, const Assumed *up)
{
	int depth = 0;
	v = number_base(v);
	for (const Assumed *at = up; at; at = at->up, depth++)
		if (at->v == v)
			return true;
	const Tensor *known = value_constant(v);
	if (known) {
		const int64_t number = tensor_numel(known) == 1 ? tensor_get_i(known, 0) : 0;
		return tensor_numel(known) == 1 && (most ? number <= 0 : number >= 0);
	}
	if (depth > MAX_DEPTH || !value_is_number(v))
		return false;
	if (!v->def)
		return argument_stays(a, v, most, up);
	if (v->def->code != OP_LOOP_NEST)
		return false;
	const Value *given = op_operand(v->def->regions[0].first->last, (int)v->index);
	return most ? scalar_is_at_most(a, given, most, up) : scalar_is_natural(a, given, up);
}

bool number_is_natural(Arena *a, const Value *v)
{
	return value_stays(a, v, NULL, NULL);
}

void update_position(Arena *a, const Op *op, bool *natural, bool *within)
{
	const Value *at = number_base(op_operand(op, POSITION));
	const Dim *slices = op->results[0].type->dims[0];
	*natural = position_was_checked(a, at, op, NULL) || number_is_natural(a, at);
	*within = position_was_checked(a, at, op, slices) ||
	          branch_bounds(a, at, true, slices, op->block);
}

// Whether v is less than the size where the nest runs.
static bool value_is_less(Arena *a, const Value *v, const Dim *most, const Op *nest)
{
	if (position_was_checked(a, v, nest, most) || branch_bounds(a, v, true, most, nest->block))
		return true;
	if (!v->def || v->def->code != OP_LOOP_NEST)
		return false;
	const Op *sum = op_operand(v->def->regions[0].first->last, (int)v->index)->def;
	const Value *x = steps_from(a, sum);
	return x && step_of(sum) < 0 && value_stays(a, x, most, NULL);
}

bool index_is_position(Arena *a, const Op *to_index)
{
	const Value *v = loaded(op_operand(to_index, 0));
	const Dim *extent = op_attr(to_index, "extent")->dim;
	const Op *nest = op_parent(to_index);
	while (nest && nest->code != OP_LOOP_NEST)
		nest = op_parent(nest);
	return v && nest && nest->block && value_is_number(v) && dtype_is_int(v->type->dtype) &&
	       value_is_less(a, v, extent, nest) && number_is_natural(a, v);
}
