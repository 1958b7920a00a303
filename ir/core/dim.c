// Sizes: integer expressions over symbols, kept in a normal form.
//
// The normal form is a polynomial: a sum of terms, each a coefficient times atoms (symbols, and
// what polynomials cannot say: floor division, remainder, maximum, minimum, broadcast). Terms and
// atoms are ordered by what they are, so that equal expressions are one object whatever way they
// were built, and print alike in every context (text read back prints the same bytes).
#include "ir/base/vec.h"
#include "ir/core/intern.h"

#include <string.h>

// Enough for the number of elements of a tensor of MAX_RANK axes, each of a size of its own, and of
// three axes whose sizes are sums of three terms.
enum { MAX_ATOMS = 16, MAX_TERMS = 32 };

typedef struct Term {
	int64_t coeff;
	int natom;
	const Dim *atoms[MAX_ATOMS]; // in dim_order, repeated for powers
} Term;

typedef struct Poly {
	int n;
	bool bad; // did not fit, or overflowed
	Term terms[MAX_TERMS];
} Poly;

// What dim_unify learnt, per context: replacements of symbols, and equalities to check at run time.
typedef struct DimFacts {
	int nsub, csub, ncheck, ccheck;
	const Dim **from, **to;
	const Dim **left, **right;
	int nkept, ckept;
	const Dim **kept, **kept_too; // the same twice
	uint32_t next_id;
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

static const Dim *dim_intern(Context *c, const Dim *d)
{
	Key k;
	key_init(&k, c);
	key_int(&k, d->kind);
	key_int(&k, d->value);
	key_int(&k, d->bounded);
	key_ptr(&k, d->name);
	key_ptr(&k, d->a);
	key_ptr(&k, d->b);
	void **slot = intern_key(c, INTERN_DIM, &k);
	if (!*slot) {
		Dim *copy = NEW(c->arena, Dim);
		*copy = *d;
		copy->id = dim_facts(c)->next_id++;
		*slot = copy;
	}
	return *slot;
}

const Dim *dim_const(Context *c, int64_t v)
{
	return dim_intern(c, &(Dim){.kind = DIM_CONST, .value = v});
}

static const Dim *dim_substitute(Context *c, const Dim *d);

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
	const int before = (int)dim_facts(c)->next_id;
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
		const uint32_t before = dim_facts(c)->next_id;
		const Dim *sym = dim_intern(
			c, &(Dim){.kind = DIM_SYM, .name = context_str(c, name), .bounded = true});
		if (sym->id >= before)
			return sym;
		name = arena_printf(c->arena, "%s_%d", stem, n);
	}
}

// ---- polynomials --------------------------------------------------------------------------------

// Order of two sizes by what they are: symbols by name, others by their parts.
static int dim_order(const Dim *a, const Dim *b)
{
	if (a == b)
		return 0;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == DIM_CONST)
		return a->value < b->value ? -1 : 1;
	if (a->kind == DIM_SYM) {
		int names = strcmp(a->name, b->name);
		return names ? names : (int)a->bounded - (int)b->bounded;
	}
	int left = dim_order(a->a, b->a);
	return left ? left : dim_order(a->b, b->b);
}

// Order of two products of atoms: by degree, then by atoms. The constant term is the smallest.
static int term_order(const Term *a, const Term *b)
{
	if (a->natom != b->natom)
		return a->natom - b->natom;
	for (int i = 0; i < a->natom; i++) {
		if (a->atoms[i] != b->atoms[i])
			return dim_order(a->atoms[i], b->atoms[i]) < 0 ? 1 : -1;
	}
	return 0;
}

// Adds a term, keeping larger terms first and merging equal ones.
static void poly_add_term(Poly *p, const Term *t)
{
	int i = 0;
	while (i < p->n && term_order(&p->terms[i], t) > 0)
		i++;
	if (i < p->n && !term_order(&p->terms[i], t)) {
		p->bad |= __builtin_add_overflow(p->terms[i].coeff, t->coeff, &p->terms[i].coeff);
		if (!p->terms[i].coeff) {
			memmove(p->terms + i, p->terms + i + 1, (size_t)(p->n - i - 1) * sizeof *p->terms);
			p->n--;
		}
		return;
	}
	if (!t->coeff)
		return;
	if (p->n == MAX_TERMS) {
		p->bad = true;
		return;
	}
	memmove(p->terms + i + 1, p->terms + i, (size_t)(p->n - i) * sizeof *p->terms);
	p->terms[i] = *t;
	p->n++;
}

// r = a * b; false when it does not fit.
static bool term_mul(const Term *a, const Term *b, Term *r)
{
	if (a->natom + b->natom > MAX_ATOMS || __builtin_mul_overflow(a->coeff, b->coeff, &r->coeff))
		return false;
	r->natom = 0;
	for (int i = 0, j = 0; i < a->natom || j < b->natom;) {
		bool left = j == b->natom || (i < a->natom && dim_order(a->atoms[i], b->atoms[j]) <= 0);
		r->atoms[r->natom++] = left ? a->atoms[i++] : b->atoms[j++];
	}
	return true;
}

// r = a / b exactly; false when b does not divide a.
static bool term_div(const Term *a, const Term *b, Term *r)
{
	if (a->coeff % b->coeff)
		return false;
	r->coeff = a->coeff / b->coeff;
	r->natom = 0;
	int j = 0;
	for (int i = 0; i < a->natom; i++) {
		if (j < b->natom && a->atoms[i] == b->atoms[j])
			j++;
		else
			r->atoms[r->natom++] = a->atoms[i];
	}
	return j == b->natom;
}

static void poly_add(Poly *p, const Poly *q, int64_t factor)
{
	p->bad |= q->bad;
	for (int i = 0; i < q->n; i++) {
		Term t = q->terms[i];
		p->bad |= __builtin_mul_overflow(t.coeff, factor, &t.coeff);
		poly_add_term(p, &t);
	}
}

static void poly_mul(Poly *r, const Poly *a, const Poly *b)
{
	r->n = 0;
	r->bad = a->bad || b->bad;
	for (int i = 0; i < a->n; i++) {
		for (int j = 0; j < b->n; j++) {
			Term t;
			if (term_mul(&a->terms[i], &b->terms[j], &t))
				poly_add_term(r, &t);
			else
				r->bad = true;
		}
	}
}

static void poly_of(const Dim *d, Poly *p)
{
	p->n = 0;
	p->bad = false;
	if (d->kind == DIM_ADD || d->kind == DIM_MUL) {
		Poly a, b;
		poly_of(d->a, &a);
		poly_of(d->b, &b);
		if (d->kind == DIM_MUL) {
			poly_mul(p, &a, &b);
		} else {
			poly_add(p, &a, 1);
			poly_add(p, &b, 1);
		}
		return;
	}
	Term t = {.coeff = 1};
	if (d->kind == DIM_CONST)
		t.coeff = d->value;
	else
		t.atoms[t.natom++] = d;
	poly_add_term(p, &t);
}

static const Dim *dim_of_term(Context *c, const Term *t)
{
	if (!t->natom)
		return dim_const(c, t->coeff);
	const Dim *d = t->atoms[0];
	if (t->coeff != 1)
		d = dim_intern(c, &(Dim){.kind = DIM_MUL, .a = dim_const(c, t->coeff), .b = d});
	for (int i = 1; i < t->natom; i++)
		d = dim_intern(c, &(Dim){.kind = DIM_MUL, .a = d, .b = t->atoms[i]});
	return d;
}

static const Dim *dim_of_poly(Context *c, const Poly *p)
{
	const Dim *d = NULL;
	for (int i = 0; i < p->n; i++) {
		const Dim *t = dim_of_term(c, &p->terms[i]);
		d = d ? dim_intern(c, &(Dim){.kind = DIM_ADD, .a = d, .b = t}) : t;
	}
	return d ? d : dim_const(c, 0);
}

// A size that overflows 64 bits is the largest one: whoever needs bytes for it refuses it.
static const Dim *dim_too_big(Context *c)
{
	return dim_const(c, INT64_MAX);
}

// ---- arithmetic ---------------------------------------------------------------------------------

static const Dim *dim_sum(Context *c, const Dim *a, const Dim *b, int64_t factor)
{
	Poly p, q;
	poly_of(a, &p);
	poly_of(b, &q);
	poly_add(&p, &q, factor);
	return p.bad ? dim_too_big(c) : dim_of_poly(c, &p);
}

const Dim *dim_add(Context *c, const Dim *a, const Dim *b)
{
	return dim_sum(c, a, b, 1);
}

const Dim *dim_sub(Context *c, const Dim *a, const Dim *b)
{
	return dim_sum(c, a, b, -1);
}

const Dim *dim_mul(Context *c, const Dim *a, const Dim *b)
{
	Poly p, q, r;
	poly_of(a, &p);
	poly_of(b, &q);
	poly_mul(&r, &p, &q);
	return r.bad ? dim_too_big(c) : dim_of_poly(c, &r);
}

const Dim *dims_product(Context *c, int n, const Dim *const *dims)
{
	const Dim *all = dim_const(c, 1);
	for (int i = 0; i < n; i++)
		all = dim_mul(c, all, dims[i]);
	return all;
}

// quotient = a / b when b divides a as a polynomial.
static bool poly_exact_div(const Poly *a, const Poly *b, Poly *quotient)
{
	Poly rest = *a;
	quotient->n = 0;
	quotient->bad = false;
	for (int step = 0; rest.n && step < MAX_TERMS; step++) {
		Term q;
		if (!term_div(&rest.terms[0], &b->terms[0], &q))
			return false;
		poly_add_term(quotient, &q);
		for (int i = 0; i < b->n; i++) {
			Term t;
			if (!term_mul(&q, &b->terms[i], &t))
				return false;
			rest.bad |= __builtin_sub_overflow(0, t.coeff, &t.coeff);
			poly_add_term(&rest, &t);
		}
		if (rest.bad)
			return false;
	}
	return !rest.n;
}

// Splits p into what the constant v > 0 divides (already divided) and the rest, whose constant term
// is brought into [0, v).
static void poly_split(const Poly *p, int64_t v, Poly *whole, Poly *rest)
{
	whole->n = rest->n = 0;
	whole->bad = rest->bad = false;
	for (int i = 0; i < p->n; i++) {
		Term t = p->terms[i], q = t;
		q.coeff = t.natom ? (t.coeff % v ? 0 : t.coeff / v) : int_floor_div(t.coeff, v);
		t.coeff -= q.coeff * v;
		poly_add_term(whole, &q);
		poly_add_term(rest, &t);
	}
}

static const Dim *div_by_const(Context *c, const Poly *p, int64_t v)
{
	Poly whole, rest;
	poly_split(p, v, &whole, &rest);
	if (rest.n && rest.terms[0].natom) {
		const Dim *num = dim_of_poly(c, &rest), *den = dim_const(c, v);
		int64_t product;
		// (x / a) / b is x / (a b) for positive constants.
		if (num->kind == DIM_DIV && dim_is_const(num->b) && num->b->value > 0 &&
		    !__builtin_mul_overflow(num->b->value, v, &product))
			return dim_add(c, dim_of_poly(c, &whole), dim_div(c, num->a, dim_const(c, product)));
		Term t = {.coeff = 1, .natom = 1};
		t.atoms[0] = dim_intern(c, &(Dim){.kind = DIM_DIV, .a = num, .b = den});
		poly_add_term(&whole, &t);
	}
	return whole.bad ? dim_too_big(c) : dim_of_poly(c, &whole);
}

static const Dim *mod_by_const(Context *c, const Poly *p, const Dim *b)
{
	Poly whole, rest;
	poly_split(p, b->value, &whole, &rest);
	const Dim *num = dim_of_poly(c, &rest);
	return dim_is_const(num) ? num : dim_intern(c, &(Dim){.kind = DIM_MOD, .a = num, .b = b});
}

// DIM_DIV or DIM_MOD.
static const Dim *division(Context *c, DimKind kind, const Dim *a, const Dim *b)
{
	Poly p, q, r;
	poly_of(a, &p);
	poly_of(b, &q);
	if (p.bad || q.bad || dim_is(b, 0))
		return dim_too_big(c);
	if (poly_exact_div(&p, &q, &r))
		return kind == DIM_DIV ? dim_of_poly(c, &r) : dim_const(c, 0);
	if (kind == DIM_DIV && dim_is_const(a) && dim_is_const(b))
		return dim_const(c, int_floor_div(a->value, b->value));
	if (dim_is_const(b) && b->value > 0)
		return kind == DIM_DIV ? div_by_const(c, &p, b->value) : mod_by_const(c, &p, b);
	return dim_intern(c, &(Dim){.kind = kind, .a = a, .b = b});
}

const Dim *dim_div(Context *c, const Dim *a, const Dim *b)
{
	return division(c, DIM_DIV, a, b);
}

const Dim *dim_mod(Context *c, const Dim *a, const Dim *b)
{
	return division(c, DIM_MOD, a, b);
}

static const Dim *dim_extreme(Context *c, DimKind kind, const Dim *a, const Dim *b)
{
	int64_t lo, hi;
	if (a == b)
		return a;
	const Dim *difference = dim_sub(c, a, b);
	dim_range(difference, &lo, &hi);
	if (lo >= 0 || hi <= 0) {
		int64_t empty_lo, empty_hi;
		dim_range_empty(difference, &empty_lo, &empty_hi);
		if (lo >= 0 ? empty_lo < 0 : empty_hi > 0)
			dim_rely(c, difference);
		return (lo >= 0) == (kind == DIM_MAX) ? a : b;
	}
	bool swap = dim_order(a, b) > 0;
	return dim_intern(c, &(Dim){.kind = kind, .a = swap ? b : a, .b = swap ? a : b});
}

const Dim *dim_max(Context *c, const Dim *a, const Dim *b)
{
	return dim_extreme(c, DIM_MAX, a, b);
}

const Dim *dim_min(Context *c, const Dim *a, const Dim *b)
{
	return dim_extreme(c, DIM_MIN, a, b);
}

// The sizes that d is a broadcast of, into list in order, each once; how many there are now.
static int broadcast_parts(const Dim *d, const Dim **list, int n, int max)
{
	if (d->kind == DIM_BROADCAST)
		return broadcast_parts(d->b, list, broadcast_parts(d->a, list, n, max), max);
	int at = 0;
	while (at < n && dim_order(list[at], d) < 0)
		at++;
	if (dim_is(d, 1) || n == max || (at < n && list[at] == d))
		return n;
	memmove(list + at + 1, list + at, (size_t)(n - at) * sizeof *list);
	list[at] = d;
	return n + 1;
}

const Dim *dim_broadcast(Context *c, const Dim *a, const Dim *b)
{
	enum { MAX_PARTS = 64 };
	const Dim *list[MAX_PARTS], *d = NULL;
	int n = broadcast_parts(b, list, broadcast_parts(a, list, 0, MAX_PARTS), MAX_PARTS);
	if (!n)
		return dim_const(c, 1);
	// What is known, and not 1, is what all others are, or are stretched to.
	for (int i = 0; i < n; i++)
		if (dim_is_const(list[i]))
			return list[i];
	for (int i = 0; i < n; i++)
		d = d ? dim_intern(c, &(Dim){.kind = DIM_BROADCAST, .a = d, .b = list[i]}) : list[i];
	return d;
}

const Dim *dim_like(Context *c, const Dim *d, const Dim *a, const Dim *b)
{
	switch (d->kind) {
	case DIM_ADD: return dim_add(c, a, b);
	case DIM_MUL: return dim_mul(c, a, b);
	case DIM_DIV: return dim_div(c, a, b);
	case DIM_MOD: return dim_mod(c, a, b);
	case DIM_MAX: return dim_max(c, a, b);
	case DIM_BROADCAST: return dim_broadcast(c, a, b);
	default: return dim_min(c, a, b);
	}
}

// ---- equalities ---------------------------------------------------------------------------------

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
