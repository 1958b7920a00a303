// Nests that cannot go into their readers, because several read them, but whose first reader takes
// them element by element: both become one nest with several results, and what only that reader
// wanted never reaches memory. Called by fuse.c, when nests no longer move into others.
#include "ir/build/nest.h"
#include "lower/nests/fuse.h"

enum { MAX_JOINED_BODY = 300, MAX_RESULTS = 8, MAX_USERS = 32 };

static bool body_is_plain(const Op *nest)
{
	const Block *b = nest->regions[0].first;
	int n = 0;
	for (const Op *op = b->first; op; op = op->next, n++)
		if (op->nregion)
			return false;
	return n <= MAX_JOINED_BODY / 2;
}

// One element is a scalar: such a nest costs nothing, and counters should stay by themselves.
static bool nest_is_joinable(const Op *op)
{
	int64_t n;
	const Type *t = op->nresult ? op->results[0].type : NULL;
	return op->code == OP_LOOP_NEST && !(type_const_numel(t, &n) && n <= 1) &&
	       op->nresult <= MAX_RESULTS / 2 && body_is_plain(op);
}

static bool load_is_identity(const Op *load, const Op *nest)
{
	const Block *body = nest->regions[0].first;
	if (load->code != OP_LOOP_LOAD || load->block != body || load->noperand != body->narg + 1)
		return false;
	for (int i = 0; i < body->narg; i++)
		if (op_operand(load, i + 1) != body->args[i] &&
		    !position_is_first(op_operand(load, i + 1), nest->results[0].type->dims[i]))
			return false;
	return true;
}

static Op *beside(Op *op, const Block *block)
{
	while (op && op->block != block)
		op = op_parent(op);
	return op;
}

// The first operation behind the nest that uses it; NULL: none, or too many to look at.
static Op *first_user(const Op *nest)
{
	Op *users[MAX_USERS];
	int n = 0;
	for (int i = 0; i < nest->nresult; i++)
		for (const Use *u = nest->results[i].uses; u; u = u->next) {
			if (n == MAX_USERS || !(users[n++] = beside(u->user, nest->block)))
				return NULL;
		}
	for (Op *at = n ? nest->next : NULL; at; at = at->next)
		for (int i = 0; i < n; i++)
			if (users[i] == at)
				return at;
	return NULL;
}

// Whether `by` reads everything of the nest's that it reads at its own position.
static bool reads_identity(const Op *nest, const Op *by)
{
	for (int i = 0; i < nest->nresult; i++)
		for (const Use *u = nest->results[i].uses; u; u = u->next)
			if (beside(u->user, nest->block) == by &&
			    (u->index != 0 || !load_is_identity(u->user, by)))
				return false;
	return true;
}

static bool read_elsewhere(const Value *v, const Op *by)
{
	for (const Use *u = v->uses; u; u = u->next)
		if (beside(u->user, by->block) != by)
			return true;
	return false;
}

// A copy of the nest's body at the end of `b`. Loads of `made`'s results are what `element` has.
static void body_append(Block *b, const Op *nest, const Op *made, Value *const *element,
                        Value **out)
{
	const Block *body = nest->regions[0].first;
	ValueMap *map = value_map_new(nest->ctx->arena);
	for (int i = 0; i < body->narg; i++)
		value_map_set(map, body->args[i], b->args[i]);
	for (const Op *op = body->first; op != body->last; op = op->next) {
		const Value *from = made && op->code == OP_LOOP_LOAD ? op_operand(op, 0) : NULL;
		if (from && from->def == made)
			value_map_set(map, &op->results[0], element[from->index]);
		else
			op_append(b, op_clone(nest->ctx, op, map));
	}
	for (int i = 0; i < nest->nresult; i++)
		out[i] = value_map_get(map, op_operand(body->last, i));
}

// Both in the place of `by`.
static Op *join(Op *nest, Op *by)
{
	Context *c = nest->ctx;
	Value *old[MAX_RESULTS], *element[MAX_RESULTS], *yields[MAX_RESULTS], *all[MAX_RESULTS];
	const Type *types[MAX_RESULTS];
	int n = 0;
	bool kept[MAX_RESULTS];
	for (int i = 0; i < nest->nresult; i++)
		if ((kept[i] = read_elsewhere(&nest->results[i], by)))
			old[n++] = &nest->results[i];
	for (int i = 0; i < by->nresult; i++)
		old[n++] = &by->results[i];
	for (int i = 0; i < n; i++)
		types[i] = old[i]->type;
	Op *both = op_new(c, OP_LOOP_NEST, by->loc, n, types, 0, NULL, 1, 0);
	Block *b = block_new(c, &both->regions[0]);
	for (int i = 0; i < types[0]->rank; i++)
		block_add_arg(c, b, type_index(c));
	body_append(b, nest, NULL, NULL, element);
	body_append(b, by, nest, element, yields);
	n = 0;
	for (int i = 0; i < nest->nresult; i++)
		if (kept[i])
			all[n++] = element[i];
	for (int i = 0; i < by->nresult; i++)
		all[n++] = yields[i];
	op_append(b, op_new(c, OP_LOOP_YIELD, by->loc, 0, NULL, n, all, 0, 0));
	op_insert_before(by, both);
	for (int i = 0; i < n; i++)
		value_take(old[i], &both->results[i]);
	op_erase(by);
	op_erase(nest);
	scalar_simplify(both);
	return both;
}

void block_join(Block *block)
{
	for (Op *op = block->first, *next; op; op = next) {
		next = op->next;
		Op *by = nest_is_joinable(op) ? first_user(op) : NULL;
		if (!by || !nest_is_joinable(by) ||
		    !type_same_dims(op->results[0].type, by->results[0].type) || !reads_identity(op, by) ||
		    !op_may_move(op, by))
			continue;
		Op *both = join(op, by);
		// What came in between is looked at as before; the new nest comes when its turn is.
		if (next == by)
			next = both;
	}
}
