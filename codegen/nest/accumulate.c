// What a reduction accumulates: what it begins with, and how C adds one more element, alone or in
// lanes. Called by reduce.c and lanes.c, and for CUDA by device/reduce.c.
#include "codegen/nest/nest.h"
#include "lower/target/target.h"

#include <string.h>

// Elements of a window whose best is looked for without branches: of more, few are better than all
// before them.
enum { MAX_WINDOW = 32 };

ReduceKind reduce_kind(const Op *op)
{
	return (ReduceKind)op_enum(op, "kind");
}

static const char *lowest(Scalars *s, const Type *t, bool highest)
{
	static const char *const low[DT_COUNT] = {
		[DT_BOOL] = "false",    [DT_U8] = "0",          [DT_I8] = "INT8_MIN",
		[DT_I16] = "INT16_MIN", [DT_I32] = "INT32_MIN", [DT_I64] = "INT64_MIN"};
	static const char *const high[DT_COUNT] = {
		[DT_BOOL] = "true",     [DT_U8] = "UINT8_MAX",  [DT_I8] = "INT8_MAX",
		[DT_I16] = "INT16_MAX", [DT_I32] = "INT32_MAX", [DT_I64] = "INT64_MAX"};
	if (t->kind == TY_INDEX)
		return highest ? "INT64_MAX" : "INT64_MIN";
	if (dtype_is_float(t->dtype))
		return scalar_float(s->k->arena, t->dtype, highest ? HUGE_VAL : -HUGE_VAL);
	return highest ? high[t->dtype] : low[t->dtype];
}

// NULL after a diagnostic.
static const char *complex_neutral(Scalars *s, const Op *op, ReduceKind kind, const Type *t)
{
	if (kind == REDUCE_SUM || kind == REDUCE_PROD)
		return arena_printf(s->k->arena, "pd_%s_of(%s)", dtype_name(t->dtype),
		                    kind == REDUCE_SUM ? "0" : "1");
	diag_error(s->k->ctx->diag, op->loc,
	           "code generation: reduction '%s' of complex numbers is not supported in C",
	           op_str(op, "kind", ""));
	return NULL;
}

const char *reduce_neutral(Scalars *s, const Op *op, ReduceKind kind, const Type *t)
{
	bool real = t->kind == TY_SCALAR && dtype_is_float(t->dtype);
	if (type_is_complex(t))
		return complex_neutral(s, op, kind, t);
	if (reduce_is_max(kind) || kind == REDUCE_ARGMAX)
		return lowest(s, t, false);
	switch (kind) {
	case REDUCE_SUM: return real ? scalar_float(s->k->arena, t->dtype, 0) : "0";
	case REDUCE_PROD: return real ? scalar_float(s->k->arena, t->dtype, 1) : "1";
	case REDUCE_MIN:
	case REDUCE_LOWEST:
	case REDUCE_ARGMIN: return lowest(s, t, true);
	case REDUCE_ANY: return "false";
	case REDUCE_ALL: return "true";
	default:
		diag_error(s->k->ctx->diag, op->loc, "code generation: unknown kind of reduction '%s'",
		           op_str(op, "kind", ""));
		return NULL;
	}
}

// The type that is accumulated: what the region yields for argmax, the result otherwise.
static const Type *accumulated_type(const Op *op, ReduceKind kind)
{
	if (reduce_is_position(kind))
		return op_operand(block_terminator(op->regions[0].first), 0)->type;
	return op->results[0].type;
}

int reduce_lanes(const Target *target, const Op *op)
{
	const Type *t = accumulated_type(op, reduce_kind(op));
	const bool wide = t->kind == TY_SCALAR && dtype_size(t->dtype) == dtype_size(DT_F64);
	return wide ? target_lanes(target, DT_F64) : target->lanes;
}

// A term of a sum, or a factor of a product. Integers wrap.
static void accumulate_term(const Accumulator *a, const char *acc, const char *value, int depth,
                            Text *out)
{
	const Type *t = a->type;
	const bool sum = a->kind == REDUCE_SUM;
	const char *wide = t->dtype == DT_I64 ? "uint64_t" : "uint32_t";
	if (type_is_complex(t))
		text_line(out, depth, "%s = pd_%s_%s(%s, %s);", acc, dtype_name(t->dtype),
		          sum ? "add" : "mul", acc, value);
	else if (t->kind == TY_SCALAR && dtype_is_int(t->dtype))
		text_line(out, depth, "%s = (%s)((%s)%s %s (%s)%s);", acc, type_c_scalar(t), wide, acc,
		          sum ? "+" : "*", wide, value);
	else
		text_line(out, depth, "%s %s= %s;", acc, sum ? "+" : "*", value);
}

bool accumulator_stays_nan(const Accumulator *a)
{
	return (a->kind == REDUCE_HIGHEST || a->kind == REDUCE_LOWEST) && a->type->kind == TY_SCALAR &&
	       dtype_is_float(a->type->dtype);
}

// One more element of which the position is kept if it is better. In lanes by a mask: of two
// choices gcc makes a vector of bool between them, and takes it apart. Of a window, too: gcc would
// make a branch of them, which nobody can foretell in a few elements. `ties`: it may stand before
// what is kept, and is better then if it is as good. `last`: nothing more comes, and nobody reads
// the best itself.
static void accumulate_position(Scalars *s, const Accumulator *a, const char *acc,
                                const char *value, const char *index, bool ties, bool last,
                                int depth, Text *out)
{
	const char *best = a->best, *sign = a->kind == REDUCE_ARGMAX ? ">" : "<";
	const char *better = kernel_local(s->k, "v");
	if (a->narrow || a->window) {
		const char *whole = a->narrow ? "int32_t" : "int64_t";
		const char *tie = ties ? arena_printf(s->k->arena, " || (%s == %s && %s < %s)", value, best,
		                                      index, acc)
		                       : "";
		text_line(out, depth, "const %s %s = -(%s %s %s%s);", whole, better, value, sign, best,
		          tie);
		if (!last)
			text_line(out, depth, "%s = %s %s %s ? %s : %s;", best, value, sign, best, value, best);
		text_line(out, depth, "%s = (%s & ~%s) | (%s%s & %s);", acc, acc, better,
		          a->narrow ? "(int32_t)" : "", index, better);
		return;
	}
	text_line(out, depth, "const bool %s = %s %s %s;", better, value, sign, best);
	if (!last)
		text_line(out, depth, "%s = %s ? %s : %s;", best, better, value, best);
	text_line(out, depth, "%s = %s ? %s : %s;", acc, better, index, acc);
}

// One more element into the accumulator `acc`. Of floats, max and min are what Paddle's CPU kernels
// compute: a fold in which NaN comes after everything, and everything after NaN.
static void accumulate(Scalars *s, const Accumulator *a, const char *acc, const char *value,
                       const char *index, int depth, Text *out)
{
	const ReduceKind kind = a->kind;
	const char *sign = reduce_is_max(kind) ? ">" : "<";
	switch (kind) {
	case REDUCE_SUM:
	case REDUCE_PROD: accumulate_term(a, acc, value, depth, out); return;
	case REDUCE_MAX:
	case REDUCE_MIN:
	case REDUCE_HIGHEST:
	case REDUCE_LOWEST:
		if (a->keeps_nan)
			text_line(out, depth, "%s = %s %s %s || %s != %s ? %s : %s;", acc, value, sign, acc,
			          value, value, value, acc);
		else
			text_line(out, depth, "%s = %s %s %s ? %s : %s;", acc, acc, sign, value, acc, value);
		return;
	// No branch: vectors do not stop early.
	case REDUCE_ANY: text_line(out, depth, "%s |= %s;", acc, value); return;
	case REDUCE_ALL: text_line(out, depth, "%s &= %s;", acc, value); return;
	default: accumulate_position(s, a, acc, value, index, false, false, depth, out); return;
	}
}

// Whether it goes over at most so many elements.
static bool reduces_at_most(const Op *op, int64_t most)
{
	const Attr *extents = op_attr(op, "extents");
	int64_t n = 1;
	for (int i = 0; i < extents->n && n <= most; i++)
		n = dim_is_const(extents->dims[i]) && extents->dims[i]->value <= INT32_MAX
		        ? n * extents->dims[i]->value
		        : INT64_MAX;
	return n <= most;
}

bool reduce_positions_are_short(const Op *op)
{
	return reduces_at_most(op, INT32_MAX);
}

// Declares an array of lanes that begin with `neutral`. Zeros are an initialiser: of a loop gcc
// makes a memset, and keeps the array in memory for it.
static void array_open(const char *type, const char *name, int lanes, const char *neutral,
                       int depth, Text *out)
{
	const bool zero = strspn(neutral, "0.f") == strlen(neutral);
	const char *with = zero ? " = {0}" : "";
	text_line(out, depth, "%s %s[%d]%s;", type, name, lanes, with);
	if (*with)
		return;
	text_line(out, depth, "for (int l = 0; l < %d; l++)", lanes);
	text_line(out, depth + 1, "%s[l] = %s;", name, neutral);
}

// One number that a loop changes, and the best element beside a position.
static void single_open(Scalars *s, const Op *op, Accumulator *a, const char *neutral, int depth,
                        Text *out)
{
	const bool arg = reduce_is_position(a->kind);
	const char *best = arg ? kernel_local(s->k, "best") : a->name;
	text_line(out, depth, "%s %s = %s;", kernel_scalar(s->k, op->results[0].type), a->name,
	          arg ? "0" : neutral);
	if (arg)
		text_line(out, depth, "%s %s = %s;", kernel_scalar(s->k, a->type), best, neutral);
	a->window = arg && s->k->target->vector && reduces_at_most(op, MAX_WINDOW);
	a->element = a->name;
	a->best = best;
}

// The same for each lane.
static void lanes_open(Scalars *s, const Op *op, Accumulator *a, const char *neutral, int lanes,
                       int depth, Text *out)
{
	const bool arg = reduce_is_position(a->kind);
	const char *best = arg ? kernel_local(s->k, "best") : a->name;
	a->narrow = arg && reduce_positions_are_short(op);
	// A vector of bool is a quarter of one of floats, and gcc takes these apart for it.
	a->masks = a->kind == REDUCE_ANY || a->kind == REDUCE_ALL;
	if (a->masks)
		neutral = a->kind == REDUCE_ANY ? "0" : "1";
	array_open(a->narrow || a->masks ? "int32_t" : kernel_scalar(s->k, op->results[0].type),
	           a->name, lanes, arg ? "0" : neutral, depth, out);
	if (arg)
		array_open(kernel_scalar(s->k, a->type), best, lanes, neutral, depth, out);
	a->element = arena_printf(s->k->arena, "%s[l]", a->name);
	a->bests = best;
	a->best = arena_printf(s->k->arena, "%s[l]", best);
}

bool accumulator_open(Scalars *s, const Op *op, int lanes, Accumulator *a, int depth, Text *out)
{
	*a = (Accumulator){.kind = reduce_kind(op)};
	a->type = accumulated_type(op, a->kind);
	a->keeps_nan = accumulator_stays_nan(a);
	const char *neutral = reduce_neutral(s, op, a->kind, a->type);
	if (!neutral)
		return false;
	a->name = kernel_local(s->k, "acc");
	if (lanes)
		lanes_open(s, op, a, neutral, lanes, depth, out);
	else
		single_open(s, op, a, neutral, depth, out);
	return true;
}

const char *accumulator_value(Arena *a, const Accumulator *x)
{
	const char *as = x->narrow ? "int64_t" : x->masks ? "uint8_t" : NULL;
	return as ? arena_printf(a, "((%s)%s)", as, x->element) : x->element;
}

void accumulator_join(Scalars *s, const Accumulator *a, const char *other, const char *best,
                      bool last, int depth, Text *out)
{
	if (reduce_is_position(a->kind))
		accumulate_position(s, a, a->element, best, other, true, last, depth, out);
	else
		accumulate(s, a, a->element, other, NULL, depth, out);
}

void accumulator_add(Scalars *s, const Accumulator *a, const char *value, const char *index,
                     int depth, Text *out)
{
	bool twice = a->kind != REDUCE_SUM && a->kind != REDUCE_PROD && a->kind != REDUCE_ANY &&
	             a->kind != REDUCE_ALL;
	if (twice && strpbrk(value, "([? ")) {
		const char *name = kernel_local(s->k, "v");
		text_line(out, depth, "const %s %s = %s;", kernel_scalar(s->k, a->type), name, value);
		value = name;
	}
	accumulate(s, a, a->element, value, index, depth, out);
}

void accumulator_keep_nan(Accumulator *a)
{
	a->keeps_nan = reduce_is_order(a->kind) && a->type->kind == TY_SCALAR &&
	               dtype_is_float(a->type->dtype);
}
