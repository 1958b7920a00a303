// Symbols, and which sizes are equal: what dim_unify learns of symbols, look-ups of them give.
#include "ir/base/vec.h"
#include "ir/core/dim_poly.h"
#include "ir/core/intern.h"

#include <string.h>

// What dim_unify learnt, per context: replacements of symbols, and equalities to check at run time.
typedef struct DimFacts {
	int nsub, csub, ncheck, ccheck;
	const Dim **from, **to;
	const Dim **left, **right;
	int nkept, ckept;
	const Dim **kept, **kept_too; // the same twice
	int generation;
	bool settled; // nothing is learnt any more
} DimFacts;

static DimFacts *dim_facts(Context *c)
{
	void **slot = intern_slot(c, INTERN_DIM, "facts", 5);
	if (!*slot)
		*slot = NEW(c->arena, DimFacts);
	return *slot;
}

static const Dim *dim_substitute(Context *c, const Dim *d)
{
	const DimFacts *f = dim_facts(c);
	if (d->kind == DIM_CONST || !f->nsub)
		return d;
	if (d->kind == DIM_SYM) {
		for (int i = 0; i < f->nsub; i++) {
			if (f->from[i] == d)
				return dim_substitute(c, f->to[i]);
		}
		return d;
	}
	const Dim *a = dim_substitute(c, d->a), *b = dim_substitute(c, d->b); // in this order
	return dim_like(c, d, a, b);
}

// ---- symbols ------------------------------------------------------------------------------------

const Dim *dim_sym(Context *c, const char *name)
{
	return dim_substitute(c, dim_intern(c, &(Dim){.kind = DIM_SYM, .name = context_str(c, name)}));
}

const Dim *dim_sym_bounded(Context *c, const char *name)
{
	const Dim d = {.kind = DIM_SYM, .name = context_str(c, name), .bounded = true};
	return dim_substitute(c, dim_intern(c, &d));
}

// What stands for a name: under "=full" the name that it has, under "@brief" who has that.
static const char **name_slot(Context *c, const char *kind, const char *name)
{
	const char *key = arena_printf(c->arena, "%s%s", kind, name);
	return (const char **)intern_slot(c, INTERN_DIM, key, strlen(key));
}

const Dim *dim_sym_found(Context *c, const char *brief, const char *full,
                         bool (*mine)(const Dim *sym, const void *arg), const void *arg)
{
	const char *name = *name_slot(c, "=", full);
	if (name)
		return dim_sym_bounded(c, name);
	const int before = (int)*dim_next_id(c);
	const Dim *sym = dim_intern(
		c, &(Dim){.kind = DIM_SYM, .name = context_str(c, brief), .bounded = true});
	const bool fresh = (int)sym->id >= before;
	const char *owner = *name_slot(c, "@", brief);
	name = !owner && (fresh || (mine && mine(sym, arg))) ? brief : full;
	*name_slot(c, "@", name) = full;
	*name_slot(c, "=", full) = name = context_str(c, name);
	return dim_sym_bounded(c, name);
}

const Dim *dim_sym_new(Context *c, const char *stem)
{
	const char *name = stem;
	for (int n = 2;; n++) {
		const uint32_t before = *dim_next_id(c);
		const Dim *sym = dim_intern(
			c, &(Dim){.kind = DIM_SYM, .name = context_str(c, name), .bounded = true});
		if (sym->id >= before)
			return sym;
		name = arena_printf(c->arena, "%s_%d", stem, n);
	}
}

// ---- equalities ---------------------------------------------------------------------------------

static void pair_push(Context *c, int *n, int *cap, const Dim ***xs, const Dim ***ys, const Dim *x,
                      const Dim *y)
{
	int more = *cap;
	VEC_ROOM(c->arena, *xs, *n, more);
	VEC_ROOM(c->arena, *ys, *n, *cap);
	(*xs)[*n] = x;
	(*ys)[(*n)++] = y;
}

// Divides out what all terms have in common, so that 2*n = 2*m says n = m. Sizes that are fed are
// relied on to be positive; those that a run finds often are 0: s*s = s does not say s = 1.
static void poly_reduce(Context *c, Poly *p)
{
	Term common = p->terms[0];
	common.natom = 0;
	for (int i = 0; i < p->terms[0].natom; i++)
		if (!dim_is_found(p->terms[0].atoms[i]))
			common.atoms[common.natom++] = p->terms[0].atoms[i];
	for (int i = 1; i < p->n; i++) {
		const Term *t = &p->terms[i];
		int64_t a = common.coeff < 0 ? -common.coeff : common.coeff,
				b = t->coeff < 0 ? -t->coeff : t->coeff;
		while (b) {
			int64_t r = a % b;
			a = b;
			b = r;
		}
		common.coeff = a;
		int n = 0;
		for (int x = 0, y = 0; x < common.natom && y < t->natom;) {
			if (common.atoms[x] == t->atoms[y]) {
				common.atoms[n++] = common.atoms[x++];
				y++;
			} else if (dim_order(common.atoms[x], t->atoms[y]) < 0) {
				x++;
			} else {
				y++;
			}
		}
		common.natom = n;
	}
	for (int i = 0; i < common.natom; i++)
		dim_rely(c, common.atoms[i]);
	Poly r = {.n = 0};
	for (int i = 0; i < p->n; i++) {
		Term q;
		if (!term_div(&p->terms[i], &common, &q))
			return;
		poly_add_term(&r, &q);
	}
	*p = r;
}

static bool is_kept(Context *c, const Dim *sym)
{
	const DimFacts *f = dim_facts(c);
	for (int i = 0; i < f->nkept; i++)
		if (f->kept[i] == sym)
			return true;
	return false;
}

bool dim_set_learning(Context *c, bool on)
{
	const bool before = !dim_facts(c)->settled;
	dim_facts(c)->settled = !on;
	return before;
}

void dim_keep(Context *c, const Dim *sym)
{
	DimFacts *f = dim_facts(c);
	if (sym->kind == DIM_SYM && !is_kept(c, sym))
		pair_push(c, &f->nkept, &f->ckept, &f->kept, &f->kept_too, sym, sym);
}

// What the symbol of term i is where p = 0; NULL: it overflows.
static const Dim *term_solve(Context *c, const Poly *p, int i)
{
	Poly rest = {.n = 0};
	for (int j = 0; j < p->n; j++) {
		Term u = p->terms[j];
		if (p->terms[i].coeff == 1)
			rest.bad |= __builtin_sub_overflow(0, u.coeff, &u.coeff);
		if (j != i)
			poly_add_term(&rest, &u);
	}
	return rest.bad ? NULL : dim_of_poly(c, &rest);
}

// How many of the found symbols of d are younger than sym; *first is one of them.
static int younger_found(const Dim *d, const Dim *sym, const Dim **first)
{
	if (d->a)
		return younger_found(d->a, sym, first) + younger_found(d->b, sym, first);
	if (d->kind != DIM_SYM || !d->bounded || d->id <= sym->id || d == *first)
		return 0;
	*first = d;
	return 1;
}

// Solves p = 0 for the youngest symbol that stands alone in one term. Returns it, or NULL.
static const Dim *poly_solve(Context *c, const Poly *p, const Dim **solution)
{
	const Dim *best = NULL;
	for (int i = 0; i < p->n; i++) {
		const Term *t = &p->terms[i];
		if (t->natom != 1 || t->atoms[0]->kind != DIM_SYM || (t->coeff != 1 && t->coeff != -1))
			continue;
		const Dim *sym = t->atoms[0];
		const Dim *value = term_solve(c, p, i);
		if (!value)
			continue;
		// A size found at run time never replaces one that the caller gives; nor do several one
		// that is found before them: what finds it could not tell them.
		const Dim *later = NULL;
		const bool allowed = sym->bounded ? younger_found(value, sym, &later) < 2
		                                  : !dim_is_found(value);
		if (dim_mentions(value, sym) || !allowed || is_kept(c, sym) || (best && best->id > sym->id))
			continue;
		best = sym;
		*solution = value;
	}
	return best;
}

bool dim_unify(Context *c, const Dim *a, const Dim *b)
{
	DimFacts *f = dim_facts(c);
	a = dim_substitute(c, a);
	b = dim_substitute(c, b);
	Poly p;
	poly_of(dim_sub(c, a, b), &p);
	if (!p.n)
		return false;
	poly_reduce(c, &p);
	const Dim *value = NULL, *sym = f->settled ? NULL : poly_solve(c, &p, &value);
	int64_t lo, hi;
	if (sym)
		dim_range(value, &lo, &hi);
	if (sym && hi >= 0) {
		pair_push(c, &f->nsub, &f->csub, &f->from, &f->to, sym, value);
		f->generation++;
		return true;
	}
	pair_push(c, &f->ncheck, &f->ccheck, &f->left, &f->right, a, b);
	return false;
}

void dim_check(Context *c, const Dim *a, const Dim *b)
{
	DimFacts *f = dim_facts(c);
	a = dim_substitute(c, a);
	b = dim_substitute(c, b);
	if (a != b)
		pair_push(c, &f->ncheck, &f->ccheck, &f->left, &f->right, a, b);
}

int dim_generation(Context *c)
{
	return dim_facts(c)->generation;
}

void dim_restart(Context *c)
{
	dim_facts(c)->ncheck = 0;
}

void dim_forget(Context *c)
{
	dim_facts(c)->nsub = 0;
	dim_facts(c)->ncheck = 0;
}

int dim_check_count(Context *c)
{
	return dim_facts(c)->ncheck;
}

void dim_check_get(Context *c, int i, const Dim **a, const Dim **b)
{
	const DimFacts *f = dim_facts(c);
	*a = dim_substitute(c, f->left[i]);
	*b = dim_substitute(c, f->right[i]);
}
