// What sizes are under given values, between which ends they lie, and how they print: everything
// that reads an expression and makes no other.
#include "ir/core/core.h"

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

// ---- values -------------------------------------------------------------------------------------

// The value of an operation on two; false on overflow or division by zero.
static bool eval_binary(DimKind kind, int64_t a, int64_t b, int64_t *out)
{
	switch (kind) {
	case DIM_ADD: return !__builtin_add_overflow(a, b, out);
	case DIM_MUL: return !__builtin_mul_overflow(a, b, out);
	case DIM_MAX: *out = max64(a, b); return true;
	case DIM_MIN: *out = min64(a, b); return true;
	case DIM_BROADCAST: *out = a == 1 ? b : a; return true;
	default: break;
	}
	if (!b || (b == -1 && a == INT64_MIN))
		return false;
	*out = kind == DIM_DIV ? int_floor_div(a, b) : a - int_floor_div(a, b) * b;
	return true;
}

bool dim_eval(const Dim *d, int64_t (*value_of)(const Dim *, void *), void *arg, int64_t *out)
{
	int64_t a = 0, b = 0;
	if (d->kind == DIM_CONST || d->kind == DIM_SYM) {
		*out = d->kind == DIM_CONST ? d->value : value_of(d, arg);
		return true;
	}
	return dim_eval(d->a, value_of, arg, &a) && dim_eval(d->b, value_of, arg, &b) &&
	       eval_binary(d->kind, a, b, out);
}

// ---- ranges -------------------------------------------------------------------------------------

// Arithmetic on ends of ranges, where INT64_MIN and INT64_MAX mean "no bound".
static int64_t end_add(int64_t a, int64_t b)
{
	int64_t r;
	if (a == INT64_MIN || b == INT64_MIN)
		return INT64_MIN;
	if (a == INT64_MAX || b == INT64_MAX)
		return INT64_MAX;
	return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}

static int64_t end_mul(int64_t a, int64_t b)
{
	int64_t r;
	if (!a || !b)
		return 0;
	bool unbounded = a == INT64_MIN || b == INT64_MIN || a == INT64_MAX || b == INT64_MAX;
	if (unbounded || __builtin_mul_overflow(a, b, &r))
		return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
	return r;
}

// The values from lo to hi.
typedef struct Range {
	int64_t lo, hi;
} Range;

static Range range_mul(Range a, Range b)
{
	int64_t p = end_mul(a.lo, b.lo), q = end_mul(a.lo, b.hi), r = end_mul(a.hi, b.lo),
			s = end_mul(a.hi, b.hi);
	return (Range){min64(min64(p, q), min64(r, s)), max64(max64(p, q), max64(r, s))};
}

static Range range_div(Range a, Range b)
{
	if (b.lo > 0 && b.lo == b.hi)
		return (Range){a.lo == INT64_MIN ? a.lo : int_floor_div(a.lo, b.lo),
		               a.hi == INT64_MAX ? a.hi : int_floor_div(a.hi, b.lo)};
	return (Range){a.lo >= 0 && b.lo > 0 ? 0 : INT64_MIN, b.lo > 0 ? max64(a.hi, 0) : INT64_MAX};
}

static Range range_mod(Range b)
{
	return (Range){b.lo > 0 ? 0 : INT64_MIN, b.lo > 0 && b.hi != INT64_MAX ? b.hi - 1 : INT64_MAX};
}

// Of sizes of at least 1 the larger one, else it may be the 0.
static Range range_broadcast(Range a, Range b)
{
	bool positive = a.lo > 0 && b.lo > 0;
	return (Range){positive ? max64(a.lo, b.lo) : min64(a.lo, b.lo), max64(a.hi, b.hi)};
}

// `least`: of symbols that the caller gives.
static Range range_of(const Dim *d, int least)
{
	if (d->kind == DIM_CONST)
		return (Range){d->value, d->value};
	if (d->kind == DIM_SYM)
		return (Range){d->bounded ? 0 : least, INT64_MAX};
	const Range a = range_of(d->a, least), b = range_of(d->b, least);
	switch (d->kind) {
	case DIM_ADD: return (Range){end_add(a.lo, b.lo), end_add(a.hi, b.hi)};
	case DIM_MUL: return range_mul(a, b);
	case DIM_MAX: return (Range){max64(a.lo, b.lo), max64(a.hi, b.hi)};
	case DIM_MIN: return (Range){min64(a.lo, b.lo), min64(a.hi, b.hi)};
	case DIM_BROADCAST: return range_broadcast(a, b);
	case DIM_DIV: return range_div(a, b);
	default: return range_mod(b);
	}
}

void dim_range(const Dim *d, int64_t *lo, int64_t *hi)
{
	const Range r = range_of(d, 1);
	*lo = r.lo;
	*hi = r.hi;
}

void dim_range_empty(const Dim *d, int64_t *lo, int64_t *hi)
{
	const Range r = range_of(d, 0);
	*lo = r.lo;
	*hi = r.hi;
}

// ---- text ---------------------------------------------------------------------------------------

static int precedence(const Dim *d)
{
	if (d->kind == DIM_ADD)
		return 1;
	return d->kind == DIM_MUL || d->kind == DIM_DIV || d->kind == DIM_MOD ? 2 : 3;
}

static void print_expr(Text *t, const Dim *d);

static void print_operand(Text *t, const Dim *d, bool parens)
{
	if (parens)
		text_char(t, '(');
	print_expr(t, d);
	if (parens)
		text_char(t, ')');
}

// `a - 2 * b` for a sum whose second term is negative.
static bool print_negative(Text *t, const Dim *b)
{
	if (b->kind == DIM_CONST && b->value < 0 && b->value != INT64_MIN) {
		text_printf(t, " - %lld", (long long)-b->value);
		return true;
	}
	if (b->kind != DIM_MUL || b->a->kind != DIM_CONST || b->a->value >= 0 ||
	    b->a->value == INT64_MIN)
		return false;
	if (b->a->value == -1)
		text_str(t, " - ");
	else
		text_printf(t, " - %lld * ", (long long)-b->a->value);
	print_operand(t, b->b, precedence(b->b) <= 2);
	return true;
}

static void print_expr(Text *t, const Dim *d)
{
	static const char *const infix[] = {
		[DIM_ADD] = " + ", [DIM_MUL] = " * ", [DIM_DIV] = " / ", [DIM_MOD] = " % "};
	switch (d->kind) {
	case DIM_CONST: text_printf(t, "%lld", (long long)d->value); return;
	case DIM_SYM: text_printf(t, "?%s%s", d->bounded ? "!" : "", d->name); return;
	case DIM_MAX:
	case DIM_MIN:
	case DIM_BROADCAST:
		text_str(t, d->kind == DIM_MAX ? "max(" : d->kind == DIM_MIN ? "min(" : "broadcast(");
		print_expr(t, d->a);
		text_str(t, ", ");
		print_expr(t, d->b);
		text_char(t, ')');
		return;
	default: break;
	}
	print_operand(t, d->a, precedence(d->a) < precedence(d));
	if (d->kind == DIM_ADD && print_negative(t, d->b))
		return;
	text_str(t, infix[d->kind]);
	print_operand(t, d->b, precedence(d->b) <= precedence(d));
}

void dim_print(Text *t, const Dim *d)
{
	bool plain = d->kind == DIM_CONST || d->kind == DIM_SYM;
	if (!plain)
		text_char(t, '[');
	print_expr(t, d);
	if (!plain)
		text_char(t, ']');
}

// ---- symbols ------------------------------------------------------------------------------------

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

const char *dim_text(Context *c, const Dim *d)
{
	Text text;
	text_init(&text, c->arena);
	dim_print(&text, d);
	return text.text;
}
