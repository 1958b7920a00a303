// Proves that one size is at least another, whatever the symbols are (every symbol is at least 1).
// Used by the memory plan to drop what cannot be the maximum. A proof that is not found only costs
// memory.
//
// a >= b is read as: the terms of a - b with positive coefficients cover those with negative ones.
// A product covers another when each factor of the other is matched by a factor that is no smaller;
// factors are compared by what they are made of (x / k >= y when x >= k * y, and so on).
#include "lower/analysis/analysis.h"

enum { MAX_DEPTH = 12, MAX_TERMS = 32, MAX_FACTORS = 16, MAX_STEPS = 400 };

// One proof: how many steps it may still take.
typedef struct Proof {
	Context *c;
	int steps;
} Proof;

typedef struct Product {
	int64_t k;
	int n;
	const Dim *factors[MAX_FACTORS];
} Product;

typedef struct Sum {
	int n;
	bool overflow;
	Product terms[MAX_TERMS];
} Sum;

static void product_add_factors(Product *p, const Dim *d, bool *overflow)
{
	if (d->kind == DIM_MUL) {
		product_add_factors(p, d->a, overflow);
		product_add_factors(p, d->b, overflow);
	} else if (d->kind == DIM_CONST) {
		*overflow |= __builtin_mul_overflow(p->k, d->value, &p->k);
	} else if (p->n < MAX_FACTORS) {
		p->factors[p->n++] = d;
	} else {
		*overflow = true;
	}
}

static void sum_add(Sum *s, const Dim *d)
{
	if (d->kind == DIM_ADD) {
		sum_add(s, d->a);
		sum_add(s, d->b);
	} else if (s->n < MAX_TERMS) {
		Product *p = &s->terms[s->n++];
		*p = (Product){.k = 1};
		product_add_factors(p, d, &s->overflow);
	} else {
		s->overflow = true;
	}
}

static bool at_least(Proof *p, const Dim *a, const Dim *b, int depth);

static const Dim *times(Context *c, int64_t k, const Dim *d)
{
	return dim_mul(c, dim_const(c, k), d);
}

static bool positive_const(const Dim *d)
{
	return dim_is_const(d) && d->value > 0;
}

// floor(x / k) >= b when x >= k b.
static bool quotient_at_least(Proof *p, const Dim *a, const Dim *b, int depth)
{
	return positive_const(a->b) && at_least(p, a->a, times(p->c, a->b->value, b), depth);
}

// a >= floor(x / k) when k a + k - 1 >= x.
static bool at_least_quotient(Proof *p, const Dim *a, const Dim *b, int depth)
{
	if (!positive_const(b->b))
		return false;
	const int64_t k = b->b->value;
	const Dim *most = dim_add(p->c, times(p->c, k, a), dim_const(p->c, k - 1));
	return at_least(p, most, b->a, depth);
}

// a >= b by what b is made of: both, where it is the larger or either of two, else one of them.
static bool at_least_parts(Proof *p, const Dim *a, const Dim *b, int depth)
{
	const bool both = b->kind == DIM_MAX || b->kind == DIM_BROADCAST;
	if (!both && b->kind != DIM_MIN)
		return false;
	const bool first = at_least(p, a, b->a, depth);
	return first == both ? at_least(p, a, b->b, depth) : first;
}

// Likewise by what a is made of.
static bool parts_at_least(Proof *p, const Dim *a, const Dim *b, int depth)
{
	const bool both = a->kind == DIM_MIN || a->kind == DIM_BROADCAST;
	if (!both && a->kind != DIM_MAX)
		return false;
	const bool first = at_least(p, a->a, b, depth);
	return first == both ? at_least(p, a->b, b, depth) : first;
}

// a >= b for factors of a product.
static bool atom_at_least(Proof *p, const Dim *a, const Dim *b, int depth)
{
	if (at_least_parts(p, a, b, depth) || parts_at_least(p, a, b, depth))
		return true;
	if (a->kind == DIM_DIV && quotient_at_least(p, a, b, depth))
		return true;
	return b->kind == DIM_DIV && at_least_quotient(p, a, b, depth);
}

static bool at_least_one(const Dim *d)
{
	int64_t lo, hi;
	dim_range(d, &lo, &hi);
	return lo >= 1;
}

// Whether the product of a's factors is at least that of b's.
static bool factors_cover(Proof *p, const Product *a, const Product *b, int depth)
{
	bool used[MAX_FACTORS] = {false};
	for (int j = 0; j < b->n; j++) {
		int match = -1;
		for (int i = 0; i < a->n && match < 0; i++) // equal ones first
			if (!used[i] && a->factors[i] == b->factors[j])
				match = i;
		for (int i = 0; i < a->n && match < 0; i++)
			if (!used[i] && atom_at_least(p, a->factors[i], b->factors[j], depth))
				match = i;
		if (match < 0)
			return false;
		used[match] = true;
	}
	for (int i = 0; i < a->n; i++)
		if (!used[i] && !at_least_one(a->factors[i]))
			return false;
	return true;
}

static bool factors_nonnegative(const Product *x)
{
	for (int i = 0; i < x->n; i++) {
		int64_t lo, hi;
		dim_range(x->factors[i], &lo, &hi);
		if (lo < 0)
			return false;
	}
	return true;
}

// Whether the positive terms cover the negative ones; a positive term's coefficient is used up.
static bool terms_cover(Proof *p, Sum *s, int depth)
{
	for (int j = 0; j < s->n; j++)
		if (!factors_nonnegative(&s->terms[j]))
			return false;
	for (int j = 0; j < s->n; j++) {
		Product *minus = &s->terms[j];
		for (int i = 0; i < s->n && minus->k < 0; i++) {
			Product *plus = &s->terms[i];
			if (plus->k <= 0 || !factors_cover(p, plus, minus, depth))
				continue;
			int64_t share = plus->k < -minus->k ? plus->k : -minus->k;
			plus->k -= share;
			minus->k += share;
		}
		if (minus->k < 0)
			return false;
	}
	return true;
}

// A term that is a multiple of one maximum; NULL: none.
static const Product *maximum_term(const Sum *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->terms[i].n == 1 && s->terms[i].factors[0]->kind == DIM_MAX)
			return &s->terms[i];
	return NULL;
}

static bool nonnegative(Proof *p, const Dim *d, int depth);

// d with the maximum in `term` replaced by each of what it is made of: one must do where the
// maximum counts for us, both where it counts against us.
static bool maximum_split(Proof *p, const Dim *d, const Product *term, int depth)
{
	const Dim *max = term->factors[0], *rest = dim_sub(p->c, d, times(p->c, term->k, max));
	bool left = nonnegative(p, dim_add(p->c, rest, times(p->c, term->k, max->a)), depth);
	if (left == (term->k > 0))
		return left;
	return nonnegative(p, dim_add(p->c, rest, times(p->c, term->k, max->b)), depth);
}

// d with the outermost quotient that stands alone replaced by what it is at least, or where it is
// subtracted at most: floor(x / k) is between (x - k + 1) / k and x / k. Outermost is the youngest:
// it contains the others.
static bool quotient_split(Proof *p, const Dim *d, const Sum *s, int depth)
{
	const Product *t = NULL;
	for (int i = 0; i < s->n; i++) {
		const Dim *q = s->terms[i].n == 1 ? s->terms[i].factors[0] : NULL;
		if (q && q->kind == DIM_DIV && positive_const(q->b) && (!t || q->id > t->factors[0]->id))
			t = &s->terms[i];
	}
	if (!t)
		return false;
	const Dim *q = t->factors[0], *slack = dim_const(p->c, q->b->value - 1);
	const Dim *x = t->k < 0 ? q->a : dim_sub(p->c, q->a, slack);
	const Dim *rest = times(p->c, q->b->value, dim_sub(p->c, d, times(p->c, t->k, q)));
	return nonnegative(p, dim_add(p->c, rest, times(p->c, t->k, x)), depth);
}

// No products: then quotients alone decide, one after the other.
static bool sum_is_linear(const Sum *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->terms[i].n > 1)
			return false;
	return true;
}

static bool nonnegative(Proof *p, const Dim *d, int depth)
{
	int64_t lo, hi;
	dim_range(d, &lo, &hi);
	if (lo >= 0 || hi < 0 || depth == 0 || --p->steps < 0)
		return lo >= 0;
	Sum s = {.n = 0};
	sum_add(&s, d);
	if (s.overflow)
		return false;
	const Product *max = maximum_term(&s);
	if (max)
		return maximum_split(p, d, max, depth - 1);
	if (sum_is_linear(&s) && quotient_split(p, d, &s, depth - 1))
		return true;
	return terms_cover(p, &s, depth - 1);
}

static bool at_least(Proof *p, const Dim *a, const Dim *b, int depth)
{
	return a == b || nonnegative(p, dim_sub(p->c, a, b), depth);
}

bool dim_at_least(Context *c, const Dim *a, const Dim *b)
{
	static const bool no = false, yes = true; // plans ask the same again and again
	void **found = context_found(c, &yes, a, b);
	if (!*found) {
		Proof p = {c, MAX_STEPS};
		*found = (void *)(at_least(&p, a, b, MAX_DEPTH) ? &yes : &no);
	}
	return *(const bool *)*found;
}

bool dim_within(const Dim *d, const Dim *most)
{
	if (d == most)
		return true;
	if (most->kind == DIM_MAX)
		return dim_within(d, most->a) || dim_within(d, most->b);
	return dim_is_const(d) && dim_is_const(most) && d->value <= most->value;
}
