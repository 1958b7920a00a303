// How long an array may become, and whether positions may be skipped. Called by arrays.c while
// operations on arrays are still there. What cannot be told becomes a symbol that the caller sets:
// a member `max_<array>` of the dims struct.
//
// A write at a position makes an array no longer than that position says; one at its own length
// makes it longer by one. So an array holds at most as many elements as the largest position, and
// one more for every write at the end.
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build/infer.h"
#include "lower/analysis/analysis.h"
#include "lower/arrays/parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// A bound that is not reached may be far too large; over so many slices the caller says how many.
enum { MAX_GUESS = 4096, MAX_DEPTH = 24 };

// ---- counters -----------------------------------------------------------------------------------

// The loop one of whose regions has v as an argument that the condition passes on as it is; NULL:
// none.
static const Op *counter_loop(const Value *v)
{
	const Op *loop = v->block ? value_op(v) : NULL;
	if (!loop || loop->code != OP_PD_WHILE || loop->nregion != 2)
		return NULL;
	const Block *cond = loop->regions[0].first;
	bool passed = (int)v->index + 1 < cond->last->noperand &&
	              op_operand(cond->last, (int)v->index + 1) == cond->args[v->index];
	return passed ? loop : NULL;
}

// By how much every round changes variable k; false: not by a constant.
static bool counter_step(const Op *loop, int k, int64_t *step)
{
	const Block *body = loop->regions[1].first;
	*step = 0;
	return position_base(op_operand(body->last, k), step) == body->args[k];
}

// ---- capacity -----------------------------------------------------------------------------------

typedef struct Extent {
	Arrays *a;
	const ArrayClass *c;
	const Dim *end; // behind the last position written
	bool unknown;
	bool guess; // loops may end before
} Extent;

// How many rounds a loop takes at most; NULL: not known.
static const Dim *loop_trips(Extent *e, const Op *loop)
{
	const Dim *exact, *most;
	Context *c = e->a->ctx;
	int64_t limit = e->a->p->max_trip;
	if (!while_trip_count(c, loop, &exact, &most) || !most) {
		e->guess = true;
		return limit ? dim_const(c, limit) : NULL;
	}
	if (!exact)
		e->guess = true;
	return dim_max(c, dim_at_most(c, most), dim_const(c, 0));
}

static const Dim *position_max(Extent *e, const Value *v, int depth);

// Of a variable that a loop counts up, or of what it leaves of it.
static const Dim *counter_max(Extent *e, const Value *v, const Dim *plus, int depth)
{
	Context *c = e->a->ctx;
	int64_t step;
	const Op *loop = counter_loop(v);
	bool result = v->def && v->def->code == OP_PD_WHILE && v->def->nregion == 2;
	if (result)
		loop = v->def;
	if (!loop || !counter_step(loop, (int)v->index, &step))
		return NULL;
	const Dim *init = position_max(e, op_operand(loop, (int)v->index), depth + 1);
	const Dim *trips = init && step > 0 ? loop_trips(e, loop) : dim_const(c, 0);
	if (!init || !trips)
		return NULL;
	if (step > 0 && !result && v->block == loop->regions[1].first)
		trips = dim_sub(c, trips, dim_const(c, 1));
	return dim_add(c, plus, dim_add(c, init, dim_mul(c, trips, dim_const(c, step > 0 ? step : 0))));
}

// The largest value that v takes; NULL: not known.
static const Dim *position_max(Extent *e, const Value *v, int depth)
{
	Context *c = e->a->ctx;
	int64_t offset = 0, n;
	const Dim *const *known;
	if (depth > MAX_DEPTH)
		return NULL;
	v = position_base(v, &offset);
	const Dim *plus = dim_const(c, offset);
	if (position_number(v, &n))
		return dim_add(c, dim_const(c, n), plus);
	if (value_known(v, &known) == 1)
		return dim_add(c, dim_at_most(c, known[0]), plus);
	return counter_max(e, v, plus, depth);
}

// How much longer this write may make an array; positions go to e->end.
static const Dim *write_growth(Extent *e, const Op *op)
{
	Context *c = e->a->ctx;
	int64_t offset = 0;
	const Value *array = position_length_of(position_base(op_operand(op, 1), &offset));
	const ArrayGroup *g = array ? array_group(e->a, array) : NULL;
	if (g && g->c == e->c)
		return dim_const(c, offset < 0 ? 0 : offset + 1);
	const Dim *max = position_max(e, op_operand(op, 1), 0);
	if (max)
		e->end = dim_max(c, e->end, dim_add(c, max, dim_const(c, 1)));
	else
		e->unknown = true;
	return dim_const(c, 0);
}

// Whether the loop passes an array of the class from one round to the next.
static bool loop_carries(const Extent *e, const Op *loop)
{
	for (int i = 0; i < loop->nresult; i++) {
		const ArrayGroup *g = array_group(e->a, &loop->results[i]);
		if (g && g->c == e->c)
			return true;
	}
	return false;
}

static const Dim *region_growth(Extent *e, const Region *r);

static const Dim *loop_growth(Extent *e, const Op *op)
{
	Context *c = e->a->ctx;
	const Dim *cond = region_growth(e, &op->regions[0]), *body = region_growth(e, &op->regions[1]);
	if ((dim_is(cond, 0) && dim_is(body, 0)) || !loop_carries(e, op))
		return dim_add(c, cond, body);
	const Dim *trips = loop_trips(e, op);
	e->unknown |= !trips;
	return trips ? dim_add(c, dim_mul(c, cond, dim_add(c, trips, dim_const(c, 1))),
	                       dim_mul(c, body, trips))
	             : body;
}

// One of its regions runs.
static const Dim *branch_growth(Extent *e, const Op *op)
{
	const Dim *most = region_growth(e, &op->regions[0]);
	for (int r = 1; r < op->nregion; r++)
		most = dim_max(e->a->ctx, most, region_growth(e, &op->regions[r]));
	return most;
}

static const Dim *region_growth(Extent *e, const Region *r)
{
	Context *c = e->a->ctx;
	const Dim *sum = dim_const(c, 0);
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			const ArrayGroup *g = op->code == OP_PD_ARRAY_WRITE ? array_group(e->a, &op->results[0])
			                                                    : NULL;
			if (g && g->c == e->c)
				sum = dim_add(c, sum, write_growth(e, op));
			g = op->code == OP_PD_FEED ? array_group(e->a, &op->results[0]) : NULL;
			if (g && g->c == e->c)
				e->end = dim_max(c, e->end, array_feed_symbol(e->a, op, "count"));
			if (op->code == OP_PD_WHILE)
				sum = dim_add(c, sum, loop_growth(e, op));
			else if (op_is_branch(op))
				sum = dim_add(c, sum, branch_growth(e, op));
		}
	return sum;
}

// ---- symbols ------------------------------------------------------------------------------------

typedef struct Symbols {
	Arrays *a;
	NameMap taken;
	int n, cap;
	const Dim **dims;
} Symbols;

// A symbol named after the array; no two classes get the same.
static const Dim *symbol_new(Symbols *s, const ArrayClass *c, const char *suffix)
{
	Arena *arena = s->a->arena;
	char *stem = arena_printf(
		arena, "%s%s", c->name && isalpha((unsigned char)*c->name) ? c->name : "array", suffix);
	for (char *p = stem; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	VEC_ROOM(arena, s->dims, s->n, s->cap);
	return s->dims[s->n++] = dim_sym_bounded(s->a->ctx, name_map_unique(&s->taken, stem));
}

static void symbols_declare(const Symbols *s)
{
	Block *b = module_block(s->a->p->module);
	if (!s->n)
		return;
	Op *op = op_new(s->a->ctx, OP_LOOP_CAPACITY, NULL, 0, NULL, 0, NULL, 0, 0);
	op_set_attr(op, "dims", attr_dims(s->a->ctx, s->n, s->dims));
	if (b->first)
		op_insert_before(b->first, op);
	else
		op_append(b, op);
}

// ---- slices -------------------------------------------------------------------------------------

typedef struct SliceSearch {
	const ArrayClass *c;
	Arrays *a;
	const Dim *largest;
	bool unknown;
} SliceSearch;

static bool slice_visit(Op *op, void *arg)
{
	SliceSearch *s = arg;
	bool puts = op->code == OP_PD_ARRAY_WRITE || op->code == OP_PD_FEED;
	const ArrayGroup *g = puts ? array_group(s->a, &op->results[0]) : NULL;
	if (!g || g->c != s->c)
		return true;
	if (op->code == OP_PD_FEED) {
		s->largest = dim_max(s->a->ctx, s->largest, array_feed_symbol(s->a, op, "size"));
		return true;
	}
	const Value *x = op_operand(op, 2);
	const ArrayGroup *from = x->def && x->def->code == OP_PD_ARRAY_READ
	                             ? array_group(s->a, op_operand(x->def, 0))
	                             : NULL;
	if (from && from->c == s->c)
		return true;
	const Dim *n = type_numel(s->a->ctx, x->type);
	if (dim_is_found(n = dim_at_most(s->a->ctx, n)))
		s->unknown = true;
	else
		s->largest = dim_max(s->a->ctx, s->largest, n);
	return true;
}

// The most elements that one element of an open array has.
static const Dim *class_slice(Arrays *a, const ArrayClass *c, Symbols *symbols)
{
	SliceSearch s = {c, a, dim_const(a->ctx, 1), false};
	op_walk(a->p->module, slice_visit, &s);
	return s.unknown ? dim_max(a->ctx, symbol_new(symbols, c, "_size"), s.largest) : s.largest;
}

// ---- positions that are skipped -----------------------------------------------------------------

// Whether `array` is never shorter than `from`, which it is made of.
static bool array_keeps(const Value *array, const Value *from, int depth)
{
	if (array == from)
		return true;
	const Op *op = array->def;
	if (!op || depth > MAX_DEPTH)
		return false;
	int i = (int)array->index;
	if (op->code == OP_PD_ARRAY_WRITE)
		return array_keeps(op_operand(op, 0), from, depth + 1);
	if (op_is_branch(op)) {
		bool keeps = true;
		for (int r = 0; r < op_parts(op) && keeps; r++)
			keeps = array_keeps(op_operand(op->regions[r].first->last, i), from, depth + 1);
		return keeps;
	}
	if (op->code != OP_PD_WHILE || op->nregion != 2)
		return false;
	const Block *body = op->regions[1].first;
	return counter_loop(body->args[i]) &&
	       array_keeps(op_operand(body->last, i), body->args[i], depth + 1) &&
	       array_keeps(op_operand(op, i), from, depth + 1);
}

static int64_t length_min(const Value *v, int depth);

// Behind a write, which may be one behind the last.
static int64_t length_written(const Op *write, int depth)
{
	int64_t offset = 0, n;
	const Value *base = position_base(op_operand(write, 1), &offset);
	const int64_t least = length_min(op_operand(write, 0), depth + 1);
	n = position_number(base, &n) ? n + offset : -1;
	if (position_length_of(base) == op_operand(write, 0) && offset == 0)
		n = least;
	return n + 1 > least ? n + 1 : least;
}

// How long an array is at least.
static int64_t length_min(const Value *v, int depth)
{
	const Op *op = v->def ? v->def : value_op(v);
	int64_t n, least;
	if (!op || depth > MAX_DEPTH)
		return 0;
	if (v->def && op->code == OP_PD_ARRAY_WRITE)
		return length_written(op, depth);
	if (op->code == OP_PD_WHILE && op->nregion == 2) {
		const Block *body = op->regions[1].first;
		const Value *arg = body->args[v->index];
		bool kept = counter_loop(arg) && array_keeps(op_operand(body->last, (int)v->index), arg, 0);
		return kept ? length_min(op_operand(op, (int)v->index), depth + 1) : 0;
	}
	least = 0;
	for (int r = 0; v->def && op_is_branch(op) && r < op_parts(op); r++) {
		n = length_min(op_operand(op->regions[r].first->last, (int)v->index), depth + 1);
		least = !r || n < least ? n : least;
	}
	return least;
}

// Whether `array` is `from` with nothing but writes in between, one of them at `at` + offset (at
// may be NULL: any).
static bool array_extends(const Value *array, const Value *from, const Value *at, int64_t offset)
{
	bool found = !at;
	for (; array != from; array = op_operand(array->def, 0)) {
		if (!array->def || array->def->code != OP_PD_ARRAY_WRITE)
			return false;
		int64_t n = 0;
		found = found || (position_base(op_operand(array->def, 1), &n) == at && n == offset);
	}
	return found;
}

// Whether the array that comes into a loop as variable j is as long as variable k + offset says.
static bool loop_starts_dense(const Op *loop, int j, int k, int64_t offset)
{
	int64_t n;
	const Value *init = position_base(op_operand(loop, k), &offset), *array = op_operand(loop, j);
	if (position_number(init, &n))
		return n + offset <= length_min(array, 0);
	return position_length_of(init) && offset <= 0 &&
	       array_extends(array, position_length_of(init), NULL, 0);
}

// Whether a loop writes its variable j at the position in variable k + offset, which counts along.
static bool loop_fills(const Op *op, const Value *counter, int64_t offset)
{
	const Op *loop = counter_loop(counter);
	int64_t step;
	if (!loop || !counter_step(loop, (int)counter->index, &step) || step != 1 ||
	    op->block != counter->block)
		return false;
	const Block *body = loop->regions[1].first;
	const Value *from = op_operand(op, 0);
	while (from->def && from->def->code == OP_PD_ARRAY_WRITE)
		from = op_operand(from->def, 0);
	return from->block == body && counter->block == body && counter_loop(from) == loop &&
	       array_extends(op_operand(body->last, (int)from->index), from, counter, offset) &&
	       loop_starts_dense(loop, (int)from->index, (int)counter->index, offset);
}

// Whether a write is at or before the end of the array.
static bool write_is_dense(const Op *op)
{
	int64_t offset = 0, n;
	const Value *array = op_operand(op, 0), *base = position_base(op_operand(op, 1), &offset);
	if (position_length_of(base))
		return offset <= 0 && array_extends(array, position_length_of(base), NULL, 0);
	if (position_number(base, &n))
		return n + offset <= length_min(array, 0);
	return loop_fills(op, base, offset);
}

static bool holes_visit(Op *op, void *arg)
{
	Arrays *a = arg;
	const ArrayGroup *g = op->code == OP_PD_ARRAY_WRITE ? array_group(a, &op->results[0]) : NULL;
	if (g && !write_is_dense(op))
		g->c->holes = true;
	return true;
}

// ---- the pass -----------------------------------------------------------------------------------

const Dim *array_feed_symbol(Arrays *a, const Op *feed, const char *what)
{
	const char *name = op_str(feed, "name", "array");
	char *text = arena_printf(a->arena, "%s_%s", isalpha((unsigned char)*name) ? name : "array",
	                          what);
	for (char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return dim_sym(a->ctx, text);
}

// The room of a class that is always as long as this one; NULL: there is none yet.
static const Dim *group_capacity(const Arrays *a, const ArrayClass *c)
{
	for (const ArrayClass *other = a->classes; other != c && c->group >= 0; other = other->next)
		if (!other->same && other->group == c->group && other->capacity)
			return other->capacity;
	return NULL;
}

static const Dim *class_capacity(Arrays *a, const ArrayClass *c, Symbols *symbols)
{
	Extent e = {.a = a, .c = c, .end = dim_const(a->ctx, 0)};
	const Dim *growth = region_growth(&e, &a->p->module->regions[0]);
	const Dim *most = dim_add(a->ctx, e.end, growth);
	bool large = e.guess && (!dim_is_const(most) || most->value > MAX_GUESS);
	if (!e.unknown && !large && !dim_is_found(most))
		return dim_is(most, 0) ? dim_const(a->ctx, 1) : most;
	if ((e.unknown || large) && a->p->max_array)
		return dim_const(a->ctx, a->p->max_array);
	const Dim *symbol = group_capacity(a, c);
	if (symbol)
		return symbol;
	symbol = symbol_new(symbols, c, "");
	if (!e.unknown && !large) // of sizes that the run finds, with their bounds
		dim_set_bound(a->ctx, symbol, most);
	return symbol;
}

static bool group_visit(Op *op, void *arg)
{
	Arrays *a = arg;
	const ArrayGroup *g = op->code == OP_PD_CREATE_ARRAY ? array_group(a, &op->results[0]) : NULL;
	if (g)
		g->c->group = (int)op_int(op, "group", -1);
	return true;
}

void arrays_size(Arrays *a)
{
	Symbols symbols = {.a = a};
	name_map_init(&symbols.taken, a->arena);
	op_walk(a->p->module, holes_visit, a);
	op_walk(a->p->module, group_visit, a);
	for (ArrayClass *c = a->classes; c; c = c->next) {
		if (c->same)
			continue;
		c->capacity = class_capacity(a, c, &symbols);
		if (c->open)
			c->slice = class_slice(a, c, &symbols);
	}
	symbols_declare(&symbols);
}
