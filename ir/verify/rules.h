// What the parts of the verifier share. Private to ir/; the outside calls ir_verify. The rules of
// single operations are verify hooks of the operator table (verify_control.c, verify_loop.c,
// verify_kernel.c).
#ifndef PDCC_VERIFY_H
#define PDCC_VERIFY_H

#include "ir/core/core.h"

// rules.c. Reports at op, beginning with its name; always false.
bool verify_fail(const Op *op, const char *fmt, ...) PRINTF_LIKE(2, 3);
// What to call operand i in a diagnostic: its name in the table.
const char *operand_text(const Op *op, int i);
// Whether a value of type a fits where b stands: equal, or both stacks of which one does not know
// its elements, or b leaves sizes to be found at run time.
bool types_agree(const Type *a, const Type *b);
// The rule of any kernel, with which those of single ones begin.
bool verify_hook_kernel(Op *op);
// No operand is left out.
bool verify_operands_present(const Op *op);
// The values of `op` from operand `first` on have the types of `want`; `what` names the operation's
// operands.
bool verify_operand_types(const Op *op, int first, int n, Value *const *want, const char *what);

// The loop.yield that ends a one-block region; NULL after a diagnostic.
const Op *region_yield(const Op *op, int region);
// The block's arguments from `first` on are n positions.
bool region_takes_positions(const Op *op, int region, int first, int n);
// The yield gives n values, number i of type want[i] (NULL: any scalar).
bool region_gives(const Op *yield, int n, const Type *const *want);

// verify_table.c: what the operator table says.
bool operands_are_sound(const Op *op);
bool attributes_are_sound(const Op *op);
bool regions_are_sound(const Op *op);
// Scalars stand in regions of nests and kernels, tensors outside.
bool level_is_sound(const Op *op);
// verify_types.c: inference says the same once more.
bool inference_is_sound(Op *op);

// verify_schedule.c: what stands in the IR of how threads of CUDA share a nest.
bool nest_form_is_sound(const Op *nest);
bool reduce_form_is_sound(const Op *reduce);
bool load_form_is_sound(const Op *load);
// Which threads of C share a kernel or a nest.
bool share_is_sound(const Op *op);
bool rows_form_is_sound(const Op *kernel);
// And of what one block does: of any operation; of a branch, which may be the way back of a loop.
bool step_is_sound(const Op *op);
// And which node its steps are part of, and for whom these wait.
bool waits_are_sound(const Op *op);
// What a call of a library does of the epilogue.
bool call_is_sound(const Op *op);
bool loop_form_is_sound(const Op *branch);

// verify_scope.c: every value is visible, and defined before it is used. Numbers ops (scratch) and
// blocks (id).
bool verify_scope(Op *root);

// verify_stack.c: a pop takes what a push gives.
bool verify_stacks(Op *root);

#endif
