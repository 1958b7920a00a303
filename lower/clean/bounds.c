// Bounds of sizes that control flow changes: how large a result of pd.if or a variable of pd.while
// may become, as a size that is known before the run. Where none is found the caller states one.
// Runs on the clean program, when trip counts can still be read off; inference has set bounds of
// operations such as nonzero before.
#include "lower/analysis/analysis.h"
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"

// What comes around for a size `s` of a loop variable is at most max(abs, s + rel); NULL: that side
// is not needed.
typedef struct Growth {
	bool known;
	const Dim *abs, *rel;
} Growth;

// Everything that a size may become, with symbols that have no bound of their own left as they are.
static bool dim_is_free_of(Context *c, const Dim *d, const Dim *s)
{
	return !dim_mentions(dim_at_most(c, d), s);
}

static const Dim *max_or(Context *c, const Dim *a, const Dim *b)
{
	return !a ? b : !b ? a : dim_max(c, a, b);
}

static const Dim *add_or(Context *c, const Dim *a, const Dim *b)
{
	return a ? dim_add(c, a, b) : NULL;
}

static bool never_positive(const Dim *d)
{
	int64_t lo, hi;
	dim_range(d, &lo, &hi);
	return hi <= 0;
}

static Growth growth_of(Context *c, const Dim *d, const Dim *s);

static Growth growth_of_sum(Context *c, const Dim *d, const Dim *s)
{
	const Dim *with = dim_mentions(d->a, s) ? d->a : d->b, *rest = with == d->a ? d->b : d->a;
	if (dim_mentions(rest, s)) { // what is never positive may be left out
		bool a = never_positive(d->a), b = never_positive(d->b);
		return a != b ? growth_of(c, a ? d->b : d->a, s) : (Growth){0};
	}
	Growth g = growth_of(c, with, s);
	const Dim *most = dim_at_most(c, rest);
	if (!g.known || dim_mentions(most, s))
		return (Growth){0};
	return (Growth){true, add_or(c, g.abs, most), add_or(c, g.rel, most)};
}

// 0: grows, 1: does not, but may be as large as a size that has nothing to do with it, 2: never
// more than before.
static int growth_rank(Growth g)
{
	if (!g.known)
		return -1;
	bool grows = g.rel && !never_positive(g.rel);
	return grows ? 0 : g.abs ? 1 : 2;
}

// Of the smaller or the larger of two sizes.
static Growth growth_of_choice(Context *c, const Dim *d, const Dim *s)
{
	const Growth a = growth_of(c, d->a, s), b = growth_of(c, d->b, s);
	if (d->kind == DIM_MIN) // each is a bound
		return growth_rank(b) > growth_rank(a) ? b : a;
	return (Growth){a.known && b.known, max_or(c, a.abs, b.abs), max_or(c, a.rel, b.rel)};
}

static Growth growth_of(Context *c, const Dim *d, const Dim *s)
{
	Growth a;
	if (d == s)
		return (Growth){true, NULL, dim_const(c, 0)};
	if (d->kind == DIM_SYM && dim_bound(c, d) && dim_mentions(dim_bound(c, d), s))
		return growth_of(c, dim_bound(c, d), s);
	if (!dim_mentions(d, s)) {
		const Dim *most = dim_at_most(c, d);
		return dim_mentions(most, s) ? (Growth){0} : (Growth){true, most, NULL};
	}
	switch (d->kind) {
	case DIM_ADD: return growth_of_sum(c, d, s);
	case DIM_MIN:
	case DIM_MAX:
	case DIM_BROADCAST: return growth_of_choice(c, d, s);
	case DIM_DIV:
		if (!dim_is_const(d->b) || d->b->value < 1)
			return (Growth){0};
		a = growth_of(c, d->a, s); // x / k is at most x, or at most 0
		return (Growth){a.known, max_or(c, a.abs, dim_const(c, 0)), a.rel};
	case DIM_MOD: return growth_of(c, d->b, s);
	default: return (Growth){0};
	}
}

// ---- control flow -------------------------------------------------------------------------------

static const Dim *slot_symbol(const Type *t, int i)
{
	const Dim *d = t->dims[i];
	return d->kind == DIM_SYM && d->bounded ? d : NULL;
}

static void loop_bound(Context *c, const Op *loop, int i, int axis, const Dim *trips)
{
	const Dim *s = slot_symbol(loop->results[i].type, axis);
	const Type *first = op_operand(loop, i)->type,
			   *next = op_operand(loop->regions[1].first->last, i)->type;
	if (!s || dim_bound(c, s) || first->dims[axis] == s)
		return;
	const Dim *init = dim_at_most(c, first->dims[axis]);
	Growth g = growth_of(c, next->dims[axis], s);
	if (!g.known || dim_mentions(init, s))
		return;
	const Dim *most = max_or(c, init, g.abs);
	if (g.rel && !never_positive(g.rel)) {
		if (!trips || !dim_is_free_of(c, trips, s))
			return;
		const Dim *step = dim_max(c, g.rel, dim_const(c, 0));
		most = dim_add(c, most, dim_mul(c, step, dim_at_most(c, trips)));
	}
	dim_set_bound(c, s, most);
}

// One symbol in several slots may get its size from any of them: only what all slots agree on is a
// bound.
static bool symbol_is_alone(const Op *op, const Dim *s)
{
	int n = 0;
	for (int i = 0; i < op->nresult; i++)
		for (int d = 0; op->results[i].type->kind == TY_TENSOR && d < op->results[i].type->rank;
		     d++)
			n += op->results[i].type->dims[d] == s;
	return n == 1;
}

static bool slot_is_plain(const Op *op, int i, int axis)
{
	const Dim *s = slot_symbol(op->results[i].type, axis);
	return s && symbol_is_alone(op, s);
}

// Whether the variables have the types of the results, inside too.
static bool variables_have_types(const Op *loop)
{
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	for (int i = 0; i < loop->nresult; i++)
		if (cond->args[i]->type != loop->results[i].type ||
		    body->args[i]->type != loop->results[i].type)
			return false;
	return true;
}

static void while_bounds(Context *c, const Op *op)
{
	const Dim *exact, *trips = NULL;
	if (!loop_is_plain(op) || !variables_have_types(op))
		return;
	while_trip_count(c, op, &exact, &trips);
	for (int round = 0; round < 2; round++) // one size may hang on another
		for (int i = 0; i < op->nresult; i++)
			for (int d = 0; op->results[i].type->kind == TY_TENSOR && d < op->results[i].type->rank;
			     d++)
				if (slot_is_plain(op, i, d))
					loop_bound(c, op, i, d, trips);
}

// What a size of a result is at most, where every side says what it gives; NULL: one does not.
static const Dim *largest_side(Context *c, const Op *op, int i, int axis)
{
	const Dim *most = NULL;
	for (int k = 0; k < op->nregion; k++) {
		const Op *end = op->regions[k].first ? op->regions[k].first->last : NULL;
		if (op->nregion != op_parts(op) || !end || end->noperand != op->nresult)
			return NULL;
		most = max_or(c, most, dim_at_most(c, op_operand(end, i)->type->dims[axis]));
	}
	return most;
}

static void branch_bounds(Context *c, const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		for (int d = 0; op->results[i].type->kind == TY_TENSOR && d < op->results[i].type->rank;
		     d++) {
			if (!slot_is_plain(op, i, d) || dim_bound(c, op->results[i].type->dims[d]))
				continue;
			const Dim *most = largest_side(c, op, i, d);
			if (most)
				dim_set_bound(c, op->results[i].type->dims[d], most);
		}
}

// What a loop holds at first is bounded before the loop, what its body does inside of it: results
// of inner operations come first, and once more when the variables that they depend on have bounds.
static void region_bounds(Context *c, const Region *r)
{
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			if (op->info->kind != KIND_CONTROL)
				continue;
			for (int i = 0; i < op->nregion; i++)
				region_bounds(c, &op->regions[i]);
			if (op->code == OP_PD_WHILE)
				while_bounds(c, op);
			if (op_is_branch(op))
				branch_bounds(c, op);
		}
}

// Needs: pd operators, so that trip counts can be read off.
// Keeps: everything; bounds are facts of the context, and the attribute `bounds` of the module says
// them in text. Breaks: nothing.
bool pass_bounds(PassContext *p)
{
	region_bounds(p->ctx, &p->module->regions[0]);
	size_facts_to_module(p->module);
	return true;
}
