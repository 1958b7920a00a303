// Control flow to blocks and branches, and the plan of memory. Leaves blocks whose values have
// places in one workspace. Uses lower/pass, lower/analysis, lower/target and ir/.
#ifndef PDCC_LOWER_MEMORY_MEMORY_H
#define PDCC_LOWER_MEMORY_MEMORY_H

#include "lower/pass/pass.h"

// flatten.c: pd.if and pd.while to blocks and branches
bool pass_flatten(PassContext *p);
// state.c: what is stored in parameters, at the end
bool pass_state(PassContext *p);
// plan.c: one workspace
bool pass_plan(PassContext *p);

#endif
