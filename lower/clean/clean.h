// Passes on values and control: what is known is folded, what is not needed goes, what does not
// change in a loop leaves it. Leaves the same operators, fewer of them. Uses lower/pass,
// lower/analysis and ir/.
#ifndef PDCC_LOWER_CLEAN_CLEAN_H
#define PDCC_LOWER_CLEAN_CLEAN_H

#include "lower/pass/pass.h"

// What each does: the table in lower/pipeline.c.
PassFunction pass_expand, pass_canonicalize, pass_fold, pass_unit_rows, pass_fold_batch_norm,
	pass_integers, pass_cse, pass_dce, pass_hoist, pass_bounds, pass_simplify_if, pass_loop_args,
	pass_loop_trips, pass_select, pass_strip_backward, pass_sink, pass_order_values, pass_cases,
	pass_dead_stacks, pass_sccp;

// compared.c, for patterns of canonicalize: the constant that v is, where all elements are the same
// and they are few enough to look at; NULL: it is none.
const Tensor *constant_of_equals(const Value *v);

// ---- known.c ------------------------------------------------------------------------------------

// Text of IR does not say what inference knows of shape arithmetic: finds it again.
void refresh_known(Op *op);
// Turns operands that override attributes into those attributes where they are known. True:
// changed.
bool drop_shape_operands(Op *op);
// Shape arithmetic that came out constant.
Value *known_constant(Builder *b, Op *op);

#endif
