// The rules of the IR: whether it hangs together, is what the operator table says, and keeps the
// scope rule. Leaves diagnostics, and the IR as it was. Uses ir/core and ir/infer.
#ifndef PDCC_IR_VERIFY_VERIFY_H
#define PDCC_IR_VERIFY_VERIFY_H

#include "ir/core/core.h"

bool ir_verify(Op *op); // diagnostics for everything wrong; true when nothing is
// Of text that somebody wrote, behind ir_verify: whether results have the element types and ranks
// that inference gives. The module is of no use afterwards.
bool ir_verify_text(Op *module);
// Whether a loop.load stays inside of its tensor, as far as indices of loops of constant size tell;
// an error when not.
bool load_verify_bounds(const Op *load);

#endif
