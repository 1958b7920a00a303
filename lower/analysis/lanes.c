// What several positions of an index side by side share: which values are the same in all lanes,
// and which loads are one access. The one answer for lanes of nests and reductions on CUDA, for
// regions of its kernels, and for the lane loops of C.
#include "lower/analysis/nest.h"

LaneState lane_state(const Lanes *l, const Value *v)
{
	if (v->def) {
		const LaneState s = (LaneState)(intptr_t)pointer_map_get(&l->state, v->def);
		return s ? s : LANE_SAME; // from outside of the block
	}
	if (v == l->also)
		return LANE_MOVES;
	for (const Value *at = v; l->arg && at; at = pointer_map_get(l->merged, at))
		if (at == l->arg)
			return LANE_MOVES;
	return !l->arg && v->block && v->block == l->body ? LANE_MOVES : LANE_SAME;
}

// ---- predicates ---------------------------------------------------------------------------------

// What an index is without the constants that are added to it, and their sum.
static const Value *without_shift(const Value *v, int64_t *shift)
{
	int64_t c;
	for (*shift = 0; v->def && v->def->noperand == 2 && index_constant(op_operand(v->def, 1), &c);
	     v = op_operand(v->def, 0)) {
		if (v->def->code != OP_PD_ADD && v->def->code != OP_PD_SUBTRACT)
			break;
		*shift += v->def->code == OP_PD_ADD ? c : -c;
	}
	return v;
}

// Whether `moving < border` is the same for all lanes: the border stands between vectors. `beyond`:
// it is `moving <= border`.
static bool border_fits(const Lanes *l, const Value *moving, const Value *border, bool beyond)
{
	int64_t c, shift;
	if (lane_state(l, border) != LANE_SAME || moving->type->kind != TY_INDEX ||
	    index_stride(moving, l->arg) != 1)
		return false;
	moving = without_shift(moving, &shift);
	if (index_power(l->ctx, l->merged, moving, l->arg, l->width) < l->width)
		return false;
	if (index_constant(border, &c))
		return (c - shift + beyond) % l->width == 0;
	return (beyond - shift) % l->width == 0 &&
	       index_power(l->ctx, l->merged, border, l->arg, l->width) >= l->width;
}

static bool comparison_is_uniform(const Lanes *l, const Op *op)
{
	if (!l->arg || l->width < 2)
		return false;
	const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
	switch (op->code) {
	case OP_PD_LESS_THAN:
	case OP_PD_GREATER_EQUAL: return border_fits(l, a, b, false) || border_fits(l, b, a, true);
	case OP_PD_GREATER_THAN:
	case OP_PD_LESS_EQUAL: return border_fits(l, a, b, true) || border_fits(l, b, a, false);
	default: return false;
	}
}

// ---- loads --------------------------------------------------------------------------------------

static bool load_is_along(const Lanes *l, const Op *load)
{
	return load_stride(load, l->arg) == 1 &&
	       load_power(l->ctx, l->merged, load, l->arg, l->width) >= l->width;
}

// Whether the load is that of the element which the nest computes.
static bool load_is_element(const Lanes *l, const Op *load)
{
	const int first = load_indices_at(load);
	const Type *t = load_tensor(load), *result = l->body->region->op->results[0].type;
	if (t->rank != result->rank)
		return false;
	for (int d = 0; d < t->rank; d++)
		if (op_operand(load, first + d) != l->body->args[d] || t->dims[d] != result->dims[d])
			return false;
	return true;
}

bool lanes_load_at_once(const Lanes *l, const Op *load)
{
	return pointer_map_get(&l->vector, load) != NULL;
}

// Whether what stands in for a load is the same in all lanes, or a vector of such elements, too.
static bool other_fits(const Lanes *l, const Op *load)
{
	const Value *other = op_operand(load, 1);
	if (lane_state(l, other) == LANE_SAME)
		return true;
	return other->def && lanes_load_at_once(l, other->def) &&
	       load_tensor(other->def)->dtype == load_tensor(load)->dtype;
}

static bool load_is_vector(const Lanes *l, const Op *op)
{
	if (l->width < 2 || !load_indices_at(op) || lane_state(l, &op->results[0]) != LANE_MOVES)
		return false;
	if (op->code == OP_LOOP_LOAD_OR &&
	    (lane_state(l, op_operand(op, 0)) == LANE_MOVES || !other_fits(l, op)))
		return false;
	return l->arg ? load_is_along(l, op) : load_is_element(l, op);
}

// ---- the block ----------------------------------------------------------------------------------

static void block_find(Lanes *l, const Block *b);

static LaneState op_state(Lanes *l, const Op *op)
{
	LaneState most = LANE_SAME;
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && lane_state(l, op_operand(op, i)) > most)
			most = lane_state(l, op_operand(op, i));
	for (int i = 0; i < op->nregion; i++) {
		block_find(l, op->regions[i].first);
		for (const Op *in = op->regions[i].first->first; in; in = in->next) {
			const LaneState s = (LaneState)(intptr_t)pointer_map_get(&l->state, in);
			most = s > most ? s : most;
		}
	}
	return most == LANE_MOVES && comparison_is_uniform(l, op) ? LANE_UNIFORM : most;
}

static void block_find(Lanes *l, const Block *b)
{
	for (const Op *op = b->first; op; op = op->next) {
		pointer_map_set(&l->state, op, (const void *)(intptr_t)op_state(l, op));
		if (load_is_vector(l, op))
			pointer_map_set(&l->vector, op, op);
	}
}

void lanes_find(Lanes *l, Arena *a)
{
	pointer_map_init(&l->state, a);
	pointer_map_init(&l->vector, a);
	block_find(l, l->body);
}
