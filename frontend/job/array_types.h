// Types of tensor arrays (array_types.c). Private to frontend/.
#ifndef PDCC_FRONTEND_ARRAY_TYPES_H
#define PDCC_FRONTEND_ARRAY_TYPES_H

#include "frontend/job/job.h"

// The type of a tensor array variable, as far as it is known.
const Type *array_type(Translator *t, const Paddle__VarDesc *v);
// The variable gets elements like this; starts over when its type must change. False after a
// diagnostic.
bool array_learn(OpJob *j, const char *var, const Type *element);
// An array becomes what another variable holds, or may: elements of several kinds are of the same
// kinds in both. Starts over when one learns; false after a diagnostic.
bool array_share(OpJob *j, const char *a, const char *b);
// Elements of two kinds in a program with gradients: the array holds those that its variable
// declares, and a write of the others ends the run. Whether e is none of these.
bool array_takes(OpJob *j, const char *var, const Type *element);
// The run ends where it comes to a write that the array cannot take.
bool array_refuse(OpJob *j, const char *var, const Type *element);
// The type of the array of offsets `name`, which gets elements like this; starts over when it
// changes. NULL: none.
const Type *array_level_type(Translator *t, const char *name, const Type *element);

#endif
