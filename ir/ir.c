// Links the rooms of ir/: the functions that operators have in them, generated from the operator
// table.
#include "ir/ir.h"
#include "ir/build/build.h"
#include "ir/interp/interp.h"

#include "ops_functions.inc"

Context *context_new(void)
{
	return context_make(op_functions_table);
}
