// Nests into their readers: a load of a nest's result is replaced by the nest's body at the load's
// indices. Decides by a small cost model whether that is cheaper than writing the tensor and
// reading it back. Called by fuse.c.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/analysis/nest.h"
#include "lower/analysis/places.h"
#include "lower/nests/fuse.h"

#include <string.h>

enum {
	ESTIMATED_SYMBOL = 16, // what an unknown size counts as
	MAX_BODY = 400,        // operations in a reader; more make functions that compilers choke on
	MAX_GUARDED_COST = 24, // of a body that is evaluated under a predicate
	MAX_SITES = 64
};

// Work, in additions: writing an element of a tensor and reading it back.
static const double MEMORY_COST = 4.0;

// ---- what a nest is -----------------------------------------------------------------------------

bool op_has_region_code(const Op *op)
{
	return op->code == OP_LOOP_NEST || (op->info->kind == KIND_KERNEL && op->nregion > 0);
}

bool load_reads(const Op *load, int i)
{
	return (load->code == OP_LOOP_LOAD && i == 0) || (load->code == OP_LOOP_LOAD_OR && i == 2);
}

int op_count(const Op *op, bool deep)
{
	int n = 0;
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *inner = b->first; inner; inner = inner->next)
				n += 1 + (deep ? op_count(inner, true) : 0);
	return n;
}

// Whether anything inside `op` reads a parameter.
static bool reads_parameters(const Op *op)
{
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *inner = b->first; inner; inner = inner->next) {
				for (int i = 0; i < inner->noperand; i++) {
					const Value *v = op_operand(inner, i);
					if (v && v->def && v->def->code == OP_BUILTIN_GET_PARAMETER)
						return true;
				}
				if (reads_parameters(inner))
					return true;
			}
	return false;
}

// Whether something between op and `to` writes into the bytes of v, if nobody reads them
// afterwards: an update, or a loop that takes v along.
static bool value_is_updated(const Op *op, const Op *to, const Value *v)
{
	for (const Use *u = v->uses; u; u = u->next) {
		const Op *by = u->user;
		if (!(u->index == 0 && op_updates(by)) && by->code != OP_PD_WHILE)
			continue;
		while (by && by->block != op->block)
			by = op_parent(by);
		if (by && op_is_before(op, by) && op_is_before(by, to))
			return true;
	}
	return false;
}

// Whether op reads, as it is, what is updated in place further down: as a later reader it would
// make the update copy.
static bool reads_updated(const Op *op, const Op *in, const Op *to)
{
	for (int r = 0; r < in->nregion; r++)
		for (const Block *b = in->regions[r].first; b; b = b->next)
			for (const Op *inner = b->first; inner; inner = inner->next) {
				for (int i = 0; i < inner->noperand; i++) {
					const Value *v = op_operand(inner, i);
					if (v && v->type->kind == TY_TENSOR && value_is_updated(op, to, v))
						return true;
				}
				if (reads_updated(op, inner, to))
					return true;
			}
	return false;
}

bool op_may_move(const Op *op, const Op *to)
{
	if (op->next == to)
		return true;
	if (reads_updated(op, op, to))
		return false;
	bool reads = reads_parameters(op);
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		reads = reads || (v && v->def && v->def->code == OP_BUILTIN_GET_PARAMETER);
	}
	for (const Op *at = reads ? op->next : NULL; at && at != to; at = at->next)
		if (at->code == OP_BUILTIN_SET_PARAMETER || op_contains(at, OP_BUILTIN_SET_PARAMETER))
			return false;
	return true;
}

// ---- costs --------------------------------------------------------------------------------------

static int64_t symbol_estimate(const Dim *sym, void *arg)
{
	(void)sym;
	(void)arg;
	return ESTIMATED_SYMBOL;
}

static double dim_estimate(const Dim *d)
{
	int64_t v;
	if (!dim_eval(d, symbol_estimate, NULL, &v))
		return 1e18;
	return v < 1 ? 1.0 : (double)v;
}

static double dims_estimate(int n, const Dim *const *dims)
{
	double p = 1;
	for (int i = 0; i < n; i++)
		p *= dim_estimate(dims[i]);
	return p;
}

static double block_cost(const Block *b);

static double op_cost(const Op *op)
{
	const Attr *extents = op->code == OP_LOOP_REDUCE ? op_attr(op, "extents") : NULL;
	if (extents)
		return dims_estimate(extents->n, extents->dims) * (1 + block_cost(op->regions[0].first));
	const bool index = op->nresult && op->results[0].type->kind == TY_INDEX;
	return index ? op->info->index_cost : op->info->cost; // positions mostly leave the inner loop
}

static double block_cost(const Block *b)
{
	double cost = 0;
	for (const Op *op = b ? b->first : NULL; op; op = op->next)
		cost += op_cost(op);
	return cost;
}

// How often the operations beside `op` run: the trips of all loops around it, up to `top`'s.
static double trip_count(const Op *op, const Op *top)
{
	double n = 1;
	for (const Op *at = op_parent(op); at; at = op_parent(at)) {
		if (at->code == OP_LOOP_REDUCE) {
			const Attr *extents = op_attr(at, "extents");
			n *= extents ? dims_estimate(extents->n, extents->dims) : 1;
		}
		if (at == top)
			break;
	}
	const Type *t = top->results[0].type;
	return n * dims_estimate(t->rank, t->dims);
}

// The position of a nest that a condition compares with a constant: of a stack, the tensor. The
// last loop stays whole, so there all tensors would be computed for each position.
static const Value *position_compared(const Op *top, const Value *condition)
{
	const Op *op = condition->def;
	const Block *body = region_entry(&top->regions[0]);
	if (!op || op->code != OP_PD_EQUAL || op_operand(op, 1)->def == NULL ||
	    op_operand(op, 1)->def->code != OP_LOOP_CONSTANT)
		return NULL;
	for (int i = 0; i + 1 < body->narg; i++)
		if (body->args[i] == op_operand(op, 0))
			return body->args[i];
	return NULL;
}

// The operation that takes a value where its condition does not hold, and does nothing else with
// it; NULL: there is none.
static const Op *chosen_by(const Value *v)
{
	const Use *u = v->uses;
	return u && !u->next && u->user->code == OP_LOOP_LOAD_OR && u->index == 1 ? u->user : NULL;
}

// The part of a nest's rounds in which a load runs: where tensors are stacked, a nest is printed as
// a loop for each of them.
static double part_of_rounds(const Op *load, const Op *top)
{
	const Value *arg = NULL;
	int others = 0;
	if (top->code != OP_LOOP_NEST || op_parent(load) != top)
		return 1;
	if (load->code == OP_LOOP_LOAD_OR)
		arg = position_compared(top, op_operand(load, 0));
	const bool own = arg != NULL;
	for (const Op *op = own ? NULL : chosen_by(&load->results[0]); op;
	     op = chosen_by(&op->results[0])) {
		const Value *compared = position_compared(top, op_operand(op, 0));
		if (!compared || (arg && compared != arg))
			break;
		arg = compared;
		others++;
	}
	if (!arg)
		return 1;
	const double rounds = dim_estimate(top->results[0].type->dims[arg->index]);
	return (own || rounds <= others ? 1 : rounds - others) / rounds;
}

// ---- the decision -------------------------------------------------------------------------------

// Every place that reads the nest's result.
typedef struct Sites {
	Op *loads[MAX_SITES];
	Op *tops[MAX_SITES]; // the nest or kernel around it, beside the producer
	int n;
} Sites;

static Op *top_beside(Op *op, const Block *block)
{
	while (op && op->block != block)
		op = op_parent(op);
	return op;
}

// Loads of `v`, the nest's result or a view of it.
static bool sites_find(const Op *nest, const Value *v, Sites *s)
{
	for (const Use *u = v->uses; u; u = u->next) {
		if ((u->user->info->traits & TRAIT_VIEW) && u->index == 0 &&
		    u->user->block == nest->block) {
			if (!sites_find(nest, &u->user->results[0], s))
				return false;
			continue;
		}
		Op *top = top_beside(u->user, nest->block);
		if (!load_reads(u->user, (int)u->index) || !top || !op_has_region_code(top) ||
		    s->n == MAX_SITES)
			return false;
		s->loads[s->n] = u->user;
		s->tops[s->n++] = top;
	}
	return s->n > 0;
}

// Whether a position from data would be checked no more, since the body does not ask for it: along
// an axis of one element, or where all elements are the same.
static bool check_lost(const Op *nest, const Op *load)
{
	const Type *made = nest->results[0].type, *seen = load_tensor(load);
	const Block *body = nest->regions[0].first;
	const int first = load_indices_at(load);
	for (int i = first; i < load->noperand; i++) {
		if (position_is_checked(op_operand(load, i)) &&
		    (dim_is(seen->dims[i - first], 1) ||
		     (type_same_dims(made, seen) && !value_used(body->args[i - first]))))
			return true;
	}
	return false;
}

// Divisions that it takes to get at the element through a view, as work; negative: it cannot be
// done.
static double view_cost(const Op *nest, const Op *load)
{
	const Type *made = nest->results[0].type, *seen = load_tensor(load);
	if (check_lost(nest, load))
		return -1;
	if (type_same_dims(made, seen))
		return 0;
	int divisions = index_reshape_divisions(nest->ctx, seen, made);
	// Under a predicate the position may be anything, even negative.
	if (divisions < 0 || (divisions > 0 && load->code == OP_LOOP_LOAD_OR))
		return -1;
	return 2.0 * divisions;
}

// A body with a loop of its own goes only where it runs as often as before, outside all other
// loops.
static bool site_takes_loop(const Op *nest, const Op *load, const Op *top)
{
	return top->code == OP_LOOP_NEST && op_parent(load) == top && load->code == OP_LOOP_LOAD &&
	       trip_count(load, top) <=
	           dims_estimate(nest->results[0].type->rank, nest->results[0].type->dims);
}

static bool inlining_pays(const Op *nest, const Sites *s)
{
	const Type *t = nest->results[0].type;
	double cost = block_cost(nest->regions[0].first), elements = dims_estimate(t->rank, t->dims);
	bool loops = op_contains(nest, OP_LOOP_REDUCE), checks = op_contains(nest, OP_LOOP_TO_INDEX);
	double extra = cost > 0.5 ? cost - 0.5 : 0; // the load that goes away
	// Where the body chooses, too, the loop of each tensor of a stack would have a choice in it.
	bool chooses = op_contains(nest, OP_LOOP_LOAD_OR) || op_contains(nest, OP_PD_WHERE);
	double work = 0;
	int size = op_count(nest, true);
	for (int i = 0; i < s->n; i++) {
		const Op *load = s->loads[i], *top = s->tops[i];
		bool guarded = load->code == OP_LOOP_LOAD_OR;
		double view = view_cost(nest, load);
		if (view < 0 || !op_may_move(nest, top))
			return false;
		if (loops && !(s->n == 1 && site_takes_loop(nest, load, top)))
			return false;
		if (guarded && (checks || cost > MAX_GUARDED_COST))
			return false;
		if (op_count(top, true) + size > MAX_BODY && size > 2)
			return false;
		const double part = chooses ? 1 : part_of_rounds(load, top);
		work += (extra + view) * trip_count(load, top) * part;
	}
	return work <= elements * (extra + MEMORY_COST);
}

// ---- the rewriting ------------------------------------------------------------------------------

// Clones `op` before `where`; under a predicate, loads only happen where it holds.
static Value *clone_guarded(Builder *b, const Op *op, ValueMap *map, Value *pred)
{
	int first = op->code == OP_LOOP_LOAD ? 0 : 2;
	Value *operands[MAX_RANK + 3];
	int n = 0;
	operands[n++] = pred;
	if (first == 0) {
		const Type *t = op->results[0].type;
		operands[n++] = build_scalar_f(b, t->dtype, 0);
	} else {
		Value *inner = value_map_get(map, op_operand(op, 0));
		operands[0] = build2(b, OP_PD_LOGICAL_AND, pred, inner, NULL);
		operands[n++] = value_map_get(map, op_operand(op, 1));
	}
	for (int i = first; i < op->noperand && n < (int)COUNT_OF(operands); i++)
		operands[n++] = value_map_get(map, op_operand(op, i));
	return build(b, OP_LOOP_LOAD_OR, n, operands, NULL);
}

// The value of the nest's element at `index`, computed before `where`.
static Value *body_clone(Op *nest, Op *where, Value *const *index, Value *pred)
{
	Context *c = nest->ctx;
	Block *body = region_entry(&nest->regions[0]);
	ValueMap *map = value_map_new(c->arena);
	Builder b = builder_before(where);
	for (int i = 0; i < body->narg; i++)
		value_map_set(map, body->args[i], index[i]);
	for (Op *op = body->first; op != body->last; op = op->next) {
		if (pred && (op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR)) {
			Value *v = clone_guarded(&b, op, map, pred);
			if (!v)
				return NULL;
			value_map_set(map, &op->results[0], v);
		} else {
			op_insert_before(where, op_clone(c, op, map));
		}
	}
	return value_map_get(map, op_operand(body->last, 0));
}

// The same, and the body is gone: its only reader takes it as it is.
static Value *body_move(Op *nest, Op *where, Value *const *index)
{
	Block *body = region_entry(&nest->regions[0]);
	for (int i = 0; i < body->narg; i++)
		value_replace(body->args[i], index[i]);
	while (body->first != body->last) {
		Op *op = body->first;
		op_detach(op);
		op_insert_before(where, op);
	}
	return op_operand(body->last, 0);
}

// `last`: nobody reads the nest afterwards.
static bool load_inline(Op *nest, Op *load, bool last)
{
	Value *seen[MAX_RANK], *index[MAX_RANK];
	int first = load_indices_at(load);
	const Type *made = nest->results[0].type, *shape = load_tensor(load);
	for (int i = first; i < load->noperand; i++)
		index[i - first] = seen[i - first] = op_operand(load, i);
	Builder at = builder_before(load);
	if (!type_same_dims(made, shape) && !index_reshape(nest->ctx, &at, shape, seen, made, index))
		return false;
	bool guarded = load->code == OP_LOOP_LOAD_OR;
	Value *pred = guarded ? op_operand(load, 0) : NULL;
	Value *v = last && !pred ? body_move(nest, load, index) : body_clone(nest, load, index, pred);
	if (!v)
		return false;
	if (guarded) {
		Value *operands[] = {pred, v, op_operand(load, 1)};
		if (!(v = build(&at, OP_PD_WHERE, 3, operands, NULL)))
			return false;
	}
	value_replace(&load->results[0], v);
	op_erase(load);
	return true;
}

// Views of a value that nobody loads from any more.
static void views_erase(Value *v)
{
	while (v->uses) {
		views_erase(&v->uses->user->results[0]);
		op_erase(v->uses->user);
	}
}

bool nest_inline(Op *nest)
{
	Sites sites = {.n = 0};
	if (nest->nresult != 1 || !sites_find(nest, &nest->results[0], &sites) ||
	    !inlining_pays(nest, &sites))
		return false;
	for (int i = 0; i < sites.n; i++)
		if (!load_inline(nest, sites.loads[i], i == sites.n - 1))
			return false;
	views_erase(&nest->results[0]);
	op_erase(nest);
	return true;
}
