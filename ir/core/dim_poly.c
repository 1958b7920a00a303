// Polynomials over sizes: the normal form as numbers and products, without a Context. Called by
// dim.c and dim_equal.c.
#include "ir/core/dim_poly.h"

#include <string.h>

int dim_order(const Dim *a, const Dim *b)
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

void poly_add_term(Poly *p, const Term *t)
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

bool term_mul(const Term *a, const Term *b, Term *r)
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

bool term_div(const Term *a, const Term *b, Term *r)
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

void poly_add(Poly *p, const Poly *q, int64_t factor)
{
	p->bad |= q->bad;
	for (int i = 0; i < q->n; i++) {
		Term t = q->terms[i];
		p->bad |= __builtin_mul_overflow(t.coeff, factor, &t.coeff);
		poly_add_term(p, &t);
	}
}

void poly_mul(Poly *r, const Poly *a, const Poly *b)
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

void poly_of(const Dim *d, Poly *p)
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

bool poly_exact_div(const Poly *a, const Poly *b, Poly *quotient)
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

void poly_split(const Poly *p, int64_t v, Poly *whole, Poly *rest)
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
