// Where the plan lets tensors lie. Leaves the IR as it was. Uses ir/core; for passes behind the
// plan, and for printers.
#ifndef PDCC_LOWER_ANALYSIS_PLACES_H
#define PDCC_LOWER_ANALYSIS_PLACES_H

#include "ir/core/core.h"

// Where a tensor lies, by the plan's attributes; views are followed to what they show.
typedef enum PlaceKind {
	PLACE_NONE,
	PLACE_WORKSPACE,
	PLACE_INPUT,
	PLACE_OUTPUT,
	PLACE_PARAM
} PlaceKind;

typedef struct Place {
	PlaceKind kind;
	int col;    // INPUT, OUTPUT
	int moving; // WORKSPACE: number of a buffer that branches exchange with others; 0: it stays
	const Dim *offset; // WORKSPACE, PARAM; bytes
	bool state;        // WORKSPACE: of a parameter that runs change
	bool slot;         // WORKSPACE: in a slice of what lies there, which value_slot says
	const Value *root; // the value whose bytes these are
} Place;

Place value_place(const Value *v);
// The same of the i-th result of an operation, or value that a branch passes on. Views are not
// followed: `view` says whether it is one.
Place op_place(const Op *op, int i, bool *view);
// How what a branch passes to argument i of successor s gets there; MOVE_COUNT: the plan does not
// say.
MoveKind branch_move(const Op *branch, int s, int i);
// Whether two tensors lie at the same bytes.
bool places_equal(const Place *a, const Place *b);
// Whether the plan lets two tensors begin at the same bytes of the same memory, none of them
// nowhere.
bool places_meet(const Place *a, const Place *b);
// Whether what an update or an append leaves as it is need not be copied: it lies where the result
// does, or nothing was written so far.
bool update_keeps(const Op *op);
// The loop.update in whose slice v is computed; NULL: it lies elsewhere.
const Op *value_slot(const Value *v);
// Whether the operation changes parts of its first operand, whose bytes the result may have. In
// front of the plan, too.
bool op_updates(const Op *op);
// The operand in whose place an operation other than a nest may compute its result; -1: none.
int op_place_operand(const Op *op);

#endif
