// What the files that print scalar operations share: scalar.c and scalar_*.c.
#ifndef PDCC_CODEGEN_FUNC_SCALAR_H
#define PDCC_CODEGEN_FUNC_SCALAR_H

#include "codegen/func/func.h"

static inline bool type_is_int(const Type *t)
{
	return t->kind == TY_SCALAR && dtype_is_int(t->dtype);
}

// scalar_integer.c
const char *wrap_operator(enum OpCode code); // that of C for one that wraps; NULL: none
// Whether op is the larger or the smaller of two whole numbers that C has a function for.
bool limits_whole(const Scalars *s, const Op *op);
// Of numbers that are whole, or positions; NULL: they are not, or the table says it.
const char *integer_expression(Scalars *s, const Op *op, const char *x, const char *y);

// scalar_convert.c
const char *cast_expression(Scalars *s, const Op *op, const char *x);
const char *constant_expression(Scalars *s, const Op *op);
const char *from_index_expression(Scalars *s, const Op *op);
const char *position_expression(Scalars *s, const Op *op);

// scalar_table.c
const char *table_expression(Scalars *s, const Op *op); // NULL after a diagnostic
int hole_count(const Op *op, int operand);              // how often the template holds an operand

#endif
