// The recipe of --train, a YAML file, whose keys docs/training.md has. Leaves a Recipe in which all
// that the file says is known and in its range, or a diagnostic with the file's line. Uses
// frontend/read, and lower/grad, which says what a Recipe is.
#ifndef PDCC_FRONTEND_RECIPE_H
#define PDCC_FRONTEND_RECIPE_H

#include "lower/grad/train.h"

// False after a diagnostic.
bool recipe_read(Context *c, const char *path, Recipe *r);

#endif
