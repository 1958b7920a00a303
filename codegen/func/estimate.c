// The most that a size can come to, in floating point, where nothing overflows: a sum of products
// of symbols, in which a maximum has the larger factor of each product, and everything counts with
// its absolute value. What it bounds can be computed in 64 bits. Called by sizes.c and the printers
// of plans.
#include "codegen/func/func.h"
#include "ir/base/vec.h"

#include <math.h>
#include <string.h>

// A product: a factor and the power of each symbol.
typedef struct Term {
	double factor;
	unsigned char *powers;
	int degree;
} Term;

typedef struct Sum {
	Term *terms; // by degree, then by powers
	int n;
} Sum;

typedef struct Estimate {
	Codegen *cg;
	PointerMap leaves; // symbol -> its number
	int nleaf, cleaf;
	const Dim **leaf;
	PointerMap sums; // Dim -> its Sum
	Sum inner;       // of what divisions divide, which may be more than what comes of it
} Estimate;

typedef enum Join { JOIN_ADD, JOIN_MAX } Join;

static void leaves_find(Estimate *e, PointerMap *seen, const Dim *d)
{
	if (d->kind == DIM_CONST || pointer_map_has(seen, d))
		return;
	pointer_map_set(seen, d, d);
	if (d->kind != DIM_SYM) {
		leaves_find(e, seen, d->a);
		leaves_find(e, seen, d->b);
		return;
	}
	VEC_ROOM(e->cg->arena, e->leaf, e->nleaf, e->cleaf);
	pointer_map_set_index(&e->leaves, d, e->nleaf);
	e->leaf[e->nleaf++] = d;
}

static int term_compare(const Estimate *e, const Term *x, const Term *y)
{
	if (x->degree != y->degree)
		return x->degree - y->degree;
	return -memcmp(x->powers, y->powers, (size_t)e->nleaf);
}

static Term term_make(Estimate *e, double factor)
{
	return (Term){factor, NEW_ARRAY(e->cg->arena, (size_t)e->nleaf + 1, unsigned char), 0};
}

static Sum sum_of(Estimate *e, Term t)
{
	Sum s = {NEW(e->cg->arena, Term), t.factor > 0};
	*s.terms = t;
	return s;
}

static Sum sums_join(Estimate *e, Sum a, Sum b, Join how)
{
	Sum s = {NEW_ARRAY(e->cg->arena, (size_t)(a.n + b.n) + 1, Term), 0};
	for (int i = 0, j = 0; i < a.n || j < b.n;) {
		const int c = i == a.n ? 1 : j == b.n ? -1 : term_compare(e, &a.terms[i], &b.terms[j]);
		Term *t = &s.terms[s.n++];
		*t = c <= 0 ? a.terms[i] : b.terms[j];
		if (c == 0 && how == JOIN_ADD)
			t->factor += b.terms[j].factor;
		else if (c == 0)
			t->factor = fmax(t->factor, b.terms[j].factor);
		i += c <= 0;
		j += c >= 0;
	}
	return s;
}

static Sum sums_multiply(Estimate *e, Sum a, Sum b)
{
	Sum s = {NULL, 0};
	for (int i = 0; i < a.n; i++)
		for (int j = 0; j < b.n; j++) {
			Term t = term_make(e, a.terms[i].factor * b.terms[j].factor);
			for (int k = 0; k < e->nleaf; k++)
				t.powers[k] = (unsigned char)(a.terms[i].powers[k] + b.terms[j].powers[k]);
			t.degree = a.terms[i].degree + b.terms[j].degree;
			s = sums_join(e, s, sum_of(e, t), JOIN_ADD);
		}
	return s;
}

static Sum sum_scaled(Estimate *e, Sum a, double by)
{
	return sums_multiply(e, a, sum_of(e, term_make(e, by)));
}

static Sum sum_find(Estimate *e, const Dim *d);

static Sum binary_find(Estimate *e, const Dim *d)
{
	const Sum a = sum_find(e, d->a), b = sum_find(e, d->b);
	switch (d->kind) {
	case DIM_ADD: return sums_join(e, a, b, JOIN_ADD);
	case DIM_MUL: return sums_multiply(e, a, b);
	case DIM_MAX:
	case DIM_BROADCAST: return sums_join(e, a, b, JOIN_MAX);
	case DIM_MIN: return b.n < a.n ? b : a;
	case DIM_DIV:
		e->inner = sums_join(e, e->inner, a, JOIN_MAX);
		return dim_is_const(d->b) ? sum_scaled(e, a, 1.0 / fabs((double)d->b->value)) : a;
	default: return b;
	}
}

static Sum sum_find(Estimate *e, const Dim *d)
{
	const Sum *known = pointer_map_get(&e->sums, d);
	if (known)
		return *known;
	Sum *s = NEW(e->cg->arena, Sum);
	if (d->kind == DIM_CONST) {
		*s = sum_of(e, term_make(e, fabs((double)d->value)));
	} else if (d->kind == DIM_SYM) {
		Term t = term_make(e, 1);
		t.powers[pointer_map_index(&e->leaves, d)] = 1;
		t.degree = 1;
		*s = sum_of(e, t);
	} else {
		*s = binary_find(e, d);
	}
	pointer_map_set(&e->sums, d, s);
	return *s;
}

const char *size_estimate(SizeLocals *l, const Dim *d)
{
	Estimate e = {.cg = l->cg};
	PointerMap seen;
	Text t;
	text_init(&t, l->cg->arena);
	pointer_map_init(&seen, l->cg->arena);
	pointer_map_init(&e.leaves, l->cg->arena);
	pointer_map_init(&e.sums, l->cg->arena);
	leaves_find(&e, &seen, d);
	const Sum whole = sum_find(&e, d), most = sums_join(&e, whole, e.inner, JOIN_MAX);
	for (int i = 0; i < most.n; i++) {
		const Term *term = &most.terms[i];
		const double factor = ceil(term->factor);
		const char *by = i ? " + " : "";
		if (factor > 1 || !term->degree) {
			text_printf(&t, "%s%.0f.0", by, factor);
			by = " * ";
		}
		for (int k = 0; k < e.nleaf; k++)
			for (int p = 0; p < term->powers[k]; p++, by = " * ")
				text_printf(&t, "%s(double)%s", by, dim_in_locals(l, e.leaf[k]));
	}
	return t.len ? t.text : "0.0";
}
