// What the files about expressions of the operator table share: expr.c evaluates them, expr_fold.c
// folds what is known, define.c asks for what an operation means.
#ifndef PDCC_IR_DEFINE_EXPR_H
#define PDCC_IR_DEFINE_EXPR_H

#include "ir/define/define.h"

// What a node of an expression stands for.
typedef struct Term {
	enum { TERM_NONE, TERM_VALUE, TERM_NUMBER, TERM_ATTR } kind;
	Value *value;
	double number;
	bool is_int;
	const Attr *attr;
} Term;

static inline Term expr_number(double v, bool is_int)
{
	return (Term){.kind = TERM_NUMBER, .number = v, .is_int = is_int};
}

// A call on numbers alone, or a comparison of other attributes. False: not folded.
bool expr_fold(const Expr *x, const Term *args, Term *out);
// x * 1, and x + 0 of whole numbers (of others it would lose the sign of zero).
bool expr_drop_neutral(const Expr *x, const Term *args, Term *out);
// What a definition of `info` sees: operands, and attributes (default when not set) unless
// overridden; returns how many. Arena array.
int expr_env(Context *c, const OpInfo *info, int noperand, Value *const *operands, int nattr,
             const NamedAttr *attrs, const EnvEntry **env);
// A composition of several results: the statements that are named after them. False after a
// diagnostic.
bool expr_results(Builder *b, const Op *op, int nenv, const EnvEntry *env, Value **results);

#endif
