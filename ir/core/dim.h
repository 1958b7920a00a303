// Sizes, known or symbolic: made in dim.c and dim_equal.c, read in dim_range.c; how large those may
// become that a run finds (dim_bound.c), and what a module says of it (size_facts.c).
#ifndef PDCC_IR_CORE_DIM_H
#define PDCC_IR_CORE_DIM_H

#include "ir/core/context.h"

// A size. Either a constant, a symbol (`?n`), or an integer expression over symbols in a normal
// form: equal expressions are equal pointers as far as polynomial algebra tells.
typedef enum DimKind {
	DIM_CONST,
	DIM_SYM,
	DIM_ADD,
	DIM_MUL,
	DIM_DIV,
	DIM_MOD,
	DIM_MAX,
	DIM_MIN,
	DIM_BROADCAST
} DimKind;

struct Dim {
	DimKind kind;
	int64_t value;    // DIM_CONST
	const char *name; // DIM_SYM, without the question mark
	const Dim *a, *b; // the others; DIV and MOD round towards minus infinity
	bool
		bounded; // DIM_SYM: found only at run time (range, nonzero ...), so it has a declared bound
	uint32_t id; // order of creation: dim_unify solves for the youngest symbol
};

const Dim *dim_const(Context *c, int64_t v);
const Dim *dim_sym(Context *c, const char *name);
// A symbol whose value an operation finds at run time; its bound is a member of the dims struct.
const Dim *dim_sym_bounded(Context *c, const char *name);
// As dim_sym_bounded, for a size that `loc` (NULL: none) finds. `full` names it alone, in this
// program; `brief` is what people should see, which no unrelated change moves: it becomes the name
// when no other size has it. `mine`: whether the symbol `brief`, when it is there and nobody has
// asked for it (it was read as text), is this one.
const Dim *dim_sym_found(Context *c, const char *brief, const char *full,
                         bool (*mine)(const Dim *sym, const void *arg), const void *arg);
// One that no size has had before: `stem`, or that with a number behind it.
const Dim *dim_sym_new(Context *c, const char *stem);
const Dim *dim_add(Context *c, const Dim *a, const Dim *b);
const Dim *dim_sub(Context *c, const Dim *a, const Dim *b);
const Dim *dim_mul(Context *c, const Dim *a, const Dim *b);
const Dim *dim_div(Context *c, const Dim *a, const Dim *b); // floor; b must not be the constant 0
const Dim *dim_mod(Context *c, const Dim *a, const Dim *b);
const Dim *dim_max(Context *c, const Dim *a, const Dim *b);
const Dim *dim_min(Context *c, const Dim *a, const Dim *b);
// 1 when n is 0.
const Dim *dims_product(Context *c, int n, const Dim *const *dims);
// What two sizes broadcast to: the other one where one is 1, else both. Whoever builds it sees to
// it that a run checks that nothing else meets (pd.expand does).
const Dim *dim_broadcast(Context *c, const Dim *a, const Dim *b);
// What d, which is neither a constant nor a symbol, is of a and b in place of its own two parts.
const Dim *dim_like(Context *c, const Dim *d, const Dim *a, const Dim *b);
// a / b rounded down; b is not 0, and the quotient fits.
static inline int64_t int_floor_div(int64_t a, int64_t b)
{
	int64_t q = a / b;
	return a % b && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline bool dim_is_const(const Dim *d)
{
	return d->kind == DIM_CONST;
}
// Sizes that differ as symbols are left to the run, to find them equal.
static inline bool dims_may_equal(const Dim *a, const Dim *b)
{
	return a == b || !dim_is_const(a) || !dim_is_const(b);
}
static inline bool dim_is(const Dim *d, int64_t v)
{
	return d->kind == DIM_CONST && d->value == v;
}
// Declares two sizes equal (they met in one operation). One must be a symbol that the other does
// not contain; later look-ups of that symbol give the other. Returns true when something new was
// learnt: the translator then starts over, so that no type keeps the old symbol.
bool dim_unify(Context *c, const Dim *a, const Dim *b);
// Says that a run must find two sizes equal before the operation of inference, and declares
// nothing.
void dim_check(Context *c, const Dim *a, const Dim *b);
// Counts what dim_unify has learnt; the translator starts over when it grew, calling dim_restart
// first.
int dim_generation(Context *c);
void dim_restart(Context *c);
// A symbol that control flow gives another value again and again: never replaced by what it once
// met.
void dim_keep(Context *c, const Dim *sym);
// Whether dim_unify learns: it only checks once a program has been translated. True at first; gives
// what held before.
bool dim_set_learning(Context *c, bool on);
// Forgets all equalities: what they were learnt from was not so.
void dim_forget(Context *c);
// Equalities that could not be solved for a symbol: checked when the program runs.
int dim_check_count(Context *c);
void dim_check_get(Context *c, int i, const Dim **a, const Dim **b);
// The value under `value_of(symbol, arg)`; false on overflow or division by zero.
bool dim_eval(const Dim *d, int64_t (*value_of)(const Dim *sym, void *arg), void *arg,
              int64_t *out);
// `3`, `?n`, `[?h / 2 + 1]`.
void dim_print(Text *t, const Dim *d);
const char *dim_text(Context *c, const Dim *d);
// Smallest and largest value known when every symbol is at least 1 (INT64_MAX: no bound); or at
// least 0.
void dim_range(const Dim *d, int64_t *lo, int64_t *hi);
void dim_range_empty(const Dim *d, int64_t *lo, int64_t *hi);

// dim_together.c: sizes that are equal in all rounds of a loop

typedef struct LoopSize {
	const Dim *sym;   // that stands for it in a round
	const Dim *first; // what it is before the loop
	const Dim *next;  // and after a round, over the symbols of this one
	int same;         // out: the first of those that always are equal; itself, if there is none
} LoopSize;

void dims_together(Context *c, int n, LoopSize *sizes);

// dim_bound.c: how large sizes that a run finds may become

// What a symbol `?!n` is at most, before the run: over symbols that the caller gives, and found
// ones whose bounds the caller states. NULL: not known. Setting replaces what was known; NULL
// forgets it.
const Dim *dim_bound(Context *c, const Dim *sym);
void dim_set_bound(Context *c, const Dim *sym, const Dim *bound);
// All of them, in order; a bound that was forgotten is NULL.
int dim_bound_count(Context *c);
const Dim *dim_bound_get(Context *c, int i, const Dim **sym);
// A feed may have no elements: a symbol that the caller gives is 0 then. Whoever takes it for at
// least 1 says so; the program then refuses 0.
void dim_rely(Context *c, const Dim *d);
bool dim_may_be_empty(Context *c, const Dim *sym);
// All symbols are relied on but those.
void dim_rely_on_others(Context *c, int n, const Dim *const *may_be_empty);
// The most that d may become, whatever a run finds; `?!n` in it stands for the bound that the
// caller states.
const Dim *dim_at_most(Context *c, const Dim *d);
// The most that their product may become.
const Dim *dims_at_most(Context *c, int n, const Dim *const *dims);
// Factors of whose product that of dims is at most: these themselves, or fewer, where one of them
// is what others are left of a number of elements. 0 <= n <= MAX_RANK.
typedef struct DimFactors {
	int n;
	const Dim *at[32];
} DimFactors;
DimFactors dims_factors(Context *c, int n, const Dim *const *dims);
bool dim_mentions(const Dim *d, const Dim *sym);
// Whether a symbol that a run finds stands in the size.
bool dim_is_found(const Dim *d);

// size_facts.c: of types and modules

bool type_is_found(const Type *t);
// Whether a symbol stands in the sizes of a tensor, of an array's elements or of rows; in an
// attribute; in the type of a result.
bool type_mentions(const Type *t, const Dim *sym);
bool attrs_mention(const Op *op, const Dim *sym);
bool results_mention(const Op *op, const Dim *sym);
// Whether a size of t is just this symbol.
bool type_has_size(const Type *t, const Dim *sym);
// Whether op is what gives the symbol its value: a bind of it; or a size of a result is just this
// symbol, and neither an attribute nor a tensor that op reads, or that a side of a branch ends
// with, has it. A nest goes over sizes and finds none. The size that stands in an array's type is
// that of elements, known once one is read: an array gives it to arrays only. What a loop's rounds
// end with does not count: the loop is what gives its variables' sizes to what is behind it.
bool op_finds_size(const Op *op, const Dim *sym);
// Whether the type of an argument in the region, or an operation that `has` it, names the symbol.
bool region_has_size(const Region *r, const Dim *sym, bool (*has)(const Op *op, const Dim *sym));
const Dim *type_bytes_at_most(Context *c, const Type *tensor);
// Attributes of a module say it in text: `bounds` (symbol, bound, symbol, bound …) and
// `may_be_empty` (symbols).
void size_facts_to_module(Op *module);
void size_facts_from_module(const Op *module);

#endif
