// The structures of the IR: sizes, types, tensors, attributes, operations, and the table of
// operators. Leaves them uniqued and linked (use lists, blocks), all in the arena of a Context.
// Uses ir/base only.
#ifndef PDCC_IR_CORE_CORE_H
#define PDCC_IR_CORE_CORE_H

#include "ir/core/opinfo.h"

#endif
