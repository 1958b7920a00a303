// Prints the innermost loop of a nest in tiles when reductions hang on it: `acc[W]` lies over W
// neighbouring results, the reduction loops run outside of the lane loops, and every lane loop
// reads side by side.
//
//   for (j0 = 0; j0 + W <= J; j0 += W) {
//       float acc[W] = {0};
//       for (k) for (l) acc[l] += a[k] * b[k * J + j0 + l];
//       vf_store(&out[j0], vf_load(acc));
//   }
//
// GCC would make a memcpy of `for (l) out[j0 + l] = acc[l]`, and keep the sums in memory for it.
//
// A block is cut into groups, each one lane loop: reductions end a group, values that outlive their
// group are arrays, and what does not change from lane to lane is printed between them. Called by
// nest.c.
#include "codegen/nest/lanes.h"
#include "codegen/nest/region.h"
#include "ir/base/vec.h"

#include <string.h>

typedef enum Finish {
	FINISH_NONE,
	FINISH_STORE,
	FINISH_ADD
} Finish; // what the last group of a block does

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

void lane_tile_init(LaneTile *l, Nest *n)
{
	*l = (LaneTile){.n = n};
	l->lanes = (Lanes){.ctx = n->k->ctx, .body = n->body, .merged = &n->s.merged};
	l->lanes.arg = n->loops[n->nloop - 1].arg;
	pointer_map_init(&l->sums, n->k->arena);
	n->tile = l;
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
		if (!in_group(l, u->user) && !(end && u->user == end->terminator) &&
		    (!u->user->nresult || nest_needed(l->n, u->user)))
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

bool lane_stores_sums(const Nest *n)
{
	const Op *end = block_terminator(n->body);
	const DType t = n->op->results[0].type->dtype;
	for (int i = 0; i < end->noperand; i++) {
		const Op *sum = op_operand(end, i)->def;
		if (!sum || sum->code != OP_LOOP_REDUCE || sum->block != n->body ||
		    reduce_is_position(reduce_kind(sum)) || n->op->results[i].type->dtype != t ||
		    nest_level(n, &sum->results[0]) != n->nloop)
			return false;
	}
	return tile_vector_name(t) && n->k->target->vector && !n->turned;
}

// A sum that is the same in all lanes is no array. It may stand in the loop all the same, if that
// may have no round.
static bool sums_move(const LaneTile *l)
{
	const Op *end = block_terminator(l->n->body);
	for (int i = 0; i < end->noperand; i++)
		if (!value_moves(l, op_operand(end, i)))
			return false;
	return true;
}

// The index `at` lanes behind `first`.
static const char *index_later(Arena *a, const char *first, int at)
{
	if (!at)
		return first;
	return strcmp(first, "0") ? arena_printf(a, "(%s + %d)", first, at) : arena_printf(a, "%d", at);
}

// The first `width` lanes, which are whole vectors.
static bool sums_store(LaneTile *l, int width, int depth)
{
	Nest *n = l->n;
	KernelFunc *k = n->k;
	const Op *end = block_terminator(n->body);
	const Value *arg = n->loops[n->nloop - 1].arg;
	const DType t = n->op->results[0].type->dtype;
	const char *v = tile_vector_name(t), *lane = pointer_map_get(&n->s.names, arg);
	if (!tile_moves(k, t))
		return false;
	for (int at = 0; at < width; at += target_lanes(k->target, t)) {
		pointer_map_set(&n->s.names, arg, index_later(k->arena, l->first, at));
		const char *index = nest_result_index(n);
		if (!index)
			return false;
		for (int i = 0; i < end->noperand; i++)
			text_line(n->out, depth, "%s_store(&%s[%s], %s_load(&%s[%d]));", v, nest_result(n, i),
			          expression_unwrap(k->arena, index), v,
			          (const char *)pointer_map_get(&l->sums, op_operand(end, i)), at);
	}
	pointer_map_set(&n->s.names, arg, lane);
	return true;
}

// The group in lanes `from` to `to`.
static bool lanes_print(LaneTile *l, const BlockEnd *end, int from, int to, int depth)
{
	Text *out = l->n->out;
	text_line(out, depth, "PDRT_LANES for (int l = %d; l < %d; l++) {", from, to);
	for (int i = 0; i < l->ngroup; i++)
		if (nest_needed(l->n, l->group[i]) && !element_print(l, l->group[i], end, depth + 1))
			return false;
	if (end && !end_print(l, end, depth + 1))
		return false;
	text_line(out, depth, "}");
	return true;
}

// Lanes that fill no vector are accumulated, and stored, in a loop behind that of whole vectors: of
// 10 or 15 lanes in one loop, gcc keeps the sums in memory.
static bool lane_loop_print(LaneTile *l, const BlockEnd *end, int depth)
{
	const int rest = l->joins && l->width > l->vector ? l->width % l->vector : 0,
			  whole = l->width - rest;
	if (end && end->finish == FINISH_STORE && l->stores)
		return sums_store(l, whole, depth) &&
		       (!rest || lanes_print(l, end, whole, l->width, depth));
	if (!rest || !end || end->finish != FINISH_ADD)
		return lanes_print(l, end, 0, l->width, depth);
	return lanes_print(l, end, 0, whole, depth) && lanes_print(l, end, whole, l->width, depth);
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

// Whether a reduction, or what is in this group and in `fed` for it, reads what op gives.
static bool feeds(const LaneTile *l, const Op *op, const Op *reduce, const bool *fed)
{
	for (const Use *u = op->results[0].uses; u; u = u->next) {
		for (const Op *at = u->user; at; at = op_parent(at))
			if (at == reduce)
				return true;
		for (int i = 0; i < l->ngroup; i++)
			if (fed[i] && l->group[i] == u->user)
				return true;
	}
	return false;
}

// A reduction behind what it reads of the group. The rest of that comes after it: in arrays it
// would wait in memory until then, and of one that is a copy gcc makes a memcpy.
static bool lanes_reduce_first(LaneTile *l, const Op *op, int depth)
{
	Arena *a = l->n->k->arena;
	const int n = l->ngroup;
	bool *fed = NEW_ARRAY(a, (size_t)n + 1, bool);
	const Op **rest = NEW_ARRAY(a, (size_t)n + 1, const Op *);
	int nrest = 0, first = 0;
	for (int i = n; i-- > 0;)
		fed[i] = feeds(l, l->group[i], op, fed);
	for (int i = 0; i < n; i++)
		if (fed[i])
			l->group[first++] = l->group[i];
		else
			rest[nrest++] = l->group[i];
	l->ngroup = first;
	if (!group_print(l, NULL, depth) || !lanes_reduce_print(l, op, depth))
		return false;
	for (int i = 0; i < nrest; i++)
		group_add(l, rest[i]);
	return true;
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
		return lanes_reduce_first(l, op, depth);
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

// Sums of floats wait for each other: in memory that takes twice as long, and nothing is won by
// rounds that are joined.
static bool adds_floats(const Accumulator *acc)
{
	return acc->kind == REDUCE_SUM && acc->type->kind == TY_SCALAR &&
	       dtype_is_float(acc->type->dtype);
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
	const int outside = depth;
	for (int i = 0; i < nloop; i++)
		loop_open(&n->s, &loops[i], &depth, n->out);
	if (depth > outside && n->k->target->vector && adds_floats(&acc))
		text_line(n->out, depth, "PD_ROUND");
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
	const char *sum = scalar_round(n->k, op->results[0].type, accumulator_value(n->k->arena, &acc));
	pointer_map_set(&n->s.names, &op->results[0], sum);
	if (op->block == n->body)
		pointer_map_set(&l->sums, &op->results[0], acc.name);
	return true;
}

bool lane_tile_print(LaneTile *l, int width, const char *first, int depth)
{
	Nest *n = l->n;
	const char *arg = strcmp(first, "0") ? arena_printf(n->k->arena, "(%s + l)", first) : "l";
	l->width = width;
	l->first = first;
	l->stores = lane_stores_sums(n) && sums_move(l) && width >= l->vector &&
	            l->vector % target_lanes(n->k->target, n->op->results[0].type->dtype) == 0;
	pointer_map_set(&n->s.names, n->loops[n->nloop - 1].arg, arg);
	BlockEnd end = {.finish = FINISH_STORE};
	return lanes_block_print(l, n->body, &end, depth);
}
