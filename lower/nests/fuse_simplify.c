// Keeps the scalar code of nests and kernels simple while fusion builds it: all regions of an
// operation, by fuse_index.c; reductions of one round go, equal operations are merged, dead ones
// dropped. Called by fuse.c for each nest and kernel before it is fused further, so that "the same
// element" shows as "the same values".
#include "ir/build/nest.h"
#include "lower/nests/fuse.h"
#include "lower/pass/numbering.h"

// What a reduction of one round gives, whose body stands in front of it then; NULL: it has more, or
// gives a position. (Of 0 + x the sign of zero may differ.)
static Value *reduce_once(Op *op)
{
	if (op->code != OP_LOOP_REDUCE || op_operand(op, 0) ||
	    reduce_is_position((ReduceKind)op_enum(op, "kind")))
		return NULL;
	const Attr *extents = op_attr(op, "extents");
	for (int i = 0; i < extents->n; i++)
		if (!dim_is(extents->dims[i], 1))
			return NULL;
	Op *end = op->regions[0].first->last, *in;
	Value *v = op_operand(end, 0);
	if (v->type != op->results[0].type)
		return NULL;
	while ((in = op->regions[0].first->first) != end) {
		op_detach(in);
		op_insert_before(op, in);
	}
	return v;
}

static void replace_by(Op *op, Value *v)
{
	value_replace(&op->results[0], v);
	op_erase(op);
}

static void block_simplify(Block *block)
{
	// A loop that runs once needs no variable.
	for (int i = 0; i < block->narg; i++) {
		const Dim *extent = index_extent(block->args[i]);
		if (extent && dim_is(extent, 1) && value_used(block->args[i]) && block->first) {
			Builder b = builder_before(block->first);
			value_replace(block->args[i], index_const(&b, 0));
		}
	}
	for (Op *op = block->first, *next; op; op = next) {
		next = op->next;
		for (int i = 0; i < op->nregion; i++)
			for (Block *inner = op->regions[i].first; inner; inner = inner->next)
				block_simplify(inner);
		if (op->nresult != 1)
			continue;
		Value *v = op->nregion ? reduce_once(op) : scalar_simplified(op);
		if (v && v != &op->results[0] && v->type == op->results[0].type)
			replace_by(op, v);
	}
}

static void block_merge_equal(Block *block, Numbering *seen)
{
	Numbered *outer = seen->newest;
	for (Op *op = block->first, *next; op; op = next) {
		next = op->next;
		for (int i = 0; i < op->nregion; i++)
			for (Block *inner = op->regions[i].first; inner; inner = inner->next)
				block_merge_equal(inner, seen);
		Op *equal = op->nregion || op->nresult != 1 ? NULL : numbering_meet(seen, op);
		if (equal)
			replace_by(op, &equal->results[0]);
	}
	numbering_leave(seen, outer);
}

static void block_drop_dead(Block *block)
{
	for (Op *op = block->last, *prev; op; op = prev) {
		prev = op->prev;
		bool used = op->nresult == 0;
		for (int i = 0; i < op->nresult; i++)
			used |= value_used(&op->results[i]);
		if (!used) {
			op_erase(op);
			continue;
		}
		for (int i = 0; i < op->nregion; i++)
			for (Block *inner = op->regions[i].first; inner; inner = inner->next)
				block_drop_dead(inner);
	}
}

// Twice, since what has been merged shows that a number is compared with itself.
static void block_settle(Block *block, Numbering *seen)
{
	for (int round = 0; round < 2; round++) {
		block_simplify(block);
		block_merge_equal(block, seen);
	}
	block_drop_dead(block);
}

void scalar_simplify(Op *op)
{
	Arena *scratch = arena_scratch(op->ctx->arena);
	Numbering seen;
	numbering_init(&seen, scratch);
	for (int i = 0; i < op->nregion; i++)
		if (op->regions[i].first)
			block_settle(op->regions[i].first, &seen);
	arena_free(scratch);
}
