// Which tensors of one element, or of a few, are variables, which constants and nests need no
// memory or function, which sums cannot overflow, which positions need no check. Leaves the IR as
// it was. Uses ir/core; for printers, behind the plan.
#ifndef PDCC_LOWER_ANALYSIS_NUMBERS_H
#define PDCC_LOWER_ANALYSIS_NUMBERS_H

#include "ir/base/map.h"
#include "lower/analysis/places.h"

typedef struct Numbers {
	bool variables;       // single numbers are variables
	PointerMap classes;   // value -> another that is the same variable
	PointerMap in_memory; // values of one element that are none
	PointerMap in_place;  // values of a few elements that are none
} Numbers;

// `wanted`: whether there are variables where a program has several blocks.
void numbers_find(Numbers *n, Arena *a, const Op *module, bool wanted);
// The value that names the variable in which a tensor of one element lives; NULL: it lies in
// memory.
const Value *number_variable(const Numbers *n, const Place *p);
// The same of a few elements that nests alone compute and read: they are a local array, which C
// compilers keep in registers.
const Value *array_variable(const Numbers *n, const Place *p);
// Whether v is a single number, wherever it lies.
bool value_is_number(const Value *v);
// Whether a nest computes single numbers and is printed where it is called.
bool nest_is_statement(const Numbers *numbers, const Op *op);
// Whether v is a constant of one element; and whether all that is done with it is that branches
// pass it on to arguments that are single numbers.
bool constant_is_number(const Value *v);
bool constant_is_passed(const Value *v);

// ---- number_range.c -----------------------------------------------------------------------------
// Whether a sum or difference in a nest counts a number that a branch around has compared with a
// larger (smaller) one, or that updates on the way there have found to be a position.
bool sum_fits(Arena *a, const Op *op);
// Whether an integer of one element is never negative, as counters are that begin at 0.
bool number_is_natural(Arena *a, const Value *v);
// Whether the number of which a nest's loop.to_index makes an index is surely a position.
bool index_is_position(Arena *a, const Op *to_index);
// What is known of the position of a loop.update where steps run one after the other: that it is
// never negative; that it is not behind the last slice, for a branch or an update on each way there
// says so.
void update_position(Arena *a, const Op *op, bool *natural, bool *within);

#endif
