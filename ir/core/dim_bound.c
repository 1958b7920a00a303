// Bounds of sizes that a run finds: what a symbol `?!n` is at most, where that is known before the
// run. Inference and the pass `bounds` set them; the memory plan asks how much an expression may
// become, and codegen asks the caller for a bound where none is known.
#include "ir/base/vec.h"
#include "ir/core/intern.h"

enum { MAX_EMPTY = 64 };

typedef struct BoundFacts {
	int n, cap;
	const Dim **syms, **bounds;
	int nrely, crely;
	const Dim **rely;  // symbols that are at least 1
	const Attr *empty; // those that text says may be 0
	bool all, none;
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
		if (f->syms[i] == sym)
			return i;
	return -1;
}

bool dim_mentions(const Dim *d, const Dim *sym)
{
	return d == sym || (d->a && (dim_mentions(d->a, sym) || dim_mentions(d->b, sym)));
}

bool dim_is_found(const Dim *d)
{
	if (d->kind == DIM_CONST || d->kind == DIM_SYM)
		return d->kind == DIM_SYM && d->bounded;
	return dim_is_found(d->a) || dim_is_found(d->b);
}

bool type_is_found(const Type *t)
{
	bool shaped = t->kind == TY_TENSOR || t->kind == TY_ARRAY || t->kind == TY_SELECTED_ROWS;
	for (int i = 0; shaped && i < t->rank; i++)
		if (dim_is_found(t->dims[i]))
			return true;
	return false;
}

const Dim *dim_bound(Context *c, const Dim *sym)
{
	const BoundFacts *f = bound_facts(c);
	int i = bound_find(f, sym);
	return i < 0 ? NULL : f->bounds[i];
}

void dim_set_bound(Context *c, const Dim *sym, const Dim *bound)
{
	BoundFacts *f = bound_facts(c);
	if (sym->kind != DIM_SYM || !sym->bounded)
		return;
	int i = bound_find(f, sym);
	if (i >= 0)
		f->bounds[i] = NULL; // not to be asked for now
	if (bound && (bound = dim_at_most(c, bound)) && dim_mentions(bound, sym))
		bound = NULL;
	if (i < 0 && !bound)
		return;
	if (i < 0 && f->n == f->cap) {
		int more = f->cap ? 2 * f->cap : 16;
		const Dim **syms = NEW_ARRAY(c->arena, (size_t)more, const Dim *);
		const Dim **bounds = NEW_ARRAY(c->arena, (size_t)more, const Dim *);
		for (int k = 0; k < f->n; k++) {
			syms[k] = f->syms[k];
			bounds[k] = f->bounds[k];
		}
		f->syms = syms;
		f->bounds = bounds;
		f->cap = more;
	}
	if (i < 0)
		i = f->n++;
	f->syms[i] = sym;
	f->bounds[i] = bound;
}

// ---- symbols that must not be 0 -----------------------------------------------------------------

static bool is_relied_on(const BoundFacts *f, const Dim *sym)
{
	for (int i = 0; i < f->nrely; i++)
		if (f->rely[i] == sym)
			return true;
	for (int i = 0; f->empty && i < f->empty->n; i++)
		if (f->empty->dims[i] == sym)
			return false;
	return f->all;
}

void dim_rely(Context *c, const Dim *d)
{
	BoundFacts *f = bound_facts(c);
	if (d->kind == DIM_CONST || f->none)
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

void dim_rely_on_none(Context *c, bool on)
{
	bound_facts(c)->none = on;
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

// Found symbols count as anything from 0 to their bound, or to themselves where there is none;
// ordinary symbols as what they are.
static const Dim *dim_end(Context *c, const Dim *d, bool high)
{
	int64_t alo, ahi, blo, bhi;
	if (!dim_is_found(d))
		return d;
	if (d->kind == DIM_SYM) {
		const Dim *bound = dim_bound(c, d);
		return !high ? dim_const(c, 0) : bound ? dim_end(c, bound, true) : d;
	}
	const Dim *a = dim_end(c, d->a, high), *b = dim_end(c, d->b, high);
	switch (d->kind) {
	case DIM_ADD: return dim_add(c, a, b);
	case DIM_MAX: return dim_max(c, a, b);
	case DIM_BROADCAST: // one of the two
		return high ? dim_max(c, a, b) : dim_min(c, a, b);
	case DIM_MIN:
		// What needs no bound from the caller, unless it is a number that only means "all".
		if (high && is_unbounded(c, d->a) && !dim_is_found(b) && !is_large(b))
			return b;
		if (high && is_unbounded(c, d->b) && !dim_is_found(a) && !is_large(a))
			return a;
		return dim_min(c, a, b);
	case DIM_MUL:
		if (dim_is_const(d->a) && d->a->value < 0)
			return dim_mul(c, d->a, dim_end(c, d->b, !high));
		dim_range(d->a, &alo, &ahi);
		dim_range(d->b, &blo, &bhi);
		if (alo >= 0 && blo >= 0)
			return dim_mul(c, a, b);
		if (ahi <= 0 && blo >= 0)
			return dim_mul(c, a, dim_end(c, d->b, !high));
		break;
	case DIM_DIV:
		dim_range(d->a, &alo, &ahi);
		if (dim_is_const(d->b) && d->b->value > 0)
			return dim_div(c, a, d->b);
		if (alo >= 0)
			return high ? a : dim_const(c, 0);
		break;
	default: // a remainder
		return high ? b : dim_const(c, 0);
	}
	// Signs are not known: more than any memory has.
	return dim_const(c, high ? INT64_MAX : -INT64_MAX);
}

const Dim *dim_at_most(Context *c, const Dim *d)
{
	return dim_end(c, d, true);
}

const Dim *type_bytes_at_most(Context *c, const Type *t)
{
	const Dim *bytes = dim_const(c, (int64_t)dtype_size(t->dtype));
	for (int i = 0; i < t->rank; i++) {
		int64_t lo, hi;
		const Dim *most = dim_at_most(c, t->dims[i]);
		dim_range(most, &lo, &hi);
		// Only what a run finds is clamped: sizes that the caller gives are refused when others
		// come out negative.
		bool clamp = lo < 0 && dim_is_found(t->dims[i]);
		bytes = dim_mul(c, bytes, clamp ? dim_max(c, most, dim_const(c, 0)) : most);
	}
	return bytes;
}

// ---- text ---------------------------------------------------------------------------------------

static bool type_mentions(const Type *t, const Dim *sym)
{
	for (int i = 0; type_is_found(t) && i < t->rank; i++)
		if (dim_mentions(t->dims[i], sym))
			return true;
	return false;
}

static bool region_mentions(const Region *r, const Dim *sym)
{
	for (const Block *b = r->first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			if (type_mentions(b->args[i]->type, sym))
				return true;
		for (const Op *op = b->first; op; op = op->next) {
			for (int i = 0; i < op->nresult; i++)
				if (type_mentions(op->results[i].type, sym))
					return true;
			for (int i = 0; i < op->nregion; i++)
				if (region_mentions(&op->regions[i], sym))
					return true;
		}
	}
	return false;
}

static int empty_collect(Context *c, const Dim *d, const Dim **list, int n)
{
	if (d->a)
		return empty_collect(c, d->b, list, empty_collect(c, d->a, list, n));
	bool take = d->kind == DIM_SYM && dim_may_be_empty(c, d);
	for (int i = 0; i < n && take; i++)
		take = list[i] != d;
	if (take && n < MAX_EMPTY)
		list[n++] = d;
	return n;
}

static const Attr *empty_attr(Op *module)
{
	const Dim *list[MAX_EMPTY];
	int n = 0;
	for (const Block *b = module->regions[0].first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			for (int d = 0; op->code == OP_PD_FEED && op->results[0].type->kind == TY_TENSOR &&
			                d < op->results[0].type->rank;
			     d++)
				n = empty_collect(module->ctx, op->results[0].type->dims[d], list, n);
	return n ? attr_dims(module->ctx, n, list) : NULL;
}

static const Attr *bounds_attr(Op *module)
{
	Context *c = module->ctx;
	const BoundFacts *f = bound_facts(c);
	const Dim **list = NEW_ARRAY(c->arena, 2 * (size_t)f->n + 1, const Dim *);
	int n = 0;
	for (int i = 0; i < f->n; i++) {
		if (!f->bounds[i] || !region_mentions(&module->regions[0], f->syms[i]))
			continue;
		list[n++] = f->syms[i];
		list[n++] = f->bounds[i];
	}
	return n ? attr_dims(c, n, list) : NULL;
}

void size_facts_to_module(Op *module)
{
	op_set_attr(module, "bounds", bounds_attr(module));
	op_set_attr(module, "may_be_empty", empty_attr(module));
}

void size_facts_from_module(const Op *module)
{
	BoundFacts *f = bound_facts(module->ctx);
	const Attr *a = op_attr(module, "bounds"), *empty = op_attr(module, "may_be_empty");
	for (int i = 0; a && a->kind == ATTR_DIMS && i + 1 < a->n; i += 2)
		dim_set_bound(module->ctx, a->dims[i], a->dims[i + 1]);
	f->all = true;
	f->empty = empty && empty->kind == ATTR_DIMS ? empty : NULL;
}
