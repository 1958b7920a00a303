// The IR as a whole: makes a Context in which all that operators do is known. Leaves nothing else
// behind. Uses all rooms of ir/, which it links: their functions stand in the operator table, and
// nobody below calls them by name.
#ifndef PDCC_IR_IR_H
#define PDCC_IR_IR_H

#include "ir/core/core.h"

Context *context_new(void);

#endif
