// For CUDA: a loop whose rounds are known on entry gets one more variable, which says how many are
// left and is all that its condition looks at. What the condition was computed from goes away where
// nobody else reads it, and code generation needs no condition at all (loop_blocks.c). Run on pd
// operators, where counters can be told.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/analysis/analysis.h"
#include "lower/cuda/cuda.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

static const Type *count_type(Context *c)
{
	const Dim *one = dim_const(c, 1);
	return type_tensor(c, DT_I64, 1, &one, 0);
}

// ---- how many -----------------------------------------------------------------------------------

static Value *count_of_dim(Builder *b, const Dim *rounds)
{
	if (dim_is_const(rounds)) {
		Tensor *t = tensor_new(b->ctx->arena, DT_I64, 1, (const int64_t[]){1});
		tensor_set_i(t, 0, rounds->value);
		return build_constant(b, t);
	}
	Nest n = nest_open(b, count_type(b->ctx));
	return nest_close(&n, scalar_from_index(&n.b, index_dim(&n.b, rounds), DT_I64));
}

static Value *end_value(Builder *b, const TripEnd *e)
{
	if (!e->base)
		return scalar_from_index(b, index_dim(b, e->offset), DT_I64);
	Value *base = scalar_cast(b, load_scalar(b, e->base), DT_I64);
	return dim_is(e->offset, 0)
	           ? base
	           : apply2(b, OP_PD_ADD, base, scalar_from_index(b, index_dim(b, e->offset), DT_I64));
}

// How many steps lead from one end to the other.
static Value *count_of_ends(Builder *b, const TripEnds *e)
{
	Nest n = nest_open(b, count_type(b->ctx));
	Value *first = end_value(&n.b, &e->first), *end = end_value(&n.b, &e->end);
	Value *low = e->step > 0 ? first : end, *high = e->step > 0 ? end : first;
	Value *way = apply2(&n.b, OP_PD_SUBTRACT, high, low), *zero = build_scalar_f(&n.b, DT_I64, 0);
	const int64_t step = e->step > 0 ? e->step : -e->step, less = (e->inclusive ? 0 : 1) - step;
	if (less)
		way = apply2(&n.b, OP_PD_SUBTRACT, way, build_scalar_f(&n.b, DT_I64, (double)less));
	if (step > 1)
		way = apply2(&n.b, OP_PD_FLOOR_DIVIDE, way, build_scalar_f(&n.b, DT_I64, (double)step));
	Value *which[] = {apply2(&n.b, e->inclusive ? OP_PD_LESS_EQUAL : OP_PD_LESS_THAN, low, high),
	                  way, zero};
	return nest_close(&n, build(&n.b, OP_PD_WHERE, 3, which, NULL));
}

// ---- the variable -------------------------------------------------------------------------------

// The loop with one more variable, which a round makes one less.
static Op *loop_with_count(Op *loop, Value *count)
{
	Context *c = loop->ctx;
	const int n = loop->nresult;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	Value **operands = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		types[i] = loop->results[i].type;
		operands[i] = op_operand(loop, i);
	}
	types[n] = count->type;
	operands[n] = count;
	Op *with = op_new(c, OP_PD_WHILE, loop->loc, n + 1, types, n + 1, operands, 2, 0);
	op_take_regions(with, loop, 2);
	Builder at_test = builder_before(with->regions[0].first->last),
			at_end = builder_before(with->regions[1].first->last);
	Value *left = block_add_arg(c, with->regions[0].first, count->type);
	Value *more = build2(&at_test, OP_PD_GREATER_THAN, left, build_full(&at_test, count->type, 0),
	                     NULL);
	op_set_operand(with->regions[0].first->last, 0, more);
	op_add_operand(with->regions[0].first->last, left);
	left = block_add_arg(c, with->regions[1].first, count->type);
	op_add_operand(with->regions[1].first->last, build2(&at_end, OP_PD_SUBTRACT, left,
	                                                    build_full(&at_end, count->type, 1), NULL));
	for (int i = 0; i < n; i++)
		value_take(&loop->results[i], &with->results[i]);
	op_insert_before(loop, with);
	op_erase(loop);
	return with;
}

// Whether rounds that are counted in front of the loop are never too many.
static bool rounds_are_few(const PassContext *p, const Dim *exact)
{
	return !p->max_trip || (exact && dim_is_const(exact) && exact->value <= p->max_trip);
}

static bool loop_count(PassContext *p, Op *loop)
{
	const Dim *exact, *at_most;
	TripEnds ends;
	if (!loop_is_plain(loop) || op_bool(loop, "counted", false) ||
	    !region_is_pure(&loop->regions[0]))
		return true;
	while_trip_count(p->ctx, loop, &exact, &at_most);
	if (!rounds_are_few(p, exact) || (!exact && !while_trip_ends(p->ctx, loop, &ends)))
		return true;
	Builder b = builder_before(loop);
	Value *count = exact ? count_of_dim(&b, exact) : count_of_ends(&b, &ends);
	if (!count)
		return false;
	loop = loop_with_count(loop, count);
	op_set_attr(loop, "counted", attr_bool(p->ctx, true));
	if (exact && !dim_is_found(exact))
		op_set_attr(loop, "rounds", attr_dim(p->ctx, exact));
	return true;
}

// Needs: pd operators, for while_trip_count; a target.
// Keeps: everything but the conditions of such loops.
// Breaks: nothing. What conditions were computed from may be dead, variables too.
bool pass_count_loops(PassContext *p)
{
	if (!p->target || !p->target->graph)
		return true;
	return control_visit(p, &p->module->regions[0], OP_PD_WHILE, loop_count);
}
