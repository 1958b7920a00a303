// Prints the innermost loop of a nest in tiles when reductions hang on it: `acc[W]` lies over W
// neighbouring results, the reduction loops run outside of the lane loops, and every lane loop
// reads side by side.
//
//   for (j0 = 0; j0 + W <= J; j0 += W) {
//       float acc[W];  for (l) acc[l] = 0;
//       for (k) for (l) acc[l] += a[k] * b[k * J + j0 + l];
//       for (l) out[j0 + l] = acc[l];
//   }
//
// A block is cut into groups, each one lane loop: reductions end a group, values that outlive their
// group are arrays, and what does not change from lane to lane is printed between them. Called by
// nest.c.
#include "codegen/nest/nest.h"
#include "ir/base/vec.h"

#include <string.h>

typedef enum Finish {
	FINISH_NONE,
	FINISH_STORE,
	FINISH_ADD
} Finish; // what the last group of a block does

typedef struct LaneTile {
	Nest *n;
	Lanes lanes;
	int width;
	int ngroup, cgroup; // the group being gathered
	const Op **group;
} LaneTile;

// What ends a block.
typedef struct BlockEnd {
	Finish finish;
	const Op *terminator, *reduce;
	const Accumulator *acc;
	const char *index; // of the innermost reduction loop
} BlockEnd;

// ---- what moves with the lane -------------------------------------------------------------------

static bool value_moves(const LaneTile *l, const Value *v)
{
	return lane_state(&l->lanes, v) == LANE_MOVES;
}

static void tile_init(LaneTile *l, Nest *n)
{
	*l = (LaneTile){.n = n};
	l->lanes = (Lanes){.ctx = n->k->ctx, .body = n->body, .merged = &n->s.merged};
	l->lanes.arg = n->loops[n->nloop - 1].arg;
	lanes_find(&l->lanes, n->k->arena);
}

// ---- groups -------------------------------------------------------------------------------------

static bool in_group(const LaneTile *l, const Op *op)
{
	for (int i = 0; i < l->ngroup; i++)
		if (l->group[i] == op)
			return true;
	return false;
}

static void group_add(LaneTile *l, const Op *op)
{
	VEC_ROOM(l->n->k->arena, l->group, l->ngroup, l->cgroup);
	l->group[l->ngroup++] = op;
}

// Whether a value of this group is read after it.
static bool outlives(const LaneTile *l, const Op *op, const BlockEnd *end)
{
	for (const Use *u = op->results[0].uses; u; u = u->next)
		if (!in_group(l, u->user) && !(end && u->user == end->terminator))
			return true;
	return false;
}

static bool element_print(LaneTile *l, const Op *op, const BlockEnd *end, int depth)
{
	Scalars *s = &l->n->s;
	if (!outlives(l, op, end))
		return scalar_op_print(s, op, true, depth, l->n->out);
	const char *array = pointer_map_get(&s->names, &op->results[0]);
	if (op->code == OP_LOOP_TO_INDEX) {
		if (!scalar_op_print(s, op, false, depth, l->n->out))
			return false;
		text_line(l->n->out, depth, "%s = %s;", array, scalars_name(s, &op->results[0]));
	} else {
		const char *e = scalar_expression(s, op);
		if (!e)
			return false;
		text_line(l->n->out, depth, "%s = %s;", array, e);
	}
	pointer_map_set(&s->names, &op->results[0], array);
	return true;
}

static bool end_print(LaneTile *l, const BlockEnd *end, int depth)
{
	if (end->finish == FINISH_STORE)
		return nest_stores_print(l->n, depth);
	const char *value = scalars_name(&l->n->s, op_operand(end->terminator, 0));
	if (!value)
		return false;
	accumulator_add(&l->n->s, end->acc, value, end->index, depth, l->n->out);
	return true;
}

static bool lane_loop_print(LaneTile *l, const BlockEnd *end, int depth)
{
	Text *out = l->n->out;
	text_line(out, depth, "PDRT_LANES for (int l = 0; l < %d; l++) {", l->width);
	for (int i = 0; i < l->ngroup; i++)
		if (nest_needed(l->n, l->group[i]) && !element_print(l, l->group[i], end, depth + 1))
			return false;
	if (end && !end_print(l, end, depth + 1))
		return false;
	text_line(out, depth, "}");
	return true;
}

// ---- predicates that hold for all lanes ---------------------------------------------------------

static bool pred_stays(Nest *n, const Value *pred)
{
	return !value_moves(n->tile, pred);
}

// What v is under the known predicates; NULL: they do not tell.
static const Value *value_chosen(LaneTile *l, const Value *v)
{
	while (v->def && (v->def->code == OP_LOOP_LOAD_OR || v->def->code == OP_PD_WHERE)) {
		int known = scalars_known(&l->n->s, op_operand(v->def, 0));
		if (known < 0 || (known == 1 && v->def->code == OP_LOOP_LOAD_OR))
			return NULL;
		v = op_operand(v->def, v->def->code == OP_LOOP_LOAD_OR || known ? 1 : 2);
	}
	return v;
}

// Whether the reduction's element is, under the known predicates, the neutral constant: then it
// adds nothing.
static bool adds_nothing(LaneTile *l, const BlockEnd *end)
{
	if (!end || end->finish != FINISH_ADD || reduce_is_position(end->acc->kind))
		return false;
	const Value *v = value_chosen(l, op_operand(end->terminator, 0));
	if (!v || !v->def || v->def->code != OP_LOOP_CONSTANT)
		return false;
	const char *constant = scalar_expression(&l->n->s, v->def);
	const char *neutral = reduce_neutral(&l->n->s, end->reduce, end->acc->kind, end->acc->type);
	return constant && neutral && !strcmp(constant, neutral);
}

static bool group_branch(LaneTile *l, const BlockEnd *end, int depth)
{
	Nest *n = l->n;
	const Value *pred = nest_predicate(n, l->group, l->ngroup, pred_stays);
	if (!pred)
		return lane_loop_print(l, end, depth);
	const char *name = scalars_name(&n->s, pred);
	if (!name)
		return false;
	int at = n->s.nknown++;
	n->s.known[at] = pred;
	n->s.known_value[at] = true;
	nest_renew(n);
	text_line(n->out, depth, "if (%s) {", name);
	bool ok = group_branch(l, end, depth + 1);
	n->s.known_value[at] = false;
	nest_renew(n);
	if (ok && !adds_nothing(l, end)) {
		text_line(n->out, depth, "} else {");
		ok = group_branch(l, end, depth + 1);
	}
	text_line(n->out, depth, "}");
	n->s.nknown = at;
	nest_renew(n);
	return ok;
}

// Prints the group and starts the next. `end` is NULL unless the block ends here.
static bool group_print(LaneTile *l, const BlockEnd *end, int depth)
{
	KernelFunc *k = l->n->k;
	if (!l->ngroup && !end)
		return true;
	for (int i = 0; i < l->ngroup; i++) {
		const Value *v = &l->group[i]->results[0];
		if (!outlives(l, l->group[i], end))
			continue;
		const char *array = kernel_local(k, "v");
		text_line(l->n->out, depth, "%s %s[%d];", type_c_scalar(v->type), array, l->width);
		pointer_map_set(&l->n->s.names, v, arena_printf(k->arena, "%s[l]", array));
	}
	bool ok = group_branch(l, end, depth);
	l->ngroup = 0;
	return ok;
}

// ---- blocks -------------------------------------------------------------------------------------

static bool lanes_reduce_print(LaneTile *l, const Op *op, int depth);

// Whether an index is a sum or product that a reduction reads, of what is known in front of the
// group: it stands there as it is, for in an array it would hide that loads lie side by side.
static bool index_is_text(const LaneTile *l, const Op *op)
{
	if (op->results[0].type->kind != TY_INDEX ||
	    (op->code != OP_PD_ADD && op->code != OP_PD_SUBTRACT && op->code != OP_PD_MULTIPLY))
		return false;
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i)->def && in_group(l, op_operand(op, i)->def))
			return false;
	for (const Use *u = op->results[0].uses; u; u = u->next)
		if (u->user->block != op->block)
			return true;
	return false;
}

static bool index_name(Scalars *s, const Op *op)
{
	const char *e = scalar_expression(s, op);
	if (e)
		pointer_map_set(&s->names, &op->results[0], arena_printf(s->k->arena, "(%s)", e));
	return e != NULL;
}

static bool lanes_op_print(LaneTile *l, const Op *op, int depth)
{
	if (value_moves(l, &op->results[0])) {
		if (index_is_text(l, op))
			return index_name(&l->n->s, op);
		if (op->code != OP_LOOP_REDUCE) {
			group_add(l, op);
			return true;
		}
		return group_print(l, NULL, depth) && lanes_reduce_print(l, op, depth);
	}
	bool index = op->results[0].type->kind == TY_INDEX;
	return scalar_op_print(&l->n->s, op, index, depth, l->n->out);
}

static bool lanes_block_print(LaneTile *l, const Block *b, BlockEnd *end, int depth)
{
	end->terminator = block_terminator(b);
	for (const Op *op = b->first; op != end->terminator; op = op->next) {
		if (!nest_needed(l->n, op))
			continue;
		if (b == l->n->body && nest_level(l->n, &op->results[0]) != l->n->nloop)
			continue;
		if (!lanes_op_print(l, op, depth))
			return false;
	}
	return group_print(l, end, depth);
}

static bool lanes_reduce_print(LaneTile *l, const Op *op, int depth)
{
	Nest *n = l->n;
	Accumulator acc;
	if (!accumulator_open(&n->s, op, l->width, &acc, depth, n->out))
		return false;
	Loop loops[MAX_RANK];
	int nloop = loops_merge(&n->s, op->regions[0].first, op_attr(op, "extents")->dims, loops);
	if (!loop_count(&n->s, op, loops))
		return false;
	const bool clipped = reduce_clip(n, op, loops, nloop, pred_stays, depth);
	for (int i = 0; i < nloop; i++)
		loop_open(&n->s, &loops[i], &depth, n->out);
	BlockEnd end = {.finish = FINISH_ADD,
	                .reduce = op,
	                .acc = &acc,
	                .index = nloop ? loops[nloop - 1].var : "0"};
	if (!lanes_block_print(l, op->regions[0].first, &end, depth))
		return false;
	for (int i = nloop; i-- > 0;)
		loop_close(&n->s, &loops[i], &depth, n->out);
	if (clipped) {
		n->s.nknown--;
		nest_renew(n);
	}
	pointer_map_set(&n->s.names, &op->results[0],
	                scalar_round(n->k, op->results[0].type, acc.element));
	return true;
}

// ---- the tile -----------------------------------------------------------------------------------

// Few results are not worth a tile.
enum { MIN_LANES = 2 };

// Whether a reduction ends at a count that may differ from lane to lane.
static bool counts_differ(const Nest *n, const Block *b)
{
	for (const Op *op = b->first; op; op = op->next) {
		if (op->code != OP_LOOP_REDUCE)
			continue;
		if (op_operand(op, 0) && (b != n->body || nest_level(n, op_operand(op, 0)) == n->nloop))
			return true;
		if (counts_differ(n, op->regions[0].first))
			return true;
	}
	return false;
}

bool nest_wants_lanes(Nest *n)
{
	const Loop *inner = &n->loops[n->nloop - 1];
	if (counts_differ(n, n->body))
		return false;
	if (n->k->target->simt || (dim_is_const(inner->extent) && inner->extent->value < MIN_LANES))
		return false;
	Strides out = {0}, in = {0};
	bool any = false;
	for (const Op *op = n->body->first; op; op = op->next) {
		if (op->code != OP_LOOP_REDUCE || !nest_needed(n, op) ||
		    nest_level(n, &op->results[0]) != n->nloop)
			continue;
		const Block *b = op->regions[0].first;
		strides_count(b, inner->arg, &out);
		if (b->narg)
			strides_count(b, b->args[b->narg - 1], &in);
		any = true;
	}
	return any && (!out.n[2] || out.n[2] < in.n[2]);
}

// Whether a tile has one accumulator: one reduction hangs on it, with none inside.
static bool accumulates_once(const Nest *n)
{
	int count = 0;
	for (const Op *op = n->body->first; op; op = op->next) {
		if (op->code != OP_LOOP_REDUCE)
			continue;
		count++;
		for (const Op *in = op->regions[0].first->first; in; in = in->next)
			count += in->code == OP_LOOP_REDUCE;
	}
	return count == 1;
}

// The width of a tile: all of a short row, for its rest would be a second loop over the reduction
// that waits for each sum; else one vector, whose accumulator stays in a register, or several of a
// long row, which use up the lines of a cache that may not be there for the next tile any more.
static int tile_width(const Nest *n)
{
	enum { VECTORS = 4, LONG = 16 };
	const int lanes = n->k->target->lanes;
	const Loop *inner = &n->loops[n->nloop - 1];
	const int64_t row = dim_is_const(inner->extent) && !inner->end ? inner->extent->value : 0;
	if (row >= LONG * lanes && accumulates_once(n))
		return VECTORS * lanes;
	return row > 0 && row < 2 * lanes ? (int)row : lanes;
}

static bool tile_print(LaneTile *l, int width, const char *arg, int depth)
{
	Nest *n = l->n;
	l->width = width;
	pointer_map_set(&n->s.names, n->loops[n->nloop - 1].arg, arg);
	BlockEnd end = {.finish = FINISH_STORE};
	return lanes_block_print(l, n->body, &end, depth);
}

bool nest_lanes_print(Nest *n, int depth)
{
	LaneTile l;
	tile_init(&l, n);
	n->tile = &l;
	const Loop *inner = &n->loops[n->nloop - 1];
	int width = tile_width(n);
	if (dim_is(inner->extent, width))
		return tile_print(&l, width, "l", depth);
	const char *j = kernel_local(n->k, "i"),
			   *extent = inner->end ? inner->end : kernel_dim(n->k, inner->extent);
	const char *arg = arena_printf(n->k->arena, "(%s + l)", j);
	text_line(n->out, depth, "int64_t %s = %s;", j, inner->first ? inner->first : "0");
	text_line(n->out, depth, "for (; %s + %d <= %s; %s += %d) {", j, width, extent, j, width);
	if (!tile_print(&l, width, arg, depth + 1))
		return false;
	text_line(n->out, depth, "}");
	if (dim_is_const(inner->extent)) {
		int rest = (int)(inner->extent->value % width);
		if (!rest)
			return true;
		if (inner->end) // one part of the loop has the rest
			text_line(n->out, depth, "if (%s < %s) {", j, extent);
		else
			text_line(n->out, depth, "{");
		if (!tile_print(&l, rest, arg, depth + 1))
			return false;
		text_line(n->out, depth, "}");
		return true;
	}
	text_line(n->out, depth, "for (; %s < %s; %s++) {", j, extent, j);
	pointer_map_set(&n->s.names, inner->arg, j);
	if (!nest_element_print(n, depth + 1))
		return false;
	text_line(n->out, depth, "}");
	return true;
}
