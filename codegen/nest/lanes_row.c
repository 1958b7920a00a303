// Cuts the innermost loop of a nest into tiles of lanes (lanes.c): how wide they are, and what is
// left of a row. Called by nest.c.
#include "codegen/nest/lanes.h"

#include <inttypes.h>

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

// How long the row is; 0: that is not known.
static int64_t row_length(const Loop *inner)
{
	if (inner->part)
		return inner->part->to - inner->part->from;
	return dim_is_const(inner->extent) && !inner->end ? inner->extent->value : 0;
}

bool nest_wants_lanes(Nest *n)
{
	const Loop *inner = &n->loops[n->nloop - 1];
	if (counts_differ(n, n->body))
		return false;
	if (n->k->target->simt || (dim_is_const(inner->extent) && inner->extent->value < MIN_LANES) ||
	    (inner->part && row_length(inner) < n->k->target->lanes))
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

// The elements of a vector, of the widest that is accumulated.
static int tile_lanes(const Nest *n)
{
	int lanes = n->k->target->lanes;
	for (const Op *op = n->body->first; op; op = op->next)
		if (op->code == OP_LOOP_REDUCE && reduce_lanes(n->k->target, op) < lanes)
			lanes = reduce_lanes(n->k->target, op);
	return lanes;
}

// The width of a tile: two vectors, whose sums do not wait for each other and stay in registers;
// one where more than one reduction wants registers, and where the row may be shorter; all of a row
// that fills no vector. Where the rest does not join, all of a short row, but not where sums are
// stored as they are: gcc keeps those of whole vectors in registers only.
static int tile_width(const LaneTile *l)
{
	const Nest *n = l->n;
	const Loop *inner = &n->loops[n->nloop - 1];
	const int64_t row = inner->part                   ? row_length(inner)
	                    : dim_is_const(inner->extent) ? inner->extent->value
	                                                  : 0;
	if (row >= 2 * l->vector && accumulates_once(n))
		return 2 * l->vector;
	const int64_t whole = l->joins || lane_stores_sums(n) ? l->vector : 2 * l->vector - 1;
	return row > 0 && row <= whole && row_length(inner) ? (int)row : l->vector;
}

// Whether lanes that fill no vector are best accumulated with those in front of them: gcc takes
// vectors of whole sums and of truth values, which are wider than what is read, apart.
static bool rest_joins(const Nest *n)
{
	for (const Op *op = n->body->first; op; op = op->next)
		if (op->code == OP_LOOP_REDUCE && !reduce_is_position(reduce_kind(op)) &&
		    !dtype_is_float(op->results[0].type->dtype))
			return false;
	return true;
}

// What is left of a row that a run may end sooner, `rest` elements of it: a tile, a vector, then
// lanes that fill none, each where the row goes that far.
static bool rest_print(LaneTile *l, int rest, int width, const char *j, int depth)
{
	Nest *n = l->n;
	const int whole = rest >= width ? width : rest >= l->vector ? l->vector : rest;
	if (!rest)
		return true;
	text_line(n->out, depth, "if (%s + %d <= %s) {", j, whole, n->loops[n->nloop - 1].end);
	if (!lane_tile_print(l, whole, j, depth + 1))
		return false;
	if (rest > whole)
		text_line(n->out, depth + 1, "%s += %d;", j, whole);
	text_line(n->out, depth, "}");
	return rest_print(l, rest - whole, width, j, depth);
}

// One element after the other.
static bool elements_print(Nest *n, const char *j, const char *extent, int depth)
{
	text_line(n->out, depth, "for (; %s < %s; %s++) {", j, extent, j);
	pointer_map_set(&n->s.names, n->loops[n->nloop - 1].arg, j);
	if (!nest_element_print(n, depth + 1))
		return false;
	text_line(n->out, depth, "}");
	return true;
}

// How much of what is left of a row the next tile takes: a tile's width, a vector, then lanes that
// fill none. These go with the tile in front of them where that pays, for alone they would go over
// the reduction once more.
static int next_width(const LaneTile *l, int rest, int width)
{
	const int next = rest >= width ? width : rest >= l->vector ? l->vector : rest;
	return l->joins && rest - next < l->vector ? rest : next;
}

// The last elements of a row of known length, which ends at `end`.
static bool last_print(LaneTile *l, int rest, int width, int64_t end, int depth)
{
	const int next = next_width(l, rest, width);
	if (!rest)
		return true;
	text_line(l->n->out, depth, "{");
	if (!lane_tile_print(l, next, arena_printf(l->n->k->arena, "%" PRId64, end - rest), depth + 1))
		return false;
	text_line(l->n->out, depth, "}");
	return last_print(l, rest - next, width, end, depth);
}

// A row of known length: tiles, then the rest.
static bool row_print(LaneTile *l, int length, int width, int depth)
{
	Nest *n = l->n;
	const Loop *inner = &n->loops[n->nloop - 1];
	const int64_t from = inner->part ? inner->part->from : 0;
	const int tiles = length / width -
	                  (length % width && next_width(l, width + length % width, width) > width);
	if (!from && next_width(l, length, width) == length)
		return lane_tile_print(l, length, "0", depth);
	if (tiles < 2)
		return last_print(l, length, width, from + length, depth);
	const char *j = kernel_local(n->k, "i");
	text_line(n->out, depth, "for (%s %s = %s; %s < %" PRId64 "; %s += %d) {", n->k->index, j,
	          inner->first ? inner->first : "0", j, from + tiles * width, j, width);
	if (!lane_tile_print(l, width, j, depth + 1))
		return false;
	text_line(n->out, depth, "}");
	return last_print(l, length - tiles * width, width, from + length, depth);
}

bool nest_lanes_print(Nest *n, int depth)
{
	LaneTile l;
	lane_tile_init(&l, n);
	const Loop *inner = &n->loops[n->nloop - 1];
	const bool known = dim_is_const(inner->extent);
	l.vector = tile_lanes(n);
	l.joins = rest_joins(n);
	const int width = tile_width(&l);
	if (row_length(inner))
		return row_print(&l, (int)row_length(inner), width, depth);
	const char *j = kernel_local(n->k, "i"),
			   *extent = inner->end ? inner->end : kernel_dim(n->k, inner->extent);
	text_line(n->out, depth, "int64_t %s = %s;", j, inner->first ? inner->first : "0");
	text_line(n->out, depth, "for (; %s + %d <= %s; %s += %d) {", j, width, extent, j, width);
	if (!lane_tile_print(&l, width, j, depth + 1))
		return false;
	text_line(n->out, depth, "}");
	return known ? rest_print(&l, (int)(inner->extent->value % width), width, j, depth)
	             : elements_print(n, j, extent, depth);
}
