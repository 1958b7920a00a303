// Sizes: integer expressions over symbols, kept in a normal form.
//
// The normal form is a polynomial: a sum of terms, each a coefficient times atoms (symbols, and
// what polynomials cannot say: floor division, remainder, maximum, minimum, broadcast). Terms and
// atoms are ordered by what they are, so that equal expressions are one object whatever way they
// were built, and print alike in every context (text read back prints the same bytes).
//
// Symbols are in dim_equal.c, polynomials as such in dim_poly.c.
#include "ir/core/dim_poly.h"
#include "ir/core/intern.h"

#include <string.h>

uint32_t *dim_next_id(Context *c)
{
	void **slot = intern_slot(c, INTERN_DIM, "next", 4);
	if (!*slot)
		*slot = NEW(c->arena, uint32_t);
	return *slot;
}

const Dim *dim_intern(Context *c, const Dim *d)
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
		copy->id = (*dim_next_id(c))++;
		*slot = copy;
	}
	return *slot;
}

const Dim *dim_const(Context *c, int64_t v)
{
	return dim_intern(c, &(Dim){.kind = DIM_CONST, .value = v});
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

const Dim *dim_of_poly(Context *c, const Poly *p)
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
