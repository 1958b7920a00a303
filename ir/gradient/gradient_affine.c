// Positions of loads as sums of loop variables times constants, and solving such sums for the
// variables. Called by gradient_nest.c.
#include "ir/gradient/load_site.h"

int site_var(const LoadSite *s, const Value *v)
{
	for (int i = 0; i < s->nvar; i++)
		if (s->vars[i].arg == v)
			return i;
	return -1;
}

static bool affine_of(const LoadSite *s, Value *v, int64_t times, Affine *a);

static bool affine_product(const LoadSite *s, const Op *op, int64_t times, Affine *a)
{
	int64_t by;
	for (int i = 0; i < 2; i++)
		if (index_constant(op_operand(op, i), &by))
			return affine_of(s, op_operand(op, 1 - i), times * by, a);
	return false;
}

static bool affine_of(const LoadSite *s, Value *v, int64_t times, Affine *a)
{
	int var = site_var(s, v);
	int64_t number;
	if (var >= 0) {
		a->coef[var] += times;
		return true;
	}
	if (!v->def || v->type->kind != TY_INDEX)
		return false;
	const Op *op = v->def;
	switch (op->code) {
	case OP_LOOP_CONSTANT:
		if (!index_constant(v, &number))
			return false;
		a->constant += times * number;
		return true;
	case OP_LOOP_DIM:
		if (a->nleaf == MAX_VARS)
			return false;
		a->leaf[a->nleaf] = v;
		a->leaf_coef[a->nleaf++] = times;
		return true;
	case OP_PD_ADD:
		return affine_of(s, op_operand(op, 0), times, a) &&
		       affine_of(s, op_operand(op, 1), times, a);
	case OP_PD_SUBTRACT:
		return affine_of(s, op_operand(op, 0), times, a) &&
		       affine_of(s, op_operand(op, 1), -times, a);
	case OP_PD_MULTIPLY: return affine_product(s, op, times, a);
	default: return false;
	}
}

// ---- solving for the variables ------------------------------------------------------------------

// Whether variable v may be the unknown of an equation: the others must not need it later.
static int pivot_cost(const Solution *x, const LoadSite *s, int axis, int v)
{
	int64_t c = x->axes[axis].coef[v];
	if (!c || x->solved[v])
		return -1;
	int cost = c == 1 || c == -1 ? 0 : 8;
	for (int d = 0; d < x->naxis; d++)
		cost += d != axis && x->axes[d].coef[v] ? 4 : 0;
	// Inner variables are few (taps of a window), outer ones many.
	for (int i = 0; i < s->npath; i++)
		if (s->vars[v].arg->block == s->path[i]->regions[0].first)
			cost += 1;
	return cost;
}

// The unknown of each equation: the variable that costs least, or none.
static void pivots_choose(const LoadSite *s, Solution *x)
{
	for (int d = 0; d < x->naxis; d++) {
		int best = -1, least = 0;
		for (int v = 0; v < s->nvar; v++) {
			int cost = pivot_cost(x, s, d, v);
			if (cost >= 0 && (best < 0 || cost < least)) {
				best = v;
				least = cost;
			}
		}
		x->order[d] = d;
		x->pivot[d] = best;
		if (best >= 0)
			x->solved[best] = true;
	}
}

// The first equation left that names no unknown but its own and those that are known; -1: none.
static int equation_ready(const LoadSite *s, const Solution *x, const bool *done, const bool *known)
{
	for (int d = 0; d < x->naxis; d++) {
		bool fits = !done[d];
		for (int v = 0; v < s->nvar; v++)
			fits &= !x->axes[d].coef[v] || known[v] || v == x->pivot[d];
		if (fits)
			return d;
	}
	return -1;
}

// An equation may name unknowns of others only when those are solved before it. False: there is no
// such order.
static bool equations_order(const LoadSite *s, Solution *x)
{
	bool done[MAX_RANK] = {false}, known[MAX_VARS];
	for (int v = 0; v < s->nvar; v++)
		known[v] = !x->solved[v];
	for (int n = 0; n < x->naxis; n++) {
		const int ready = equation_ready(s, x, done, known);
		if (ready < 0)
			return false;
		done[ready] = true;
		x->order[n] = ready;
		if (x->pivot[ready] >= 0)
			known[x->pivot[ready]] = true;
	}
	return true;
}

bool site_solve(const LoadSite *s, Solution *x)
{
	x->naxis = s->tensor->type->rank;
	for (int d = 0; d < x->naxis; d++)
		if (!affine_of(s, load_index(s->load, d), 1, &x->axes[d]))
			return false;
	pivots_choose(s, x);
	if (!equations_order(s, x))
		return false;
	int nfree = 0;
	for (int v = 0; v < s->nvar; v++)
		nfree += !x->solved[v];
	return nfree <= MAX_RANK;
}
