// C: a loop of a nest whose body takes its index apart by division, as joined heads and interleaved
// channels make them, becomes two loops, of quotient and rest: each goes in steps then, which lanes
// can follow. So does one that takes each element several times, as what is scaled up does.
// Called by pipeline.c.
#include "ir/build/nest.h"
#include "lower/analysis/nest.h"
#include "lower/nests/fuse.h"
#include "lower/nests/nests.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

// A shorter inner loop is no better than a division, unless all of its rounds do the same.
enum { MIN_INNER = 8 };

// Whether loads that move with v do so from element to element, and there is one.
static bool moves_in_steps(const Block *b, const Value *v)
{
	Strides count = {0};
	strides_count(b, v, &count);
	return count.n[1] && !count.n[2];
}

static bool rest_moves_in_steps(const Block *b, const Value *arg)
{
	for (const Use *u = arg->uses; u; u = u->next)
		if (u->user->code == OP_PD_REMAINDER && u->index == 0)
			return moves_in_steps(b, &u->user->results[0]);
	return false;
}

// Whether the body asks for nothing of the argument but the quotient, and loads follow that from
// element to element: then the rest says how often each is taken.
static bool repeats_elements(const Block *b, const Value *arg)
{
	bool repeats = arg->uses != NULL;
	for (const Use *u = arg->uses; u; u = u->next)
		repeats &= u->user->code == OP_PD_FLOOR_DIVIDE && u->index == 0 &&
		           moves_in_steps(b, &u->user->results[0]);
	return repeats;
}

// The length of the inner loop of the two that the nest's last one becomes; 0: it stays.
static int64_t inner_length(const Op *nest, int last)
{
	const Block *b = nest->regions[0].first;
	const Type *t = nest->results[0].type;
	if (t->rank >= MAX_RANK || !dim_is_const(t->dims[last]))
		return 0;
	const int64_t by = index_divisor(b->args[last]), extent = t->dims[last]->value;
	const bool pays = (by >= MIN_INNER && rest_moves_in_steps(b, b->args[last])) ||
	                  (by > 1 && repeats_elements(b, b->args[last]));
	return pays && by < extent && extent % by == 0 ? by : 0;
}

static const Type *split_type(Context *c, const Type *t, int at, int64_t inner)
{
	const Dim *dims[MAX_RANK];
	for (int i = 0; i < t->rank; i++)
		dims[i + (i > at)] = t->dims[i];
	dims[at] = dim_const(c, t->dims[at]->value / inner);
	dims[at + 1] = dim_const(c, inner);
	return type_tensor(c, t->dtype, t->rank + 1, dims, 0);
}

static bool nest_split(Op *nest, int at, int64_t inner)
{
	Context *c = nest->ctx;
	const Type **types = NEW_ARRAY(c->arena, (size_t)nest->nresult, const Type *);
	for (int i = 0; i < nest->nresult; i++)
		types[i] = split_type(c, nest->results[i].type, at, inner);
	Op *made = op_new(c, OP_LOOP_NEST, nest->loc, nest->nresult, types, 0, NULL, 1, 0);
	const Block *body = nest->regions[0].first;
	Block *b = block_new(c, &made->regions[0]);
	for (int i = 0; i <= body->narg; i++)
		block_add_arg(c, b, type_index(c));
	ValueMap *map = value_map_new(c->arena);
	for (int i = 0; i < body->narg; i++)
		value_map_set(map, body->args[i], b->args[i + (i > at)]);
	Builder in = builder_at_end(c, b, nest->loc);
	value_map_set(map, body->args[at],
	              index_add(&in, index_times(&in, b->args[at], inner), b->args[at + 1]));
	for (const Op *op = body->first; op; op = op->next)
		op_append(b, op_clone(c, op, map));
	op_insert_before(nest, made);
	Builder before = builder_before(nest);
	for (int i = 0; i < nest->nresult; i++) {
		const Type *t = nest->results[i].type;
		Value *view = tensor_reshape(&before, &made->results[i], t->rank, t->dims);
		if (!view)
			return false;
		made->results[i].name = nest->results[i].name;
		value_take(&nest->results[i], view);
	}
	op_erase(nest);
	scalar_simplify(made);
	return true;
}

static bool nest_visit(Op *nest)
{
	const Type *t = nest->results[0].type;
	int last = t->rank - 1;
	while (last > 0 && dim_is(t->dims[last], 1))
		last--;
	const int64_t inner = last < 0 ? 0 : inner_length(nest, last);
	return !inner || nest_split(nest, last, inner);
}

// Needs: nests.  Keeps: everything.  Breaks: nothing; results are views of those of more dims.
bool pass_split_loops(PassContext *p)
{
	return (p->target && p->target->simt) || nests_visit(&p->module->regions[0], nest_visit);
}
