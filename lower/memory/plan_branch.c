// Arguments of blocks in the memory plan. What a branch passes is computed where the argument lies
// when nobody needs the argument's old value any more by then: a loop variable is updated in place,
// and the branch back moves nothing. Else the branch copies, or, when the bytes that it copies from
// are free afterwards, the two buffers exchange their roles: generated code swaps two pointers.
// Called by plan.c.
#include "lower/memory/plan.h"

// Copying so few bytes is as good as swapping pointers.
enum { SMALL_BYTES = 32 };

static bool bytes_are_few(const Dim *bytes)
{
	return dim_is_const(bytes) && bytes->value <= SMALL_BYTES;
}

bool buffer_is_counter(const Buffer *b)
{
	for (const Root *r = b->roots; r; r = r->next)
		if (!r->value->def)
			return bytes_are_few(b->bytes);
	return false;
}

static Buffer *passed_buffer(const Plan *p, const Op *branch, const Succ *s, int i)
{
	return value_buffer(p, op_operand(branch, (int)s->first + i));
}

// ---- joining ------------------------------------------------------------------------------------

static void succ_join(Plan *p, const Op *branch, const Succ *s)
{
	for (int i = 0; i < (int)s->count; i++) {
		Buffer *arg = value_buffer(p, s->block->args[i]), *v = passed_buffer(p, branch, s, i);
		if (!arg || !v || arg == v || v->place != IN_WORKSPACE || arg->place != IN_WORKSPACE ||
		    !buffers_can_be_one(p, arg, v) || buffers_meet(p, arg, v))
			continue;
		arg->bytes = dim_max(p->ctx, arg->bytes, v->bytes);
		buffers_merge(arg, v);
	}
}

// Branches back come first: they are taken more often.
void plan_join_args(Plan *p)
{
	for (int forward = 0; forward < 2; forward++)
		for (int k = p->nblock - 1; k >= 0; k--) {
			const Op *end = p->blocks[k].block->last;
			for (int s = 0; end && s < end->nsucc; s++)
				if (((int)end->succs[s].block->id > k) == (forward == 1))
					succ_join(p, end, &end->succs[s]);
		}
}

// ---- moves --------------------------------------------------------------------------------------

// What a branch does for one successor, as buffers.
typedef struct Edge {
	const Plan *plan;
	const Succ *succ;
	bool back;
	int n;
	Buffer **to, **from; // [n]; to[i] == from[i]: nothing to do
} Edge;

static Edge edge_find(const Plan *p, const Op *branch, int s)
{
	const Succ *succ = &branch->succs[s];
	Edge e = {.plan = p,
	          .succ = succ,
	          .n = (int)succ->count,
	          .back = succ->block->id <= branch->block->id};
	e.to = NEW_ARRAY(p->arena, (size_t)e.n + 1, Buffer *);
	e.from = NEW_ARRAY(p->arena, (size_t)e.n + 1, Buffer *);
	for (int i = 0; i < e.n; i++) {
		e.to[i] = value_buffer(p, succ->block->args[i]);
		e.from[i] = passed_buffer(p, branch, succ, i);
	}
	return e;
}

// The move that writes buffer b; -1: none.
static int edge_writer(const Edge *e, const Buffer *b)
{
	for (int i = 0; i < e->n; i++)
		if (e->to[i] == b && e->from[i] != b)
			return i;
	return -1;
}

// Whether move i waits for itself: the values go round in a circle.
static bool edge_is_cycle(const Edge *e, int i)
{
	int at = i;
	for (int step = 0; step <= e->n; step++) {
		at = edge_writer(e, e->from[at]);
		if (at < 0 || at == i)
			return at == i;
	}
	return false;
}

static bool source_is_free(const Edge *e, const Buffer *b)
{
	if (edge_writer(e, b) >= 0)
		return true;
	const BlockPlan *block = &e->plan->blocks[e->succ->block->id];
	for (const Root *r = b->roots; r; r = r->next)
		if (root_needed_at_start(r, block) || (!r->value->def && r->value->block == block->block))
			return false;
	return true;
}

static bool source_is_taken(const Edge *e, const MoveKind *moves, const Buffer *b)
{
	for (int i = 0; i < e->n; i++)
		if (moves[i] == MOVE_EXCHANGE && e->from[i] == b)
			return true;
	return false;
}

static bool move_exchanges(const Edge *e, const MoveKind *moves, int i)
{
	const Buffer *to = e->to[i], *from = e->from[i];
	// In a loop it is worth some room to exchange buffers of sizes that differ from round to round.
	bool same = to->bytes == from->bytes || (e->back && buffers_can_be_one(e->plan, to, from));
	return !bytes_are_few(to->bytes) && same && to->place == IN_WORKSPACE &&
	       from->place == IN_WORKSPACE && source_is_free(e, from) &&
	       !source_is_taken(e, moves, from);
}

static void edge_moves(const Edge *e, MoveKind *moves)
{
	for (int i = 0; i < e->n; i++)
		moves[i] = e->to[i] == e->from[i] ? MOVE_NONE
		           : edge_is_cycle(e, i)  ? MOVE_EXCHANGE
		                                  : MOVE_COPY;
	for (int i = 0; i < e->n; i++)
		if (moves[i] == MOVE_COPY && move_exchanges(e, moves, i))
			moves[i] = MOVE_EXCHANGE;
}

void branch_moves(const Plan *p, const Op *branch, int s, MoveKind *moves)
{
	Edge e = edge_find(p, branch, s);
	edge_moves(&e, moves);
}

// ---- buffers that move --------------------------------------------------------------------------

static Buffer *exchange_group(Buffer *b)
{
	while (b->exchanged)
		b = b->exchanged;
	return b;
}

static void edge_mark_moving(const Edge *e)
{
	MoveKind *moves = NEW_ARRAY(e->plan->arena, (size_t)e->n + 1, MoveKind);
	edge_moves(e, moves);
	for (int i = 0; i < e->n; i++) {
		if (moves[i] != MOVE_EXCHANGE)
			continue;
		Buffer *a = exchange_group(e->to[i]), *b = exchange_group(e->from[i]);
		if (a != b)
			b->exchanged = a;
		e->to[i]->moving = e->from[i]->moving = 1;
		// What goes round in a circle cannot stay with the caller; the fetch will copy.
		e->to[i]->place = e->from[i]->place = IN_WORKSPACE;
	}
}

// Each of a group of buffers that are exchanged holds, in turns, what any of them does. Returns
// whether some became larger.
static bool groups_join_sizes(Plan *p)
{
	bool changed = false;
	for (Buffer *b = p->first; b; b = b->next) {
		Buffer *group = exchange_group(b);
		if (group != b)
			group->bytes = dim_max(p->ctx, group->bytes, b->bytes);
	}
	for (Buffer *b = p->first; b; b = b->next) {
		changed = changed || b->bytes != exchange_group(b)->bytes;
		b->bytes = exchange_group(b)->bytes;
	}
	return changed;
}

static int places_outside(const Plan *p)
{
	int n = 0;
	for (const Buffer *b = p->first; b; b = b->next)
		n += !b->merged && b->place != IN_WORKSPACE;
	return n;
}

static void edges_mark_moving(Plan *p)
{
	for (Buffer *b = p->first; b; b = b->next) {
		b->moving = 0;
		b->exchanged = NULL;
	}
	for (int k = 0; k < p->nblock; k++) {
		const Op *end = p->blocks[k].block->last;
		for (int s = 0; end && s < end->nsucc; s++) {
			Edge e = edge_find(p, end, s);
			edge_mark_moving(&e);
		}
	}
}

// Which moves are exchanges hangs on sizes and places, and exchanges change both: until nothing
// changes. Sizes only grow, and places only become the workspace.
void plan_find_moving(Plan *p)
{
	int n = 0, outside;
	do {
		outside = places_outside(p);
		edges_mark_moving(p);
	} while (groups_join_sizes(p) || places_outside(p) != outside);
	for (Buffer *b = p->first; b; b = b->next)
		if (!b->merged && b->moving)
			b->moving = ++n;
}
