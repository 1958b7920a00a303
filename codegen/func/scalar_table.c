// The templates of the operator table (`c:`), filled in. Called by scalar.c.
#include "codegen/func/scalar.h"

#include <string.h>

// The inline function of math.c.in that takes the place of a libm function in vector code, else the
// name itself.
static const char *math_name(const Scalars *s, const char *name, size_t n, bool single)
{
	Arena *a = s->k->arena;
	char *full = arena_printf(a, "%.*s%s", (int)n, name, single ? "f" : "");
	if (!s->k->target->vector)
		return full;
	// Without branches these take so many steps that narrow vectors lose by them.
	if (s->k->target->lanes < 8 &&
	    (!strcmp(full, "sinf") || !strcmp(full, "cosf") || !strcmp(full, "powf")))
		return full;
	const char *own = arena_printf(a, "pd_%s", full);
	return prelude_has("math.c", own) ? own : full;
}

static int hole_operand(const Op *op, const char *name, size_t n)
{
	for (int i = 0; i < op->info->noperand; i++)
		if (strlen(op->info->operands[i].name) == n && !memcmp(op->info->operands[i].name, name, n))
			return i;
	return -1;
}

int hole_count(const Op *op, int operand)
{
	int n = 0;
	for (const char *p = op->info->c_expr; (p = strstr(p, "${")); p += 2)
		n += hole_operand(op, p + 2, strcspn(p + 2, "}")) == operand;
	return n;
}

// A template being filled in for one operation.
typedef struct TableText {
	Scalars *s;
	const Op *op;
	bool single; // its numbers are no doubles
	Text out;
} TableText;

// `${x}`, of which p is the beginning: operand x, without parentheses where it is an argument.
// NULL after a diagnostic, else what comes behind.
static const char *operand_fill(TableText *t, const char *p)
{
	const size_t n = strcspn(p + 2, "}");
	const char *name = scalars_name(t->s, op_operand(t->op, hole_operand(t->op, p + 2, n)));
	if (!name)
		return NULL;
	const bool argument = t->out.len && t->out.text[t->out.len - 1] == '(' &&
	                      (p[n + 3] == ')' || p[n + 3] == ',');
	text_str(&t->out, argument ? expression_unwrap(t->out.arena, name) : name);
	return p + n + 3;
}

// `name{f}`: a function of libm, or another name, of the operation's precision.
static const char *name_fill(TableText *t, const char *p, size_t n)
{
	const char *behind = p + n + 3;
	text_str(&t->out, *behind == '('
	                      ? math_name(t->s, p, n, t->single)
	                      : arena_printf(t->out.arena, "%.*s%s", (int)n, p, t->single ? "f" : ""));
	return behind;
}

// `{t}`: the type, in a name `f32`, else as C has it.
static void type_fill(TableText *t)
{
	const bool in_name = t->out.len && char_is_word(t->out.text[t->out.len - 1]);
	text_str(&t->out, in_name ? dtype_name(t->single ? DT_F32 : DT_F64)
	                          : kernel_scalar(t->s->k, t->op->results[0].type));
}

const char *table_expression(Scalars *s, const Op *op)
{
	const Type *of = op_operand(op, 0)->type;
	TableText t = {.s = s, .op = op, .single = !(of->kind == TY_SCALAR && of->dtype == DT_F64)};
	text_init(&t.out, s->k->arena);
	for (const char *p = op->info->c_expr; *p;) {
		size_t n = 0;
		while (char_is_word(p[n]))
			n++;
		if (p[0] == '$' && p[1] == '{') {
			p = operand_fill(&t, p);
		} else if (n && !strncmp(p + n, "{f}", 3)) {
			p = name_fill(&t, p, n);
		} else if (!strncmp(p, "{f}", 3)) {
			text_str(&t.out, t.single ? "f" : "");
			p += 3;
		} else if (!strncmp(p, "{t}", 3)) {
			type_fill(&t);
			p += 3;
		} else {
			n += !n;
			text_strn(&t.out, p, n);
			p += n;
		}
		if (!p)
			return NULL;
	}
	return t.out.text;
}
