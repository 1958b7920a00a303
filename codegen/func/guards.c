// Conditions that have been decided where they stand: what an arm of `c ? x : y` or the right side
// of `c && x` holds is computed only where c says so. Called by scalar.c, on the texts of operands.
#include "codegen/func/func.h"

#include <string.h>

// The end of an operand at the outermost level of `e`: `stop`, a comma or the end of what it is in.
static const char *operand_end(const char *e, char stop)
{
	int depth = 0, choices = 0;
	for (; *e; e++) {
		depth += (*e == '(' || *e == '[') - (*e == ')' || *e == ']');
		if (depth < 0 || (!depth && *e == ','))
			return e;
		if (!depth && *e == stop && !choices)
			return e;
		choices += !depth && *e == '?' ? 1 : !depth && *e == ':' ? -1 : 0;
	}
	return e;
}

// Where `e` holds `condition ? x : y` as an operand of its own; NULL: nowhere.
static const char *find_choice(const char *e, const char *condition)
{
	const size_t n = strlen(condition);
	for (const char *at = e; (at = strstr(at, condition)); at++) {
		const char before = at > e ? at[-1] : ' ';
		if ((before == '(' || before == '[' || (before == ' ' && at - e > 1 && at[-2] == ',')) &&
		    !strncmp(at + n, " ? ", 3))
			return at;
	}
	return NULL;
}

// Whether the parenthesis at e[i] only groups, and calls nothing.
static bool groups(const char *e, ptrdiff_t i)
{
	return i >= 0 && e[i] == '(' && (i == 0 || !(char_is_word(e[i - 1]) || strchr(")]", e[i - 1])));
}

const char *guard_decided(Arena *a, const char *e, const char *condition, bool value)
{
	const char *at;
	while (e && condition && (at = find_choice(e, condition))) {
		const char *x = at + strlen(condition) + 3, *x_end = operand_end(x, ':');
		if (*x_end != ':')
			return e;
		const char *y = x_end + 2, *y_end = operand_end(y, ':');
		const bool bare = groups(e, at - e - 1) && *y_end == ')',
				   alone = strchr("([", at[-1]) && !bare;
		const char *from = value ? x : y, *to = value ? x_end - 1 : y_end;
		const char *kept = arena_strndup(a, from, (size_t)(to - from));
		e = arena_printf(a, "%.*s%s%s", (int)(at - e - bare), e,
		                 alone && strchr(")]", *y_end) ? expression_unwrap(a, kept) : kept,
		                 y_end + bare);
	}
	return e;
}

// The operand that `x && y` or `x || y` is where the other is known; NULL: it is no such thing.
static const char *logic_same(const Op *op, const char *x, const char *y)
{
	const char *neutral = op->code == OP_PD_LOGICAL_AND  ? "true"
	                      : op->code == OP_PD_LOGICAL_OR ? "false"
	                                                     : NULL;
	if (!neutral)
		return NULL;
	return !strcmp(x, neutral) ? y : !strcmp(y, neutral) ? x : NULL;
}

const char *guard_logic(Scalars *s, const Op *op, const char *e, const char *x)
{
	const bool both = op->code == OP_PD_LOGICAL_AND;
	const char *one = op->noperand == 2 ? logic_same(op, x, scalars_name(s, op_operand(op, 1)))
	                                    : NULL;
	if (one)
		return one;
	return both || op->code == OP_PD_LOGICAL_OR ? guard_decided(s->k->arena, e, x, both) : e;
}

// What is less than y where y is one more than it; NULL: y is no such sum.
static const Value *one_less(const Value *y)
{
	int64_t c;
	const Op *sum = y->type->kind == TY_INDEX ? y->def : NULL;
	return sum && sum->code == OP_PD_ADD && index_constant(op_operand(sum, 1), &c) && c == 1
	           ? op_operand(sum, 0)
	           : NULL;
}

const char *guard_at_least(Scalars *s, const Op *op)
{
	const Value *y = op->code == OP_PD_LESS_THAN ? one_less(op_operand(op, 1)) : NULL;
	const char *from = y ? scalars_name(s, op_operand(op, 0)) : NULL,
			   *at = y ? scalars_name(s, y) : NULL;
	return from && at ? arena_printf(s->k->arena, "%s >= %s", at, from) : NULL;
}

bool guard_is_silent(const Op *op)
{
	const Use *u = one_less(&op->results[0]) ? op->results[0].uses : NULL;
	bool silent = u;
	for (; u && silent; u = u->next)
		silent = u->user->code == OP_PD_LESS_THAN && u->index == 1;
	return silent;
}

// The text of the comparison that holds where `pred`, which says that a position is at least so
// much, does not; NULL: there is none.
static const char *otherwise(Scalars *s, const Value *pred)
{
	const Op *op = pred->def;
	const Value *y = op && op->code == OP_PD_LESS_THAN ? one_less(op_operand(op, 1)) : NULL;
	return y ? arena_printf(s->k->arena, "(%s < %s)", scalars_name(s, y),
	                        scalars_name(s, op_operand(op, 0)))
	         : NULL;
}

const char *guard_choice(Scalars *s, const Value *pred, const char *x, const char *y)
{
	Arena *a = s->k->arena;
	const char *c = scalars_name(s, pred);
	if (!c || !x || !y)
		return NULL;
	x = guard_decided(a, x, c, true);
	y = guard_decided(a, guard_decided(a, y, c, false), otherwise(s, pred), true);
	return arena_printf(a, "%s ? %s : %s", c, x, y);
}
