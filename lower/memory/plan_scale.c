// Rounds symbolic sizes up so that they compare: a model of images halves its sizes again and
// again, and
// `(?h + 1) / 2` and `((?h + 1) / 2 + 1) / 2` have no ratio. But `?h <= 4 * (((?h + 1) / 2 + 1) /
// 2)` always holds, with equality where 4 divides ?h. Saying every factor of every size by the
// smallest one of its kind makes sizes multiples of each other, which pack like constants; nothing
// is lost for the image sizes that models are made for. Called by plan_symbolic.c.
#include "lower/memory/plan.h"

enum { MAX_ATOMS = 64 };

// A factor of sizes, and what it is said by: atom <= ratio * by.
typedef struct Atom {
	const Dim *dim, *by;
	int64_t ratio;
} Atom;

typedef struct Atoms {
	int n;
	Atom list[MAX_ATOMS];
} Atoms;

static void atoms_add(Atoms *atoms, const Dim *d)
{
	if (d->kind == DIM_ADD || d->kind == DIM_MUL) {
		atoms_add(atoms, d->a);
		atoms_add(atoms, d->b);
		return;
	}
	if (d->kind == DIM_CONST || atoms->n == MAX_ATOMS)
		return;
	for (int i = 0; i < atoms->n; i++)
		if (atoms->list[i].dim == d)
			return;
	atoms->list[atoms->n++] = (Atom){d, d, 1};
}

static int64_t sample_symbol(const Dim *sym, void *arg)
{
	(void)sym;
	return *(int64_t *)arg;
}

// a / b at sizes that many powers of two divide; 0 when it is not one whole number.
static int64_t sample_ratio(const Dim *a, const Dim *b)
{
	int64_t ratio = 0;
	for (int64_t symbol = 640; symbol <= 1920; symbol *= 3) {
		int64_t x, y;
		if (!dim_eval(a, sample_symbol, &symbol, &x) || !dim_eval(b, sample_symbol, &symbol, &y) ||
		    y < 1 || x % y || (ratio && x / y != ratio))
			return 0;
		ratio = x / y;
	}
	return ratio;
}

// Says each atom by the smallest one that has a fixed ratio to it.
static void atoms_relate(Context *c, Atoms *atoms)
{
	for (int i = 0; i < atoms->n; i++) {
		Atom *a = &atoms->list[i];
		for (int j = 0; j < atoms->n; j++) {
			const Dim *b = atoms->list[j].dim;
			int64_t ratio = sample_ratio(a->dim, b);
			if (ratio > a->ratio && dim_at_least(c, dim_mul(c, dim_const(c, ratio), b), a->dim)) {
				a->by = b;
				a->ratio = ratio;
			}
		}
	}
}

// A size that is at least `d`; terms that are subtracted are dropped.
static const Dim *dim_restate(Context *c, const Atoms *atoms, const Dim *d)
{
	if (d->kind == DIM_ADD)
		return dim_add(c, dim_restate(c, atoms, d->a), dim_restate(c, atoms, d->b));
	if (d->kind == DIM_MUL) {
		const Dim *a = dim_restate(c, atoms, d->a), *b = dim_restate(c, atoms, d->b);
		return dim_mul(c, a, b);
	}
	if (d->kind == DIM_CONST)
		return d->value < 0 ? dim_const(c, 0) : d;
	for (int i = 0; i < atoms->n; i++)
		if (atoms->list[i].dim == d)
			return dim_mul(c, dim_const(c, atoms->list[i].ratio), atoms->list[i].by);
	return d;
}

void sizes_restate(Context *c, int n, SizedItem *items)
{
	Atoms atoms = {.n = 0};
	for (int i = 0; i < n; i++)
		atoms_add(&atoms, items[i].size);
	atoms_relate(c, &atoms);
	for (int i = 0; i < n; i++)
		items[i].size = dim_restate(c, &atoms, items[i].size);
}
