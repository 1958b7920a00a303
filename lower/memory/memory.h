// Control flow to blocks and branches, and the plan of memory. Leaves blocks whose values have
// places in one workspace. Uses lower/pass, lower/analysis, lower/target and ir/.
#ifndef PDCC_LOWER_MEMORY_MEMORY_H
#define PDCC_LOWER_MEMORY_MEMORY_H

#include "lower/pass/pass.h"

// What each does: the table in lower/pipeline.c.
PassFunction pass_flatten, pass_state, pass_updates, pass_plan;

#endif
