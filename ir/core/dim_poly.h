// What the files that make sizes share: dim.c, dim_equal.c and dim_poly.c. Private to ir/core.
#ifndef PDCC_IR_CORE_DIM_POLY_H
#define PDCC_IR_CORE_DIM_POLY_H

#include "ir/core/core.h"

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

// dim_poly.c
// Order of two sizes by what they are: symbols by name, others by their parts.
int dim_order(const Dim *a, const Dim *b);
bool term_mul(const Term *a, const Term *b, Term *r); // r = a * b; false: it does not fit
bool term_div(const Term *a, const Term *b, Term *r); // exactly; false: b does not divide a
void poly_of(const Dim *d, Poly *p);
// Adds a term, keeping larger terms first and merging equal ones.
void poly_add_term(Poly *p, const Term *t);
void poly_add(Poly *p, const Poly *q, int64_t factor);
void poly_mul(Poly *r, const Poly *a, const Poly *b);
// quotient = a / b when b divides a as a polynomial.
bool poly_exact_div(const Poly *a, const Poly *b, Poly *quotient);
// Splits p into what the constant v > 0 divides (already divided) and the rest, whose constant term
// is brought into [0, v).
void poly_split(const Poly *p, int64_t v, Poly *whole, Poly *rest);

// dim.c
const Dim *dim_intern(Context *c, const Dim *d); // the one that is as d
uint32_t *dim_next_id(Context *c);               // of the next one that is new
const Dim *dim_of_poly(Context *c, const Poly *p);

#endif
