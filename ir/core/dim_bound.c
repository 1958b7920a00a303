// Bounds of sizes that a run finds: what a symbol `?!n` is at most, where that is known before the
// run. Inference and the pass `bounds` set them; the memory plan asks how much an expression may
// become, and codegen asks the caller for a bound where none is known.
#include "ir/base/vec.h"
#include "ir/core/intern.h"

typedef struct Bound {
	const Dim *sym, *most; // NULL: not known any more
} Bound;

typedef struct BoundFacts {
	int n, cap;
	Bound *bounds;
	int nrely, crely;
	const Dim **rely; // symbols that are at least 1
	int nempty;
	const Dim *const *empty; // those that text says may be 0
	bool all;
} BoundFacts;

static BoundFacts *bound_facts(Context *c)
{
	void **slot = intern_slot(c, INTERN_DIM, "bounds", 6);
	if (!*slot)
		*slot = NEW(c->arena, BoundFacts);
	return *slot;
}

static int bound_find(const BoundFacts *f, const Dim *sym)
{
	for (int i = 0; i < f->n; i++)
		if (f->bounds[i].sym == sym)
			return i;
	return -1;
}

const Dim *dim_bound(Context *c, const Dim *sym)
{
	const BoundFacts *f = bound_facts(c);
	int i = bound_find(f, sym);
	return i < 0 ? NULL : f->bounds[i].most;
}

void dim_set_bound(Context *c, const Dim *sym, const Dim *bound)
{
	BoundFacts *f = bound_facts(c);
	if (sym->kind != DIM_SYM || !sym->bounded)
		return;
	int i = bound_find(f, sym);
	if (i >= 0)
		f->bounds[i].most = NULL; // not to be asked for now
	if (bound && (bound = dim_at_most(c, bound)) && dim_mentions(bound, sym))
		bound = NULL;
	if (i < 0 && !bound)
		return;
	if (i < 0) {
		VEC_ROOM(c->arena, f->bounds, f->n, f->cap);
		i = f->n++;
	}
	f->bounds[i] = (Bound){sym, bound};
}

int dim_bound_count(Context *c)
{
	return bound_facts(c)->n;
}

const Dim *dim_bound_get(Context *c, int i, const Dim **sym)
{
	const Bound *b = &bound_facts(c)->bounds[i];
	*sym = b->sym;
	return b->most;
}

// ---- symbols that must not be 0 -----------------------------------------------------------------

static bool is_relied_on(const BoundFacts *f, const Dim *sym)
{
	for (int i = 0; i < f->nrely; i++)
		if (f->rely[i] == sym)
			return true;
	for (int i = 0; i < f->nempty; i++)
		if (f->empty[i] == sym)
			return false;
	return f->all;
}

void dim_rely(Context *c, const Dim *d)
{
	BoundFacts *f = bound_facts(c);
	if (d->kind == DIM_CONST || c->sizes_known)
		return;
	if (d->kind != DIM_SYM) {
		dim_rely(c, d->a);
		dim_rely(c, d->b);
		return;
	}
	if (d->bounded || is_relied_on(f, d))
		return;
	VEC_ROOM(c->arena, f->rely, f->nrely, f->crely);
	f->rely[f->nrely++] = d;
}

void dim_rely_on_others(Context *c, int n, const Dim *const *may_be_empty)
{
	BoundFacts *f = bound_facts(c);
	f->all = true;
	f->nempty = n;
	f->empty = may_be_empty;
}

bool dim_may_be_empty(Context *c, const Dim *sym)
{
	return !sym->bounded && !is_relied_on(bound_facts(c), sym);
}

// ---- the ends of expressions --------------------------------------------------------------------

static bool is_unbounded(Context *c, const Dim *d)
{
	return d->kind == DIM_SYM && d->bounded && !dim_bound(c, d);
}

static bool is_large(const Dim *d)
{
	enum { LARGE = 4096 };
	return dim_is_const(d) && d->value > LARGE;
}

static const Dim *dim_end(Context *c, const Dim *d, bool high);

// Signs are not known: more than any memory has.
static const Dim *end_unknown(Context *c, bool high)
{
	return dim_const(c, high ? INT64_MAX : -INT64_MAX);
}

static const Dim *product_end(Context *c, const Dim *d, bool high)
{
	int64_t alo, ahi, blo, bhi;
	if (dim_is_const(d->a) && d->a->value < 0)
		return dim_mul(c, d->a, dim_end(c, d->b, !high));
	dim_range(d->a, &alo, &ahi);
	dim_range(d->b, &blo, &bhi);
	if (blo < 0 || (alo < 0 && ahi > 0))
		return end_unknown(c, high);
	return dim_mul(c, dim_end(c, d->a, high), dim_end(c, d->b, alo >= 0 ? high : !high));
}

static const Dim *quotient_end(Context *c, const Dim *d, bool high)
{
	int64_t lo, hi;
	const Dim *a = dim_end(c, d->a, high);
	if (dim_is_const(d->b) && d->b->value > 0)
		return dim_div(c, a, d->b);
	dim_range(d->a, &lo, &hi);
	if (lo < 0)
		return end_unknown(c, high);
	return high ? a : dim_const(c, 0);
}

// Whether the end `a` needs no bound from the caller, which `other` does, and is no number that
// only means "all".
static bool spares_bound(Context *c, const Dim *other, const Dim *a)
{
	return is_unbounded(c, other) && !dim_is_found(a) && !is_large(a);
}

static const Dim *minimum_end(Context *c, const Dim *d, bool high)
{
	const Dim *a = dim_end(c, d->a, high), *b = dim_end(c, d->b, high);
	if (high && spares_bound(c, d->a, b))
		return b;
	if (high && spares_bound(c, d->b, a))
		return a;
	return dim_min(c, a, b);
}

static const Dim *found_end(Context *c, const Dim *sym, bool high)
{
	const Dim *bound = dim_bound(c, sym);
	return !high ? dim_const(c, 0) : bound ? dim_end(c, bound, true) : sym;
}

// Found symbols count as anything from 0 to their bound, or to themselves where there is none;
// ordinary symbols as what they are.
static const Dim *dim_end(Context *c, const Dim *d, bool high)
{
	if (!dim_is_found(d))
		return d;
	switch (d->kind) {
	case DIM_SYM: return found_end(c, d, high);
	case DIM_MUL: return product_end(c, d, high);
	case DIM_DIV: return quotient_end(c, d, high);
	case DIM_MIN: return minimum_end(c, d, high);
	default: break;
	}
	const Dim *a = dim_end(c, d->a, high), *b = dim_end(c, d->b, high);
	switch (d->kind) {
	case DIM_ADD: return dim_add(c, a, b);
	case DIM_MAX: return dim_max(c, a, b);
	case DIM_BROADCAST: // one of the two
		return high ? dim_max(c, a, b) : dim_min(c, a, b);
	default: // a remainder
		return high ? b : dim_const(c, 0);
	}
}

const Dim *dim_at_most(Context *c, const Dim *d)
{
	return dim_end(c, d, true);
}

// False: there are too many.
static bool factors_add(DimFactors *f, const Dim *d)
{
	if (d->kind == DIM_MUL)
		return factors_add(f, d->a) && factors_add(f, d->b);
	if (f->n == (int)COUNT_OF(f->at))
		return false;
	f->at[f->n++] = d;
	return true;
}

static const Dim *factors_product(Context *c, const DimFactors *f, int without)
{
	const Dim *all = dim_const(c, 1);
	for (int i = 0; i < f->n; i++)
		if (i != without)
			all = dim_mul(c, all, f->at[i]);
	return all;
}

// A quotient times its divisor is at most what is divided: f with that for one of its factors, or
// false. Reshaping to found sizes and "what is left" has as many elements as before.
static bool quotient_undone(Context *c, DimFactors *f)
{
	for (int i = 0; i < f->n; i++) {
		const Dim *q = f->at[i], *rest, *left;
		if (q->kind != DIM_DIV || !dim_is_found(q->b))
			continue;
		rest = factors_product(c, f, i);
		left = dim_div(c, rest, q->b);
		if (dim_mul(c, left, q->b) != rest)
			continue;
		DimFactors undone = {0};
		if (!factors_add(&undone, q->a) || !factors_add(&undone, left))
			return false;
		*f = undone;
		return true;
	}
	return false;
}

DimFactors dims_factors(Context *c, int n, const Dim *const *dims)
{
	DimFactors whole = {0}, f = {0};
	for (int i = 0; i < n; i++)
		whole.at[whole.n++] = dims[i];
	for (int i = 0; i < n; i++)
		if (!factors_add(&f, dims[i]))
			return whole;
	bool undone = false;
	for (int steps = 0; steps < (int)COUNT_OF(f.at) && quotient_undone(c, &f); steps++)
		undone = true;
	return undone ? f : whole;
}

const Dim *dims_at_most(Context *c, int n, const Dim *const *dims)
{
	const DimFactors f = dims_factors(c, n, dims);
	const Dim *all = dim_const(c, 1);
	for (int i = 0; i < f.n; i++)
		all = dim_mul(c, all, dim_at_most(c, f.at[i]));
	return all;
}
