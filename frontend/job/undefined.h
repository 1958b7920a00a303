// What stands where a variable has no value (undefined.c). Private to frontend/.
#ifndef PDCC_FRONTEND_UNDEFINED_H
#define PDCC_FRONTEND_UNDEFINED_H

#include "ir/build/build.h"

// A run that comes here ends with this message.
bool assert_never(Builder *b, const char *message);
// Paddle's mark for a variable that has no value yet.
#define UNDEFINED_MARK 1.77113e27
// Stands where a variable has no value, and nobody should look: that mark, zeros where the element
// type cannot hold it.
Value *undefined_value(Builder *b, const Type *t);

#endif
