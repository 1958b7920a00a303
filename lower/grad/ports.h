// Inputs and outputs of a module, as differentiate.c and train.c find and add them.
#ifndef PDCC_LOWER_GRAD_PORTS_H
#define PDCC_LOWER_GRAD_PORTS_H

#include "ir/core/core.h"

// A new fetch of v at the end of the module, in the column behind all others.
Op *port_fetch(Op *module, const char *name, Value *v);
// A new input in front of everything, in the column behind all others.
Value *port_feed(Op *module, const char *name, const Type *t);

#endif
